#include "execute/numerics/round_kernel.h"

#include <hwy/cache_control.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstring>
#include <memory>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execute/numerics/round_kernel.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "execute/numerics/round_lanes-inl.h"

// Vectors of codes can be packed four to one where the packs of x86 exist; elsewhere each vector is narrowed alone.
#undef PLUMBLINE_PACKS
#define PLUMBLINE_PACKS (HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)

HWY_BEFORE_NAMESPACE();
namespace plumbline::numerics {
namespace HWY_NAMESPACE {

/// Counts by lane, each below 2^31 because a call rounds one chunk.
struct LaneTally {
  HWY_INLINE LaneTally()
      : inexact(hn::Zero(DU())), nonzero(inexact), nonzero_in(inexact), below_normal(inexact), vectors(0) {}
  VU inexact;
  VU nonzero;
  VU nonzero_in;
  VU below_normal;
  std::size_t vectors;

  HWY_INLINE void add_to(Tally& tally) const {
    const DU d;
    const auto sum = [&](VU lanes) { return std::uint64_t{hn::GetLane(hn::SumOfLanes(d, lanes))}; };
    const std::uint64_t elements = vectors * hn::Lanes(d);
    tally.inexact += sum(inexact);
    tally.zero += elements - sum(nonzero);
    tally.zero_in += elements - sum(nonzero_in);
    tally.below_normal += sum(below_normal);
  }
};

/// Paths that reach a value before its code.
constexpr bool has_values_in_hand(Path path) { return path == Path::magic || path == Path::fixed_shift; }

/// Values of one vector by these paths: only what lies beyond the largest one takes the
/// way over codes. Counts without masks and without a branch on what one vector in five may have: a wrong guess would
/// stop the loads that run ahead.
template <Path kPath>
HWY_INLINE VU round_to_value_bits(const LaneConstants& c, const RoundParameters& p, VU bits, LaneTally& lanes,
                                  Tally& tally) {
  const DU d;
  const DF df;
  const VU whole = hn::And(bits, hn::Set(d, kMagnitudeBits));
  VU magnitude = whole;
  VU value;
  if constexpr (kPath == Path::magic) {
    magnitude = hn::Min(whole, c.cap);
    const VU binade = hn::Max(hn::And(magnitude, hn::Set(d, kExponentBits)), c.least_bits);
    const auto magic = hn::BitCast(df, hn::Add(binade, c.magic_step));
    value = hn::BitCast(d, hn::Sub(hn::Add(hn::BitCast(df, magnitude), magic), magic));
  } else {
    const VU low = hn::Set(d, (std::uint32_t{1} << c.dropped_bits) - 1);
    const VU odd = hn::And(hn::ShiftRightSame(whole, c.dropped_bits), hn::Set(d, 1U));
    value = hn::AndNot(low, hn::Add(whole, hn::Add(odd, hn::ShiftRight<1>(low))));
  }
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Gt(value, c.largest_bits)))) {
    return finish_lanes<true>(p, bits, magnitudes<kPath>(c, bits, 0), tally);
  }
  const VU one = hn::Set(d, 1U);
  lanes.inexact = hn::Add(lanes.inexact, hn::Min(hn::Xor(value, magnitude), one));
  lanes.nonzero = hn::Add(lanes.nonzero, hn::Min(value, one));
  lanes.nonzero_in = hn::Add(lanes.nonzero_in, hn::Min(whole, one));
  lanes.below_normal = hn::Add(lanes.below_normal, hn::ShiftRight<31>(hn::Sub(value, c.least_bits)));
  ++lanes.vectors;
  VU sign = hn::AndNot(hn::Set(d, kMagnitudeBits), bits);
  if (!p.negative_zero) sign = hn::IfThenZeroElse(hn::Eq(value, hn::Zero(d)), sign);
  return hn::Or(value, sign);
}

