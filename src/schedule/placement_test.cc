#include "schedule/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "lower/chains.h"
#include "lower/sample_graphs.h"
#include "schedule/levels.h"
#include "schedule/sample_machines.h"

namespace plumbline::schedule {
namespace {

using ingest::Accelerator;
using ingest::CompileOptions;
using lower::KernelGraph;

Accelerator machine(std::int64_t sram = 128 << 20) {
  Accelerator made = catalog_accelerator("ws-256");
  made.levels[1].capacity = Bytes(sram);
  return made;
}

KernelGraph lowered(const ingest::Graph& graph, const CompileOptions& options, const Accelerator& accelerator) {
  auto shaped = ingest::infer_shapes(graph, {{"batch", 16}, {"sequence", 128}});
  EXPECT_TRUE(shaped.ok()) << (shaped.ok() ? "" : render(shaped.errors()));
  auto made = lower::lower(*shaped, options, int8_policy(), accelerator);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.errors()));
  return std::move(*made);
}

Schedule scheduled(const KernelGraph& graph, const Accelerator& accelerator, const CompileOptions& options) {
  auto made = schedule(graph, accelerator, options, sample_dataflows());
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.errors()));
  return std::move(*made);
}

/// product -> middle operators (made by `middle` from the product) -> product.
template <class Middle>
KernelGraph between(Middle middle, const CompileOptions& options) {
  lower::GraphWriter writer("between");
  const TensorId x = writer.input("x", ingest::ElementType::float32, {{-1, "batch"}, {64, {}}});
  const TensorId y = writer.node("MatMul", "first", {x, writer.parameter("a", {64, 96})});
  const TensorId z = middle(writer, y);
  const TensorId out = writer.node("MatMul", "last", {z, writer.parameter("b", {96, 32})});
  return lowered(writer.finish({out}), options, machine());
}

CompileOptions unfused() {
  CompileOptions options = sample_options();
  options.fuse_epilogue = false;
  options.fuse_attention = false;
  return options;
}

/// Names of the instances that ran in place.
std::vector<std::string> in_place(const KernelGraph& graph, const Schedule& made) {
  std::vector<std::string> names;
  for (const std::int32_t i : made.placement.in_place) {
    names.push_back(graph.instances[static_cast<std::size_t>(i)].name);
  }
  return names;
}

using Names = std::vector<std::string>;
constexpr std::int64_t kMiddle = 16 * 96;  ///< elements between the products

TEST(InPlace, AChainOfElementwiseKernelsUsesOneBuffer) {
  const KernelGraph graph =
      between([](lower::GraphWriter& writer,
                 TensorId y) { return writer.node("Tanh", "tanh", {writer.node("Relu", "relu", {y})}); },
              unfused());
  const Schedule made = scheduled(graph, machine(), unfused());
  // Narrowing from 32 to 8 bits cannot: the widths differ.
  EXPECT_EQ(in_place(graph, made), (Names{"relu", "tanh"}));
  EXPECT_EQ(made.placement.peak_apart, made.placement.peak);  // at the first product, where nothing is in place
  const auto relu = std::find_if(graph.instances.begin(), graph.instances.end(),
                                 [](const auto& instance) { return instance.name == "relu"; });
  EXPECT_EQ(made.placement.occupancy[static_cast<std::size_t>(relu - graph.instances.begin())], kMiddle);
}

TEST(InPlace, ANormalisedRowIsWrittenOverOnceItIsRead) {
  const KernelGraph graph =
      between([](lower::GraphWriter& writer, TensorId y) { return writer.node("Softmax", "softmax", {y}); }, unfused());
  EXPECT_EQ(in_place(graph, scheduled(graph, machine(), unfused())), (Names{"softmax"}));
}

TEST(InPlace, AnInputThatIsReadLaterIsLeftAlone) {
  // relu(y) + y: y lives on; the sum may take either of its operands, which both die.
  const KernelGraph graph = between(
      [](lower::GraphWriter& writer, TensorId y) {
        return writer.node("Add", "sum", {y, writer.node("Relu", "relu", {y})});
      },
      unfused());
  const Schedule made = scheduled(graph, machine(), unfused());
  EXPECT_EQ(in_place(graph, made), (Names{"sum"}));
  // While the sum is made there are two buffers, not three.
  const auto sum = std::find_if(graph.instances.begin(), graph.instances.end(),
                                [](const auto& instance) { return instance.name == "sum"; });
  EXPECT_EQ(made.placement.occupancy[static_cast<std::size_t>(sum - graph.instances.begin())], 2 * kMiddle);
}

