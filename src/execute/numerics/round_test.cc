#include "execute/numerics/round.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/random.h"
#include "execute/numerics/round_kernel.h"

namespace plumbline::numerics {
namespace {

constexpr Rounding kAll[] = {Rounding::rne, Rounding::rtz, Rounding::ru, Rounding::rd, Rounding::rna, Rounding::sr};

std::vector<Format> all_formats() {
  std::vector<Format> formats = builtin_formats();
  const FormatRow rows[] = {
      {.name = "e3m0", .exponent_bits = 3, .fraction_bits = 0},
      {.name = "e1m6", .exponent_bits = 1, .fraction_bits = 6},
      {.name = "e7m0", .exponent_bits = 7, .fraction_bits = 0, .nan = NanEncoding::all_ones},
      {.name = "e5m10n",
       .exponent_bits = 5,
       .fraction_bits = 10},  // 16 bits, no specials: the largest code is all ones
      {.name = "e7m8", .exponent_bits = 7, .fraction_bits = 8, .has_infinity = true, .nan = NanEncoding::ieee},
      {.name = "e6m5z", .exponent_bits = 6, .fraction_bits = 5, .nan = NanEncoding::negative_zero},
      {.name = "e5m22", .exponent_bits = 5, .fraction_bits = 22, .has_infinity = true, .nan = NanEncoding::ieee},
      {.name = "e4m23", .exponent_bits = 4, .fraction_bits = 23},
      {.name = "e4m3b60", .exponent_bits = 4, .fraction_bits = 3, .bias = 100, .nan = NanEncoding::all_ones},
      {.name = "e4m3b0", .exponent_bits = 4, .fraction_bits = 3, .bias = 0},
  };
  for (const FormatRow& row : rows) formats.push_back(make_format(row).value());
  return formats;
}

/// Inputs where formats have their corners: codes' values, midpoints and neighbours, thresholds, specials, noise.
std::vector<float> hard_inputs(const Format& format, std::size_t noise) {
  std::vector<float> inputs;
  const RandomStream random(7, "round-test");
  const auto around = [&](double value) {
    const auto middle = static_cast<float>(value);
    for (const float v : {std::nextafter(middle, -INFINITY), middle, std::nextafter(middle, INFINITY)}) {
      inputs.push_back(v);
      inputs.push_back(-v);
    }
  };
  const std::uint32_t codes = std::min<std::uint32_t>(format.max_code(), 400);
  for (std::uint32_t i = 0; i <= codes; ++i) {
    const std::uint32_t code = codes < format.max_code() ? random.at(i) % format.max_code() : i;
    around(decode(code, format));
    if (code < format.max_code()) around((decode(code, format) + decode(code + 1, format)) / 2);
  }
  const double step = format.max_value() - decode(format.max_code() - 1, format);
  for (const double v : {0.0, 0.5, 1.0, 1.5, 2.0}) around(format.max_value() + v * step);
  for (const double v : {0.25, 0.5, 0.75, 0x1p-8, 0x1p-20, 0x1p-31, 0x1p-32, 0x1p-33, 0x1p-60}) {
    around(std::ldexp(v, format.min_positive_exponent()));
  }
  for (const std::uint32_t bits : {0U, 1U, 0x007FFFFFU, 0x00800000U, 0x7F7FFFFFU, 0x7F800000U, 0x7F800001U, 0x7FC00000U,
                                   0x7FFFFFFFU, 0x3F800000U}) {
    inputs.push_back(std::bit_cast<float>(bits));
    inputs.push_back(std::bit_cast<float>(bits | 0x80000000U));
  }
  for (std::size_t i = 0; i < noise; ++i) {
    const std::uint64_t draw = random.at(1000 + i);
    inputs.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(draw)));
    // Noise within the format's own range, where most codes are.
    const double unit = static_cast<double>(draw >> 32U) * 0x1p-31 - 1;
    inputs.push_back(static_cast<float>(unit * std::ldexp(1.0, static_cast<int>(draw % 24) - 12)));
  }
  return inputs;
}

std::string describe(const RoundSpec& spec) {
  return spec.format.name + " " + std::string(to_string(spec.rounding)) + " saturation " +
         std::string(to_string(spec.saturation)) + " bits " + std::to_string(spec.random_bits);
}

void expect_equal(const Counters& a, const Counters& b, const std::string& what) {
  EXPECT_EQ(a.elements, b.elements) << what;
  EXPECT_EQ(a.nan_in, b.nan_in) << what;
  EXPECT_EQ(a.infinity_in, b.infinity_in) << what;
  EXPECT_EQ(a.overflow, b.overflow) << what;
  EXPECT_EQ(a.underflow_to_zero, b.underflow_to_zero) << what;
  EXPECT_EQ(a.subnormal, b.subnormal) << what;
  EXPECT_EQ(a.saturated, b.saturated) << what;
  EXPECT_EQ(a.inexact, b.inexact) << what;
  EXPECT_EQ(a.nan_lost, b.nan_lost) << what;
  EXPECT_EQ(a.out_of_domain, b.out_of_domain) << what;
}

