#include "execute/choose_chains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "core/random.h"
#include "execute/cost.h"
#include "lower/sample_graphs.h"
#include "schedule/counts.h"
#include "schedule/sample_machines.h"

namespace plumbline::execute {
namespace {

using ingest::Accelerator;
using ingest::CompileOptions;
using List = std::vector<std::int64_t>;

struct Shape {
  std::int64_t batch = 1;
  std::int64_t sequence = 0;
};

Result<ChainedSchedules> plainly(const ingest::Graph& graph, const Accelerator& accelerator,
                                 const CompileOptions& options, const std::vector<Shape>& shapes) {
  ChainedSchedules made;
  made.models.resize(1);
  for (const Shape& shape : shapes) {
    PL_TRY(const auto shaped, ingest::infer_shapes(graph, {{"batch", shape.batch}, {"sequence", shape.sequence}}));
    PL_TRY(auto kernels, lower::lower(shaped, options, schedule::int8_policy(), accelerator));
    PL_TRY(auto mapped, schedule::schedule(kernels, accelerator, options, schedule::sample_dataflows()));
    made.models[0].buckets.push_back({shape.batch, shape.sequence,
                                      std::make_shared<lower::KernelGraph>(std::move(kernels)),
                                      std::make_shared<schedule::Schedule>(std::move(mapped))});
  }
  PL_TRY(made.residency, schedule::plan_residency(made.models, accelerator, options));
  return made;
}

ChainedSchedules plain_of(const ingest::Graph& graph, const Accelerator& accelerator, const CompileOptions& options,
                          const std::vector<Shape>& shapes) {
  auto made = plainly(graph, accelerator, options, shapes);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.errors()));
  return std::move(*made);
}

ChainedSchedules chained(const ChainedSchedules& plain, const Accelerator& accelerator, const CompileOptions& options) {
  auto made = choose_chains(plain, accelerator, options, schedule::sample_dataflows(), nullptr);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.errors()));
  return std::move(*made);
}

BatchCost cost_of(const ChainedSchedules& plan, std::size_t bucket, const Accelerator& accelerator) {
  const schedule::Bucket& one = plan.models[0].buckets[bucket];
  auto table =
      build_cost_table({{"model", {one}}}, {{one.batch}, {}}, plan.residency, accelerator, accelerator.nominal);
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : render(table.errors()));
  return table->entries.front();
}

Movement movement_of(const BatchCost& batch) {
  Movement sum;
  for (const ClassCost& layer : batch.layers) {
    sum.off_array_weight += layer.movement.off_array_weight;
    sum.off_array_stationary += layer.movement.off_array_stationary;
    sum.off_array_activation += layer.movement.off_array_activation;
    sum.off_chip_weight += layer.movement.off_chip_weight;
    sum.off_chip_activation += layer.movement.off_chip_activation;
  }
  return sum;
}

double value_of(const BatchCost& cost, const std::string& objective) {
  if (objective == "latency") return static_cast<double>(cost.cycles);
  if (objective == "energy") return static_cast<double>(cost.femtojoules);
  if (objective == "off_array_weight_bytes") return static_cast<double>(movement_of(cost).off_array_weight);
  return static_cast<double>(cost.femtojoules) * static_cast<double>(cost.cycles);
}

Accelerator machine(std::int64_t sram) {
  Accelerator made = schedule::catalog_accelerator("ws-256");
  made.levels[1].capacity = Bytes(sram);
  return made;
}

CompileOptions options_with_chains() {
  CompileOptions options = schedule::sample_options();
  options.fuse_chains = true;
  return options;
}

ingest::Graph layers(std::int64_t count) {
  lower::EncoderShape shape;
  shape.layers = count;
  return lower::sample_encoder(shape);
}

const schedule::ChainChoice& choice_of(const ChainedSchedules& plan, const std::string& kind) {
  const auto& rows = plan.models[0].buckets[0].schedule->chains;
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.kind == kind; });
  EXPECT_NE(at, rows.end()) << kind;
  return *at;
}

/// What a taken chain states is what the cost table then shows.
void expect_stated(const ChainedSchedules& plain, const ChainedSchedules& cut, const Accelerator& accelerator,
                   const schedule::ChainChoice& choice) {
  const Movement before = movement_of(cost_of(plain, 0, accelerator));
  const Movement after = movement_of(cost_of(cut, 0, accelerator));
  const schedule::ChainAlternative& best = choice.alternatives[choice.best];
  EXPECT_EQ(before.off_chip_weight + before.off_chip_activation - after.off_chip_weight - after.off_chip_activation,
            best.off_chip_saved);
  EXPECT_EQ(after.off_chip_weight - before.off_chip_weight, best.extra_weights);
  EXPECT_EQ(after.off_array_weight - before.off_array_weight, best.extra_weight_reads);
  const auto peak = [](const ChainedSchedules& plan) { return plan.models[0].buckets[0].schedule->placement.peak; };
  EXPECT_EQ(peak(plain) - peak(cut), best.peak_saved);
}

