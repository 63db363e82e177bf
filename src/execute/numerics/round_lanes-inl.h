// Per-target vector code: binary32 bits to magnitude codes. Included once per instruction set by the kernels' .cc
// files.
#if defined(PLUMBLINE_ROUND_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMBLINE_ROUND_LANES_INL_H_
#undef PLUMBLINE_ROUND_LANES_INL_H_
#else
#define PLUMBLINE_ROUND_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include "execute/numerics/round_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace plumbline::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DU = hn::ScalableTag<std::uint32_t>;
using DI = hn::ScalableTag<std::int32_t>;
using DF = hn::ScalableTag<float>;
using VU = hn::Vec<DU>;
using MU = hn::Mask<DU>;

// How a magnitude code is reached. The first two are short cuts for rne, equal to Path::rne wherever they are allowed.
enum class Path { magic, fixed_shift, rne, rtz, ru, rd, rna, sr };

constexpr std::uint32_t kMagnitudeBits = 0x7FFFFFFF;  // binary32 without its sign
constexpr std::uint32_t kExponentBits = 0x7F800000;   // also the bits of +Inf

/// Magnitude codes with an exponent field unbounded above (so that beyond-the-maximum is a comparison), and the lanes
/// whose discarded bits are not all zero. Codes of Inf and NaN exceed every format's largest; their `inexact` is void.
struct Magnitudes {
  VU code;
  MU inexact;
};

/// Broadcast constants of one call.
struct LaneConstants {
  explicit HWY_INLINE LaneConstants(const RoundParameters& p)
      : fraction_bits(p.fraction_bits),
        dropped_bits(23 - p.fraction_bits),
        least_exponent(hn::Set(DU(), static_cast<std::uint32_t>(p.least_exponent))),
        cap(hn::Set(DU(), p.magnitude_cap)),
        least_bits(hn::Set(DU(), static_cast<std::uint32_t>(p.least_exponent) << 23)),
        largest_bits(hn::Set(DU(), p.max_value_bits)),
        magic_step(hn::Set(DU(), static_cast<std::uint32_t>(23 - p.fraction_bits) << 23)),
        magic_offset(hn::Set(DU(), (static_cast<std::uint32_t>(23 - p.fraction_bits) << 23) +
                                       (static_cast<std::uint32_t>(p.least_exponent) << p.fraction_bits))),
        random_mask(hn::Set(DU(), p.rounding == Rounding::sr ? ~std::uint32_t{0} << (32 - p.random_bits) : 0)),
        hash_start(hn::Add(hn::Mul(hn::Iota(DU(), 0), hn::Set(DU(), kHashStep)),
                           hn::Set(DU(), p.first_offset * kHashStep + p.key.add))),
        hash_key(hn::Set(DU(), p.key.exclusive_or)) {}
  int fraction_bits;
  int dropped_bits;
  VU least_exponent;
  VU cap;
  VU least_bits;
  VU largest_bits;
  VU magic_step;
  VU magic_offset;
  VU random_mask;
  VU hash_start;
  VU hash_key;
};

/// hash_element() of consecutive elements from `position` on.
template <class Constants>
HWY_INLINE VU hash_lanes(const Constants& c, std::size_t position) {
  const DU d;
  VU x = hn::Add(c.hash_start, hn::Set(d, static_cast<std::uint32_t>(position) * kHashStep));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, kHashFirst));
  x = hn::Xor(x, c.hash_key);
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, kHashSecond));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

/// Adds 2^(23 - m) times the binade of |x| (never below the least normal): the hardware's own round to nearest even
/// then rounds at the format's grid, and the low bits of the sum are the significand.
HWY_INLINE Magnitudes magic_magnitude(const LaneConstants& c, VU bits) {
  const DU d;
  const DF df;
  const VU magnitude = hn::Min(hn::And(bits, hn::Set(d, kMagnitudeBits)), c.cap);
  const VU binade = hn::Max(hn::And(magnitude, hn::Set(d, kExponentBits)), c.least_bits);
  const auto magic = hn::BitCast(df, hn::Add(binade, c.magic_step));
  const auto sum = hn::Add(hn::BitCast(df, magnitude), magic);
  const auto rounded = hn::Sub(sum, magic);
  const VU significand = hn::Sub(hn::BitCast(d, sum), hn::Add(binade, c.magic_offset));
  const VU code = hn::Add(significand, hn::ShiftRightSame(binade, c.dropped_bits));
  return {code, hn::RebindMask(d, hn::Ne(rounded, hn::BitCast(df, magnitude)))};
}

