// Accumulation in binary64 lanes: any format up to binary32, any rounding mode, every step exact.
//
// Why it is exact. A product of two binary32 values has at most 48 bits and an exponent of at least -298, so binary64
// holds it. The sum of a product and an accumulator may need more than 53 bits; 2Sum gives its error, and rounding to
// odd (truncate, then set the last bit if anything was lost) leaves 53 bits that every later rounding to at most 51
// bits sees as the exact sum (Boldo and Melquiond 2008).
#include "execute/numerics/matmul_kernels.h"

// The targets are chosen before Highway is seen.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execute/numerics/matmul_wide_kernel.cc"
#include "execute/numerics/matmul_targets.h"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "execute/numerics/matmul_vector-inl.h"
// clang-format on

#ifndef PLUMBLINE_MATMUL_RANDOM_ROW
#define PLUMBLINE_MATMUL_RANDOM_ROW
namespace plumbline::numerics {
/// Random values of one row of a tile at one step, as doubles below 2^bits.
inline void random_row(const TileRandom& random, int bits, std::uint64_t step, int row, double* values) {
  StochasticKey key = random.key;
  key.step = step;
  const std::uint64_t first = random.first_element + static_cast<std::uint64_t>(row) * random.row_stride;
  BlockKey keys = block_key(key, first >> kKeyBlockBits);
  for (int i = 0; i < kPanelColumns; ++i) {
    const std::uint64_t element = first + static_cast<std::uint64_t>(i);
    const auto offset = static_cast<std::uint32_t>(element & ((1U << kKeyBlockBits) - 1));
    if (offset == 0) keys = block_key(key, element >> kKeyBlockBits);
    values[i] = static_cast<double>(static_cast<std::int32_t>(hash_element(keys, offset) >> (32 - bits)));
  }
}
}  // namespace plumbline::numerics
#endif

HWY_BEFORE_NAMESPACE();
namespace plumbline::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<double> d;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

/// Modes that share code: nearest-even; the directed ones and ties-away, which correct it; stochastic.
enum class Mode { nearest, corrected, stochastic };

struct Rounder {
  V least;  // 2^min_exponent
  V lift;   // 1.5 * 2^(53 - precision): see round_to_grid
  V ulp;    // 2^(1 - precision), times the power of two of a value
  V max;
  V infinity_becomes;
  V over_positive;
  V over_negative;
  Rounding rounding;
  double random_scale;  // 2^random_bits
  bool negative_zero;

  explicit Rounder(const RoundingGrid& grid)
      : least(hn::Set(d, std::ldexp(1.0, grid.min_exponent))),
        lift(hn::Set(d, std::ldexp(1.5, 53 - grid.precision))),
        ulp(hn::Set(d, std::ldexp(1.0, 1 - grid.precision))),
        max(hn::Set(d, grid.max)),
        infinity_becomes(hn::Set(d, grid.infinity)),
        over_positive(hn::Set(d, grid.overflow[0])),
        over_negative(hn::Set(d, grid.overflow[1])),
        rounding(grid.rounding),
        random_scale(std::ldexp(1.0, grid.random_bits)),
        negative_zero(grid.negative_zero) {}
};

HWY_INLINE M not_equal(V a, V b) { return hn::Or(hn::Lt(a, b), hn::Gt(a, b)); }  // false for NaN

HWY_INLINE M is_finite(V x) { return hn::Lt(hn::Abs(x), hn::Set(d, std::numeric_limits<double>::infinity())); }

/// What lies beyond the largest value, or was not finite, replaced; the rest of r stays.
HWY_NOINLINE V replace_beyond(const Rounder& g, V x, V r, M& beyond) {
  const M infinite = hn::Eq(hn::Abs(x), hn::Set(d, std::numeric_limits<double>::infinity()));
  r = hn::IfThenElse(infinite, x, r);
  const M outside = hn::Gt(hn::Abs(r), g.max);
  const V limit = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), g.over_negative, g.over_positive);
  r = hn::IfThenElse(outside, hn::CopySign(hn::IfThenElse(infinite, g.infinity_becomes, limit), x), r);
  beyond = hn::AndNot(infinite, outside);
  return r;
}