/// Elements from `begin` on that do not fill a vector go through a padded one; padding is +0, which counts only as zero
/// and below normal.
template <Path kPath, class T, bool kValues>
HWY_INLINE void round_few(const LaneConstants& c, const RoundParameters& p, const float* input, std::size_t begin,
                          std::size_t count, T* output, Tally& tally) {
  const DU d;
  HWY_ALIGN std::uint32_t padded[hn::MaxLanes(DU())] = {};
  std::memcpy(padded, input + begin, count * sizeof(float));
  const VU bits = hn::Load(d, padded);
  hn::Store(finish_lanes<kValues>(p, bits, magnitudes<kPath>(c, bits, begin), tally), d, padded);
  for (std::size_t k = 0; k < count; ++k) {
    if constexpr (kValues) {
      std::memcpy(output + begin + k, padded + k, sizeof(float));
    } else {
      output[begin + k] = static_cast<T>(padded[k]);
    }
  }
  tally.zero -= hn::Lanes(d) - count;
  tally.zero_in -= hn::Lanes(d) - count;
  tally.below_normal -= hn::Lanes(d) - count;
}

/// Values of a tensor beyond the caches: written past them, so that no line is read only to be replaced. Returns the
/// elements done.
template <Path kPath>
HWY_INLINE std::size_t stream_values(const LaneConstants& c, const RoundParameters& p, const float* input,
                                     std::size_t count, float* output, Tally& tally) {
  const DU d;
  const std::size_t lanes = hn::Lanes(d);
  void* aligned = output;
  std::size_t space = count * sizeof(float);
  const bool any = std::align(lanes * sizeof(float), lanes * sizeof(float), aligned, space) != nullptr;
  std::size_t i = any ? static_cast<std::size_t>(static_cast<float*>(aligned) - output) : std::min(count, lanes - 1);
  if (i != 0) round_few<kPath, float, true>(c, p, input, 0, i, output, tally);
  LaneTally counts;
  for (; i + lanes <= count; i += lanes) {
    const VU bits = hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(input) + i);
    VU value;
    if constexpr (has_values_in_hand(kPath)) {
      value = round_to_value_bits<kPath>(c, p, bits, counts, tally);
    } else {
      value = finish_lanes<true>(p, bits, magnitudes<kPath>(c, bits, i), tally);
    }
    hn::Stream(value, d, reinterpret_cast<std::uint32_t*>(output) + i);
  }
  hwy::FlushStream();
  counts.add_to(tally);
  return i;
}

template <Path kPath, class T, bool kValues>
HWY_INLINE void round_lanes(const LaneConstants& c, const RoundParameters& p, const float* input, std::size_t position,
                            T* output, LaneTally& counts, Tally& tally) {
  const VU bits = hn::LoadU(DU(), reinterpret_cast<const std::uint32_t*>(input) + position);
  if constexpr (kValues && has_values_in_hand(kPath)) {
    return store_lanes(round_to_value_bits<kPath>(c, p, bits, counts, tally), output + position);
  }
  store_lanes(finish_lanes<kValues>(p, bits, magnitudes<kPath>(c, bits, position), tally), output + position);
}

#if PLUMBLINE_PACKS
using DN16 = hn::Repartition<std::uint16_t, DU>;
using DN8 = hn::Repartition<std::uint8_t, DU>;

// In-block packs: 32 to 16 bits and 16 to 8 bits, by unsigned or signed saturation.
#if HWY_TARGET == HWY_AVX3
#define PLUMBLINE_PACK(name, a, b) _mm512_##name(a, b)
#elif HWY_TARGET == HWY_AVX2
#define PLUMBLINE_PACK(name, a, b) _mm256_##name(a, b)
#else
#define PLUMBLINE_PACK(name, a, b) _mm_##name(a, b)
#endif

