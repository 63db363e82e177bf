// Vector operations that Highway 1.0.3 lacks or does not promise bit for bit; included once per target.
#if defined(PLUMBLINE_MATMUL_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMBLINE_MATMUL_VECTOR_INL_H_
#undef PLUMBLINE_MATMUL_VECTOR_INL_H_
#else
#define PLUMBLINE_MATMUL_VECTOR_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace plumbline::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#undef PLUMBLINE_X86_VECTORS
// AVX2 and AVX-512 have FMA, F16C and the conversions used below; HWY_SCALAR goes through <cmath>.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define PLUMBLINE_X86_VECTORS 1
#else
#define PLUMBLINE_X86_VECTORS 0
#endif

/// a*b + c, rounded once. Highway's scalar MulAdd rounds twice.
template <class D, class V>
HWY_INLINE V fused_multiply_add(D d, V a, V b, V c) {
#if PLUMBLINE_X86_VECTORS
  (void)d;
  return hn::MulAdd(a, b, c);
#else
  return hn::Set(d, std::fma(hn::GetLane(a), hn::GetLane(b), hn::GetLane(c)));
#endif
}

#if PLUMBLINE_X86_VECTORS
/// The integer part of x, cut toward zero. Undefined beyond 31 bits (Highway's ConvertTo pays for saturation there).
template <class DI, class V>
HWY_INLINE hn::Vec<DI> integer_part(DI, V x) {
#if HWY_TARGET == HWY_AVX2
  return hn::Vec<DI>{_mm256_cvttps_epi32(x.raw)};
#else
  return hn::Vec<DI>{_mm512_cvttps_epi32(x.raw)};
#endif
}
#endif

/// counts + 1 in the lanes of `mask`.
template <class DI, class VI, class M>
HWY_INLINE VI count(DI di, VI counts, M mask) {
#if HWY_TARGET == HWY_AVX3
  return VI{_mm512_mask_add_epi32(counts.raw, mask.raw, counts.raw, hn::Set(di, 1).raw)};
#else
  return hn::Sub(counts, hn::VecFromMask(di, mask));
#endif
}

/// The sum of the lanes of non-negative 32-bit counts.
template <class DI, class VI>
HWY_INLINE std::uint64_t sum_lanes(DI di, VI counts) {
  std::int32_t lane[HWY_MAX_BYTES / sizeof(std::int32_t)];
  hn::StoreU(counts, di, lane);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < hn::Lanes(di); ++i) sum += static_cast<std::uint32_t>(lane[i]);
  return sum;
}

/// Nearest multiple of 2^(max(exponent of x, min_exponent) - precision + 1), ties to even, the sign of zero kept.
/// Adding 1.5*2^23 grid steps leaves no bit below the grid in a sum, and takes both signs. `top` is a power of two that
/// keeps the addition finite; magnitudes above it come out finite but coarse, infinities stay.
template <class D, class V>
HWY_INLINE V round_to_grid(D d, V x, V least, V top, V lift) {
  const hn::RebindToUnsigned<D> du;
  const auto power = hn::BitCast(d, hn::And(hn::BitCast(du, x), hn::Set(du, 0x7F800000U)));
  const auto magic = hn::Mul(hn::Min(hn::Max(power, least), top), lift);
  return hn::CopySign(hn::Sub(hn::Add(x, magic), magic), x);
}

/// Nearest binary16 value, ties to even, overflow to infinity.
template <class D, class V>
HWY_INLINE V round_to_binary16(D d, V x) {
#if PLUMBLINE_X86_VECTORS
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::DemoteTo(dh, x));
#else
  // 2^13 is the distance between 24 and 11 bits; 1.5 keeps the sum in one binade for both signs.
  const auto rounded = round_to_grid(d, x, hn::Set(d, 0x1p-14F), hn::Set(d, 0x1p100F), hn::Set(d, 0x1.8p13F));
  // Scaling by 2^112 and back turns what lies beyond 65504 into infinity and changes nothing else.
  return hn::Mul(hn::Mul(rounded, hn::Set(d, 0x1p112F)), hn::Set(d, 0x1p-112F));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace plumbline::numerics
HWY_AFTER_NAMESPACE();
#endif
