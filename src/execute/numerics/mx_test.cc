#include "execute/numerics/mx.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "execute/numerics/round_kernel.h"

namespace plumbline::numerics {
namespace {

constexpr const char* kElements[] = {"e4m3fn", "e5m2", "e3m2", "e2m3", "e2m1", "int8"};
constexpr Rounding kAll[] = {Rounding::rne, Rounding::rtz, Rounding::ru, Rounding::rd, Rounding::rna, Rounding::sr};

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

/// Blocks of every magnitude, with zeros, subnormals, specials, all-zero blocks and values one ulp off powers of two.
std::vector<float> hard_blocks(std::size_t count) {
  const RandomStream random(11, "mx-test");
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t draw = random.at(i);
    const std::uint64_t block = random.at(1'000'000 + i / 16);
    const int exponent = static_cast<int>(block % 270) - 145 - static_cast<int>(draw % 12);
    float value = std::ldexp(static_cast<float>(static_cast<std::int32_t>(draw >> 32U)) * 0x1p-31F, exponent);
    if (draw % 7 == 0) value = std::ldexp(draw % 2 == 0 ? 1.0F : -1.0F, exponent);
    if (draw % 11 == 0) value = std::nextafter(value, 0.0F);
    if (block % 13 == 0) value = std::copysign(0.0F, value);
    if (block % 17 == 0 && draw % 5 == 0) value = std::numeric_limits<float>::infinity();
    if (block % 19 == 0 && draw % 5 == 0) value = std::numeric_limits<float>::quiet_NaN();
    values[i] = value;
  }
  return values;
}

TEST(MxScale, TakesTheLogarithmFromTheExponentBitsOneUlpBelowAPowerOfTwo) {
  const MxElement e4m3 = find_mx_element("e4m3fn").value();
  const float below_eight = std::nextafter(8.0F, 0.0F);
  EXPECT_EQ(mx_scale(bits_of(below_eight), e4m3, ScaleRule::floor), 127 + 2 - 8);
  EXPECT_EQ(mx_scale(bits_of(8.0F), e4m3, ScaleRule::floor), 127 + 3 - 8);
  EXPECT_EQ(mx_scale(bits_of(std::numeric_limits<float>::max()), e4m3, ScaleRule::floor), 127 + 127 - 8);
}

TEST(MxScale, RceilRaisesTheScaleExactlyAboveTheLargestElement) {
  struct Row {
    const char* element;
    float largest;
  };
  for (const Row& row : {Row{"e4m3fn", 448}, Row{"e5m2", 57344}, Row{"e3m2", 28}, Row{"e2m3", 7.5}, Row{"e2m1", 6},
                         Row{"int8", 127.0F / 64}}) {
    const MxElement element = find_mx_element(row.element).value();
    EXPECT_EQ(mx_scale(bits_of(row.largest), element, ScaleRule::rceil), 127) << row.element;
    EXPECT_EQ(mx_scale(bits_of(std::nextafter(row.largest, 1e9F)), element, ScaleRule::rceil), 128) << row.element;
    EXPECT_EQ(mx_scale(bits_of(std::nextafter(row.largest, 1e9F)), element, ScaleRule::floor), 127) << row.element;
  }
}

TEST(MxScale, ClampsBelowAndMarksSpecials) {
  const MxElement e5m2 = find_mx_element("e5m2").value();
  EXPECT_EQ(mx_scale(1, e5m2, ScaleRule::floor), 0);
  EXPECT_EQ(mx_scale(0, e5m2, ScaleRule::floor), 0);
  EXPECT_EQ(mx_scale(bits_of(INFINITY), e5m2, ScaleRule::floor), 0xFF);
  EXPECT_EQ(mx_scale(bits_of(NAN) & 0x7FFFFFFFU, e5m2, ScaleRule::rceil), 0xFF);
}

TEST(Mx, Int8CodesAreTwosComplementOfSixtyFourths) {
  std::vector<float> block(32, 0.0F);
  block[0] = 1.0F;
  block[1] = -1.0F;
  block[2] = 1.99F;
  block[3] = -1.999F;
  block[4] = 1.0F / 64;
  block[5] = -0.5F / 64;  // a tie, to even: zero
  const MxSpec spec{find_mx_element("int8").value(), ScaleRule::floor};
  const auto tensor = quantize_mx(block, 1, 32, spec, false);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->scales[0], 127);
  EXPECT_EQ(static_cast<std::int8_t>(tensor->codes[0]), 64);
  EXPECT_EQ(static_cast<std::int8_t>(tensor->codes[1]), -64);
  EXPECT_EQ(static_cast<std::int8_t>(tensor->codes[2]), 127);
  EXPECT_EQ(static_cast<std::int8_t>(tensor->codes[3]), -127);
  EXPECT_EQ(static_cast<std::int8_t>(tensor->codes[4]), 1);
  EXPECT_EQ(static_cast<std::int8_t>(tensor->codes[5]), 0);
  EXPECT_EQ(tensor->counters.saturated, 1U);  // -1.999 rounds to -128/64; 1.99 rounds to 127/64
  EXPECT_EQ(tensor->counters.subnormal, 0U);
  EXPECT_EQ(decode_mx(*tensor, spec.element)[3], -127.0F / 64);
}

