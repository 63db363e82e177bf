#include "execute/numerics/matmul.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.h"
#include "execute/numerics/round_kernel.h"

namespace plumbline::numerics {
namespace {

const std::vector<std::string> kInputs = {"binary16", "bfloat16", "tf32", "e5m2", "e4m3fn", "e4m3fnuz", "e2m1"};

/// Values of a format over a wide range of exponents, zeros among them, specials when asked for.
std::vector<float> draw_values(RandomStream& random, std::size_t count, const Format& format, int spread,
                               bool special) {
  std::vector<float> values(count);
  for (float& value : values) {
    const auto kind = random.next_below(64);
    double x = (random.next_unit() * 2 - 1) * std::ldexp(1.0, static_cast<int>(random.next_below(spread)) - spread / 2);
    if (kind == 0) x = 0.0;
    if (kind == 1) x = -0.0;
    if (kind == 2) x = format.max_value();
    if (kind == 3) x = -std::ldexp(1.0, format.min_positive_exponent());
    if (special && kind == 4 && format.has_infinity) x = -std::numeric_limits<double>::infinity();
    if (special && kind == 5 && format.has_nan()) x = std::numeric_limits<double>::quiet_NaN();
    value = static_cast<float>(decode(encode(x, format, Rounding::rne, Saturation::on).code, format));
    if (std::isinf(x) && format.has_infinity) value = static_cast<float>(x);
  }
  return values;
}

struct Case {
  MatmulOperands operands;
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> c;
};

Case make_case(std::uint64_t seed, std::int64_t m, std::int64_t n, std::int64_t k, const Format& a, const Format& b,
               const Accumulation& accumulation, int spread, bool special, bool with_c) {
  RandomStream random(seed, "matmul-test");
  Case made;
  made.a = draw_values(random, static_cast<std::size_t>(m * k), a, spread, special);
  made.b = draw_values(random, static_cast<std::size_t>(k * n), b, spread, special);
  if (with_c)
    made.c = draw_values(random, static_cast<std::size_t>(m * n), result_format(accumulation), spread, special);
  made.operands = {m, n, k, {}, {}, {}, a, b};
  return made;
}

MatmulOperands operands_of(const Case& made) {
  MatmulOperands operands = made.operands;
  operands.a = made.a;
  operands.b = made.b;
  operands.c = made.c;
  return operands;
}

std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

void expect_same(const MatmulProduct& got, const MatmulProduct& want, const std::string& what) {
  ASSERT_EQ(bits_of(got.values), bits_of(want.values)) << what;
  EXPECT_EQ(got.counters, want.counters) << what;
  ASSERT_EQ(got.registers.size(), want.registers.size()) << what;
  for (std::size_t i = 0; i < got.registers.size(); ++i) {
    const RegisterTally& g = got.registers[i];
    const RegisterTally& w = want.registers[i];
    EXPECT_TRUE(g == w)
        << what
        << fmt::format(
               "\n {} got total {} observed {} inexact {} absorbed {} swamped {} beyond {} products {} {} {}"
               "\n    want total {} observed {} inexact {} absorbed {} swamped {} beyond {} products {} {} {}",
               g.name, g.total, g.observed, g.inexact, g.absorbed, g.swamped, g.beyond, g.products, g.products_inexact,
               g.products_to_zero, w.total, w.observed, w.inexact, w.absorbed, w.swamped, w.beyond, w.products,
               w.products_inexact, w.products_to_zero);
  }
}

/// Every instruction set and several thread counts against the scalar definition.
void expect_all_equal(const Case& made, const Accumulation& accumulation, const Observation& observe,
                      const std::string& what) {
  const MatmulOperands operands = operands_of(made);
  const auto want = matmul_scalar(operands, accumulation, {1, observe});
  ASSERT_TRUE(want.ok()) << what << render(want.errors());
  for (const std::int64_t target : kernel_targets()) {
    limit_kernels_to(target);
    for (const unsigned threads : {1U, 3U}) {
      const auto got = matmul(operands, accumulation, {threads, observe});
      ASSERT_TRUE(got.ok()) << what;
      expect_same(*got, *want, fmt::format("{} on {} with {} threads", what, kernel_target_name(target), threads));
    }
  }
  limit_kernels_to(0);
}

Accumulation sequential(Reduction reduction, const std::string& format, Rounding rounding = Rounding::rne,
                        Saturation saturation = Saturation::off) {
  Accumulation made;
  made.reduction = reduction;
  made.accumulator = {.format = builtin_format(format), .rounding = rounding, .saturation = saturation};
  made.seed = 11;
  return made;
}

TEST(Matmul, EveryAccumulatorAndRoundingEqualsTheDefinition) {
  std::uint64_t seed = 0;
  for (const Reduction reduction : {Reduction::sequential_fused, Reduction::sequential_rounded, Reduction::pairwise}) {
    for (const std::string format : {"binary32", "binary16", "bfloat16", "tf32", "e5m2", "e4m3fn", "e4m3fnuz"}) {
      for (const Rounding rounding :
           {Rounding::rne, Rounding::rtz, Rounding::ru, Rounding::rd, Rounding::rna, Rounding::sr}) {
        for (const Saturation saturation : {Saturation::off, Saturation::on}) {
          const Accumulation accumulation = sequential(reduction, format, rounding, saturation);
          const Format& a = builtin_format(kInputs[seed % kInputs.size()]);
          const Format& b = builtin_format(kInputs[seed / 3 % kInputs.size()]);
          const int spread = seed % 3 == 0 ? 6 : seed % 3 == 1 ? 30 : 80;
          const Case made = make_case(seed, 5, 9, 23, a, b, accumulation, spread, seed % 4 == 3, seed % 2 == 1);
          const std::string what = fmt::format("case {}: {} {} {} saturation {}, {} x {}", seed, to_string(reduction),
                                               format, to_string(rounding), to_string(saturation), a.name, b.name);
          expect_all_equal(made, accumulation, {seed % 5 == 0 ? 0 : seed % 2 == 0 ? 1 : 3, kAutomatic}, what);
          ++seed;
        }
      }
    }
  }
}

TEST(Matmul, FastKernelsEqualTheDefinitionOnFuzzedOperands) {
  // Accumulators that have kernels of their own, with the operands those kernels are for.
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const bool half = seed % 2 == 0;
    const Reduction reduction = seed % 4 < 2 ? Reduction::sequential_rounded : Reduction::sequential_fused;
    const Accumulation accumulation = sequential(reduction, seed % 3 == 0 ? "binary32"
                                                            : half        ? "binary16"
                                                                          : "bfloat16");
    const Format& format = builtin_format(half ? "binary16" : seed % 5 == 0 ? "e4m3fn" : "bfloat16");
    const auto m = static_cast<std::int64_t>(1 + seed * 7 % 29);
    const auto n = static_cast<std::int64_t>(1 + seed * 5 % 67);
    const auto k = static_cast<std::int64_t>(1 + seed * 3 % 91);
    const Case made = make_case(seed, m, n, k, format, format, accumulation, 20, seed % 8 == 7, seed % 3 == 1);
    expect_all_equal(made, accumulation, {seed % 7 == 0 ? 4 : 0, kAutomatic}, fmt::format("case {}", seed));
  }
}

/// Pairs of neighbours in size, signs and zeros: sums that are exact, absorbed, swamped and lost to binary32.
std::vector<float> draw_halves(RandomStream& random, std::size_t count, int kind, bool special) {
  const Format& half = builtin_format("binary16");
  std::vector<float> values(count);
  for (float& value : values) {
    auto code = static_cast<std::uint32_t>(random.next_below(0x10000));
    if ((code & 0x7C00U) == 0x7C00U && !(special && random.next_below(40) == 0)) code ^= 0x4000U;
    const std::uint32_t sign = code & 0x8000U;
    if (kind == 1) code = sign | (0x3000U + code % 0x1800U);                           // about one
    if (kind == 2) code = sign | code % 0x800U;                                        // subnormal and next to it
    if (kind == 3) code &= 0xFF80U;                                                    // few bits: exact products
    if (kind == 4) code = sign | (code % 3 == 0 ? 0U : code % 2 == 0 ? 1U : 0x7800U);  // zeros and extremes
    if (kind == 5) code = sign | (0x1400U + code % 0xC00U);                            // products near 2^-25
    value = static_cast<float>(decode(code, half));
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  }
  return values;
}

TEST(Matmul, EveryBinary16SumIsCountedAsTheDefinitionCounts) {
  const Format& half = builtin_format("binary16");
  const Accumulation accumulation = sequential(Reduction::sequential_rounded, "binary16");
  for (std::uint64_t seed = 0; seed < 144; ++seed) {
    RandomStream random(seed, "halves");
    const auto m = static_cast<std::int64_t>(1 + random.next_below(26));
    const auto n = static_cast<std::int64_t>(1 + random.next_below(70));
    const auto k = static_cast<std::int64_t>(1 + random.next_below(90));
    const bool special = seed % 4 == 3;
    Case made;
    made.a = draw_halves(random, static_cast<std::size_t>(m * k), static_cast<int>(seed % 6), special);
    made.b =
        draw_halves(random, static_cast<std::size_t>(k * n), static_cast<int>(seed / 6 % 6), special && seed % 8 == 3);
    if (seed % 3 != 0)
      made.c = draw_halves(random, static_cast<std::size_t>(m * n), static_cast<int>(seed % 5), special);
    made.operands = {m, n, k, {}, {}, {}, half, half};
    expect_all_equal(made, accumulation, {1, seed % 5 == 0 ? 7 : 1}, fmt::format("case {}", seed));
  }
}

TEST(Matmul, LongBinary16SumsAreCountedAcrossBlocks) {
  // More steps than any block of the kernels holds; a special value halfway; a column that overflows late.
  const Format& half = builtin_format("binary16");
  const Accumulation accumulation = sequential(Reduction::sequential_rounded, "binary16");
  RandomStream random(5, "long");
  const std::int64_t k = 900;
  Case made;
  made.a = draw_halves(random, static_cast<std::size_t>(13 * k), 1, false);
  made.b = draw_halves(random, static_cast<std::size_t>(k * 40), 1, false);
  for (std::int64_t i = 0; i < k; ++i) {
    made.a[static_cast<std::size_t>(2 * k + i)] = 16.0F;
    made.b[static_cast<std::size_t>(i * 40 + 33)] = 16.0F;
    made.b[static_cast<std::size_t>(i * 40 + 7)] = 0.0F;
  }
  made.a[static_cast<std::size_t>(4 * k + 450)] = std::numeric_limits<float>::infinity();
  made.b[static_cast<std::size_t>(451 * 40 + 9)] = std::numeric_limits<float>::quiet_NaN();
  made.operands = {13, 40, k, {}, {}, {}, half, half};
  expect_all_equal(made, accumulation, {1, 379}, "long");
}

TEST(Matmul, EveryTensorCoreRowEqualsTheScalarRule) {
  std::uint64_t seed = 0;
  for (const TensorCore& core : tensor_core_rows()) {
    if (core.evidence == CoreEvidence::unresolved) continue;
    const Format& format = builtin_format(core.input);
    const auto accumulation = find_accumulation(core.device, format, core.output);
    ASSERT_TRUE(accumulation.ok());
    for (int variant = 0; variant < 6; ++variant, ++seed) {
      const int spread = variant == 0 ? 4 : variant == 5 ? 240 : 24;
      const Case made = make_case(seed, 13, 37, 1 + static_cast<std::int64_t>(seed * 13 % 130), format, format,
                                  *accumulation, spread, variant == 4, variant % 2 == 1);
      expect_all_equal(made, *accumulation,
                       {variant == 2                   ? 1
                        : variant == 3 || variant == 4 ? 2
                                                       : 0,
                        variant == 3 ? 4 : kAutomatic},
                       fmt::format("{} {} to {}, variant {}", core.device, core.input, core.output, variant));
    }
  }
}

TEST(Matmul, SumsBeyondThirtyOneBitsGoThroughTheScalarRule) {
  // 32 products of almost 4 at F = 25: 2^32 units.
  const Format& format = builtin_format("e4m3fn");
  const auto accumulation = find_accumulation("b200", format);
  ASSERT_TRUE(accumulation.ok());
  Case made = make_case(1, 3, 40, 64, format, format, *accumulation, 4, false, false);
  std::fill(made.a.begin(), made.a.end(), 1.875F);
  std::fill(made.b.begin(), made.b.end(), -1.875F);
  expect_all_equal(made, *accumulation, {1, kAutomatic}, "constant operands");
  const auto product = matmul(operands_of(made), *accumulation);
  EXPECT_EQ(product->values[0], -64 * 1.875F * 1.875F);
}

TEST(Matmul, BlocksWithoutProductsOrWithSpecialSumsAreCountedAsTheDefinitionCounts) {
  const Format& format = builtin_format("binary16");
  const auto accumulation = find_accumulation("h100", format);
  ASSERT_TRUE(accumulation.ok());
  Case made = make_case(9, 13, 37, 70, format, format, *accumulation, 24, false, true);
  for (std::size_t i = 0; i < 20; ++i) made.a[i + 70] = 0;  // row 1: its first block has no product
  for (std::size_t j = 0; j < 37; ++j) made.c[37 + j] = j % 3 == 0 ? 0x1p-126F : j % 3 == 1 ? 0x1.8p100F : 0x1p-149F;
  made.a[5 * 70 + 3] = std::numeric_limits<float>::infinity();    // row 5 is infinite or NaN from here
  made.b[40 * 37 + 8] = std::numeric_limits<float>::quiet_NaN();  // column 8 is NaN from here
  expect_all_equal(made, *accumulation, {1, 1}, "sparse and special");
}

TEST(Matmul, OrderAndBlockingsEqualTheDefinition) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomStream random(seed, "blockings");
    const Format& format = builtin_format(seed % 2 == 0 ? "binary16" : "e4m3fn");
    Accumulation accumulation = seed % 4 == 1
                                    ? *find_accumulation("h100", format)
                                    : sequential(seed % 4 == 3 ? Reduction::pairwise : Reduction::sequential_rounded,
                                                 seed % 3 == 0 ? "binary16" : "binary32");
    const auto k = static_cast<std::int64_t>(2 + random.next_below(150));
    if (seed % 3 != 0) {
      accumulation.order.resize(static_cast<std::size_t>(k));
      std::iota(accumulation.order.begin(), accumulation.order.end(), 0);
      for (std::size_t i = accumulation.order.size() - 1; i > 0; --i) {
        std::swap(accumulation.order[i], accumulation.order[random.next_below(i + 1)]);
      }
    }
    Blocking inner{.splits = {},
                   .every = static_cast<std::int64_t>(1 + random.next_below(40)),
                   .join = Join::sequential,
                   .into = {.format = builtin_format("binary32")}};
    if (seed % 5 == 0) inner.join = Join::pairwise;
    if (seed % 5 == 1) inner.into = {.format = builtin_format("bfloat16"), .rounding = Rounding::sr, .random_bits = 8};
    accumulation.blockings.push_back(inner);
    if (seed % 2 == 1) {
      Blocking outer{.splits = {},
                     .every = 0,
                     .join = seed % 4 == 1 ? Join::sequential : Join::pairwise,
                     .into = {.format = builtin_format(seed % 3 == 0 ? "bfloat16" : "binary32")}};
      for (std::int64_t at = 1 + static_cast<std::int64_t>(random.next_below(30)); at < k;
           at += 1 + static_cast<std::int64_t>(random.next_below(60))) {
        outer.splits.push_back(at);
      }
      accumulation.blockings.push_back(outer);
    }
    const Case made = make_case(seed, 4, 35, k, format, format, accumulation, 12, seed % 9 == 0, seed % 2 == 0);
    expect_all_equal(made, accumulation, {seed % 2 == 0 ? 1 : 3, kAutomatic}, fmt::format("case {}", seed));
  }
}

