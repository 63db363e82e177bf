// The tensor-core block rule, a lane per result. Aligning a term means scaling the product by 2^(F-E), which is exact
// in binary32, and converting it to an integer, which cuts toward zero as the hardware does; the sum is then plain
// integer addition. Blocks with special values, exponents near the ends of binary32 or sums beyond 31 bits go to the
// scalar rule.
#include "execute/numerics/tensor_core_kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

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

#if HWY_TARGET == HWY_AVX2
#define PLUMBLINE_X86(name) _mm256_##name
#else
#define PLUMBLINE_X86(name) _mm512_##name
#endif
/// Lanes of two vectors cut to half their width with saturation, which keeps whether a lane is zero, in whatever order
/// the instruction leaves them.
template <class VI>
HWY_INLINE VI halve_words(VI a, VI b) {
  return VI{PLUMBLINE_X86(packs_epi32)(a.raw, b.raw)};
}
template <class VI>
HWY_INLINE VI halve_halves(VI a, VI b) {
  return VI{PLUMBLINE_X86(packs_epi16)(a.raw, b.raw)};
}
/// counts + 1 in the bytes, or in the 32-bit lanes, where `flags` is not zero.
template <class VI>
HWY_INLINE VI count_bytes(VI counts, VI flags) {
  return VI{PLUMBLINE_X86(add_epi8)(counts.raw, PLUMBLINE_X86(min_epu8)(flags.raw, PLUMBLINE_X86(set1_epi8)(1)))};
}
template <class VI>
HWY_INLINE VI count_words(VI counts, VI flags) {
  return VI{PLUMBLINE_X86(add_epi32)(counts.raw, PLUMBLINE_X86(min_epu32)(flags.raw, PLUMBLINE_X86(set1_epi32)(1)))};
}
/// Negative bytes: of last-bit exponents a + b, where the grid lies above them. Saturation changes no sign here.
template <class VI>
HWY_INLINE std::uint64_t bytes_below(VI a, VI b, VI grid) {
  const auto sum = PLUMBLINE_X86(adds_epi8)(a.raw, b.raw);
  const auto above = PLUMBLINE_X86(subs_epi8)(sum, grid.raw);
#if HWY_TARGET == HWY_AVX2
  return static_cast<std::uint64_t>(std::popcount(static_cast<std::uint32_t>(_mm256_movemask_epi8(above))));
#else
  return static_cast<std::uint64_t>(std::popcount(static_cast<std::uint64_t>(_mm512_movepi8_mask(above))));
#endif
}
/// counts + the four bytes of each 32-bit lane.
template <class VI>
HWY_INLINE VI add_bytes(VI counts, VI bytes) {
  const auto pairs = PLUMBLINE_X86(maddubs_epi16)(bytes.raw, PLUMBLINE_X86(set1_epi8)(1));
  return VI{PLUMBLINE_X86(add_epi32)(counts.raw, PLUMBLINE_X86(madd_epi16)(pairs, PLUMBLINE_X86(set1_epi16)(1)))};
}
#undef PLUMBLINE_X86

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

  /// sum * 2^(E-F) with the core's final rounding; `lost` is not zero where bits were lost. `down` is 2^(E-F).
  HWY_INLINE V finish(VI sum, V down, V c, VI& lost) const {
    const V truncated = truncate_to_float(di, sum);
    if (p.core->final_rounding == FinalRounding::nearest_even) {
      // Rounding to odd first makes the second rounding see whether bits were lost.
      const auto inexact = hn::VecFromMask(di, hn::Ne(integer_part(di, truncated), sum));
      const auto sticky = hn::And(inexact, hn::Set(di, 1));
      const V exact = hn::Mul(hn::BitCast(d, hn::Or(hn::BitCast(di, truncated), sticky)), down);
      const V rounded = round_to_binary16(d, exact);
      lost = hn::Or(sticky, hn::BitCast(di, hn::Sub(rounded, exact)));
      return rounded;
    }
    const int spare = 24 - p.core->result_bits;
    const V kept = hn::BitCast(d, hn::And(hn::BitCast(di, truncated), hn::Set(di, -(1 << spare))));
    const V result = hn::Mul(kept, down);
    // x - x is +0, but NaN for an infinite x.
    lost = hn::Or(hn::Xor(integer_part(di, kept), sum), hn::BitCast(di, hn::Sub(result, result)));
    if (inside) return result;
    const V total = hn::Add(result, c);
    const V seen = hn::Sub(total, result);  // 2Sum: the error is zero exactly when both parts are recovered
    const V error = hn::Add(hn::Sub(result, hn::Sub(total, seen)), hn::Sub(c, seen));
    lost = hn::Or(lost, hn::BitCast(di, error));
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

  /// Counts by 32-bit lane.
  struct Counts {
    VI nonzero;
    VI cut;
    VI inexact;
    std::uint64_t below;  ///< terms cut, of plain counting
  };
  [[nodiscard]] HWY_INLINE Counts no_counts() const { return {hn::Zero(di), hn::Zero(di), hn::Zero(di), 0}; }

  /// Adds the aligned products of k in [first, last) to sum. Plain counting takes two rows together, a byte per term: 1
  /// where the term is not zero (compares into mask registers and masked additions take twice as long). Bits are lost
  /// where the last bit of a product, whose exponent is the sum of its operands', lies below the grid.
  template <Counting kCounting>
  HWY_INLINE void products(std::int64_t first, std::int64_t last, int row, int column, const V (&up)[kRows][kHalves],
                           const VI (&outside)[kRows][kHalves], const VI (&grid)[kRows / 2], VI (&sum)[kRows][kHalves],
                           Counts& counts) const {
    const float* HWY_RESTRICT a = panels.a + first * kPanelRows + row;
    const float* HWY_RESTRICT b = panels.b + first * kPanelColumns + column;
    const std::int8_t* HWY_RESTRICT a_last = panels.a_last + first * kPanelRows + row;
    const std::int8_t* HWY_RESTRICT b_last = panels.b_last + 2 * (first * kPanelColumns + column);
    const hn::Repartition<std::int16_t, decltype(d)> pairs;
    VI nonzero = hn::Zero(di);  // bytes
    std::uint64_t below = 0;
    for (std::int64_t k = first; k < last; ++k, a += kPanelRows, b += kPanelColumns) {
      V bv[kHalves];
      for (int h = 0; h < kHalves; ++h) bv[h] = hn::LoadU(d, b + h * lanes);
      VI term[2][kHalves];
      for (int r = 0; r < kRows; ++r) {
        const V av = hn::Set(d, a[r]);
        for (int h = 0; h < kHalves; ++h) {
          const V aligned = hn::Mul(hn::Mul(av, bv[h]), up[r][h]);
          term[r % 2][h] = integer_part(di, aligned);
          sum[r][h] = hn::Add(sum[r][h], term[r % 2][h]);
          if constexpr (kCounting == Counting::careful) {
            const auto good = hn::Gt(outside[r][h], hn::Set(di, -1));
            const auto pair = hn::AndNot(hn::Eq(bv[h], hn::Zero(d)), hn::Ne(av, hn::Zero(d)));
            const auto vanished = hn::And(pair, hn::Eq(aligned, hn::Zero(d)));  // below all of binary32
            const auto lost = hn::Or(hn::Ne(hn::ConvertTo(d, term[r % 2][h]), aligned), vanished);
            counts.nonzero = count(di, counts.nonzero, hn::And(good, hn::Ne(term[r % 2][h], hn::Zero(di))));
            counts.cut = count(di, counts.cut, hn::And(good, hn::RebindMask(di, lost)));
          }
        }
        if constexpr (kCounting == Counting::plain) {
          if (r % 2 == 0) continue;
          nonzero = count_bytes(nonzero,
                                halve_halves(halve_words(term[0][0], term[0][1]), halve_words(term[1][0], term[1][1])));
          std::int16_t both;  // rows r - 1 and r
          std::memcpy(&both, a_last + r - 1, sizeof both);
          const VI last_a = hn::BitCast(di, hn::Set(pairs, both));
          const VI last_b = hn::LoadU(di, reinterpret_cast<const std::int32_t*>(b_last));
          below += bytes_below(last_a, last_b, grid[r / 2]);
        }
      }
      if constexpr (kCounting == Counting::plain) {
        a_last += kPanelRows;
        b_last += 2 * kPanelColumns;
      }
    }
    if constexpr (kCounting == Counting::plain) {
      counts.nonzero = add_bytes(counts.nonzero, nonzero);
      counts.below += below;
    }
  }

  /// 2^(E-F).
  HWY_INLINE V scale_down(VI top) const {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Set(di, 127 - fraction_bits), top)));
  }

  /// Zero in the lanes whose mark is negative.
  HWY_INLINE VI where_good(VI flags, VI marks) const { return hn::AndNot(hn::ShiftRight<31>(marks), flags); }

  /// kRows rows of two vectors of columns before their block.
  struct Group {
    V c[kRows][kHalves];
    VI products_top[kRows][kHalves];  ///< largest exponent of the products
    VI top[kRows][kHalves];           ///< E
    VI outside[kRows][kHalves];       ///< negative lanes: exponents the kernel cannot serve, specials among them
  };

  /// Lanes whose c is infinite or NaN and whose products are finite: the block leaves such a c as it is. `top` holds
  /// the products' exponents alone.
  HWY_INLINE hn::Mask<decltype(di)> keeps_special(V c, VI top) const {
    const auto field = hn::And(hn::ShiftRight<23>(hn::BitCast(di, c)), hn::Set(di, 0xFF));
    return hn::And(hn::Eq(field, hn::Set(di, 0xFF)), hn::Lt(top, hn::Set(di, kSpecialExponent / 2)));
  }

  /// The sum of a block's aligned terms; those of c are there already.
  template <Counting kCounting>
  HWY_INLINE void sum_block(std::int64_t first, std::int64_t last, int row, int column, const V (&up)[kRows][kHalves],
                            const VI (&outside)[kRows][kHalves], const VI (&grid)[kRows / 2], VI (&sum)[kRows][kHalves],
                            VI (&bad)[kRows][kHalves], Counts& counts) const {
    if (!p.may_wrap) {
      constexpr std::int64_t kByteSteps = 64;  // kRows / 2 flags a step stay within a byte
      const std::int64_t steps = kCounting == Counting::plain ? kByteSteps : last - first;
      for (std::int64_t k = first; k < last; k += steps) {
        products<kCounting>(k, std::min(last, k + steps), row, column, up, outside, grid, sum, counts);
      }
      return;
    }
    for (std::int64_t k = first; k < last; k += p.chunk) {
      VI part[kRows][kHalves];
      for (auto& parts : part) {
        for (VI& value : parts) value = hn::Zero(di);
      }
      products<kCounting>(k, std::min(last, k + p.chunk), row, column, up, outside, grid, part, counts);
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
  HWY_INLINE void sum_counted(std::int64_t first, std::int64_t last, int row, int column, const Group& group,
                              V (&up)[kRows][kHalves], VI (&sum)[kRows][kHalves], VI (&bad)[kRows][kHalves],
                              Counts& counts) const {
    VI grid[kRows / 2] = {};
    VI any_outside = hn::Zero(di);
    VI most = hn::Zero(di);
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        any_outside = hn::Or(any_outside, group.outside[r][h]);
        most = hn::Max(most, group.top[r][h]);
      }
    }
    VI top[kRows][kHalves];
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) top[r][h] = group.top[r][h];
    }
    bool calm = panels.a_last != nullptr;
    if (HWY_UNLIKELY(!hn::AllFalse(di, hn::Lt(any_outside, hn::Zero(di))))) {
      const Group copy = group;  // a group whose address is taken does not live in registers
      V scale[kRows][kHalves];
      for (int r = 0; r < kRows; ++r) {
        for (int h = 0; h < kHalves; ++h) scale[r][h] = up[r][h];
      }
      VI quiet[kRows][kHalves];
      calm = calm && silence(copy, scale, quiet);
      for (int r = 0; r < kRows && calm; ++r) {
        for (int h = 0; h < kHalves; ++h) {
          up[r][h] = scale[r][h];
          top[r][h] = quiet[r][h];
        }
      }
    } else {
      calm = calm && hn::AllTrue(di, hn::Lt(most, hn::Set(di, kCalmExponent)));
    }
    if (HWY_LIKELY(calm)) {
      for (int r = 0; r < kRows; r += 2) grid[r / 2] = grid_bytes(top[r], top[r + 1]);
      sum_block<Counting::plain>(first, last, row, column, up, group.outside, grid, sum, bad, counts);
    } else {
      sum_block<Counting::careful>(first, last, row, column, up, group.outside, grid, sum, bad, counts);
    }
  }

  /// E-F of two rows as bytes, the rows in turn.
  HWY_INLINE VI grid_bytes(const VI (&even)[kHalves], const VI (&odd)[kHalves]) const {
    const hn::RebindToUnsigned<decltype(di)> du;
    const hn::Rebind<std::uint16_t, decltype(du)> half;
    const hn::Repartition<std::uint16_t, decltype(du)> full;
    const VI f = hn::Set(di, fraction_bits);
    const VI least = hn::Set(di, -128);  // a grid below all products: only c is not zero
    hn::Vec<decltype(half)> part[kHalves];
    for (int h = 0; h < kHalves; ++h) {
      const VI low = hn::And(hn::Max(hn::Sub(even[h], f), least), hn::Set(di, 0xFF));
      const VI high = hn::And(hn::ShiftLeft<8>(hn::Max(hn::Sub(odd[h], f), least)), hn::Set(di, 0xFF00));
      part[h] = hn::TruncateTo(half, hn::BitCast(du, hn::Or(low, high)));
    }
    return hn::BitCast(di, hn::Combine(full, part[1], part[0]));
  }

  /// Whether all lanes outside keep a special c, and the others are calm; then their scale becomes zero and their grid
  /// the lowest.
  HWY_NOINLINE bool silence(const Group& group, V (&up)[kRows][kHalves], VI (&quiet)[kRows][kHalves]) const {
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        const auto keeps = keeps_special(group.c[r][h], group.products_top[r][h]);
        const VI outside = hn::IfThenZeroElse(keeps, group.outside[r][h]);
        const VI top = hn::IfThenZeroElse(keeps, group.top[r][h]);
        if (!hn::AllFalse(di, hn::Lt(outside, hn::Zero(di)))) return false;
        if (!hn::AllTrue(di, hn::Lt(top, hn::Set(di, kCalmExponent)))) return false;
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        const auto keeps = keeps_special(group.c[r][h], group.products_top[r][h]);
        up[r][h] = hn::IfThenZeroElse(hn::RebindMask(d, keeps), up[r][h]);
        quiet[r][h] = hn::IfThenElse(keeps, hn::Set(di, fraction_bits - 128), group.top[r][h]);
      }
    }
    return true;
  }

  /// One block for kRows rows and two vectors of columns.
  template <bool kCount>
  HWY_INLINE void block(std::int64_t first, std::int64_t last, int row, int column, float* HWY_RESTRICT tile,
                        Counts& totals, BlockTally* tally) const {
    Group group;
    exponents(first, last, row, column, group.products_top);
    V up[kRows][kHalves];
    VI sum[kRows][kHalves];
    VI bad[kRows][kHalves];  // negative lanes: those outside, and sums beyond 31 bits
    // Below F-125 a product may lose bits in binary32 that still count; above 125 it may overflow.
    const VI low = hn::Set(di, fraction_bits - 125);
    const VI high = hn::Set(di, 125);
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        const V c = hn::LoadU(d, tile + (row + r) * kPanelColumns + column + h * lanes);
        VI top = group.products_top[r][h];
        if (inside) top = hn::Max(top, addend_exponent(c));
        // All terms zero: any E gives zero.
        top = hn::IfThenZeroElse(hn::Lt(top, hn::Set(di, kZeroExponent / 2)), top);
        VI outside = hn::Or(hn::Sub(top, low), hn::Sub(high, top));
        if (!inside) {  // an infinite or NaN addend meets no term in the comparison
          const auto field = hn::And(hn::ShiftRight<23>(hn::BitCast(di, c)), hn::Set(di, 0xFF));
          outside = hn::Or(outside, hn::Sub(hn::Set(di, 0xFE), field));
        }
        up[r][h] = hn::BitCast(d, hn::ShiftLeft<23>(hn::Sub(hn::Set(di, fraction_bits + 127), top)));
        sum[r][h] = hn::Zero(di);
        if (inside) {
          sum[r][h] = integer_part(di, hn::Mul(c, up[r][h]));
          if constexpr (kCount) {  // scaled back, c must be what it was; a tiny one may vanish in the scaling
            const V back = hn::Mul(hn::ConvertTo(d, sum[r][h]), scale_down(top));
            totals.cut = count_words(totals.cut, where_good(hn::BitCast(di, hn::Sub(back, c)), outside));
          }
        }
        group.c[r][h] = c;
        group.top[r][h] = top;
        group.outside[r][h] = outside;
        bad[r][h] = outside;
      }
    }
    if constexpr (kCount) {
      sum_counted(first, last, row, column, group, up, sum, bad, totals);
    } else {
      const VI grid[kRows / 2] = {};
      sum_block<Counting::none>(first, last, row, column, up, group.outside, grid, sum, bad, totals);
    }
    VI any_bad = hn::Zero(di);
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        VI lost;
        const V result = finish(sum[r][h], scale_down(group.top[r][h]), group.c[r][h], lost);
        if constexpr (kCount) totals.inexact = count_words(totals.inexact, where_good(lost, bad[r][h]));
        any_bad = hn::Or(any_bad, bad[r][h]);
        hn::StoreU(result, d, tile + (row + r) * kPanelColumns + column + h * lanes);
      }
    }
    if (HWY_UNLIKELY(!hn::AllFalse(di, hn::Lt(any_bad, hn::Zero(di))))) {
      const Group copy = group;
      VI marks[kRows][kHalves];
      for (int r = 0; r < kRows; ++r) {
        for (int h = 0; h < kHalves; ++h) marks[r][h] = bad[r][h];
      }
      replace_bad(first, last, row, column, copy, marks, tile, kCount ? tally : nullptr);
    }
  }

  /// The lanes the kernel cannot serve, from their old c. Of sums beyond 31 bits the terms are counted already.
  HWY_NOINLINE void replace_bad(std::int64_t first, std::int64_t last, int row, int column, const Group& group,
                                const VI (&bad)[kRows][kHalves], float* tile, BlockTally* tally) const {
    float old[HWY_MAX_BYTES / sizeof(float)];
    std::int32_t outside_marks[HWY_MAX_BYTES / sizeof(float)];
    std::int32_t bad_marks[HWY_MAX_BYTES / sizeof(float)];
    std::int32_t kept_marks[HWY_MAX_BYTES / sizeof(float)];
    for (int r = 0; r < kRows; ++r) {
      for (int h = 0; h < kHalves; ++h) {
        if (hn::AllFalse(di, hn::Lt(bad[r][h], hn::Zero(di)))) continue;
        hn::StoreU(group.c[r][h], d, old);
        hn::StoreU(group.outside[r][h], di, outside_marks);
        hn::StoreU(bad[r][h], di, bad_marks);
        hn::StoreU(hn::VecFromMask(di, keeps_special(group.c[r][h], group.products_top[r][h])), di, kept_marks);
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
  Kernel::Counts totals = kernel.no_counts();
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
  tally->terms_cut += sum_lanes(kernel.di, totals.cut) + totals.below;
  tally->results_inexact += sum_lanes(kernel.di, totals.inexact);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace plumbline::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumbline::numerics {

HWY_EXPORT(TileTensorCore);

CoreParameters make_core_parameters(const TensorCore& core, const Format& a, const Format& b) {
  CoreParameters p{.core = &core,
                   .a_format = &a,
                   .b_format = &b,
                   .least_addend_exponent = builtin_format(core.output).min_normal_exponent()};
  // Aligned products are below (2 - 2^-fa)(2 - 2^-fb) 2^F; count in units of 2^-(fa+fb).
  const std::int64_t largest = ((std::int64_t{2} << a.fraction_bits) - 1) * ((std::int64_t{2} << b.fraction_bits) - 1);
  constexpr std::int64_t kInt32Max = 0x7FFFFFFF;
  const std::int64_t product = (largest << core.fraction_bits >> (a.fraction_bits + b.fraction_bits)) + 1;
  constexpr std::int64_t kByteSteps = 64;  // see Kernel::sum_block
  p.chunk = static_cast<int>(
      std::clamp<std::int64_t>(kInt32Max / product, 1, std::min<std::int64_t>(core.block, kByteSteps)));
  p.may_wrap = product * core.block + (std::int64_t{2} << core.fraction_bits) > kInt32Max;
  return p;
}

void tile_tensor_core(const Panels& panels, const CoreParameters& parameters, std::int64_t first, std::int64_t last,
                      float* tile, BlockTally* tally, const ObservedSteps& observed) {
  HWY_DYNAMIC_DISPATCH(TileTensorCore)(panels, parameters, first, last, tile, tally, observed);
}

}  // namespace plumbline::numerics
#endif