TEST(Mx, KernelsEqualTheScalarRuleForEveryElementRuleModeAndShape) {
  const std::vector<float> values = hard_blocks(32 * 600);
  for (const std::int64_t target : kernel_targets()) {
    limit_kernels_to(target);
    for (const char* name : kElements) {
      for (const ScaleRule rule : {ScaleRule::floor, ScaleRule::rceil}) {
        for (const Rounding rounding : kAll) {
          for (const std::size_t columns : {std::size_t{32}, std::size_t{320}, std::size_t{75}}) {
            const MxSpec spec{find_mx_element(name).value(), rule, rounding, 9, {1, 2, 3, 65520}};
            const std::size_t rows = values.size() / columns;
            const std::span<const float> used(values.data(), rows * columns);
            const auto tensor = quantize_mx(used, rows, columns, spec, true);
            ASSERT_TRUE(tensor.ok());
            Counters counters;
            for (std::size_t row = 0; row < rows; ++row) {
              for (std::size_t column = 0; column < columns; column += 32) {
                const std::size_t length = std::min<std::size_t>(32, columns - column);
                std::uint8_t codes[32] = {};
                const std::size_t element = row * columns + column;
                const std::uint8_t scale =
                    quantize_mx_block(used.subspan(element, length), spec, element, codes, counters);
                const std::size_t slot = row * tensor->padded_columns + column;
                ASSERT_EQ(tensor->scales[slot / 32], scale);
                ASSERT_TRUE(std::equal(codes, codes + 32, tensor->codes.begin() + static_cast<std::ptrdiff_t>(slot)))
                    << kernel_target_name(target) << " " << name << " " << to_string(rounding) << " block at "
                    << element;
              }
            }
            EXPECT_EQ(tensor->counters, counters) << kernel_target_name(target) << " " << name;
          }
        }
      }
    }
  }
  limit_kernels_to(0);
}

TEST(Mx, SameBytesAtAnyThreadCount) {
  const std::vector<float> values = hard_blocks(32 * 9000);
  const MxSpec spec{find_mx_element("e2m1").value(), ScaleRule::rceil, Rounding::sr, 16, {5, 6, 7, 8}};
  const auto one = quantize_mx(values, 1, values.size(), spec, false, 1);
  const auto many = quantize_mx(values, 1, values.size(), spec, false, 5);
  ASSERT_TRUE(one.ok() && many.ok());
  EXPECT_EQ(one->codes, many->codes);
  EXPECT_EQ(one->scales, many->scales);
  EXPECT_EQ(one->counters, many->counters);
}

TEST(Mx, DecodesWithinHalfAStepOfEveryUnsaturatedElement) {
  const MxElement element = find_mx_element("e4m3fn").value();
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(1.0F + static_cast<float>(i) / 64, 3);
  const auto tensor = quantize_mx(values, 2, 32, {element, ScaleRule::rceil}, false);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->counters.saturated, 0U);
  const std::vector<float> decoded = decode_mx(*tensor, element);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(decoded[i], values[i], values[i] / 16);
}

TEST(Mx, NanBlocksAreMarkedAndCounted) {
  std::vector<float> values(64, 1.0F);
  values[40] = NAN;
  values[41] = INFINITY;
  const auto tensor = quantize_mx(values, 1, 64, {find_mx_element("e2m1").value()}, false);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->nan_blocks, 1U);
  EXPECT_EQ(tensor->scales[1], 0xFF);
  EXPECT_EQ(tensor->counters.nan_in, 1U);
  EXPECT_EQ(tensor->counters.infinity_in, 1U);
  EXPECT_EQ(tensor->counters.elements, 64U);
  const auto decoded = decode_mx(*tensor, find_mx_element("e2m1").value());
  EXPECT_TRUE(std::isnan(decoded[63]));
  EXPECT_EQ(decoded[0], 1.0F);
}

