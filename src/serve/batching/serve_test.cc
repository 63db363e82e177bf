#include <gtest/gtest.h>

#include <algorithm>
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

std::vector<std::int64_t> starts(const Run& run) {
  std::vector<std::int64_t> times;
  for (const BatchRecord& batch : run.batches) times.push_back(batch.start_ns);
  return times;
}

std::vector<std::int32_t> sizes(const Run& run) {
  std::vector<std::int32_t> all;
  for (const BatchRecord& batch : run.batches) all.push_back(batch.size);
  return all;
}

using Times = std::vector<std::int64_t>;
using Sizes = std::vector<std::int32_t>;

TEST(Dispatch, GoesWhenTheOldestHasWaited) {
  const serve::Run run = serve(fixed_table(4, 50), serving(4, 100, 9), one_profile(), trace_at({10, 60}));
  EXPECT_EQ(starts(run), Times({110}));
  EXPECT_EQ(sizes(run), Sizes({2}));
  EXPECT_EQ(run.end_ns, 160);
}

TEST(Dispatch, AnArrivalAtTheInstantOfDispatchJoinsAndOneLaterDoesNot) {
  const serve::Run joins = serve(fixed_table(4, 50), serving(4, 100, 9), one_profile(), trace_at({0, 100}));
  EXPECT_EQ(sizes(joins), Sizes({2}));
  const serve::Run late = serve(fixed_table(4, 50), serving(4, 100, 9), one_profile(), trace_at({0, 101}));
  EXPECT_EQ(sizes(late), Sizes({1, 1}));
  EXPECT_EQ(starts(late), Times({100, 201}));
}

TEST(Dispatch, GoesAtTheArrivalThatFillsTheBatch) {
  const serve::Run full = serve(fixed_table(3, 50), serving(3, 100, 9), one_profile(), trace_at({0, 20, 70}));
  EXPECT_EQ(starts(full), Times({70}));
  const serve::Run one_short = serve(fixed_table(3, 50), serving(3, 100, 9), one_profile(), trace_at({0, 20, 101}));
  EXPECT_EQ(starts(one_short), Times({100, 201}));
}

TEST(Dispatch, WaitsForTheDeviceAndTakesWhatCameMeanwhile) {
  // The first batch holds the device until 1000; at 999 and 1000 requests still join, at 1001 not.
  const serve::Run run = serve(fixed_table(8, 1000), serving(8, 0, 9), one_profile(), trace_at({0, 999, 1000, 1001}));
  EXPECT_EQ(starts(run), Times({0, 1000, 2000}));
  EXPECT_EQ(sizes(run), Sizes({1, 2, 1}));
}

TEST(Dispatch, LeavesTheRestOfTheQueueForTheNextBatch) {
  const serve::Run run = serve(fixed_table(2, 10), serving(2, 1000, 9), one_profile(), trace_at({0, 0, 0, 0, 0}));
  EXPECT_EQ(sizes(run), Sizes({2, 2, 1}));
  EXPECT_EQ(starts(run), Times({0, 10, 1000}));  // the last waits alone for company
}

TEST(Admission, CountsTheWaitingAndNotThoseInService) {
  // One in service, two waiting, the fourth refused; at 100 a place is free again.
  const serve::Run run = serve(fixed_table(1, 100), serving(1, 0, 2), one_profile(), trace_at({0, 1, 2, 3, 100}));
  EXPECT_EQ(run.requests[3].batch, kLost);
  EXPECT_NE(run.requests[4].batch, kLost);
  EXPECT_EQ(run.batches.size(), 4U);
  EXPECT_EQ(run.max_queue, 2);
}

TEST(Admission, APlaceIsFreeAtTheInstantTheDeviceIsAndNotBefore) {
  const serve::Run at_end = serve(fixed_table(1, 100), serving(1, 0, 1), one_profile(), trace_at({0, 1, 100}));
  EXPECT_NE(at_end.requests[2].batch, kLost);
  const serve::Run before = serve(fixed_table(1, 100), serving(1, 0, 1), one_profile(), trace_at({0, 1, 99}));
  EXPECT_EQ(before.requests[2].batch, kLost);
}

