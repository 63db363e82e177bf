// Closed forms of queueing theory against the simulator.
#include <gtest/gtest.h>

#include <cmath>

#include "serve/run.h"
#include "serve/synthetic.h"

namespace plumbline::serve {
namespace {

constexpr std::int64_t kService = 1'000'000;  // ns
constexpr std::int64_t kUnbounded = 1'000'000'000;

ArrivalTrace poisson(double per_service, double services, std::uint64_t seed) {
  ingest::Traffic traffic;
  traffic.profiles = synthetic::one_profile();
  traffic.arrivals = {ingest::ArrivalKind::poisson, per_service * 1e9 / kService, 0, {}, {}};
  traffic.duration = Seconds(services * kService * 1e-9);
  return make_arrivals(traffic, {1.0}, seed);
}

ArrivalTrace evenly(std::int64_t gap_ns, std::int64_t count) {
  ArrivalTrace trace;
  for (std::int64_t i = 0; i < count; ++i) trace.arrivals.push_back({i * gap_ns, 0, 0, LoadPhase::base});
  trace.duration_ns = gap_ns * count;
  return trace;
}

double loss_of(const Run& run) {
  return 1.0 - static_cast<double>(run.members.size()) / static_cast<double>(run.requests.size());
}

TEST(Queueing, MD1WaitsTwoServicesAtFourFifths) {
  // Pollaczek–Khinchine: Wq = rho / (2 (1 - rho)) services; P(no wait) = 1 - rho (arrivals see time averages).
  const ArrivalTrace trace = poisson(0.8, 1.25e6, 17);
  const serve::Run run =
      serve(synthetic::fixed_table(1, kService), synthetic::serving(1, 0, kUnbounded), synthetic::one_profile(), trace);
  const auto n = static_cast<double>(run.requests.size());
  EXPECT_NEAR(n, 1e6, 5e3);
  EXPECT_NEAR(static_cast<double>(run.queue_integral) / n / kService, 2.0, 0.09);  // three sigma of this length
  double at_once = 0;
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    const BatchRecord& batch = run.batches[static_cast<std::size_t>(run.requests[i].batch)];
    at_once += batch.start_ns == trace.arrivals[i].time_ns ? 1 : 0;
  }
  EXPECT_NEAR(at_once / n, 0.2, 0.005);
  EXPECT_NEAR(static_cast<double>(run.busy_ns) / static_cast<double>(run.end_ns), 0.8, 0.004);
}

/// Share refused by an M/D/1 that holds k in all, from the chain embedded at departures (Kleinrock 1975, chapter 5):
/// P(refused) = 1 - 1 / (pi_0 + rho), pi over 0 … k-1.
double md1k_loss(double rho, int k) {
  std::vector<double> a;  // arrivals within one service
  double term = std::exp(-rho);
  for (int i = 0; i <= k; ++i) {
    a.push_back(term);
    term *= rho / (i + 1);
  }
  std::vector<double> pi = {1.0};
  for (int i = 0; i + 1 < k; ++i) {
    const auto at = [&](int j) { return a[static_cast<std::size_t>(j)]; };
    double next = pi[static_cast<std::size_t>(i)] - pi[0] * at(i);
    for (int j = 1; j <= i; ++j) next -= pi[static_cast<std::size_t>(j)] * at(i - j + 1);
    pi.push_back(next / a[0]);
  }
  double sum = 0;
  for (const double p : pi) sum += p;
  return 1.0 - 1.0 / (pi[0] / sum + rho);
}

TEST(Queueing, AdmissionCapLosesWhatTheFiniteQueueSays) {
  EXPECT_NEAR(md1k_loss(0.8, 1), 0.8 / 1.8, 1e-12);  // Erlang B with one server, whatever the service law
  const struct {
    double rho;
    std::int64_t queue;
  } rows[] = {{0.8, 0}, {0.9, 1}, {0.9, 4}, {0.9, 9}, {1.2, 9}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.queue);
    const serve::Run run = serve(synthetic::fixed_table(1, kService), synthetic::serving(1, 0, row.queue),
                                 synthetic::one_profile(), poisson(row.rho, 6e5, 23));
    EXPECT_NEAR(loss_of(run), md1k_loss(row.rho, static_cast<int>(row.queue) + 1), 0.003);
  }
}

