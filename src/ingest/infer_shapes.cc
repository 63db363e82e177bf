#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "ingest/graph.h"
#include "ingest/graph_limits.h"
#include "ingest/graph_text.h"
#include "ingest/infer_step.h"
#include "ingest/operators.h"
#include "ingest/shape_math.h"

namespace plumbline::ingest {

namespace {

constexpr std::size_t kMostErrors = 20;

Diagnostic bad_input(const Tensor& tensor, std::size_t axis, std::string_view message, std::string help) {
  return make_error("onnx-shape", tensor.span,
                    fmt::format("dimension {} of input {} {}", axis, quoted(tensor.name), message), std::move(help));
}

std::string bound_names(const Bindings& bindings) {
  std::string out;
  for (const auto& [name, size] : bindings) out += fmt::format("{}{}", out.empty() ? "" : ", ", name);
  return out.empty() ? "nothing is bound" : "bound are: " + out;
}

// "input.axis" wins over the symbol, and over a size the file fixes: it names this very dimension.
Result<std::int64_t> bound_size(const Tensor& tensor, std::size_t axis, const Bindings& bindings) {
  const Dimension& dimension = (*tensor.shape)[axis];
  const std::string address = fmt::format("{}.{}", tensor.name, axis);
  auto found = bindings.find(address);
  if (found == bindings.end() && !dimension.known() && !dimension.symbol.empty()) {
    found = bindings.find(dimension.symbol);
  }
  if (found == bindings.end() && !dimension.known()) {
    const std::string& name = dimension.symbol.empty() ? address : dimension.symbol;
    return bad_input(tensor, axis, "has no size", fmt::format("bind '{}'; {}", name, bound_names(bindings)));
  }
  const std::int64_t size = found == bindings.end() ? dimension.value : found->second;
  if (size < 1 || size > kMaxExtent) {
    return bad_input(tensor, axis, fmt::format("has size {}, outside 1 to 2^40", size), "");
  }
  return size;
}

Result<Shape> bound_shape(const Tensor& tensor, const Bindings& bindings) {
  if (!tensor.shape) {
    return make_error("onnx-shape", tensor.span, fmt::format("input {} has no shape", quoted(tensor.name)),
                      "export the model with the rank of its inputs");
  }
  Shape shape;
  Diagnostics errors;
  for (std::size_t axis = 0; axis < tensor.shape->size(); ++axis) {
    auto size = bound_size(tensor, axis, bindings);
    if (size.ok()) {
      shape.push_back(*size);
    } else {
      errors.push_back(size.errors().front());
    }
  }
  if (!errors.empty()) return errors;
  if (!element_count(shape)) {
    return make_error("onnx-shape", tensor.span,
                      fmt::format("input {} would have the shape {}, more than 2^50 elements", quoted(tensor.name),
                                  shape_text(shape)));
  }
  return shape;
}

Shape parameter_shape(const Tensor& tensor) {
  PL_CHECK(tensor.shape.has_value());
  Shape shape;
  for (const auto& dimension : *tensor.shape) {
    PL_CHECK(dimension.known());
    shape.push_back(dimension.value);
  }
  return shape;
}

// Contents of tensors that no node makes, where the file states them.
void start_contents(Inference& inference, TensorId id) {
  const Tensor& tensor = inference.shaped->graph.tensors[id.at()];
  const auto& shape = inference.shaped->shapes[id.at()];
  std::optional<Contents> contents;
  if (tensor.value) {
    contents = *tensor.value;
  } else if (tensor.real_value) {
    contents = *tensor.real_value;
  }
  if (!contents || !shape) return;
  const std::size_t size = size_of(*contents);
  PL_CHECK(static_cast<std::int64_t>(size) == element_count(*shape));
  if (size > kMaxFollowedElements || inference.followed + size > kMaxFollowedTotal) return;
  inference.followed += size;
  inference.contents[id.at()] = std::move(contents);
}

bool all_contents_known(const Step& step) {
  for (std::size_t i = 0; i < step.input_count(); ++i) {
    if (step.has_input(i) && step.contents(i) == nullptr) return false;
  }
  return true;
}

Status infer_node(Inference& inference, NodeId id) {
  Step step(inference, id);
  const Operator* row = find_operator(step.node().domain, step.node().op);
  if (row == nullptr) return unknown_operator(step.node());
  PL_TRY_STATUS(row->shapes(step));
  for (const TensorId output : step.node().outputs) {
    PL_CHECK(!output.valid() || inference.shaped->shapes[output.at()].has_value());
  }
  if (row->values == nullptr || !step.has_output(0) || !all_contents_known(step)) return Done{};
  return row->values(step);
}

// Where a shape could not be found, what hangs on it is passed over: one error per cause.
bool inputs_known(const ShapedGraph& shaped, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](TensorId id) { return !id.valid() || shaped.shapes[id.at()].has_value(); });
}

void append(Diagnostics& to, const Diagnostics& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

Result<ShapedGraph> infer_shapes(const Graph& graph, const Bindings& bindings) {
  ShapedGraph shaped;
  shaped.graph = graph;
  shaped.shapes.resize(graph.tensors.size());
  Inference inference{&shaped, std::vector<std::optional<Contents>>(graph.tensors.size()), 0};
  Diagnostics errors;
  for (const TensorId id : graph.inputs) {
    auto shape = bound_shape(graph.tensors[id.at()], bindings);
    if (shape.ok()) {
      shaped.shapes[id.at()] = *std::move(shape);
    } else {
      append(errors, shape.errors());
    }
  }
  std::vector<bool> made(graph.tensors.size(), false);
  for (const auto& node : graph.nodes) {
    for (const TensorId id : node.outputs) {
      if (id.valid()) made[id.at()] = true;
    }
  }
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (made[i]) continue;
    if (graph.tensors[i].parameter) shaped.shapes[i] = parameter_shape(graph.tensors[i]);
    start_contents(inference, TensorId(i));
  }
  for (std::size_t i = 0; i < graph.nodes.size() && errors.size() < kMostErrors; ++i) {
    if (!inputs_known(shaped, graph.nodes[i])) continue;
    const auto inferred = infer_node(inference, NodeId(i));
    if (!inferred.ok()) append(errors, inferred.errors());
  }
  if (!errors.empty()) return errors;
  shaped.values.resize(graph.tensors.size());
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (!inference.contents[i]) continue;
    if (auto* integers = std::get_if<std::vector<std::int64_t>>(&*inference.contents[i])) {
      shaped.values[i] = std::move(*integers);
    }
  }
  return shaped;
}

}  // namespace plumbline::ingest
