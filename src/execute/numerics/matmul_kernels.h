#pragma once
// The boundary between the matmul driver and its SIMD kernels: packed panels and plain numbers only.
#include <cstdint>

#include "execute/numerics/format.h"

namespace plumbline::numerics {

/// A tile of results is kPanelRows x kPanelColumns on every instruction set, so panels are packed once for all of them.
inline constexpr int kPanelRows = 12;     ///< divisible by every kernel's row group
inline constexpr int kPanelColumns = 32;  ///< two AVX-512 vectors of binary32, one of 16-bit integers

/// Operands of one tile, packed by k: a[k][row], b[k][column]. Rows and columns beyond the matrix hold zeros.
struct Panels {
  const float* a = nullptr;
  const float* b = nullptr;
  const std::int32_t* a_exponents = nullptr;  ///< [k][row], the 16-bit exponent twice; tensor cores only
  const std::int16_t* b_exponents = nullptr;  ///< [k][column]; tensor cores only
};

/// Exponents of packed operands: what the hardware compares, or a mark. The marks survive saturated 16-bit addition: a
/// sum with a special lies far above every finite sum, even with a zero, and a sum with a zero far below.
inline constexpr std::int16_t kZeroExponent = -4096;
inline constexpr std::int16_t kSpecialExponent = 12000;

/// A register's rounding in the kernels' terms.
struct RoundingGrid {
  int precision = 24;           ///< significant bits
  int min_exponent = -126;      ///< of the smallest normal
  double max = 0;               ///< largest finite value
  double overflow[2] = {0, 0};  ///< magnitude that finite results beyond max become, by sign
  double infinity = 0;          ///< magnitude that infinite results become
  bool negative_zero = true;
  Rounding rounding = Rounding::rne;
};

/// What the accumulations of a tile did, when observed. Steps of padded rows and columns are counted too where a field
/// says so; the driver takes them off.
struct StepTally {
  std::uint64_t sums_inexact = 0;      ///< sums that were not values of the accumulator
  std::uint64_t sums_unchanged = 0;    ///< sums equal to the accumulator before: padded and zero products included
  std::uint64_t products_zero = 0;     ///< products that are zero after rounding: padded and zero operands included
  std::uint64_t products_inexact = 0;  ///< products that were not values of the accumulator
  std::uint64_t sums_beyond = 0;       ///< finite sums that left the accumulator's range
};

// Every tile_* adds the products of k in [first, last) to tile[kPanelRows][kPanelColumns], in ascending k.

/// Binary32 accumulator, nearest-even: fused c <- rnd(c + ab), or c <- rnd(c + rnd(ab)).
void tile_binary32_fused(const Panels& panels, std::int64_t first, std::int64_t last, float* tile);
void tile_binary32_rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile);

/// Binary16 and bfloat16 accumulators, nearest-even, no saturation, products rounded. Exact only when every product is
/// a binary32 value; the sum of two values of at most 11 bits may be rounded to 24 bits first (24 >= 2*11 + 2).
void tile_binary16_rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile, StepTally* tally);
void tile_bfloat16_rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile, StepTally* tally);

}  // namespace plumbline::numerics