TEST(InPlace, OtherWidthsSizesAndMovementsAreNot) {
  const auto slice = [](lower::GraphWriter& writer, TensorId y) {
    const TensorId moved = writer.node("Transpose", "there", {y}, {{"perm", std::vector<std::int64_t>{1, 0}}});
    return writer.node("Transpose", "back", {moved}, {{"perm", std::vector<std::int64_t>{1, 0}}});
  };
  const KernelGraph graph = between(slice, unfused());
  EXPECT_TRUE(scheduled(graph, machine(), unfused()).placement.in_place.empty());
  // y > y is one byte an element like y, but y · row broadcasts a smaller operand.
  lower::GraphWriter writer("broadcast");
  const TensorId x = writer.input("x", ingest::ElementType::float32, {{-1, "batch"}, {64, {}}});
  const TensorId y = writer.node("MatMul", "first", {x, writer.parameter("a", {64, 96})});
  const TensorId row = writer.node("ReduceMax", "row", {y}, {{"keepdims", std::int64_t{1}}});
  const TensorId z = writer.node("Mul", "scale", {row, y});
  const KernelGraph scaled = lowered(
      writer.finish({writer.node("MatMul", "last", {z, writer.parameter("b", {96, 8})})}), unfused(), machine());
  const Schedule made = scheduled(scaled, machine(), unfused());
  ASSERT_EQ(in_place(scaled, made), (Names{"scale"}));
  const auto& at = made.placement.buffers;
  for (std::size_t b = 0; b < at.size(); ++b) {
    if (at[b].over < 0) continue;
    EXPECT_EQ(scaled.buffers[static_cast<std::size_t>(at[b].over)].bytes, kMiddle);
  }
}

TEST(InPlace, RequestsAndResultsLiveOffChip) {
  lower::GraphWriter writer("ends");
  const TensorId x = writer.input("x", ingest::ElementType::float32, {{-1, "batch"}, {64, {}}});
  const TensorId first = writer.node("Relu", "of_request", {x});
  const TensorId last = writer.node("Tanh", "to_result", {first});
  const KernelGraph graph = lowered(writer.finish({last}), unfused(), machine());
  EXPECT_TRUE(scheduled(graph, machine(), unfused()).placement.in_place.empty());
}

TEST(InPlace, AResidualIsWrittenOverWhenTheWordAsksForIt) {
  lower::EncoderShape shape;
  shape.layers = 2;
  const ingest::Graph encoder = lower::sample_encoder(shape);
  CompileOptions options = sample_options();
  const KernelGraph apart = lowered(encoder, options, machine());
  const Schedule without = scheduled(apart, machine(), options);
  options.fuse_in_place = true;
  const KernelGraph graph = lowered(encoder, options, machine());
  const Schedule made = scheduled(graph, machine(), options);
  const Names names = in_place(graph, made);
  EXPECT_NE(std::find(names.begin(), names.end(), "layer.0/down"), names.end());
  // 2048 tokens: the residual no longer stands beside the result where the layer is widest.
  EXPECT_EQ(without.placement.peak - made.placement.peak, 2048 * 768);
  EXPECT_EQ(made.placement.peak_apart, without.placement.peak);
}

TEST(InPlace, ASpilledBufferIsNotWrittenOver) {
  RandomStream random(31, "in-place");
  lower::EncoderShape shape;
  shape.layers = 1;
  CompileOptions options = sample_options();
  options.fuse_in_place = true;
  const KernelGraph graph = lowered(lower::sample_encoder(shape), options, machine());
  int beside_spills = 0;  // buffers that share memory while others are spilled
  for (int i = 0; i < 20; ++i) {
    const Accelerator accelerator = machine((8 << 20) + static_cast<std::int64_t>(random.next_below(8 << 20)));
    const Schedule made = scheduled(graph, accelerator, options);
    const Placement& placed = made.placement;
    EXPECT_LE(placed.peak, accelerator.levels[1].capacity->raw());
    EXPECT_LE(std::pair(placed.spilled, placed.peak), std::pair(placed.spilled_apart, placed.peak_apart));
    for (std::size_t b = 0; b < placed.buffers.size(); ++b) {
      const std::int32_t over = placed.buffers[b].over;
      if (over < 0) continue;
      beside_spills += placed.spilled > 0 ? 1 : 0;
      const BufferPlacement& below = placed.buffers[static_cast<std::size_t>(over)];
      EXPECT_FALSE(placed.buffers[b].off_chip || below.off_chip);
      EXPECT_EQ(below.last, placed.buffers[b].first);
      EXPECT_EQ(graph.buffers[b].bytes, graph.buffers[static_cast<std::size_t>(over)].bytes);
    }
  }
  EXPECT_GT(beside_spills, 0);
}

