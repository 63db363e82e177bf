#pragma once
// A kernel's iteration space: up to 8 dimensions, and operands addressed by affine projections of them.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace plumbline::lower {

inline constexpr int kMaxDims = 8;

/// One addend of an operand axis: coefficient × dimension.
struct AxisTerm {
  int dim = 0;
  std::int64_t coefficient = 1;
  friend bool operator==(const AxisTerm&, const AxisTerm&) = default;
};

/// An axis index is the sum of its terms, e.g. p·stride + r·dilation.
using Axis = std::vector<AxisTerm>;

/// What an operand is to the metrics. Only `weights` are model parameters; K and V held stationary are
/// `stationary_activations`.
enum class Role { weights, inputs, stationary_activations, outputs };

struct Operand {
  std::string name;  ///< "weights", "inputs", "outputs"
  Role role = Role::inputs;
  std::vector<Axis> axes;
  std::int64_t bits = 8;           ///< stored bits of one element
  std::int64_t partial_bits = 32;  ///< outputs only: bits of a partial sum before it is final
  /// Side data fetched with the elements: one scale (or metadata word) of `side_bits` per `side_group` elements; 0 =
  /// none.
  std::int64_t side_bits = 0;
  std::int64_t side_group = 0;
};

/// One bit for each dimension that moves the operand.
[[nodiscard]] std::uint32_t dims_of(const Operand& operand);

/// outputs[...] += Π inputs[...]; exactly one operand has the role `outputs` and it is the last.
struct Einsum {
  std::vector<std::string> dim_names;         ///< "M", "N", "K", … (docs/glossary.md)
  std::array<std::int64_t, kMaxDims> dims{};  ///< sizes, by dimension index
  std::vector<Operand> operands;

  [[nodiscard]] int rank() const { return static_cast<int>(dim_names.size()); }
  /// Index of a dimension by name, -1 when absent.
  [[nodiscard]] int dim(const std::string& name) const;
};

/// outputs[M,N] += inputs[M,K] · weights[N,K]; operands in the order weights, inputs, outputs.
[[nodiscard]] Einsum gemm_einsum(std::int64_t m, std::int64_t n, std::int64_t k);

/// A convolution by its outputs (no padding is addressed): outputs[N,G,K,P,Q] += weights[G,K,C,R,S] ·
/// inputs[N,G,C,P·stride0+R·dilation0,Q·stride1+S·dilation1]. K and C are per group.
struct ConvShape {
  std::int64_t batch = 1, groups = 1, k = 1, c = 1, p = 1, q = 1, r = 1, s = 1;
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> dilation{1, 1};
};
/// Dimensions N,K,C,P,Q,R,S, and G when there is more than one group; operands weights, inputs, outputs.
[[nodiscard]] Einsum conv_einsum(const ConvShape& shape);
/// The same with one channel index C in place of K and C (depthwise); `groups` and `k` are not read.
[[nodiscard]] Einsum depthwise_einsum(const ConvShape& shape);

}  // namespace plumbline::lower
