#include "lower/einsum.h"

#include <algorithm>

namespace plumbline::lower {

std::uint32_t dims_of(const Operand& operand) {
  std::uint32_t mask = 0;
  for (const Axis& axis : operand.axes) {
    for (const AxisTerm& term : axis) mask |= 1U << term.dim;
  }
  return mask;
}

int Einsum::dim(const std::string& name) const {
  const auto at = std::find(dim_names.begin(), dim_names.end(), name);
  return at == dim_names.end() ? -1 : static_cast<int>(at - dim_names.begin());
}

namespace {

Operand operand(std::string name, Role role, std::vector<Axis> axes) {
  Operand result;
  result.name = std::move(name);
  result.role = role;
  result.axes = std::move(axes);
  return result;
}

}  // namespace

Einsum gemm_einsum(std::int64_t m, std::int64_t n, std::int64_t k) {
  Einsum e;
  e.dim_names = {"M", "N", "K"};
  e.dims = {m, n, k};
  e.operands = {operand("weights", Role::weights, {{{1, 1}}, {{2, 1}}}),
                operand("inputs", Role::inputs, {{{0, 1}}, {{2, 1}}}),
                operand("outputs", Role::outputs, {{{0, 1}}, {{1, 1}}})};
  return e;
}

Einsum conv_einsum(const ConvShape& shape) {
  Einsum e;
  e.dim_names = {"N", "K", "C", "P", "Q", "R", "S"};
  e.dims = {shape.batch, shape.k, shape.c, shape.p, shape.q, shape.r, shape.s};
  const Axis rows{{3, shape.stride[0]}, {5, shape.dilation[0]}};
  const Axis columns{{4, shape.stride[1]}, {6, shape.dilation[1]}};
  e.operands = {operand("weights", Role::weights, {{{1, 1}}, {{2, 1}}, {{5, 1}}, {{6, 1}}}),
                operand("inputs", Role::inputs, {{{0, 1}}, {{2, 1}}, rows, columns}),
                operand("outputs", Role::outputs, {{{0, 1}}, {{1, 1}}, {{3, 1}}, {{4, 1}}})};
  if (shape.groups > 1) {
    e.dim_names.emplace_back("G");
    e.dims[7] = shape.groups;
    for (Operand& each : e.operands) each.axes.insert(each.axes.begin(), Axis{{7, 1}});
  }
  return e;
}

Einsum depthwise_einsum(const ConvShape& shape) {
  Einsum e;
  e.dim_names = {"N", "C", "P", "Q", "R", "S"};
  e.dims = {shape.batch, shape.c, shape.p, shape.q, shape.r, shape.s};
  const Axis rows{{2, shape.stride[0]}, {4, shape.dilation[0]}};
  const Axis columns{{3, shape.stride[1]}, {5, shape.dilation[1]}};
  e.operands = {operand("weights", Role::weights, {{{1, 1}}, {{4, 1}}, {{5, 1}}}),
                operand("inputs", Role::inputs, {{{0, 1}}, {{1, 1}}, rows, columns}),
                operand("outputs", Role::outputs, {{{0, 1}}, {{1, 1}}, {{2, 1}}, {{3, 1}}})};
  return e;
}

}  // namespace plumbline::lower
