#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/random.h"
#include "lower/sample_graphs.h"
#include "schedule/levels.h"
#include "schedule/placement.h"
#include "schedule/roles.h"
#include "schedule/sample_machines.h"
#include "schedule/traffic.h"

namespace plumbline::schedule {
namespace {

using ingest::Accelerator;
using ingest::CompileOptions;
using ingest::ConstraintRow;
using lower::KernelGraph;

KernelGraph lowered(const ingest::Graph& graph, const CompileOptions& options, const Accelerator& accelerator,
                    std::int64_t batch, std::int64_t sequence) {
  auto shaped = ingest::infer_shapes(graph, {{"batch", batch}, {"sequence", sequence}});
  EXPECT_TRUE(shaped.ok()) << (shaped.ok() ? "" : render(shaped.errors()));
  auto made = lower::lower(*shaped, options, int8_policy(), accelerator);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.errors()));
  return std::move(*made);
}

lower::EncoderShape small_encoder() {
  lower::EncoderShape shape;
  shape.layers = 2;
  return shape;
}

Schedule scheduled(const KernelGraph& graph, const Accelerator& accelerator, const CompileOptions& options) {
  auto made = schedule(graph, accelerator, options, sample_dataflows());
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.errors()));
  return std::move(*made);
}

std::size_t kernel_named(const KernelGraph& graph, const std::string& name) {
  for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
    if (graph.kernels[k].name == name) return k;
  }
  ADD_FAILURE() << name;
  return 0;
}

Span span_at(std::int32_t line) {
  Span span;
  auto source = std::make_shared<Source>();
  source->name = "scenario.yaml";
  span.source = source;
  span.line = line;
  span.column = 3;
  return span;
}

ConstraintRow factor_row(const std::string& level, const std::string& dim, std::int64_t max, std::int32_t line = 1) {
  ConstraintRow row;
  row.level = level;
  row.dim = dim;
  row.factor_max = max;
  row.span = span_at(line);
  row.text = "{level: " + level + ", dim: " + dim + "}";
  return row;
}

/// Weight elements read just outside the array by kernel `name` of the encoder at batch × 512.
std::int64_t weight_reads(std::int64_t batch, const std::string& name, const CompileOptions& options) {
  const Accelerator accelerator = catalog_accelerator("ws-256");
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, batch, 512);
  const Schedule made = scheduled(graph, accelerator, options);
  return made.kernels[kernel_named(graph, name)].counts.levels[1][0].reads;
}

TEST(Schedule, HalfTheAccumulatorRowsDoubleTheWeightStreamOnceABatchExceedsThem) {
  const CompileOptions whole = sample_options();
  CompileOptions half = whole;
  half.constraints = {factor_row("accumulator", "M", 2048)};
  const std::int64_t weights = 768 * 3072;
  EXPECT_EQ(weight_reads(4, "layer.0/up", whole), weights);  // 2048 rows
  EXPECT_EQ(weight_reads(4, "layer.0/up", half), weights);
  EXPECT_EQ(weight_reads(8, "layer.0/up", whole), weights);  // 4096
  EXPECT_EQ(weight_reads(8, "layer.0/up", half), 2 * weights);
  EXPECT_EQ(weight_reads(16, "layer.0/up", whole), 2 * weights);  // 8192
  EXPECT_EQ(weight_reads(16, "layer.0/up", half), 4 * weights);
}

TEST(Schedule, UnboundedAccumulatorsStreamWeightsOnce) {
  Accelerator relieved = catalog_accelerator("ws-256");
  relieved.levels[2].capacity.reset();
  const CompileOptions options = sample_options();
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, relieved, 16, 512);
  const Schedule made = scheduled(graph, relieved, options);
  EXPECT_EQ(made.kernels[kernel_named(graph, "layer.0/up")].counts.levels[1][0].reads, 768 * 3072);
}

