#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "decide/decision.h"
#include "decide/evidence_matrix.h"
#include "decide/stage_walk.h"

namespace plumbline::decide {
namespace {

constexpr const char* kMetric = "off_array_weight_bytes_per_inference";
constexpr std::int64_t kRequests = 1000;
constexpr std::size_t kSeeds = 12;

// One model, two layer classes, two profiles, two loads; bytes per inference of a (profile, load) as given.
struct Bytes {
  double value[2][2] = {{1e6, 1e6}, {1e6, 1e6}};  // [profile][load]
};

validate::Summary make_summary(const Bytes& bytes, double noise, std::uint64_t seed) {
  validate::Summary s;
  s.models = 1;
  s.layer_classes = 2;
  s.profiles = 2;
  s.slices.resize(8);
  s.services.resize(4);
  s.margins.resize(2 * 3 * 3);
  RandomStream random(seed, "noise");
  for (std::size_t profile = 0; profile < 2; ++profile) {
    for (std::size_t load = 0; load < 2; ++load) {
      const double per = bytes.value[profile][load] * (1 + noise * (random.next_unit() - 0.5));
      s.slices[s.slice(0, 0, profile, load)].movement.off_array_weight = std::llround(per * kRequests);
      s.services[s.service(0, profile, load)] = {kRequests, kRequests, 0, 1000000, 2000000, 3000000};
    }
  }
  for (std::size_t m = 0; m < 2; ++m) {
    for (std::size_t p = 0; p < 3; ++p) {
      for (std::size_t l = 0; l < 3; ++l) {
        const std::int64_t n = kRequests * (p == 2 ? 2 : 1) * (l == 2 ? 2 : 1);
        s.margins[(m * 3 + p) * 3 + l] = {n, n, 0, 1000000, 2000000, 3000000};
      }
    }
  }
  s.all = {4 * kRequests, 4 * kRequests, 0, 1000000, 2000000, 3000000};
  s.batches = 100;
  s.busy_ns = 500;
  s.span_ns = 1000;
  s.cycles[0] = 100;
  s.invariants.push_back({"bytes", true, ""});
  return s;
}

std::shared_ptr<ingest::Scenario> make_scenario() {
  auto s = std::make_shared<ingest::Scenario>();
  s->models.push_back({"m", "encoder", 1.0, nullptr, "batch", "sequence", {}, {}});
  s->traffic.profiles = {{"128", 128, 0.5}, {"512", 512, 0.5}};
  s->traffic.arrivals.kind = ingest::ArrivalKind::burst;
  s->traffic.source = "a test";
  s->targets.p95 = Nanoseconds(20000000);
  s->targets.p99 = Nanoseconds(40000000);
  s->metric = {kMetric, true};
  s->gate.pairs = kSeeds;
  s->gate.replay_pairs = kSeeds;
  s->gate.ranking_pairs = 4;
  s->gate.min_slice_requests = 100;
  s->gate.required_evidence = {"timeline", "bandwidth", "counters", "thermal_power", "scenario_pack"};
  return s;
}

Arm make_arm(const std::string& name, const Bytes& bytes, double noise = 0.001, std::uint64_t salt = 0) {
  static const auto costs = [] {
    auto c = std::make_shared<execute::CostTable>();
    c->layer_classes = {"ffn", "attention"};
    return c;
  }();
  Arm arm;
  arm.name = name;
  arm.hash = name;
  arm.scenario = make_scenario();
  arm.costs = costs;
  arm.numerics_hash = "same";
  arm.exact = true;
  for (std::size_t i = 0; i < kSeeds; ++i) arm.runs.push_back(make_summary(bytes, noise, 100 + i + 1000 * salt));
  return arm;
}

ingest::Change change(const char* id, ingest::Stage stage) {
  ingest::Change c;
  c.id = id;
  c.stage = stage;
  c.owner = "team";
  c.patch = ingest::make_at_path("serving.batch.max", ingest::make_scalar("1"));
  return c;
}

// v(S) on the 512/burst slice: the schedule change adds 40 %, the serve change takes 10 % off, together 2 % more.
Bytes coalition_bytes(std::uint32_t mask) {
  Bytes b;
  double f = 1;
  if ((mask & 1U) != 0) f -= 0.10;
  if ((mask & 2U) != 0) f += 0.40;
  if (mask == 3) f += 0.02;
  b.value[1][1] *= f;
  return b;
}

EvidenceTable make_table() {
  EvidenceTable t;
  t.changes = {change("wait", ingest::Stage::serve), change("tiles", ingest::Stage::schedule)};
  t.baseline_path = "b.yaml";
  t.candidate_path = "c.yaml";
  for (std::uint32_t mask = 0; mask < 4; ++mask)
    t.coalitions.push_back({mask, make_arm("c" + std::to_string(mask), coalition_bytes(mask))});
  t.baseline = t.coalitions[0].arm;
  t.candidate = t.coalitions[3].arm;
  t.predictions.resize(2);
  t.timeline = true;
  t.preflight.utilization = 0.5;
  t.preflight.junction_celsius = 60;
  t.preflight.junction_limit = 85;
  return t;
}

TEST(Decide, HarmInOneSliceHoldsThoughTheMeanMoves) {
  const auto d = decide(make_table());
  EXPECT_EQ(d.verdict, Verdict::hold);
  EXPECT_TRUE(d.symptom.harmful);
  EXPECT_EQ(d.symptom.slice.profile, "512");
  EXPECT_EQ(d.symptom.slice.load, "burst");
  EXPECT_EQ(d.first_failing_stage, "schedule");
  EXPECT_EQ(d.first_failing_change, "tiles");
  ASSERT_EQ(d.feedback.size(), 1U);
  EXPECT_NE(d.feedback[0].find("schedule, relieved by serve"), std::string::npos);
}

TEST(Decide, LiveCandidateThatHarmsRollsBack) {
  auto t = make_table();
  t.live = true;
  EXPECT_EQ(decide(t).verdict, Verdict::roll_back);
}

TEST(Decide, EqualArmsRelease) {
  auto t = make_table();
  for (auto& c : t.coalitions) c.arm = make_arm("same", Bytes{});
  t.baseline = t.coalitions[0].arm;
  t.candidate = t.coalitions[3].arm;
  const auto d = decide(t);
  EXPECT_EQ(d.verdict, Verdict::release) << d.reasons[0];
  EXPECT_EQ(d.first_failing_stage, "none");
  EXPECT_FALSE(d.fix);
}

TEST(Attribution, ShapleyValuesSumToTheMeanPairedDifference) {
  const auto t = make_table();
  const auto d = decide(t);
  double sum = 0;
  for (const auto& share : d.attribution.shares) sum += share.value;
  EXPECT_NEAR(sum, d.headline.change, 1e-6 * std::abs(d.headline.change));
  ASSERT_TRUE(d.symptom_attribution);
  // Closed form on the slice: each change's own effect plus half of the interaction.
  EXPECT_NEAR(d.symptom_attribution->shares[0].value, -0.09e6, 300);
  EXPECT_NEAR(d.symptom_attribution->shares[1].value, 0.41e6, 300);
  ASSERT_EQ(d.symptom_attribution->interactions.size(), 1U);
  EXPECT_NEAR(d.symptom_attribution->interactions[0].value, 0.02e6, 300);
}

TEST(Attribution, ACoalitionWithoutValueIsNamedAndLeftOut) {
  auto t = make_table();
  t.coalitions[1].arm.runs.clear();
  t.coalitions[1].arm.failure = "does not fit";
  const auto* metric = validate::find_metric(kMetric);
  const auto a = attribute(t, *metric, {"encoder", "all", "512", "burst", true});
  ASSERT_EQ(a.no_value.size(), 1U);
  EXPECT_EQ(a.no_value[0], "wait");
  double sum = 0;
  for (const auto& share : a.shares) sum += share.value;
  EXPECT_NEAR(sum, a.total, 1e-6 * std::abs(a.total));
}

TEST(Judge, NoiseWiderThanTheMarginIsUndecidedAndNamesPairs) {
  const auto base = make_arm("b", Bytes{}, 0.2, 1);
  const auto cand = make_arm("c", Bytes{}, 0.2, 2);
  const auto rows = judge(base, cand, *validate::find_metric(kMetric), slices_of(base), base.scenario->gate);
  bool undecided = false;
  for (const auto& row : rows) {
    if (row.verdict != SliceVerdict::undecided) continue;
    undecided = true;
    EXPECT_TRUE(row.paired.pairs_needed > static_cast<std::int64_t>(kSeeds) || row.paired.pairs_needed == -1);
  }
  EXPECT_TRUE(undecided);
}

TEST(Judge, AThinSliceCannotPassAlone) {
  auto base = make_arm("b", Bytes{});
  const_cast<ingest::Scenario&>(*base.scenario).gate.min_slice_requests = 1 << 30;
  const auto rows = judge(base, base, *validate::find_metric(kMetric), slices_of(base), base.scenario->gate);
  for (const auto& row : rows) {
    if (row.id.gated) {
      EXPECT_EQ(row.verdict, SliceVerdict::thin);
    }
  }
}

// Removing the cause of each piece of evidence takes its presence away and holds the release.
TEST(Evidence, EachFieldFlipsWithItsCause) {
  const auto equal = [] {
    auto t = make_table();
    for (auto& c : t.coalitions) c.arm = make_arm("same", Bytes{});
    t.baseline = t.coalitions[0].arm;
    t.candidate = t.coalitions[3].arm;
    return t;
  };
  struct Case {
    std::size_t row;
    void (*remove)(EvidenceTable&);
  };
  const Case cases[] = {
      {0, [](EvidenceTable& t) { t.timeline = false; }},
      {1,
       [](EvidenceTable& t) {
         for (auto& run : t.candidate.runs)
           for (auto& s : run.margins) s.completed = 0;
       }},
      {2, [](EvidenceTable& t) { t.candidate.runs[3].invariants[0].holds = false; }},
      {3, [](EvidenceTable& t) { t.preflight.junction_limit.reset(); }},
      {4, [](EvidenceTable& t) { t.candidate.hash.clear(); }},
  };
  const auto whole = decide(equal());
  for (const auto& c : cases) {
    EXPECT_TRUE(whole.evidence_matrix[c.row].present);
    auto t = equal();
    c.remove(t);
    const auto d = decide(t);
    EXPECT_FALSE(d.evidence_matrix[c.row].present) << c.row;
    EXPECT_EQ(d.verdict, Verdict::hold) << c.row;
  }
}

TEST(Evidence, RanOnlyWhenThePackHoldsThatCommandsOutput) {
  auto t = make_table();
  EXPECT_FALSE(decide(t).evidence_matrix[0].ran);
  t.commands.push_back({"plumbline schedule c.yaml --format json", "candidate.schedule.json"});
  EXPECT_TRUE(decide(t).evidence_matrix[0].ran);
  EXPECT_FALSE(decide(t).evidence_matrix[1].ran);
}

TEST(Guards, EachPitfallHolds) {
  const auto verdict_after = [](void (*edit)(ingest::Scenario&)) {
    auto t = make_table();
    for (auto& c : t.coalitions) c.arm = make_arm("same", Bytes{});
    t.baseline = t.coalitions[0].arm;
    t.candidate = t.coalitions[3].arm;
    edit(const_cast<ingest::Scenario&>(*t.baseline.scenario));
    edit(const_cast<ingest::Scenario&>(*t.candidate.scenario));
    return decide(t).verdict;
  };
  EXPECT_EQ(verdict_after([](ingest::Scenario&) {}), Verdict::release);
  EXPECT_EQ(verdict_after([](ingest::Scenario& s) { s.traffic.source.clear(); }), Verdict::hold);
  EXPECT_EQ(verdict_after([](ingest::Scenario& s) { s.targets.p95.reset(), s.targets.p99.reset(); }), Verdict::hold);
  EXPECT_EQ(verdict_after([](ingest::Scenario& s) { s.targets.quality_absolute = 0.9; }), Verdict::hold);
  EXPECT_EQ(verdict_after([](ingest::Scenario& s) { s.targets.p95 = Nanoseconds(1000); }), Verdict::hold);
}

TEST(Guards, ChangedArithmeticWithoutQualityHolds) {
  auto t = make_table();
  for (auto& c : t.coalitions) c.arm = make_arm("same", Bytes{});
  t.baseline = t.coalitions[0].arm;
  t.candidate = t.coalitions[3].arm;
  t.candidate.numerics_hash = "other";
  const auto d = decide(t);
  EXPECT_EQ(d.quality.how, "absent");
  EXPECT_EQ(d.verdict, Verdict::hold);
}

Relief relief(const char* resource, Bytes base, Bytes cand, bool restores) {
  Relief r;
  r.resource = resource;
  r.restores_change = restores;
  r.bottleneck = "weight_movement";
  r.baseline = make_arm("rb", base);
  r.candidate = make_arm("rc", cand);
  return r;
}

TEST(Mechanism, TheReliefThatClosesTheGapIsNamedAndARestoringOneIsNot) {
  auto t = make_table();
  t.reliefs.push_back(relief("restoring", coalition_bytes(0), coalition_bytes(0), true));
  auto d = decide(t);
  EXPECT_FALSE(d.mechanism.identified);
  EXPECT_EQ(d.bottleneck.name, "not_identified");
  EXPECT_NEAR(*d.mechanism.relief[0].gap_closed_percent, 100, 0.5);
  t.reliefs.push_back(relief("the one", coalition_bytes(0), coalition_bytes(0), false));
  t.reliefs.push_back(relief("no help", coalition_bytes(0), coalition_bytes(3), false));
  d = decide(t);
  EXPECT_TRUE(d.mechanism.identified);
  EXPECT_EQ(d.mechanism.resource, "the one");
  EXPECT_EQ(d.bottleneck.name, "weight_movement");
  EXPECT_EQ(d.bottleneck.confidence, 1.0);
}

FixTrial trial(const char* id, int tier, std::uint32_t mask) {
  FixTrial f;
  f.id = id;
  f.kind = id;
  f.tier = tier;
  f.patch = ingest::make_at_path("serving.batch.wait", ingest::make_scalar("1 ms"));
  f.ranking = make_arm("f", coalition_bytes(mask));
  f.judged = make_arm("f", coalition_bytes(mask));
  f.rollback_hash = "c0";
  return f;
}

TEST(Fixes, TheGentlestThatRecoversWinsAndTheUndoIsTheFallback) {
  auto t = make_table();
  t.fresh_baseline = t.baseline;
  t.fresh_candidate = t.candidate;
  t.fixes = {trial("useless", 0, 3), trial("undo", 2, 0), trial("gentle", 1, 1)};
  const auto d = decide(t);
  ASSERT_TRUE(d.fix);
  EXPECT_EQ(d.fix->id, "gentle");
  EXPECT_EQ(d.fix->verdict, Verdict::release);
  EXPECT_TRUE(d.fix->rollback_proven);
  EXPECT_FALSE(d.fix->is_fallback);
  ASSERT_EQ(d.rejected_fixes.size(), 2U);
  EXPECT_NE(d.rejected_fixes[0].why.find("is needed"), std::string::npos);
}

TEST(Fixes, WhenOnlyTheUndoRecoversItIsTheFix) {
  auto t = make_table();
  t.fresh_baseline = t.baseline;
  t.fresh_candidate = t.candidate;
  t.fixes = {trial("useless", 0, 3), trial("undo", 2, 0)};
  const auto d = decide(t);
  ASSERT_TRUE(d.fix);
  EXPECT_TRUE(d.fix->is_fallback);
}

TEST(Fixes, ABaselineThatMissesItsLimitsStillGetsItsRegressionMended) {
  auto t = make_table();
  t.fresh_baseline = t.baseline;
  t.fresh_candidate = t.candidate;
  t.fixes = {trial("gentle", 1, 1)};
  for (Arm* arm :
       {&t.baseline, &t.candidate, &t.fresh_baseline, &t.fresh_candidate, &t.fixes[0].ranking, &t.fixes[0].judged}) {
    auto scenario = std::make_shared<ingest::Scenario>(*arm->scenario);
    scenario->targets.p95 = Nanoseconds(1000);
    arm->scenario = scenario;
  }
  const auto d = decide(t);
  EXPECT_EQ(d.verdict, Verdict::hold);
  ASSERT_TRUE(d.fix);
  EXPECT_EQ(d.fix->verdict, Verdict::hold);
  EXPECT_NE(d.fix->note.find("the baseline misses its own limits"), std::string::npos);
}

TEST(Fixes, ARollbackWhoseHashDiffersIsNotProven) {
  auto t = make_table();
  t.fresh_baseline = t.baseline;
  t.fresh_candidate = t.candidate;
  t.fixes = {trial("gentle", 1, 1)};
  t.fixes[0].rollback_hash = "something else";
  EXPECT_FALSE(decide(t).fix->rollback_proven);
}

}  // namespace
}  // namespace plumbline::decide