/// Formats with binary32's exponent range: subnormals line up, so every lane drops the same bits.
HWY_INLINE Magnitudes fixed_shift_magnitude(const LaneConstants& c, VU bits) {
  const DU d;
  const VU magnitude = hn::And(bits, hn::Set(d, kMagnitudeBits));
  const VU low = hn::Set(d, (std::uint32_t{1} << c.dropped_bits) - 1);
  const VU odd = hn::And(hn::ShiftRightSame(magnitude, c.dropped_bits), hn::Set(d, 1));
  const VU sum = hn::Add(magnitude, hn::Add(odd, hn::ShiftRight<1>(low)));
  return {hn::ShiftRightSame(sum, c.dropped_bits), hn::Ne(hn::And(magnitude, low), hn::Zero(d))};
}

/// What to add to the significand before `shift` bits are dropped; `low` masks the dropped bits.
template <Path kPath>
HWY_INLINE VU addend(const LaneConstants& c, VU bits, VU significand, VU shift, VU low, VU binade, VU hash) {
  const DU d;
  if constexpr (kPath == Path::rtz) return hn::Zero(d);
  if constexpr (kPath == Path::rna) return hn::Sub(low, hn::ShiftRight<1>(low));
  const VU negative = hn::BitCast(d, hn::ShiftRight<31>(hn::BitCast(DI(), bits)));
  if constexpr (kPath == Path::ru) return hn::AndNot(negative, low);
  if constexpr (kPath == Path::rd) return hn::And(negative, low);
  if constexpr (kPath == Path::sr) {
    const VU top = hn::ShiftRight<1>(hn::And(hash, c.random_mask));
    return hn::Shr(top, hn::Sub(hn::Set(d, 31), shift));
  }
  // Parity of the code, not of the significand: they differ where there is no fraction bit.
  const VU odd = hn::And(hn::Add(hn::Shr(significand, shift), binade), hn::Min(low, hn::Set(d, 1)));
  return hn::Add(hn::ShiftRight<1>(low), odd);
}

/// Any mode, any format, integers only: significand >> shift with a shift per lane.
template <Path kPath>
HWY_INLINE Magnitudes shifted_magnitude(const LaneConstants& c, VU bits, VU hash) {
  const DU d;
  const VU one = hn::Set(d, 1);
  const VU magnitude = hn::And(bits, hn::Set(d, kMagnitudeBits));
  const VU exponent = hn::Max(hn::ShiftRight<23>(magnitude), one);
  const VU significand = hn::Sub(magnitude, hn::ShiftLeft<23>(hn::Sub(exponent, one)));
  const VU grid = hn::Max(exponent, c.least_exponent);
  const VU dropped = hn::Add(hn::Sub(grid, exponent), hn::Set(d, static_cast<std::uint32_t>(c.dropped_bits)));
  // Significands have 24 bits: beyond 25 dropped bits only "not zero, below half" remains. Stochastic rounding needs
  // the true distance; there the significand itself is shifted first, which keeps floor(d 2^b) for b <= 31.
  constexpr std::uint32_t kLimit = kPath == Path::sr ? 31 : 25;
  const VU shift = hn::Min(dropped, hn::Set(d, kLimit));
  const VU low = hn::Sub(hn::Shl(one, shift), one);
  const VU binade = hn::ShiftLeftSame(hn::Sub(grid, c.least_exponent), c.fraction_bits);
  VU shifted = significand;
  if constexpr (kPath == Path::sr) shifted = hn::Shr(significand, hn::Min(hn::Sub(dropped, shift), hn::Set(d, 31)));
  const VU sum = hn::Add(shifted, addend<kPath>(c, bits, significand, shift, low, binade, hash));
  return {hn::Add(hn::Shr(sum, shift), binade), hn::Ne(hn::And(significand, low), hn::Zero(d))};
}

template <Path kPath>
HWY_INLINE Magnitudes magnitudes(const LaneConstants& c, VU bits, std::size_t position) {
  if constexpr (kPath == Path::magic) return magic_magnitude(c, bits);
  if constexpr (kPath == Path::fixed_shift) return fixed_shift_magnitude(c, bits);
  if constexpr (kPath == Path::sr) return shifted_magnitude<kPath>(c, bits, hash_lanes(c, position));
  return shifted_magnitude<kPath>(c, bits, bits);
}

struct Tally {
  std::uint64_t nan = 0, infinity = 0, overflow = 0, saturated = 0, inexact = 0;
  std::uint64_t zero = 0, zero_in = 0, below_normal = 0;  // by magnitude code; zero_in by input
};

/// A 32-bit vector of one constant or another by the sign of `bits`.
HWY_INLINE VU by_sign(VU bits, const std::uint32_t (&values)[2]) {
  const DU d;
  const auto negative = hn::MaskFromVec(hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(DI(), bits))));
  return hn::IfThenElse(negative, hn::Set(d, values[1]), hn::Set(d, values[0]));
}

