#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "report/testing.h"
#include "report/trace.h"
#include "report/why.h"

namespace plumbline::report {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

TEST(Summary, SaysVerdictHarmChangeOwnerFixAndNextStep) {
  const auto& m = measured_burst();
  const std::string text = decision_text(m.study, m.decision, false, 100);
  EXPECT_TRUE(text.starts_with("HOLD: do not release the candidate\n")) << text;
  for (const char* part :
       {"Found     off-array weight bytes per inference +", " in burst, ", "95 % interval",
        "new-tiles (schedule, compiler-team)", "longer-wait", "shorter-queue", "first failing stage: schedule",
        "Mechanism", "raising the clock", "Limits", "Quality", "Next"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Summary, FitsTheScreenAtAnyWidth) {
  const auto& m = measured_burst();
  for (const int width : {60, 80, 100, 200}) {
    for (const auto& line : lines_of(decision_text(m.study, m.decision, false, width))) {
      const bool unbreakable = line.find('/') != std::string::npos;  // paths stay whole so that they copy
      EXPECT_TRUE(unbreakable || columns(line) <= static_cast<std::size_t>(width)) << width << ": " << line;
    }
  }
  EXPECT_LE(lines_of(decision_text(m.study, m.decision, false, 100)).size(), 34U);
}

TEST(Summary, ColourAddsCodesAndNothingElse) {
  const auto& m = measured_burst();
  const std::string plain = decision_text(m.study, m.decision, false, 90);
  const std::string coloured = decision_text(m.study, m.decision, true, 90);
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(coloured, plain);
  EXPECT_EQ(std::regex_replace(coloured, std::regex("\x1b\\[[0-9;]*m"), ""), plain);
}

TEST(Summary, ReleaseSpeaksOfGuardrailsNotOfCauses) {
  Measured m = measured_burst();
  m.decision.verdict = decide::Verdict::release;
  m.decision.symptom.harmful = false;
  m.decision.symptom_paired.reset();
  m.decision.symptom_attribution.reset();
  m.decision.first_failing_stage = "none";
  m.decision.first_failing_change.clear();
  m.decision.fix.reset();
  m.decision.rejected_fixes.clear();
  for (auto& row : m.decision.slices) row.verdict = decide::SliceVerdict::pass;
  const std::string text = decision_text(m.study, m.decision, false, 100);
  EXPECT_TRUE(text.starts_with("RELEASE: ")) << text;
  EXPECT_NE(text.find("stays within"), std::string::npos) << text;
  EXPECT_EQ(text.find("Cause"), std::string::npos) << text;
  EXPECT_EQ(text.find("Mechanism"), std::string::npos) << text;
  EXPECT_NE(text.find("watch "), std::string::npos) << text;
}

TEST(Why, AHarmThatNoSliceShowsIsAFindingInItsOwnUnit) {
  Measured m = measured_burst();
  auto& d = m.decision;
  d.symptom.harmful = true;
  d.symptom.metric = "latency_p95";
  d.symptom.slice = {"all"};
  d.symptom_paired = d.headline;
  d.symptom_attribution = d.attribution;
  d.symptom_attribution->metric = "latency_p95";
  bool found = false;
  for (const auto& finding : why_findings(m.study, d)) {
    if (finding.id == "symptom") {
      found = true;
      EXPECT_TRUE(finding.what.starts_with("latency_p95 in ")) << finding.what;
      EXPECT_NE(finding.what.find(" s ("), std::string::npos) << finding.what;
    }
    if (!finding.id.starts_with("change:")) continue;
    ASSERT_FALSE(finding.steps.empty());
    EXPECT_NE(finding.steps.front().text.find(" s of "), std::string::npos) << finding.steps.front().text;
  }
  EXPECT_TRUE(found);
}

TEST(Trace, SlicesNestAndQueuesNeverGoBelowZero) {
  const std::string bytes = perfetto_json(measured_burst().study);
  EXPECT_LT(bytes.size(), 6'000'000U);
  const auto trace = nlohmann::json::parse(bytes);
  std::map<int, std::vector<std::pair<std::int64_t, std::int64_t>>> open;  // ns, by process
  std::size_t kernels = 0;
  std::set<int> processes;
  for (const auto& event : trace["traceEvents"]) {
    const int pid = event["pid"];
    processes.insert(pid);
    if (event["ph"] == "C" && event["name"] == "queue length") {
      EXPECT_GE(event["args"]["requests"].get<std::int64_t>(), 0);
    }
    if (event["ph"] != "X") continue;
    const auto start = std::llround(event["ts"].get<double>() * 1000);
    const auto end = start + std::llround(event["dur"].get<double>() * 1000);
    auto& batches = open[pid];
    if (event["args"].contains("requests")) {
      if (!batches.empty()) {
        EXPECT_GE(start, batches.back().second) << "one device runs one batch at a time";
      }
      batches.emplace_back(start, end);
    } else {
      ASSERT_FALSE(batches.empty());
      EXPECT_GE(start, batches.back().first);
      EXPECT_LE(end, batches.back().second);
      ++kernels;
    }
  }
  EXPECT_EQ(processes, (std::set<int>{1, 2}));
  EXPECT_GT(kernels, 100U);
}

}  // namespace
}  // namespace plumbline::report