TEST(Admission, WithoutAQueueTheFreeDeviceStillServes) {
  const serve::Run run = serve(fixed_table(1, 100), serving(1, 0, 0), one_profile(), trace_at({0, 99, 100}));
  EXPECT_EQ(run.requests[1].batch, kLost);
  EXPECT_EQ(starts(run), Times({0, 100}));
  EXPECT_EQ(run.max_queue, 0);
}

TEST(Padding, TakesTheBucketOfTheSizeAndOfTheLongestMember) {
  const auto costs = synthetic::table(1, {1, 4, 8}, {128, 512},
                                      [](std::size_t, std::int64_t b, std::int64_t s) { return b * 1000 + s; });
  const std::vector<ingest::Profile> profiles = {{"100", 100, 1}, {"128", 128, 1}, {"129", 129, 1}};
  ArrivalTrace trace = trace_at({0, 0, 0, 10000, 20000, 20000, 20000, 20000, 20000});
  trace.arrivals[2].profile = 2;
  trace.arrivals[3].profile = 1;
  const serve::Run run = serve(costs, serving(8, 0, 9), profiles, trace);
  ASSERT_EQ(run.batches.size(), 3U);
  EXPECT_EQ(run.batches[0].end_ns - run.batches[0].start_ns, 4 * 1000 + 512);  // three, one of them too long for 128
  EXPECT_EQ(run.batches[1].end_ns - run.batches[1].start_ns, 1 * 1000 + 128);
  EXPECT_EQ(run.batches[2].end_ns - run.batches[2].start_ns, 8 * 1000 + 128);
}

TEST(Padding, ATableWithoutSequencesIgnoresTheProfilesLength) {
  const std::vector<ingest::Profile> profiles = {{"512", 512, 1}};
  EXPECT_EQ(serve(fixed_table(1, 10), serving(1, 0, 1), profiles, trace_at({0})).busy_ns, 10);
}

TEST(Padding, WhatFitsNoBucketIsTheCallersBug) {
  const auto costs = synthetic::table(1, {4}, {128}, [](std::size_t, std::int64_t, std::int64_t) { return 1; });
  EXPECT_THROW((void)serve(costs, serving(4, 0, 1), {{"129", 129, 1}}, trace_at({0})), std::logic_error);
  EXPECT_THROW((void)serve(costs, serving(5, 0, 1), {{"1", 1, 1}}, trace_at({0})), std::logic_error);
}

TEST(Grouping, ByBucketKeepsShortRequestsOutOfLongBatches) {
  const auto costs = synthetic::table(1, {4}, {128, 512}, [](std::size_t, std::int64_t, std::int64_t s) { return s; });
  const std::vector<ingest::Profile> profiles = {{"short", 100, 1}, {"long", 500, 1}};
  ArrivalTrace trace = trace_at({0, 0, 0, 0});
  trace.arrivals[1].profile = 1;
  trace.arrivals[3].profile = 1;
  ingest::Serving policy = serving(4, 0, 9);
  EXPECT_EQ(serve(costs, policy, profiles, trace).busy_ns, 512);
  policy.group = ingest::Grouping::by_bucket;
  const serve::Run apart = serve(costs, policy, profiles, trace);
  EXPECT_EQ(apart.members, Sizes({0, 2, 1, 3}));
  EXPECT_EQ(apart.busy_ns, 128 + 512);
}

TEST(Grouping, ModelsNeverShareABatchAndTheOldestHeadGoesFirst) {
  const auto costs = synthetic::table(2, {4}, {0}, [](std::size_t, std::int64_t, std::int64_t) { return 100; });
  ArrivalTrace trace = trace_at({0, 10, 11, 12, 13});
  trace.arrivals[1].model = 1;
  trace.arrivals[3].model = 1;
  const serve::Run run = serve(costs, serving(4, 0, 9), one_profile(), trace);
  EXPECT_EQ(run.members, Sizes({0, 1, 3, 2, 4}));
  EXPECT_EQ(starts(run), Times({0, 100, 200}));
}