/// Codes and values of the kernels against the scalar rule, for a slice of `inputs` of awkward length.
void compare(const std::vector<float>& inputs, const RoundSpec& spec, const std::string& target) {
  const std::string what = target + ": " + describe(spec);
  const std::size_t bytes = inputs.size() * static_cast<std::size_t>(spec.format.code_bytes());
  std::vector<std::uint8_t> expected(bytes), codes(bytes);
  const Counters scalar = round_to_codes_scalar(inputs, spec, expected.data());
  expect_equal(round_to_codes(inputs, spec, codes.data()), scalar, what);
  if (codes != expected) {
    for (std::size_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(codes[i], expected[i]) << what << " byte " << i << " input " << std::hexfloat
                                       << inputs[i / static_cast<std::size_t>(spec.format.code_bytes())];
    }
  }
  std::vector<float> decoded(inputs.size()), values(inputs);
  decode_to_values(expected.data(), spec.format, decoded);
  expect_equal(round_to_values(values, spec, values), scalar, what + " values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(decoded[i]))
        << what << " value of " << std::hexfloat << inputs[i];
  }
}

class EveryTarget : public ::testing::Test {
 protected:
  void TearDown() override { limit_kernels_to(0); }
};

TEST_F(EveryTarget, EqualsTheScalarRuleInEveryFormatAndMode) {
  const auto targets = kernel_targets();
  ASSERT_FALSE(targets.empty());
  for (const std::int64_t target : targets) {
    limit_kernels_to(target);
    for (const Format& format : all_formats()) {
      std::vector<float> inputs = hard_inputs(format, 3000);
      inputs.resize(inputs.size() | 1);  // no multiple of any vector
      for (const Rounding rounding : kAll) {
        for (const Saturation saturation : {Saturation::off, Saturation::on}) {
          for (const int bits : {1, 8, 23, 31}) {
            if (rounding != Rounding::sr && bits != 8) continue;
            compare(inputs, {format, rounding, saturation, bits, {3, 4, 5, 0}}, kernel_target_name(target));
          }
        }
      }
    }
  }
}

TEST_F(EveryTarget, EqualsTheScalarRuleAtEveryShortLength) {
  for (const std::int64_t target : kernel_targets()) {
    limit_kernels_to(target);
    for (const char* name : {"e4m3fnuz", "binary16", "tf32"}) {
      const std::vector<float> inputs = hard_inputs(builtin_format(name), 100);
      for (std::size_t length = 0; length < 140; ++length) {
        const std::vector<float> slice(inputs.begin() + 11, inputs.begin() + 11 + static_cast<std::ptrdiff_t>(length));
        compare(slice, {builtin_format(name), Rounding::rne, Saturation::off}, kernel_target_name(target));
      }
    }
  }
}

TEST(Round, SameBytesAndCountersAtAnyThreadCountAndSlicing) {
  std::vector<float> inputs(5 * kChunkElements / 2 + 77);
  const RandomStream random(1, "threads");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = static_cast<float>(static_cast<double>(random.at(i) >> 11U) * 0x1p-50 - 4);
  }
  const RoundSpec spec{builtin_format("e2m1"), Rounding::sr, Saturation::on, 12, {9, 8, 7, 12345}};
  std::vector<std::uint8_t> one(inputs.size()), many(inputs.size()), sliced(inputs.size()), scalar(inputs.size());
  const Counters judge = round_to_codes_scalar(inputs, spec, scalar.data());
  expect_equal(round_to_codes(inputs, spec, one.data(), 1), judge, "one thread");
  expect_equal(round_to_codes(inputs, spec, many.data(), 7), judge, "seven threads");
  Counters sum;
  for (std::size_t begin = 0; begin < inputs.size(); begin += 10007) {
    RoundSpec slice = spec;
    slice.key.first_element += begin;
    const std::size_t count = std::min<std::size_t>(10007, inputs.size() - begin);
    sum += round_to_codes(std::span(inputs).subspan(begin, count), slice, sliced.data() + begin);
  }
  expect_equal(sum, judge, "sliced");
  EXPECT_EQ(one, scalar);
  EXPECT_EQ(many, scalar);
  EXPECT_EQ(sliced, scalar);
}

TEST(Round, StochasticIsUnbiasedAtQuarterHalfAndThreeQuarters) {
  constexpr std::size_t kDraws = 1'000'000;
  for (const double fraction : {0.25, 0.5, 0.75}) {
    const std::vector<float> inputs(kDraws, static_cast<float>(1 + fraction / 8));
    std::vector<std::uint8_t> codes(kDraws);
    RoundSpec spec{builtin_format("e4m3fn"), Rounding::sr, Saturation::off, 16, {1, hash_name("w"), 0, 0}};
    round_to_codes(inputs, spec, codes.data(), 2);
    const auto away = std::count(codes.begin(), codes.end(), 0x39);
    // Five standard deviations of a binomial share: 5 sqrt(p (1 - p) / n).
    EXPECT_NEAR(static_cast<double>(away) / kDraws, fraction, 5 * std::sqrt(fraction * (1 - fraction) / kDraws));
  }
}

