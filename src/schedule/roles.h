#pragma once
// Which dimensions touch which operands: what may stream, what may be spread over the array, what is reduced.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lower/einsum.h"

namespace plumbline::schedule {

struct DimRoles {
  std::vector<std::uint32_t> relevant;  ///< by operand: bit d set when dimension d moves it
  std::uint32_t all = 0;
  std::uint32_t outputs = 0;
  [[nodiscard]] std::uint32_t reduction() const { return all & ~outputs; }
  /// Dimensions that change something while operand `stationary` stays.
  [[nodiscard]] std::uint32_t streaming(std::size_t stationary) const { return all & ~relevant[stationary]; }
  /// Dimensions that every operand has: batch-like, they never share anything.
  [[nodiscard]] std::uint32_t shared() const;
  /// Dimensions that may lie along the columns: the row's value is broadcast along them.
  [[nodiscard]] std::uint32_t across_columns(std::size_t stationary) const;
  /// Dimensions that may lie along the rows: summed down the column, or for stationary outputs broadcast along it.
  [[nodiscard]] std::uint32_t down_rows(std::size_t stationary) const;
};

/// Operands are [weights or stationary activations, inputs, outputs] (lower/matrix.h).
[[nodiscard]] DimRoles find_roles(const lower::Einsum& einsum);

/// Operand index of "weights", "inputs" or "outputs".
[[nodiscard]] std::size_t operand_index(const std::string& name);

/// Bits of `words` elements, side data included.
[[nodiscard]] std::int64_t operand_bits(const lower::Operand& operand, std::int64_t words);

/// Words of the outputs, each once.
[[nodiscard]] std::int64_t output_words(const lower::Einsum& einsum, const DimRoles& roles);

}  // namespace plumbline::schedule
