#include "execute/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/random.h"
#include "execute/kernel_cost.h"
#include "lower/sample_graphs.h"
#include "schedule/sample_machines.h"

namespace plumbline::execute {
namespace {

using ingest::Accelerator;
using ingest::CompileOptions;

ingest::Graph two_layers() {
  lower::EncoderShape shape;
  shape.layers = 2;
  return lower::sample_encoder(shape);
}

struct Compiled {
  std::vector<schedule::ModelSchedules> models;
  schedule::Residency residency;
  ingest::Buckets shapes;
};

Compiled compiled(const ingest::Graph& graph, const Accelerator& accelerator, const CompileOptions& options,
                  const ingest::Buckets& shapes) {
  Compiled made;
  made.shapes = shapes;
  made.models.resize(1);
  const auto sequences = shapes.sequence.empty() ? std::vector<std::int64_t>{0} : shapes.sequence;
  for (const std::int64_t batch : shapes.batch) {
    for (const std::int64_t sequence : sequences) {
      auto shaped = ingest::infer_shapes(graph, {{"batch", batch}, {"sequence", sequence}});
      EXPECT_TRUE(shaped.ok());
      auto kernels = lower::lower(*shaped, options, schedule::int8_policy(), accelerator);
      EXPECT_TRUE(kernels.ok()) << (kernels.ok() ? "" : render(kernels.errors()));
      auto mapped = schedule::schedule(*kernels, accelerator, options, schedule::sample_dataflows());
      EXPECT_TRUE(mapped.ok()) << (mapped.ok() ? "" : render(mapped.errors()));
      made.models[0].buckets.push_back({batch, sequence, std::make_shared<lower::KernelGraph>(std::move(*kernels)),
                                        std::make_shared<schedule::Schedule>(std::move(*mapped))});
    }
  }
  auto residency = schedule::plan_residency(made.models, accelerator, options);
  EXPECT_TRUE(residency.ok());
  made.residency = std::move(*residency);
  return made;
}

CostTable table_of(const Compiled& made, const Accelerator& accelerator, Clock clock) {
  auto table = build_cost_table(made.models, made.shapes, made.residency, accelerator, clock);
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : render(table.errors()));
  return std::move(*table);
}

CostTable table_of(const Compiled& made, const Accelerator& accelerator) {
  return table_of(made, accelerator, accelerator.nominal);
}

std::int64_t cycles_in(const BatchCost& batch, CycleClass c) { return batch.classes[static_cast<std::size_t>(c)]; }

Movement movement_of(const BatchCost& batch) {
  Movement sum;
  for (const ClassCost& layer : batch.layers) {
    sum.off_array_weight += layer.movement.off_array_weight;
    sum.off_array_stationary += layer.movement.off_array_stationary;
    sum.off_array_activation += layer.movement.off_array_activation;
    sum.psum += layer.movement.psum;
    sum.off_chip_weight += layer.movement.off_chip_weight;
    sum.off_chip_activation += layer.movement.off_chip_activation;
  }
  return sum;
}

TEST(Cost, OneProductExactly) {
  // x (64 × 32) · W (32 × 16) on an 8 × 8 array, hand counted.
  lower::GraphWriter writer("product");
  const TensorId x = writer.input("x", ingest::ElementType::float32, {{-1, "batch"}, {32, {}}});
  const ingest::Graph graph = writer.finish({writer.node("MatMul", "product", {x, writer.parameter("w", {32, 16})})});
  Accelerator accelerator = schedule::catalog_accelerator("ws-256");
  accelerator.levels[3].fanout_x = accelerator.levels[3].fanout_y = 8;
  accelerator.host = {};
  accelerator.levels[0].read.bytes_per_second = 8e9;  // 8 bytes per cycle at 1 GHz
  accelerator.levels[0].write.bytes_per_second = 8e9;
  CompileOptions options = schedule::sample_options();
  options.residency = "none";
  const CostTable table = table_of(compiled(graph, accelerator, options, {{64}, {}}), accelerator);
  const BatchCost& batch = table.entries[0];
  EXPECT_EQ(cycles_in(batch, CycleClass::useful), 2 * 4 * 64);  // column tiles × reduction tiles × rows
  EXPECT_EQ(cycles_in(batch, CycleClass::preload_exposed), 8);
  EXPECT_EQ(cycles_in(batch, CycleClass::barrier), 14);
  // Off chip: 64 × 32 inputs and 512 weights in, 64 × 16 results out: 2560 bytes at 8 per cycle hide behind 534 cycles.
  EXPECT_EQ(cycles_in(batch, CycleClass::dram), 0);
  EXPECT_EQ(batch.cycles, 512 + 8 + 14);
  EXPECT_EQ(batch.duration.raw(), 534);
  const Movement moved = movement_of(batch);
  EXPECT_EQ(moved.off_array_weight, 512);
  EXPECT_EQ(moved.off_chip_weight, 512);
  EXPECT_EQ(moved.off_chip_activation, 64 * 32 + 64 * 16);
  EXPECT_EQ(moved.off_array_activation, 2 * 64 * 32 + 64 * 16);  // inputs once per column tile
  // Each of 4 reduction tiles writes a sum per output; all but the first read it; each is drained once.
  EXPECT_EQ(moved.psum, (4 + 3 + 1) * 64 * 16 * 4);
  EXPECT_EQ(batch.layers[0].macs, 64 * 32 * 16);
  EXPECT_EQ(batch.layers[0].weight_elements_in, 512);
  EXPECT_EQ(batch.weight_bytes_unique, 512);
  EXPECT_EQ(batch.weight_bytes_resident, 0);
}

TEST(Cost, ASlowMemoryOwnsWhatTheArrayCannotHide) {
  lower::GraphWriter writer("product");
  const TensorId x = writer.input("x", ingest::ElementType::float32, {{-1, "batch"}, {32, {}}});
  const ingest::Graph graph = writer.finish({writer.node("MatMul", "product", {x, writer.parameter("w", {32, 16})})});
  Accelerator accelerator = schedule::catalog_accelerator("ws-256");
  accelerator.levels[3].fanout_x = accelerator.levels[3].fanout_y = 8;
  accelerator.host = {};
  accelerator.levels[0].read.bytes_per_second = 2e9;
  CompileOptions options = schedule::sample_options();
  options.residency = "none";
  const CostTable table = table_of(compiled(graph, accelerator, options, {{64}, {}}), accelerator);
  EXPECT_EQ(cycles_in(table.entries[0], CycleClass::dram), 2560 / 2 - 534);
  EXPECT_EQ(table.entries[0].cycles, 1280);
}

class EncoderTable : public ::testing::Test {
 protected:
  static const Compiled& encoder() {
    static const Compiled made = compiled(two_layers(), schedule::catalog_accelerator("ws-256"),
                                          schedule::sample_options(), {{1, 4, 16}, {128, 512}});
    return made;
  }
  Accelerator accelerator_ = schedule::catalog_accelerator("ws-256");
};

TEST_F(EncoderTable, CyclesBytesAndEnergySumExactly) {
  const CostTable table = table_of(encoder(), accelerator_);
  ASSERT_EQ(table.entries.size(), 6U);
  const std::int64_t launch = 20000;  // 20 us at 1 GHz
  for (const BatchCost& batch : table.entries) {
    EXPECT_EQ(std::accumulate(batch.classes.begin(), batch.classes.end(), std::int64_t{0}), batch.cycles);
    std::int64_t by_layer = 0;
    std::int64_t energy = 0;
    for (const ClassCost& layer : batch.layers) {
      const std::int64_t cycles = std::accumulate(layer.cycles.begin(), layer.cycles.end(), std::int64_t{0});
      by_layer += cycles;
      energy = std::accumulate(layer.femtojoules.begin(), layer.femtojoules.end(), energy);
      EXPECT_EQ(layer.pe.useful + layer.pe.padded + layer.pe.unmapped + layer.pe.idle, 65536 * cycles);
      EXPECT_EQ(layer.pe.useful, layer.macs);
      EXPECT_GE(layer.pe.idle, 0);
    }
    EXPECT_EQ(by_layer + launch, batch.cycles);
    EXPECT_EQ(energy, batch.femtojoules);
    std::int64_t by_kernel = 0;
    std::int64_t weight_bytes = 0;
    for (const KernelCost& kernel : batch.kernels) {
      by_kernel += kernel.cycles * kernel.repeats;
      weight_bytes += kernel.movement.off_array_weight * kernel.repeats;
      EXPECT_EQ(std::accumulate(kernel.classes.begin(), kernel.classes.end(), std::int64_t{0}), kernel.cycles);
    }
    EXPECT_EQ(by_kernel + launch, batch.cycles);
    EXPECT_EQ(weight_bytes, movement_of(batch).off_array_weight);
  }
}

TEST_F(EncoderTable, EntriesAreRowMajorByBatchThenSequence) {
  const CostTable table = table_of(encoder(), accelerator_);
  for (std::size_t b = 0; b < 3; ++b) {
    for (std::size_t s = 0; s < 2; ++s) {
      EXPECT_EQ(table.entries[table.index(0, b, s)].batch, table.batch_buckets[b]);
      EXPECT_EQ(table.entries[table.index(0, b, s)].sequence, table.sequence_buckets[s]);
    }
  }
}

TEST_F(EncoderTable, PinnedWeightsAreNotFetchedAndStreamToTheArrayAllTheSame) {
  Compiled none = encoder();
  for (auto& pinned : none.residency.pinned) pinned.assign(pinned.size(), false);
  const CostTable with = table_of(encoder(), accelerator_);
  const CostTable without = table_of(none, accelerator_);
  for (std::size_t e = 0; e < with.entries.size(); ++e) {
    const Movement a = movement_of(with.entries[e]);
    const Movement b = movement_of(without.entries[e]);
    EXPECT_EQ(a.off_array_weight, b.off_array_weight);
    EXPECT_EQ(b.off_chip_weight - a.off_chip_weight, encoder().residency.pinned_bytes);
    EXPECT_EQ(with.entries[e].weight_bytes_resident, encoder().residency.pinned_bytes);
    EXPECT_LE(with.entries[e].cycles, without.entries[e].cycles);
    EXPECT_LT(with.entries[e].femtojoules, without.entries[e].femtojoules);
  }
}

TEST_F(EncoderTable, AFasterCoreSeesASlowerMemory) {
  Compiled none = encoder();
  for (auto& pinned : none.residency.pinned) pinned.assign(pinned.size(), false);
  const CostTable slow = table_of(none, accelerator_, Clock{Hertz(1e9)});
  const CostTable fast = table_of(none, accelerator_, Clock{Hertz(1.2e9)});
  EXPECT_GT(cycles_in(fast.entries[0], CycleClass::dram), cycles_in(slow.entries[0], CycleClass::dram));
  EXPECT_GT(fast.entries[0].cycles, slow.entries[0].cycles);
  EXPECT_LE(fast.entries[0].duration, slow.entries[0].duration);
  // Nothing that is counted in bytes depends on a clock.
  EXPECT_EQ(movement_of(fast.entries[0]), movement_of(slow.entries[0]));
  EXPECT_EQ(fast.entries[0].femtojoules, slow.entries[0].femtojoules);
}

TEST_F(EncoderTable, MoreOfAnyRateIsNeverSlower) {
  RandomStream random(3, "rates");
  const auto scale = [](ingest::Rate& rate, double by) {
    if (rate.bytes_per_cycle) *rate.bytes_per_cycle *= by;
    if (rate.bytes_per_second) *rate.bytes_per_second *= by;
  };
  for (int i = 0; i < 40; ++i) {
    Accelerator before = accelerator_;
    for (auto& level : before.levels) {
      scale(level.read, 0.02 + random.next_unit());
      scale(level.write, 0.02 + random.next_unit());
    }
    Accelerator after = before;
    for (auto& level : after.levels) {
      scale(level.read, 1 + random.next_unit());
      scale(level.write, 1 + random.next_unit());
    }
    const CostTable a = table_of(encoder(), before);
    const CostTable b = table_of(encoder(), after);
    for (std::size_t e = 0; e < a.entries.size(); ++e) EXPECT_LE(b.entries[e].cycles, a.entries[e].cycles) << i;
  }
}

TEST_F(EncoderTable, ReliefOfEveryRateLeavesOnlyWorkSkewAndLaunch) {
  Accelerator relieved = accelerator_;
  for (auto& level : relieved.levels) level.read = level.write = {};
  relieved.preload_rows_per_cycle = 0;
  relieved.vector_unit.operations_per_cycle = std::numeric_limits<double>::infinity();
  relieved.host = {};
  const CostTable table = table_of(encoder(), relieved);
  for (const BatchCost& batch : table.entries) {
    EXPECT_EQ(cycles_in(batch, CycleClass::useful) + cycles_in(batch, CycleClass::barrier), batch.cycles);
  }
}

TEST_F(EncoderTable, AUnitPriceMakesEnergyTheBits) {
  Accelerator priced = accelerator_;
  for (auto& [name, action] : priced.energy) action.femtojoules = name == "hbm2-read" || name == "hbm2-write" ? 1 : 0;
  const CostTable off_chip = table_of(encoder(), priced);
  for (const BatchCost& batch : off_chip.entries) {
    const Movement moved = movement_of(batch);
    EXPECT_EQ(batch.femtojoules, 8 * (moved.off_chip_weight + moved.off_chip_activation));
  }
  for (auto& [name, action] : priced.energy) action.femtojoules = name == "int8-mac" ? 1 : 0;
  const CostTable macs = table_of(encoder(), priced);
  for (const BatchCost& batch : macs.entries) {
    std::int64_t sum = 0;
    for (const ClassCost& layer : batch.layers) sum += layer.macs;
    EXPECT_EQ(batch.femtojoules, sum);
  }
  for (auto& [name, action] : priced.energy) action.femtojoules = name.rfind("sram-8KiB", 0) == 0 ? 1 : 0;
  const CostTable sums = table_of(encoder(), priced);
  for (const BatchCost& batch : sums.entries) EXPECT_EQ(batch.femtojoules, 8 * movement_of(batch).psum);
}

TEST_F(EncoderTable, HostTimeIsChargedOncePerBatchAndOnlyBeyondAKernel) {
  Accelerator free = accelerator_;
  free.host = {};
  Accelerator slow = free;
  slow.host.launch_per_batch = Seconds(50e-6);
  const CostTable without = table_of(encoder(), free);
  const CostTable with = table_of(encoder(), slow);
  EXPECT_EQ(with.entries[0].cycles - without.entries[0].cycles, 50000);
  slow.host.launch_per_kernel = Seconds(1);
  const CostTable stalled = table_of(encoder(), slow);
  const auto instances = static_cast<std::int64_t>(encoder().models[0].buckets[0].graph->instances.size());
  EXPECT_EQ(stalled.entries[0].cycles, 50000 + instances * 1'000'000'000);
}

TEST_F(EncoderTable, AMissingEnergyActionIsAnErrorNotFree) {
  Accelerator unpriced = accelerator_;
  unpriced.levels[1].read_action.clear();
  auto table = build_cost_table(encoder().models, encoder().shapes, encoder().residency, unpriced, unpriced.nominal);
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.errors()[0].kind, "missing-key");
  unpriced.levels[1].read_action = "sram-1MiB-raed";
  table = build_cost_table(encoder().models, encoder().shapes, encoder().residency, unpriced, unpriced.nominal);
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.errors()[0].kind, "unknown-name");
}

