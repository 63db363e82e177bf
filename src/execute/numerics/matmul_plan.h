#pragma once
// What matmul.cc, matmul_tile.cc and matmul_reference.cc share: packed operands and the choice of kernel.
#include <cstdint>
#include <vector>

#include "execute/numerics/matmul.h"
#include "execute/numerics/matmul_kernels.h"
#include "execute/numerics/tensor_core_kernel.h"

namespace plumbline::numerics {

/// What one pass over an operand finds.
struct OperandScan {
  bool has_special = false;  ///< NaN or infinity
  int max_exponent = -200;   ///< of the finite nonzero values; all zero: below any
  int min_last_bit = 200;    ///< exponent of the last significant bit of the smallest value; all zero: above any
};
/// Errors: `bad-value` for a value that is none of the format's; `name` and `columns` place it in the message.
[[nodiscard]] Result<OperandScan> scan_operand(std::span<const float> values, const Format& format,
                                               std::string_view name, std::int64_t columns, unsigned threads);

/// A register's rounding in the kernels' terms.
[[nodiscard]] RoundingGrid make_grid(const Register& reg);

/// Kernels of the innermost accumulation.
enum class InnerKernel : std::uint8_t {
  binary32_fused,
  binary32_rounded,
  binary16_rounded,
  bfloat16_rounded,
  wide,
  pairwise,
  tensor_core
};
/// The fastest kernel that is exact for these operands.
[[nodiscard]] InnerKernel choose_kernel(const Accumulation& accumulation, const MatmulOperands& operands,
                                        const OperandScan& a, const OperandScan& b);
[[nodiscard]] std::string_view to_string(InnerKernel kernel);

/// Whether a fused binary64 sum must be rounded to odd before it is rounded to the register. With nearest-even and few
/// bits it need not: a sum inexact in 53 bits then has an addend so far below the accumulator that the result is the
/// accumulator either way, and the other case, an accumulator far below the product, would overflow.
[[nodiscard]] bool needs_odd(const Register& reg, const MatmulOperands& operands);
/// The register of a pairwise reduction, where sums in binary32 lanes are exact for it.
[[nodiscard]] NarrowRegister narrow_register(const Accumulation& accumulation, const MatmulOperands& operands,
                                             const OperandScan& a, const OperandScan& b);
/// Nearest-even, no saturation, and this format.
[[nodiscard]] bool is_plain(const Register& reg, std::string_view format);

/// Names of the random streams, and the steps of joins within them: leaves use 2k and 2k+1 (matmul_kernels.h).
[[nodiscard]] StochasticKey random_key(const Accumulation& accumulation);
[[nodiscard]] constexpr std::uint64_t join_step(std::size_t level, std::int64_t position) {
  return (static_cast<std::uint64_t>(level) << 48U) + 2 * static_cast<std::uint64_t>(position) + 1;
}

/// Everything the tiles share.
struct MatmulPlan {
  const MatmulOperands& operands;
  const Accumulation& accumulation;
  InnerKernel kernel;
  ObservedSteps observed;           ///< meaningful when observe
  std::int64_t observed_joins = 1;  ///< of the pieces joined, those whose number this divides
  bool observe = false;
  NarrowRegister counted = NarrowRegister::none;  ///< register whose kernel can count every step
  bool sums_apart = false;   ///< every sum is counted by tile_binary16_sums(), the products once for the whole matrix
  bool products_end = true;  ///< meaningful when sums_apart: some product may be infinite
  std::vector<std::vector<std::int64_t>> a_specials;  ///< by row panel: the k of special values; empty: none at all
  std::vector<std::vector<std::int64_t>> b_specials;  ///< by column panel
  WideStep inner;                                     ///< the accumulator, for the wide kernels
  NarrowRegister leaves = NarrowRegister::none;       ///< of a pairwise reduction
  std::vector<WideStep> joins;                        ///< one per blocking
  std::vector<NarrowRegister> narrow_joins;           ///< binary32 joins, whose addends are always binary32 values
  CoreParameters core;
  Buffer<float> a_panels;  ///< [row panel][k][kPanelRows]
  Buffer<float> b_panels;  ///< [column panel][k][kPanelColumns]
  Buffer<std::int32_t> a_exponents;
  Buffer<std::int16_t> b_exponents;
  Buffer<std::int16_t> a_nonzero;  ///< [row panel][k]: nonzero values of the panel; observed tensor cores only
  Buffer<std::int16_t> b_nonzero;  ///< [column panel][k]
  Buffer<std::int8_t> a_last;      ///< see Panels; observed tensor cores with narrow operands only
  Buffer<std::int8_t> b_last;
  std::vector<char> row_special;  ///< whether a row of a, a column of b holds a special value; empty: none does
  std::vector<char> column_special;
};

/// Results computed together by one thread, at most 8 x 16 tiles of 1.5 KiB, so that packed operands are read from the
/// nearest caches.
struct BlockShape {
  std::int64_t rows = 8 * kPanelRows;
  std::int64_t columns = 16 * kPanelColumns;
};

/// The results at rows [row, row + shape.rows) and columns [column, column + shape.columns): computes them into
/// `values` (row-major, the whole product), counts them, and adds their tallies (registers.size() = 1 + blockings) when
/// the plan observes.
void run_matmul_block(const MatmulPlan& plan, const BlockShape& shape, std::int64_t row, std::int64_t column,
                      Buffer<float>& values, ResultCounters& counters, std::vector<RegisterTally>* registers);

/// Empty tallies with their names.
[[nodiscard]] std::vector<RegisterTally> make_registers(const Accumulation& accumulation);
void add_tallies(std::vector<RegisterTally>& to, const std::vector<RegisterTally>& from);

}  // namespace plumbline::numerics
