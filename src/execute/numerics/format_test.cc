#include "execute/numerics/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plumbline::numerics {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Rounding kDeterministic[] = {Rounding::rne, Rounding::rtz, Rounding::ru, Rounding::rd, Rounding::rna};

std::uint32_t code_of(double value, std::string_view format, Rounding rounding = Rounding::rne,
                      Saturation saturation = Saturation::off) {
  return encode(value, builtin_format(format), rounding, saturation).code;
}

TEST(Format, EveryCodeOfEveryFormatUpTo19BitsComesBackUnchangedInEveryMode) {
  for (const Format& format : builtin_formats()) {
    if (format.bits() > 19) continue;
    for (std::uint32_t code = 0; code <= format.code_count_minus_one(); ++code) {
      const double value = decode(code, format);
      for (const Rounding rounding : kDeterministic) {
        const Encoded again = encode(value, format, rounding, Saturation::off);
        if (is_nan_code(code, format)) {
          EXPECT_TRUE(is_nan_code(again.code, format)) << format.name << " " << code;
          EXPECT_EQ(again.flags, kNanIn);
        } else {
          ASSERT_EQ(again.code, code) << format.name << " " << to_string(rounding);
          ASSERT_EQ(again.flags & ~(kInfinityIn | kSubnormal), 0) << format.name << " " << code;
        }
      }
    }
  }
}

TEST(Format, CodesAreMonotoneInValueAndMaxIsTheLargest) {
  for (const Format& format : builtin_formats()) {
    if (format.bits() > 19) continue;
    for (std::uint32_t code = 1; code <= format.max_code(); ++code) {
      ASSERT_GT(decode(code, format), decode(code - 1, format)) << format.name << " " << code;
    }
    if (format.max_code() < format.magnitude_mask()) {
      EXPECT_FALSE(std::isfinite(decode(format.max_code() + 1, format))) << format.name;
    }
  }
}

TEST(Format, ExtremesAreThoseOfTheSpecifications) {
  struct Row {
    const char* name;
    double max, min_normal, min_positive;
  };
  // OCP 8-bit Floating Point 1.0 tables 1-2, OCP MX 1.0 tables 1-5, IEEE 754-2019 table 3.5.
  const Row rows[] = {{"binary16", 65504, 0x1p-14, 0x1p-24},
                      {"bfloat16", (2 - 0x1p-7) * 0x1p127, 0x1p-126, 0x1p-133},
                      {"tf32", (2 - 0x1p-10) * 0x1p127, 0x1p-126, 0x1p-136},
                      {"e4m3fn", 448, 0x1p-6, 0x1p-9},
                      {"e4m3fnuz", 240, 0x1p-7, 0x1p-10},
                      {"e5m2", 57344, 0x1p-14, 0x1p-16},
                      {"e5m2fnuz", 57344, 0x1p-15, 0x1p-17},
                      {"e3m2", 28, 0x1p-2, 0x1p-4},
                      {"e2m3", 7.5, 1, 0x1p-3},
                      {"e2m1", 6, 1, 0.5},
                      {"e8m0", 0x1p127, 0x1p-127, 0x1p-127}};
  for (const Row& row : rows) {
    const Format& format = builtin_format(row.name);
    EXPECT_EQ(format.max_value(), row.max) << row.name;
    EXPECT_EQ(std::ldexp(1.0, format.min_normal_exponent()), row.min_normal) << row.name;
    EXPECT_EQ(std::ldexp(1.0, format.min_positive_exponent()), row.min_positive) << row.name;
  }
}

