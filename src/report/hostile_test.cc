// Names and texts of inputs are material, never markup, control codes or JSON.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "report/html.h"
#include "report/json.h"
#include "report/testing.h"
#include "report/trace.h"

namespace plumbline::report {
namespace {

const std::string kEvil = "</title><script>alert(\"x\")</script><img src=http://evil/ onerror='y'>|`*\n\x1b[31m\xff&";

// The measured burst with every name that inputs can choose replaced.
Measured poisoned() {
  Measured m = measured_burst();
  auto& table = m.study.table;
  auto& d = m.decision;
  for (auto& change : table.changes) {
    const std::string old = change.id;
    change.id = kEvil + old;
    change.owner = kEvil;
    change.reason = kEvil;
    change.patch = ingest::make_at_path("serving", ingest::make_scalar(kEvil));
    for (auto* attribution : {&d.attribution, d.symptom_attribution ? &*d.symptom_attribution : nullptr}) {
      if (attribution == nullptr) continue;
      for (auto& share : attribution->shares) {
        if (share.change == old) share.change = change.id;
      }
      attribution->no_value.push_back(kEvil);
    }
  }
  table.baseline_path = table.candidate_path = kEvil;
  d.first_failing_change = d.owner = kEvil;
  d.feedback = d.reasons = d.open_items = {kEvil};
  d.quality.detail = d.triage.quadrant = d.triage.first = d.mechanism.sentence = d.mechanism.resource = kEvil;
  for (auto& row : d.mechanism.relief) row.resource = row.why = kEvil;
  for (auto& row : d.hypotheses) row.claim = row.change = row.predicted_why = row.verdict = kEvil;
  for (auto& row : d.evidence_matrix) row.evidence = row.shows = row.does_not_prove = row.next_action = kEvil;
  for (auto& row : d.guards) row.name = row.detail = kEvil;
  for (auto& row : d.rejected_fixes) row.id = row.why = kEvil;
  for (auto& row : d.rollout_guardrails) row.metric = row.threshold = row.window = row.action = kEvil;
  if (d.fix) {
    d.fix->title = d.fix->owner = d.fix->note = kEvil;
    d.fix->patch = d.fix->rollback_patch = d.fix->fallback = ingest::make_at_path("a", ingest::make_scalar(kEvil));
  }
  for (auto& row : d.slices) row.id.family = row.id.profile = kEvil;
  d.symptom.slice.profile = kEvil;
  m.manifest.reproduce.command = kEvil;
  for (auto& file : m.manifest.reproduce.inputs) file.path = kEvil;
  return m;
}

TEST(Hostile, HtmlHoldsNoMarkupFromInputs) {
  const Measured m = poisoned();
  const std::string html = report_html(m.study, m.decision, m.manifest.reproduce);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(html.find('\x1b'), std::string::npos);
  EXPECT_EQ(html.find('\xff'), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos);
}

TEST(Hostile, HtmlAsksNothingOfTheNetwork) {
  const auto& m = measured_burst();
  const std::string html = report_html(m.study, m.decision, m.manifest.reproduce);
  for (const char* part : {"http:", "https:", "src=", "url(", "@import", "<link", "<script", "<iframe"})
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
}

TEST(Hostile, MarkdownHoldsNoMarkupFromInputs) {
  const Measured m = poisoned();
  const std::string md = decision_markdown(m.study, m.decision, m.manifest.reproduce);
  EXPECT_EQ(md.find('\x1b'), std::string::npos);
  // Outside code every < is escaped; inside a code span or fence nothing is acted on.
  bool fenced = false;
  std::istringstream lines(md);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      fenced = !fenced;
      continue;
    }
    bool code = false;
    for (std::size_t i = 0; !fenced && i < line.size(); ++i) {
      const bool escaped = i > 0 && line[i - 1] == '\\';
      if (line[i] == '`' && !escaped) code = !code;
      if (line[i] == '<' && !code) {
        EXPECT_TRUE(escaped) << line;
      }
    }
    EXPECT_FALSE(code) << line;
  }
}

TEST(Hostile, TerminalObeysNothingFromInputs) {
  const Measured m = poisoned();
  const std::string text = decision_text(m.study, m.decision, false, 100);
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
}

TEST(Hostile, JsonStaysJson) {
  const Measured m = poisoned();
  const auto d = nlohmann::json::parse(decision_json(m.study, m.decision, m.manifest.reproduce));
  EXPECT_EQ(d["owner"].get<std::string>().find("</title><script>"), 0U);
  EXPECT_TRUE(nlohmann::json::accept(perfetto_json(m.study)));
}

TEST(Json, WhatIsNotFiniteIsNullWithAReason) {
  Json out = Json::object();
  put_number(out, "a", std::numeric_limits<double>::quiet_NaN());
  put_number(out, "b", -0.0);
  put_number(out, "c", 0.1);
  put_interval(out, "d", 0, std::numeric_limits<double>::infinity(), "one pair");
  EXPECT_EQ(
      json_dump(out),
      "{\"a\":null,\"a_why\":\"it has no finite value\",\"b\":0.0,\"c\":0.1,\"d\":null,\"d_why\":\"one pair\"}\n");
}

TEST(Json, EveryLayoutReadsBack) {
  Json list = Json::array();
  for (int i = 0; i < 200; ++i) list.push_back(i * 0.37);
  Json out = {{"list", list},
              {"empty", Json::array()},
              {"nested", {{"a", {1, 2, 3}}, {"b", Json::object()}}},
              {"bad\xff", "x\xff"}};
  const auto again = nlohmann::ordered_json::parse(json_dump(out));
  EXPECT_EQ(again["list"], list);
  EXPECT_EQ(again["nested"], out["nested"]);
  EXPECT_EQ(again.size(), 4U);
}

}  // namespace
}  // namespace plumbline::report
