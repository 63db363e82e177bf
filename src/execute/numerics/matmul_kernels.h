#pragma once
// The boundary between the matmul driver and its SIMD kernels: packed panels and plain numbers only.
#include <array>
#include <cstdint>

#include "execute/numerics/format.h"
#include "execute/numerics/stochastic.h"

namespace plumbline::numerics {

/// A tile of results is kPanelRows x kPanelColumns on every instruction set, so panels are packed once for all of them.
inline constexpr int kPanelRows = 12;     ///< divisible by every kernel's row group
inline constexpr int kPanelColumns = 32;  ///< two AVX-512 vectors of binary32, one of 16-bit integers
inline constexpr int kTileElements = kPanelRows * kPanelColumns;

/// Operands of one tile, packed by k: a[k][row], b[k][column]. Rows and columns beyond the matrix hold zeros.
struct Panels {
  const float* a = nullptr;
  const float* b = nullptr;
  const std::int32_t* a_exponents = nullptr;  ///< [k][row], the 16-bit exponent twice; tensor cores only
  const std::int16_t* b_exponents = nullptr;  ///< [k][column]; tensor cores only
  const std::int8_t* a_last = nullptr;        ///< [k][row]: exponent of the last bit, see kZeroLastBit; null: too wide
  const std::int8_t* b_last = nullptr;        ///< [k][column], each twice: two rows are counted in turn
  int rows = kPanelRows;                      ///< of the matrix, the rest is padding
  int columns = kPanelColumns;
};

/// Exponents of packed operands: what the hardware compares, or a mark. The marks survive saturated 16-bit addition: a
/// sum with a special lies far above every finite sum, even with a zero, and a sum with a zero far below.
inline constexpr std::int16_t kZeroExponent = -4096;
inline constexpr std::int16_t kSpecialExponent = 12000;

/// Exponents of the last bits of operands as bytes, where those of all products lie in [kLeastLastBit, 0]; zeros hold a
/// mark that no grid below kCalmExponent reaches, even with the least of the others added.
inline constexpr std::int8_t kZeroLastBit = 127;
inline constexpr int kLeastLastBit = -60;

/// A register's rounding in the kernels' terms.
struct RoundingGrid {
  int precision = 24;           ///< significant bits of normal values
  int min_exponent = -126;      ///< of the smallest normal
  double max = 0;               ///< largest finite value
  double overflow[2] = {0, 0};  ///< magnitude that finite results beyond max become, by sign
  double infinity = 0;          ///< magnitude that infinite results become
  bool negative_zero = true;
  Rounding rounding = Rounding::rne;
  int random_bits = 0;  ///< of stochastic rounding, 1 to 28
};

/// Random bits of a tile's roundings: a function of the result's index in the whole matrix and of the step.
struct TileRandom {
  StochasticKey key;
  std::uint64_t first_element = 0;  ///< index of the tile's first result
  std::uint64_t row_stride = 0;     ///< results per row of the whole matrix
};

/// What observed accumulations of a tile did. Padded rows and columns add only zeros (or NaN, next to a special value)
/// and count nowhere.
struct StepTally {
  std::uint64_t sums_inexact = 0;  ///< finite sums that the accumulator cannot hold exactly
  std::uint64_t absorbed = 0;      ///< nonzero addends that left a finite accumulator as it was
  std::uint64_t swamped = 0;       ///< nonzero accumulators of which nothing remained: the result is the addend
  std::uint64_t sums_beyond = 0;   ///< finite sums beyond the accumulator's largest value after rounding
  std::uint64_t products_inexact =
      0;  ///< products that were not values of the accumulator (where products are rounded)
  std::uint64_t products_to_zero = 0;          ///< nonzero products rounded to zero
  std::array<std::uint64_t, 256> exponents{};  ///< accumulators by binary32 exponent field
};

/// Which accumulations are observed: positions of k that `every` divides; their exponents where `histogram_every` does.
struct ObservedSteps {
  std::int64_t every = 1;
  std::int64_t histogram_every = 1;
};

// Every tile_* adds the products of k in [first, last) to tile[kPanelRows][kPanelColumns], in ascending k.

/// Binary32 accumulator, nearest-even: fused c <- rnd(c + ab), or c <- rnd(c + rnd(ab)).
void tile_binary32_fused(const Panels& panels, std::int64_t first, std::int64_t last, float* tile);
void tile_binary32_rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile);

/// Binary16 and bfloat16 accumulators, nearest-even, no saturation, products rounded. Exact only when every product is
/// a binary32 value; the sum of two values of at most 11 bits may be rounded to 24 bits first (24 >= 2*11 + 2).
void tile_binary16_rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile);
void tile_bfloat16_rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile);

/// Registers that sum in binary32 lanes, nearest-even without saturation.
enum class NarrowRegister : std::uint8_t { none, binary32, binary16, bfloat16 };
/// The same as tile_binary16_rounded or tile_bfloat16_rounded, every step counted: at most 2^22 of them.
void tile_rounded_counted(const Panels& panels, NarrowRegister reg, std::int64_t first, std::int64_t last, float* tile,
                          StepTally& tally);
/// tile <- rnd(a b) of one k; tile <- rnd(tile + addend). For the narrow registers addends are values of the register.
void tile_products_narrow(const Panels& panels, NarrowRegister reg, std::int64_t k, float* tile);
void tile_add_narrow(NarrowRegister reg, const float* addend, float* tile);

/// Any accumulator and rounding, in binary64 lanes. `random` is read by stochastic rounding only; the rounding of a
/// product is step 2k, that of a sum 2k+1. With `tally` every step is counted, exponents where histogram_every divides
/// k.
struct WideStep {
  RoundingGrid grid;
  bool fused = true;
  bool to_odd = true;  ///< unset where sums need no rounding to odd; see needs_odd()
  TileRandom random;
};
void tile_wide(const Panels& panels, const WideStep& step, std::int64_t first, std::int64_t last, float* tile,
               StepTally* tally, std::int64_t histogram_every);

/// tile <- rnd(a b) of one k.
void tile_products(const Panels& panels, const WideStep& step, std::int64_t k, float* tile, StepTally* tally);

/// tile <- rnd(tile + addend); `step_index` names the random bits.
void tile_add(const WideStep& step, std::uint64_t step_index, const float* addend, float* tile, StepTally* tally);

}  // namespace plumbline::numerics