/// Undoes the per-block interleaving of packed vectors: lane j kFrom + i holds what belongs at i kBlocks + j.
template <int kFrom>
HWY_INLINE VU in_order(VU packed) {
  constexpr int kBlocks = static_cast<int>(hn::MaxLanes(DU())) / 4;
  if constexpr (kBlocks == 1) {
    return packed;
  } else {
    alignas(64) static constexpr auto kTable = [] {
      struct {
        std::int32_t lane[kBlocks * 4];
      } table{};
      constexpr int kPiece = 4 / kFrom;  // 32-bit lanes per source and block
      for (int i = 0; i < kFrom; ++i) {
        for (int j = 0; j < kBlocks; ++j) {
          for (int k = 0; k < kPiece; ++k) table.lane[(i * kBlocks + j) * kPiece + k] = (j * kFrom + i) * kPiece + k;
        }
      }
      return table;
    }();
    return hn::TableLookupLanes(packed, hn::SetTableIndices(DU(), kTable.lane));
  }
}

HWY_INLINE hn::Vec<DN16> pack_magnitudes(const VU (&v)[2]) {
  return hn::BitCast(DN16(), in_order<2>(VU{PLUMBLINE_PACK(packus_epi32, v[0].raw, v[1].raw)}));
}
HWY_INLINE hn::Vec<DN16> pack_signs(const VU (&v)[2]) {
  return hn::BitCast(DN16(), in_order<2>(VU{PLUMBLINE_PACK(packs_epi32, v[0].raw, v[1].raw)}));
}
HWY_INLINE hn::Vec<DN8> pack_magnitudes(const VU (&v)[4]) {
  const auto a = PLUMBLINE_PACK(packs_epi32, v[0].raw, v[1].raw);
  const auto b = PLUMBLINE_PACK(packs_epi32, v[2].raw, v[3].raw);
  return hn::BitCast(DN8(), in_order<4>(VU{PLUMBLINE_PACK(packus_epi16, a, b)}));
}
HWY_INLINE hn::Vec<DN8> pack_signs(const VU (&v)[4]) {
  const auto a = PLUMBLINE_PACK(packs_epi32, v[0].raw, v[1].raw);
  const auto b = PLUMBLINE_PACK(packs_epi32, v[2].raw, v[3].raw);
  return hn::BitCast(DN8(), in_order<4>(VU{PLUMBLINE_PACK(packs_epi16, a, b)}));
}

/// One full vector of codes from 4 / sizeof(T) vectors of inputs: selection and counting at the codes' own width.
template <Path kPath, class T>
HWY_INLINE void round_group(const LaneConstants& c, const RoundParameters& p, const float* input, std::size_t position,
                            T* output, Tally& tally) {
  constexpr int kVectors = 4 / sizeof(T);
  const DU d;
  const hn::Repartition<T, DU> dn;
  const std::size_t lanes = hn::Lanes(d);
  VU bits[kVectors];
  VU codes[kVectors];
  MU inexact[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    bits[i] = hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(input) + position + i * lanes);
    const Magnitudes m = magnitudes<kPath>(c, bits[i], position + i * lanes);
    codes[i] = m.code;
    inexact[i] = m.inexact;
  }
  const auto packed = pack_magnitudes(codes);
  if (HWY_UNLIKELY(!hn::AllFalse(dn, hn::Gt(packed, hn::Set(dn, static_cast<T>(p.max_code)))))) {
    for (int i = 0; i < kVectors; ++i) {
      store_lanes(finish_lanes<false>(p, bits[i], {codes[i], inexact[i]}, tally), output + position + i * lanes);
    }
    return;
  }
  const auto is_zero = hn::Eq(packed, hn::Zero(dn));
  tally.below_normal +=
      hn::CountTrue(dn, hn::Lt(packed, hn::Set(dn, static_cast<T>(std::uint32_t{1} << p.fraction_bits))));
  for (int i = 0; i < kVectors; ++i) tally.inexact += hn::CountTrue(d, inexact[i]);
  constexpr T kTop = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
  auto sign = hn::And(pack_signs(bits), hn::Set(dn, kTop));
  if (p.sign_bit != kTop) sign = hn::ShiftRightSame(sign, p.sign_shift - 8 * (4 - static_cast<int>(sizeof(T))));
  if (const std::size_t zeros = hn::CountTrue(dn, is_zero); zeros != 0) {
    tally.zero += zeros;
    const VU magnitude = hn::Set(d, kMagnitudeBits);
    for (int i = 0; i < kVectors; ++i) {
      tally.zero_in += hn::CountTrue(d, hn::Eq(hn::And(bits[i], magnitude), hn::Zero(d)));
    }
    if (!p.negative_zero) sign = hn::IfThenZeroElse(is_zero, sign);
  }
  hn::StoreU(hn::Or(packed, sign), dn, output + position);
}
#endif  // PLUMBLINE_PACKS

