#pragma once
// Operands of the workbench verbs: a .npy file, or numbers generated from a seed.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace plumbline::numerics {

struct Operand {
  std::string description;           ///< as asked for, and the seed of a generated one
  std::vector<std::size_t> shape;    ///< C order
  std::vector<float> values;         ///< what kernels see
  std::vector<double> originals;     ///< float64 of a file that binary32 cannot hold; else empty
  std::uint64_t inexact_values = 0;  ///< elements that binary32 changed

  /// The element as it was given.
  [[nodiscard]] double original(std::size_t i) const { return originals.empty() ? values[i] : originals[i]; }
  /// All dimensions but the last, and the last: the matrix that blocks and groups run along. A vector is one row.
  [[nodiscard]] std::size_t rows() const { return columns() == 0 ? 0 : values.size() / columns(); }
  [[nodiscard]] std::size_t columns() const { return shape.empty() ? values.size() : shape.back(); }
};

inline constexpr std::size_t kMaxGeneratedElements = std::size_t{1} << 30;

/// The shape that `text` asks to generate, before anything is; absent for a file. Errors: as read_operand's.
[[nodiscard]] Result<std::optional<std::vector<std::size_t>>> generated_shape(const std::string& text);

/// `kind:AxBx…` generates: normal (deviation 1), uniform (-1 to 1), outliers (normal, one element in 256 times 64),
/// ramp (0, 1, 2, …). Anything else is the path of a .npy file. The same seed gives the same bits everywhere.
/// Errors: those of load_npy, `unknown-name` for a kind, `bad-number` for a shape, `too-large`.
[[nodiscard]] Result<Operand> read_operand(const std::string& text, std::uint64_t seed);

}  // namespace plumbline::numerics
