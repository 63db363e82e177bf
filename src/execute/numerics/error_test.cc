#include "execute/numerics/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plumbline::numerics {
namespace {

TEST(CompareValues, MeasuresEachFigureByItsDefinition) {
  const std::vector<double> originals = {1, -2, 0, 4};
  const std::vector<float> results = {1.5, -2, 0, 3};
  const ErrorSummary s = compare_values(results, [&](std::size_t i) { return originals[i]; });
  EXPECT_EQ(s.compared, 4U);
  EXPECT_EQ(s.largest, 1);
  EXPECT_EQ(s.largest_relative, 0.5);
  EXPECT_EQ(s.bias, -0.125);
  EXPECT_EQ(s.root_mean_square, std::sqrt(1.25 / 4));
  EXPECT_NEAR(s.signal_to_noise_db, 10 * std::log10(21 / 1.25), 1e-12);
}

TEST(CompareValues, SetsSpecialsAsideAndKnowsNoNoiseFromNoData) {
  const std::vector<float> results = {INFINITY, NAN, 1};
  const ErrorSummary s = compare_values(results, [&](std::size_t i) { return i == 2 ? 1.0 : NAN; });
  EXPECT_EQ(s.not_finite, 2U);
  EXPECT_EQ(s.compared, 1U);
  EXPECT_TRUE(std::isinf(s.signal_to_noise_db));
  EXPECT_EQ(compare_values({}, [](std::size_t) { return 0.0; }).compared, 0U);
}

TEST(CompareValues, SameBitsAtAnyThreadCount) {
  std::vector<float> results(100'000);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = static_cast<float>(i) * 0.1F;
  const auto original = [](std::size_t i) { return static_cast<double>(i) * 0.1; };
  const ErrorSummary one = compare_values(results, original, 1);
  const ErrorSummary many = compare_values(results, original, 4);
  EXPECT_EQ(one.root_mean_square, many.root_mean_square);
  EXPECT_EQ(one.bias, many.bias);
}

}  // namespace
}  // namespace plumbline::numerics
