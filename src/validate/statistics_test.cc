#include "validate/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/random.h"

namespace plumbline::validate {
namespace {

TEST(Percentile, IsTheValueAtIndexFloorOfNTimesPWithoutInterpolation) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 100; i >= 1; --i) values.push_back(i * 10);
  EXPECT_EQ(percentile(values, 0.50), 510);
  EXPECT_EQ(percentile(values, 0.95), 960);
  EXPECT_EQ(percentile(values, 0.99), 1000);  // n·p whole: the maximum, where nearest rank would give the 99th
  EXPECT_EQ(percentile(values, 0.0), 10);
  EXPECT_EQ(percentile(values, 1.0), 1000);
  std::vector<std::int64_t> ninety_nine(values.begin(), values.end());
  std::sort(ninety_nine.begin(), ninety_nine.end());
  ninety_nine.pop_back();
  EXPECT_EQ(percentile(ninety_nine, 0.99), 990);
  std::vector<std::int64_t> one = {7};
  EXPECT_EQ(percentile(one, 0.99), 7);
  std::vector<std::int64_t> none;
  EXPECT_EQ(percentile(none, 0.99), -1);
}

TEST(Percentile, AWholeRankIsWholeHoweverBinaryRoundsIt) {
  // In thousandths: floor(n·k/1000) by integers.
  for (std::size_t n = 1; n <= 3000; ++n) {
    for (std::size_t k = 1; k < 1000; k += 7) {
      ASSERT_EQ(percentile_index(n, static_cast<double>(k) / 1000.0), std::min(n * k / 1000, n - 1)) << n << " " << k;
    }
  }
}

std::vector<double> rising(int n) {
  std::vector<double> d;
  for (int i = 1; i <= n; ++i) d.push_back(i);
  return d;
}

TEST(Wilcoxon, SmallestPIsTwoToTheMinusN) {
  for (const int n : {1, 4, 5, 8, 12, 20, 52}) EXPECT_EQ(wilcoxon_greater(rising(n)), std::ldexp(1.0, -n));
  EXPECT_NEAR(wilcoxon_greater(rising(60)) * std::ldexp(1.0, 60), 1.0, 1e-12);
}

TEST(Wilcoxon, CriticalValuesAreThoseOfThePublishedTable) {
  // One-sided 5 %: the largest sum of the negative ranks that is still significant (Wilcoxon and Wilcox 1964).
  const struct {
    int n;
    int critical;
  } rows[] = {{5, 0},   {6, 2},   {7, 3},   {8, 5},   {9, 8},   {10, 10},  {11, 13},
              {12, 17}, {13, 21}, {14, 25}, {15, 30}, {20, 60}, {25, 100}, {30, 151}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.n);
    for (const int negatives : {row.critical, row.critical + 1}) {
      std::vector<double> d = rising(row.n);
      int left = negatives;  // make the negative ranks sum to it, largest first
      for (int rank = row.n; rank >= 1; --rank) {
        if (rank > left) continue;
        d[static_cast<std::size_t>(rank - 1)] = -rank;
        left -= rank;
      }
      ASSERT_EQ(left, 0);
      EXPECT_EQ(wilcoxon_greater(d) <= 0.05, negatives == row.critical);
    }
  }
}

