// Sequential accumulation in binary32 lanes: one lane per result, k ascending, so no result depends on the vector
// width.
#include "execute/numerics/matmul_kernels.h"

// The targets are chosen before Highway is seen.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execute/numerics/matmul_rounded_kernel.cc"
#include "execute/numerics/matmul_targets.h"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "execute/numerics/matmul_vector-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace plumbline::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
constexpr int kColumnVectors = 1;
#else
constexpr int kColumnVectors = 2;
#endif

// Rows together, where a step is one or two instructions: as many as 32 or 16 registers hold.
constexpr int kWideRows = HWY_TARGET == HWY_AVX3 ? kPanelRows : kPanelRows / 2;

/// c <- rnd24(c + ab).
struct Binary32Fused {
  static constexpr int kRows = kWideRows;
  template <class D, class V>
  HWY_INLINE V Step(D d, V a, V b, V c) const {
    return fused_multiply_add(d, a, b, c);
  }
};

/// c <- rnd24(c + rnd24(ab)).
struct Binary32Rounded {
  static constexpr int kRows = kWideRows;
  template <class D, class V>
  HWY_INLINE V Step(D, V a, V b, V c) const {
    return hn::Add(c, hn::Mul(a, b));
  }
};

/// Rounds binary32 lanes to binary16, nearest-even, overflow to infinity.
struct ToBinary16 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return round_to_binary16(d, x);
  }
};

/// Rounds binary32 lanes to bfloat16, nearest-even. A carry out of the largest finite value makes infinity by itself;
/// NaN stays NaN because every NaN here is quiet with a small payload.
struct ToBfloat16 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
    const auto moved = hn::Add(hn::Add(bits, hn::Set(du, 0x7FFFU)), odd);
    return hn::BitCast(d, hn::And(moved, hn::Set(du, 0xFFFF0000U)));
  }
};

/// c <- rnd(c + rnd(ab)) with the products exact in binary32.
template <class Round>
struct NarrowRounded {
  static constexpr int kRows = kPanelRows / 3;
  template <class D, class V>
  HWY_INLINE V Step(D d, V a, V b, V c) const {
    const Round round;
    return round(d, hn::Add(c, round(d, hn::Mul(a, b))));
  }
};

/// All of a tile for one step rule: groups of rows and columns that fit the registers, k innermost.
template <class Rule>
HWY_INLINE void run_tile(const Panels& panels, std::int64_t first, std::int64_t last, float* HWY_RESTRICT tile) {
  const hn::ScalableTag<float> d;
  constexpr int kRows = Rule::kRows;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const Rule rule;
  for (int column = 0; column < kPanelColumns; column += kColumnVectors * lanes) {
    for (int row = 0; row < kPanelRows; row += kRows) {
      hn::Vec<decltype(d)> c[kRows][kColumnVectors];
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kColumnVectors; ++v) {
          c[r][v] = hn::LoadU(d, tile + (row + r) * kPanelColumns + column + v * lanes);
        }
      }
      const float* HWY_RESTRICT a = panels.a + first * kPanelRows + row;
      const float* HWY_RESTRICT b = panels.b + first * kPanelColumns + column;
      for (std::int64_t k = first; k < last; ++k, a += kPanelRows, b += kPanelColumns) {
        hn::Vec<decltype(d)> bv[kColumnVectors];
        for (int v = 0; v < kColumnVectors; ++v) bv[v] = hn::LoadU(d, b + v * lanes);
        for (int r = 0; r < kRows; ++r) {
          const auto av = hn::Set(d, a[r]);
          for (int v = 0; v < kColumnVectors; ++v) c[r][v] = rule.Step(d, av, bv[v], c[r][v]);
        }
      }
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kColumnVectors; ++v) {
          hn::StoreU(c[r][v], d, tile + (row + r) * kPanelColumns + column + v * lanes);
        }
      }
    }
  }
}

void TileBinary32Fused(const Panels& panels, std::int64_t first, std::int64_t last, float* tile) {
  run_tile<Binary32Fused>(panels, first, last, tile);
}
void TileBinary32Rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile) {
  run_tile<Binary32Rounded>(panels, first, last, tile);
}
void TileBinary16Rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile) {
  run_tile<NarrowRounded<ToBinary16>>(panels, first, last, tile);
}
void TileBfloat16Rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile) {
  run_tile<NarrowRounded<ToBfloat16>>(panels, first, last, tile);
}