TEST(Schedule, PartialSumsStayWithinTheAccumulators) {
  const Accelerator accelerator = catalog_accelerator("ws-256");
  const CompileOptions options = sample_options();
  for (const std::int64_t batch : {1, 3, 7, 16}) {
    const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, batch, 500);
    const Schedule made = scheduled(graph, accelerator, options);
    for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
      if (graph.kernels[k].kind != lower::KernelKind::matrix) continue;
      EXPECT_LE(made.kernels[k].counts.levels[2][2].tile * 4, 4 << 20) << graph.kernels[k].name;
      EXPECT_EQ(made.kernels[k].counts.levels[1][2].reads, 0) << "no sum leaves unfinished";
    }
  }
}

TEST(Schedule, PassesAreBalanced) {
  // 3 × 512 × 3 = 4608 rows on 4096: two passes of 2304, not 4096 and 512.
  const Accelerator accelerator = catalog_accelerator("ws-256");
  const CompileOptions options = sample_options();
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 9, 512);
  const Schedule made = scheduled(graph, accelerator, options);
  const std::string& text = made.kernels[kernel_named(graph, "layer.0/up")].text;
  EXPECT_NE(text.find("for M in 2 (sram)"), std::string::npos) << text;
  EXPECT_NE(text.find("for M in 2304 (accumulator)"), std::string::npos) << text;
}

TEST(Schedule, CountsEqualTheLoopNestWalk) {
  // The smallest shape, with and without a second pass; walk_default_test.cc walks every shape of the default.
  const Accelerator accelerator = catalog_accelerator("ws-256");
  CompileOptions options = sample_options();
  for (const std::int64_t most : {128, 50}) {
    options.constraints = {factor_row("accumulator", "M", most)};
    const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 1, 128);
    const Schedule made = scheduled(graph, accelerator, options);
    for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
      if (graph.kernels[k].kind != lower::KernelKind::matrix) continue;
      const auto walked = walk_accesses(graph.kernels[k].einsum, made.kernels[k].hierarchy, made.kernels[k].mapping);
      ASSERT_TRUE(walked.ok()) << render(walked.errors());
      EXPECT_EQ(*walked, made.kernels[k].counts) << graph.kernels[k].name << " M at most " << most;
    }
  }
}

TEST(Schedule, EveryDataflowCoversConvolutionsAndProducts) {
  const Accelerator accelerator = catalog_accelerator("flex-128");
  for (const char* dataflow : {"weight_stationary", "input_stationary", "output_stationary", "auto"}) {
    CompileOptions options = sample_options();
    options.dataflow = dataflow;
    for (const auto& graph : {lowered(lower::sample_convolutions(), options, accelerator, 3, 1),
                              lowered(lower::sample_encoder(small_encoder()), options, accelerator, 3, 40)}) {
      const Schedule made = scheduled(graph, accelerator, options);
      for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
        if (graph.kernels[k].kind != lower::KernelKind::matrix) continue;
        EXPECT_EQ(made.kernels[k].counts.macs, graph.kernels[k].macs());
        const auto walked = walk_accesses(graph.kernels[k].einsum, made.kernels[k].hierarchy, made.kernels[k].mapping);
        ASSERT_TRUE(walked.ok());
        EXPECT_EQ(*walked, made.kernels[k].counts)
            << graph.kernels[k].name << " " << dataflow << " " << made.kernels[k].text;
      }
    }
  }
}

TEST(Schedule, AutoIsNeverWorseThanAnyDataflowItMayChoose) {
  const Accelerator accelerator = catalog_accelerator("flex-128");
  CompileOptions options = sample_options();
  options.objective = "off_array_weight_bytes";
  const auto reads = [&](const char* dataflow, std::size_t k) {
    options.dataflow = dataflow;
    const KernelGraph graph = lowered(lower::sample_convolutions(), options, accelerator, 4, 1);
    return scheduled(graph, accelerator, options).kernels[k].counts.levels[1][0].reads;
  };
  for (std::size_t k = 0; k < 3; ++k) {
    const std::int64_t best = reads("auto", k);
    EXPECT_LE(best, reads("weight_stationary", k));
    EXPECT_LE(best, reads("input_stationary", k));
    EXPECT_LE(best, reads("output_stationary", k));
  }
}

