#pragma once
// For tests: building ONNX bytes by hand, and counting multiply-accumulates.
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "ingest/graph.h"
#include "ingest/onnx.pb.h"
#include "ingest/shape_math.h"

namespace plumbline::ingest {

/// Multiply-accumulates of MatMul, Gemm and Conv nodes that do not work on parameters alone.
inline std::int64_t multiply_accumulates(const ShapedGraph& shaped) {
  std::int64_t total = 0;
  for (const auto& node : shaped.graph.nodes) {
    const bool matrix = node.op == "MatMul" || node.op == "Gemm";
    if ((!matrix && node.op != "Conv") || shaped.graph.tensors[node.outputs[0].at()].parameter) continue;
    const Shape& a = shaped.shape(node.inputs[0]);
    const Shape& b = shaped.shape(node.inputs[1]);
    const std::int64_t outputs = *element_count(shaped.shape(node.outputs[0]));
    const auto transposed = node.attributes.find("transA");
    const bool turned = transposed != node.attributes.end() && std::get<std::int64_t>(transposed->second) != 0;
    // Depth of each output element: the common axis, or one filter.
    const std::int64_t depth = matrix ? (turned ? a[0] : a.back()) : *element_count(Shape(b.begin() + 1, b.end()));
    total += outputs * depth;
  }
  return total;
}

inline std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A model under construction; `bytes()` is its file.
struct OnnxBuilder {
  wire::Model model;

  explicit OnnxBuilder(std::int64_t opset = 17) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("test");
  }
  wire::Graph& graph() { return *model.mutable_graph(); }
  /// A dimension below 0 is symbolic: -1 is "a", -2 is "b" …
  OnnxBuilder& input(const std::string& name, const std::vector<std::int64_t>& shape, std::int32_t type = 1) {
    auto* value = graph().add_input();
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const std::int64_t extent : shape) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (extent >= 0) {
        dim->set_dim_value(extent);
      } else {
        dim->set_dim_param(std::string(1, static_cast<char>('a' - 1 - extent)));
      }
    }
    return *this;
  }
  OnnxBuilder& output(const std::string& name) {
    auto* value = graph().add_output();
    value->set_name(name);
    value->mutable_type()->mutable_tensor_type()->set_elem_type(1);
    return *this;
  }
  OnnxBuilder& weight(const std::string& name, const std::vector<std::int64_t>& shape) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(1);
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
      tensor->add_dims(extent);
      count *= extent;
    }
    for (std::int64_t i = 0; i < count; ++i) tensor->add_float_data(0.5F);
    return *this;
  }
  OnnxBuilder& integers(const std::string& name, const std::vector<std::int64_t>& values, bool scalar = false) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(7);
    if (!scalar) tensor->add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) tensor->add_int64_data(value);
    return *this;
  }
  wire::Node& node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs, const std::string& name = "") {
    auto* node = graph().add_node();
    node->set_op_type(op);
    node->set_name(name.empty() ? outputs.front() + "_node" : name);
    for (const auto& input : inputs) node->add_input(input);
    for (const auto& output : outputs) node->add_output(output);
    return *node;
  }
  [[nodiscard]] std::string bytes() const { return model.SerializeAsString(); }
};

inline void set_integer(wire::Node& node, const std::string& name, std::int64_t value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(2);
  attribute->set_i(value);
}

inline void set_integers(wire::Node& node, const std::string& name, const std::vector<std::int64_t>& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(7);
  for (const std::int64_t value : values) attribute->add_ints(value);
}

inline void set_text(wire::Node& node, const std::string& name, const std::string& value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(3);
  attribute->set_s(value);
}

}  // namespace plumbline::ingest
