#include "execute/numerics/mx_kernel.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execute/numerics/mx_kernel.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "execute/numerics/round_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumbline::numerics {
namespace HWY_NAMESPACE {

HWY_INLINE std::uint32_t largest_bits(const std::uint32_t* bits, std::size_t count) {
  const DU d;
  VU largest = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    largest = hn::Max(largest, hn::And(hn::LoadU(d, bits + i), hn::Set(d, kMagnitudeBits)));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

template <Path kPath>
void mx_blocks(const MxRun& run, const RoundParameters& p, const ScaleParameters& scale, ScalarBlock scalar,
               void* context, Counters& counters) {
  const DU d;
  LaneConstants c(p);
  Tally tally;
  std::size_t elements = 0;
  const auto* bits = reinterpret_cast<const std::uint32_t*>(run.values);
  for (std::size_t block = 0; block < run.blocks; ++block) {
    const std::size_t first = block * kMxBlock;
    const std::uint32_t largest = largest_bits(bits + first, kMxBlock);
    const std::uint8_t code = scale_of_largest(largest, scale);
    // Dividing by the scale moves the exponent at which the element format's normals begin; nothing is rounded twice.
    int least_exponent = p.least_exponent + code - 127;
    if (largest == 0) least_exponent = std::max(least_exponent, 1);  // zeros at any exponent
    if (code == 0xFF || least_exponent < 1) {
      scalar(context, block);
      continue;
    }
    run.scales[block] = code;
    c.least_exponent = hn::Set(d, static_cast<std::uint32_t>(least_exponent));
    for (std::size_t i = first; i < first + kMxBlock; i += hn::Lanes(d)) {
      const VU v = hn::LoadU(d, bits + i);
      VU lanes = finish_lanes<false>(p, v, magnitudes<kPath>(c, v, i), tally);
      if (scale.twos_complement) {
        const VU negated = hn::Sub(hn::Set(d, 256), hn::And(lanes, hn::Set(d, 0x7F)));
        lanes = hn::IfThenElse(hn::Gt(lanes, hn::Set(d, 0x7F)), negated, lanes);
      }
      store_lanes(lanes, run.codes + i);
    }
    elements += kMxBlock;
  }
  add_tally(tally, elements, p.nan_is_lost, counters);
}

void mx_run(const MxRun& run, const RoundParameters& p, const ScaleParameters& scale, ScalarBlock scalar, void* context,
            Counters& counters) {
  switch (p.rounding) {
    case Rounding::rne:
      return mx_blocks<Path::rne>(run, p, scale, scalar, context, counters);
    case Rounding::rtz:
      return mx_blocks<Path::rtz>(run, p, scale, scalar, context, counters);
    case Rounding::ru:
      return mx_blocks<Path::ru>(run, p, scale, scalar, context, counters);
    case Rounding::rd:
      return mx_blocks<Path::rd>(run, p, scale, scalar, context, counters);
    case Rounding::rna:
      return mx_blocks<Path::rna>(run, p, scale, scalar, context, counters);
    case Rounding::sr:
      return mx_blocks<Path::sr>(run, p, scale, scalar, context, counters);
  }
}

constexpr std::size_t kScaleBatch = 64;  // blocks whose scales are found together; a multiple of every vector's lanes

/// Largest magnitudes and E4M3 scale codes of up to kScaleBatch blocks. `largest` and `codes` hold kScaleBatch entries.
HWY_INLINE void nvfp4_scales(const std::uint32_t* bits, std::size_t blocks, float tensor_scale,
                             const RoundParameters& e4m3, std::uint32_t* largest, std::uint32_t* codes) {
  const DU d;
  const DF df;
  const LaneConstants c(e4m3);
  for (std::size_t b = 0; b < blocks; ++b) largest[b] = largest_bits(bits + b * kNvfp4Block, kNvfp4Block);
  Tally unused;
  const auto divisor = hn::Set(df, 6.0F * tensor_scale);
  for (std::size_t b = 0; b < blocks; b += hn::Lanes(d)) {
    const VU magnitude = hn::LoadU(d, largest + b);
    const VU ratio = hn::BitCast(d, hn::Div(hn::BitCast(df, magnitude), divisor));
    const VU code = finish_lanes<false>(e4m3, ratio, magnitudes<Path::rne>(c, ratio, 0), unused);
    hn::StoreU(hn::IfThenElse(hn::Eq(magnitude, hn::Zero(d)), hn::Set(d, kNvfp4One), code), d, codes + b);
  }
}

/// A block whose scale became zero: all elements are zero, the nonzero ones lost.
HWY_INLINE void lose_block(const std::uint32_t* bits, std::uint8_t* codes, Tally& tally) {
  const DU d;
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < kNvfp4Block; i += hn::Lanes(d)) {
    const VU magnitude = hn::And(hn::LoadU(d, bits + i), hn::Set(d, kMagnitudeBits));
    zeros += hn::CountTrue(d, hn::Eq(magnitude, hn::Zero(d)));
  }
  std::memset(codes, 0, kNvfp4Block);
  tally.zero += kNvfp4Block;
  tally.below_normal += kNvfp4Block;
  tally.zero_in += zeros;
  tally.inexact += kNvfp4Block - zeros;
}

template <Path kPath>
void nvfp4_blocks(const MxRun& run, float tensor_scale, const RoundParameters& p, const RoundParameters& e4m3,
                  ScalarBlock scalar, void* context, Counters& counters) {
  const DU d;
  const DF df;
  const LaneConstants c(p);
  Tally tally;
  std::size_t elements = 0;
  float scales[256];
  for (std::uint32_t code = 0; code < 256; ++code) {
    scales[code] = static_cast<float>(decode(code, builtin_format("e4m3fn"))) * tensor_scale;
  }
  const auto* bits = reinterpret_cast<const std::uint32_t*>(run.values);
  std::uint32_t largest[kScaleBatch] = {};
  std::uint32_t codes[kScaleBatch];
  for (std::size_t block = 0; block < run.blocks; ++block) {
    const std::size_t in_batch = block % kScaleBatch;
    const std::size_t first = block * kNvfp4Block;
    if (in_batch == 0) {
      const std::size_t batch = std::min(kScaleBatch, run.blocks - block);
      nvfp4_scales(bits + first, batch, tensor_scale, e4m3, largest, codes);
    }
    const float scale = scales[codes[in_batch]];
    if (largest[in_batch] >= kExponentBits) {
      scalar(context, block);
      continue;
    }
    run.scales[block] = static_cast<std::uint8_t>(codes[in_batch]);
    elements += kNvfp4Block;
    if (scale == 0) {
      lose_block(bits + first, run.codes + first, tally);
      continue;
    }
    const auto divisor = hn::Set(df, scale);
    for (std::size_t i = first; i < first + kNvfp4Block; i += hn::Lanes(d)) {
      const VU v = hn::LoadU(d, bits + i);
      const VU quotient = hn::BitCast(d, hn::Div(hn::BitCast(df, v), divisor));
      store_lanes(finish_lanes<false>(p, quotient, magnitudes<kPath>(c, quotient, i), tally), run.codes + i);
      // A quotient that vanished: nonzero going in, zero coming out.
      const VU magnitudes_in = hn::And(v, hn::Set(d, kMagnitudeBits));
      const VU magnitudes_out = hn::And(quotient, hn::Set(d, kMagnitudeBits));
      const MU vanished = hn::AndNot(hn::Eq(magnitudes_in, hn::Zero(d)), hn::Eq(magnitudes_out, hn::Zero(d)));
      const std::size_t count = hn::CountTrue(d, vanished);
      tally.zero_in -= count;
      tally.inexact += count;
    }
  }
  add_tally(tally, elements, p.nan_is_lost, counters);
}

void nvfp4_run(const MxRun& run, float tensor_scale, const RoundParameters& p, const RoundParameters& e4m3,
               ScalarBlock scalar, void* context, Counters& counters) {
  switch (p.rounding) {
    case Rounding::rne:
      return nvfp4_blocks<Path::rne>(run, tensor_scale, p, e4m3, scalar, context, counters);
    case Rounding::rtz:
      return nvfp4_blocks<Path::rtz>(run, tensor_scale, p, e4m3, scalar, context, counters);
    case Rounding::ru:
      return nvfp4_blocks<Path::ru>(run, tensor_scale, p, e4m3, scalar, context, counters);
    case Rounding::rd:
      return nvfp4_blocks<Path::rd>(run, tensor_scale, p, e4m3, scalar, context, counters);
    case Rounding::rna:
      return nvfp4_blocks<Path::rna>(run, tensor_scale, p, e4m3, scalar, context, counters);
    case Rounding::sr:
      return nvfp4_blocks<Path::sr>(run, tensor_scale, p, e4m3, scalar, context, counters);
  }
}

std::uint32_t largest_finite(const float* values, std::size_t count) {
  const DU d;
  const auto* bits = reinterpret_cast<const std::uint32_t*>(values);
  VU largest = hn::Zero(d);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const VU magnitude = hn::And(hn::LoadU(d, bits + i), hn::Set(d, kMagnitudeBits));
    const MU finite = hn::Lt(magnitude, hn::Set(d, kExponentBits));
    largest = hn::Max(largest, hn::IfThenElseZero(finite, magnitude));
  }
  std::uint32_t result = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < count; ++i) {
    const std::uint32_t magnitude = bits[i] & kMagnitudeBits;
    if (magnitude < kExponentBits && magnitude > result) result = magnitude;
  }
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace plumbline::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumbline::numerics {

HWY_EXPORT(mx_run);
HWY_EXPORT(nvfp4_run);
HWY_EXPORT(largest_finite);

void run_mx_kernel(const MxRun& run, const RoundParameters& parameters, const ScaleParameters& scale,
                   ScalarBlock scalar, void* context, Counters& counters) {
  HWY_DYNAMIC_DISPATCH(mx_run)(run, parameters, scale, scalar, context, counters);
}

void run_nvfp4_kernel(const MxRun& run, float tensor_scale, const RoundParameters& parameters,
                      const RoundParameters& scale, ScalarBlock scalar, void* context, Counters& counters) {
  HWY_DYNAMIC_DISPATCH(nvfp4_run)(run, tensor_scale, parameters, scale, scalar, context, counters);
}

std::uint32_t largest_finite_bits(const float* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(largest_finite)(values, count);
}

}  // namespace plumbline::numerics
#endif  // HWY_ONCE