TEST(Schedule, AmongEqualsTheNextObjectiveDecides) {
  const Accelerator accelerator = catalog_accelerator("flex-128");
  CompileOptions options = sample_options();
  options.objective = "off_array_weight_bytes";
  options.dataflow = "auto";
  lower::EncoderShape shape;
  shape.layers = 1;
  const KernelGraph graph = lowered(lower::sample_encoder(shape), options, accelerator, 4, 128);
  const auto schedule_then = [&](std::vector<std::string> then) {
    options.objective_then = std::move(then);
    return scheduled(graph, accelerator, options);
  };
  const Schedule fast = schedule_then({"latency"});
  const Schedule frugal = schedule_then({"energy", "latency"});
  int decided = 0;
  for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
    const MappingPrice& a = fast.kernels[k].price;
    const MappingPrice& b = frugal.kernels[k].price;
    EXPECT_EQ(a.off_array_weight, b.off_array_weight);
    EXPECT_LE(a.cycles, b.cycles);
    EXPECT_LE(b.femtojoules, a.femtojoules);
    decided += a.cycles < b.cycles && b.femtojoules < a.femtojoules ? 1 : 0;
  }
  EXPECT_GT(decided, 0) << "no kernel tells the two apart";
}

TEST(Schedule, ADataflowPerClassOverridesTheDefault) {
  const Accelerator accelerator = catalog_accelerator("flex-128");
  CompileOptions options = sample_options();
  options.dataflow_by_class = {{"attention", "output_stationary"}};
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 2, 64);
  const Schedule made = scheduled(graph, accelerator, options);
  EXPECT_EQ(made.kernels[kernel_named(graph, "layer.0/scores")].dataflow, "output_stationary");
  EXPECT_EQ(made.kernels[kernel_named(graph, "layer.0/up")].dataflow, "weight_stationary");
}

Diagnostics errors_of(const CompileOptions& options, const std::string& machine = "ws-256") {
  const Accelerator accelerator = catalog_accelerator(machine);
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 8, 512);
  auto made = schedule(graph, accelerator, options, sample_dataflows());
  if (!made.ok()) return made.errors();
  ModelSchedules model;
  model.buckets.push_back({8, 512, std::make_shared<KernelGraph>(graph), std::make_shared<Schedule>(std::move(*made))});
  auto residency = plan_residency({model}, accelerator, options);
  return residency.ok() ? Diagnostics{} : residency.errors();
}

TEST(Constraints, ADimensionNoMatchedKernelHasIsAnErrorAtItsRow) {
  CompileOptions options = sample_options();
  options.constraints = {factor_row("accumulator", "Q", 7, 12)};
  const Diagnostics errors = errors_of(options);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].kind, "bad-value");
  EXPECT_EQ(errors[0].span.line, 12);
}

TEST(Constraints, AGlobThatMatchesNothingNamesTheClasses) {
  CompileOptions options = sample_options();
  options.constraints = {factor_row("accumulator", "M", 2048)};
  options.constraints[0].kernels = "projektion";
  const Diagnostics errors = errors_of(options);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_NE(errors[0].help.find("projection"), std::string::npos);
}

TEST(Constraints, AnUnknownLevelIsAnErrorAtItsRow) {
  CompileOptions options = sample_options();
  options.constraints = {factor_row("accumulater", "M", 2048, 9)};
  const Diagnostics errors = errors_of(options);
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors[0].kind, "bad-value");
  EXPECT_EQ(errors[0].span.line, 9);
  EXPECT_NE(errors[0].help.find("accumulator"), std::string::npos);
}

