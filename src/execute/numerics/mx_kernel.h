#pragma once
// The boundary between mx.cc and the SIMD kernels of block formats.
#include "execute/numerics/mx.h"
#include "execute/numerics/round_kernel.h"

namespace plumbline::numerics {

/// What the scale of a block depends on.
struct ScaleParameters {
  ScaleRule rule;
  int max_exponent;               ///< floor(log2(largest element))
  std::uint32_t max_significand;  ///< of the largest element, 24 bits with the leading one
  bool twos_complement;           ///< how codes are written
};
[[nodiscard]] ScaleParameters make_scale_parameters(const MxElement& element, ScaleRule rule);

/// The scale byte; see mx_scale().
[[nodiscard]] std::uint8_t scale_of_largest(std::uint32_t largest_bits, const ScaleParameters& parameters);

/// Quantizes `blocks` full MX blocks whose elements lie in one key block, the first at parameters.first_offset. Blocks
/// that need the scalar rule (NaN or Inf inside, scales that reach binary32's subnormals) are given to `scalar`.
struct MxRun {
  const float* values;
  std::size_t blocks;
  std::uint8_t* scales;
  std::uint8_t* codes;
};
using ScalarBlock = void (*)(void* context, std::size_t block);
void run_mx_kernel(const MxRun& run, const RoundParameters& parameters, const ScaleParameters& scale,
                   ScalarBlock scalar, void* context, Counters& counters);

/// The same for NVFP4 blocks of 16 and a given tensor scale; `scale` says how E4M3 scales are rounded.
void run_nvfp4_kernel(const MxRun& run, float tensor_scale, const RoundParameters& parameters,
                      const RoundParameters& scale, ScalarBlock scalar, void* context, Counters& counters);
inline constexpr std::uint8_t kNvfp4One = 0x38;  ///< 1.0 in E4M3: the scale of an all-zero block
/// The block scale code of NVFP4 from the block's largest magnitude (finite).
[[nodiscard]] std::uint8_t nvfp4_scale(float largest, float tensor_scale);

/// Largest binary32 magnitude bits below Inf, NaN and Inf ignored.
[[nodiscard]] std::uint32_t largest_finite_bits(const float* values, std::size_t count);

}  // namespace plumbline::numerics
