#include "lower/chains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/random.h"
#include "lower/sample_graphs.h"

namespace plumbline::lower {
namespace {

using List = std::vector<std::int64_t>;

KernelGraph lowered(const ingest::Graph& graph, bool epilogue, bool attention, std::int64_t batch,
                    std::int64_t sequence) {
  ingest::Accelerator machine;
  machine.formats = {{"int8", "int32", 1, "mac"}};
  ingest::Policy policy;
  policy.inputs = policy.weights = policy.outputs = "int8";
  policy.accumulate = "int32";
  ingest::CompileOptions options;
  options.fuse_epilogue = epilogue;
  options.fuse_attention = attention;
  options.fuse_chains = true;
  auto shaped = ingest::infer_shapes(graph, {{"batch", batch}, {"sequence", sequence}});
  EXPECT_TRUE(shaped.ok()) << (shaped.ok() ? "" : render(shaped.errors()));
  auto made = lower(*shaped, options, policy, machine);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.errors()));
  return std::move(*made);
}

ingest::Graph small_encoder() {
  EncoderShape shape;
  shape.layers = 2;
  shape.hidden = 64;
  shape.heads = 4;
  shape.ffn = 256;
  return sample_encoder(shape);
}

std::vector<std::string> names_of(const KernelGraph& graph, const Chain& chain) {
  std::vector<std::string> names;
  for (const ChainMember& member : chain.members) {
    names.push_back(graph.instances[static_cast<std::size_t>(member.instance)].name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Chains, TheFeedForwardLayersOfAnEncoderAreChainsOfTokens) {
  const KernelGraph graph = lowered(small_encoder(), true, true, 2, 16);
  ASSERT_EQ(graph.chains.size(), 2U);  // one a layer; attention is streamed already
  EXPECT_EQ(graph.chains[0].kind, "mlp");
  EXPECT_EQ(names_of(graph, graph.chains[0]), (Names{"layer.0/up", "layer.0/down"}));
  EXPECT_EQ(graph.chains[0].units, 2 * 16);
}

TEST(Chains, AttentionIsAChainOfGroupsWhenItIsNotFused) {
  const KernelGraph graph = lowered(small_encoder(), true, false, 2, 16);
  ASSERT_EQ(graph.chains.size(), 4U);
  EXPECT_EQ(graph.chains[0].kind, "attention");
  EXPECT_EQ(names_of(graph, graph.chains[0]), (Names{"layer.0/scores", "layer.0/softmax", "layer.0/context"}));
  EXPECT_EQ(graph.chains[0].units, 2 * 4);
  // Without an epilogue bias and narrowing stand between; they are rows of the operator table's products.
  const KernelGraph apart = lowered(small_encoder(), false, false, 2, 16);
  EXPECT_EQ(apart.chains[0].members.size(), 6U);  // scores, requantize, scale, mask, softmax, context
}

TEST(Chains, WhatIsReadElsewhereOrLeavesIsNoChain) {
  for (const bool leaves : {false, true}) {
    GraphWriter writer("two");
    const TensorId x = writer.input("x", ingest::ElementType::float32, {{-1, "batch"}, {32, {}}});
    const TensorId y = writer.node("MatMul", "first", {x, writer.parameter("a", {32, 48})});
    const TensorId z = writer.node("MatMul", "second", {y, writer.parameter("b", {48, 16})});
    const TensorId other = leaves ? y : writer.node("Softmax", "other", {y});
    EXPECT_TRUE(lowered(writer.finish({z, other}), true, true, 8, 0).chains.empty()) << leaves;
  }
}

TEST(Chains, RowsThatAreSummedAreNoUnits) {
  // W·x is computed transposed: its "rows" are the columns that the second product reduces.
  GraphWriter writer("transposed");
  const TensorId x = writer.input("x", ingest::ElementType::float32, {{32, {}}, {32, {}}});
  const TensorId y = writer.node("MatMul", "first", {x, writer.parameter("a", {32, 32})});
  const TensorId z = writer.node("MatMul", "second", {writer.parameter("b", {32, 32}), y});
  EXPECT_TRUE(lowered(writer.finish({z}), true, true, 1, 0).chains.empty());
  // A softmax over another axis than the last needs all rows.
  for (const std::int64_t axis : {0, 1}) {
    GraphWriter other("softmax");
    const TensorId in = other.input("x", ingest::ElementType::float32, {{32, {}}, {32, {}}});
    const TensorId a = other.node("MatMul", "first", {in, other.parameter("a", {32, 32})});
    const TensorId s = other.node("Softmax", "middle", {a}, {{"axis", axis}});
    const TensorId b = other.node("MatMul", "second", {s, other.parameter("b", {32, 32})});
    EXPECT_EQ(lowered(other.finish({b}), true, true, 1, 0).chains.size(), axis == 1 ? 1U : 0U);
  }
}

/// Work and bytes of a graph; what is read whole by every chunk is left out.
struct Totals {
  std::int64_t macs = 0;
  std::int64_t operations = 0;
  std::int64_t written = 0;
  friend bool operator==(const Totals&, const Totals&) = default;
};

Totals totals_of(const KernelGraph& graph) {
  Totals sum;
  for (const Instance& instance : graph.instances) {
    const Kernel& kernel = graph.kernels[instance.kernel.at()];
    sum.macs += kernel.macs();
    sum.operations += kernel.vector_operations();
    for (const BufferUse& use : instance.writes) sum.written += use.bytes;
  }
  return sum;
}

TEST(CutChains, WorkAndResultsAreConserved) {
  RandomStream random(11, "chains");
  int cut_ones = 0;
  for (int i = 0; i < 60; ++i) {
    const bool attention = random.next_below(2) == 0;
    const bool epilogue = random.next_below(2) == 0;
    const KernelGraph whole = lowered(random.next_below(3) == 0 ? sample_convolutions() : small_encoder(), epilogue,
                                      attention, 1 + static_cast<std::int64_t>(random.next_below(3)), 16);
    if (whole.chains.empty()) continue;
    ++cut_ones;
    ChainCut cut;
    cut.chain = random.next_below(whole.chains.size());
    const Chain& chain = whole.chains[cut.chain];
    cut.units = 1 + static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(chain.units)));
    if (chain.rows > 0 && random.next_below(2) == 0) {
      cut.units = 1;
      cut.rows = 1 + static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(chain.rows)));
    }
    const KernelGraph made = cut_chains(whole, {cut});
    EXPECT_EQ(totals_of(made), totals_of(whole)) << i << " seed 11";
    std::int64_t repeats = 0;
    for (const Kernel& kernel : made.kernels) repeats += kernel.repeats;
    EXPECT_EQ(repeats, static_cast<std::int64_t>(made.instances.size()));
    for (const std::int32_t b : chain.between) {
      EXPECT_LE(made.buffers[static_cast<std::size_t>(b)].bytes, whole.buffers[static_cast<std::size_t>(b)].bytes);
    }
    // What an instance reads has been written before, or comes from outside.
    std::set<std::int32_t> written;
    for (std::size_t b = 0; b < whole.buffers.size(); ++b) {
      if (whole.buffers[b].model_input) written.insert(static_cast<std::int32_t>(b));
    }
    for (const Instance& instance : made.instances) {
      for (const BufferUse& use : instance.reads) EXPECT_TRUE(written.contains(use.buffer)) << instance.name;
      for (const BufferUse& use : instance.writes) written.insert(use.buffer);
    }
  }
  EXPECT_GT(cut_ones, 30);
}