TEST(Queueing, DD1NeverWaitsBelowSaturation) {
  for (const std::int64_t gap : {kService, kService + 1, 2 * kService}) {
    const serve::Run run = serve(synthetic::fixed_table(1, kService), synthetic::serving(1, 0, 4),
                                 synthetic::one_profile(), evenly(gap, 1000));
    EXPECT_TRUE(run.queue_integral == 0);
    EXPECT_EQ(run.max_queue, 0);
    EXPECT_EQ(loss_of(run), 0);
    EXPECT_EQ(run.end_ns, std::max(999 * gap + kService, 1000 * gap));
  }
}

TEST(Queueing, DD1AtTwiceItsCapacityLosesHalfOnceTheQueueIsFull) {
  const serve::Run run = serve(synthetic::fixed_table(1, kService), synthetic::serving(1, 0, 10),
                               synthetic::one_profile(), evenly(kService / 2, 10'000));
  // Every second request is served; the 10 that the queue holds at the end are served besides.
  EXPECT_EQ(run.members.size(), 5000U + 10U);
  EXPECT_EQ(run.max_queue, 10);
}

TEST(Queueing, ABatchOfBIsStableAboveAlphaLambdaOverOneMinusBetaLambda) {
  // S(B) = 3 + B/2 services and one request a service: stable for B > 3 / (1 - 1/2) = 6; at 4, 4 of every 5 pass.
  const auto costs = synthetic::table(1, {1, 2, 3, 4, 5, 6, 7, 8}, {0}, [](std::size_t, std::int64_t b, std::int64_t) {
    return 3 * kService + b * kService / 2;
  });
  const ArrivalTrace trace = evenly(kService, 20'000);
  const serve::Run stable = serve(costs, synthetic::serving(8, 0, 100), synthetic::one_profile(), trace);
  EXPECT_EQ(loss_of(stable), 0);
  EXPECT_LE(stable.max_queue, 8);
  const serve::Run overloaded = serve(costs, synthetic::serving(4, 0, 100), synthetic::one_profile(), trace);
  EXPECT_NEAR(loss_of(overloaded), 0.2, 0.006);
  EXPECT_EQ(overloaded.max_queue, 100);
}

TEST(Queueing, ALoneRequestPaysTheWholeWait) {
  const serve::Run run = serve(synthetic::fixed_table(16, kService), synthetic::serving(16, kService * 2, 9),
                               synthetic::one_profile(), evenly(10 * kService, 100));
  EXPECT_TRUE(run.system_integral == static_cast<__int128>(100) * 3 * kService);
}

TEST(Queueing, WaitIsBoundedByQueueingPolicyAndService) {
  // While the device keeps up with full batches no request waits longer than the time-out and one batch ahead.
  const serve::Run run = serve(synthetic::fixed_table(16, kService), synthetic::serving(16, 2 * kService, 96),
                               synthetic::one_profile(), poisson(2.0, 20'000, 3));
  const ArrivalTrace trace = poisson(2.0, 20'000, 3);
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    const BatchRecord& batch = run.batches[static_cast<std::size_t>(run.requests[i].batch)];
    if (batch.size == 16) continue;  // may have queued behind a full one
    ASSERT_LE(batch.start_ns - trace.arrivals[i].time_ns, 2 * kService + kService);
  }
}

TEST(Queueing, WithoutBatchingAFasterDeviceFinishesEveryRequestSooner) {
  const ArrivalTrace trace = poisson(0.9, 20'000, 29);
  const auto policy = synthetic::serving(1, 0, kUnbounded);
  const serve::Run slow = serve(synthetic::fixed_table(1, kService), policy, synthetic::one_profile(), trace);
  const serve::Run fast =
      serve(synthetic::fixed_table(1, kService * 95 / 100), policy, synthetic::one_profile(), trace);
  for (std::size_t i = 0; i < slow.batches.size(); ++i) ASSERT_LT(fast.batches[i].end_ns, slow.batches[i].end_ns);
}

}  // namespace
}  // namespace plumbline::serve
