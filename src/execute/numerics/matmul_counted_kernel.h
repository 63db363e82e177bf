#pragma once
// Sums of a sequential binary16 reduction, every one counted while it is computed. What depends on the products alone
// is counted by matmul_products.h, once for the whole matrix.
#include <cstdint>

#include "execute/numerics/matmul_kernels.h"

namespace plumbline::numerics {

/// Sums of a tile whose products and results are all finite. With P the products whose rounded value is not zero and N
/// all of them: absorbed = P - (N - unchanged), inexact = P - changed_exactly. Both hold of any set of steps together.
struct SumTally {
  std::int64_t unchanged = 0;        ///< sums equal to the accumulator, as values
  std::int64_t changed_exactly = 0;  ///< exact sums of a nonzero product
  std::int64_t swamped = 0;
  bool began_special = false;   ///< some lane was infinite or NaN from the beginning
  bool became_special = false;  ///< some lane is so at the end and was not, or the other way round
};

/// Whether this machine counts for less than the sums themselves cost. Elsewhere tile_binary16_sums() must not be
/// called.
[[nodiscard]] bool counts_binary16_sums();

/// tile_binary16_rounded() of at most 2^20 steps, counted. Lanes that begin infinite or NaN count as unchanged in every
/// step of finite products. Where a lane became so, nothing counted may be used. Slow where accumulators stay zero.
void tile_binary16_sums(const Panels& panels, std::int64_t first, std::int64_t last, float* tile, SumTally& tally);

/// Products of finite operands whose binary16 value is not zero, in the lanes of the tile where `lanes` has all bits
/// set (elsewhere none); null: in all lanes. At most 2^20 steps.
[[nodiscard]] std::int64_t count_binary16_products(const Panels& panels, std::int64_t first, std::int64_t last,
                                                   const std::int32_t* lanes);

}  // namespace plumbline::numerics