TEST(Round, StochasticDrawsDifferBySeedTensorAndStepAndAreUncorrelated) {
  constexpr std::size_t kDraws = 1 << 20;
  const std::vector<float> inputs(kDraws, 1.0625F);  // halfway between two e4m3 codes
  const auto draw = [&](StochasticKey key) {
    std::vector<std::uint8_t> codes(kDraws);
    round_to_codes(inputs, {builtin_format("e4m3fn"), Rounding::sr, Saturation::off, 8, key}, codes.data());
    return codes;
  };
  const auto base = draw({1, 2, 3, 0});
  EXPECT_EQ(base, draw({1, 2, 3, 0}));
  const double tolerance = 5 * 0.5 / std::sqrt(static_cast<double>(kDraws));
  for (const StochasticKey other : {StochasticKey{2, 2, 3, 0}, StochasticKey{1, 3, 3, 0}, StochasticKey{1, 2, 4, 0},
                                    StochasticKey{1, 2, 3, 1}, StochasticKey{1, 2, 3, kChunkElements}}) {
    const auto codes = draw(other);
    std::size_t equal = 0;
    for (std::size_t i = 0; i < kDraws; ++i) equal += codes[i] == base[i];
    EXPECT_NEAR(static_cast<double>(equal) / kDraws, 0.5, tolerance);
  }
}

TEST(Round, NanIntoAFormatWithoutNanIsCountedAsAnError) {
  const std::vector<float> inputs = {1, NAN, 2, -NAN};
  std::vector<std::uint8_t> codes(4);
  const Counters counters =
      round_to_codes(inputs, {builtin_format("e2m1"), Rounding::rne, Saturation::on}, codes.data());
  EXPECT_EQ(counters.nan_lost, 2U);
  EXPECT_EQ(counters.errors(), 2U);
  EXPECT_EQ(codes[1], 0);
}

TEST(Round, EmptyInputGivesEmptyCounters) {
  const Counters counters = round_to_values({}, {builtin_format("e2m1"), Rounding::rne, Saturation::on}, {});
  EXPECT_EQ(counters, Counters{});
}

TEST(Round, ChannelsSumToTheWholeTensor) {
  const Format& format = builtin_format("e5m2");
  std::vector<float> inputs = hard_inputs(format, 2000);
  const ChannelShape shape{3, 7, inputs.size() / 21};
  inputs.resize(3 * 7 * shape.inner);
  std::vector<float> values(inputs.size()), whole(inputs.size());
  const RoundSpec spec{format, Rounding::sr, Saturation::off, 8, {1, 2, 3, 0}};
  Counters sum;
  const auto channels = round_by_channel(inputs, shape, spec, values, 2);
  ASSERT_EQ(channels.size(), 7U);
  for (const Counters& counters : channels) sum += counters;
  expect_equal(sum, round_to_values(inputs, spec, whole), "channels");
  EXPECT_EQ(std::memcmp(values.data(), whole.data(), values.size() * sizeof(float)), 0);
}

TEST(ExponentHistogram, CountsBinadesByExponentField) {
  const auto histogram = exponent_histogram(std::vector<float>{0, -0.0F, 1e-40F, 1, 1.5F, -2, INFINITY, NAN});
  EXPECT_EQ(histogram[0], 3U);
  EXPECT_EQ(histogram[127], 2U);
  EXPECT_EQ(histogram[128], 1U);
  EXPECT_EQ(histogram[255], 2U);
}

TEST(Round, TensorsBeyondTheCachesAreWrittenAsSmallOnesAre) {
  constexpr std::size_t kCount = (std::size_t{8} << 20U) + 777;  // past the caches, and no whole number of vectors
  constexpr std::size_t kPart = std::size_t{1} << 20U;
  const RandomStream random(5, "past-caches");
  std::vector<float> input(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::uint64_t draw = random.at(i);
    input[i] = i % 16 == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(draw))
                           : (static_cast<float>(draw >> 40U) * 0x1p-23F - 1) * 3;
  }
  for (const char* name : {"binary16", "bfloat16", "e4m3fnuz", "e2m1"}) {
    for (const Rounding rounding : {Rounding::rne, Rounding::ru}) {
      const RoundSpec spec{.format = builtin_format(name), .rounding = rounding, .saturation = Saturation::off};
      std::vector<float> whole(kCount + 1);
      const std::span<float> shifted = std::span(whole).subspan(1);  // no vector of the output is aligned at its start
      const Counters counters = round_to_values(input, spec, shifted, 2);
      std::vector<float> part(kPart);
      Counters sum;
      for (std::size_t begin = 0; begin < kCount; begin += kPart) {
        const std::size_t count = std::min(kPart, kCount - begin);
        sum += round_to_values(std::span(input).subspan(begin, count), spec, std::span(part).first(count));
        ASSERT_EQ(std::memcmp(part.data(), shifted.data() + begin, count * sizeof(float)), 0) << name;
      }
      EXPECT_EQ(counters, sum) << name;
    }
  }
}

}  // namespace
}  // namespace plumbline::numerics
