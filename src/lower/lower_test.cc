#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lower/kernel.h"
#include "lower/match.h"
#include "lower/operators.h"
#include "lower/sample_graphs.h"

namespace plumbline::lower {
namespace {

ingest::Accelerator machine() {
  ingest::Accelerator made;
  made.name = "test-array";
  made.formats = {{"int8", "int32", 1, "mac"}, {"bf16", "fp32", 1, "mac"}};
  return made;
}

ingest::Policy policy(const std::string& inputs = "int8", const std::string& accumulate = "int32") {
  ingest::Policy made;
  made.name = "test";
  made.inputs = made.weights = made.outputs = inputs;
  made.accumulate = accumulate;
  return made;
}

ingest::CompileOptions fused() {
  ingest::CompileOptions options;
  options.fuse_epilogue = true;
  options.fuse_attention = true;
  return options;
}

ingest::ShapedGraph shaped(const ingest::Graph& graph, std::int64_t batch, std::int64_t sequence) {
  auto made = ingest::infer_shapes(graph, {{"batch", batch}, {"sequence", sequence}});
  EXPECT_TRUE(made.ok()) << render(made.ok() ? Diagnostics{} : made.errors());
  return std::move(*made);
}

KernelGraph lowered(const ingest::Graph& graph, const ingest::CompileOptions& options, std::int64_t batch = 2,
                    std::int64_t sequence = 16) {
  auto made = lower(shaped(graph, batch, sequence), options, policy(), machine());
  EXPECT_TRUE(made.ok()) << render(made.ok() ? Diagnostics{} : made.errors());
  return made.ok() ? std::move(*made) : KernelGraph{};
}

const Kernel& kernel_of(const KernelGraph& graph, const std::string& instance) {
  const auto at = std::find_if(graph.instances.begin(), graph.instances.end(),
                               [&](const Instance& i) { return i.name == instance; });
  EXPECT_NE(at, graph.instances.end()) << instance;
  return graph.kernels[at->kernel.at()];
}

std::vector<std::string> ops(const Kernel& kernel) {
  std::vector<std::string> names;
  for (const VectorStep& step : kernel.steps) names.push_back(step.op);
  return names;
}

using Names = std::vector<std::string>;

TEST(Lower, EveryMacOfTheEncoderIsCountedOnce) {
  const EncoderShape shape;
  const KernelGraph graph = lowered(sample_encoder(shape), fused(), 4, 128);
  std::int64_t macs = 0;
  for (const Kernel& kernel : graph.kernels) macs += kernel.macs() * kernel.repeats;
  const std::int64_t rows = 4 * 128;
  const std::int64_t weights = 4 * shape.hidden * shape.hidden + 2 * shape.hidden * shape.ffn;
  EXPECT_EQ(macs, shape.layers * rows * (weights + 2 * 128 * shape.hidden));
}

TEST(Lower, IdenticalLayersShareKernels) {
  const KernelGraph graph = lowered(sample_encoder(), fused());
  EXPECT_EQ(kernel_of(graph, "layer.7/up").repeats, 12);
  EXPECT_EQ(kernel_of(graph, "layer.7/query").repeats, 36);
  EXPECT_EQ(&kernel_of(graph, "layer.0/query"), &kernel_of(graph, "layer.11/value"));
}

TEST(Lower, ParameterProductsFlattenTheirRowsAndActivationProductsKeepGroups) {
  const KernelGraph graph = lowered(sample_encoder(), fused(), 2, 16);
  const Einsum& up = kernel_of(graph, "layer.0/up").einsum;
  EXPECT_EQ(up.dim_names, (Names{"M", "N", "K"}));
  EXPECT_EQ(up.dims[0], 2 * 16);
  EXPECT_EQ(up.dims[1], 3072);
  EXPECT_EQ(up.dims[2], 768);
  EXPECT_EQ(up.operands[0].role, Role::weights);
  const Einsum& scores = kernel_of(graph, "layer.0/scores").einsum;
  EXPECT_EQ(scores.dim_names, (Names{"G", "M", "N", "K"}));
  EXPECT_EQ(scores.dims[0], 2 * 12);
  EXPECT_EQ(scores.dims[1], 16);
  EXPECT_EQ(scores.dims[2], 16);
  EXPECT_EQ(scores.dims[3], 64);
  EXPECT_EQ(scores.operands[0].role, Role::stationary_activations);
}

TEST(Lower, EpilogueTakesBiasActivationResidualAndNarrowing) {
  const KernelGraph graph = lowered(sample_encoder(), fused());
  EXPECT_EQ(ops(kernel_of(graph, "layer.0/up")), (Names{"Add", "Gelu", "requantize"}));
  EXPECT_EQ(ops(kernel_of(graph, "layer.0/down")), (Names{"Add", "Add", "requantize"}));
  EXPECT_EQ(ops(kernel_of(graph, "layer.0/query")), (Names{"Add", "requantize"}));
}

TEST(Lower, GeluByErfFusesThoughItsInputIsReadTwice) {
  EncoderShape shape;
  shape.layers = 1;
  shape.erf_gelu = true;
  const KernelGraph graph = lowered(sample_encoder(shape), fused());
  EXPECT_EQ(ops(kernel_of(graph, "layer.0/up")), (Names{"Add", "Div", "Erf", "Add", "Mul", "Mul", "requantize"}));
}

TEST(Lower, ComposedAndDecomposedGeluCostTheSame) {
  EncoderShape shape;
  shape.layers = 1;
  const KernelGraph whole = lowered(sample_encoder(shape), fused());
  shape.erf_gelu = true;
  const KernelGraph parts = lowered(sample_encoder(shape), fused());
  EXPECT_EQ(kernel_of(whole, "layer.0/up").vector_operations(), kernel_of(parts, "layer.0/up").vector_operations());
}

TEST(Lower, AttentionFusionKeepsOneGroupOfScoresOnChip) {
  const KernelGraph graph = lowered(sample_encoder(), fused(), 2, 16);
  EXPECT_EQ(ops(kernel_of(graph, "layer.0/scores")), (Names{"Div", "Add", "Softmax", "requantize"}));
  const auto at = std::find_if(graph.instances.begin(), graph.instances.end(),
                               [](const Instance& i) { return i.name == "layer.0/scores"; });
  const Buffer& scores = graph.buffers[static_cast<std::size_t>(at->writes[0].buffer)];
  EXPECT_EQ(scores.bytes, 2 * 12 * 16 * 16);
  EXPECT_EQ(scores.on_chip, 2 * 16 * 16);
}

TEST(Lower, WithoutAttentionFusionSoftmaxIsAKernelAndScoresAreWhole) {
  ingest::CompileOptions options = fused();
  options.fuse_attention = false;
  const KernelGraph graph = lowered(sample_encoder(), options, 2, 16);
  EXPECT_EQ(ops(kernel_of(graph, "layer.0/scores")), (Names{"Div", "Add", "requantize"}));
  EXPECT_EQ(kernel_of(graph, "layer.0/softmax").kind, KernelKind::vector);
  for (const Buffer& buffer : graph.buffers) EXPECT_EQ(buffer.on_chip, buffer.bytes);
}

TEST(Lower, WithoutEpilogueFusionSumsAreStoredWideAndNarrowedByAKernel) {
  ingest::CompileOptions options;
  const KernelGraph graph = lowered(sample_encoder(), options, 2, 16);
  const Kernel& up = kernel_of(graph, "layer.0/up");
  EXPECT_TRUE(up.steps.empty());
  EXPECT_EQ(up.einsum.operands[2].bits, 32);
  const Kernel& narrow = kernel_of(graph, "layer.0/up/requantize");
  EXPECT_EQ(narrow.steps[0].input_bytes, 2 * 16 * 3072 * 4);
  EXPECT_EQ(narrow.steps[0].output_bytes, 2 * 16 * 3072);
  EXPECT_EQ(kernel_of(graph, "layer.0/gelu").steps[0].operations, 5 * 2 * 16 * 3072);
}

TEST(Lower, AFusedKernelRunsAfterEverythingItsEpilogueReads) {
  // y = a·W1 + (a·W2): the first product may take the sum only where the second is done.
  GraphWriter writer("sum");
  const TensorId a = writer.input("a", ingest::ElementType::float32, {{-1, "batch"}, {8, {}}});
  const TensorId first = writer.node("MatMul", "first", {a, writer.parameter("w1", {8, 8})});
  const TensorId second = writer.node("MatMul", "second", {a, writer.parameter("w2", {8, 8})});
  const KernelGraph graph = lowered(writer.finish({writer.node("Add", "sum", {first, second})}), fused());
  ASSERT_EQ(graph.instances.size(), 2U);
  EXPECT_EQ(graph.instances[0].name, "second");
  EXPECT_EQ(graph.instances[1].name, "first");
  EXPECT_EQ(ops(graph.kernels[graph.instances[1].kernel.at()]), (Names{"Add", "requantize"}));
}

TEST(Lower, AValueReadElsewhereStopsTheEpilogue) {
  GraphWriter writer("branch");
  const TensorId a = writer.input("a", ingest::ElementType::float32, {{-1, "batch"}, {8, {}}});
  const TensorId product = writer.node("MatMul", "product", {a, writer.parameter("w", {8, 8})});
  const TensorId relu = writer.node("Relu", "relu", {product});
  const TensorId norm =
      writer.node("LayerNormalization", "norm", {product, writer.parameter("s", {8}), writer.parameter("b", {8})});
  const KernelGraph graph = lowered(writer.finish({relu, norm}), fused());
  const Kernel& kernel = kernel_of(graph, "product");
  EXPECT_EQ(ops(kernel), (Names{"requantize"}));
  const auto at = std::find_if(kernel.alternatives.begin(), kernel.alternatives.end(),
                               [](const Alternative& x) { return x.name == "fused Relu"; });
  ASSERT_NE(at, kernel.alternatives.end());
  EXPECT_FALSE(at->chosen);
  EXPECT_EQ(at->reason, "a value between is read elsewhere");
}

TEST(Lower, ConvolutionsBecomeTheirOwnSpaces) {
  const KernelGraph graph = lowered(sample_convolutions(), fused(), 2, 1);
  const Kernel& stem = kernel_of(graph, "stem");
  EXPECT_EQ(stem.layer_class, "conv");
  EXPECT_EQ(stem.macs(), 2 * 16 * 3 * 16 * 16 * 9);
  EXPECT_EQ(ops(stem), (Names{"BatchNormalization", "Relu", "requantize"}));
  const Kernel& depth = kernel_of(graph, "depth");
  EXPECT_EQ(depth.layer_class, "depthwise_conv");
  EXPECT_EQ(depth.macs(), 2 * 16 * 16 * 16 * 9);
  EXPECT_EQ(depth.einsum.dim("K"), -1);
  EXPECT_EQ(kernel_of(graph, "point").layer_class, "pointwise_conv");
  EXPECT_EQ(ops(kernel_of(graph, "point")), (Names{"bias", "requantize"}));
  EXPECT_EQ(kernel_of(graph, "classify").layer_class, "projection");
  EXPECT_EQ(kernel_of(graph, "classify").macs(), 2 * 32 * 10);
}

TEST(Lower, EmbeddingReadsTheRowsItGathersOnce) {
  const KernelGraph graph = lowered(sample_encoder(), fused(), 2, 16);
  const Kernel& word = kernel_of(graph, "embeddings/word");
  EXPECT_EQ(word.layer_class, "embedding");
  EXPECT_EQ(word.steps[0].parameter_bytes, 2 * 16 * 768);
  EXPECT_EQ(word.steps[0].input_bytes, 2 * 16 * 8);  // int64 ids
  EXPECT_TRUE(graph.instances[0].parameters[0].gathered);
  EXPECT_EQ(graph.instances[0].parameters[0].stored, 30522 * 768);
}

TEST(Lower, TransposeMovesBytesAndReshapeDoesNot) {
  const KernelGraph graph = lowered(sample_encoder(), fused(), 2, 16);
  const Kernel& moved = kernel_of(graph, "layer.0/q/transpose");
  EXPECT_EQ(moved.kind, KernelKind::movement);
  EXPECT_EQ(moved.steps[0].input_bytes, 2 * 16 * 768);
  EXPECT_EQ(moved.steps[0].output_bytes, 2 * 16 * 768);
  for (const Instance& instance : graph.instances) EXPECT_EQ(instance.name.find("split"), std::string::npos);
}

TEST(Lower, WhatFollowsFromParametersAloneIsFolded) {
  GraphWriter writer("folded");
  const TensorId a = writer.input("a", ingest::ElementType::float32, {{-1, "batch"}, {8, {}}});
  const TensorId turned = writer.node("Transpose", "turn", {writer.parameter("w", {4, 8})});
  const KernelGraph graph = lowered(writer.finish({writer.node("MatMul", "product", {a, turned})}), fused());
  ASSERT_EQ(graph.instances.size(), 1U);
  EXPECT_EQ(graph.kernels[0].einsum.operands[0].role, Role::weights);
  EXPECT_EQ(graph.kernels[0].unique_weight_bytes, 32);
}

TEST(Lower, AParameterOnTheLeftIsStillTheWeights) {
  GraphWriter writer("left");
  const TensorId a = writer.input("a", ingest::ElementType::float32, {{8, {}}, {-1, "batch"}});
  const KernelGraph graph =
      lowered(writer.finish({writer.node("MatMul", "product", {writer.parameter("w", {4, 8}), a})}), fused(), 3);
  const Kernel& kernel = graph.kernels[0];
  EXPECT_EQ(kernel.layer_class, "projection");
  EXPECT_EQ(kernel.einsum.dims[0], 3);  // M: the activation's side
  EXPECT_EQ(kernel.einsum.dims[1], 4);
  EXPECT_EQ(kernel.unique_weight_elements, 32);
}

TEST(Lower, ConstraintRowsByNamePartEqualKernels) {
  ingest::CompileOptions options = fused();
  ingest::ConstraintRow row;
  row.kernels = "layer.3/*";
  row.level = "accumulator";
  options.constraints = {row};
  const KernelGraph graph = lowered(sample_encoder(), options);
  EXPECT_EQ(kernel_of(graph, "layer.3/up").repeats, 1);
  EXPECT_EQ(kernel_of(graph, "layer.3/up").constraint_rows, 1U);
  EXPECT_EQ(kernel_of(graph, "layer.4/up").repeats, 11);
  EXPECT_EQ(kernel_of(graph, "layer.4/up").constraint_rows, 0U);
}

TEST(Lower, UnknownOperatorNamesTheNodeAndNearOnes) {
  // infer_shapes would refuse it too, so the graph is shaped by hand.
  GraphWriter writer("odd");
  const TensorId a = writer.input("a", ingest::ElementType::float32, {{2, {}}});
  ingest::ShapedGraph graph;
  graph.graph = writer.finish({writer.node("Softmx", "odd_node", {a})});
  graph.shapes = {ingest::Shape{2}, ingest::Shape{2}};
  graph.values.resize(2);
  const auto made = lower(graph, fused(), policy(), machine());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.errors()[0].kind, "unknown-operator");
  EXPECT_NE(made.errors()[0].message.find("odd_node"), std::string::npos);
  EXPECT_NE(made.errors()[0].help.find("Softmax"), std::string::npos);
}

TEST(Lower, UnsupportedFormatPairNamesTheSupportedOnes) {
  const auto made = lower(shaped(sample_convolutions(), 1, 1), fused(), policy("fp16", "fp32"), machine());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.errors()[0].kind, "unsupported");
  EXPECT_NE(made.errors()[0].help.find("int8 to int32, bf16 to fp32"), std::string::npos);
}

