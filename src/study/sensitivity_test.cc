#include "study/sensitivity.h"

#include <gtest/gtest.h>

namespace plumbline::study {
namespace {

const std::string kCatalog = std::string(PLUMBLINE_SOURCE_DIR) + "/catalog";
const std::string kBurst = kCatalog + "/scenarios/burst/";

std::vector<std::optional<double>> values(std::initializer_list<double> list) { return {list.begin(), list.end()}; }

TEST(Breaks, APowerLawHasNone) {
  EXPECT_TRUE(find_breaks({1, 2, 4, 8}, values({8, 4, 2, 1}), 0.1).empty());
  EXPECT_TRUE(find_breaks({16, 128, 512}, values({5, 5, 5}), 0.1).empty());
}

TEST(Breaks, ANewTrendIsOneBreakNotMany) {
  const auto found = find_breaks({1, 2, 4, 8, 16}, values({16, 8, 4, 4, 4}), 0.1);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].to, 3U);
  EXPECT_NEAR(found[0].expected, 2, 1e-12);
}

TEST(Breaks, AStepThatReturnsToItsTrendIsOneBreak) {
  const auto found = find_breaks({1, 2, 4, 8, 16}, values({1, 1, 3, 3, 3}), 0.1);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].to, 2U);
}

TEST(Breaks, TheThresholdIsARatioOfTheExpectedValue) {
  EXPECT_TRUE(find_breaks({1, 2, 4}, values({1, 1, 1.09}), 0.1).empty());
  EXPECT_EQ(find_breaks({1, 2, 4}, values({1, 1, 1.11}), 0.1).size(), 1U);
}

TEST(Breaks, NothingIsJudgedAcrossAHole) {
  EXPECT_TRUE(find_breaks({1, 2, 4, 8}, {1.0, std::nullopt, 4.0, 4.0}, 0.1).empty());
  EXPECT_TRUE(find_breaks({1, 2, 4}, values({0, 0, 7}), 0.1).empty());
}

struct Fixture {
  Fixture() : library(kCatalog), engine(library, 2) {
    auto made = engine.prepare("baseline", *library.read_document(kBurst + "baseline.yaml"));
    PL_CHECK(made.ok());
    prepared = std::move(*made);
  }
  ingest::Library library;
  Engine engine;
  Prepared prepared;
};

Fixture& fixture() {
  static Fixture made;
  return made;
}

TEST(Sensitivity, TheAccumulatorMakesTheCliffOfWeightBytes) {
  SensitivityOptions options;
  options.batches = {2, 4, 8, 16};
  options.sequences = {512};
  const auto report = study_sensitivity(fixture().engine, fixture().prepared, options);
  ASSERT_TRUE(report.ok()) << render(report.errors());
  EXPECT_EQ(report->metric, "off_array_weight_bytes_per_inference");
  const auto& model = report->models.at(0);
  ASSERT_EQ(model.cells.size(), 4U);
  // 4096 rows of sums: 8 × 512 fit, 16 × 512 take two passes.
  ASSERT_EQ(model.cliffs.size(), 1U);
  const Cliff& cliff = model.cliffs[0];
  EXPECT_EQ(cliff.from.batch, 8);
  EXPECT_EQ(cliff.to.batch, 16);
  EXPECT_TRUE(cliff.worse);
  EXPECT_NEAR(cliff.jump, 1, 0.06);  // biases and gathered rows pass once
  EXPECT_EQ(cliff.cause.kind, "weight_passes");
  EXPECT_DOUBLE_EQ(cliff.cause.from, 1);
  EXPECT_DOUBLE_EQ(cliff.cause.to, 2);
  EXPECT_NE(cliff.cause.text.find("loops that repeat it: M in 2 (sram), before: none"), std::string::npos)
      << cliff.cause.text;
  EXPECT_NE(cliff.mapping_from, cliff.mapping_to);
  for (const auto& step : model.elasticities) {
    ASSERT_TRUE(step.value);
    EXPECT_NEAR(*step.value, step.to.batch == 16 ? 0 : -1, 0.03);
  }
}

TEST(Sensitivity, CellsAreTheCostTablesOwn) {
  SensitivityOptions options;
  options.batches = {1, 8};
  options.sequences = {128};
  options.metric = "service_time";
  const auto report = study_sensitivity(fixture().engine, fixture().prepared, options);
  ASSERT_TRUE(report.ok());
  const auto& costs = *fixture().prepared.costs;
  // All weights stay pinned in every compiled shape of this scenario, so shapes alone cost what they do together.
  EXPECT_DOUBLE_EQ(*report->models[0].cells[0].value,
                   static_cast<double>(costs.entries[costs.index(0, 0, 0)].duration.raw()) * 1e-9);
  EXPECT_DOUBLE_EQ(*report->models[0].cells[1].value,
                   static_cast<double>(costs.entries[costs.index(0, 2, 0)].duration.raw()) * 1e-9);
}

TEST(Sensitivity, WrongQuestionsAreErrors) {
  SensitivityOptions options;
  options.metric = "latency_p99";
  auto report = study_sensitivity(fixture().engine, fixture().prepared, options);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.errors()[0].kind, "unknown-name");
  options.metric.clear();
  options.batches = {0};
  report = study_sensitivity(fixture().engine, fixture().prepared, options);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.errors()[0].kind, "bad-value");
  options.batches.assign(1, 4);
  options.threshold = 0;
  EXPECT_FALSE(study_sensitivity(fixture().engine, fixture().prepared, options).ok());
}

TEST(Sensitivity, EveryMetricHasAMeaningAndCausesThatExist) {
  for (const auto& metric : shape_metrics()) {
    EXPECT_NE(metric.value, nullptr) << metric.name;
    EXPECT_FALSE(metric.meaning.empty()) << metric.name;
    EXPECT_FALSE(metric.causes.empty()) << metric.name;
    EXPECT_EQ(find_shape_metric(metric.name), &metric);
  }
}

}  // namespace
}  // namespace plumbline::study
