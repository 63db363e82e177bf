#include "execute/numerics/integer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random.h"
#include "execute/numerics/round_kernel.h"

namespace plumbline::numerics {
namespace {

constexpr Rounding kAll[] = {Rounding::rne, Rounding::rtz, Rounding::ru, Rounding::rd, Rounding::rna, Rounding::sr};

std::vector<float> hard_values(std::size_t count) {
  const RandomStream random(13, "integer-test");
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t draw = random.at(i);
    values[i] = static_cast<float>(static_cast<std::int32_t>(draw)) * 0x1p-27F;
    if (draw >> 60U == 0) values[i] = std::round(values[i]) + 0.5F;
    if (draw >> 58U == 5) values[i] = std::numeric_limits<float>::infinity() * (i % 2 == 0 ? 1.0F : -1.0F);
    if (draw >> 58U == 6) values[i] = std::numeric_limits<float>::quiet_NaN();
    if (draw >> 58U == 7) values[i] = i % 2 == 0 ? -0.0F : 1e-42F;
    if (draw >> 58U == 8) values[i] = -3e38F;
  }
  return values;
}

IntegerRange range(const char* name) { return find_integer_range(name).value(); }

TEST(Integer, SymmetricMapsTheLargestMagnitudeToTheHighestCode) {
  const std::vector<float> values = {-2.54F, 1.27F, 0.01F, 0, 0.03F};
  const IntegerSpec spec{.range = range("int8_symmetric"), .key = {}};
  const auto scales = choose_scales(values, 1, 5, spec);
  ASSERT_TRUE(scales.ok());
  EXPECT_EQ(scales->scale[0], 2.54F / 127);
  const auto tensor = quantize_integer(values, 1, 5, spec, *scales);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(static_cast<std::int8_t>(tensor->codes[0]), -127);
  EXPECT_EQ(static_cast<std::int8_t>(tensor->codes[3]), 0);
  EXPECT_EQ(static_cast<std::int8_t>(tensor->codes[4]), 2);  // 1.5 + rounding error of the scale
  EXPECT_EQ(tensor->counters.overflow, 0U);
}

TEST(Integer, AffineMapsBothExtremesAndKeepsZeroExact) {
  const std::vector<float> values = {-1, 0, 0.5F, 4};
  const IntegerSpec spec{.range = range("uint8"), .affine = true, .key = {}};
  const auto scales = choose_scales(values, 1, 4, spec);
  ASSERT_TRUE(scales.ok());
  EXPECT_EQ(scales->zero[0], 51);  // 255 / 5
  const auto tensor = quantize_integer(values, 1, 4, spec, *scales);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->codes[0], 0);
  EXPECT_EQ(tensor->codes[1], 51);
  EXPECT_EQ(tensor->codes[3], 255);
  EXPECT_EQ(decode_integer(*tensor, spec.range)[1], 0.0F);
}

TEST(Integer, TheNamedRangeDecidesWhetherTheLowestCodeIsUsed) {
  const IntegerRange full = range("int8_full");
  const IntegerRange symmetric = range("int8_symmetric");
  EXPECT_EQ(encode_integer(-500, 1, 0, full, Rounding::rne).code, -128);
  EXPECT_EQ(encode_integer(-500, 1, 0, symmetric, Rounding::rne).code, -127);
  EXPECT_EQ(encode_integer(-128, 1, 0, full, Rounding::rne).flags, 0);
  EXPECT_EQ(encode_integer(-128, 1, 0, symmetric, Rounding::rne).flags, kOverflow | kSaturated | kInexact);
}

TEST(Integer, ModesDifferAtTies) {
  const IntegerRange r = range("int8_full");
  EXPECT_EQ(encode_integer(2.5F, 1, 0, r, Rounding::rne).code, 2);
  EXPECT_EQ(encode_integer(2.5F, 1, 0, r, Rounding::rna).code, 3);
  EXPECT_EQ(encode_integer(-2.5F, 1, 0, r, Rounding::rna).code, -3);
  EXPECT_EQ(encode_integer(-2.5F, 1, 0, r, Rounding::ru).code, -2);
  EXPECT_EQ(encode_integer(-2.5F, 1, 0, r, Rounding::rd).code, -3);
  EXPECT_EQ(encode_integer(-2.5F, 1, 0, r, Rounding::rtz).code, -2);
}