TEST(Wilcoxon, EqualsTheEnumerationOfAllSignsWithTiesAndZeros) {
  RandomStream random(1, "wilcoxon");
  for (int round = 0; round < 200; ++round) {
    std::vector<double> d;
    const std::uint64_t n = 1 + random.next_below(10);
    for (std::uint64_t i = 0; i < n; ++i) d.push_back(static_cast<double>(random.next_below(9)) - 4.0);
    std::vector<double> kept;
    for (const double v : d) {
      if (v != 0) kept.push_back(v);
    }
    // Mid-rank of v: values below it, and half of those equal to it (itself included) and a half.
    std::vector<double> ranks;
    for (const double v : kept) {
      double below = 0;
      double equal = 0;
      for (const double w : kept) {
        below += std::abs(w) < std::abs(v) ? 1 : 0;
        equal += std::abs(w) == std::abs(v) ? 1 : 0;
      }
      ranks.push_back(below + (equal + 1) / 2);
    }
    double observed = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) observed += kept[i] > 0 ? ranks[i] : 0;
    double as_large = 0;
    for (std::uint64_t signs = 0; signs < (1ULL << kept.size()); ++signs) {
      double sum = 0;
      for (std::size_t i = 0; i < kept.size(); ++i) sum += (signs >> i & 1U) != 0 ? ranks[i] : 0;
      as_large += sum >= observed ? 1 : 0;
    }
    ASSERT_DOUBLE_EQ(wilcoxon_greater(d), as_large / std::ldexp(1.0, static_cast<int>(kept.size())));
  }
}

TEST(Wilcoxon, NoDifferenceIsNoEvidence) {
  EXPECT_EQ(wilcoxon_greater({}), 1.0);
  EXPECT_EQ(wilcoxon_greater(std::vector<double>{0, 0, 0}), 1.0);
  EXPECT_EQ(wilcoxon_greater(std::vector<double>{-1, -2, -3}), 1.0);
  const std::vector<double> broken = {1, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THROW((void)wilcoxon_greater(broken), std::logic_error);
}

TEST(HodgesLehmann, IsTheMedianOfPairwiseMeans) {
  EXPECT_EQ(hodges_lehmann(std::vector<double>{5}), 5);
  EXPECT_EQ(hodges_lehmann(std::vector<double>{1, 3}), 2);           // 1, 2, 3
  EXPECT_EQ(hodges_lehmann(std::vector<double>{1, 2, 100}), 26.25);  // 1, 1.5, 2, 50.5, 51, 100: (2 + 50.5) / 2
  EXPECT_TRUE(std::isnan(hodges_lehmann({})));
}

TEST(StudentQuantile, EqualsItsClosedFormsForOneTwoAndFourDegrees) {
  for (const double p : {0.5001, 0.6, 0.75, 0.9, 0.95, 0.975, 0.99, 0.999, 0.99999}) {
    SCOPED_TRACE(p);
    const double one = std::tan(3.14159265358979323846 * (p - 0.5));
    const double two = (2 * p - 1) / std::sqrt(2 * p * (1 - p));
    const double s = std::sqrt(4 * p * (1 - p));
    const double four = 2 * std::sqrt(std::cos(std::acos(s) / 3) / s - 1);
    EXPECT_NEAR(student_quantile(p, 1), one, 1e-10 * std::max(1.0, one));
    EXPECT_NEAR(student_quantile(p, 2), two, 1e-10 * std::max(1.0, two));
    EXPECT_NEAR(student_quantile(p, 4), four, 1e-10 * std::max(1.0, four));
    EXPECT_EQ(student_quantile(1 - p, 4), -student_quantile(1 - (1 - p), 4));
  }
  EXPECT_EQ(student_quantile(0.5, 7), 0);
}

TEST(StudentQuantile, EqualsThePublishedTable) {
  // NIST/SEMATECH e-Handbook 1.3.6.7.2 and the normal limit.
  const struct {
    double degrees;
    double p95, p975, p99;
  } rows[] = {{3, 2.353, 3.182, 4.541},  {5, 2.015, 2.571, 3.365},   {10, 1.812, 2.228, 2.764},
              {11, 1.796, 2.201, 2.718}, {19, 1.729, 2.093, 2.539},  {30, 1.697, 2.042, 2.457},
              {60, 1.671, 2.000, 2.390}, {100, 1.660, 1.984, 2.364}, {1e7, 1.644854, 1.959964, 2.326348}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.degrees);
    const double tolerance = row.degrees < 1e6 ? 0.00051 : 2e-6;
    EXPECT_NEAR(student_quantile(0.95, row.degrees), row.p95, tolerance);
    EXPECT_NEAR(student_quantile(0.975, row.degrees), row.p975, tolerance);
    EXPECT_NEAR(student_quantile(0.99, row.degrees), row.p99, tolerance);
  }
}