TEST(ChooseChains, TheFeedForwardLayerOfBertAtBatch16StaysOnASmallChip) {
  // 16 × 512 tokens: 25 MB between the two products do not fit into 24 MiB beside 6 MB of inputs.
  const Accelerator accelerator = machine(24 << 20);
  const CompileOptions options = options_with_chains();
  const ChainedSchedules plain = plain_of(layers(2), accelerator, options, {{16, 512}});
  const ChainedSchedules cut = chained(plain, accelerator, options);
  const schedule::ChainChoice& mlp = choice_of(cut, "mlp");
  EXPECT_TRUE(mlp.taken) << mlp.reason;
  EXPECT_EQ(mlp.repeats, 2);
  EXPECT_EQ(mlp.between_bytes, 8192LL * 3072);
  // Both directions of the spilled buffer of both layers, at least.
  EXPECT_GE(mlp.alternatives[mlp.best].off_chip_saved, 2 * 2 * 8192LL * 3072);
  expect_stated(plain, cut, accelerator, mlp);
  EXPECT_LT(value_of(cost_of(cut, 0, accelerator), "edp"), value_of(cost_of(plain, 0, accelerator), "edp"));
}

TEST(ChooseChains, ARoomyChipRunsItsKernelsWhole) {
  const Accelerator accelerator = machine(128 << 20);
  const CompileOptions options = options_with_chains();
  const ChainedSchedules plain = plain_of(layers(1), accelerator, options, {{1, 128}});
  const ChainedSchedules cut = chained(plain, accelerator, options);
  const schedule::ChainChoice& mlp = choice_of(cut, "mlp");
  EXPECT_FALSE(mlp.taken);
  EXPECT_FALSE(mlp.reason.empty());
  EXPECT_EQ(cut.models[0].buckets[0].graph, plain.models[0].buckets[0].graph);
  for (const auto& way : mlp.alternatives) EXPECT_GT(way.value, mlp.value_without);
}

TEST(ChooseChains, WeightsThatEveryChunkWouldFetchAgainSpeakAgainstIt) {
  // 2 × 2.25 MiB of weights cannot stay beside the activations of 1.5 MiB, and what is between is small.
  const Accelerator accelerator = machine(2 << 20);
  const CompileOptions options = options_with_chains();
  const ChainedSchedules plain = plain_of(layers(1), accelerator, options, {{1, 128}});
  const ChainedSchedules cut = chained(plain, accelerator, options);
  const schedule::ChainChoice& mlp = choice_of(cut, "mlp");
  EXPECT_FALSE(mlp.taken);
  bool fetched_again = false;
  for (const auto& way : mlp.alternatives) {
    if (!way.failure.empty()) continue;
    EXPECT_GE(way.value, mlp.value_without);
    fetched_again = fetched_again || way.extra_weights >= (way.chunks - 1) * 768 * 3072;
  }
  EXPECT_TRUE(fetched_again);
  EXPECT_NE(mlp.reason.find("weights would be fetched again"), std::string::npos) << mlp.reason;
}

/// Two 3×3 convolutions of ResNet-50's first stage, at 56 × 56 with 64 channels.
ingest::Graph residual_pair() {
  lower::GraphWriter writer("pair");
  TensorId x = writer.input("x", ingest::ElementType::float32, {{-1, "batch"}, {64, {}}, {56, {}}, {56, {}}});
  for (const char* name : {"first", "second", "third"}) {
    x = writer.node("Conv", name, {x, writer.parameter(std::string(name) + "/w", {64, 64, 3, 3})},
                    {{"kernel_shape", List{3, 3}}, {"pads", List{1, 1, 1, 1}}});
    x = writer.node("Relu", std::string(name) + "/relu", {x});
  }
  return writer.finish({x});
}