TEST(Encode, NearestEvenOverflowsExactlyAtTheStatedThresholds) {
  EXPECT_EQ(code_of(464, "e4m3fn"), 0x7EU);  // the tie goes to 448
  EXPECT_EQ(code_of(std::nextafter(464.0, 500.0), "e4m3fn"), 0x7FU);
  EXPECT_EQ(code_of(std::nextafter(248.0, 0.0), "e4m3fnuz"), 0x7FU);
  EXPECT_EQ(code_of(248, "e4m3fnuz"), 0x80U);  // the tie goes to 256, which is NaN
  EXPECT_EQ(code_of(std::nextafter(61440.0, 0.0), "e5m2"), 0x7BU);
  EXPECT_EQ(code_of(61440, "e5m2"), 0x7CU);
  EXPECT_EQ(code_of(std::nextafter(65520.0, 0.0), "binary16"), 0x7BFFU);
  EXPECT_EQ(code_of(65520, "binary16"), 0x7C00U);
}

TEST(Encode, DirectedOverflowWithoutSaturationFollowsIeee) {
  EXPECT_EQ(code_of(1e6, "e5m2", Rounding::rtz), 0x7BU);
  EXPECT_EQ(code_of(1e6, "e5m2", Rounding::ru), 0x7CU);
  EXPECT_EQ(code_of(-1e6, "e5m2", Rounding::ru), 0xFBU);
  EXPECT_EQ(code_of(1e6, "e5m2", Rounding::rd), 0x7BU);
  EXPECT_EQ(code_of(-1e6, "e5m2", Rounding::rd), 0xFCU);
  EXPECT_EQ(code_of(1e6, "e4m3fn", Rounding::ru), 0x7FU);
}

TEST(Encode, SaturationClampsInfinityAndKeepsNan) {
  const Format& e5m2 = builtin_format("e5m2");
  const Encoded infinite = encode(-kInfinity, e5m2, Rounding::rne, Saturation::on);
  EXPECT_EQ(infinite.code, 0xFBU);
  EXPECT_EQ(infinite.flags, kInfinityIn | kSaturated);
  const Encoded nan = encode(std::nan(""), e5m2, Rounding::rne, Saturation::on);
  EXPECT_TRUE(is_nan_code(nan.code, e5m2));
}

TEST(Encode, NanIntoAFormatWithoutNanIsACountedError) {
  for (const char* name : {"e3m2", "e2m3", "e2m1"}) {
    const Encoded lost = encode(std::nan(""), builtin_format(name), Rounding::rne, Saturation::off);
    EXPECT_EQ(lost.code, 0U);
    EXPECT_EQ(lost.flags, kNanIn | kNanLost);
  }
}

TEST(Encode, ScaleFormatRejectsZeroAndNegativeInputs) {
  const Format& e8m0 = builtin_format("e8m0");
  for (const double value : {0.0, -0.0, -1.0, -kInfinity}) {
    const Encoded encoded = encode(value, e8m0, Rounding::rtz, Saturation::on);
    EXPECT_EQ(encoded.code, 0xFFU);
    EXPECT_NE(encoded.flags & kOutOfDomain, 0);
  }
  EXPECT_EQ(code_of(3, "e8m0", Rounding::rtz), 128U);
  EXPECT_EQ(code_of(3, "e8m0", Rounding::ru), 129U);
}

TEST(Encode, FnuzHasNoNegativeZero) {
  EXPECT_EQ(code_of(-0.0, "e4m3fnuz"), 0U);
  EXPECT_EQ(code_of(-1e-9, "e5m2fnuz"), 0U);
  EXPECT_EQ(code_of(-1e-9, "e5m2"), 0x80U);
}

TEST(Encode, FlagsSayWhatHappened) {
  const Format& e2m1 = builtin_format("e2m1");
  const auto flags = [&](double value) { return encode(value, e2m1, Rounding::rne, Saturation::on).flags; };
  EXPECT_EQ(flags(1.5), 0);
  EXPECT_EQ(flags(0.0), 0);
  EXPECT_EQ(flags(0.1), kInexact | kUnderflowToZero);
  EXPECT_EQ(flags(0.5), kSubnormal);
  EXPECT_EQ(flags(0.6), kSubnormal | kInexact);
  EXPECT_EQ(flags(0.9), kInexact);  // rounds up into the normals
  EXPECT_EQ(flags(8.0), kOverflow | kSaturated | kInexact);
}

