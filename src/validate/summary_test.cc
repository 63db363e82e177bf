#include "validate/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "core/random.h"
#include "serve/synthetic.h"
#include "validate/statistics.h"

namespace plumbline::validate {
namespace {

using serve::LoadPhase;

execute::ClassCost layer(std::string name, std::int64_t weight, std::int64_t psum, std::int64_t femtojoules) {
  execute::ClassCost cost;
  cost.layer_class = std::move(name);
  cost.movement.off_array_weight = weight;
  cost.movement.psum = psum;
  cost.femtojoules[0] = femtojoules / 3;
  cost.femtojoules[5] = femtojoules - femtojoules / 3;
  return cost;
}

/// One model, batches of up to 4 padded to 4; every batch takes 100 ns and moves 10 and 7 bytes of weights.
execute::CostTable small_table() {
  execute::CostTable costs = serve::synthetic::fixed_table(4, 100);
  costs.layer_classes = {"ffn", "qkv"};
  costs.entries[0].layers = {layer("ffn", 10, 5, 11), layer("qkv", 7, 0, 2)};
  costs.entries[0].femtojoules = 13;
  costs.idle = Watts(2);
  costs.host = Watts(1);
  costs.active = Watts(10);
  return costs;
}

/// Three requests in one batch at 50, in order: profile 0 base, profile 1 burst, profile 0 burst.
serve::ArrivalTrace small_trace() {
  serve::ArrivalTrace trace;
  trace.arrivals = {{0, 0, 0, LoadPhase::base}, {10, 0, 1, LoadPhase::burst}, {20, 0, 0, LoadPhase::burst}};
  trace.duration_ns = 1000;
  return trace;
}

const std::vector<ingest::Profile> kProfiles = {{"a", 0, 1}, {"b", 0, 1}};

struct Small {
  execute::CostTable costs = small_table();
  serve::ArrivalTrace trace = small_trace();
  serve::Run run = serve::serve(costs, serve::synthetic::serving(4, 50, 9), kProfiles, trace);
  [[nodiscard]] Summary summary() const { return summarize(costs, kProfiles, trace, run); }
};

const Invariant& invariant(const Summary& summary, const std::string& name) {
  for (const Invariant& i : summary.invariants) {
    if (i.name == name) return i;
  }
  throw std::out_of_range(name);
}

std::vector<std::string> broken(const Summary& summary) {
  std::vector<std::string> names;
  for (const Invariant& i : summary.invariants) {
    if (!i.holds) names.push_back(i.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Slices, ABatchIsSplitEquallyAndTheRemainderGoesToTheEarliest) {
  const Summary s = Small().summary();
  // 10 = 4 + 3 + 3, 5 = 2 + 2 + 1, 11 = 4 + 4 + 3; 7 = 3 + 2 + 2, 2 = 1 + 1 + 0.
  const SliceSums& first = s.slices[s.slice(0, 0, 0, 0)];
  const SliceSums& second = s.slices[s.slice(0, 0, 1, 1)];
  const SliceSums& third = s.slices[s.slice(0, 0, 0, 1)];
  EXPECT_EQ(first.movement.off_array_weight, 4);
  EXPECT_EQ(second.movement.off_array_weight, 3);
  EXPECT_EQ(third.movement.off_array_weight, 3);
  EXPECT_EQ(first.movement.psum, 2);
  EXPECT_EQ(second.movement.psum, 2);
  EXPECT_EQ(third.movement.psum, 1);
  EXPECT_TRUE(first.femtojoules == 4 && second.femtojoules == 4 && third.femtojoules == 3);
  EXPECT_EQ(s.slices[s.slice(0, 1, 0, 0)].movement.off_array_weight, 3);
  EXPECT_EQ(s.slices[s.slice(0, 1, 1, 1)].movement.off_array_weight, 2);
  EXPECT_TRUE(s.slices[s.slice(0, 1, 0, 1)].femtojoules == 0);
  EXPECT_EQ(s.slices[s.slice(0, 0, 1, 0)], SliceSums{});  // nobody
  EXPECT_EQ(broken(s), Names({}));
}

TEST(Services, CountByTheScheduledPhaseAndLatencyRunsFromTheSchedule) {
  const Summary s = Small().summary();
  EXPECT_EQ(s.all.offered, 3);
  EXPECT_EQ(s.all.completed, 3);
  EXPECT_EQ(s.all.p50_ns, 140);  // 150, 140, 130
  EXPECT_EQ(s.all.p99_ns, 150);
  EXPECT_EQ(s.by_phase[1].completed, 2);
  EXPECT_EQ(s.by_phase[1].p50_ns, 140);
  EXPECT_EQ(s.services[s.service(0, 0, 1)].p95_ns, 130);
  EXPECT_EQ(s.services[s.service(0, 1, 0)].p95_ns, -1);
  EXPECT_EQ(s.over(std::nullopt, 0, std::nullopt).completed, 2);
  EXPECT_EQ(s.over(0, std::nullopt, 1).completed, 2);
}

TEST(Summary, RowsCyclesAndStaticEnergy) {
  const Summary s = Small().summary();
  EXPECT_EQ(s.batches, 1);
  EXPECT_EQ(s.padded_rows, 4);
  EXPECT_EQ(s.real_rows, 3);
  EXPECT_EQ(s.cycles[0], 100);
  EXPECT_EQ(s.busy_ns, 100);
  EXPECT_EQ(s.span_ns, 1000);
  EXPECT_DOUBLE_EQ(s.static_joules, (3.0 * 1000 + 10.0 * 100) * 1e-9);
  EXPECT_EQ(s.batch_counts, std::vector<std::int64_t>({1}));
}

TEST(Invariants, RequestsFailsWhenARecordNamesAnotherBatchOrARequestVanishes) {
  Small misplaced;
  misplaced.run.requests[1].batch = 5;
  EXPECT_EQ(broken(misplaced.summary()), Names({"requests"}));
  Small vanished;
  vanished.run.requests[2].batch = serve::kLost;
  vanished.run.members.pop_back();
  vanished.run.batches[0].size = 2;
  vanished.run.system_integral -= 130;
  EXPECT_EQ(broken(vanished.summary()), Names({}));  // that is a legal run: two served, one lost
  vanished.run.requests[2].batch = 0;
  EXPECT_EQ(broken(vanished.summary()), Names({"requests"}));
}

TEST(Invariants, StallsFailsWhenClassesDoNotAddUpToTheCycles) {
  Small s;
  s.costs.entries[0].classes[2] += 1;
  const Summary summary = s.summary();
  EXPECT_EQ(broken(summary), Names({"stalls"}));
  EXPECT_EQ(invariant(summary, "stalls").detail, "classes of batch 4 sequence 0 101, cycles 100");
}

TEST(Invariants, EnergyFailsWhenTheLayersDoNotAddUpToTheBatch) {
  Small s;
  s.costs.entries[0].layers[1].femtojoules[3] += 1;
  const Summary summary = s.summary();
  EXPECT_EQ(broken(summary), Names({"energy"}));
  EXPECT_EQ(invariant(summary, "energy").detail, "slices in fJ 14, batches in fJ 13");
}

TEST(Invariants, LittleFailsByASingleRequestNanosecond) {
  Small s;
  s.run.system_integral += 1;
  EXPECT_EQ(broken(s.summary()), Names({"little"}));
  Small late;
  late.run.batches[0].end_ns += 1;
  EXPECT_EQ(broken(late.summary()), Names({"little"}));
}

/// A run of a few thousand requests over two models, three profiles and two phases, with losses.
struct Large {
  execute::CostTable costs;
  std::vector<ingest::Profile> profiles = {{"100", 100, 0.5}, {"128", 128, 0.2}, {"500", 500, 0.3}};
  serve::ArrivalTrace trace;
  serve::Run run;

  explicit Large(std::uint64_t seed) {
    RandomStream random(seed, "summary-cases");
    costs = serve::synthetic::table(2, {1, 4, 9}, {128, 512}, [&](std::size_t, std::int64_t b, std::int64_t s) {
      return 200'000 + b * s * 400 + static_cast<std::int64_t>(random.next_below(1000));
    });
    costs.layer_classes = {"ffn", "qkv", "norm"};
    for (execute::BatchCost& entry : costs.entries) {
      for (const std::string& name : costs.layer_classes) {
        execute::ClassCost cost = layer(name, static_cast<std::int64_t>(random.next_below(1'000'000)), 17,
                                        static_cast<std::int64_t>(random.next_below(1ULL << 62U)) / 4);
        cost.movement.off_chip_activation = static_cast<std::int64_t>(random.next_below(100));
        for (const std::int64_t path : cost.femtojoules) entry.femtojoules += path;
        entry.layers.push_back(cost);
      }
    }
    ingest::Traffic traffic;
    traffic.profiles = profiles;
    traffic.arrivals = {ingest::ArrivalKind::burst, 600, 6000, Seconds(1), Seconds(0.2)};
    traffic.duration = Seconds(3);
    trace = serve::make_arrivals(traffic, {0.7, 0.3}, seed);
    run = serve::serve(costs, serve::synthetic::serving(9, 2'000'000, 40), profiles, trace);
  }
};

TEST(SummaryProperty, EqualsSplittingEveryBatchByHand) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    const Large c(seed);
    const Summary s = summarize(c.costs, c.profiles, c.trace, c.run);
    EXPECT_EQ(broken(s), Names({}));
    EXPECT_GT(s.all.lost, 0);
    std::vector<SliceSums> expected(s.slices.size());
    for (const serve::BatchRecord& batch : c.run.batches) {
      const execute::BatchCost& cost = c.costs.entries[static_cast<std::size_t>(batch.entry)];
      for (std::int32_t k = 0; k < batch.size; ++k) {
        const auto member = static_cast<std::size_t>(batch.first_member) + static_cast<std::size_t>(k);
        const auto request = static_cast<std::size_t>(c.run.members[member]);
        const serve::Arrival& arrival = c.trace.arrivals[request];
        const auto share = [&](std::int64_t v) { return v / batch.size + (k < v % batch.size ? 1 : 0); };
        for (std::size_t l = 0; l < s.layer_classes; ++l) {
          SliceSums& slice =
              expected[s.slice(arrival.model, l, arrival.profile, static_cast<std::size_t>(arrival.phase))];
          const execute::ClassCost& moved = cost.layers[l];
          slice.movement.off_array_weight += share(moved.movement.off_array_weight);
          slice.movement.psum += share(moved.movement.psum);
          slice.movement.off_chip_activation += share(moved.movement.off_chip_activation);
          std::int64_t energy = 0;
          for (const std::int64_t path : moved.femtojoules) energy += path;
          slice.femtojoules += share(energy);
        }
      }
    }
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_TRUE(s.slices[i] == expected[i]) << i;
  }
}

TEST(SummaryProperty, EveryMarginHasThePercentilesOfItsOwnRequests) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    const Large c(seed);
    const Summary s = summarize(c.costs, c.profiles, c.trace, c.run);
    for (std::size_t model = 0; model <= s.models; ++model) {
      for (std::size_t profile = 0; profile <= s.profiles; ++profile) {
        for (std::size_t phase = 0; phase <= std::size_t{kPhases}; ++phase) {
          std::vector<std::int64_t> latencies;
          std::int64_t lost = 0;
          for (std::size_t i = 0; i < c.trace.arrivals.size(); ++i) {
            const serve::Arrival& a = c.trace.arrivals[i];
            if ((model < s.models && a.model != model) || (profile < s.profiles && a.profile != profile)) continue;
            if (phase < std::size_t{kPhases} && static_cast<std::size_t>(a.phase) != phase) continue;
            const std::int32_t batch = c.run.requests[i].batch;
            if (batch == serve::kLost) {
              ++lost;
            } else {
              latencies.push_back(c.run.batches[static_cast<std::size_t>(batch)].end_ns - a.time_ns);
            }
          }
          const auto chosen = [](std::size_t i, std::size_t n) {
            return i < n ? std::optional<std::size_t>(i) : std::nullopt;
          };
          const Service& service =
              s.over(chosen(model, s.models), chosen(profile, s.profiles), chosen(phase, std::size_t{kPhases}));
          ASSERT_EQ(service.completed, static_cast<std::int64_t>(latencies.size()));
          ASSERT_EQ(service.lost, lost);
          ASSERT_EQ(service.offered, service.completed + service.lost);
          ASSERT_EQ(service.p50_ns, percentile(latencies, 0.50));
          ASSERT_EQ(service.p95_ns, percentile(latencies, 0.95));
          ASSERT_EQ(service.p99_ns, percentile(latencies, 0.99));
        }
      }
    }
  }
}