TEST(Grouping, AGroupThatIsReadyDoesNotWaitForAnOlderOneThatIsNot) {
  const auto costs = synthetic::table(2, {2}, {0}, [](std::size_t, std::int64_t, std::int64_t) { return 100; });
  ArrivalTrace trace = trace_at({0, 10, 11});
  trace.arrivals[1].model = 1;
  trace.arrivals[2].model = 1;
  const serve::Run run = serve(costs, serving(2, 50, 9), one_profile(), trace);
  EXPECT_EQ(run.members, Sizes({1, 2, 0}));
  EXPECT_EQ(starts(run), Times({11, 111}));
}

TEST(Serve, ARunWithoutRequestsLastsAsLongAsItsTrace) {
  ArrivalTrace trace;
  trace.duration_ns = 500;
  const serve::Run run = serve(fixed_table(1, 10), serving(1, 0, 1), one_profile(), trace);
  EXPECT_TRUE(run.batches.empty());
  EXPECT_EQ(run.end_ns, 500);
}

TEST(Serve, AReusedRunEqualsAFreshOne) {
  serve::Run reused;
  serve_into(reused, fixed_table(1, 10), serving(1, 0, 1), one_profile(), trace_at({0, 1, 2, 3, 4, 5}));
  serve_into(reused, fixed_table(2, 7), serving(2, 3, 1), one_profile(), trace_at({0, 5}));
  const serve::Run fresh = serve(fixed_table(2, 7), serving(2, 3, 1), one_profile(), trace_at({0, 5}));
  EXPECT_EQ(reused.members, fresh.members);
  EXPECT_EQ(starts(reused), starts(fresh));
  EXPECT_EQ(reused.requests.size(), fresh.requests.size());
  EXPECT_EQ(reused.busy_ns, fresh.busy_ns);
  EXPECT_TRUE(reused.system_integral == fresh.system_integral && reused.max_queue == fresh.max_queue);
}

/// The rule of docs/serving.md written down instant by instant, with none of the event loop's shortcuts.
class Reference {
 public:
  Reference(const execute::CostTable& costs, const ingest::Serving& policy,
            const std::vector<ingest::Profile>& profiles, const ArrivalTrace& trace)
      : costs_(costs), policy_(policy), profiles_(profiles), trace_(trace) {}

  Run go() {
    run_.requests.resize(trace_.arrivals.size());
    std::size_t next = 0;
    for (now_ = 0; next < trace_.arrivals.size() || !waiting_.empty() || free_ > now_; ++now_) {
      for (; next < trace_.arrivals.size() && trace_.arrivals[next].time_ns == now_; ++next) arrive(next);
      if (free_ <= now_ && oldest_ready() != waiting_.size()) dispatch();
      run_.queue_integral += static_cast<__int128>(waiting_.size());  // over [now, now + 1)
      run_.max_queue = std::max(run_.max_queue, static_cast<std::int64_t>(waiting_.size()));
    }
    return run_;
  }

