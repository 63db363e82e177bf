#include "report/reuse_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/sections.h"
#include "report/testing.h"

namespace plumbline::report {
namespace {

const std::string kEvil = "</title><script>alert(\"x\")</script>|`*_[a](http://evil)\n\x1b[31m\xff&";

study::ReuseArm arm_of(const study::Recording& recording) {
  return study::reuse_arm(recording.prepared,
                          study::operating_point_of(recording.prepared, 1, *recording.trace, recording.run),
                          std::nullopt, "not asked for");
}

study::ReuseReport burst_report() {
  const auto& m = measured_burst();
  return study::reuse_report(arm_of(m.study.baseline), arm_of(m.study.candidate));
}

study::ReuseReport poisoned() {
  study::ReuseReport report = burst_report();
  for (auto* arm : {&report.baseline, &*report.candidate}) {
    arm->name = kEvil;
    arm->stale_why = kEvil;
    for (auto& name : arm->models) name = kEvil;
    for (auto& name : arm->levels) name = kEvil;
    for (auto& shape : arm->shapes) {
      for (auto& row : shape.classes) row.layer_class = kEvil;
    }
    for (auto& row : arm->loads) {
      row.profile = kEvil;
      if (!row.layer_class.empty()) row.layer_class = kEvil;
    }
  }
  for (auto& flag : report.flags) flag.layer_class = kEvil;
  return report;
}

study::SensitivityReport grid() {
  study::SensitivityReport report;
  report.scenario = report.note = kEvil;
  report.metric = "service_time";
  report.unit = "s";
  report.threshold = 0.1;
  report.batches = {1, 2};
  report.sequences = {0};
  study::ModelSensitivity model;
  model.model = kEvil;
  model.cells = {{1, 0, 0.5}, {2, 0, std::nullopt}};
  model.elasticities = {{study::Axis::batch, model.cells[0], model.cells[1], std::nullopt}};
  study::Cliff cliff;
  cliff.from = model.cells[0];
  cliff.to = model.cells[0];
  cliff.layer_class = cliff.kernel = cliff.mapping_from = cliff.mapping_to = kEvil;
  cliff.cause = {"stall", kEvil, 0, 1};
  model.cliffs = {cliff};
  report.models = {model, model};
  return report;
}

void expect_tame_page(const std::string& page) {
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_EQ(page.find("http://evil\""), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("href="), std::string::npos);
}

TEST(ReuseReport, HostileNamesStayText) {
  const auto report = poisoned();
  expect_tame_page(reuse_html(report));
  expect_tame_page(sensitivity_html(grid()));
  for (const std::string& text :
       {reuse_text(report), reuse_markdown(report), sensitivity_text(grid()), sensitivity_markdown(grid())}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\xff'), std::string::npos);
  }
  const std::string markdown = reuse_markdown(report);
  for (std::size_t i = 1; i < markdown.size(); ++i) {
    const bool special = markdown[i] == '<' || markdown[i] == '[' || markdown[i] == '`';
    if (special) {
      EXPECT_EQ(markdown[i - 1], '\\') << i;
    }
  }
  EXPECT_TRUE(nlohmann::json::accept(reuse_json(report)));
  EXPECT_TRUE(nlohmann::json::accept(sensitivity_json(grid())));
}

TEST(ReuseReport, ARatioWithoutADenominatorIsNullWithItsReason) {
  const auto json = nlohmann::json::parse(reuse_json(burst_report()));
  bool seen = false;
  for (const auto& row : json["baseline"]["shapes"][0]["classes"]) {
    if (row["layer_class"] != "attention_context") continue;
    seen = true;
    EXPECT_TRUE(row["achieved_weight_reuse"].is_null());
    EXPECT_EQ(row["achieved_weight_reuse_why"], "no weights");
    EXPECT_TRUE(row["weight_residency"].is_null());
    EXPECT_GT(row["stationary_activation_residency"].get<double>(), 0);
  }
  EXPECT_TRUE(seen);
}

TEST(ReuseReport, BothArmsAreThereAndTheCandidateMovesMore) {
  const auto json = nlohmann::json::parse(reuse_json(burst_report()));
  const auto& before = json["baseline"]["shapes"].back()["total"];
  const auto& after = json["candidate"]["shapes"].back()["total"];
  EXPECT_GT(after["off_array_weight_bytes_per_inference"].get<double>(),
            1.5 * before["off_array_weight_bytes_per_inference"].get<double>());
  EXPECT_LT(after["achieved_weight_reuse"].get<double>(), before["achieved_weight_reuse"].get<double>());
  EXPECT_EQ(before["ideal_weight_reuse"], after["ideal_weight_reuse"]);
}

TEST(ReuseReport, TheSameReportGivesTheSameBytes) {
  EXPECT_EQ(reuse_json(burst_report()), reuse_json(burst_report()));
  EXPECT_EQ(reuse_html(burst_report()), reuse_html(burst_report()));
}

TEST(Sections, ColumnsLineUpWhateverTheirAlphabet) {
  Document document{"t", {{"h", 2, {}, {}, {{{"a"}, {"n", true}}, {{"×", "1"}, {"xx", "10"}}}, {}}}};
  EXPECT_EQ(text_of(document), "t\n\nh\n  a    n\n  ×    1\n  xx  10\n");
}

}  // namespace
}  // namespace plumbline::report