/// Memory by buffer and share (a chunk's part of it), each holding who wrote it last; aliased buffers are one.
class Memory {
 public:
  Memory(const Placement& placed, const lower::Chain& chain, std::size_t chunks)
      : placed_(placed), chain_(chain), chunks_(chunks) {}

  /// `chunk` is -1 outside the chain, and for what a chunk uses whole.
  void write(std::int32_t buffer, int chunk) {
    for (auto& [slot, tag] : slots(buffer, chunk)) cells_[slot] = tag;
  }
  bool intact(std::int32_t buffer, int chunk) {
    for (auto& [slot, tag] : slots(buffer, chunk)) {
      if (cells_[slot] != tag) return false;
    }
    return true;
  }

 private:
  using Slot = std::pair<std::int32_t, int>;
  using Tag = std::pair<std::int32_t, int>;
  [[nodiscard]] std::vector<std::pair<Slot, Tag>> slots(std::int32_t buffer, int chunk) const {
    std::int32_t root = buffer;
    while (placed_.buffers[static_cast<std::size_t>(root)].over >= 0) {
      root = placed_.buffers[static_cast<std::size_t>(root)].over;
    }
    const auto& between = chain_.between;
    if (std::find(between.begin(), between.end(), buffer) != between.end()) return {{{root, 0}, {buffer, chunk}}};
    std::vector<std::pair<Slot, Tag>> all;
    for (int c = 0; c < static_cast<int>(chunks_); ++c) {
      if (chunk < 0 || chunk == c) all.push_back({{root, c}, {buffer, c}});
    }
    return all;
  }

  const Placement& placed_;
  const lower::Chain& chain_;
  std::size_t chunks_;
  std::map<Slot, Tag> cells_;
};

TEST(InPlace, WhatAKernelReadsIsThereEvenWhenAChainWritesOverItsInputs) {
  RandomStream random(33, "in-place-chains");
  int in_chains = 0;
  for (int i = 0; i < 60; ++i) {
    lower::EncoderShape shape;
    shape.layers = 2;
    shape.hidden = 64;
    shape.heads = 4;
    shape.ffn = 64 << random.next_below(3);  // as wide as the layer itself, too
    CompileOptions options = sample_options();
    options.fuse_in_place = options.fuse_chains = true;
    options.fuse_attention = random.next_below(2) == 0;
    options.fuse_epilogue = random.next_below(3) != 0;
    const KernelGraph whole = lowered(lower::sample_encoder(shape), options, machine());
    lower::ChainCut cut;
    cut.chain = random.next_below(whole.chains.size());
    const lower::Chain& chain = whole.chains[cut.chain];
    cut.units = 1 + static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(chain.units)));
    const KernelGraph graph = lower::cut_chains(whole, {cut});
    const Schedule made = scheduled(graph, machine(), options);
    Memory memory(made.placement, chain, static_cast<std::size_t>(lower::chunks_of(chain, cut)));
    for (std::size_t b = 0; b < graph.buffers.size(); ++b) {
      if (graph.buffers[b].model_input) memory.write(static_cast<std::int32_t>(b), -1);
    }
    std::size_t before = 0;  // instances of the chain so far
    for (std::size_t n = 0; n < graph.instances.size(); ++n) {
      const lower::Instance& instance = graph.instances[n];
      const lower::ChainMember* member = nullptr;
      int chunk = -1;
      if (instance.name.find('/') != std::string::npos && instance.name.find(' ') != std::string::npos) {
        member = &chain.members[before % chain.members.size()];
        chunk = static_cast<int>(before / chain.members.size());
        ++before;
      }
      for (std::size_t r = 0; r < instance.reads.size(); ++r) {
        const bool cut_here = member != nullptr && member->reads_cut[r];
        EXPECT_TRUE(memory.intact(instance.reads[r].buffer, cut_here ? chunk : -1))
            << "seed 33 case " << i << ": " << instance.name << " reads " << instance.reads[r].buffer;
      }
      for (const lower::BufferUse& use : instance.writes) {
        memory.write(use.buffer, chunk);
        const bool over = made.placement.buffers[static_cast<std::size_t>(use.buffer)].over >= 0;
        in_chains += member != nullptr && over ? 1 : 0;
      }
    }
  }
  EXPECT_GT(in_chains, 50);
}

