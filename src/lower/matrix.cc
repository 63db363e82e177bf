#include "lower/matrix.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumbline::lower {
namespace {

struct GemmSizes {
  std::int64_t groups = 1, m = 1, n = 1, k = 1;
};

Einsum grouped_gemm(const GemmSizes& size) {
  Einsum e = gemm_einsum(size.m, size.n, size.k);
  if (size.groups == 1) return e;
  e.dim_names = {"G", "M", "N", "K"};
  e.dims = {size.groups, size.m, size.n, size.k};
  for (Operand& operand : e.operands) {
    for (Axis& axis : operand.axes) {
      for (AxisTerm& term : axis) ++term.dim;
    }
    operand.axes.insert(operand.axes.begin(), Axis{{0, 1}});
  }
  return e;
}

std::int64_t product_of(const ingest::Shape& shape, std::size_t from, std::size_t to) {
  std::int64_t product = 1;
  for (std::size_t i = from; i < to; ++i) product *= shape[i];
  return product;
}

/// A matrix as (batch axes…, rows, columns) after an optional transposition; vectors become one row or one column.
struct MatrixView {
  ingest::Shape batch;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

MatrixView view_of(const ingest::Shape& shape, bool transposed, bool left) {
  MatrixView view;
  if (shape.size() < 2) {
    const std::int64_t length = shape.empty() ? 1 : shape[0];
    (left ? view.columns : view.rows) = length;
    return view;
  }
  view.batch.assign(shape.begin(), shape.end() - 2);
  view.rows = shape[shape.size() - 2];
  view.columns = shape[shape.size() - 1];
  if (transposed) std::swap(view.rows, view.columns);
  return view;
}

Diagnostic mismatch(const ingest::Node& node, std::int64_t left, std::int64_t right) {
  return make_error("shape-mismatch", node.span,
                    fmt::format("the operands of node '{}' share no inner size: {} and {}", node.name, left, right));
}

Result<MatrixProduct> gemm_product(const ingest::ShapedGraph& shaped, const GraphFacts& facts, std::size_t n) {
  const ingest::Node& node = shaped.graph.nodes[n];
  const OperatorRow& row = *facts.rows[n];
  const TensorId a = node.inputs[static_cast<std::size_t>(row.data)];
  const TensorId b = node.inputs[static_cast<std::size_t>(row.weight)];
  const MatrixView left = view_of(shaped.shape(a), integer_attribute(node, "transA", 0) != 0, true);
  const MatrixView right = view_of(shaped.shape(b), integer_attribute(node, "transB", 0) != 0, false);
  if (left.columns != right.rows) return mismatch(node, left.columns, right.rows);

  MatrixProduct product;
  const std::int64_t left_batch = product_of(left.batch, 0, left.batch.size());
  const std::int64_t right_batch = product_of(right.batch, 0, right.batch.size());
  GemmSizes size{1, left.rows, right.columns, left.columns};
  const bool swapped = facts.constant[a.at()] && !facts.constant[b.at()];
  product.weights = swapped ? a : b;
  product.inputs = swapped ? b : a;
  product.weights_constant = facts.constant[product.weights.at()];
  // The parameter side is operand 0, so a product W·x is computed transposed.
  if (swapped) std::swap(size.m, size.n);
  const std::int64_t weights_batch = swapped ? left_batch : right_batch;
  const std::int64_t inputs_batch = swapped ? right_batch : left_batch;
  const std::int64_t batch = facts.elements[node.outputs[0].at()] / std::max<std::int64_t>(1, size.m * size.n);
  if (weights_batch == 1) {
    size.m *= batch;
  } else if (weights_batch == batch && inputs_batch == batch) {
    size.groups = batch;
  } else {
    return make_error("unsupported", node.span,
                      fmt::format("node '{}' broadcasts one operand over part of the other's batch", node.name),
                      "expand the smaller operand before the product");
  }
  product.einsum = grouped_gemm(size);
  product.layer_class = product.weights_constant ? "projection" : "attention";
  return product;
}

Result<MatrixProduct> conv_product(const ingest::ShapedGraph& shaped, const GraphFacts& facts, std::size_t n) {
  const ingest::Node& node = shaped.graph.nodes[n];
  const OperatorRow& row = *facts.rows[n];
  MatrixProduct product;
  product.inputs = node.inputs[static_cast<std::size_t>(row.data)];
  product.weights = node.inputs[static_cast<std::size_t>(row.weight)];
  product.weights_constant = facts.constant[product.weights.at()];
  const ingest::Shape& x = shaped.shape(product.inputs);
  const ingest::Shape& w = shaped.shape(product.weights);
  const ingest::Shape& y = shaped.shape(node.outputs[0]);
  if (x.size() < 3 || x.size() > 4 || w.size() != x.size() || y.size() != x.size()) {
    return make_error("unsupported", node.span,
                      fmt::format("node '{}' convolves over {} axes", node.name, static_cast<long>(x.size()) - 2),
                      "convolutions over one or two axes are modelled");
  }
  ConvShape shape;
  shape.batch = x[0];
  shape.groups = integer_attribute(node, "group", 1);
  if (shape.groups < 1 || w[0] % shape.groups != 0) return mismatch(node, w[0], shape.groups);
  shape.k = w[0] / shape.groups;
  shape.c = w[1];
  if (w[1] * shape.groups != x[1]) return mismatch(node, x[1], w[1] * shape.groups);
  const auto strides = list_attribute(node, "strides");
  const auto dilations = list_attribute(node, "dilations");
  const std::size_t axes = x.size() - 2;
  // One axis is the second of two: rows of height one.
  const std::size_t offset = 2 - axes;
  std::array<std::int64_t, 2> out{1, 1};
  std::array<std::int64_t, 2> window{1, 1};
  for (std::size_t i = 0; i < axes; ++i) {
    out[offset + i] = y[2 + i];
    window[offset + i] = w[2 + i];
    if (i < strides.size()) shape.stride[offset + i] = strides[i];
    if (i < dilations.size()) shape.dilation[offset + i] = dilations[i];
  }
  shape.p = out[0];
  shape.q = out[1];
  shape.r = window[0];
  shape.s = window[1];
  const bool depthwise = shape.groups > 1 && shape.c == 1 && shape.k == 1;
  if (depthwise) shape.c = shape.groups;
  product.einsum = depthwise ? depthwise_einsum(shape) : conv_einsum(shape);
  const bool pointwise = shape.r == 1 && shape.s == 1;
  product.layer_class = depthwise ? "depthwise_conv" : pointwise ? "pointwise_conv" : "conv";
  return product;
}

void set_bits(MatrixProduct& product, const FormatBits& bits) {
  Operand& weights = product.einsum.operands[0];
  if (!product.weights_constant) {
    weights.name = "stationary";
    weights.role = Role::stationary_activations;
  }
  weights.bits = product.weights_constant ? bits.weights : bits.inputs;
  product.einsum.operands[1].bits = bits.inputs;
  product.einsum.operands[2].bits = bits.outputs;
  product.einsum.operands[2].partial_bits = bits.accumulate;
}

}  // namespace

Result<MatrixProduct> make_product(const ingest::ShapedGraph& shaped, const GraphFacts& facts, std::size_t n,
                                   const FormatBits& bits) {
  const ingest::Node& node = shaped.graph.nodes[n];
  const OperatorRow& row = *facts.rows[n];
  auto made = row.lowering == Lowering::conv ? conv_product(shaped, facts, n) : gemm_product(shaped, facts, n);
  if (!made.ok()) return made;
  MatrixProduct& product = *made;
  std::int64_t macs = 1;
  for (int d = 0; d < product.einsum.rank(); ++d) {
    const std::int64_t size = product.einsum.dims[static_cast<std::size_t>(d)];
    if (size < 1) {
      return make_error("unsupported", node.span,
                        fmt::format("node '{}' has an empty dimension {}", node.name,
                                    product.einsum.dim_names[static_cast<std::size_t>(d)]));
    }
    if (__builtin_mul_overflow(macs, size, &macs)) {
      return make_error("overflow", node.span, fmt::format("node '{}' has more than 2^63 MACs", node.name));
    }
  }
  if (row.bias >= 0 && static_cast<std::size_t>(row.bias) < node.inputs.size()) {
    product.bias = node.inputs[static_cast<std::size_t>(row.bias)];
  }
  set_bits(product, bits);
  return made;
}

}  // namespace plumbline::lower