TEST(StudentQuantile, InvertsTheIntegralOfTheDensity) {
  // Simpson's rule over the density, normalised by the integral itself: no gamma function is shared with the code.
  for (const double degrees : {1.5, 3.0, 7.0, 11.0, 23.5, 40.0, 250.0}) {
    for (const double p : {0.6, 0.9, 0.95, 0.975, 0.995}) {
      SCOPED_TRACE(degrees);
      const auto density = [&](double t) { return std::pow(1 + t * t / degrees, -(degrees + 1) / 2); };
      const auto integral = [&](double to) {
        constexpr int kSteps = 20000;
        const double h = to / kSteps;
        double sum = density(0) + density(to);
        for (int i = 1; i < kSteps; ++i) sum += density(i * h) * (i % 2 == 1 ? 4 : 2);
        return sum * h / 3;
      };
      const double half = std::sqrt(degrees * 3.14159265358979323846) *
                          std::exp(std::lgamma(degrees / 2) - std::lgamma((degrees + 1) / 2)) / 2;
      EXPECT_NEAR(0.5 + 0.5 * integral(student_quantile(p, degrees)) / half, p, 1e-10);
    }
  }
}

TEST(MeanInterval, IsTheTIntervalWithSampleDeviation) {
  const MeanInterval interval = mean_interval(std::vector<double>{2, 4, 4, 6}, 0.95);
  EXPECT_EQ(interval.mean, 4);
  EXPECT_DOUBLE_EQ(interval.sd, std::sqrt(8.0 / 3.0));
  const double half = 3.182446305 * std::sqrt(8.0 / 3.0) / 2;
  EXPECT_NEAR(interval.low, 4 - half, 1e-8);
  EXPECT_NEAR(interval.high, 4 + half, 1e-8);
  EXPECT_EQ(interval.n, 4);
  EXPECT_NEAR(upper_bound(std::vector<double>{2, 4, 4, 6}, 0.95), 4 + 2.353363435 * std::sqrt(8.0 / 3.0) / 2, 1e-8);
}

TEST(MeanInterval, IsUnboundedBelowTwoValuesAndAPointForEqualOnes) {
  const MeanInterval one = mean_interval(std::vector<double>{3}, 0.95);
  EXPECT_EQ(one.mean, 3);
  EXPECT_TRUE(std::isinf(one.low) && std::isinf(one.high) && one.low < one.high);
  EXPECT_TRUE(std::isinf(upper_bound(std::vector<double>{3}, 0.95)));
  EXPECT_TRUE(std::isnan(mean_interval({}, 0.95).mean));
  const MeanInterval equal = mean_interval(std::vector<double>{3, 3, 3}, 0.95);
  EXPECT_EQ(equal.low, 3);
  EXPECT_EQ(equal.high, 3);
}

TEST(Holm, RejectsStepDownUntilTheFirstThatFails) {
  // 0.01·4, 0.016·3 pass (0.016·4 would not); 0.03·2 fails; 0.04 is then never asked.
  EXPECT_EQ(holm(std::vector<double>{0.03, 0.01, 0.04, 0.016}, 0.05), std::vector<bool>({false, true, false, true}));
  EXPECT_EQ(holm(std::vector<double>{0.0125, 0.2, 0.2, 0.2}, 0.05), std::vector<bool>({true, false, false, false}));
  EXPECT_EQ(holm(std::vector<double>{0.0126, 0.2, 0.2, 0.2}, 0.05), std::vector<bool>({false, false, false, false}));
  EXPECT_TRUE(holm({}, 0.05).empty());
  EXPECT_EQ(holm(std::vector<double>{std::numeric_limits<double>::quiet_NaN()}, 0.05), std::vector<bool>({false}));
}