TEST(Constraints, ContradictingRowsAreBothNamed) {
  CompileOptions options = sample_options();
  ConstraintRow least = factor_row("accumulator", "M", 0, 21);
  least.factor_max.reset();
  least.factor_min = 3000;
  options.constraints = {factor_row("accumulator", "M", 2048, 20), least};
  const Diagnostics errors = errors_of(options);
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors[0].kind, "does-not-fit");
  EXPECT_EQ(errors[0].span.line, 21);
  EXPECT_EQ(errors[0].other.line, 20);
  EXPECT_NE(render(errors[0]).find("note: "), std::string::npos) << render(errors[0]);
}

TEST(Constraints, AMinimumBeyondTheCapacityDoesNotFit) {
  CompileOptions options = sample_options();
  ConstraintRow least = factor_row("accumulator", "M", 0, 5);
  least.factor_max.reset();
  least.factor_min = 4097;
  options.constraints = {least};
  const Diagnostics errors = errors_of(options);
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors[0].kind, "does-not-fit");
  EXPECT_EQ(errors[0].span.line, 5);
}

TEST(Constraints, RowsBindOnlyTheKernelsTheyMatch) {
  CompileOptions options = sample_options();
  options.constraints = {factor_row("accumulator", "M", 2048)};
  options.constraints[0].kernels = "ffn";
  EXPECT_EQ(weight_reads(8, "layer.0/up", options), 2 * 768 * 3072);
  EXPECT_EQ(weight_reads(8, "layer.0/query", options), 768 * 768);
}

TEST(Constraints, AnOrderIsFollowedThoughItCosts) {
  // Reductions outside: sums must leave the accumulators unfinished.
  const Accelerator accelerator = catalog_accelerator("ws-256");
  CompileOptions options = sample_options();
  ConstraintRow row;
  row.level = "sram";
  row.order = {"K", "N"};
  row.text = "{order}";
  options.constraints = {row};
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 4, 128);
  const Schedule made = scheduled(graph, accelerator, options);
  const std::size_t up = kernel_named(graph, "layer.0/up");
  EXPECT_EQ(made.kernels[up].counts.levels[1][2].reads, 2 * 512 * 3072);
}

TEST(Constraints, ASpatialRowMovesTheDimensionOrSaysWhyNot) {
  CompileOptions options = sample_options();
  ConstraintRow row;
  row.level = "array";
  row.spatial_x = "M";
  row.span = span_at(3);
  row.text = "{spatial}";
  options.constraints = {row};
  const Diagnostics errors = errors_of(options);
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors[0].kind, "does-not-fit");
  EXPECT_EQ(errors[0].span.line, 3);
}

TEST(Constraints, AFactorAtTheArrayLimitsTheSpread) {
  const Accelerator accelerator = catalog_accelerator("ws-256");
  CompileOptions options = sample_options();
  options.constraints = {factor_row("array", "N", 128)};
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 1, 128);
  const Schedule made = scheduled(graph, accelerator, options);
  EXPECT_NE(made.kernels[kernel_named(graph, "layer.0/up")].text.find("N over 128 columns"), std::string::npos);
}

TEST(Constraints, AFactorAtTheSramSendsTheRestOffChip) {
  const Accelerator accelerator = catalog_accelerator("ws-256");
  CompileOptions options = sample_options();
  options.constraints = {factor_row("sram", "N", 4)};
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 1, 128);
  const Schedule made = scheduled(graph, accelerator, options);
  const KernelSchedule& up = made.kernels[kernel_named(graph, "layer.0/up")];
  EXPECT_NE(up.text.find("for N in 3 (hbm); for N in 4 (sram)"), std::string::npos) << up.text;
}

TEST(Constraints, BypassingTheAccumulatorsPutsSumsInSram) {
  const Accelerator accelerator = catalog_accelerator("ws-256");
  CompileOptions options = sample_options();
  ConstraintRow row;
  row.level = "accumulator";
  row.bypass = {"outputs"};
  row.text = "{bypass}";
  options.constraints = {row};
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 1, 128);
  const Schedule made = scheduled(graph, accelerator, options);
  const KernelSchedule& up = made.kernels[kernel_named(graph, "layer.0/up")];
  EXPECT_FALSE(up.counts.levels[2][2].kept);
  EXPECT_EQ(up.counts.levels[1][2].updates, 3 * 128 * 3072);  // three reduction tiles
}