/// Rounds x, rounded to odd beforehand where it was inexact. `draw` holds random values below 2^random_bits.
template <Mode kMode>
HWY_INLINE V round_wide(const Rounder& g, V x, V draw, M& beyond) {
  const hn::RebindToUnsigned<D> du;
  const V power = hn::BitCast(d, hn::And(hn::BitCast(du, x), hn::Set(du, 0x7FF0000000000000ULL)));
  const V binade = hn::Max(power, g.least);
  const V magic = hn::Mul(binade, g.lift);
  V r = hn::Sub(hn::Add(x, magic), magic);  // NaN for infinities, mended below
  if constexpr (kMode != Mode::nearest) {
    const V unit = hn::Mul(binade, g.ulp);
    const V outward = hn::CopySign(unit, x);
    if (kMode == Mode::stochastic || g.rounding == Rounding::rtz) {
      r = hn::IfThenElse(hn::Gt(hn::Abs(r), hn::Abs(x)), hn::Sub(r, outward), r);
    } else if (g.rounding == Rounding::ru) {
      r = hn::IfThenElse(hn::Lt(r, x), hn::Add(r, unit), r);
    } else if (g.rounding == Rounding::rd) {
      r = hn::IfThenElse(hn::Gt(r, x), hn::Sub(r, unit), r);
    } else {  // rna: the ties that went toward zero
      const V rest = hn::Sub(x, r);
      r = hn::IfThenElse(hn::Eq(rest, hn::Mul(outward, hn::Set(d, 0.5))), hn::Add(r, outward), r);
    }
    if constexpr (kMode == Mode::stochastic) {
      // Away if and only if discarded fraction * 2^bits >= 2^bits - draw; both sides are exact.
      const V scale = hn::Set(d, g.random_scale);
      const V discarded = hn::Mul(hn::Abs(hn::Sub(x, r)), scale);
      r = hn::IfThenElse(hn::Ge(discarded, hn::Mul(hn::Sub(scale, draw), unit)), hn::Add(r, outward), r);
    }
  }
  r = hn::CopySign(r, x);
  if (!g.negative_zero) r = hn::Add(r, hn::Zero(d));
  const M inside = hn::Le(hn::Abs(r), g.max);
  if (HWY_LIKELY(hn::AllTrue(d, inside))) {
    beyond = hn::MaskFromVec(hn::Zero(d));
    return r;
  }
  return replace_beyond(g, x, r, beyond);
}

/// a + b rounded to odd; `inexact` says whether the sum lost bits. Infinities and NaN come out as IEEE addition makes
/// them.
HWY_INLINE V add_to_odd(V a, V b, M& inexact) {
  const V sum = hn::Add(a, b);
  const V seen = hn::Sub(sum, a);
  const V error = hn::Add(hn::Sub(a, hn::Sub(sum, seen)), hn::Sub(b, seen));
  inexact = hn::Gt(hn::Abs(error), hn::Zero(d));  // false for NaN
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, sum);
  const auto inward = hn::ShiftRight<63>(hn::Xor(bits, hn::BitCast(du, error)));  // 1: |sum| is too large
  const auto odd = hn::Or(hn::Sub(bits, inward), hn::Set(du, std::uint64_t{1}));
  return hn::IfThenElse(inexact, hn::BitCast(d, odd), sum);
}

/// Per-lane counts as doubles: exact below 2^53.
struct Counts {
  V sums_inexact;
  V absorbed;
  V swamped;
  V sums_beyond;
  V products_inexact;
  V products_to_zero;
};
HWY_INLINE Counts no_counts() {
  const V zero = hn::Zero(d);
  return {zero, zero, zero, zero, zero, zero};
}
HWY_INLINE V bump(V counts, M mask) { return hn::Add(counts, hn::IfThenElseZero(mask, hn::Set(d, 1.0))); }