TEST(PairsNeeded, IsTheFirstNWhoseIntervalClearsTheMargin) {
  for (const double distance : {0.2, 0.5, 1.0, 3.0}) {
    const std::int64_t n = pairs_needed(1.0, 1.0, 1.0 + distance, 0.05);
    EXPECT_EQ(n, pairs_needed(1.0 + distance, 1.0, 1.0, 0.05));  // below or above the margin alike
    const auto half = [](std::int64_t pairs) {
      const auto m = static_cast<double>(pairs);
      return student_quantile(0.95, m - 1) / std::sqrt(m);
    };
    EXPECT_LT(half(n), distance);
    if (n > 2) {
      EXPECT_GE(half(n - 1), distance);
    }
  }
  EXPECT_EQ(pairs_needed(0, 1, 1, 0.05), 5);  // 2.132/sqrt 5 = 0.95, 2.353/sqrt 4 = 1.18
  EXPECT_EQ(pairs_needed(0, 0, 1, 0.05), 2);
  EXPECT_EQ(pairs_needed(1, 1, 1, 0.05), -1);
  EXPECT_EQ(pairs_needed(0, 1, 0.001, 0.05), -1);
}

TEST(EarlyStopping, SmallestNForEachCountOverTheLimit) {
  // From the binomial at confidence 0.99; 64 and 662 are LoadGen's own constants.
  const struct {
    double p;
    std::vector<std::int64_t> smallest;
  } rows[] = {{0.90, {44, 64, 81, 97}},
              {0.95, {90, 130, 165, 198}},
              {0.99, {459, 662, 838, 1001, 1157, 1307}},
              {0.999, {4603, 6636, 8403}}};
  for (const auto& row : rows) {
    for (std::size_t t = 0; t < row.smallest.size(); ++t) {
      SCOPED_TRACE(row.smallest[t]);
      EXPECT_TRUE(early_stopping_passes(row.smallest[t], static_cast<std::int64_t>(t), row.p, 0.99));
      EXPECT_FALSE(early_stopping_passes(row.smallest[t] - 1, static_cast<std::int64_t>(t), row.p, 0.99));
    }
  }
}

TEST(EarlyStopping, DiscardsWhatLoadGenReports) {
  // One fewer than the count allowed: the last one allowed is the estimate itself. Printed by LoadGen for p90.
  EXPECT_EQ(early_stopping_allowed(10'000, 0.90, 0.99) - 1, 929);
  EXPECT_EQ(early_stopping_allowed(7'914, 0.90, 0.99) - 1, 728);
  EXPECT_EQ(early_stopping_allowed(100, 0.90, 0.99) - 1, 2);
  EXPECT_EQ(early_stopping_allowed(43, 0.90, 0.99), -1);
  EXPECT_EQ(early_stopping_allowed(44, 0.90, 0.99), 0);
}

TEST(EarlyStopping, FixedSizesOfATwentiethMarginStillHold) {
  // (1-p)/20 under the limit at 99 %: the older fixed sizes 24,576, 57,344 and 270,336 must pass, far less must not.
  const struct {
    double p;
    std::int64_t n;
  } rows[] = {{0.90, 24'576}, {0.95, 57'344}, {0.99, 270'336}};
  for (const auto& row : rows) {
    const auto over = static_cast<std::int64_t>(static_cast<double>(row.n) * (1 - row.p) * 0.95);
    EXPECT_TRUE(early_stopping_passes(row.n, over, row.p, 0.99));
    EXPECT_FALSE(early_stopping_passes(row.n / 2, over / 2, row.p, 0.99));
  }
}

TEST(EarlyStopping, CountsAboveTheMeanOrAllOverTheLimitNeverPass) {
  EXPECT_FALSE(early_stopping_passes(1000, 100, 0.90, 0.99));
  EXPECT_FALSE(early_stopping_passes(1000, 900, 0.90, 0.99));
  EXPECT_FALSE(early_stopping_passes(1000, 1000, 0.90, 0.99));
  EXPECT_FALSE(early_stopping_passes(0, 0, 0.90, 0.99));
}

}  // namespace
}  // namespace plumbline::validate