TEST(Mx, WrongShapesAreErrors) {
  const std::vector<float> values(40, 1.0F);
  const MxSpec spec{find_mx_element("e2m1").value()};
  const auto ragged = quantize_mx(values, 1, 40, spec, false);
  ASSERT_FALSE(ragged.ok());
  EXPECT_EQ(ragged.errors().front().kind, "bad-value");
  const auto mismatch = quantize_mx(values, 3, 13, spec, true);
  ASSERT_FALSE(mismatch.ok());
  EXPECT_EQ(mismatch.errors().front().kind, "shape-mismatch");
  const auto padded = quantize_mx(values, 1, 40, spec, true);
  ASSERT_TRUE(padded.ok());
  EXPECT_EQ(padded->codes.size(), 64U);
  EXPECT_EQ(padded->counters.elements, 40U);
  const auto empty = quantize_mx({}, 0, 0, spec, false);
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->scales.empty());
  EXPECT_FALSE(find_mx_element("binary16").ok());
  EXPECT_FALSE(find_mx_element("e8m0").ok());
}

TEST(Nvfp4, TensorScaleMapsTheLargestValueToTheLargestCode) {
  std::vector<float> values(32, 0.0F);
  values[0] = 2688 * 3;
  values[17] = -3;
  const auto tensor = quantize_nvfp4(values, 1, 32, {}, false);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->tensor_scale, 3.0F);
  EXPECT_EQ(tensor->scales[0], 0x7E);  // 448
  EXPECT_EQ(tensor->codes[0], 0x7);    // 6
  EXPECT_EQ(decode_nvfp4(*tensor)[0], 2688.0F * 3);
  // Block 1: 3 / 18 = 1/6 rounds to 0.171875 in E4M3; -3 / (0.171875 * 3) = -5.8 rounds to -6.
  EXPECT_EQ(tensor->scales[1], 0x23);
  EXPECT_EQ(tensor->codes[17], 0xF);
}

TEST(Nvfp4, ABlockWhoseScaleVanishesBecomesZeroAndIsCounted) {
  std::vector<float> values(32, 0.0F);
  values[0] = 2688;
  for (std::size_t i = 16; i < 32; ++i) values[i] = 1e-4F;
  const auto tensor = quantize_nvfp4(values, 1, 32, {}, false);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->scales[1], 0);
  EXPECT_EQ(tensor->counters.underflow_to_zero, 16U);
}

TEST(Nvfp4, KernelsAgreeOnEveryInstructionSetAndThreadCount) {
  std::vector<float> values = hard_blocks(16 * 3000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i / 16 % 2 == 0)
      values[i] = std::ldexp(static_cast<float>(static_cast<int>(i % 97) - 48), -20 - static_cast<int>(i % 3));
  }
  for (const Rounding rounding : kAll) {
    const Nvfp4Spec spec{rounding, 10, {3, 4, 5, 6}};
    limit_kernels_to(kernel_targets().back());
    const auto judge = quantize_nvfp4(values, 40, 1200, spec, true);
    ASSERT_TRUE(judge.ok());
    for (const std::int64_t target : kernel_targets()) {
      limit_kernels_to(target);
      const auto tensor = quantize_nvfp4(values, 40, 1200, spec, true, 3);
      ASSERT_TRUE(tensor.ok());
      EXPECT_EQ(tensor->codes, judge->codes) << kernel_target_name(target);
      EXPECT_EQ(tensor->scales, judge->scales);
      EXPECT_EQ(tensor->counters, judge->counters);
    }
  }
  limit_kernels_to(0);
}

TEST(Nvfp4, FullBlocksEqualTheScalarRuleThatServesRaggedOnes) {
  const std::vector<float> values = hard_blocks(16 * 3000);
  std::vector<float> ragged;  // the same blocks without their last element, a zero
  std::vector<float> full(values);
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (i % 16 == 15) {
      full[i] = 0;
    } else {
      ragged.push_back(full[i]);
    }
  }
  for (const Rounding rounding : {Rounding::rne, Rounding::rtz, Rounding::ru, Rounding::rd, Rounding::rna}) {
    const auto by_kernel = quantize_nvfp4(full, 3000, 16, {rounding}, false);
    const auto by_rule = quantize_nvfp4(ragged, 3000, 15, {rounding}, true);
    ASSERT_TRUE(by_kernel.ok() && by_rule.ok());
    EXPECT_EQ(by_kernel->codes, by_rule->codes) << to_string(rounding);
    EXPECT_EQ(by_kernel->scales, by_rule->scales);
    Counters counters = by_rule->counters;
    counters.elements = full.size();
    counters.inexact = by_kernel->counters.inexact;  // zeros of NaN blocks count as lost
    EXPECT_EQ(by_kernel->counters, counters);
  }
}

}  // namespace
}  // namespace plumbline::numerics
