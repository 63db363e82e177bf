#include "execute/numerics/matmul_integer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/random.h"
#include "execute/numerics/matmul_integer_kernel.h"
#include "execute/numerics/round_kernel.h"

namespace plumbline::numerics {
namespace {

std::vector<std::int8_t> codes(std::uint64_t seed, std::int64_t count) {
  RandomStream random(seed, "integer-test");
  std::vector<std::int8_t> made(static_cast<std::size_t>(count));
  for (std::int8_t& code : made) code = static_cast<std::int8_t>(random.next());
  return made;
}

void expect_all_equal(const IntegerMatrix& a, const IntegerMatrix& b, std::span<const std::int32_t> c,
                      const std::string& what) {
  const auto want = matmul_integer_scalar(a, b, c);
  ASSERT_TRUE(want.ok()) << what;
  for (const std::int64_t target : kernel_targets()) {
    limit_kernels_to(target);
    for (const unsigned threads : {1U, 3U}) {
      const auto got = matmul_integer(a, b, c, threads);
      ASSERT_TRUE(got.ok()) << what;
      ASSERT_EQ(got->values, want->values) << what << " on " << kernel_target_name(target);
      ASSERT_EQ(got->counters, want->counters) << what << " on " << kernel_target_name(target);
    }
  }
  limit_kernels_to(0);
}

TEST(IntegerMatmul, EqualsTheDefinitionOnFuzzedShapesSignsAndZeroPoints) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto m = static_cast<std::int64_t>(1 + seed * 7 % 31);
    const auto n = static_cast<std::int64_t>(1 + seed * 11 % 71);
    const auto k = static_cast<std::int64_t>(1 + seed * 5 % 97);
    const auto a = codes(seed, m * k);
    const auto b = codes(seed + 1000, k * n);
    const bool a_unsigned = seed % 2 == 1;
    const bool b_unsigned = seed % 4 >= 2;
    const IntegerMatrix am{m, k, a, a_unsigned, seed % 3 == 0 ? 0 : a_unsigned ? 200 : -77};
    const IntegerMatrix bm{k, n, b, b_unsigned, seed % 5 == 0 ? 0 : b_unsigned ? 255 : 127};
    std::vector<std::int32_t> c;
    if (seed % 2 == 0) {
      RandomStream random(seed, "c");
      for (std::int64_t i = 0; i < m * n; ++i) c.push_back(static_cast<std::int32_t>(random.next()));
    }
    expect_all_equal(am, bm, c, fmt::format("case {}", seed));
  }
}

TEST(IntegerMatmul, PairsOfExtremesAreNotSaturated) {
  // What a 16-bit pair instruction gets wrong: K = 64, u8 255 x s8 127 is 2072640, s8 127 x s8 127 is 1032256.
  const std::vector<std::int8_t> high(64 * 33, static_cast<std::int8_t>(255));
  const std::vector<std::int8_t> most(64 * 33, 127);
  const auto mixed = matmul_integer({33, 64, high, true}, {64, 33, most, false});
  const auto both = matmul_integer({33, 64, most, false}, {64, 33, most, false});
  for (const std::int32_t value : mixed->values) ASSERT_EQ(value, 2072640);
  for (const std::int32_t value : both->values) ASSERT_EQ(value, 1032256);
  expect_all_equal({33, 64, high, true, 0}, {64, 33, high, true, 0}, {}, "unsigned extremes");
}

TEST(IntegerMatmul, WrapsExactlyFromTwoToTheSeventeen) {
  // (-128)(-128) is 2^14: 2^17 - 1 products fit 32 bits, 2^17 are 2^31 and do not.
  const std::int64_t depth = std::int64_t{1} << 17;
  const std::vector<std::int8_t> least(static_cast<std::size_t>(depth), -128);
  const auto fits = matmul_integer({1, depth - 1, std::span(least).first(static_cast<std::size_t>(depth - 1))},
                                   {depth - 1, 1, std::span(least).first(static_cast<std::size_t>(depth - 1))});
  EXPECT_EQ(fits->values[0], 2147467264);
  EXPECT_EQ(fits->counters.wrapped, 0);
  for (const std::int64_t target : kernel_targets()) {
    limit_kernels_to(target);
    const auto wraps = matmul_integer({1, depth, least}, {depth, 1, least});
    EXPECT_EQ(wraps->values[0], std::int32_t{-2147483647} - 1);
    EXPECT_EQ(wraps->counters.wrapped, 1);
    EXPECT_EQ(wraps->counters.largest, std::int64_t{1} << 31);
  }
  limit_kernels_to(0);
}

TEST(IntegerMatmul, RefusesShapesAndZeroPointsThatDoNotGoTogether) {
  const std::vector<std::int8_t> four(4, 1);
  const auto kind = [](const auto& result) { return result.ok() ? std::string("none") : result.errors()[0].kind; };
  EXPECT_EQ(kind(matmul_integer({2, 2, four}, {4, 1, four})), "shape-mismatch");
  EXPECT_EQ(kind(matmul_integer({2, 3, four}, {3, 1, four})), "shape-mismatch");
  EXPECT_EQ(kind(matmul_integer({2, 0, {}}, {0, 2, {}})), "shape-mismatch");
  EXPECT_EQ(kind(matmul_integer({2, 2, four, false, 128}, {2, 2, four})), "bad-value");
  EXPECT_EQ(kind(matmul_integer({2, 2, four, true, -1}, {2, 2, four})), "bad-value");
}

}  // namespace
}  // namespace plumbline::numerics