TEST(Matmul, StochasticSumsDoNotDependOnShapeOfTheWork) {
  // The same rows alone and together: bits are keyed by the result's index in the whole product, so row 0 agrees.
  const Accumulation accumulation = sequential(Reduction::sequential_fused, "bfloat16", Rounding::sr);
  const Format& format = builtin_format("bfloat16");
  const Case made = make_case(3, 30, 40, 50, format, format, accumulation, 6, false, false);
  MatmulOperands all = operands_of(made);
  MatmulOperands first = all;
  first.m = 1;
  first.a = all.a.first(50);
  const auto whole = matmul(all, accumulation, {2, {}});
  const auto one = matmul(first, accumulation);
  ASSERT_TRUE(whole.ok() && one.ok());
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(whole->values[i], one->values[i]);
}

TEST(Matmul, StochasticSumsAreUnbiased) {
  // 1 + 2^-9 in bfloat16 (step 2^-7): a quarter of the draws round up.
  Accumulation accumulation = sequential(Reduction::sequential_fused, "bfloat16", Rounding::sr);
  const std::vector<float> a(100, 1.0F);
  const std::vector<float> b(100, 0x1p-9F);
  const std::vector<float> c(10000, 1.0F);
  const Format& format = builtin_format("bfloat16");
  const auto product = matmul({100, 100, 1, a, b, c, format, format}, accumulation);
  ASSERT_TRUE(product.ok());
  const auto up = std::count(product->values.begin(), product->values.end(), 1.0F + 0x1p-7F);
  EXPECT_NEAR(static_cast<double>(up) / 10000, 0.25, 0.02);
}

