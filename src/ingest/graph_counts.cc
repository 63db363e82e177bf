#include "ingest/graph_counts.h"

#include <fmt/format.h>

#include "core/check.h"
#include "ingest/shape_math.h"

namespace plumbline::ingest {

std::int64_t parameter_elements(const ShapedGraph& shaped) {
  const Graph& graph = shaped.graph;
  std::vector<bool> computed(graph.tensors.size(), false);
  std::vector<bool> read(graph.tensors.size(), false);
  for (const auto& node : graph.nodes) {
    for (const TensorId id : node.inputs) {
      if (id.valid()) read[id.at()] = true;
    }
    if (node.op == "ConstantOfShape") continue;  // a fill stands for a weight of its own
    for (const TensorId id : node.outputs) {
      if (id.valid()) computed[id.at()] = true;
    }
  }
  std::int64_t total = 0;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (!tensor.parameter || computed[i] || !read[i] || !shaped.shapes[i] || shaped.shapes[i]->empty()) continue;
    if (tensor.type == ElementType::int64 || tensor.type == ElementType::boolean) continue;
    const auto elements = element_count(*shaped.shapes[i]);
    PL_CHECK(elements.has_value());
    total += *elements;
  }
  return total;
}

bool has_dimension(const Graph& graph, const std::string& name) {
  for (const TensorId id : graph.inputs) {
    const Tensor& tensor = graph.tensors[id.at()];
    if (!tensor.shape) continue;
    for (std::size_t axis = 0; axis < tensor.shape->size(); ++axis) {
      if (!name.empty() && (*tensor.shape)[axis].symbol == name) return true;
      if (fmt::format("{}.{}", tensor.name, axis) == name) return true;
    }
  }
  return false;
}

}  // namespace plumbline::ingest