TEST(ChooseChains, ConvolutionsPassRowsOnWithinASmallChip) {
  // What is between is 800 kB at batch 4.
  const Accelerator accelerator = machine(640 << 10);
  const CompileOptions options = options_with_chains();
  const ChainedSchedules plain = plain_of(residual_pair(), accelerator, options, {{4, 0}});
  const ChainedSchedules cut = chained(plain, accelerator, options);
  const schedule::ChainChoice& conv = choice_of(cut, "conv");
  EXPECT_TRUE(conv.taken) << conv.reason;
  EXPECT_GE(conv.alternatives[conv.best].off_chip_saved + conv.alternatives[conv.best].extra_weights,
            2 * 4 * 64 * 56 * 56);
  expect_stated(plain, cut, accelerator, conv);
}

TEST(ChooseChains, OneImageIsCutByRows) {
  const Accelerator accelerator = machine(400 << 10);
  const CompileOptions options = options_with_chains();
  const ChainedSchedules plain = plain_of(residual_pair(), accelerator, options, {{1, 0}});
  const ChainedSchedules cut = chained(plain, accelerator, options);
  const schedule::ChainChoice& conv = choice_of(cut, "conv");
  for (const auto& way : conv.alternatives) EXPECT_GT(way.rows, 0);
  EXPECT_TRUE(conv.taken) << conv.reason;
}

TEST(ChooseChains, AttentionWithoutItsFusionStaysOnChipAGroupAtATime) {
  const Accelerator accelerator = machine(16 << 20);
  CompileOptions options = options_with_chains();
  options.fuse_attention = false;
  const ChainedSchedules plain = plain_of(layers(1), accelerator, options, {{8, 512}});
  const ChainedSchedules cut = chained(plain, accelerator, options);
  const schedule::ChainChoice& attention = choice_of(cut, "attention");
  EXPECT_TRUE(attention.taken) << attention.reason;
  // Scores of 8 × 12 groups, written and read, and the shares made of them.
  EXPECT_GE(attention.alternatives[attention.best].off_chip_saved, 2 * 8 * 12 * 512LL * 512);
  EXPECT_EQ(attention.alternatives[attention.best].extra_weights, 0);  // keys and values are cut with their groups
}

TEST(ChooseChains, LaterObjectivesDecideAmongEquals) {
  // An image's rows fill the accumulators: weights enter the array once an image, whether images are cut or not.
  const Accelerator accelerator = machine(640 << 10);
  CompileOptions options = options_with_chains();
  options.objective = "off_array_weight_bytes";
  const ChainedSchedules plain = plain_of(residual_pair(), accelerator, options, {{2, 0}});
  const schedule::ChainChoice alone = choice_of(chained(plain, accelerator, options), "conv");
  EXPECT_FALSE(alone.taken);
  EXPECT_EQ(alone.reason, "the objective does not see what it saves");
  options.objective_then = {"energy"};
  const ChainedSchedules cut = chained(plain, accelerator, options);
  const schedule::ChainChoice& both = choice_of(cut, "conv");
  EXPECT_TRUE(both.taken) << both.reason;
  EXPECT_EQ(both.alternatives[both.best].value, both.value_without);
  EXPECT_LT(value_of(cost_of(cut, 0, accelerator), "energy"), value_of(cost_of(plain, 0, accelerator), "energy"));
}

TEST(ChooseChains, CyclesAndBytesStillAddUp) {
  const Accelerator accelerator = machine(24 << 20);
  const CompileOptions options = options_with_chains();
  const ChainedSchedules plain = plain_of(layers(1), accelerator, options, {{16, 512}});
  const ChainedSchedules cut = chained(plain, accelerator, options);
  const BatchCost before = cost_of(plain, 0, accelerator);
  const BatchCost after = cost_of(cut, 0, accelerator);
  std::int64_t cycles = 0;
  for (const std::int64_t part : after.classes) cycles += part;
  EXPECT_EQ(cycles, after.cycles);
  ASSERT_EQ(before.layers.size(), after.layers.size());
  for (std::size_t l = 0; l < before.layers.size(); ++l) {
    EXPECT_EQ(after.layers[l].macs, before.layers[l].macs);
    EXPECT_EQ(after.layers[l].unique_weight_elements, before.layers[l].unique_weight_elements);
    EXPECT_EQ(after.layers[l].unique_weight_bytes, before.layers[l].unique_weight_bytes);
    EXPECT_EQ(after.layers[l].weight_macs, before.layers[l].weight_macs);
    EXPECT_EQ(after.layers[l].cycles[0], before.layers[l].cycles[0]);  // useful
    EXPECT_EQ(after.layers[l].pe.useful, before.layers[l].pe.useful);
  }
  EXPECT_EQ(after.weight_bytes_unique, before.weight_bytes_unique);
}