TEST(Matmul, Binary16StagnatesWhereBinary32DoesNot) {
  // Adding 1 to 2048 changes nothing in binary16: the classic absorption, counted.
  const std::vector<float> ones(4096, 1.0F);
  const Format& half = builtin_format("binary16");
  const auto product = matmul({1, 1, 4096, ones, ones, {}, half, half},
                              sequential(Reduction::sequential_rounded, "binary16"), {1, {1, 1}});
  ASSERT_TRUE(product.ok());
  EXPECT_EQ(product->values[0], 2048.0F);
  EXPECT_EQ(product->registers[0].absorbed, 2048);
  EXPECT_EQ(product->registers[0].inexact, 2048);
  const auto pairwise = matmul({1, 1, 4096, ones, ones, {}, half, half}, sequential(Reduction::pairwise, "binary16"));
  EXPECT_EQ(pairwise->values[0], 4096.0F);
}

TEST(Matmul, PromotionRestoresWhatFourteenBitsLose) {
  // DeepSeek-V3's remedy: 4096 products of 1 on H100 FP8 stop at 2^14; promoted every 128 they do not.
  const std::vector<float> ones(65536, 1.0F);
  const Format& format = builtin_format("e4m3fn");
  const auto plain = matmul({1, 1, 65536, ones, ones, {}, format, format}, *find_accumulation("h100", format));
  const auto promoted =
      matmul({1, 1, 65536, ones, ones, {}, format, format}, *find_accumulation("h100-promote-128", format));
  EXPECT_LT(plain->values[0], 65536.0F * 1.001F);
  EXPECT_EQ(promoted->values[0], 65536.0F);
}