/// Counts by 32-bit lane of the fields of StepTally.
struct StepCounts {
  using VI = hn::Vec<hn::ScalableTag<std::int32_t>>;
  HWY_INLINE StepCounts()
      : sums_inexact(hn::Zero(hn::ScalableTag<std::int32_t>())),
        absorbed(sums_inexact),
        swamped(sums_inexact),
        sums_beyond(sums_inexact),
        products_inexact(sums_inexact),
        products_to_zero(sums_inexact) {}
  VI sums_inexact;
  VI absorbed;
  VI swamped;
  VI sums_beyond;
  VI products_inexact;
  VI products_to_zero;
};

template <class D, class V>
HWY_INLINE auto is_finite(D d, V x) {
  return hn::Lt(hn::Abs(x), hn::Set(d, std::numeric_limits<float>::infinity()));
}

/// One counted step of c <- rnd(c + rnd(ab)), the product exact in binary32. That rounding a sum changes nothing proves
/// it exact only where the sum left bits of both parts: one inexact in 24 bits has a part so small that the result is
/// the other.
template <class Round, class D, class V>
HWY_INLINE V counted_step(D d, V a, V b, V c, StepCounts& counts) {
  const hn::RebindToSigned<D> di;
  const Round round;
  const V zero = hn::Zero(d);
  const V exact = hn::Mul(a, b);
  const V product = round(d, exact);
  const V sum = hn::Add(c, product);
  const V result = round(d, sum);
  const auto bump = [&](auto& lanes, auto mask) { lanes = count(di, lanes, hn::RebindMask(di, mask)); };
  const auto finite = hn::And(is_finite(d, a), is_finite(d, b));
  const auto finite_product = is_finite(d, product);
  bump(counts.products_inexact, hn::And(finite, hn::Or(hn::Ne(product, exact), hn::Not(finite_product))));
  bump(counts.products_to_zero, hn::And(hn::Eq(product, zero), hn::And(hn::Ne(a, zero), hn::Ne(b, zero))));
  const auto finite_c = is_finite(d, c);
  const auto finite_sum = hn::And(finite_c, finite_product);
  const auto absorbed = hn::And(finite_c, hn::And(hn::Eq(result, c), hn::Ne(product, zero)));
  const auto swamped = hn::And(hn::Eq(result, product), hn::Ne(c, zero));
  const auto beyond = hn::And(finite_sum, hn::Not(is_finite(d, result)));
  bump(counts.absorbed, absorbed);
  bump(counts.swamped, swamped);
  bump(counts.sums_beyond, beyond);
  bump(counts.sums_inexact,
       hn::And(finite_sum, hn::Or(hn::Or(hn::Ne(result, sum), beyond), hn::Or(absorbed, swamped))));
  return result;
}

template <class Round>
void run_counted(const Panels& panels, std::int64_t first, std::int64_t last, float* HWY_RESTRICT tile,
                 StepTally& tally) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr int kRows = kPanelRows / 3;
  const int lanes = static_cast<int>(hn::Lanes(d));
  StepCounts counts;
  for (int column = 0; column < kPanelColumns; column += lanes) {
    for (int row = 0; row < kPanelRows; row += kRows) {
      hn::Vec<decltype(d)> c[kRows];
      for (int r = 0; r < kRows; ++r) c[r] = hn::LoadU(d, tile + (row + r) * kPanelColumns + column);
      for (std::int64_t k = first; k < last; ++k) {
        const auto b = hn::LoadU(d, panels.b + k * kPanelColumns + column);
        for (int r = 0; r < kRows; ++r) {
          c[r] = counted_step<Round>(d, hn::Set(d, panels.a[k * kPanelRows + row + r]), b, c[r], counts);
        }
      }
      for (int r = 0; r < kRows; ++r) hn::StoreU(c[r], d, tile + (row + r) * kPanelColumns + column);
    }
  }
  tally.sums_inexact += sum_lanes(di, counts.sums_inexact);
  tally.absorbed += sum_lanes(di, counts.absorbed);
  tally.swamped += sum_lanes(di, counts.swamped);
  tally.sums_beyond += sum_lanes(di, counts.sums_beyond);
  tally.products_inexact += sum_lanes(di, counts.products_inexact);
  tally.products_to_zero += sum_lanes(di, counts.products_to_zero);
}

