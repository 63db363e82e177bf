#include "validate/metrics.h"

#include <gtest/gtest.h>

#include <set>

namespace plumbline::validate {
namespace {

/// Two models, two layer classes, one profile; model 0 has 4 base and 2 burst completions, model 1 one base completion.
Summary summary() {
  Summary s;
  s.models = 2;
  s.layer_classes = 2;
  s.profiles = 1;
  s.slices.resize(2 * 2 * 1 * kPhases);
  const auto set = [&](std::size_t model, std::size_t layer, std::size_t phase, std::int64_t bytes, std::int64_t fj) {
    SliceSums& slice = s.slices[s.slice(model, layer, 0, phase)];
    slice.movement.off_array_weight = bytes;
    slice.movement.off_array_stationary = bytes * 2;
    slice.movement.off_array_activation = bytes * 3;
    slice.movement.psum = bytes * 4;
    slice.movement.off_chip_weight = bytes * 5;
    slice.movement.off_chip_activation = bytes * 6;
    slice.femtojoules = static_cast<__int128>(fj) * 1'000'000'000'000'000;  // J
  };
  set(0, 0, 0, 40, 4);
  set(0, 1, 0, 8, 8);
  set(0, 0, 1, 60, 2);
  set(0, 1, 1, 6, 6);
  set(1, 0, 0, 100, 20);
  s.static_joules = 30;
  s.span_ns = 2'000'000'000;
  s.margins.resize(3 * 2 * 3);
  const auto serve = [&](std::size_t model, std::size_t phase, std::int64_t completed, std::int64_t lost) {
    for (const std::size_t profile : {0, 1}) {
      Service& service = s.margins[(model * 2 + profile) * 3 + phase];
      service = {completed + lost, completed, lost, 1'000'000, 2'000'000, 3'000'000};
      if (completed == 0) service = {lost, 0, lost, -1, -1, -1};
    }
  };
  serve(0, 0, 4, 0);
  serve(0, 1, 2, 2);
  serve(0, 2, 6, 2);
  serve(1, 0, 1, 0);
  serve(1, 1, 0, 0);
  serve(1, 2, 1, 0);
  serve(2, 0, 5, 0);
  serve(2, 1, 2, 2);
  serve(2, 2, 7, 2);
  return s;
}

std::optional<double> value(std::string_view name, const Selector& selector) {
  return find_metric(name)->value(summary(), selector);
}

TEST(Metrics, BytesPerInferenceDivideBySelectedCompletions) {
  EXPECT_DOUBLE_EQ(*value("off_array_weight_bytes_per_inference", {}), 214.0 / 7);
  EXPECT_DOUBLE_EQ(*value("off_array_weight_bytes_per_inference", {.model = 0}), 114.0 / 6);
  EXPECT_DOUBLE_EQ(*value("off_array_weight_bytes_per_inference", {.model = 0, .phase = 1}), 66.0 / 2);
  EXPECT_DOUBLE_EQ(*value("off_array_weight_bytes_per_inference", {.phase = 0}), 148.0 / 5);
}

TEST(Metrics, ALayerClassNarrowsTheNumeratorSoThatClassesAddUp) {
  for (const MetricRow& row : metrics()) {
    if (!row.sliced_by_class) continue;
    SCOPED_TRACE(row.name);
    const double first = *row.value(summary(), {.model = 0, .layer = 0, .phase = 1});
    const double second = *row.value(summary(), {.model = 0, .layer = 1, .phase = 1});
    EXPECT_DOUBLE_EQ(first + second, *row.value(summary(), {.model = 0, .phase = 1}));
  }
}

TEST(Metrics, EachByteMetricReadsItsOwnField) {
  EXPECT_DOUBLE_EQ(*value("off_array_stationary_bytes_per_inference", {}), 2 * 214.0 / 7);
  EXPECT_DOUBLE_EQ(*value("off_array_activation_bytes_per_inference", {}), 3 * 214.0 / 7);
  EXPECT_DOUBLE_EQ(*value("psum_bytes_per_inference", {}), 4 * 214.0 / 7);
  EXPECT_DOUBLE_EQ(*value("off_chip_weight_bytes_per_inference", {}), 5 * 214.0 / 7);
  EXPECT_DOUBLE_EQ(*value("off_chip_activation_bytes_per_inference", {}), 6 * 214.0 / 7);
}

TEST(Metrics, StaticEnergyIsSharedOnlyOverTheWholeRun) {
  EXPECT_DOUBLE_EQ(*value("energy_per_inference", {}), (40.0 + 30.0) / 7);
  EXPECT_DOUBLE_EQ(*value("energy_per_inference", {.phase = 0}), 32.0 / 5);
  EXPECT_DOUBLE_EQ(*value("throughput_per_watt", {}), 7 / (40.0 + 30.0));
  EXPECT_DOUBLE_EQ(*value("throughput_per_watt", {.phase = 1}), 2 / 8.0);
}

TEST(Metrics, LatencyThroughputAndLoss) {
  EXPECT_DOUBLE_EQ(*value("latency_p50", {}), 1e-3);
  EXPECT_DOUBLE_EQ(*value("latency_p95", {.model = 0}), 2e-3);
  EXPECT_DOUBLE_EQ(*value("latency_p99", {.profile = 0, .phase = 1}), 3e-3);
  EXPECT_DOUBLE_EQ(*value("throughput", {}), 3.5);
  EXPECT_DOUBLE_EQ(*value("throughput", {.phase = 0}) + *value("throughput", {.phase = 1}), 3.5);
  EXPECT_DOUBLE_EQ(*value("loss", {.phase = 1}), 0.5);
  EXPECT_DOUBLE_EQ(*value("loss", {.phase = 0}), 0.0);
}

TEST(Metrics, NoDenominatorIsNoValueAndNeverZero) {
  const Selector nobody = {.model = 1, .phase = 1};
  for (const MetricRow& row : metrics()) {
    SCOPED_TRACE(row.name);
    if (row.name == "throughput") {
      EXPECT_EQ(row.value(summary(), nobody), 0.0);  // over time, not over requests: nothing completed is a fact
    } else {
      EXPECT_EQ(row.value(summary(), nobody), std::nullopt);
    }
    EXPECT_EQ(row.value(summary(), {.layer = 0}).has_value(), row.sliced_by_class);
  }
}

TEST(Metrics, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const MetricRow& row : metrics()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(find_metric(row.name), &row);
    EXPECT_FALSE(row.unit.empty() || row.meaning.empty());
  }
  EXPECT_EQ(find_metric("off_array_weigth_bytes_per_inference"), nullptr);
}

}  // namespace
}  // namespace plumbline::validate