TEST(Dataflows, UnknownNamesAndWrongHardwareAreErrors) {
  CompileOptions options = sample_options();
  options.dataflow = "weight_stationery";
  EXPECT_EQ(errors_of(options)[0].kind, "unknown-name");
  options.dataflow = "output_stationary";
  EXPECT_EQ(errors_of(options, "ws-256")[0].kind, "does-not-fit");
  EXPECT_TRUE(errors_of(options, "flex-128").empty());
}

TEST(Placement, OccupancyIsLiveBuffersAndNeverExceedsTheLevel) {
  Accelerator accelerator = catalog_accelerator("ws-256");
  const CompileOptions options = sample_options();
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 16, 512);
  const Schedule roomy = scheduled(graph, accelerator, options);
  EXPECT_EQ(roomy.placement.spilled, 0);
  // Up: its input, its output and the residual are the live set of a layer: 2 × 6 MiB and 24 MiB, and a weight tensor.
  EXPECT_EQ(roomy.placement.peak, 8192LL * 768 + 8192LL * 3072 + 8192LL * 768 + 768 * 3072);
  accelerator.levels[1].capacity = Bytes(24 << 20);
  const Schedule tight = scheduled(graph, accelerator, options);
  EXPECT_GT(tight.placement.spilled, 0);
  for (const std::int64_t bytes : tight.placement.occupancy) EXPECT_LE(bytes, 24 << 20);
  // Down reads 24 MiB that now stream from off chip, in chunks of rows smaller than the accumulators would take.
  const std::size_t down = kernel_named(graph, "layer.0/down");
  EXPECT_GT(tight.kernels[down].counts.levels[1][0].reads, roomy.kernels[down].counts.levels[1][0].reads);
}

TEST(Placement, WhatCannotFitIsAnError) {
  Accelerator accelerator = catalog_accelerator("ws-256");
  accelerator.levels[1].capacity = Bytes(1 << 10);
  const CompileOptions options = sample_options();
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 1, 128);
  auto made = schedule(graph, accelerator, options, sample_dataflows());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.errors()[0].kind, "does-not-fit");
}

TEST(Placement, LargeWeightsAreFetchedInPieces) {
  Accelerator accelerator = catalog_accelerator("ws-256");
  accelerator.levels[1].capacity = Bytes(2 << 20);  // the 2.25 MiB of one tensor does not fit
  const CompileOptions options = sample_options();
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 1, 128);
  const Schedule made = scheduled(graph, accelerator, options);
  const KernelSchedule& up = made.kernels[kernel_named(graph, "layer.0/up")];
  EXPECT_LE(up.counts.levels[1][0].tile, 1 << 20);
  EXPECT_EQ(up.counts.levels[0][0].reads, 768 * 3072);  // each piece once: one pass over M
}

ModelSchedules one_model(const KernelGraph& graph, Schedule made) {
  ModelSchedules model;
  model.buckets.push_back({1, 0, std::make_shared<KernelGraph>(graph), std::make_shared<Schedule>(std::move(made))});
  return model;
}

/// A graph whose only content is parameter tensors of the given sizes.
KernelGraph parameters_of(const std::vector<std::int64_t>& sizes) {
  KernelGraph graph;
  graph.kernels.emplace_back();
  graph.kernels[0].kind = lower::KernelKind::vector;
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    lower::Instance instance;
    instance.kernel = KernelId(std::size_t{0});
    instance.parameters.push_back({TensorId(t), -1, sizes[t], sizes[t], false});
    graph.instances.push_back(instance);
  }
  return graph;
}