TEST(Integer, KernelsEqualTheScalarRuleForEveryRangeModeAndSharing) {
  const std::size_t rows = 37, columns = 211;
  const std::vector<float> values = hard_values(rows * columns);
  for (const std::int64_t target : kernel_targets()) {
    limit_kernels_to(target);
    for (const IntegerRange& r : integer_ranges()) {
      for (const Rounding rounding : kAll) {
        for (const Sharing sharing : {Sharing::tensor, Sharing::channel, Sharing::group}) {
          const IntegerSpec spec{r, r.low == 0, sharing, 32, true, rounding, 31, {1, 2, 3, 65000}};
          IntegerScales scales = choose_scales(values, rows, columns, spec).value();
          for (float& s : scales.scale) s = 0.125F;  // the huge values would make every quotient vanish
          const auto tensor = quantize_integer(values, rows, columns, spec, scales, 2);
          ASSERT_TRUE(tensor.ok());
          Counters counters;
          for (std::size_t i = 0; i < values.size(); ++i) {
            const std::size_t index = sharing == Sharing::tensor    ? 0
                                      : sharing == Sharing::channel ? i / columns
                                                                    : i / columns * 7 + i % columns / 32;
            const RandomBits bits = rounding == Rounding::sr ? random_bits(spec.key, i, 31) : RandomBits{};
            const IntegerCode code =
                encode_integer(values[i], scales.scale[index], scales.zero[index], r, rounding, bits);
            counters.add(code.flags);
            ASSERT_EQ(tensor->codes[i], static_cast<std::uint8_t>(code.code))
                << kernel_target_name(target) << " " << r.name << " " << to_string(rounding) << " " << values[i];
          }
          EXPECT_EQ(tensor->counters, counters) << kernel_target_name(target) << " " << r.name << to_string(rounding);
        }
      }
    }
  }
  limit_kernels_to(0);
}

TEST(Integer, SameBytesAtAnyThreadCount) {
  const std::vector<float> values = hard_values(300 * 1000);
  const IntegerSpec spec{range("int4_full"), false, Sharing::group, 64, true, Rounding::sr, 16, {5, 6, 7, 0}};
  const IntegerScales scales = choose_scales(values, 300, 1000, spec, 3).value();
  EXPECT_EQ(scales.scale, choose_scales(values, 300, 1000, spec).value().scale);
  const auto one = quantize_integer(values, 300, 1000, spec, scales, 1);
  const auto many = quantize_integer(values, 300, 1000, spec, scales, 6);
  EXPECT_EQ(one->codes, many->codes);
  EXPECT_EQ(one->counters, many->counters);
}

TEST(Integer, ZeroTensorsGetScaleOneAndTinyOnesANormalScale) {
  const IntegerSpec spec{.range = range("int8_symmetric"), .key = {}};
  EXPECT_EQ(choose_scales(std::vector<float>(4, 0.0F), 1, 4, spec)->scale[0], 1.0F);
  EXPECT_EQ(choose_scales(std::vector<float>(4, 1e-44F), 1, 4, spec)->scale[0], 0x1p-126F);
  EXPECT_TRUE(choose_scales({}, 0, 0, spec).ok());
}

TEST(Integer, NanIsAnErrorThatIsCounted) {
  const std::vector<float> values = {1, std::nanf("")};
  const IntegerSpec spec{.range = range("uint8"), .affine = true, .key = {}};
  const auto tensor = quantize_integer(values, 1, 2, spec, {{0.1F}, {7}});
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->codes[1], 7);
  EXPECT_EQ(tensor->counters.errors(), 1U);
}

TEST(Integer, BadScalesAndShapesAreErrors) {
  const std::vector<float> values(12, 1.0F);
  IntegerSpec spec{.range = range("int8_full"), .key = {}};
  for (const float scale : {0.0F, -1.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const auto tensor = quantize_integer(values, 3, 4, spec, {{scale}, {0}});
    ASSERT_FALSE(tensor.ok()) << scale;
    EXPECT_EQ(tensor.errors().front().kind, "bad-value");
  }
  EXPECT_FALSE(quantize_integer(values, 3, 4, spec, {{1.0F}, {200}}).ok());
  EXPECT_FALSE(quantize_integer(values, 3, 4, spec, {{1.0F, 2.0F}, {0, 0}}).ok());
  EXPECT_EQ(quantize_integer(values, 3, 5, spec, {{1.0F}, {0}}).errors().front().kind, "shape-mismatch");
  spec.sharing = Sharing::group;
  EXPECT_FALSE(choose_scales(values, 3, 4, spec).ok());
  spec.group = 3;
  EXPECT_EQ(choose_scales(values, 3, 4, spec).errors().front().kind, "bad-value");
  spec.pad = true;
  EXPECT_EQ(choose_scales(values, 3, 4, spec)->scale.size(), 6U);
}

}  // namespace
}  // namespace plumbline::numerics