TEST(Streaming, WhatAttentionFusionSavesIsStated) {
  lower::EncoderShape shape;
  shape.layers = 1;
  shape.ffn = 768;  // so that attention is the widest place
  const CompileOptions options = sample_options();
  for (const std::int64_t sram : {128 << 20, 9 << 20, 8 << 20}) {
    const KernelGraph graph = lowered(lower::sample_encoder(shape), options, machine(sram));
    const Placement fused = scheduled(graph, machine(sram), options).placement;
    KernelGraph whole = graph;
    for (lower::Buffer& buffer : whole.buffers) buffer.on_chip = buffer.bytes;
    const Placement apart = scheduled(whole, machine(sram), options).placement;
    EXPECT_EQ(fused.streamed, 1);
    EXPECT_EQ(apart.streamed, 0);
    EXPECT_EQ(fused.peak_whole, apart.peak);
    EXPECT_EQ(fused.spilled_whole, apart.spilled);
    if (sram == 128 << 20) {
      EXPECT_GT(apart.peak, fused.peak);
    } else {
      EXPECT_GT(apart.spilled, fused.spilled);
    }
  }
}

ModelSchedules one_model(const KernelGraph& graph, Schedule made) {
  ModelSchedules model;
  model.buckets.push_back({1, 0, std::make_shared<KernelGraph>(graph), std::make_shared<Schedule>(std::move(made))});
  return model;
}

TEST(Residency, WeightsThatBypassTheLevelAreNotPinnedThere) {
  CompileOptions options = sample_options();
  lower::EncoderShape shape;
  shape.layers = 1;
  ingest::ConstraintRow row;
  row.kernels = "*up*";
  row.level = "sram";
  row.bypass = {"weights"};
  row.text = "{bypass}";
  options.constraints = {row};
  const KernelGraph graph = lowered(lower::sample_encoder(shape), options, machine());
  const auto residency = plan_residency({one_model(graph, scheduled(graph, machine(), options))}, machine(), options);
  ASSERT_TRUE(residency.ok()) << (residency.ok() ? "" : render(residency.errors()));
  int passing = 0;
  for (const lower::Instance& instance : graph.instances) {
    for (const lower::ParameterUse& use : instance.parameters) {
      const bool passes = instance.name == "layer.0/up" && use.operand == 0;
      passing += passes ? 1 : 0;
      if (use.gathered) continue;
      EXPECT_EQ(residency->pinned[0][use.tensor.at()], !passes) << instance.name;
    }
  }
  EXPECT_EQ(passing, 1);
}

TEST(Proof, AKernelThatIsTiledAgainKeepsItsBound) {
  // What one product of the feed-forward layer leaves for the other spills, and its rows come in smaller chunks.
  const Accelerator accelerator = machine(7 << 20);
  CompileOptions options = sample_options();
  options.search = "certified";
  lower::EncoderShape shape;
  shape.layers = 1;
  const KernelGraph graph = lowered(lower::sample_encoder(shape), options, accelerator);
  const Schedule made = scheduled(graph, accelerator, options);
  const Schedule roomy = scheduled(graph, machine(), options);
  int again = 0;
  for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
    if (graph.kernels[k].kind != lower::KernelKind::matrix) continue;
    ASSERT_TRUE(made.kernels[k].proof.has_value()) << graph.kernels[k].name;
    const Proof& proof = *made.kernels[k].proof;
    EXPECT_LE(proof.lower_bound, proof.best);
    EXPECT_DOUBLE_EQ(proof.gap, proof.best > proof.lower_bound ? proof.best / proof.lower_bound - 1 : 0);
    if (proof.covered.find("tiled again") == std::string::npos) continue;
    ++again;
    EXPECT_GE(proof.best, roomy.kernels[k].proof->lower_bound * (1 - 1e-9));
  }
  EXPECT_GT(again, 0);
  ASSERT_TRUE(made.proof.has_value());
  EXPECT_GE(made.proof->best, roomy.proof->best * (1 - 1e-9));
  EXPECT_GT(made.proof->lower_bound, 0);
}

}  // namespace
}  // namespace plumbline::schedule