std::uint64_t total(V counts) {
  double lane[HWY_MAX_BYTES / sizeof(double)];
  hn::StoreU(counts, d, lane);
  double sum = 0;
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) sum += lane[i];
  return static_cast<std::uint64_t>(sum);
}

void add_counts(const Counts& counts, StepTally& tally) {
  tally.sums_inexact += total(counts.sums_inexact);
  tally.absorbed += total(counts.absorbed);
  tally.swamped += total(counts.swamped);
  tally.sums_beyond += total(counts.sums_beyond);
  tally.products_inexact += total(counts.products_inexact);
  tally.products_to_zero += total(counts.products_to_zero);
}

template <Mode kMode, bool kObserve>
HWY_INLINE V rounded_product(const Rounder& g, V exact, V draw, Counts& counts) {
  M beyond;
  const V product = round_wide<kMode>(g, exact, draw, beyond);
  if constexpr (kObserve) {
    const V zero = hn::Zero(d);
    counts.products_inexact =
        bump(counts.products_inexact, hn::And(is_finite(exact), hn::Or(beyond, not_equal(product, exact))));
    counts.products_to_zero = bump(counts.products_to_zero, hn::And(hn::Eq(product, zero), not_equal(exact, zero)));
  }
  return product;
}

template <Mode kMode, bool kOdd, bool kObserve>
HWY_INLINE V rounded_sum(const Rounder& g, V c, V addend, V draw, Counts& counts) {
  M lost;
  V sum;
  if constexpr (kOdd || kObserve) {
    sum = add_to_odd(c, addend, lost);
  } else {
    sum = hn::Add(c, addend);
  }
  M beyond;
  const V result = round_wide<kMode>(g, sum, draw, beyond);
  if constexpr (kObserve) {
    const V zero = hn::Zero(d);
    const M finite = is_finite(c);
    counts.sums_inexact =
        bump(counts.sums_inexact, hn::And(is_finite(sum), hn::Or(hn::Or(lost, beyond), not_equal(result, sum))));
    counts.absorbed = bump(counts.absorbed, hn::And(finite, hn::And(hn::Eq(result, c), not_equal(addend, zero))));
    counts.swamped = bump(counts.swamped, hn::And(hn::Eq(result, addend), not_equal(c, zero)));
    counts.sums_beyond = bump(counts.sums_beyond, beyond);
  }
  return result;
}

HWY_INLINE V load_wide(const float* HWY_RESTRICT from) {
  const hn::Rebind<float, D> narrow;
  return hn::PromoteTo(d, hn::LoadU(narrow, from));
}
HWY_INLINE void store_wide(V value, float* HWY_RESTRICT to) {
#if PLUMBLINE_X86_VECTORS
  const hn::Rebind<float, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, value), narrow, to);
#else
  *to = static_cast<float>(hn::GetLane(value));  // Highway's scalar DemoteTo makes the largest number of infinity
#endif
}

void add_exponents(const Panels& panels, const float* tile, StepTally& tally) {
  for (int r = 0; r < panels.rows; ++r) {
    for (int i = 0; i < panels.columns; ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, tile + r * kPanelColumns + i, sizeof bits);
      ++tally.exponents[(bits >> 23) & 0xFF];
    }
  }
}

// Rows together: enough to hide the latency of a step, few enough for the registers.
constexpr int kRows = HWY_TARGET == HWY_AVX3 ? 6 : 4;

