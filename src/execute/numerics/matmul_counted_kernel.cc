#include "execute/numerics/matmul_counted_kernel.h"

// The targets are chosen before Highway is seen.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execute/numerics/matmul_counted_kernel.cc"
#include "execute/numerics/matmul_targets.h"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "execute/numerics/matmul_vector-inl.h"
// clang-format on

#undef PLUMBLINE_UNROLL
#if defined(__clang__)
#define PLUMBLINE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PLUMBLINE_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace plumbline::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

std::int64_t CountBinary16Products(const Panels& panels, std::int64_t first, std::int64_t last,
                                   const std::int32_t* lanes) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto half_of_least = hn::Set(d, 0x1p-25F);  // a tie, which goes to zero
  std::int64_t sum = 0;
  for (int row = 0; row < kPanelRows; ++row) {
    for (int column = 0; column < kPanelColumns; column += static_cast<int>(hn::Lanes(d))) {
      const auto wanted = lanes == nullptr ? hn::Set(di, -1) : hn::LoadU(di, lanes + row * kPanelColumns + column);
      if (hn::AllTrue(di, hn::Eq(wanted, hn::Zero(di)))) continue;
      auto counts = hn::Zero(di);
      for (std::int64_t k = first; k < last; ++k) {
        const auto a = hn::Set(d, panels.a[k * kPanelRows + row]);
        const auto product = hn::Abs(hn::Mul(a, hn::LoadU(d, panels.b + k * kPanelColumns + column)));
        counts =
            count(di, counts, hn::RebindMask(di, hn::And(hn::Gt(product, half_of_least), hn::Lt(product, infinity))));
      }
      sum += static_cast<std::int64_t>(sum_lanes(di, hn::And(counts, wanted)));
    }
  }
  return sum;
}

#if HWY_TARGET == HWY_AVX3
bool CountsBinary16Sums() { return true; }

/// Rows together, and vectors of 16 results in each.
constexpr int kRows = kPanelRows / 2;
constexpr int kVectors = kPanelColumns / 16;
constexpr int kGroup = kRows * kVectors;
constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT;
constexpr int kLowBits = 0x1FFF;  // of binary32, below binary16's eleven

/// What is rare.
struct RareSums {
  std::int64_t swamped = 0;
  std::int64_t exact_by_bits = 0;  ///< sums that only look exact: binary32 lost the accumulator too
  std::int64_t zero_signs = 0;     ///< -0 + 0: another code and the same value
};

HWY_INLINE __m256i half_product(float a, const float* b) {
  return _mm512_cvtps_ph(_mm512_mul_ps(_mm512_set1_ps(a), _mm512_loadu_ps(b)), kNearest);
}

/// A step again, some of whose results equal their products, from the accumulators before it.
HWY_NOINLINE void count_replaced(const __m256i* before, const float* a, const float* b, RareSums& rare) {
  const __m256i magnitude = _mm256_set1_epi16(0x7FFF);
  for (int i = 0; i < kGroup; ++i) {
    const __m256i old = _mm256_load_si256(before + i);
    const __m256i product = half_product(a[i / kVectors], b + i % kVectors * 16);
    const __m512 sum = _mm512_add_ps(_mm512_cvtph_ps(old), _mm512_cvtph_ps(product));
    const __m256i result = _mm512_cvtps_ph(sum, kNearest);
    const __mmask16 changed = _mm256_cmpneq_epi16_mask(result, old);
    const std::uint32_t replaced = _mm256_mask_cmpeq_epi16_mask(changed, result, product);
    const std::uint32_t exact = _mm512_testn_epi32_mask(_mm512_castps_si512(sum), _mm512_set1_epi32(kLowBits));
    const std::uint32_t from_zero = replaced & _mm256_testn_epi16_mask(old, magnitude);
    rare.swamped += static_cast<std::int64_t>(hwy::PopCount(replaced & ~from_zero));
    rare.exact_by_bits += static_cast<std::int64_t>(hwy::PopCount(replaced & ~from_zero & exact));
    rare.zero_signs +=
        static_cast<std::int64_t>(hwy::PopCount(from_zero & _mm256_testn_epi16_mask(product, magnitude)));
  }
}

/// Lanes of infinite or NaN results.
HWY_INLINE __mmask16 special_lanes(__m256i halves) {
  const __m256i infinity = _mm256_set1_epi16(0x7C00);
  return _mm256_cmpeq_epi16_mask(_mm256_and_si256(halves, infinity), infinity);
}