TEST(Cost, FewerAccumulatorRowsMoveWeightsAndNothingElseInTheDefault) {
  const Accelerator accelerator = schedule::catalog_accelerator("ws-256");
  CompileOptions options = schedule::sample_options();
  const ingest::Buckets shapes{{4, 8, 16}, {128, 512}};
  const CostTable whole = table_of(compiled(two_layers(), accelerator, options, shapes), accelerator);
  ingest::ConstraintRow row;
  row.level = "accumulator";
  row.dim = "M";
  row.factor_max = 2048;
  options.constraints = {row};
  const CostTable half = table_of(compiled(two_layers(), accelerator, options, shapes), accelerator);
  const std::int64_t matrix_weights = 2 * 12 * 768 * 768;  // per layer 4 of 768² and 2 of 768 × 3072
  for (std::size_t e = 0; e < whole.entries.size(); ++e) {
    const std::int64_t rows = whole.entries[e].batch * whole.entries[e].sequence;
    const std::int64_t more =
        movement_of(half.entries[e]).off_array_weight - movement_of(whole.entries[e]).off_array_weight;
    EXPECT_EQ(more, rows == 8192 ? 2 * matrix_weights : rows == 4096 ? matrix_weights : 0) << rows;
    EXPECT_EQ(movement_of(half.entries[e]).off_array_activation, movement_of(whole.entries[e]).off_array_activation);
  }
}

