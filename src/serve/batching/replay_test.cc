#include <gtest/gtest.h>

#include <stdexcept>

#include "core/random.h"
#include "serve/run.h"
#include "serve/synthetic.h"

namespace plumbline::serve {
namespace {

using synthetic::fixed_table;
using synthetic::one_profile;
using synthetic::serving;
using synthetic::trace_at;

TEST(Replay, OnTheSameCostsIsTheRecordedRun) {
  const auto costs = synthetic::table(2, {1, 2, 4}, {8, 16}, [](std::size_t m, std::int64_t b, std::int64_t s) {
    return 3 + static_cast<std::int64_t>(m) + b * s / 8;
  });
  const std::vector<ingest::Profile> profiles = {{"8", 8, 1}, {"9", 9, 1}};
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, "replay-cases");
    ArrivalTrace trace;
    std::int64_t time = 0;
    for (int i = 0; i < 60; ++i) {
      time += static_cast<std::int64_t>(random.next_below(8));
      trace.arrivals.push_back({time, static_cast<std::uint16_t>(random.next_below(2)),
                                static_cast<std::uint16_t>(random.next_below(2)), LoadPhase::base});
    }
    ingest::Serving policy = serving(4, 5, 7);
    if (random.next_below(2) == 1) policy.group = ingest::Grouping::by_bucket;
    const serve::Run run = serve(costs, policy, profiles, trace);
    const serve::Run again = replay(costs, profiles, trace, freeze(run));
    ASSERT_EQ(again.members, run.members);
    for (std::size_t b = 0; b < run.batches.size(); ++b) {
      ASSERT_EQ(again.batches[b].start_ns, run.batches[b].start_ns);
      ASSERT_EQ(again.batches[b].end_ns, run.batches[b].end_ns);
      ASSERT_EQ(again.batches[b].entry, run.batches[b].entry);
    }
    for (std::size_t i = 0; i < run.requests.size(); ++i) ASSERT_EQ(again.requests[i].batch, run.requests[i].batch);
    ASSERT_EQ(again.end_ns, run.end_ns);
    ASSERT_EQ(again.busy_ns, run.busy_ns);
    ASSERT_EQ(again.max_queue, run.max_queue);
    ASSERT_TRUE(again.queue_integral == run.queue_integral && again.system_integral == run.system_integral);
  }
}

TEST(Replay, FasterCostsMoveDeviceBoundStartsAndKeepPolicyBoundOnes) {
  // Recorded on 100: starts 0 (idle), 100 (device), 500 (idle: the time-out of an arrival at 450).
  const ArrivalTrace trace = trace_at({0, 30, 450});
  const serve::Run run = serve(fixed_table(4, 100), serving(4, 0, 9), one_profile(), trace);
  ASSERT_EQ(run.batches.size(), 3U);
  const serve::Run fast = replay(fixed_table(4, 10), one_profile(), trace, freeze(run));
  EXPECT_EQ(fast.batches[0].start_ns, 0);
  EXPECT_EQ(fast.batches[1].start_ns, 30);  // free at 10, its member comes at 30
  EXPECT_EQ(fast.batches[2].start_ns, 450);
  const serve::Run slow = replay(fixed_table(4, 300), one_profile(), trace, freeze(run));
  EXPECT_EQ(slow.batches[1].start_ns, 300);
  EXPECT_EQ(slow.batches[2].start_ns, 600);
  EXPECT_EQ(slow.max_queue, 1);
}

TEST(Replay, AnIdleDeviceStillHoldsABatchForItsRecordedTimeOut) {
  const ArrivalTrace trace = trace_at({0, 20});
  const serve::Run run = serve(fixed_table(4, 100), serving(4, 50, 9), one_profile(), trace);
  ASSERT_EQ(run.batches.size(), 1U);
  EXPECT_EQ(replay(fixed_table(4, 10), one_profile(), trace, freeze(run)).batches[0].start_ns, 50);
}

TEST(Replay, PadsTheRecordedBatchesIntoTheNewBuckets) {
  const ArrivalTrace trace = trace_at({0, 0, 0});
  const serve::Run run = serve(fixed_table(3, 100), serving(3, 0, 9), one_profile(), trace);
  const auto costs = synthetic::table(1, {2, 8}, {0}, [](std::size_t, std::int64_t b, std::int64_t) { return b * 10; });
  EXPECT_EQ(replay(costs, one_profile(), trace, freeze(run)).busy_ns, 80);
}

TEST(Replay, RefusedRequestsStayRefused) {
  const ArrivalTrace trace = trace_at({0, 1, 2});
  const serve::Run run = serve(fixed_table(1, 100), serving(1, 0, 1), one_profile(), trace);
  ASSERT_EQ(run.requests[2].batch, kLost);
  EXPECT_EQ(replay(fixed_table(1, 1), one_profile(), trace, freeze(run)).requests[2].batch, kLost);
}

TEST(Replay, ARequestInTwoBatchesIsNoRecording) {
  const ArrivalTrace trace = trace_at({0, 0});
  FrozenBatches frozen = freeze(serve(fixed_table(1, 10), serving(1, 0, 9), one_profile(), trace));
  frozen.members[1] = 0;
  EXPECT_THROW((void)replay(fixed_table(1, 10), one_profile(), trace, frozen), std::logic_error);
}

}  // namespace
}  // namespace plumbline::serve
