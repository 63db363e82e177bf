// The tensor-core block rule, a lane per result. Aligning a term means scaling the product by 2^(F-E), which is exact
// in binary32, and converting it to an integer, which cuts toward zero as the hardware does; the sum is then plain
// integer addition. Blocks with special values, exponents near the ends of binary32 or sums beyond 31 bits go to the
// scalar rule.
#include "execute/numerics/tensor_core_kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

// The targets are chosen before Highway is seen.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execute/numerics/tensor_core_kernel.cc"
#include "execute/numerics/matmul_targets.h"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "execute/numerics/matmul_vector-inl.h"
// clang-format on

#ifndef PLUMBLINE_TENSOR_CORE_SCALAR_LANE
#define PLUMBLINE_TENSOR_CORE_SCALAR_LANE
namespace plumbline::numerics {
/// One result by the scalar rule, from packed panels.
inline float scalar_block(const Panels& panels, const CoreParameters& p, std::int64_t first, std::int64_t last, int row,
                          int column, float c, BlockLoss* loss) {
  std::array<float, 1024> a;  // the largest block check_tensor_core lets through
  std::array<float, 1024> b;
  const auto count = static_cast<std::size_t>(last - first);
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = panels.a[(first + static_cast<std::int64_t>(i)) * kPanelRows + row];
    b[i] = panels.b[(first + static_cast<std::int64_t>(i)) * kPanelColumns + column];
  }
  return block_multiply_add(*p.core, *p.a_format, *p.b_format, {a.data(), count}, {b.data(), count}, c, loss);
}
}  // namespace plumbline::numerics
#endif

HWY_BEFORE_NAMESPACE();
namespace plumbline::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One result by the scalar rule.
HWY_NOINLINE void scalar_lane(const Panels& panels, const CoreParameters& p, std::int64_t first, std::int64_t last,
                              int row, int column, float* tile, BlockTally* tally) {
  float& c = tile[row * kPanelColumns + column];
  if (row >= panels.rows || column >= panels.columns) {  // padding: nobody reads the result
    c = 0;
    return;
  }
  if (std::isnan(c) && tally == nullptr) return;
  BlockLoss loss;
  c = scalar_block(panels, p, first, last, row, column, c, &loss);
  if (tally == nullptr) return;
  tally->terms_cut += static_cast<std::uint64_t>(loss.terms_cut);
  tally->terms_nonzero += static_cast<std::uint64_t>(last - first - loss.products_zero);
  tally->results_inexact += loss.result_inexact ? 1 : 0;
}

/// Products of nonzero operands.
std::uint64_t nonzero_pairs(const Panels& panels, std::int64_t first, std::int64_t last, int row, int column) {
  std::uint64_t pairs = 0;
  for (std::int64_t k = first; k < last; ++k) {
    pairs += panels.a[k * kPanelRows + row] != 0 && panels.b[k * kPanelColumns + column] != 0 ? 1 : 0;
  }
  return pairs;
}

#if PLUMBLINE_X86_VECTORS

constexpr int kRows = HWY_TARGET == HWY_AVX2 ? 2 : 4;  // 16 or 32 vector registers
constexpr int kHalves = 2;                             // binary32 vectors per vector of 16-bit exponents

/// Binary32 of an integer, truncated.
template <class DI, class VI>
HWY_INLINE auto truncate_to_float(DI di, VI x) {
  const hn::RebindToFloat<DI> d;
#if HWY_TARGET == HWY_AVX2
  const auto nearest = hn::ConvertTo(d, x);
  // The remainder is small, so it survives the conversion's wrap at 2^31; against the sign of x it means "too large".
  const auto rest = hn::Sub(x, integer_part(di, nearest));
  const auto sign = hn::ShiftRight<31>(x);
  const auto outward = hn::ShiftRight<31>(hn::Sub(hn::Xor(rest, sign), sign));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, nearest), outward));