TEST(Encode, StochasticRoundsAwayForExactlyTheStatedShareOfDraws) {
  const Format& e4m3 = builtin_format("e4m3fn");
  constexpr int kBits = 8;
  for (int numerator = 0; numerator < 1024; ++numerator) {
    const double fraction = numerator / 1024.0;
    int away = 0;
    for (std::uint32_t draw = 0; draw < 256; ++draw) {
      away += encode(1 + fraction / 8, e4m3, Rounding::sr, Saturation::off, {draw, kBits}).code == 0x39;
    }
    EXPECT_EQ(away, numerator / 4) << fraction;  // floor(d 2^8) of 256 draws
  }
}

TEST(Encode, StochasticUnderflowKeepsItsProbabilityFarBelowTheGrid) {
  const Format& e4m3 = builtin_format("e4m3fn");
  const double least = 0x1p-9;
  const std::uint32_t all = (1U << 31) - 1;
  EXPECT_EQ(encode(least * 0x1p-31, e4m3, Rounding::sr, Saturation::off, {all, 31}).code, 1U);
  EXPECT_EQ(encode(least * 0x1p-31, e4m3, Rounding::sr, Saturation::off, {all - 1, 31}).code, 0U);
  EXPECT_EQ(encode(least * 0x1p-32, e4m3, Rounding::sr, Saturation::off, {all, 31}).code, 0U);
}

TEST(Encode, SubnormalDoublesAreInputsToo) {
  const Format& binary32 = builtin_format("binary32");
  const double least = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(encode(least, binary32, Rounding::rne, Saturation::off).flags, kInexact | kUnderflowToZero);
  EXPECT_EQ(encode(least, binary32, Rounding::ru, Saturation::off).code, 1U);
}

TEST(MakeFormat, AcceptsAUserRow) {
  const auto made = make_format({.name = "e3m4", .exponent_bits = 3, .fraction_bits = 4, .bias = 6});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->bits(), 8);
  EXPECT_EQ(made->max_code(), 0x7FU);
  EXPECT_EQ(made->max_value(), (1 + 15.0 / 16) * 2);
  const auto standard = make_format(
      {.name = "half", .exponent_bits = 5, .fraction_bits = 10, .has_infinity = true, .nan = NanEncoding::ieee});
  ASSERT_TRUE(standard.ok());
  EXPECT_EQ(standard->max_value(), builtin_format("binary16").max_value());
}

TEST(MakeFormat, RejectsRowsThatMeanNothing) {
  const FormatRow rows[] = {
      {.name = "a", .exponent_bits = 0, .fraction_bits = 3},
      {.name = "b", .exponent_bits = 9, .fraction_bits = 3},
      {.name = "c", .exponent_bits = 4, .fraction_bits = 24},
      {.name = "d", .exponent_bits = 4, .fraction_bits = 3, .nan = NanEncoding::ieee},
      {.name = "e", .exponent_bits = 8, .fraction_bits = 3},  // reaches 2^128
      {.name = "f", .exponent_bits = 4, .fraction_bits = 3, .bias = 200},
      {.name = "g", .exponent_bits = 4, .fraction_bits = 3, .bias = -1},
      {.name = "h", .exponent_bits = 1, .fraction_bits = 0},
  };
  for (const FormatRow& row : rows) {
    const auto made = make_format(row);
    ASSERT_FALSE(made.ok()) << row.name;
    EXPECT_EQ(made.errors().front().kind, "bad-value") << row.name;
  }
}

TEST(FindFormat, KnowsTheNamesOfPrecisionPolicies) {
  EXPECT_EQ(find_format("bf16")->name, "bfloat16");
  EXPECT_EQ(find_format("fp16")->name, "binary16");
  EXPECT_EQ(find_format("fp32")->name, "binary32");
}

TEST(FindFormat, SuggestsTheNearestName) {
  const auto found = find_format("e4m3");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.errors().front().kind, "unknown-name");
  EXPECT_NE(found.errors().front().help.find("e4m3fn"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::numerics
