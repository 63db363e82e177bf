#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "serve/run.h"

namespace plumbline::serve {
namespace {

ingest::Traffic traffic(ingest::Arrivals arrivals, double seconds) {
  ingest::Traffic t;
  t.profiles = {{"128", 128, 0.6}, {"512", 512, 0.4}};
  t.arrivals = arrivals;
  t.duration = Seconds(seconds);
  return t;
}

ingest::Arrivals burst(double rate, double peak, double every, double length) {
  return {ingest::ArrivalKind::burst, rate, peak, Seconds(every), Seconds(length)};
}

TEST(MakeArrivals, EqualsAnIndependentRecomputation) {
  // Computed outside this project from the definitions: SplitMix64 counter streams, -ln(1-u) gaps, time change.
  struct Row {
    std::int64_t time_ns;
    int profile;
    LoadPhase phase;
  };
  const std::vector<Row> expected = {{16235458, 0, LoadPhase::burst}, {17328695, 0, LoadPhase::burst},
                                     {25059198, 0, LoadPhase::base},  {25637370, 0, LoadPhase::base},
                                     {35592319, 1, LoadPhase::burst}, {35928437, 0, LoadPhase::burst},
                                     {37521227, 0, LoadPhase::burst}, {49282710, 1, LoadPhase::base},
                                     {50260549, 0, LoadPhase::base},  {55675668, 1, LoadPhase::burst}};
  const ArrivalTrace trace = make_arrivals(traffic(burst(200, 700, 0.020, 0.005), 0.060), {1.0}, 7);
  ASSERT_EQ(trace.arrivals.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(trace.arrivals[i].time_ns), static_cast<double>(expected[i].time_ns), 1);
    EXPECT_EQ(trace.arrivals[i].profile, expected[i].profile);
    EXPECT_EQ(trace.arrivals[i].phase, expected[i].phase);
  }
}

TEST(MakeArrivals, SameSeedSameTraceAnotherSeedAnother) {
  const ingest::Traffic t = traffic(burst(200, 700, 1, 0.1), 5);
  const ArrivalTrace a = make_arrivals(t, {0.5, 0.5}, 3);
  const ArrivalTrace b = make_arrivals(t, {0.5, 0.5}, 3);
  const ArrivalTrace c = make_arrivals(t, {0.5, 0.5}, 4);
  ASSERT_EQ(a.arrivals.size(), b.arrivals.size());
  for (std::size_t i = 0; i < a.arrivals.size(); ++i) {
    ASSERT_EQ(a.arrivals[i].time_ns, b.arrivals[i].time_ns);
    ASSERT_EQ(a.arrivals[i].model, b.arrivals[i].model);
    ASSERT_EQ(a.arrivals[i].profile, b.arrivals[i].profile);
  }
  EXPECT_NE(a.arrivals[0].time_ns, c.arrivals[0].time_ns);
}

TEST(MakeArrivals, PhaseIsThatOfTheScheduledInstantTheBurstLastInEachPeriod) {
  const ArrivalTrace trace = make_arrivals(traffic(burst(2000, 9000, 0.5, 0.05), 10.2), {1.0}, 11);
  std::int64_t last = 0;
  for (const Arrival& arrival : trace.arrivals) {
    ASSERT_GE(arrival.time_ns, last);
    last = arrival.time_ns;
    ASSERT_LT(arrival.time_ns, trace.duration_ns);
    const bool in_burst = arrival.time_ns % 500'000'000 >= 450'000'000;
    ASSERT_EQ(arrival.phase, in_burst ? LoadPhase::burst : LoadPhase::base);
  }
}

TEST(MakeArrivals, CountsOfEachPhaseArePoissonWithItsRate) {
  // 40 seeds of 9.5 s at 200/s and 0.5 s at 700/s: means 1900 and 350, variance equal to the mean.
  const ingest::Traffic t = traffic(burst(200, 700, 10, 0.5), 10);
  double sum[2] = {0, 0};
  double squares[2] = {0, 0};
  constexpr int kSeeds = 40;
  for (int seed = 0; seed < kSeeds; ++seed) {
    double count[2] = {0, 0};
    for (const Arrival& arrival : make_arrivals(t, {1.0}, static_cast<std::uint64_t>(seed)).arrivals) {
      ++count[static_cast<int>(arrival.phase)];
    }
    for (int phase = 0; phase < 2; ++phase) {
      sum[phase] += count[phase];
      squares[phase] += count[phase] * count[phase];
    }
  }
  const double expected[2] = {1900, 350};
  for (int phase = 0; phase < 2; ++phase) {
    const double mean = sum[phase] / kSeeds;
    const double variance = (squares[phase] - kSeeds * mean * mean) / (kSeeds - 1);
    EXPECT_NEAR(mean, expected[phase], 4 * std::sqrt(expected[phase] / kSeeds));
    EXPECT_GT(variance / mean, 0.4);  // chi-square over 39 degrees: beyond four sigma either way
    EXPECT_LT(variance / mean, 1.9);
  }
}

TEST(MakeArrivals, PoissonGapsAreExponential) {
  const ArrivalTrace trace = make_arrivals(traffic({ingest::ArrivalKind::poisson, 1000, 0, {}, {}}, 200), {1.0}, 5);
  double longer[3] = {0, 0, 0};
  const double n = static_cast<double>(trace.arrivals.size()) - 1;
  for (std::size_t i = 1; i < trace.arrivals.size(); ++i) {
    const std::int64_t gap = trace.arrivals[i].time_ns - trace.arrivals[i - 1].time_ns;
    for (int k = 0; k < 3; ++k) longer[k] += gap > (k + 1) * 1'000'000 ? 1 : 0;
  }
  for (int k = 0; k < 3; ++k) {
    const double p = std::exp(-(k + 1));
    EXPECT_NEAR(longer[k] / n, p, 4 * std::sqrt(p * (1 - p) / n));
  }
}

TEST(MakeArrivals, ABurstAtTheBaseRateIsPlainPoisson) {
  const ArrivalTrace plain = make_arrivals(traffic({ingest::ArrivalKind::poisson, 300, 0, {}, {}}, 20), {1.0}, 9);
  const ArrivalTrace flat = make_arrivals(traffic(burst(300, 300, 1, 0.3), 20), {1.0}, 9);
  ASSERT_EQ(plain.arrivals.size(), flat.arrivals.size());
  for (std::size_t i = 0; i < plain.arrivals.size(); ++i) {
    ASSERT_LE(std::abs(plain.arrivals[i].time_ns - flat.arrivals[i].time_ns), 1);
  }
}

TEST(MakeArrivals, AHigherPeakLeavesWhatCameBeforeTheFirstBurst) {
  const ArrivalTrace low = make_arrivals(traffic(burst(300, 600, 2, 0.5), 4), {1.0}, 2);
  const ArrivalTrace high = make_arrivals(traffic(burst(300, 900, 2, 0.5), 4), {1.0}, 2);
  std::size_t same = 0;
  while (low.arrivals[same].time_ns < 1'500'000'000) {
    ASSERT_EQ(low.arrivals[same].time_ns, high.arrivals[same].time_ns);
    ++same;
  }
  EXPECT_GT(same, 300U);
  EXPECT_NE(low.arrivals[same].time_ns, high.arrivals[same].time_ns);
}

TEST(MakeArrivals, NoBaseLoadMeansArrivalsInBurstsOnly) {
  const ArrivalTrace trace = make_arrivals(traffic(burst(0, 500, 1, 0.25), 8), {1.0}, 1);
  EXPECT_GT(trace.arrivals.size(), 800U);
  for (const Arrival& arrival : trace.arrivals) ASSERT_EQ(arrival.phase, LoadPhase::burst);
}

TEST(MakeArrivals, ConstantArrivalsAreEvenlySpacedFromZero) {
  const ArrivalTrace trace = make_arrivals(traffic({ingest::ArrivalKind::constant, 8, 0, {}, {}}, 2), {1.0}, 1);
  ASSERT_EQ(trace.arrivals.size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(trace.arrivals[i].time_ns, static_cast<std::int64_t>(i) * 125'000'000);
  }
}

TEST(MakeArrivals, SharesOfModelsAndProfilesAreDrawnIndependently) {
  const ArrivalTrace trace =
      make_arrivals(traffic({ingest::ArrivalKind::constant, 100'000, 0, {}, {}}, 1), {1.0, 0.0, 3.0}, 1);
  double count[3][2] = {};
  for (const Arrival& arrival : trace.arrivals) ++count[arrival.model][arrival.profile];
  EXPECT_EQ(count[1][0] + count[1][1], 0);
  const double expected[2] = {0.6, 0.4};
  for (int profile = 0; profile < 2; ++profile) {
    EXPECT_NEAR(count[0][profile] / 1e5, 0.25 * expected[profile], 0.006);
    EXPECT_NEAR(count[2][profile] / 1e5, 0.75 * expected[profile], 0.006);
  }
}

}  // namespace
}  // namespace plumbline::serve