#else
  return hn::Vec<decltype(d)>{_mm512_cvt_roundepi32_ps(x.raw, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
#endif
}

/// How a block's terms are counted: not at all; where every lane is served and no term can be a binary32 subnormal; or
/// with a look at each lane.
enum class Counting { none, plain, careful };

/// Integers of two vectors cut to 16 bits with saturation, in whatever order the instruction leaves them.
template <class VI>
HWY_INLINE VI pack_saturated(VI a, VI b) {
#if HWY_TARGET == HWY_AVX2
  return VI{_mm256_packs_epi32(a.raw, b.raw)};
#else
  return VI{_mm512_packs_epi32(a.raw, b.raw)};
#endif
}
/// Sums of neighbouring 16-bit lanes, each below 2^15.
template <class VI>
HWY_INLINE VI add_halves(VI counts) {
#if HWY_TARGET == HWY_AVX2
  return VI{_mm256_madd_epi16(counts.raw, _mm256_set1_epi16(1))};
#else
  return VI{_mm512_madd_epi16(counts.raw, _mm512_set1_epi16(1))};
#endif
}

struct Kernel {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Half<decltype(d16)> d16_half;
  using V = hn::Vec<decltype(d)>;
  using VI = hn::Vec<decltype(di)>;
  const int lanes = static_cast<int>(hn::Lanes(d));

  const Panels& panels;
  const CoreParameters& p;
  const int fraction_bits = p.core->fraction_bits;
  const bool inside = p.core->addend == Addend::in_block;

  Kernel(const Panels& panels_in, const CoreParameters& parameters) : panels(panels_in), p(parameters) {}

  /// The exponent c enters the comparison with; far below everything when it is zero.
  HWY_INLINE VI addend_exponent(V c) const {
    const auto field = hn::ShiftRight<23>(hn::And(hn::BitCast(di, c), hn::Set(di, 0x7F800000)));
    const auto exponent = hn::Max(hn::Sub(field, hn::Set(di, 127)), hn::Set(di, p.least_addend_exponent));
    return hn::IfThenElse(hn::RebindMask(di, hn::Eq(c, hn::Zero(d))), hn::Set(di, 2 * kZeroExponent), exponent);
  }

  /// sum * 2^(E-F) with the core's final rounding. `down` is 2^(E-F).
  HWY_INLINE V finish(VI sum, V down, V c, VI& inexact) const {
    V result = truncate_to_float(di, sum);
    const auto lost = hn::Ne(integer_part(di, result), sum);
    inexact = hn::VecFromMask(di, lost);
    if (p.core->final_rounding == FinalRounding::nearest_even) {
      // Rounding to odd first makes the second rounding see whether bits were lost.
      const auto sticky = hn::And(inexact, hn::Set(di, 1));
      const V exact = hn::Mul(hn::BitCast(d, hn::Or(hn::BitCast(di, result), sticky)), down);
      result = round_to_binary16(d, exact);
      inexact = hn::Or(inexact, hn::VecFromMask(di, hn::RebindMask(di, hn::Ne(result, exact))));
      return result;
    }
    const int spare = 24 - p.core->result_bits;
    const V kept = hn::BitCast(d, hn::And(hn::BitCast(di, result), hn::Set(di, -(1 << spare))));
    inexact = hn::Or(inexact, hn::VecFromMask(di, hn::RebindMask(di, hn::Ne(kept, result))));
    result = hn::Mul(kept, down);
    const auto infinite = hn::Eq(hn::Abs(result), hn::Set(d, std::numeric_limits<float>::infinity()));
    inexact = hn::Or(inexact, hn::VecFromMask(di, hn::RebindMask(di, infinite)));
    if (inside) return result;
    const V total = hn::Add(result, c);
    const V seen = hn::Sub(total, result);  // 2Sum: the error is zero exactly when both parts are recovered
    const V error = hn::Add(hn::Sub(result, hn::Sub(total, seen)), hn::Sub(c, seen));
    inexact = hn::Or(inexact, hn::VecFromMask(di, hn::RebindMask(di, hn::Ne(error, hn::Zero(d)))));
    return total;
  }

  /// E of kRows rows for two vectors of columns.
  HWY_INLINE void exponents(std::int64_t first, std::int64_t last, int row, int column,
                            VI (&top)[kRows][kHalves]) const {
    hn::Vec<decltype(d16)> best[kRows];
    for (int r = 0; r < kRows; ++r) best[r] = hn::Set(d16, std::int16_t{2 * kZeroExponent});
    const hn::RebindToSigned<hn::RepartitionToWide<decltype(d16)>> pair;
    const std::int32_t* HWY_RESTRICT a = panels.a_exponents + first * kPanelRows + row;
    const std::int16_t* HWY_RESTRICT b = panels.b_exponents + first * kPanelColumns + column;
    for (std::int64_t k = first; k < last; ++k, a += kPanelRows, b += kPanelColumns) {
      const auto bv = hn::LoadU(d16, b);
      for (int r = 0; r < kRows; ++r) {
        best[r] = hn::Max(best[r], hn::SaturatedAdd(hn::BitCast(d16, hn::Set(pair, a[r])), bv));
      }
    }
    for (int r = 0; r < kRows; ++r) {
      top[r][0] = hn::PromoteTo(di, hn::LowerHalf(d16_half, best[r]));
      top[r][1] = hn::PromoteTo(di, hn::UpperHalf(d16_half, best[r]));
    }
  }

  struct Counts {
    VI nonzero;  // the low half of each lane in plain counting
    VI cut;      // likewise
    VI inexact;
  };

  /// Plain counting of two vectors of terms: one 16-bit lane per term, 1 where it is not zero and where bits were lost.
  /// Compares into mask registers and masked additions cost twice as much here as these six operations.
  HWY_INLINE void count_plain(const VI (&term)[kHalves], const V (&aligned)[kHalves], Counts& counts) const {
    const hn::Repartition<std::uint16_t, decltype(d)> u16;
    const auto one = hn::Set(u16, std::uint16_t{1});
    // Saturation keeps a term's being zero or not; the order of lanes does not matter.
    const auto terms = hn::BitCast(u16, pack_saturated(term[0], term[1]));
    counts.nonzero = hn::BitCast(di, hn::Add(hn::BitCast(u16, counts.nonzero), hn::Min(terms, one)));
    // x - x is +0, so the bits of the difference say whether anything was lost.
    const auto lost0 = hn::BitCast(di, hn::Sub(hn::ConvertTo(d, term[0]), aligned[0]));
    const auto lost1 = hn::BitCast(di, hn::Sub(hn::ConvertTo(d, term[1]), aligned[1]));
    const auto lost = hn::BitCast(u16, pack_saturated(lost0, lost1));
    counts.cut = hn::BitCast(di, hn::Add(hn::BitCast(u16, counts.cut), hn::Min(lost, one)));
  }

  /// Adds the aligned products of k in [first, last) to sum.
  template <Counting kCounting>
  HWY_INLINE void products(std::int64_t first, std::int64_t last, int row, int column, const V (&up)[kRows][kHalves],
                           const VI (&outside)[kRows][kHalves], VI (&sum)[kRows][kHalves], Counts& counts) const {
    const float* HWY_RESTRICT a = panels.a + first * kPanelRows + row;
    const float* HWY_RESTRICT b = panels.b + first * kPanelColumns + column;
    for (std::int64_t k = first; k < last; ++k, a += kPanelRows, b += kPanelColumns) {
      V bv[kHalves];
      for (int h = 0; h < kHalves; ++h) bv[h] = hn::LoadU(d, b + h * lanes);
      for (int r = 0; r < kRows; ++r) {
        const V av = hn::Set(d, a[r]);
        V aligned[kHalves];
        VI term[kHalves];
        for (int h = 0; h < kHalves; ++h) {
          aligned[h] = hn::Mul(hn::Mul(av, bv[h]), up[r][h]);
          term[h] = integer_part(di, aligned[h]);
          sum[r][h] = hn::Add(sum[r][h], term[h]);
          if constexpr (kCounting == Counting::careful) {
            const auto good = hn::Gt(outside[r][h], hn::Set(di, -1));
            const auto pair = hn::AndNot(hn::Eq(bv[h], hn::Zero(d)), hn::Ne(av, hn::Zero(d)));
            const auto vanished = hn::And(pair, hn::Eq(aligned[h], hn::Zero(d)));  // below all of binary32
            const auto lost = hn::Or(hn::Ne(hn::ConvertTo(d, term[h]), aligned[h]), vanished);
            counts.nonzero = count(di, counts.nonzero, hn::And(good, hn::Ne(term[h], hn::Zero(di))));
            counts.cut = count(di, counts.cut, hn::And(good, hn::RebindMask(di, lost)));
          }
        }
        if constexpr (kCounting == Counting::plain) count_plain(term, aligned, counts);
      }
    }
  }

  /// Lanes whose c is infinite or NaN and whose products are finite: the block leaves such a c as it is. `top` holds
  /// the products' exponents alone.
  HWY_INLINE hn::Mask<decltype(di)> keeps_special(V c, VI top) const {
    const auto field = hn::And(hn::ShiftRight<23>(hn::BitCast(di, c)), hn::Set(di, 0xFF));
    return hn::And(hn::Eq(field, hn::Set(di, 0xFF)), hn::Lt(top, hn::Set(di, kSpecialExponent / 2)));
  }

  /// The sum of a block's aligned terms; those of c are there already.
  template <Counting kCounting>
  HWY_INLINE void sum_block(std::int64_t first, std::int64_t last, int row, int column, const V (&up)[kRows][kHalves],
                            const VI (&outside)[kRows][kHalves], VI (&sum)[kRows][kHalves], VI (&bad)[kRows][kHalves],
                            Counts& counts) const {
    if (!p.may_wrap) return products<kCounting>(first, last, row, column, up, outside, sum, counts);
    for (std::int64_t k = first; k < last; k += p.chunk) {
      VI part[kRows][kHalves];
      for (auto& parts : part) {
        for (VI& value : parts) value = hn::Zero(di);
      }
      products<kCounting>(k, std::min(last, k + p.chunk), row, column, up, outside, part, counts);
      for (int r = 0; r < kRows; ++r) {
        for (int h = 0; h < kHalves; ++h) {
          const VI total = hn::Add(sum[r][h], part[r][h]);  // wrapped if both parts have the other sign
          bad[r][h] = hn::Or(bad[r][h], hn::And(hn::Xor(total, sum[r][h]), hn::Xor(total, part[r][h])));
          sum[r][h] = total;
        }
      }
    }
  }

  /// Sums and counts. Lanes that keep a special c are silenced by a scale of zero; any other lane outside makes the
  /// whole group be counted with care.
  HWY_INLINE void sum_counted(std::int64_t first, std::int64_t last, int row, int column, const V (&c)[kRows][kHalves],
                              const VI (&products_top)[kRows][kHalves], V (&up)[kRows][kHalves],
                              const VI (&outside)[kRows][kHalves], VI (&sum)[kRows][kHalves], VI (&bad)[kRows][kHalves],
                              Counts& counts) const {
    VI strange = hn::Zero(di);
    VI top = hn::Set(di, -kCalmExponent);
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        const auto keeps = keeps_special(c[r][h], products_top[r][h]);
        strange = hn::Or(strange, hn::IfThenZeroElse(keeps, outside[r][h]));
        top = hn::Max(top, hn::IfThenZeroElse(keeps, products_top[r][h]));
        if (inside) top = hn::Max(top, hn::IfThenZeroElse(keeps, addend_exponent(c[r][h])));
      }
    }
    const bool calm = p.terms_survive && hn::AllTrue(di, hn::Lt(top, hn::Set(di, kCalmExponent))) &&
                      hn::AllFalse(di, hn::Lt(strange, hn::Zero(di)));
    if (!calm) {
      return sum_block<Counting::careful>(first, last, row, column, up, outside, sum, bad, counts);
    }
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        const auto keeps = keeps_special(c[r][h], products_top[r][h]);
        if (HWY_LIKELY(hn::AllFalse(di, keeps))) continue;
        up[r][h] = hn::IfThenZeroElse(hn::RebindMask(d, keeps), up[r][h]);
      }
    }
    sum_block<Counting::plain>(first, last, row, column, up, outside, sum, bad, counts);
    counts.nonzero = add_halves(counts.nonzero);
    counts.cut = add_halves(counts.cut);
  }

  /// One block for kRows rows and two vectors of columns.
  template <bool kCount>
  HWY_INLINE void block(std::int64_t first, std::int64_t last, int row, int column, float* HWY_RESTRICT tile,
                        Counts& totals, BlockTally* tally) const {
    VI top[kRows][kHalves];
    exponents(first, last, row, column, top);
    V c[kRows][kHalves];
    V up[kRows][kHalves];
    VI sum[kRows][kHalves];
    VI outside[kRows][kHalves];  // negative lanes: exponents the kernel cannot serve, specials among them
    VI bad[kRows][kHalves];      // negative lanes: these, and sums beyond 31 bits
    VI products_top[kRows][kHalves];
    // Below F-125 a product may lose bits in binary32 that still count; above 125 it may overflow.
    const VI low = hn::Set(di, fraction_bits - 125);
    const VI high = hn::Set(di, 125);
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        products_top[r][h] = top[r][h];
        c[r][h] = hn::LoadU(d, tile + (row + r) * kPanelColumns + column + h * lanes);
        if (inside) top[r][h] = hn::Max(top[r][h], addend_exponent(c[r][h]));
        // All terms zero: any E gives zero.
        top[r][h] = hn::IfThenZeroElse(hn::Lt(top[r][h], hn::Set(di, kZeroExponent / 2)), top[r][h]);
        outside[r][h] = hn::Or(hn::Sub(top[r][h], low), hn::Sub(high, top[r][h]));
        if (!inside) {  // an infinite or NaN addend meets no term in the comparison
          const auto field = hn::And(hn::ShiftRight<23>(hn::BitCast(di, c[r][h])), hn::Set(di, 0xFF));
          outside[r][h] = hn::Or(outside[r][h], hn::Sub(hn::Set(di, 0xFE), field));
        }
        bad[r][h] = outside[r][h];
        up[r][h] = hn::BitCast(d, hn::ShiftLeft<23>(hn::Sub(hn::Set(di, fraction_bits + 127), top[r][h])));
        sum[r][h] = hn::Zero(di);
        if (inside) {
          const V aligned = hn::Mul(c[r][h], up[r][h]);
          sum[r][h] = integer_part(di, aligned);
          if constexpr (kCount) {
            // A tiny c may vanish in the scaling already.
            const auto vanished = hn::And(hn::Eq(aligned, hn::Zero(d)), hn::Ne(c[r][h], hn::Zero(d)));
            const auto lost = hn::Or(hn::Ne(hn::ConvertTo(d, sum[r][h]), aligned), vanished);
            totals.cut =
                count(di, totals.cut, hn::And(hn::Gt(outside[r][h], hn::Set(di, -1)), hn::RebindMask(di, lost)));
          }
        }
      }
    }
    if constexpr (kCount) {
      Counts counts{hn::Zero(di), hn::Zero(di), hn::Zero(di)};
      sum_counted(first, last, row, column, c, products_top, up, outside, sum, bad, counts);
      totals.nonzero = hn::Add(totals.nonzero, counts.nonzero);
      totals.cut = hn::Add(totals.cut, counts.cut);
    } else {
      sum_block<Counting::none>(first, last, row, column, up, outside, sum, bad, totals);
    }
    VI any_bad = hn::Zero(di);
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        const VI down_exponent = hn::Add(hn::Set(di, 127 - fraction_bits), top[r][h]);
        VI inexact;
        const V result = finish(sum[r][h], hn::BitCast(d, hn::ShiftLeft<23>(down_exponent)), c[r][h], inexact);
        if constexpr (kCount) {
          totals.inexact =
              count(di, totals.inexact, hn::And(hn::Gt(bad[r][h], hn::Set(di, -1)), hn::Ne(inexact, hn::Zero(di))));
        }
        any_bad = hn::Or(any_bad, bad[r][h]);
        hn::StoreU(result, d, tile + (row + r) * kPanelColumns + column + h * lanes);
      }
    }
    if (HWY_UNLIKELY(!hn::AllFalse(di, hn::Lt(any_bad, hn::Zero(di))))) {
      replace_bad(first, last, row, column, c, products_top, outside, bad, tile, kCount ? tally : nullptr);
    }
  }

  /// The lanes the kernel cannot serve, from their old c. Of sums beyond 31 bits the terms are counted already.
  HWY_NOINLINE void replace_bad(std::int64_t first, std::int64_t last, int row, int column,
                                const V (&c)[kRows][kHalves], const VI (&products_top)[kRows][kHalves],
                                const VI (&outside)[kRows][kHalves], const VI (&bad)[kRows][kHalves], float* tile,
                                BlockTally* tally) const {
    float old[HWY_MAX_BYTES / sizeof(float)];
    std::int32_t outside_marks[HWY_MAX_BYTES / sizeof(float)];
    std::int32_t bad_marks[HWY_MAX_BYTES / sizeof(float)];
    std::int32_t kept_marks[HWY_MAX_BYTES / sizeof(float)];
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        if (hn::AllFalse(di, hn::Lt(bad[r][h], hn::Zero(di)))) continue;
        hn::StoreU(c[r][h], d, old);
        hn::StoreU(outside[r][h], di, outside_marks);
        hn::StoreU(bad[r][h], di, bad_marks);
        hn::StoreU(hn::VecFromMask(di, keeps_special(c[r][h], products_top[r][h])), di, kept_marks);
        for (int i = 0; i < lanes; ++i) {
          if (bad_marks[i] >= 0) continue;
          const int at = column + h * lanes + i;
          tile[(row + r) * kPanelColumns + at] = old[i];
          if (kept_marks[i] != 0) {
            if (tally != nullptr) tally->pairs_void += nonzero_pairs(panels, first, last, row + r, at);
            continue;
          }
          BlockTally scalar;
          scalar_lane(panels, p, first, last, row + r, at, tile, tally != nullptr ? &scalar : nullptr);
          if (tally == nullptr) continue;
          tally->results_inexact += scalar.results_inexact;
          if (outside_marks[i] >= 0) continue;
          tally->terms_cut += scalar.terms_cut;
          tally->terms_nonzero += scalar.terms_nonzero;
        }
      }
    }
  }
};