 private:
  std::size_t bucket(std::size_t request) const {
    std::size_t b = 0;
    while (costs_.sequence_buckets[b] < profiles_[trace_.arrivals[request].profile].sequence) ++b;
    return b;
  }
  bool together(std::size_t a, std::size_t b) const {
    if (trace_.arrivals[a].model != trace_.arrivals[b].model) return false;
    return policy_.group == ingest::Grouping::mixed || bucket(a) == bucket(b);
  }
  std::vector<std::size_t> batch_of(std::size_t head) const {
    std::vector<std::size_t> batch;
    for (const std::size_t request : waiting_) {
      if (together(request, head) && static_cast<std::int64_t>(batch.size()) < policy_.batch_max) {
        batch.push_back(request);
      }
    }
    return batch;
  }
  /// Position in waiting_ of the oldest request that heads a ready group; its size when there is none.
  std::size_t oldest_ready() const {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const std::vector<std::size_t> batch = batch_of(waiting_[i]);
      if (batch[0] != waiting_[i]) continue;
      const bool waited = trace_.arrivals[batch[0]].time_ns + policy_.wait.raw() <= now_;
      if (waited || static_cast<std::int64_t>(batch.size()) == policy_.batch_max) return i;
    }
    return waiting_.size();
  }
  void arrive(std::size_t request) {
    const bool full = static_cast<std::int64_t>(waiting_.size()) >= policy_.queue;
    if (full && free_ > now_) return;
    if (full && oldest_ready() != waiting_.size()) {
      dispatch();
      waiting_.push_back(request);
      return;
    }
    waiting_.push_back(request);
    if (!full) return;
    if (oldest_ready() != waiting_.size()) {
      dispatch();
    } else {
      waiting_.pop_back();
    }
  }
  void dispatch() {
    const std::vector<std::size_t> batch = batch_of(waiting_[oldest_ready()]);
    std::size_t sequence = 0;
    const auto first = static_cast<std::int32_t>(run_.members.size());
    for (const std::size_t request : batch) {
      sequence = std::max(sequence, bucket(request));
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), request));
      run_.requests[request].batch = static_cast<std::int32_t>(run_.batches.size());
      run_.members.push_back(static_cast<std::int32_t>(request));
    }
    std::size_t size = 0;
    while (costs_.batch_buckets[size] < static_cast<std::int64_t>(batch.size())) ++size;
    const std::size_t entry = costs_.index(trace_.arrivals[batch[0]].model, size, sequence);
    free_ = now_ + costs_.entries[entry].duration.raw();
    run_.batches.push_back(
        {now_, free_, static_cast<std::int32_t>(entry), static_cast<std::int32_t>(batch.size()), first});
  }

  const execute::CostTable& costs_;
  const ingest::Serving& policy_;
  const std::vector<ingest::Profile>& profiles_;
  const ArrivalTrace& trace_;
  Run run_;
  std::vector<std::size_t> waiting_;
  std::int64_t now_ = 0;
  std::int64_t free_ = 0;
};

struct Case {
  execute::CostTable costs;
  ingest::Serving policy;
  std::vector<ingest::Profile> profiles;
  ArrivalTrace trace;
};

/// Times are small integers, so that arrivals, completions and time-outs coincide often.
Case random_case(std::uint64_t seed) {
  RandomStream random(seed, "serve-cases");
  Case c;
  const std::size_t models = 1 + random.next_below(3);
  const std::uint64_t spread = 1 + random.next_below(12);
  c.costs = synthetic::table(models, {1, 2, 5}, {8, 16}, [&](std::size_t, std::int64_t, std::int64_t) {
    return static_cast<std::int64_t>(1 + random.next_below(spread));
  });
  c.profiles = {{"7", 7, 1}, {"8", 8, 1}, {"9", 9, 1}};
  c.policy = serving(static_cast<std::int64_t>(1 + random.next_below(5)),
                     static_cast<std::int64_t>(random.next_below(9)), static_cast<std::int64_t>(random.next_below(12)));
  if (random.next_below(2) == 1) c.policy.group = ingest::Grouping::by_bucket;
  const std::uint64_t gap = 1 + random.next_below(6);
  std::int64_t time = 0;
  const std::uint64_t requests = random.next_below(80);
  for (std::uint64_t i = 0; i < requests; ++i) {
    time += static_cast<std::int64_t>(random.next_below(gap));
    c.trace.arrivals.push_back({time, static_cast<std::uint16_t>(random.next_below(models)),
                                static_cast<std::uint16_t>(random.next_below(3)), LoadPhase::base});
  }
  c.trace.duration_ns = time + 1;
  return c;
}