/// Columns [column, column + lanes) of rows [row, row + kRows), k innermost.
template <Mode kMode, bool kFused, bool kOdd, bool kObserve>
HWY_INLINE void run_columns(const Panels& panels, const WideStep& step, const Rounder& g, std::int64_t first,
                            std::int64_t last, int row, int column, float* HWY_RESTRICT tile, Counts& counts) {
  V c[kRows];
  for (int r = 0; r < kRows; ++r) c[r] = load_wide(tile + (row + r) * kPanelColumns + column);
  for (std::int64_t k = first; k < last; ++k) {
    const V b = load_wide(panels.b + k * kPanelColumns + column);
    for (int r = 0; r < kRows; ++r) {
      V draw = hn::Zero(d);
      double draws[kPanelColumns];
      if constexpr (kMode == Mode::stochastic && !kFused) {
        random_row(step.random, step.grid.random_bits, 2 * static_cast<std::uint64_t>(k), row + r, draws);
        draw = hn::LoadU(d, draws + column);
      }
      V product = hn::Mul(hn::Set(d, static_cast<double>(panels.a[k * kPanelRows + row + r])), b);
      if constexpr (!kFused) product = rounded_product<kMode, kObserve>(g, product, draw, counts);
      if constexpr (kMode == Mode::stochastic) {
        random_row(step.random, step.grid.random_bits, 2 * static_cast<std::uint64_t>(k) + 1, row + r, draws);
        draw = hn::LoadU(d, draws + column);
      }
      c[r] = rounded_sum<kMode, kOdd, kObserve>(g, c[r], product, draw, counts);
    }
  }
  for (int r = 0; r < kRows; ++r) store_wide(c[r], tile + (row + r) * kPanelColumns + column);
}

template <Mode kMode, bool kFused, bool kOdd, bool kObserve>
void run_steps(const Panels& panels, const WideStep& step, std::int64_t first, std::int64_t last, float* tile,
               StepTally* tally) {
  const Rounder g(step.grid);
  Counts counts = no_counts();
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int row = 0; row < kPanelRows; row += kRows) {
    for (int column = 0; column < kPanelColumns; column += lanes) {
      run_columns<kMode, kFused, kOdd, kObserve>(panels, step, g, first, last, row, column, tile, counts);
    }
  }
  if constexpr (kObserve) add_counts(counts, *tally);
}

template <Mode kMode>
void run_mode(const Panels& panels, const WideStep& step, std::int64_t first, std::int64_t last, float* tile,
              StepTally* tally) {
  // The sum of two values of at most 24 bits never needs rounding to odd with nearest-even: inexact in 53 bits, it lies
  // within a hair of the larger value, which the register holds.
  constexpr bool kRoundedOdd = kMode != Mode::nearest;
  if (step.fused) {
    if (tally != nullptr) return run_steps<kMode, true, true, true>(panels, step, first, last, tile, tally);
    if (kMode == Mode::nearest && !step.to_odd) {
      return run_steps<kMode, true, kRoundedOdd, false>(panels, step, first, last, tile, tally);
    }
    return run_steps<kMode, true, true, false>(panels, step, first, last, tile, tally);
  }
  if (tally != nullptr) return run_steps<kMode, false, true, true>(panels, step, first, last, tile, tally);
  return run_steps<kMode, false, kRoundedOdd, false>(panels, step, first, last, tile, tally);
}

Mode mode_of(Rounding rounding) {
  if (rounding == Rounding::rne) return Mode::nearest;
  return rounding == Rounding::sr ? Mode::stochastic : Mode::corrected;
}

void run_any_mode(const Panels& panels, const WideStep& step, std::int64_t first, std::int64_t last, float* tile,
                  StepTally* tally) {
  switch (mode_of(step.grid.rounding)) {
    case Mode::nearest:
      return run_mode<Mode::nearest>(panels, step, first, last, tile, tally);
    case Mode::corrected:
      return run_mode<Mode::corrected>(panels, step, first, last, tile, tally);
    case Mode::stochastic:
      return run_mode<Mode::stochastic>(panels, step, first, last, tile, tally);
  }
}

void TileWide(const Panels& panels, const WideStep& step, std::int64_t first, std::int64_t last, float* tile,
              StepTally* tally, std::int64_t histogram_every) {
  if (tally == nullptr) return run_any_mode(panels, step, first, last, tile, nullptr);
  for (std::int64_t k = first; k < last; ++k) {
    run_any_mode(panels, step, k, k + 1, tile, tally);
    if (k % histogram_every == 0) add_exponents(panels, tile, *tally);
  }
}