TEST(Cost, EvictedWeightsMoveTheOffChipMetricOnly) {
  // On-chip memory that keeps all weights beside small batches only.
  Accelerator accelerator = schedule::catalog_accelerator("ws-256");
  accelerator.levels[1].capacity = Bytes(48 << 20);
  const CompileOptions options = schedule::sample_options();
  const auto first = [&](const ingest::Buckets& shapes) {
    return movement_of(table_of(compiled(two_layers(), accelerator, options, shapes), accelerator).entries[0]);
  };
  const Movement small = first({{1}, {512}});
  const Movement large = first({{1, 16}, {512}});
  EXPECT_EQ(small.off_array_weight, large.off_array_weight);
  EXPECT_GT(large.off_chip_weight, small.off_chip_weight);
}

TEST(Cost, ModelsShareLayerClassesAndAModelWithoutSequenceRepeatsItsShape) {
  const Accelerator accelerator = schedule::catalog_accelerator("flex-128");
  CompileOptions options = schedule::sample_options();
  const ingest::Buckets shapes{{1, 2}, {16, 32}};
  Compiled both = compiled(two_layers(), accelerator, options, shapes);
  const Compiled images = compiled(lower::sample_convolutions(), accelerator, options, {{1, 2}, {}});
  both.models.push_back(images.models[0]);
  auto residency = schedule::plan_residency(both.models, accelerator, options);
  ASSERT_TRUE(residency.ok());
  both.residency = std::move(*residency);
  const CostTable table = table_of(both, accelerator);
  ASSERT_EQ(table.entries.size(), 8U);
  EXPECT_EQ(table.entries[table.index(1, 1, 0)].cycles, table.entries[table.index(1, 1, 1)].cycles);
  EXPECT_EQ(table.entries[table.index(1, 0, 1)].model, 1U);
  for (const BatchCost& batch : table.entries) {
    ASSERT_EQ(batch.layers.size(), table.layer_classes.size());
    for (std::size_t c = 0; c < batch.layers.size(); ++c)
      EXPECT_EQ(batch.layers[c].layer_class, table.layer_classes[c]);
  }
  const auto at = std::find(table.layer_classes.begin(), table.layer_classes.end(), "depthwise_conv");
  ASSERT_NE(at, table.layer_classes.end());
  const auto depthwise = static_cast<std::size_t>(at - table.layer_classes.begin());
  EXPECT_EQ(table.entries[0].layers[depthwise].macs, 0);
  EXPECT_GT(table.entries[table.index(1, 0, 0)].layers[depthwise].macs, 0);
}

