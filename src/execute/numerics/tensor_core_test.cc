#include "execute/numerics/tensor_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"

namespace plumbline::numerics {
namespace {

const Format& half() { return builtin_format("binary16"); }

float multiply_add(const std::string& device, const std::string& output, std::vector<float> a, std::vector<float> b,
                   float c) {
  const auto core = find_tensor_core(device, "binary16", output);
  return chain_multiply_add(*core, half(), half(), a, b, c);
}

TEST(TensorCore, TermsBelowTheGridAreCutTowardZero) {
  // F = 24 on A100: 2^-24 beside 1 survives, 2^-25 does not, whatever its sign.
  EXPECT_EQ(multiply_add("a100", "binary32", {1, 0x1p-12F}, {1, -0x1p-12F}, 0), 1 - 0x1p-24F);
  EXPECT_EQ(multiply_add("a100", "binary32", {1, 0x1p-12F}, {1, -0x1p-13F}, 0), 1.0F);
  // V100 has one bit less.
  EXPECT_EQ(multiply_add("v100", "binary32", {1, 0x1p-12F}, {1, -0x1p-12F}, 0), 1.0F);
}

TEST(TensorCore, SmallTermsAddUpOnlyWithinTheGrid) {
  // Sixteen quarters of a unit: one block of H100 (F = 25) keeps 2^-25 each, A100's two blocks lose the first eight.
  std::vector<float> a(17, 0x1p-12F);
  std::vector<float> b(17, 0x1p-13F);
  a.resize(16);
  b.resize(16);
  EXPECT_EQ(multiply_add("h100", "binary32", a, b, 1.0F), 1.0F + 0x1p-21F);
  EXPECT_EQ(multiply_add("a100", "binary32", a, b, 1.0F), 1.0F);
}

TEST(TensorCore, OrderWithinABlockIsIrrelevantAndBetweenBlocksIsNot) {
  RandomStream random(5, "order");
  const auto core = find_tensor_core("h100", "binary16", "binary32");
  bool any_difference = false;
  for (int round = 0; round < 200; ++round) {
    std::vector<float> a(32);
    std::vector<float> b(32);
    for (std::size_t i = 0; i < 32; ++i) {
      const auto draw = [&] {
        return std::ldexp(std::floor(random.next_unit() * 2048) - 1024, static_cast<int>(random.next_below(12)) - 14);
      };
      a[i] = static_cast<float>(decode(encode(draw(), half(), Rounding::rne, Saturation::on).code, half()));
      b[i] = static_cast<float>(decode(encode(draw(), half(), Rounding::rne, Saturation::on).code, half()));
    }
    const float before = chain_multiply_add(*core, half(), half(), a, b, 0);
    std::reverse(a.begin(), a.begin() + 16);
    std::reverse(b.begin(), b.begin() + 16);
    EXPECT_EQ(chain_multiply_add(*core, half(), half(), a, b, 0), before);
    std::rotate(a.begin(), a.begin() + 7, a.end());
    std::rotate(b.begin(), b.begin() + 7, b.end());
    any_difference = any_difference || chain_multiply_add(*core, half(), half(), a, b, 0) != before;
  }
  EXPECT_TRUE(any_difference);
}

TEST(TensorCore, ResultsAreNotMonotone) {
  // Khattak and Mikaitis: raising one input can lower the sum, because it raises the grid for all the others.
  std::vector<float> a = {1, 0x1p-12F, 0x1p-12F, 0x1p-12F};
  const std::vector<float> b = {2 - 0x1p-10F, 1.5F * 0x1p-11F, 1.5F * 0x1p-11F, 1.5F * 0x1p-11F};
  const float lower = multiply_add("v100", "binary32", a, b, 0);
  std::vector<float> raised = b;
  raised[0] = 2;  // exponent 1: the others lose their last bit
  EXPECT_LT(multiply_add("v100", "binary32", a, raised, 0) - lower, 0x1p-10F);
}

TEST(TensorCore, SpecialValuesFollowIeee) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(multiply_add("h100", "binary32", {infinity, 1}, {1, 1}, 0), infinity);
  EXPECT_TRUE(std::isnan(multiply_add("h100", "binary32", {infinity, -infinity}, {1, 1}, 0)));
  EXPECT_TRUE(std::isnan(multiply_add("h100", "binary32", {infinity}, {0}, 0)));
  EXPECT_EQ(multiply_add("h100", "binary32", {1}, {1}, -infinity), -infinity);
  EXPECT_EQ(multiply_add("h100", "binary16", {60000, 60000}, {1, 1}, 0), infinity);
  EXPECT_FALSE(std::signbit(multiply_add("h100", "binary32", {1, -1}, {1, 1}, 0)));
}

TEST(TensorCore, LossIsCounted) {
  const auto core = find_tensor_core("h100", "binary16", "binary32");
  const std::vector<float> a = {1, 0x1p-14F, 0x1p-12F, 0};
  const std::vector<float> b = {1, 0x1p-14F, 0x1.004p-10F, 1};
  BlockLoss loss;
  EXPECT_EQ(block_multiply_add(*core, half(), half(), a, b, 0, &loss), 1 + 0x1p-22F);
  EXPECT_EQ(loss.products_zero, 2);  // 2^-28, and the zero operand
  EXPECT_EQ(loss.terms_cut, 2);      // 2^-28 wholly, the third product's last bit
  EXPECT_FALSE(loss.result_inexact);
}

TEST(TensorCoreRows, UnresolvedRowsAreRefusedAndAssumedOnesLabelled) {
  for (const char* device : {"h100", "b200"}) {
    const auto refused = find_tensor_core(device, "e4m3fn", "binary16");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.errors()[0].kind, "unsupported");
    EXPECT_NE(refused.errors()[0].message.find("unresolved"), std::string::npos);
  }
  const auto hopper = find_tensor_core("h100", "e4m3fn", "binary32");
  EXPECT_EQ(claim(*hopper, 32, false), "verified against published hardware traces");
  EXPECT_EQ(claim(*hopper, 33, false).substr(0, 7), "assumed");
  EXPECT_EQ(claim(*hopper, 32, true).substr(0, 7), "assumed");
  EXPECT_EQ(find_tensor_core("h101", "binary16", "binary32").errors()[0].kind, "unknown-name");
  EXPECT_EQ(find_tensor_core("v100", "bfloat16", "binary32").errors()[0].kind, "unknown-name");
  for (const TensorCore& row : tensor_core_rows()) {
    const Format& format = builtin_format(row.input);
    EXPECT_TRUE(row.evidence == CoreEvidence::unresolved || check_tensor_core(row, format, format).ok());
  }
}

TEST(TensorCoreRows, StatedNumbersAreChecked) {
  const auto kind = [](const TensorCore& core, const Format& format) {
    const Status status = check_tensor_core(core, format, format);
    return status.ok() ? std::string("none") : status.errors()[0].kind;
  };
  const TensorCore good{.device = "", .input = "binary16", .output = "binary32", .note = ""};
  EXPECT_EQ(kind(good, half()), "none");
  TensorCore core = good;
  core.block = 0;
  EXPECT_EQ(kind(core, half()), "bad-value");
  core = good;
  core.fraction_bits = 30;
  EXPECT_EQ(kind(core, half()), "bad-value");
  core = good;
  core.result_bits = 25;
  EXPECT_EQ(kind(core, half()), "bad-value");
  core = good;
  core.final_rounding = FinalRounding::nearest_even;
  core.result_bits = 14;
  EXPECT_EQ(kind(core, half()), "bad-value");
  EXPECT_EQ(kind(good, builtin_format("binary32")), "bad-value");
}

}  // namespace
}  // namespace plumbline::numerics