TEST(ChooseChains, EveryChunksCountsEqualTheWalker) {
  const Accelerator accelerator = machine(640 << 10);
  const CompileOptions options = options_with_chains();
  const ChainedSchedules cut = chained(plain_of(residual_pair(), accelerator, options, {{4, 0}}), accelerator, options);
  const schedule::Bucket& bucket = cut.models[0].buckets[0];
  int chunks = 0;
  for (std::size_t k = 0; k < bucket.graph->kernels.size(); ++k) {
    const lower::Kernel& kernel = bucket.graph->kernels[k];
    if (kernel.kind != lower::KernelKind::matrix) continue;
    const schedule::KernelSchedule& made = bucket.schedule->kernels[k];
    const auto counts = schedule::walk_accesses(kernel.einsum, made.hierarchy, made.mapping);
    ASSERT_TRUE(counts.ok()) << render(counts.errors());
    EXPECT_EQ(counts->levels, made.counts.levels) << kernel.name;
    chunks += kernel.name.find('/') != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(chunks, 0);
}

TEST(ChooseChains, NoShapeIsEverWorseThanWithoutChains) {
  RandomStream random(21, "choose-chains");
  const std::string objectives[] = {"edp", "energy", "latency", "off_array_weight_bytes"};
  int taken = 0;
  for (int i = 0; i < 40; ++i) {
    lower::EncoderShape shape;
    shape.layers = 1;
    shape.hidden = 64 << random.next_below(3);
    shape.heads = 4;
    shape.ffn = shape.hidden * 4;
    shape.vocabulary = 100;
    const bool pixels = random.next_below(3) == 0;
    const ingest::Graph graph = pixels ? residual_pair() : lower::sample_encoder(shape);
    Accelerator accelerator = machine((pixels ? 150 << 10 : 40 << 10) << random.next_below(6));
    accelerator.levels[0].read.bytes_per_second = accelerator.levels[0].write.bytes_per_second =
        std::optional<double>(8e9 * static_cast<double>(1 + random.next_below(40)));
    CompileOptions options = options_with_chains();
    options.fuse_attention = random.next_below(2) == 0;
    options.fuse_epilogue = random.next_below(4) != 0;
    options.objective = objectives[random.next_below(4)];
    options.dataflow = random.next_below(2) == 0 ? "auto" : "weight_stationary";
    const auto batch = 1 + static_cast<std::int64_t>(random.next_below(8));
    const std::vector<Shape> shapes{{1, pixels ? 0 : 64}, {batch, pixels ? 0 : 128}};
    auto plain = plainly(graph, accelerator, options, shapes);
    if (!plain.ok()) continue;  // does not fit
    const ChainedSchedules cut = chained(*plain, accelerator, options);
    for (std::size_t b = 0; b < shapes.size(); ++b) {
      EXPECT_LE(value_of(cost_of(cut, b, accelerator), options.objective),
                value_of(cost_of(*plain, b, accelerator), options.objective))
          << "seed 21 case " << i << " " << options.objective;
      const auto& chains = cut.models[0].buckets[b].schedule->chains;
      taken += static_cast<int>(std::count_if(chains.begin(), chains.end(), [](const auto& c) { return c.taken; }));
      if (accelerator.levels[1].capacity) {
        for (const std::int64_t bytes : cut.models[0].buckets[b].schedule->placement.occupancy) {
          EXPECT_LE(bytes, accelerator.levels[1].capacity->raw());
        }
        EXPECT_LE(cut.models[0].buckets[b].schedule->placement.peak + cut.residency.pinned_bytes,
                  accelerator.levels[1].capacity->raw());
      }
    }
  }
  EXPECT_GT(taken, 5);
}

TEST(ChooseChains, CertifiedSchedulesKeepTheirProofAndAreNeverWorse) {
  const Accelerator accelerator = machine(24 << 20);
  CompileOptions options = options_with_chains();
  options.search = "certified";
  const ChainedSchedules plain = plain_of(layers(1), accelerator, options, {{16, 512}});
  schedule::MappingCache cache;
  auto cut = choose_chains(plain, accelerator, options, schedule::sample_dataflows(), &cache);
  ASSERT_TRUE(cut.ok());
  EXPECT_LE(value_of(cost_of(*cut, 0, accelerator), "edp"), value_of(cost_of(plain, 0, accelerator), "edp"));
  EXPECT_TRUE(cut->models[0].buckets[0].schedule->proof.has_value());
  EXPECT_EQ(cut->models[0].buckets[0].schedule->chains.size(), 1U);
}

}  // namespace
}  // namespace plumbline::execute