/// A group of rows. Accumulators stay in their 16 bits, which say all that is asked of a sum but whether it was exact.
/// A sum of binary16 values below 2^-14 is exact; above, bits below the eleventh say that it is not. Where binary32
/// lost bits itself, the addend lies below a quarter of the accumulator's last bit (or the other way round), so that
/// the result is the accumulator (or the addend): exact sums are those without low bits that are neither.
HWY_INLINE void count_rows(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::int64_t steps,
                           float* HWY_RESTRICT tile, SumTally& tally, RareSums& rare) {
  const __m512i low_bits = _mm512_set1_epi32(kLowBits);
  alignas(32) __m256i before[kGroup];
  __m256i c[kGroup];
  __mmask16 special[kGroup];
  std::uint64_t changed = 0;
  std::uint64_t exact = 0;
  PLUMBLINE_UNROLL
  for (int i = 0; i < kGroup; ++i) {
    c[i] = _mm512_cvtps_ph(_mm512_loadu_ps(tile + 16 * i), kNearest);
    special[i] = special_lanes(c[i]);
    tally.began_special = tally.began_special || special[i] != 0;
  }
  for (std::int64_t k = 0; k < steps; ++k, a += kPanelRows, b += kPanelColumns) {
    __m256i replaced = _mm256_setzero_si256();
    PLUMBLINE_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      const __m256i old = c[i];
      _mm256_store_si256(before + i, old);
      const __m256i product = half_product(a[i / kVectors], b + i % kVectors * 16);
      const __m512 sum = _mm512_add_ps(_mm512_cvtph_ps(old), _mm512_cvtph_ps(product));
      c[i] = _mm512_cvtps_ph(sum, kNearest);
      const __mmask16 differs = _mm256_cmpneq_epi16_mask(c[i], old);
      changed += hwy::PopCount(static_cast<std::uint32_t>(differs));
      exact += hwy::PopCount(
          static_cast<std::uint32_t>(_mm512_mask_testn_epi32_mask(differs, _mm512_castps_si512(sum), low_bits)));
      replaced = _mm256_or_si256(replaced, _mm256_cmpeq_epi16(c[i], product));
    }
    if (HWY_UNLIKELY(_mm256_movemask_epi8(replaced) != 0)) count_replaced(before, a, b, rare);
  }
  PLUMBLINE_UNROLL
  for (int i = 0; i < kGroup; ++i) {
    tally.became_special = tally.became_special || special_lanes(c[i]) != special[i];
    _mm512_storeu_ps(tile + 16 * i, _mm512_cvtph_ps(c[i]));
  }
  tally.unchanged += steps * kGroup * 16 - static_cast<std::int64_t>(changed);
  tally.changed_exactly += static_cast<std::int64_t>(exact);
}

void TileBinary16Sums(const Panels& panels, std::int64_t first, std::int64_t last, float* HWY_RESTRICT tile,
                      SumTally& tally) {
  RareSums rare;
  const float* const b = panels.b + first * kPanelColumns;
  for (int row = 0; row < kPanelRows; row += kRows) {
    count_rows(panels.a + first * kPanelRows + row, b, last - first, tile + row * kPanelColumns, tally, rare);
  }
  tally.unchanged += rare.zero_signs;
  tally.changed_exactly -= rare.exact_by_bits + rare.zero_signs;
  tally.swamped += rare.swamped;
}
#else
bool CountsBinary16Sums() { return false; }
void TileBinary16Sums(const Panels&, std::int64_t, std::int64_t, float*, SumTally&) {
  HWY_ABORT("binary16 sums are not counted on this instruction set");
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace plumbline::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumbline::numerics {

HWY_EXPORT(CountsBinary16Sums);
HWY_EXPORT(TileBinary16Sums);
HWY_EXPORT(CountBinary16Products);

bool counts_binary16_sums() { return HWY_DYNAMIC_DISPATCH(CountsBinary16Sums)(); }

void tile_binary16_sums(const Panels& panels, std::int64_t first, std::int64_t last, float* tile, SumTally& tally) {
  HWY_DYNAMIC_DISPATCH(TileBinary16Sums)(panels, first, last, tile, tally);
}

std::int64_t count_binary16_products(const Panels& panels, std::int64_t first, std::int64_t last,
                                     const std::int32_t* lanes) {
  return HWY_DYNAMIC_DISPATCH(CountBinary16Products)(panels, first, last, lanes);
}

}  // namespace plumbline::numerics
#endif
