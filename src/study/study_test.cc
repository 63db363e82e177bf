#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "decide/decision.h"
#include "study/decision_study.h"
#include "study/fix_rules.h"

namespace plumbline::study {
namespace {

const std::string kCatalog = std::string(PLUMBLINE_SOURCE_DIR) + "/catalog";
const std::string kBurst = kCatalog + "/scenarios/burst/";

ingest::Value yaml(const std::string& text) {
  auto parsed = ingest::parse_yaml(std::make_shared<const Source>(Source{"test.yaml", text}));
  PL_CHECK(parsed.ok());
  return std::move(parsed).value();
}

struct ChangeText {
  const char* id;
  ingest::Stage stage;
  const char* patch;
};

ingest::Comparison compare_with(ingest::Library& library, const std::string& baseline_patch,
                                const std::vector<ChangeText>& changes) {
  ingest::Comparison out;
  out.baseline = library.read_document(kBurst + "baseline.yaml").value();
  if (!baseline_patch.empty()) out.baseline = ingest::merge_patch(out.baseline, yaml(baseline_patch));
  for (const auto& text : changes) {
    ingest::Change change;
    change.id = text.id;
    change.stage = text.stage;
    change.patch = yaml(text.patch);
    out.changes.push_back(std::move(change));
  }
  return out;
}

constexpr const char* kTiles =
    "compile: {constraints: [{kernels: \"*\", level: accumulator, dim: M, factor: {max: 2048}}]}";

decide::Decision decide_on(const std::string& baseline_patch, const std::vector<ChangeText>& changes) {
  ingest::Library library(kCatalog);
  Engine engine(library, 2);
  const auto comparison = compare_with(library, baseline_patch, changes);
  auto study = study_decision(comparison, engine, {});
  EXPECT_TRUE(study.ok()) << (study.ok() ? "" : render(study.errors()));
  return decide::decide(study->table);
}

TEST(Default, NamesTheTilesAndFixesThemWithoutHarm) {
  ingest::Library library(kCatalog);
  Engine engine(library, 2);
  const auto comparison = ingest::read_comparison(kBurst + "baseline.yaml", kBurst + "candidate.yaml", library);
  ASSERT_TRUE(comparison.ok()) << render(comparison.errors());
  const auto study = study_decision(*comparison, engine, {});
  ASSERT_TRUE(study.ok()) << render(study.errors());
  const auto d = decide::decide(study->table);
  EXPECT_EQ(d.verdict, decide::Verdict::hold);
  EXPECT_EQ(d.symptom.slice.load, "burst");
  EXPECT_LT(d.headline.change, 0) << "the overall mean improves while the burst slice regresses";
  EXPECT_EQ(d.first_failing_stage, "schedule");
  EXPECT_EQ(d.first_failing_change, "new-tiles");
  EXPECT_EQ(d.owner, "compiler-team");
  EXPECT_TRUE(d.mechanism.identified);
  EXPECT_EQ(d.bottleneck.name, "weight_movement");
  EXPECT_EQ(d.quality.how, "identity");
  ASSERT_TRUE(d.fix);
  EXPECT_TRUE(d.fix->verdict == decide::Verdict::release || d.fix->verdict == decide::Verdict::release_with_guardrails);
  EXPECT_TRUE(d.fix->rollback_proven);
  for (const auto& row : d.fix->blast_radius) {
    if (row.judgement.id.gated) {
      EXPECT_NE(row.judgement.verdict, decide::SliceVerdict::harmed) << row.judgement.id.name();
    }
  }
  bool clock_worse = false;
  for (const auto& r : d.rejected_fixes)
    clock_worse |= r.kind == "clock" && r.why.starts_with("it makes the regression worse");
  EXPECT_TRUE(clock_worse);
  std::set<std::string> kinds;
  for (const auto& r : d.rejected_fixes) kinds.insert(r.kind);
  kinds.insert(d.fix->kind);
  EXPECT_GE(kinds.size(), 8U);
}

// Every configuration that is judged has at least 12 pairs of at least 6 bursts and 10,000 requests.
TEST(Default, JudgedConfigurationsHaveEnoughRequests) {
  ingest::Library library(kCatalog);
  Engine engine(library, 2);
  const auto comparison = ingest::read_comparison(kBurst + "baseline.yaml", kBurst + "candidate.yaml", library);
  const auto study = study_decision(*comparison, engine, {});
  const auto& s = *study->table.baseline.scenario;
  EXPECT_GE(s.traffic.duration.raw() / s.traffic.arrivals.every.raw(), 6);
  const auto enough = [](const decide::Arm& arm) {
    EXPECT_GE(arm.runs.size(), 12U) << arm.name;
    for (const auto& run : arm.runs) EXPECT_GE(run.all.offered, 10000) << arm.name;
  };
  for (const auto& coalition : study->table.coalitions) enough(coalition.arm);
  for (const auto& relief : study->table.reliefs) enough(relief.candidate);
  for (const auto& fix : study->table.fixes) {
    if (!fix.judged.runs.empty()) enough(fix.judged);
  }
}

TEST(Neighbours, CulpritInServeIsNamed) {
  const auto d = decide_on("", {{"small-batch", ingest::Stage::serve, "serving: {batch: {max: 4}}"},
                                {"queue", ingest::Stage::serve, "serving: {admission: {queue: 128}}"}});
  EXPECT_EQ(d.verdict, decide::Verdict::hold);
  EXPECT_EQ(d.first_failing_stage, "serve");
  EXPECT_EQ(d.first_failing_change, "small-batch");
  EXPECT_EQ(d.bottleneck.name, "queueing");
  ASSERT_TRUE(d.fix);
}

TEST(Neighbours, CulpritInPrecisionIsNamedAndQualityIsAbsent) {
  const auto d = decide_on("", {{"bf16", ingest::Stage::lower, "precision: bf16-fp32"},
                                {"wait", ingest::Stage::serve, "serving: {batch: {wait: 2.5 ms}}"}});
  EXPECT_EQ(d.verdict, decide::Verdict::hold);
  EXPECT_EQ(d.first_failing_stage, "lower");
  EXPECT_EQ(d.first_failing_change, "bf16");
  EXPECT_EQ(d.quality.how, "absent");
  EXPECT_EQ(d.bottleneck.name, "weight_movement");
}

TEST(Neighbours, NoCulpritReleases) {
  const auto same = decide_on("", {{"queue", ingest::Stage::serve, "serving: {admission: {queue: 128}}"}});
  EXPECT_EQ(same.verdict, decide::Verdict::release);
  const auto longer = decide_on("", {{"wait", ingest::Stage::serve, "serving: {batch: {wait: 2.5 ms}}"},
                                     {"queue", ingest::Stage::serve, "serving: {admission: {queue: 64}}"}});
  EXPECT_TRUE(longer.verdict == decide::Verdict::release || longer.verdict == decide::Verdict::release_with_guardrails);
  EXPECT_EQ(longer.first_failing_stage, "none");
  EXPECT_FALSE(longer.fix);
}

TEST(Neighbours, AnotherMixStillNamesTheTiles) {
  const auto d = decide_on("traffic: {profiles: [{sequence: 128, share: 0.4}, {sequence: 512, share: 0.6}]}",
                           {{"tiles", ingest::Stage::schedule, kTiles}});
  EXPECT_EQ(d.first_failing_stage, "schedule");
  EXPECT_EQ(d.first_failing_change, "tiles");
}

TEST(Neighbours, ASmallerArrayStillNamesTheTiles) {
  const auto d = decide_on(
      "{accelerator: ws-128, traffic: {arrivals: {burst: {base: 60 /s, peak: 230 /s}}}, targets: {latency: {p95: 80 "
      "ms, p99: 160 ms}}}",
      {{"tiles", ingest::Stage::schedule, kTiles}});
  EXPECT_EQ(d.verdict, decide::Verdict::hold);
  EXPECT_EQ(d.first_failing_stage, "schedule");
  EXPECT_EQ(d.first_failing_change, "tiles");
  EXPECT_EQ(d.bottleneck.name, "weight_movement");
}

TEST(Labels, RenamingAModelOrAPolicyIsNoChangeOfArithmetic) {
  const auto d =
      decide_on("", {{"model-name", ingest::Stage::ingest,
                      "models: [{name: renamed, family: another, catalog: bert-base, share: 1.0}]"},
                     {"policy-name", ingest::Stage::lower, "precision: {name: int8-ours, source: renamed}"}});
  EXPECT_EQ(d.quality.how, "identity") << d.quality.detail;
  EXPECT_EQ(d.verdict, decide::Verdict::release);
}

std::string numerics_of(ingest::Library& library, const std::string& path, const std::string& patch) {
  Engine engine(library, 1);
  auto document = library.read_document(path).value();
  if (!patch.empty()) document = ingest::apply_changes(document, {}, {}, {yaml(patch)});
  const auto prepared = engine.prepare("test", document);
  EXPECT_TRUE(prepared.ok()) << render(prepared.errors());
  return engine.run({{&*prepared, {}, {1}}}).front().numerics_hash;
}

TEST(Labels, WhatChangesABitStillCounts) {
  ingest::Library library(kCatalog);
  const std::string burst = kBurst + "baseline.yaml";
  const std::string plain = numerics_of(library, burst, "");
  EXPECT_EQ(numerics_of(library, burst, "precision: {name: int8-ours}"), plain);
  EXPECT_EQ(numerics_of(library, burst, kTiles), plain) << "exact sums";
  EXPECT_NE(numerics_of(library, burst, "precision: bf16-fp32"), plain);
  EXPECT_NE(numerics_of(library, burst, "precision: {exact: false}"), plain);
  EXPECT_NE(numerics_of(library, burst, "models: [{name: bert, catalog: vit-b-16, sequence: none}]"), plain);
}

TEST(Labels, AnOnnxModelCountsByItsBytes) {
  ingest::Library library(kCatalog);
  const std::string scenario = kCatalog + "/scenarios/onnx-encoder/baseline.yaml";
  const std::string model = kCatalog + "/models/encoder-tiny.onnx";
  const std::string copy = testing::TempDir() + "plumbline_renamed.onnx";
  const std::string other = testing::TempDir() + "plumbline_other.onnx";
  std::filesystem::copy_file(model, copy, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(model, other, std::filesystem::copy_options::overwrite_existing);
  // One unknown field more (number 1000, varint 1): the same model, which only a reader of every byte could know.
  std::ofstream(other, std::ios::app | std::ios::binary).write("\xc0\x3e\x01", 3);
  const auto named = [&](const std::string& path) {
    return numerics_of(library, scenario, "models: [{name: x, onnx: \"" + path + "\", share: 1.0}]");
  };
  EXPECT_EQ(named(copy), named(model));
  EXPECT_NE(named(other), named(model));
}

// Where the array waits for its network, the tensor on the limiting link names the mechanism. `array` patches the array
// level of ws-256-mesh in the baseline.
decide::Decision decide_on_mesh(const std::string& array, const char* rates, const ChangeText& change) {
  return decide_on("{accelerator: {base: ws-256-mesh, levels: {array: " + array + "}}, traffic: {arrivals: {burst: {" +
                       rates +
                       "}}}, targets: {latency: {p95: 2 s, p99: 4 s}}, metric: {name: latency_p50, better: lower}}",
                   {change});
}

double closed_by(const decide::Decision& d, const std::string& resource) {
  for (const auto& row : d.mechanism.relief) {
    if (row.resource == resource && !row.frozen) return row.gap_closed_percent.value_or(0);
  }
  ADD_FAILURE() << "nobody relieved " << resource;
  return 0;
}

TEST(Links, TheLinkForSumsIsPartialSumMovement) {
  const auto d = decide_on_mesh("{}", "base: 5 /s, peak: 10 /s",
                                {"narrow-links", ingest::Stage::execute,
                                 "accelerator: {levels: {array: {network: {outputs: {link: 16 B/cycle}}}}}"});
  EXPECT_TRUE(d.mechanism.identified);
  EXPECT_EQ(d.mechanism.resource, "array sum link rate");
  EXPECT_EQ(d.bottleneck.name, "psum_movement");
  EXPECT_GT(closed_by(d, "array sum link rate"), 99);
  EXPECT_LT(std::abs(closed_by(d, "array input link rate")), 1);
  EXPECT_LT(std::abs(closed_by(d, "array weight link rate")), 1);
}

TEST(Links, TheLinkForInputsIsActivationMovement) {
  const auto d = decide_on_mesh("{network: {outputs: {link: 4096 B/cycle}}}", "base: 100 /s, peak: 300 /s",
                                {"wider-operands", ingest::Stage::lower, "precision: bf16-fp32"});
  EXPECT_EQ(d.bottleneck.name, "activation_movement");
  EXPECT_GT(closed_by(d, "array input link rate"), 80);
  EXPECT_LT(std::abs(closed_by(d, "array sum link rate")), 1);
}

TEST(Links, SharedWiresAreRelievedTogether) {
  const std::string wires = "{topology: mesh_xy, link: 4096 B/cycle}";
  const auto d = decide_on_mesh(
      "{network: {weights: " + wires + ", inputs: " + wires + ", outputs: " + wires + ", shared: true}}",
      "base: 5 /s, peak: 10 /s",
      {"narrow-links", ingest::Stage::execute,
       "accelerator: {levels: {array: {network: {weights: {link: 2048 B/cycle}, inputs: {link: 2048 B/cycle}, outputs: "
       "{link: 2048 B/cycle}}}}}"});
  EXPECT_TRUE(d.mechanism.identified);
  EXPECT_EQ(d.mechanism.resource, "array link rate");
  EXPECT_GT(closed_by(d, "array link rate"), 99);
}

TEST(Patches, TheDifferenceTakesOneDocumentToTheOther) {
  const auto a = yaml("a: {b: 1, c: [1, 2], d: {e: 1}}\nf: 1\n");
  const auto b = yaml("a: {b: 2, c: [1, 2], g: {h: 1}}\n");
  EXPECT_EQ(ingest::canonical_text(ingest::merge_patch(a, difference(a, b))), ingest::canonical_text(b));
  EXPECT_TRUE(difference(a, a).entries.empty());
}

TEST(Threads, DoNotChangeTheEvidence) {
  const auto run = [](unsigned threads) {
    ingest::Library library(kCatalog);
    Engine engine(library, threads);
    const auto comparison = compare_with(library, "", {{"tiles", ingest::Stage::schedule, kTiles}});
    auto study = study_decision(comparison, engine, {});
    return std::move(study->table);
  };
  const auto one = run(1);
  const auto two = run(2);
  ASSERT_EQ(one.candidate.runs.size(), two.candidate.runs.size());
  for (std::size_t i = 0; i < one.candidate.runs.size(); ++i) {
    EXPECT_EQ(one.candidate.runs[i].slices, two.candidate.runs[i].slices);
    EXPECT_EQ(one.candidate.runs[i].all.p99_ns, two.candidate.runs[i].all.p99_ns);
  }
  ASSERT_EQ(one.fixes.size(), two.fixes.size());
  for (std::size_t i = 0; i < one.fixes.size(); ++i) EXPECT_EQ(one.fixes[i].rollback_hash, two.fixes[i].rollback_hash);
}

}  // namespace
}  // namespace plumbline::study