#endif

void add_exponents(const Panels& panels, const float* tile, BlockTally& tally) {
  for (int r = 0; r < panels.rows; ++r) {
    for (int i = 0; i < panels.columns; ++i) {
      ++tally.exponents[(std::bit_cast<std::uint32_t>(tile[r * kPanelColumns + i]) >> 23) & 0xFF];
    }
  }
}

void TileTensorCore(const Panels& panels, const CoreParameters& p, std::int64_t first, std::int64_t last, float* tile,
                    BlockTally* tally, const ObservedSteps& observed) {
#if PLUMBLINE_X86_VECTORS
  const Kernel kernel(panels, p);
  Kernel::Counts totals{hn::Zero(kernel.di), hn::Zero(kernel.di), hn::Zero(kernel.di)};
#endif
  for (std::int64_t k = first; k < last; k += p.core->block) {
    const std::int64_t index = k / p.core->block;
    const std::int64_t end = std::min<std::int64_t>(last, k + p.core->block);
    BlockTally* const seen = tally != nullptr && index % observed.every == 0 ? tally : nullptr;
#if PLUMBLINE_X86_VECTORS
    for (int column = 0; column < kPanelColumns; column += kHalves * kernel.lanes) {
      for (int row = 0; row < kPanelRows; row += kRows) {
        if (seen != nullptr) {
          kernel.block<true>(k, end, row, column, tile, totals, seen);
        } else {
          kernel.block<false>(k, end, row, column, tile, totals, nullptr);
        }
      }
    }
#else
    for (int row = 0; row < kPanelRows; ++row) {
      for (int column = 0; column < kPanelColumns; ++column) scalar_lane(panels, p, k, end, row, column, tile, seen);
    }
#endif
    if (seen != nullptr && index % observed.histogram_every == 0) add_exponents(panels, tile, *seen);
  }
#if PLUMBLINE_X86_VECTORS
  if (tally == nullptr) return;
  tally->terms_nonzero += sum_lanes(kernel.di, totals.nonzero);
  tally->terms_cut += sum_lanes(kernel.di, totals.cut);
  tally->results_inexact += sum_lanes(kernel.di, totals.inexact);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace plumbline::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumbline::numerics {

HWY_EXPORT(TileTensorCore);

CoreParameters make_core_parameters(const TensorCore& core, const Format& a, const Format& b, int least_bit) {
  CoreParameters p{.core = &core,
                   .a_format = &a,
                   .b_format = &b,
                   .least_addend_exponent = builtin_format(core.output).min_normal_exponent()};
  // Aligned products are below (2 - 2^-fa)(2 - 2^-fb) 2^F; count in units of 2^-(fa+fb).
  const std::int64_t largest = ((std::int64_t{2} << a.fraction_bits) - 1) * ((std::int64_t{2} << b.fraction_bits) - 1);
  constexpr std::int64_t kInt32Max = 0x7FFFFFFF;
  const std::int64_t product = (largest << core.fraction_bits >> (a.fraction_bits + b.fraction_bits)) + 1;
  p.chunk = static_cast<int>(std::clamp<std::int64_t>(kInt32Max / product, 1, core.block));
  constexpr int kLeastBinary32 = -149;
  p.terms_survive = least_bit >= kLeastBinary32 && least_bit + core.fraction_bits - kCalmExponent >= kLeastBinary32;
  p.may_wrap = product * core.block + (std::int64_t{2} << core.fraction_bits) > kInt32Max;
  return p;
}

void tile_tensor_core(const Panels& panels, const CoreParameters& parameters, std::int64_t first, std::int64_t last,
                      float* tile, BlockTally* tally, const ObservedSteps& observed) {
  HWY_DYNAMIC_DISPATCH(TileTensorCore)(panels, parameters, first, last, tile, tally, observed);
}

}  // namespace plumbline::numerics
#endif