/// The binary32 bits of magnitude codes. Subnormals of the format get the least normal's exponent and lose its hidden
/// bit by subtraction: never a binary32 subnormal in arithmetic, which costs some CPUs a hundred cycles.
HWY_INLINE VU value_bits(const RoundParameters& p, VU code, MU below_normal) {
  const DU d;
  const DF df;
  const VU placed = hn::ShiftLeftSame(code, 23 - p.fraction_bits);
  if (p.least_exponent == 1) return placed;
  const VU least = hn::Set(d, static_cast<std::uint32_t>(p.least_exponent) << 23);
  const VU normal = hn::Add(placed, hn::Sub(least, hn::Set(d, std::uint32_t{1} << 23)));
  const auto below = hn::Sub(hn::BitCast(df, hn::Add(placed, least)), hn::BitCast(df, least));
  return hn::IfThenElse(below_normal, hn::BitCast(d, below), normal);
}

/// Signed codes (or value bits) of one vector in 32-bit lanes, everything counted: the slow, complete way.
template <bool kValues>
HWY_INLINE VU finish_lanes(const RoundParameters& p, VU bits, Magnitudes m, Tally& tally) {
  const DU d;
  const VU magnitude = hn::And(bits, hn::Set(d, kMagnitudeBits));
  const VU zero = hn::Zero(d);
  const MU is_zero = hn::Eq(m.code, zero);
  tally.zero += hn::CountTrue(d, is_zero);
  tally.zero_in += hn::CountTrue(d, hn::Eq(magnitude, zero));
  const MU below_normal = hn::Lt(m.code, hn::Set(d, std::uint32_t{1} << p.fraction_bits));
  tally.below_normal += hn::CountTrue(d, below_normal);
  const VU raw_sign = hn::And(bits, hn::Set(d, ~kMagnitudeBits));
  VU sign = hn::ShiftRightSame(raw_sign, p.sign_shift);
  if (!p.negative_zero) sign = hn::IfThenZeroElse(is_zero, sign);
  const VU body = kValues ? value_bits(p, m.code, below_normal) : m.code;
  VU code = hn::Or(body, sign);
  MU inexact = m.inexact;
  const MU beyond = hn::Gt(m.code, hn::Set(d, p.max_code));
  if (HWY_UNLIKELY(!hn::AllFalse(d, beyond))) {
    const VU infinite_bits = hn::Set(d, kExponentBits);
    const MU is_nan = hn::Gt(magnitude, infinite_bits);
    const MU is_infinite = hn::Eq(magnitude, infinite_bits);
    const MU finite = hn::Lt(magnitude, infinite_bits);
    const MU finite_beyond = hn::And(beyond, finite);
    tally.nan += hn::CountTrue(d, is_nan);
    const std::size_t infinities = hn::CountTrue(d, is_infinite);
    tally.infinity += infinities;
    tally.overflow += hn::CountTrue(d, finite_beyond);
    if (p.infinity_saturates) tally.saturated += infinities;
    const MU negative = hn::Ne(raw_sign, zero);
    if (p.overflow_saturates[0]) tally.saturated += hn::CountTrue(d, hn::AndNot(negative, finite_beyond));
    if (p.overflow_saturates[1]) tally.saturated += hn::CountTrue(d, hn::And(negative, finite_beyond));
    inexact = hn::And(hn::Or(inexact, beyond), finite);
    code = hn::IfThenElse(beyond, by_sign(bits, p.overflow_code), code);
    code = hn::IfThenElse(is_infinite, by_sign(bits, p.infinity_result), code);
    code = hn::IfThenElse(is_nan, by_sign(bits, p.nan_result), code);
  }
  tally.inexact += hn::CountTrue(d, inexact);
  return code;
}

/// Writes 32-bit lanes as the output's code type.
template <class T>
HWY_INLINE void store_lanes(VU lanes, T* output) {
  if constexpr (sizeof(T) == 4) {
    hn::StoreU(lanes, DU(), reinterpret_cast<std::uint32_t*>(output));
  } else {
    const hn::Rebind<T, DU> narrow;
    hn::StoreU(hn::TruncateTo(narrow, lanes), narrow, output);
  }
}

/// Adds what was tallied over `elements` to counters.
HWY_INLINE void add_tally(const Tally& tally, std::size_t elements, bool nan_is_lost, Counters& counters) {
  counters.elements += elements;
  counters.nan_in += tally.nan;
  counters.infinity_in += tally.infinity;
  counters.overflow += tally.overflow;
  counters.underflow_to_zero += tally.zero - tally.zero_in;
  counters.subnormal += tally.below_normal - tally.zero;
  counters.saturated += tally.saturated;
  counters.inexact += tally.inexact;
  if (nan_is_lost) counters.nan_lost += tally.nan;
}

}  // namespace HWY_NAMESPACE
}  // namespace plumbline::numerics
HWY_AFTER_NAMESPACE();
#endif  // PLUMBLINE_ROUND_LANES_INL_H_