TEST(Cost, RandomMachinesKeepEveryInvariant) {
  RandomStream random(17, "machines");
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(high - low + 1)));
  };
  const char* dataflows[] = {"weight_stationary", "input_stationary", "output_stationary", "auto"};
  for (int i = 0; i < 60; ++i) {
    Accelerator accelerator = schedule::catalog_accelerator("flex-128");
    accelerator.levels[3].fanout_x = pick(1, 40);
    accelerator.levels[3].fanout_y = pick(1, 40);
    accelerator.levels[2].capacity = Bytes(pick(8, 4096) * 1024);
    accelerator.levels[1].capacity = Bytes(pick(1, 64) << 20);
    for (auto& level : accelerator.levels) {
      if (level.read.bytes_per_cycle) level.read.bytes_per_cycle = static_cast<double>(pick(1, 512));
      if (level.write.bytes_per_cycle) level.write.bytes_per_cycle = static_cast<double>(pick(1, 512));
    }
    accelerator.preload = pick(0, 1) == 0 ? ingest::Preload::serial : ingest::Preload::double_buffered;
    accelerator.accumulator_double_buffered = pick(0, 1) == 0;
    CompileOptions options = schedule::sample_options();
    options.dataflow = dataflows[pick(0, 3)];
    options.fuse_epilogue = pick(0, 1) == 0;
    options.fuse_attention = pick(0, 1) == 0;
    const bool convolutions = pick(0, 1) == 0;
    lower::EncoderShape shape;
    shape.layers = 1;
    shape.hidden = 96;
    shape.heads = 4;
    shape.ffn = 200;
    const ingest::Graph graph = convolutions ? lower::sample_convolutions() : lower::sample_encoder(shape);
    const Compiled made = compiled(graph, accelerator, options, {{pick(1, 5)}, {pick(1, 70)}});
    const CostTable table = table_of(made, accelerator);
    const BatchCost& batch = table.entries[0];
    EXPECT_EQ(std::accumulate(batch.classes.begin(), batch.classes.end(), std::int64_t{0}), batch.cycles);
    for (const std::int64_t cycles : batch.classes) EXPECT_GE(cycles, 0);
    const std::int64_t pes = accelerator.levels[3].fanout_x * accelerator.levels[3].fanout_y;
    for (const ClassCost& layer : batch.layers) {
      const std::int64_t cycles = std::accumulate(layer.cycles.begin(), layer.cycles.end(), std::int64_t{0});
      EXPECT_EQ(layer.pe.useful, layer.macs) << i << " seed 17";
      EXPECT_EQ(layer.pe.useful + layer.pe.padded + layer.pe.unmapped + layer.pe.idle, pes * cycles);
      EXPECT_GE(layer.pe.padded, 0);
      EXPECT_GE(layer.pe.unmapped, 0);
      EXPECT_GE(layer.pe.idle, 0);
      EXPECT_GE(layer.weight_elements_in, layer.unique_weight_elements);
    }
  }
}

}  // namespace
}  // namespace plumbline::execute
