#pragma once
// Rounding of whole tensors to a format: run-time dispatched kernels, equal to the scalar rule, counters always on.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "execute/numerics/counters.h"
#include "execute/numerics/format.h"
#include "execute/numerics/stochastic.h"

namespace plumbline::numerics {

/// How a tensor is rounded. Saturation has no default: every caller says which policy it means.
struct RoundSpec {
  Format format;
  Rounding rounding = Rounding::rne;
  Saturation saturation;
  int random_bits = 16;  ///< of stochastic rounding, 1 to 31
  StochasticKey key{};   ///< of stochastic rounding
};

/// Rounds `input` to codes of format.code_bytes() each, written to `codes` (input.size() * code_bytes() bytes, aligned
/// to code_bytes()). The same bytes and counters at any thread count (0: all of the machine's) and on any instruction
/// set.
Counters round_to_codes(std::span<const float> input, const RoundSpec& spec, void* codes, unsigned threads = 1);

/// Rounds `input` to the nearest codes' values, written as binary32; `values` may be `input` itself. NaN lost by a
/// format without NaN becomes +0, as its code is.
Counters round_to_values(std::span<const float> input, const RoundSpec& spec, std::span<float> values,
                         unsigned threads = 1);

/// Counters by channel of a tensor [outer, channels, inner], which is rounded to values.
struct ChannelShape {
  std::size_t outer = 1;
  std::size_t channels = 1;
  std::size_t inner = 1;
};
std::vector<Counters> round_by_channel(std::span<const float> input, ChannelShape shape, const RoundSpec& spec,
                                       std::span<float> values, unsigned threads = 1);

/// The scalar rule over a tensor; the kernels' judge.
Counters round_to_codes_scalar(std::span<const float> input, const RoundSpec& spec, void* codes);

/// Values of codes as binary32 (exact).
void decode_to_values(const void* codes, const Format& format, std::span<float> values);

/// Inputs by binary32 exponent field: entry e counts |x| in [2^(e-127), 2^(e-126)); 0: zero and binary32 subnormals;
/// 255: Inf and NaN.
using ExponentHistogram = std::array<std::uint64_t, 256>;
[[nodiscard]] ExponentHistogram exponent_histogram(std::span<const float> input, unsigned threads = 1);

/// Elements of one unit of parallel work: 2^16 (256 KiB of binary32: within a core's L2).
inline constexpr std::size_t kChunkElements = std::size_t{1} << kKeyBlockBits;

}  // namespace plumbline::numerics
