#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "execute/cost.h"
#include "lower/sample_graphs.h"
#include "schedule/sample_machines.h"
#include "study/exact_shapes.h"
#include "study/reuse_study.h"

namespace plumbline::study {
namespace {

using execute::CycleClass;

const std::string kCatalog = std::string(PLUMBLINE_SOURCE_DIR) + "/catalog";
const std::string kBurst = kCatalog + "/scenarios/burst/";

std::size_t at(CycleClass c) { return static_cast<std::size_t>(c); }

/// x (64 × 32) · W (32 × 16) on an 8 × 8 weight-stationary array.
struct Product {
  explicit Product(const std::function<void(ingest::Accelerator&)>& edit = {}) {
    lower::GraphWriter writer("product");
    const TensorId x = writer.input("x", ingest::ElementType::float32, {{-1, "batch"}, {32, {}}});
    const ingest::Graph graph = writer.finish({writer.node("MatMul", "product", {x, writer.parameter("w", {32, 16})})});
    accelerator = schedule::catalog_accelerator("ws-256");
    accelerator.levels[3].fanout_x = accelerator.levels[3].fanout_y = 8;
    accelerator.host = {};
    if (edit) edit(accelerator);
    ingest::CompileOptions options = schedule::sample_options();
    options.residency = "none";
    auto shaped = ingest::infer_shapes(graph, {{"batch", 64}});
    PL_CHECK(shaped.ok());
    auto kernels = lower::lower(*shaped, options, schedule::int8_policy(), accelerator);
    PL_CHECK(kernels.ok());
    auto mapped = schedule::schedule(*kernels, accelerator, options, schedule::sample_dataflows());
    PL_CHECK(mapped.ok());
    bucket = {64, 0, std::make_shared<lower::KernelGraph>(std::move(*kernels)),
              std::make_shared<schedule::Schedule>(std::move(*mapped))};
    const std::vector<schedule::ModelSchedules> models{{"product", {bucket}}};
    auto residency = schedule::plan_residency(models, accelerator, options);
    PL_CHECK(residency.ok());
    auto table = execute::build_cost_table(models, {{64}, {}}, *residency, accelerator, accelerator.nominal);
    PL_CHECK(table.ok());
    costs = std::move(*table);
    shape = reuse_of(bucket, costs.entries[0], residency->pinned[0], 0, accelerator, accelerator.nominal);
  }
  ingest::Accelerator accelerator;
  schedule::Bucket bucket;
  execute::CostTable costs;
  ReuseShape shape;
};

TEST(Reuse, OneProductByHand) {
  const Product product;
  ASSERT_EQ(product.shape.classes.size(), 1U);
  const ReuseRow& row = product.shape.total;
  // 512 weights enter once and each meets 64 rows.
  EXPECT_EQ(row.movement.off_array_weight, 512);
  EXPECT_EQ(row.weight_macs, 64 * 32 * 16);
  EXPECT_DOUBLE_EQ(*row.achieved_reuse(), 64);
  EXPECT_DOUBLE_EQ(*row.ideal_reuse(), 64);
  EXPECT_DOUBLE_EQ(*row.reuse_efficiency(), 1);
  EXPECT_DOUBLE_EQ(*row.inter_inference_residency(), 0);
  // 8 tiles of 64 PEs stream 64 rows each. The first row reaches PE (r, c) after r + c cycles: 448 PE-cycles of
  // waiting. Loading the first tile and the way out of the skew hold nothing that is still needed.
  EXPECT_EQ(row.cycles, 512 + 8 + 14);
  EXPECT_EQ(row.pe_cycles, 64 * row.cycles);
  EXPECT_EQ(row.stranded[at(CycleClass::barrier)], 448);
  EXPECT_EQ(row.stranded_total(), 448);
  EXPECT_EQ(row.held, 512 * 64 + 448);
  EXPECT_EQ(row.held_activation, 0);
  EXPECT_DOUBLE_EQ(*row.feeder_utilization(), 512.0 / 534.0);
}

TEST(Reuse, TheFactorMapOfOneProductByHand) {
  const Product product;
  const ReuseRow& row = product.shape.total;
  for (const auto& flow : row.links) {
    if (flow.tensor == lower::Role::inputs && flow.inner == 4) {
      EXPECT_EQ(flow.words_outer, 2 * 64 * 32);    // once per column tile
      EXPECT_DOUBLE_EQ(*flow.spatial_reuse(), 8);  // shared by the columns
    }
    if (flow.tensor == lower::Role::weights && flow.inner == 3) {
      EXPECT_EQ(flow.words_outer, 512);
      EXPECT_EQ(flow.bytes, 512);
      EXPECT_DOUBLE_EQ(*flow.spatial_reuse(), 1);
    }
    if (flow.tensor == lower::Role::outputs && flow.inner == 4) {
      EXPECT_EQ(flow.words_inner, 64 * 32 * 16);
      EXPECT_EQ(flow.words_outer, 4 * 64 * 16);  // rows are summed on the way
      EXPECT_EQ(flow.words_returned, 3 * 64 * 16);
    }
  }
  const auto weights = std::find_if(row.levels.begin(), row.levels.end(), [](const LevelFlow& flow) {
    return flow.tensor == lower::Role::weights && flow.level == 3;
  });
  ASSERT_NE(weights, row.levels.end());
  EXPECT_DOUBLE_EQ(*weights->temporal_reuse(), 64);
}

TEST(Reuse, AFeederThatIsLateStrandsWeights) {
  // A port of 4 bytes per cycle feeds 8 rows at half speed; weights come through the same port.
  const Product slow([](ingest::Accelerator& a) { a.levels[1].read.bytes_per_cycle = 4; });
  const ReuseRow& row = slow.shape.total;
  const auto& cycles = slow.costs.entries[0].classes;
  const std::int64_t late = cycles[at(CycleClass::feeder)] + cycles[at(CycleClass::sram)];
  EXPECT_GT(late, 0);
  EXPECT_EQ(row.stranded[at(CycleClass::feeder)] + row.stranded[at(CycleClass::sram)], 64 * late);
  EXPECT_LT(*row.feeder_utilization(), *Product().shape.total.feeder_utilization());
}

TEST(Reuse, AMemoryThatIsLateStrandsByTheShareOfActivations) {
  const Product slow([](ingest::Accelerator& a) { a.levels[0].read.bytes_per_second = 2e9; });
  const ReuseRow& row = slow.shape.total;
  const std::int64_t dram = slow.costs.entries[0].classes[at(CycleClass::dram)];
  EXPECT_EQ(dram, 1280 - 534);
  // 64 · 32 + 64 · 16 bytes of activations beside 512 of weights; cycles are whole.
  EXPECT_EQ(row.stranded[at(CycleClass::dram)], 64 * (dram * 3072 / 3584));
}

struct Burst {
  explicit Burst(const std::string& patch = {}) : library(kCatalog), engine(library, 2) {
    ingest::Value document = *library.read_document(kBurst + "baseline.yaml");
    if (!patch.empty()) {
      auto source = std::make_shared<Source>();
      source->text = patch;
      document = ingest::merge_patch(document, *ingest::parse_yaml(source));
    }
    auto made = engine.prepare("baseline", document);
    PL_CHECK(made.ok());
    baseline = std::move(*made);
    ReuseOptions options;
    options.pairs = 1;
    arm = study_reuse(engine, baseline, options);
  }
  ingest::Library library;
  Engine engine;
  Prepared baseline;
  ReuseArm arm;
};

const Burst& burst() {
  static const Burst made;
  return made;
}

/// A sixth of the memory and chains, so that layers run in chunks.
const Burst& chained() {
  static const Burst made(
      "{accelerator: {base: ws-256, levels: {sram: {capacity: 24 MiB}}}, compile: {fusion: [epilogue, in_place, "
      "chains]}}");
  return made;
}

TEST(Chains, TheChainedArmRunsInChunks) {
  const auto& bucket = chained().baseline.compiled->models[0].buckets.back();
  EXPECT_TRUE(std::any_of(bucket.graph->instances.begin(), bucket.graph->instances.end(),
                          [](const lower::Instance& instance) { return instance.again; }));
}

class ReuseOf : public testing::TestWithParam<const Burst& (*)()> {
 protected:
  static const Burst& burst() { return GetParam()(); }
};
INSTANTIATE_TEST_SUITE_P(Reuse, ReuseOf, testing::Values(&burst, &chained));

TEST_P(ReuseOf, ClassesSumToTheCostTable) {
  const auto& costs = *burst().baseline.costs;
  ASSERT_EQ(burst().arm.shapes.size(), costs.entries.size());
  for (std::size_t e = 0; e < costs.entries.size(); ++e) {
    const auto& entry = costs.entries[e];
    const auto& row = burst().arm.shapes[e].total;
    execute::Movement moved;
    std::int64_t cycles = 0;
    std::int64_t feeder = 0;
    for (const auto& layer : entry.layers) {
      moved.off_array_weight += layer.movement.off_array_weight;
      moved.off_array_stationary += layer.movement.off_array_stationary;
      moved.off_array_activation += layer.movement.off_array_activation;
      moved.psum += layer.movement.psum;
      moved.off_chip_weight += layer.movement.off_chip_weight;
      moved.off_chip_activation += layer.movement.off_chip_activation;
      cycles += std::accumulate(layer.cycles.begin(), layer.cycles.end(), std::int64_t{0});
      feeder += layer.feeder_cycles;
    }
    EXPECT_EQ(row.movement, moved);
    EXPECT_EQ(row.cycles, cycles);
    EXPECT_EQ(row.feeder_cycles, feeder);
    EXPECT_EQ(row.unique_weight_bytes, entry.weight_bytes_unique);
    EXPECT_EQ(row.resident_weight_bytes, entry.weight_bytes_resident);
    EXPECT_EQ(std::accumulate(row.femtojoules.begin(), row.femtojoules.end(), std::int64_t{0}), entry.femtojoules);
  }
}

TEST(Reuse, PortsCarryWhatMovementCounts) {
  const auto& arm = burst().arm;
  for (const auto& shape : arm.shapes) {
    std::int64_t weights = 0;
    std::int64_t sums = 0;
    for (const auto& port : shape.total.ports) {
      if (port.level == arm.off_chip) {
        EXPECT_EQ(port.weight_bytes, shape.total.movement.off_chip_weight);
        EXPECT_EQ(port.activation_bytes + port.stationary_bytes, shape.total.movement.off_chip_activation);
      } else {
        weights += port.weight_bytes;
        sums += port.psum_bytes;
      }
      EXPECT_EQ(port.read_bytes + port.write_bytes,
                port.weight_bytes + port.stationary_bytes + port.activation_bytes + port.psum_bytes);
    }
    EXPECT_EQ(weights, shape.total.movement.off_array_weight) << "weights are pinned, so nothing fills the level";
    EXPECT_EQ(sums, shape.total.movement.psum);
  }
}

TEST_P(ReuseOf, FactorsMultiplyToMacsPerWord) {
  // Down the hierarchy each word of the weights is served temporal × spatial times per level, all the way to the MACs.
  for (const auto& shape : burst().arm.shapes) {
    for (const auto& row : shape.classes) {
      double product = 1;
      std::int64_t outermost = -1;
      std::int64_t distinct = 0;
      for (const auto& flow : row.levels) {
        if (flow.tensor != lower::Role::weights) continue;
        product *= *flow.temporal_reuse();
        if (outermost < 0 || flow.level < outermost) {
          outermost = flow.level;
          distinct = flow.words_arrived;
        }
      }
      if (outermost < 0) continue;
      EXPECT_EQ(distinct, row.unique_weight_elements) << row.layer_class;
      // Links of pinned weights from off chip carry nothing and are left out; they multicast nothing either.
      for (const auto& flow : row.links) {
        if (flow.tensor == lower::Role::weights) product *= *flow.spatial_reuse();
      }
      EXPECT_NEAR(product / *row.ideal_reuse(), 1, 1e-9) << row.layer_class << " " << shape.batch;
    }
  }
}

TEST_P(ReuseOf, SharesLieBetweenNothingAndAll) {
  const auto inside = [](const std::optional<double>& share) {
    if (!share) return;
    EXPECT_GE(*share, 0);
    EXPECT_LE(*share, 1);
  };
  for (const auto& shape : burst().arm.shapes) {
    std::vector<ReuseRow> rows = shape.classes;
    rows.push_back(shape.total);
    for (const auto& row : rows) {
      inside(row.residency());
      inside(row.stranded_share());
      inside(row.activation_residency());
      inside(row.inter_inference_residency());
      inside(row.feeder_utilization());
      inside(row.reuse_efficiency());
      EXPECT_LE(row.held + row.held_activation, row.pe_cycles);
      if (row.unique_weight_elements == 0) {
        EXPECT_FALSE(row.achieved_reuse());
        EXPECT_FALSE(row.residency());
      }
    }
    for (const auto& buffer : shape.buffers) {
      ASSERT_EQ(buffer.occupancy.size(), shape.kernel_of_instance.size());
      EXPECT_LE(buffer.time_weighted, static_cast<double>(buffer.peak));
      if (buffer.capacity) {
        EXPECT_LE(buffer.peak, *buffer.capacity) << buffer.level;
      }
    }
  }
}

TEST(Reuse, LoadsAddUpToTheBatchesThatRan) {
  const auto& arm = burst().arm;
  const auto& costs = *burst().baseline.costs;
  std::int64_t moved = 0;
  std::int64_t batches = 0;
  for (std::size_t e = 0; e < costs.entries.size(); ++e) {
    moved += arm.shapes[e].total.movement.off_array_weight * arm.point.runs[0].batch_counts[e];
    batches += arm.point.runs[0].batch_counts[e];
  }
  std::int64_t whole = 0;
  std::int64_t by_class = 0;
  for (const auto& row : arm.loads) {
    if (row.load != "all" || row.profile != "all") continue;
    (row.layer_class.empty() ? whole : by_class) += row.off_array_weight;
  }
  EXPECT_EQ(whole, moved);
  EXPECT_EQ(by_class, moved);
  std::int64_t formed = 0;
  for (const auto& row : arm.point.formed) {
    formed += row.batches;
    EXPECT_LE(row.size, costs.entries[static_cast<std::size_t>(row.entry)].batch);
  }
  EXPECT_EQ(formed, batches);
  const auto& band = arm.point.off_array_weight;
  EXPECT_NEAR(band.mean_busy * static_cast<double>(arm.point.busy_ns) * 1e-9, static_cast<double>(moved),
              1e-3 * static_cast<double>(moved));
  EXPECT_LE(band.mean_span, band.mean_busy);
  EXPECT_GE(band.peak, band.mean_span);
  for (const auto& row : arm.reuse) EXPECT_LE(row.useful_weight_macs, row.padded_weight_macs) << row.layer_class;
}

TEST(Stale, ABucketThatFitsExactlyLosesNothing) {
  ASSERT_TRUE(burst().arm.stale) << burst().arm.stale_why;
  const auto& stale = *burst().arm.stale;
  bool exact = false;
  bool padded = false;
  for (const auto& row : stale.rows) {
    const auto lost = row.stale_cost(stale.objective, burst().arm.clock);
    const auto padding = row.padding_cost(stale.objective, burst().arm.clock);
    ASSERT_TRUE(lost) << row.formed.size << " " << row.formed.sequence;
    if (row.formed.size == row.bucket_batch && row.formed.sequence == row.bucket_sequence) {
      exact = true;
      EXPECT_EQ(*lost, 0);
      EXPECT_EQ(*padding, 0);
      EXPECT_EQ(row.best.cycles, row.padded.cycles);
      EXPECT_EQ(row.best.femtojoules, row.padded.femtojoules);
    } else {
      padded = true;
      EXPECT_GT(*padding, 0) << row.formed.size << " " << row.formed.sequence;
    }
  }
  EXPECT_TRUE(exact);
  EXPECT_TRUE(padded);
}

TEST(Flags, LongerSequencesRaiseReuseAndMovement) {
  // 16 × 512 rows do not fit the accumulator: twice the passes for four times the work.
  const auto report = reuse_report(burst().arm, std::nullopt);
  const auto found = std::find_if(report.flags.begin(), report.flags.end(), [](const ReuseFlag& flag) {
    return flag.step == Step::sequence && flag.batch_from == 16 && flag.layer_class.empty();
  });
  ASSERT_NE(found, report.flags.end());
  EXPECT_GT(found->reuse_to, found->reuse_from);
  EXPECT_GT(found->bytes_to, found->bytes_from);
}

TEST(Flags, AnArmWithMorePassesIsNoImprovementOfReuse) {
  ingest::Library library(kCatalog);
  Engine engine(library, 2);
  const auto document = library.read_document(kBurst + "baseline.yaml");
  const auto patch = ingest::parse_yaml(std::make_shared<const Source>(
      Source{"t", "compile: {constraints: [{kernels: \"*\", level: accumulator, dim: M, factor: {max: 2048}}]}"}));
  ASSERT_TRUE(patch.ok());
  const auto other = engine.prepare("candidate", ingest::merge_patch(*document, *patch));
  ASSERT_TRUE(other.ok()) << render(other.errors());
  ReuseArm candidate = reuse_arm(*other, find_operating_point(engine, *other, {1}), std::nullopt, "not asked for");
  const auto report = reuse_report(burst().arm, std::move(candidate));
  for (const auto& flag : report.flags) EXPECT_NE(flag.step, Step::arm);
  EXPECT_LT(*report.candidate->shapes.back().total.achieved_reuse(),
            *report.baseline.shapes.back().total.achieved_reuse());
}

TEST(Determinism, ThreadsDoNotMatter) {
  ingest::Library library(kCatalog);
  Engine engine(library, 1);
  const auto prepared = engine.prepare("baseline", *library.read_document(kBurst + "baseline.yaml"));
  ASSERT_TRUE(prepared.ok());
  const auto one = find_operating_point(engine, *prepared, {1, 2, 3});
  Engine many(library, 3);
  const auto three = find_operating_point(many, *prepared, {1, 2, 3});
  EXPECT_EQ(one.off_array_weight.peak, three.off_array_weight.peak);
  EXPECT_EQ(one.off_array_weight.mean_busy, three.off_array_weight.mean_busy);
  ASSERT_EQ(one.formed.size(), three.formed.size());
  for (std::size_t i = 0; i < one.formed.size(); ++i) EXPECT_EQ(one.formed[i].batches, three.formed[i].batches);
}

}  // namespace
}  // namespace plumbline::study