/// One element-wise rounding over a tile: of the products of k, or of tile + addend.
template <Mode kMode, bool kObserve>
void run_once(const Panels* panels, std::int64_t k, const WideStep& step, std::uint64_t index, const float* addend,
              float* tile, StepTally* tally) {
  const Rounder g(step.grid);
  Counts counts = no_counts();
  for (int row = 0; row < kPanelRows; ++row) {
    double draws[kPanelColumns];
    if constexpr (kMode == Mode::stochastic) random_row(step.random, step.grid.random_bits, index, row, draws);
    for (int column = 0; column < kPanelColumns; column += static_cast<int>(hn::Lanes(d))) {
      float* HWY_RESTRICT to = tile + row * kPanelColumns + column;
      V draw = hn::Zero(d);
      if constexpr (kMode == Mode::stochastic) draw = hn::LoadU(d, draws + column);
      if (panels != nullptr) {
        const V a = hn::Set(d, static_cast<double>(panels->a[k * kPanelRows + row]));
        const V exact = hn::Mul(a, load_wide(panels->b + k * kPanelColumns + column));
        store_wide(rounded_product<kMode, kObserve>(g, exact, draw, counts), to);
      } else {
        const V more = load_wide(addend + row * kPanelColumns + column);
        store_wide(rounded_sum<kMode, true, kObserve>(g, load_wide(to), more, draw, counts), to);
      }
    }
  }
  if constexpr (kObserve) add_counts(counts, *tally);
}

template <bool kObserve>
void run_once_any(const Panels* panels, std::int64_t k, const WideStep& step, std::uint64_t index, const float* addend,
                  float* tile, StepTally* tally) {
  switch (mode_of(step.grid.rounding)) {
    case Mode::nearest:
      return run_once<Mode::nearest, kObserve>(panels, k, step, index, addend, tile, tally);
    case Mode::corrected:
      return run_once<Mode::corrected, kObserve>(panels, k, step, index, addend, tile, tally);
    case Mode::stochastic:
      return run_once<Mode::stochastic, kObserve>(panels, k, step, index, addend, tile, tally);
  }
}

void TileProducts(const Panels& panels, const WideStep& step, std::int64_t k, float* tile, StepTally* tally) {
  const std::uint64_t index = 2 * static_cast<std::uint64_t>(k);
  if (tally != nullptr) return run_once_any<true>(&panels, k, step, index, nullptr, tile, tally);
  run_once_any<false>(&panels, k, step, index, nullptr, tile, tally);
}

void TileAdd(const WideStep& step, std::uint64_t index, const float* addend, float* tile, StepTally* tally) {
  if (tally != nullptr) return run_once_any<true>(nullptr, 0, step, index, addend, tile, tally);
  run_once_any<false>(nullptr, 0, step, index, addend, tile, tally);
}

}  // namespace HWY_NAMESPACE
}  // namespace plumbline::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumbline::numerics {

HWY_EXPORT(TileWide);
HWY_EXPORT(TileProducts);
HWY_EXPORT(TileAdd);

void tile_wide(const Panels& panels, const WideStep& step, std::int64_t first, std::int64_t last, float* tile,
               StepTally* tally, std::int64_t histogram_every) {
  HWY_DYNAMIC_DISPATCH(TileWide)(panels, step, first, last, tile, tally, histogram_every);
}
void tile_products(const Panels& panels, const WideStep& step, std::int64_t k, float* tile, StepTally* tally) {
  HWY_DYNAMIC_DISPATCH(TileProducts)(panels, step, k, tile, tally);
}
void tile_add(const WideStep& step, std::uint64_t step_index, const float* addend, float* tile, StepTally* tally) {
  HWY_DYNAMIC_DISPATCH(TileAdd)(step, step_index, addend, tile, tally);
}

}  // namespace plumbline::numerics
#endif
