#include "execute/numerics/operand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "execute/numerics/npy.h"

namespace plumbline::numerics {
namespace {

TEST(Operand, GeneratesTheSameNumbersFromTheSameSeed) {
  const auto a = read_operand("normal:100x200", 7);
  const auto b = read_operand("normal:100x200", 7);
  const auto c = read_operand("normal:100x200", 8);
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ(a->values, b->values);
  EXPECT_NE(a->values, c->values);
  EXPECT_EQ(a->rows(), 100U);
  EXPECT_EQ(a->columns(), 200U);
}

TEST(Operand, NormalHasTheMomentsOfANormal) {
  const auto operand = read_operand("normal:200000", 1);
  ASSERT_TRUE(operand.ok());
  double sum = 0, squares = 0, fourths = 0;
  for (const float v : operand->values) {
    sum += v;
    squares += v * v;
    fourths += static_cast<double>(v) * v * v * v;
  }
  const double n = 200000;
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(fourths / n, 3, 5 * std::sqrt(96 / n));
}

TEST(Operand, WrongOnesAreNamed) {
  const auto kind_of = [](const std::string& text) { return read_operand(text, 0).errors().front().kind; };
  EXPECT_EQ(kind_of("norml:3x3"), "unknown-name");
  EXPECT_EQ(kind_of("normal:3x"), "bad-number");
  EXPECT_EQ(kind_of("normal:0x3"), "bad-number");
  EXPECT_EQ(kind_of("normal:"), "bad-number");
  EXPECT_EQ(kind_of("normal:-3"), "bad-number");
  EXPECT_EQ(kind_of("normal:99999999x99999999"), "too-large");
  EXPECT_EQ(kind_of("no such file.npy"), "missing-file");
}

TEST(Operand, KeepsFloat64OriginalsThatBinary32Changes) {
  const std::string path = (std::filesystem::temp_directory_path() / "plumbline_operand_test.npy").string();
  NpyArray array;
  array.type = NpyType::f8;
  array.shape = {2};
  const double values[] = {0.1, 0.5};
  const auto bytes = std::as_bytes(std::span(values));
  array.bytes.assign(bytes.begin(), bytes.end());
  ASSERT_TRUE(save_npy(path, array).ok());
  const auto operand = read_operand(path, 0);
  std::filesystem::remove(path);
  ASSERT_TRUE(operand.ok());
  EXPECT_EQ(operand->inexact_values, 1U);
  EXPECT_EQ(operand->original(0), 0.1);
  EXPECT_EQ(operand->values[0], 0.1F);
}

}  // namespace
}  // namespace plumbline::numerics
