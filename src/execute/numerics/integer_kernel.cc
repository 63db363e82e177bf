#include "execute/numerics/integer_kernel.h"

#include <algorithm>
#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execute/numerics/integer_kernel.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "execute/numerics/round_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumbline::numerics {
namespace HWY_NAMESPACE {

using VF = hn::Vec<DF>;
using MF = hn::Mask<DF>;

struct IntegerLanes {
  explicit HWY_INLINE IntegerLanes(const IntegerRun& run)
      : scale(hn::Set(DF(), run.scale)),
        least(hn::Set(DF(), static_cast<float>(run.low - run.zero))),
        greatest(hn::Set(DF(), static_cast<float>(run.high - run.zero))),
        zero(hn::Set(DI(), run.zero)),
        hash_start(hn::Add(hn::Mul(hn::Iota(DU(), 0), hn::Set(DU(), kHashStep)),
                           hn::Set(DU(), run.first_offset * kHashStep + run.key.add))),
        hash_key(hn::Set(DU(), run.key.exclusive_or)) {}
  VF scale;
  VF least;
  VF greatest;
  hn::Vec<DI> zero;
  VU hash_start;
  VU hash_key;
};

struct IntegerTally {
  std::uint64_t nan = 0, infinity = 0, beyond = 0, inexact = 0, underflow = 0;
};

/// The magnitude floor(u) plus one where the discarded fraction says so; u < 2^23, else u is an integer already.
template <Path kPath>
HWY_INLINE VF round_magnitude(const IntegerLanes& c, const IntegerRun& run, VF u, std::size_t position) {
  const DF df;
  const VF floor = hn::Floor(u);
  const VF fraction = hn::Sub(u, floor);
  const VF one = hn::Set(df, 1.0F);
  if constexpr (kPath == Path::rna) {
    return hn::Add(floor, hn::IfThenElseZero(hn::Ge(fraction, hn::Set(df, 0.5F)), one));
  } else {
    const DU d;
    const VF scaled =
        hn::Floor(hn::Mul(fraction, hn::Set(df, static_cast<float>(std::uint32_t{1} << run.random_bits))));
    const VU drawn = hn::ShiftRightSame(hash_lanes(c, position), 32 - run.random_bits);
    const VU sum = hn::Add(hn::BitCast(d, hn::ConvertTo(DI(), scaled)), drawn);
    const MU away = hn::Gt(sum, hn::Set(d, (std::uint32_t{1} << run.random_bits) - 1));
    return hn::Add(floor, hn::IfThenElseZero(hn::RebindMask(df, away), one));
  }
}

template <Path kPath>
HWY_INLINE VF to_integer(const IntegerLanes& c, const IntegerRun& run, VF quotient, std::size_t position) {
  if constexpr (kPath == Path::rne) return hn::Round(quotient);
  if constexpr (kPath == Path::rtz) return hn::Trunc(quotient);
  if constexpr (kPath == Path::ru) return hn::Ceil(quotient);
  if constexpr (kPath == Path::rd) return hn::Floor(quotient);
  if constexpr (kPath == Path::rna || kPath == Path::sr) {
    const VF u = hn::Min(hn::Abs(quotient), hn::Set(DF(), 0x1p23F));  // beyond every code: clamped later
    return hn::CopySign(round_magnitude<kPath>(c, run, u, position), quotient);
  }
}

/// Codes of one vector, in 32-bit lanes.
template <Path kPath>
HWY_INLINE VU quantize_lanes(const IntegerLanes& c, const IntegerRun& run, VF value, std::size_t position,
                             IntegerTally& tally) {
  const DU d;
  const DF df;
  const VF zero = hn::Zero(df);
  const VF infinity = hn::BitCast(df, hn::Set(d, kExponentBits));
  const MF is_number = hn::Eq(value, value);
  const MF is_infinite = hn::Eq(hn::Abs(value), infinity);
  const VF quotient = hn::Div(value, c.scale);
  const VF rounded = to_integer<kPath>(c, run, quotient, position);
  // Clamping first keeps the conversion to int32 in range; NaN lanes take 0, the zero point.
  const VF clamped = hn::IfThenElseZero(is_number, hn::Min(hn::Max(rounded, c.least), c.greatest));
  const MF beyond = hn::Or(hn::Lt(rounded, c.least), hn::Gt(rounded, c.greatest));
  const MF finite_beyond = hn::AndNot(is_infinite, hn::And(beyond, is_number));
  const MF vanished = hn::And(hn::And(hn::Eq(rounded, zero), hn::Ne(value, zero)), is_number);
  const MF inexact = hn::And(hn::Or(hn::Or(hn::Ne(rounded, quotient), beyond), vanished),
                             hn::And(is_number, hn::Ne(hn::Abs(value), infinity)));
  tally.nan += hn::Lanes(df) - hn::CountTrue(df, is_number);
  tally.infinity += hn::CountTrue(df, is_infinite);
  tally.beyond += hn::CountTrue(df, finite_beyond);
  tally.underflow += hn::CountTrue(df, vanished);
  tally.inexact += hn::CountTrue(df, inexact);
  return hn::BitCast(d, hn::Add(hn::ConvertTo(DI(), clamped), c.zero));
}

template <Path kPath>
HWY_NOINLINE void quantize_path(const IntegerRun& run, Counters& counters) {
  const DF df;
  const IntegerLanes c(run);
  IntegerTally tally;
  const std::size_t lanes = hn::Lanes(df);
  std::size_t i = 0;
  for (; i + lanes <= run.count; i += lanes) {
    store_lanes(quantize_lanes<kPath>(c, run, hn::LoadU(df, run.values + i), i, tally), run.codes + i);
  }
  if (i < run.count) {
    HWY_ALIGN float padded[hn::MaxLanes(DF())] = {};  // zeros count as nothing
    HWY_ALIGN std::uint32_t codes[hn::MaxLanes(DU())];
    std::memcpy(padded, run.values + i, (run.count - i) * sizeof(float));
    hn::Store(quantize_lanes<kPath>(c, run, hn::Load(df, padded), i, tally), DU(), codes);
    for (std::size_t k = i; k < run.count; ++k) run.codes[k] = static_cast<std::uint8_t>(codes[k - i]);
  }
  counters.elements += run.count;
  counters.nan_in += tally.nan;
  counters.nan_lost += tally.nan;
  counters.infinity_in += tally.infinity;
  counters.overflow += tally.beyond;
  counters.saturated += tally.beyond + tally.infinity;
  counters.underflow_to_zero += tally.underflow;
  counters.inexact += tally.inexact;
}

void quantize_run(const IntegerRun& run, Counters& counters) {
  switch (run.rounding) {
    case Rounding::rne:
      return quantize_path<Path::rne>(run, counters);
    case Rounding::rtz:
      return quantize_path<Path::rtz>(run, counters);
    case Rounding::ru:
      return quantize_path<Path::ru>(run, counters);
    case Rounding::rd:
      return quantize_path<Path::rd>(run, counters);
    case Rounding::rna:
      return quantize_path<Path::rna>(run, counters);
    case Rounding::sr:
      return quantize_path<Path::sr>(run, counters);
  }
}

Extremes extremes_of(const float* values, std::size_t count) {
  const DF df;
  const VF infinity = hn::BitCast(df, hn::Set(DU(), kExponentBits));
  VF least = hn::Zero(df);
  VF greatest = hn::Zero(df);
  std::size_t i = 0;
  for (; i + hn::Lanes(df) <= count; i += hn::Lanes(df)) {
    const VF value = hn::LoadU(df, values + i);
    const VF finite = hn::IfThenElseZero(hn::Lt(hn::Abs(value), infinity), value);
    least = hn::Min(least, finite);
    greatest = hn::Max(greatest, finite);
  }
  Extremes result{hn::GetLane(hn::MinOfLanes(df, least)), hn::GetLane(hn::MaxOfLanes(df, greatest))};
  for (; i < count; ++i) {
    if ((std::bit_cast<std::uint32_t>(values[i]) & kMagnitudeBits) >= kExponentBits) continue;
    result.least = std::min(result.least, values[i]);
    result.greatest = std::max(result.greatest, values[i]);
  }
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace plumbline::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumbline::numerics {

HWY_EXPORT(quantize_run);
HWY_EXPORT(extremes_of);

void run_integer_kernel(const IntegerRun& run, Counters& counters) {
  HWY_DYNAMIC_DISPATCH(quantize_run)(run, counters);
}

Extremes finite_extremes(const float* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(extremes_of)(values, count);
}

}  // namespace plumbline::numerics
#endif  // HWY_ONCE