ingest::Graph two_convolutions(std::int64_t height, std::int64_t window, std::int64_t stride, std::int64_t padding) {
  GraphWriter writer("convolutions");
  const TensorId x = writer.input("x", ingest::ElementType::float32, {{-1, "batch"}, {2, {}}, {height, {}}, {4, {}}});
  const TensorId y =
      writer.node("Conv", "first", {x, writer.parameter("a", {3, 2, 1, 1})}, {{"kernel_shape", List{1, 1}}});
  const TensorId z = writer.node(
      "Conv", "second", {y, writer.parameter("b", {5, 3, window, 1})},
      {{"kernel_shape", List{window, 1}}, {"strides", List{stride, 1}}, {"pads", List{padding, 0, padding, 0}}});
  return writer.finish({z});
}

TEST(CutChains, EveryWindowFindsItsRowsAmongThoseThatAreKept) {
  RandomStream random(12, "halo");
  int cut_ones = 0;
  for (int i = 0; i < 300; ++i) {
    const auto height = 4 + static_cast<std::int64_t>(random.next_below(20));
    const auto window = 1 + static_cast<std::int64_t>(random.next_below(4));
    const auto stride = 1 + static_cast<std::int64_t>(random.next_below(3));
    const auto padding = static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(window)));
    const KernelGraph whole = lowered(two_convolutions(height, window, stride, padding), true, true, 2, 0);
    ASSERT_EQ(whole.chains.size(), 1U);
    const Chain& chain = whole.chains[0];
    const std::int64_t outputs = (height + 2 * padding - window) / stride + 1;
    ASSERT_EQ(chain.rows, outputs);
    const auto rows = 1 + static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(outputs)));
    const KernelGraph made = cut_chains(whole, {{0, 1, rows, false}});
    if (rows == outputs) continue;
    ++cut_ones;
    const std::int64_t row_bytes = 3 * 4;
    const std::int64_t kept = made.buffers[static_cast<std::size_t>(chain.between[0])].bytes / row_bytes;
    // Walk the chunks: the first kernel adds rows, the second needs all rows under its windows at once.
    std::int64_t most = 0;
    std::int64_t there = 0;   // rows of this image computed so far,
    std::int64_t before = 0;  // and by earlier chunks; what a chunk computes it must also store
    std::int64_t next = 0;    // output row of this image
    for (const Instance& instance : made.instances) {
      const Kernel& kernel = made.kernels[instance.kernel.at()];
      const std::int64_t p = kernel.einsum.dims[static_cast<std::size_t>(kernel.einsum.dim("P"))];
      if (kernel.einsum.dim("R") >= 0 && instance.writes[0].buffer == chain.between[0]) {
        EXPECT_EQ(instance.writes[0].bytes, p * row_bytes);
        before = there;
        there += p;
        continue;
      }
      const std::int64_t first = std::max<std::int64_t>(0, next * stride - padding);
      const std::int64_t last = std::min(height, (next + p - 1) * stride - padding + window);
      EXPECT_LE(last, there) << "seed 12 case " << i;
      most = std::max(most, there - std::min(first, before));
      before = there;
      next += p;
      if (next == outputs) {
        EXPECT_EQ(there, height);  // every row computed once
        next = there = before = 0;
      }
    }
    EXPECT_EQ(kept, most) << "seed 12 case " << i;
  }
  EXPECT_GT(cut_ones, 200);
}

TEST(CutChains, ParametersAreCountedOnceAndKeptOnlyWhenAsked) {
  const KernelGraph whole = lowered(small_encoder(), true, true, 2, 16);
  for (const bool keeps : {false, true}) {
    const KernelGraph made = cut_chains(whole, {{0, 8, 0, keeps}});
    std::int64_t chunks = 0;
    std::int64_t first = 0;
    for (const Instance& instance : made.instances) {
      if (instance.name.rfind("layer.0/up", 0) != 0) continue;
      ++chunks;
      first += instance.again ? 0 : 1;
      EXPECT_EQ(instance.parameters[0].kept, keeps && instance.again);
      EXPECT_EQ(instance.kept_bytes, keeps ? 2 * 64 * 256 + 4 * (256 + 64) : 0);
    }
    EXPECT_EQ(chunks, 4);
    EXPECT_EQ(first, 1);
  }
}

}  // namespace
}  // namespace plumbline::lower