TEST(Summary, OneModelAndOneProfileEqualTheirOwnMargins) {
  execute::CostTable costs = small_table();
  const serve::ArrivalTrace trace = serve::synthetic::trace_at({0, 10, 500});
  const serve::Run run =
      serve::serve(costs, serve::synthetic::serving(4, 0, 9), serve::synthetic::one_profile(), trace);
  const Summary s = summarize(costs, serve::synthetic::one_profile(), trace, run);
  ASSERT_EQ(s.margins.size(), 2U * 2U * 3U);
  EXPECT_EQ(s.over(0, 0, 0).p99_ns, s.all.p99_ns);
  EXPECT_EQ(s.over(0, 0, std::nullopt).completed, 3);
  EXPECT_EQ(s.over(0, std::nullopt, 1).completed, 0);
  EXPECT_EQ(s.over(std::nullopt, 0, 0).p50_ns, s.all.p50_ns);
}

TEST(Summary, ARunWithoutRequestsHasNoPercentiles) {
  const serve::ArrivalTrace trace;
  const serve::Run run = serve::serve(small_table(), serve::synthetic::serving(1, 0, 1), kProfiles, trace);
  const Summary s = summarize(small_table(), kProfiles, trace, run);
  EXPECT_EQ(s.all.p99_ns, -1);
  EXPECT_EQ(s.batches, 0);
  EXPECT_EQ(broken(s), Names({}));
}

}  // namespace
}  // namespace plumbline::validate
