// All 2^32 binary32 inputs against the scalar rule: nearest-even is in the slow set, the other modes run nightly.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>

#include "core/parallel.h"
#include "execute/numerics/round.h"

namespace plumbline::numerics {
namespace {

constexpr std::uint64_t kInputs = std::uint64_t{1} << 32;
constexpr std::size_t kBlock = std::size_t{1} << 20;
constexpr unsigned kThreads = 2;

/// Calls check(first bits, floats) for every block of consecutive bit patterns; stops at the first failing one.
template <class Check>
void for_all_inputs(const Check& check) {
  std::atomic<bool> failed{false};
  parallel_for(kInputs / kBlock, kThreads, [&](std::size_t block) {
    if (failed) return;
    std::vector<float> inputs(kBlock);
    for (std::size_t i = 0; i < kBlock; ++i) {
      inputs[i] = std::bit_cast<float>(static_cast<std::uint32_t>(block * kBlock + i));
    }
    if (!check(inputs)) failed = true;
  });
  EXPECT_FALSE(failed);
}

void expect_rule_everywhere(const RoundSpec& spec) {
  std::mutex mutex;
  for_all_inputs([&](const std::vector<float>& inputs) {
    std::vector<std::uint8_t> codes(kBlock);
    const Counters counters = round_to_codes(inputs, spec, codes.data());
    Counters judge;
    for (std::size_t i = 0; i < kBlock; ++i) {
      const Encoded encoded = encode(inputs[i], spec.format, spec.rounding, spec.saturation);
      judge.add(encoded.flags);
      if (codes[i] != encoded.code) {
        const std::lock_guard lock(mutex);
        ADD_FAILURE() << spec.format.name << " " << to_string(spec.rounding) << " input "
                      << std::bit_cast<std::uint32_t>(inputs[i]) << ": kernel " << int{codes[i]} << ", rule "
                      << encoded.code;
        return false;
      }
    }
    const std::lock_guard lock(mutex);
    EXPECT_EQ(counters, judge) << spec.format.name << " block at " << std::bit_cast<std::uint32_t>(inputs[0]);
    return counters == judge;
  });
}

std::vector<Format> byte_formats() {
  std::vector<Format> formats;
  for (const Format& format : builtin_formats()) {
    if (format.bits() <= 8 && format.has_zero) formats.push_back(format);  // E8M0 has no kernel: it is the rule itself
  }
  return formats;
}

TEST(Exhaustive, NearestEvenToEveryByteFormatEqualsTheRule) {
  for (const Format& format : byte_formats()) expect_rule_everywhere({format, Rounding::rne, Saturation::off});
}

#ifdef __FLT16_MANT_DIG__
TEST(Exhaustive, Binary16EqualsTheCompilersOwnConversion) {
  std::mutex mutex;
  for_all_inputs([&](const std::vector<float>& inputs) {
    std::vector<std::uint16_t> codes(kBlock);
    round_to_codes(inputs, {builtin_format("binary16"), Rounding::rne, Saturation::off}, codes.data());
    for (std::size_t i = 0; i < kBlock; ++i) {
      const auto half = std::bit_cast<std::uint16_t>(static_cast<_Float16>(inputs[i]));
      const bool nan = std::isnan(inputs[i]) && (codes[i] & 0x7FFFU) > 0x7C00U && (half & 0x7FFFU) > 0x7C00U;
      if (codes[i] != half && !nan) {
        const std::lock_guard lock(mutex);
        ADD_FAILURE() << std::hexfloat << inputs[i] << ": kernel " << codes[i] << ", compiler " << half;
        return false;
      }
    }
    return true;
  });
}
#endif

TEST(Exhaustive, DISABLED_OtherModesToEveryByteFormatEqualTheRule) {
  for (const Rounding rounding : {Rounding::rtz, Rounding::ru, Rounding::rd, Rounding::rna}) {
    for (const Format& format : byte_formats()) expect_rule_everywhere({format, rounding, Saturation::off});
  }
}

}  // namespace
}  // namespace plumbline::numerics