void TileRoundedCounted(const Panels& panels, NarrowRegister reg, std::int64_t first, std::int64_t last, float* tile,
                        StepTally* tally) {
  if (reg == NarrowRegister::binary16) return run_counted<ToBinary16>(panels, first, last, tile, *tally);
  run_counted<ToBfloat16>(panels, first, last, tile, *tally);
}

struct ToBinary32 {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return x;
  }
};

template <class Round>
HWY_INLINE void products(const Panels& panels, std::int64_t k, float* HWY_RESTRICT tile) {
  const hn::ScalableTag<float> d;
  const Round round;
  const float* const b = panels.b + k * kPanelColumns;
  for (int r = 0; r < kPanelRows; ++r) {
    const auto a = hn::Set(d, panels.a[k * kPanelRows + r]);
    for (std::size_t i = 0; i < kPanelColumns; i += hn::Lanes(d)) {
      hn::StoreU(round(d, hn::Mul(a, hn::LoadU(d, b + i))), d, tile + r * kPanelColumns + i);
    }
  }
}

template <class Round>
HWY_INLINE void add(const float* HWY_RESTRICT addend, float* HWY_RESTRICT tile) {
  const hn::ScalableTag<float> d;
  const Round round;
  for (std::size_t i = 0; i < kTileElements; i += hn::Lanes(d)) {
    hn::StoreU(round(d, hn::Add(hn::LoadU(d, tile + i), hn::LoadU(d, addend + i))), d, tile + i);
  }
}

void TileProductsNarrow(const Panels& panels, NarrowRegister reg, std::int64_t k, float* tile) {
  if (reg == NarrowRegister::binary32) return products<ToBinary32>(panels, k, tile);
  if (reg == NarrowRegister::binary16) return products<ToBinary16>(panels, k, tile);
  products<ToBfloat16>(panels, k, tile);
}
void TileAddNarrow(NarrowRegister reg, const float* addend, float* tile) {
  if (reg == NarrowRegister::binary32) return add<ToBinary32>(addend, tile);
  if (reg == NarrowRegister::binary16) return add<ToBinary16>(addend, tile);
  add<ToBfloat16>(addend, tile);
}

}  // namespace HWY_NAMESPACE
}  // namespace plumbline::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/check.h"

namespace plumbline::numerics {

HWY_EXPORT(TileBinary32Fused);
HWY_EXPORT(TileBinary32Rounded);
HWY_EXPORT(TileBinary16Rounded);
HWY_EXPORT(TileBfloat16Rounded);
HWY_EXPORT(TileRoundedCounted);
HWY_EXPORT(TileProductsNarrow);
HWY_EXPORT(TileAddNarrow);

void tile_rounded_counted(const Panels& panels, NarrowRegister reg, std::int64_t first, std::int64_t last, float* tile,
                          StepTally& tally) {
  PL_CHECK(reg == NarrowRegister::binary16 || reg == NarrowRegister::bfloat16);
  HWY_DYNAMIC_DISPATCH(TileRoundedCounted)(panels, reg, first, last, tile, &tally);
}

void tile_products_narrow(const Panels& panels, NarrowRegister reg, std::int64_t k, float* tile) {
  PL_CHECK(reg != NarrowRegister::none);
  HWY_DYNAMIC_DISPATCH(TileProductsNarrow)(panels, reg, k, tile);
}
void tile_add_narrow(NarrowRegister reg, const float* addend, float* tile) {
  PL_CHECK(reg != NarrowRegister::none);
  HWY_DYNAMIC_DISPATCH(TileAddNarrow)(reg, addend, tile);
}

void tile_binary32_fused(const Panels& panels, std::int64_t first, std::int64_t last, float* tile) {
  HWY_DYNAMIC_DISPATCH(TileBinary32Fused)(panels, first, last, tile);
}
void tile_binary32_rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile) {
  HWY_DYNAMIC_DISPATCH(TileBinary32Rounded)(panels, first, last, tile);
}
void tile_binary16_rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile) {
  HWY_DYNAMIC_DISPATCH(TileBinary16Rounded)(panels, first, last, tile);
}
void tile_bfloat16_rounded(const Panels& panels, std::int64_t first, std::int64_t last, float* tile) {
  HWY_DYNAMIC_DISPATCH(TileBfloat16Rounded)(panels, first, last, tile);
}

}  // namespace plumbline::numerics
#endif