TEST(Lower, UnknownFormatIsAnError) {
  const auto made = lower(shaped(sample_convolutions(), 1, 1), fused(), policy("int9", "int32"), machine());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.errors()[0].kind, "unknown-name");
}

TEST(Lower, SparsityIsRefusedNotIgnored) {
  ingest::CompileOptions options = fused();
  options.sparsity = "2:4";
  const auto made = lower(shaped(sample_convolutions(), 1, 1), options, policy(), machine());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.errors()[0].kind, "unsupported");
}

TEST(Lower, BytesFollowThePolicy) {
  auto made = lower(shaped(sample_convolutions(), 2, 1), fused(), policy("bf16", "fp32"), machine());
  ASSERT_TRUE(made.ok());
  const Kernel& stem = kernel_of(*made, "stem");
  EXPECT_EQ(stem.unique_weight_bytes, 16 * 3 * 9 * 2 + 4 * 16 * 4);  // weights in bf16, four vectors in fp32
  EXPECT_EQ(stem.einsum.operands[1].bits, 16);
  EXPECT_EQ(stem.einsum.operands[2].partial_bits, 32);
}

TEST(Operators, OnlyViewsAndFixedContentsAreFree) {
  for (const std::string& name : operator_names()) {
    for (const char* domain : {"", "com.microsoft"}) {
      const OperatorRow* row = find_operator(domain, name);
      if (row == nullptr) continue;
      const bool free = row->lowering == Lowering::view || row->lowering == Lowering::fixed;
      const bool counted = row->operations > 0 || row->counted_on == CountedOn::window || row->matrix();
      EXPECT_NE(free, counted) << name;
    }
  }
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("layer.*/up", "layer.11/up"));
  EXPECT_TRUE(glob_matches("layer.?/up", "layer.1/up"));
  EXPECT_FALSE(glob_matches("layer.?/up", "layer.11/up"));
  EXPECT_FALSE(glob_matches("ffn", "ffn2"));
  EXPECT_TRUE(glob_matches("*a*b", "xaaxbab"));
}

}  // namespace
}  // namespace plumbline::lower