TEST(ServeProperty, EqualsTheRuleWrittenInstantByInstant) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = random_case(seed);
    const serve::Run run = serve(c.costs, c.policy, c.profiles, c.trace);
    const serve::Run expected = Reference(c.costs, c.policy, c.profiles, c.trace).go();
    ASSERT_EQ(run.members, expected.members);
    ASSERT_EQ(run.batches.size(), expected.batches.size());
    for (std::size_t b = 0; b < run.batches.size(); ++b) {
      ASSERT_EQ(run.batches[b].start_ns, expected.batches[b].start_ns);
      ASSERT_EQ(run.batches[b].end_ns, expected.batches[b].end_ns);
      ASSERT_EQ(run.batches[b].entry, expected.batches[b].entry);
      ASSERT_EQ(run.batches[b].size, expected.batches[b].size);
    }
    for (std::size_t i = 0; i < run.requests.size(); ++i) ASSERT_EQ(run.requests[i].batch, expected.requests[i].batch);
    ASSERT_EQ(run.max_queue, expected.max_queue);
    ASSERT_TRUE(run.queue_integral == expected.queue_integral);
  }
}

TEST(ServeProperty, RequestsTimeAndOrderAreConserved) {
  std::int64_t lost_anywhere = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = random_case(seed);
    const serve::Run run = serve(c.costs, c.policy, c.profiles, c.trace);
    const std::size_t lost = static_cast<std::size_t>(std::count_if(
        run.requests.begin(), run.requests.end(), [](const RequestRecord& r) { return r.batch == kLost; }));
    lost_anywhere += static_cast<std::int64_t>(lost);
    ASSERT_EQ(lost + run.members.size(), run.requests.size());
    ASSERT_LE(run.max_queue, c.policy.queue);
    std::vector<std::int32_t> last_of_group(c.costs.models * 2, -1);
    __int128 sojourn = 0;
    std::int64_t busy = 0;
    for (std::size_t b = 0; b < run.batches.size(); ++b) {
      const BatchRecord& batch = run.batches[b];
      ASSERT_LE(batch.size, c.policy.batch_max);
      if (b > 0) {
        ASSERT_GE(batch.start_ns, run.batches[b - 1].end_ns);
      }
      busy += batch.end_ns - batch.start_ns;
      for (std::int32_t m = batch.first_member; m < batch.first_member + batch.size; ++m) {
        const std::int32_t request = run.members[static_cast<std::size_t>(m)];
        const Arrival& arrival = c.trace.arrivals[static_cast<std::size_t>(request)];
        ASSERT_LE(arrival.time_ns, batch.start_ns);
        const bool longer = c.policy.group == ingest::Grouping::by_bucket && arrival.profile == 2;
        std::int32_t& last = last_of_group[arrival.model * 2U + (longer ? 1 : 0)];
        ASSERT_LT(last, request);  // first in, first out within a group
        last = request;
        sojourn += batch.end_ns - arrival.time_ns;
      }
    }
    ASSERT_EQ(busy, run.busy_ns);
    ASSERT_TRUE(run.system_integral == sojourn);  // Little, exactly
  }
  EXPECT_GT(lost_anywhere, 0);
}

TEST(ServeProperty, WithoutWaitTheDeviceNeverIdlesWhileRequestsWait) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Case c = random_case(seed);
    c.policy.wait = Nanoseconds(0);
    const serve::Run run = serve(c.costs, c.policy, c.profiles, c.trace);
    for (std::size_t b = 0; b < run.batches.size(); ++b) {
      const std::int64_t free = b == 0 ? 0 : run.batches[b - 1].end_ns;
      if (run.batches[b].start_ns == free) continue;
      const std::int32_t head = run.members[static_cast<std::size_t>(run.batches[b].first_member)];
      ASSERT_EQ(run.batches[b].start_ns, c.trace.arrivals[static_cast<std::size_t>(head)].time_ns);
    }
  }
}

}  // namespace
}  // namespace plumbline::serve