TEST(Residency, PinsTheMostBytesThatFit) {
  RandomStream random(5, "residency");
  Accelerator accelerator = catalog_accelerator("ws-256");
  for (int i = 0; i < 200; ++i) {
    std::vector<std::int64_t> sizes;
    const std::size_t count = 1 + random.next_below(10);
    for (std::size_t t = 0; t < count; ++t) sizes.push_back(1 + static_cast<std::int64_t>(random.next_below(60)));
    const auto room = static_cast<std::int64_t>(random.next_below(300));
    std::int64_t best = 0;
    for (std::size_t subset = 0; subset < (std::size_t{1} << count); ++subset) {
      std::int64_t sum = 0;
      for (std::size_t t = 0; t < count; ++t) sum += ((subset >> t) & 1U) != 0 ? sizes[t] : 0;
      if (sum <= room) best = std::max(best, sum);
    }
    accelerator.levels[1].capacity = Bytes(room);
    auto residency = plan_residency({one_model(parameters_of(sizes), {})}, accelerator, sample_options());
    ASSERT_TRUE(residency.ok());
    EXPECT_EQ(residency->pinned_bytes, best) << i << " seed 5";
    std::int64_t pinned = 0;
    for (std::size_t t = 0; t < count; ++t) pinned += residency->pinned[0][t] ? sizes[t] : 0;
    EXPECT_EQ(pinned, best);
  }
}

TEST(Residency, EqualTensorsArePinnedFromTheFirst) {
  Accelerator accelerator = catalog_accelerator("ws-256");
  accelerator.levels[1].capacity = Bytes(25);
  auto residency = plan_residency({one_model(parameters_of({10, 10, 10}), {})}, accelerator, sample_options());
  ASSERT_TRUE(residency.ok());
  EXPECT_EQ(residency->pinned[0], (std::vector<bool>{true, true, false}));
}

TEST(Residency, LargerActivationsEvictWeights) {
  Accelerator accelerator = catalog_accelerator("ws-256");
  accelerator.levels[1].capacity = Bytes(48 << 20);
  const CompileOptions options = sample_options();
  const auto pinned = [&](std::int64_t batch) {
    const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, batch, 512);
    auto residency = plan_residency({one_model(graph, scheduled(graph, accelerator, options))}, accelerator, options);
    EXPECT_TRUE(residency.ok());
    return residency->pinned_bytes;
  };
  EXPECT_LT(pinned(16), pinned(1));
}

TEST(Residency, NonePinsNothingAndUnboundedPinsAllButGatheredTables) {
  Accelerator accelerator = catalog_accelerator("ws-256");
  CompileOptions options = sample_options();
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 1, 128);
  const ModelSchedules model = one_model(graph, scheduled(graph, accelerator, options));
  options.residency = "none";
  EXPECT_EQ(plan_residency({model}, accelerator, options)->pinned_bytes, 0);
  options.residency = "auto";
  accelerator.levels[1].capacity.reset();
  std::int64_t all = 0;
  for (const lower::Instance& instance : graph.instances) {
    for (const lower::ParameterUse& use : instance.parameters) all += use.gathered ? 0 : use.stored;
  }
  EXPECT_EQ(plan_residency({model}, accelerator, options)->pinned_bytes, all);
}

TEST(Traffic, EveryOutputIsFinishedOnce) {
  const Accelerator accelerator = catalog_accelerator("ws-256");
  const CompileOptions options = sample_options();
  const KernelGraph graph = lowered(lower::sample_encoder(small_encoder()), options, accelerator, 16, 512);
  const Schedule made = scheduled(graph, accelerator, options);
  for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
    if (graph.kernels[k].kind != lower::KernelKind::matrix) continue;
    const lower::Einsum& einsum = graph.kernels[k].einsum;
    const Traffic traffic = find_traffic(einsum, made.kernels[k].mapping, made.kernels[k].counts, 1);
    EXPECT_EQ(traffic[1][2].write_bits, 8 * output_words(einsum, find_roles(einsum)));
    EXPECT_EQ(traffic[1][2].partial_write_bits, 0);
    // Every step writes a 32-bit sum per column; all but the first of each sum read it back; finished ones are drained.
    EXPECT_EQ(traffic[2][2].read_bits, traffic[2][2].write_bits);
  }
}

}  // namespace
}  // namespace plumbline::schedule
