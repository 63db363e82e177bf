#pragma once
// The boundary between round.cc and the SIMD kernels: plain numbers only, so that one .cc pays for Highway.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "execute/numerics/round.h"

namespace plumbline::numerics {

enum class RoundOutput : std::uint8_t { byte_codes, half_codes, word_codes, values };

/// A RoundSpec in the kernels' terms. `least_exponent` is the binary32 exponent field of the format's smallest normal.
struct RoundParameters {
  Rounding rounding;
  RoundOutput output;
  int fraction_bits;
  int least_exponent;
  std::uint32_t max_code;
  std::uint32_t max_value_bits;  ///< binary32 bits of the largest finite value
  bool past_caches;              ///< values are written past the caches
  std::uint32_t sign_bit;
  int sign_shift;                    ///< from bit 31 down to the sign bit
  bool negative_zero;                ///< whether the sign of a zero is kept
  std::uint32_t overflow_code[2];    ///< signed codes of finite overflow, by sign
  std::uint32_t infinity_result[2];  ///< signed codes of infinite inputs, by sign
  std::uint32_t nan_result[2];       ///< signed codes of NaN inputs, by sign
  bool overflow_saturates[2];
  bool infinity_saturates;
  bool nan_is_lost;
  std::uint32_t magnitude_cap;  ///< binary32 bits of a power of two that surely overflows; 0: magic path barred
  int random_bits;
  BlockKey key;
  std::uint32_t first_offset;  ///< of the first element within its key block
};

/// Whether the kernels serve this spec; otherwise the scalar rule does (E8M0).
[[nodiscard]] bool kernel_supports(const Format& format);
[[nodiscard]] RoundParameters make_parameters(const RoundSpec& spec, RoundOutput output);

/// Rounds at most kChunkElements elements that lie in one key block; adds to `counters` all fields.
void run_round_kernel(const float* input, std::size_t count, const RoundParameters& parameters, void* output,
                      Counters& counters);

/// The instruction sets compiled in and supported here, best last or first as Highway orders them.
[[nodiscard]] std::vector<std::int64_t> kernel_targets();
/// Limits every kernel of the process to one of kernel_targets(); 0 lifts the limit. For tests: not thread-safe.
void limit_kernels_to(std::int64_t target);
[[nodiscard]] std::string kernel_target_name(std::int64_t target);

}  // namespace plumbline::numerics