template <Path kPath, class T, bool kValues>
HWY_NOINLINE void round_all(const float* HWY_RESTRICT input, std::size_t count, const RoundParameters& p, T* output,
                            Tally& tally) {
  const DU d;
  const LaneConstants c(p);
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  if constexpr (kValues) {
    if (p.past_caches) i = stream_values<kPath>(c, p, input, count, output, tally);
  }
#if PLUMBLINE_PACKS
  if constexpr (sizeof(T) < 4) {
    const std::size_t group = lanes * (4 / sizeof(T));
    for (; i + group <= count; i += group) round_group<kPath>(c, p, input, i, output, tally);
  }
#endif
  LaneTally counts;
  for (; i + lanes <= count; i += lanes) round_lanes<kPath, T, kValues>(c, p, input, i, output, counts, tally);
  counts.add_to(tally);
  if (i == count) return;
  round_few<kPath, T, kValues>(c, p, input, i, count - i, output, tally);
}

template <class T, bool kValues>
void round_output(const float* input, std::size_t count, const RoundParameters& p, T* output, Tally& tally) {
  switch (p.rounding) {
    case Rounding::rne:
      if (p.least_exponent == 1 && p.fraction_bits > 0 && p.fraction_bits < 23) {
        return round_all<Path::fixed_shift, T, kValues>(input, count, p, output, tally);
      }
      if (p.magnitude_cap != 0) return round_all<Path::magic, T, kValues>(input, count, p, output, tally);
      return round_all<Path::rne, T, kValues>(input, count, p, output, tally);
    case Rounding::rtz:
      return round_all<Path::rtz, T, kValues>(input, count, p, output, tally);
    case Rounding::ru:
      return round_all<Path::ru, T, kValues>(input, count, p, output, tally);
    case Rounding::rd:
      return round_all<Path::rd, T, kValues>(input, count, p, output, tally);
    case Rounding::rna:
      return round_all<Path::rna, T, kValues>(input, count, p, output, tally);
    case Rounding::sr:
      return round_all<Path::sr, T, kValues>(input, count, p, output, tally);
  }
}

void round_chunk(const float* input, std::size_t count, const RoundParameters& p, void* output, Counters& counters) {
  Tally tally;
  switch (p.output) {
    case RoundOutput::byte_codes:
      round_output<std::uint8_t, false>(input, count, p, static_cast<std::uint8_t*>(output), tally);
      break;
    case RoundOutput::half_codes:
      round_output<std::uint16_t, false>(input, count, p, static_cast<std::uint16_t*>(output), tally);
      break;
    case RoundOutput::word_codes:
      round_output<std::uint32_t, false>(input, count, p, static_cast<std::uint32_t*>(output), tally);
      break;
    case RoundOutput::values:
      round_output<float, true>(input, count, p, static_cast<float*>(output), tally);
      break;
  }
  add_tally(tally, count, p.nan_is_lost, counters);
}

}  // namespace HWY_NAMESPACE
}  // namespace plumbline::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumbline::numerics {

HWY_EXPORT(round_chunk);

void run_round_kernel(const float* input, std::size_t count, const RoundParameters& parameters, void* output,
                      Counters& counters) {
  HWY_DYNAMIC_DISPATCH(round_chunk)(input, count, parameters, output, counters);
}

std::vector<std::int64_t> kernel_targets() {
  limit_kernels_to(0);
  std::vector<std::int64_t> targets;
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    targets.push_back(rest & -rest);
  }
  return targets;
}

void limit_kernels_to(std::int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

std::string kernel_target_name(std::int64_t target) { return hwy::TargetName(target); }

}  // namespace plumbline::numerics
#endif  // HWY_ONCE