TEST(Matmul, OverflowIsToldFromInfinityIn) {
  const Format& half = builtin_format("binary16");
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> a = {60000, 60000, infinity, 1};
  const std::vector<float> b = {1, 1};
  const auto product = matmul({2, 1, 2, a, b, {}, half, half}, sequential(Reduction::sequential_rounded, "binary16"));
  ASSERT_TRUE(product.ok());
  EXPECT_EQ(product->counters.infinite, 2);
  EXPECT_EQ(product->counters.overflow, 1);
}

TEST(Matmul, RefusesWhatHasNoAnswer) {
  const Format& half = builtin_format("binary16");
  const std::vector<float> two = {1, 2};
  const Accumulation accumulation = sequential(Reduction::sequential_fused, "binary32");
  const auto kind = [](const auto& result) { return result.ok() ? std::string("none") : result.errors()[0].kind; };
  EXPECT_EQ(kind(matmul({1, 1, 0, {}, {}, {}, half, half}, accumulation)), "shape-mismatch");
  EXPECT_EQ(kind(matmul({1, 1, 2, two, {}, {}, half, half}, accumulation)), "shape-mismatch");
  const std::vector<float> tenth = {0.1F, 1};
  EXPECT_EQ(kind(matmul({1, 1, 2, tenth, two, {}, half, half}, accumulation)), "bad-value");
  const std::vector<float> nan = {std::numeric_limits<float>::quiet_NaN(), 1};
  EXPECT_EQ(kind(matmul({1, 1, 2, nan, two, {}, half, half}, sequential(Reduction::sequential_fused, "e3m2"))),
            "bad-value");
  EXPECT_EQ(kind(matmul({1, 1, 2, two, two, {}, half, half}, sequential(Reduction::sequential_fused, "e8m0"))),
            "bad-value");
  Accumulation order = accumulation;
  order.order = {0, 0};
  EXPECT_EQ(kind(matmul({1, 1, 2, two, two, {}, half, half}, order)), "bad-value");
  Accumulation splits = accumulation;
  splits.blockings.push_back({.splits = {2}, .every = 0, .join = Join::sequential, .into = accumulation.accumulator});
  EXPECT_EQ(kind(matmul({1, 1, 2, two, two, {}, half, half}, splits)), "bad-value");
}

}  // namespace
}  // namespace plumbline::numerics
