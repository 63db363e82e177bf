#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ingest/graph_limits.h"
#include "ingest/graph_testing.h"

namespace plumbline::ingest {
namespace {

std::string error(const std::string& bytes) {
  const auto result = read_onnx("m.onnx", bytes);
  if (result.ok()) return "no error";
  return fmt::format("{} [{}]", result.errors().front().message, result.errors().front().kind);
}

std::string error(const OnnxBuilder& model) { return error(model.bytes()); }

OnnxBuilder linear() {
  OnnxBuilder model;
  model.input("x", {-1, 3}).weight("w", {3, 2}).output("y");
  model.node("MatMul", {"x", "w"}, {"h"}, "product");
  model.node("Relu", {"h"}, {"y"}, "act");
  return model;
}

TEST(ReadOnnx, InitializersAreParametersAndInputsKeepTheirSymbols) {
  const auto graph = read_onnx("m.onnx", linear().bytes());
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  ASSERT_EQ(graph->inputs.size(), 1U);
  const Tensor& x = graph->tensors[graph->inputs[0].at()];
  EXPECT_EQ((*x.shape)[0], (Dimension{-1, "a"}));
  EXPECT_EQ((*x.shape)[1], (Dimension{3, ""}));
  EXPECT_FALSE(x.parameter);
  const Tensor& w = graph->tensors[graph->nodes[0].inputs[1].at()];
  EXPECT_TRUE(w.parameter);
  EXPECT_TRUE(w.has_data);
  EXPECT_TRUE(graph->has_weights);
  EXPECT_EQ(graph->opset, 17);
  EXPECT_EQ(graph->source->name, "m.onnx");
}

TEST(ReadOnnx, ConstantNodesAreParametersLikeInitializers) {
  OnnxBuilder model;
  model.input("x", {-1, 3}).output("y");
  auto* attribute = model.node("Constant", {}, {"w"}).add_attribute();
  attribute->set_name("value");
  attribute->set_type(4);
  attribute->mutable_t()->add_dims(3);
  attribute->mutable_t()->add_dims(2);
  attribute->mutable_t()->set_data_type(1);
  attribute->mutable_t()->set_raw_data(std::string(24, '\0'));
  model.node("MatMul", {"x", "w"}, {"y"});
  const auto graph = read_onnx("m.onnx", model.bytes());
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  ASSERT_EQ(graph->nodes.size(), 1U);
  EXPECT_TRUE(graph->tensors[graph->nodes[0].inputs[1].at()].parameter);
  EXPECT_TRUE(graph->has_weights);
}

TEST(ReadOnnx, WhatIsComputedFromParametersAloneIsAParameter) {
  OnnxBuilder model;
  model.input("x", {4, 3}).integers("dims", {2, 3}).output("y");
  model.node("ConstantOfShape", {"dims"}, {"w"});
  model.node("Transpose", {"w"}, {"wt"});
  model.node("MatMul", {"x", "wt"}, {"y"});
  const auto graph = read_onnx("m.onnx", model.bytes());
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  const Tensor& weight = graph->tensors[graph->nodes[2].inputs[1].at()];
  EXPECT_TRUE(weight.parameter);
  EXPECT_FALSE(weight.has_data) << "a fill stands in for values the file does not carry";
  EXPECT_FALSE(graph->has_weights);
  EXPECT_FALSE(graph->tensors[graph->outputs[0].at()].parameter);
}

TEST(ReadOnnx, AnInitializerWithoutValuesIsATopology) {
  OnnxBuilder model = linear();
  model.graph().mutable_initializer(0)->clear_float_data();
  const auto graph = read_onnx("m.onnx", model.bytes());
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  EXPECT_FALSE(graph->has_weights);
  model.graph().mutable_initializer(0)->add_float_data(1);
  EXPECT_EQ(error(model), "initializer 'w' of shape [3, 2] needs 6 values, but holds 1 [onnx-graph]");
}

TEST(ReadOnnx, RawValuesMustFillTheShape) {
  OnnxBuilder model = linear();
  auto* w = model.graph().mutable_initializer(0);
  w->clear_float_data();
  w->set_raw_data(std::string(23, 'x'));
  EXPECT_EQ(error(model),
            "initializer 'w' of shape [3, 2] and type float32 needs 24 bytes of values, but holds 23 [onnx-graph]");
}

TEST(ReadOnnx, NodesAreSortedWhenTheFileIsNot) {
  OnnxBuilder model;
  model.input("x", {2}).output("y");
  model.node("Relu", {"b"}, {"y"}, "last");
  model.node("Tanh", {"a"}, {"b"}, "middle");
  model.node("Exp", {"x"}, {"a"}, "first");
  const auto graph = read_onnx("m.onnx", model.bytes());
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  EXPECT_EQ(graph->nodes[0].name, "first");
  EXPECT_EQ(graph->nodes[1].name, "middle");
  EXPECT_EQ(graph->nodes[2].name, "last");
}

TEST(ReadOnnx, NodesWithoutANameTakeThatOfTheirOutputAndRepeatedNamesAreNumbered) {
  OnnxBuilder model;
  model.input("x", {2}).output("y");
  model.node("Exp", {"x"}, {"a"}, "n");
  model.node("Exp", {"a"}, {"b"}, "n");
  model.node("Exp", {"b"}, {"y"}).clear_name();
  const auto graph = read_onnx("m.onnx", model.bytes());
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  EXPECT_EQ(graph->nodes[0].name, "n");
  EXPECT_EQ(graph->nodes[1].name, "n#2");
  EXPECT_EQ(graph->nodes[2].name, "y");
}

TEST(ReadOnnx, EmptyAndForeignFilesAreRefused) {
  EXPECT_EQ(error(""), "the file is empty [empty-file]");
  EXPECT_EQ(error("plumbline: 1\n"), "not an ONNX model: at byte 7 of 13, a field has wire type 6 [onnx-syntax]");
  EXPECT_EQ(error(std::string("\x08\x08", 2)), "not an ONNX model: it holds no graph [onnx-syntax]");
  EXPECT_EQ(error(std::string("\x12\x00", 2)), "not an ONNX model: it has no IR version [onnx-syntax]");
}

TEST(ReadOnnx, ATruncatedFileSaysWhereItEnds) {
  const std::string bytes = linear().bytes();
  EXPECT_EQ(error(bytes.substr(0, 30)),
            "not an ONNX model: at byte 2 of 30, a field says it is 123 bytes long, but 26 are left [onnx-syntax]");
}

TEST(ReadOnnx, NodesOnACycleAreNamed) {
  OnnxBuilder model;
  model.input("x", {2}).output("y");
  model.node("Add", {"x", "c"}, {"a"}, "first");
  model.node("Relu", {"a"}, {"b"}, "second");
  model.node("Tanh", {"b"}, {"c"}, "third");
  model.node("Exp", {"b"}, {"y"}, "outside");
  EXPECT_EQ(error(model), "the graph has a cycle: 'first' → 'second' → 'third' → 'first' [onnx-graph]");
}

TEST(ReadOnnx, ANodeThatReadsItselfIsACycle) {
  OnnxBuilder model;
  model.input("x", {2}).output("y");
  model.node("Add", {"x", "y"}, {"y"}, "self");
  EXPECT_EQ(error(model), "the graph has a cycle: 'self' → 'self' [onnx-graph]");
}

TEST(ReadOnnx, DanglingNamesAreErrorsWithTheNearestName) {
  OnnxBuilder model = linear();
  model.graph().mutable_node(1)->set_input(0, std::string("hh"));
  const auto result = read_onnx("m.onnx", model.bytes());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(render(result.errors()),
            "m.onnx: error: node 'act' (Relu) reads 'hh', which nothing makes [onnx-graph]\n"
            "help: did you mean 'h'?\n");
  OnnxBuilder other = linear();
  other.graph().mutable_output(0)->set_name("z");
  EXPECT_EQ(error(other), "nothing makes the model's output 'z' [onnx-graph]");
}

TEST(ReadOnnx, NamesAreMadeOnce) {
  OnnxBuilder twice = linear();
  twice.node("Tanh", {"x"}, {"h"}, "again");
  EXPECT_EQ(error(twice), "tensor 'h' is made by node 'again' (Tanh) and by node 'product' (MatMul) [onnx-graph]");
  OnnxBuilder parameters = linear();
  parameters.weight("w", {1});
  EXPECT_EQ(error(parameters), "parameter 'w' has a name that is already taken [onnx-graph]");
  OnnxBuilder inputs = linear();
  inputs.input("x", {1});
  EXPECT_EQ(error(inputs), "input 'x' has a name that is already taken [onnx-graph]");
}

TEST(ReadOnnx, NumbersOfInputsAndOutputsAreChecked) {
  OnnxBuilder model = linear();
  model.graph().mutable_node(0)->mutable_input()->RemoveLast();
  EXPECT_EQ(error(model), "node 'product' (MatMul) has 1 inputs, 2 are expected [onnx-graph]");
  OnnxBuilder omitted = linear();
  omitted.graph().mutable_node(0)->set_input(1, std::string());
  EXPECT_EQ(error(omitted), "node 'product' (MatMul) omits its input 1, which is required [onnx-graph]");
  OnnxBuilder outputs = linear();
  outputs.graph().mutable_node(0)->add_output(std::string("z"));
  EXPECT_EQ(error(outputs), "node 'product' (MatMul) has 2 outputs, 1 are expected [onnx-graph]");
}

TEST(ReadOnnx, AttributesAreThoseOfTheOperator) {
  OnnxBuilder model = linear();
  set_integer(*model.graph().mutable_node(1), "alpa", 1);
  EXPECT_EQ(error(model), "node 'act' (Relu) has the attribute 'alpa', which its operator does not know [onnx-graph]");
  OnnxBuilder kind;
  kind.input("x", {2, 2}).output("y");
  set_text(kind.node("Softmax", {"x"}, {"y"}, "s"), "axis", "last");
  EXPECT_EQ(error(kind), "node 's' (Softmax): attribute 'axis' must be a whole number [onnx-graph]");
  OnnxBuilder repeated;
  repeated.input("x", {2, 2}).output("y");
  auto& node = repeated.node("Softmax", {"x"}, {"y"}, "s");
  set_integer(node, "axis", 1);
  set_integer(node, "axis", 0);
  EXPECT_EQ(error(repeated), "node 's' (Softmax) has the attribute 'axis' twice [onnx-graph]");
}

TEST(ReadOnnx, UnknownOperatorsNameTheirDomainAndControlFlowItsRemedy) {
  OnnxBuilder model = linear();
  model.graph().mutable_node(1)->set_op_type("DecodeImage");
  model.graph().mutable_node(1)->set_domain("com.microsoft.extensions");
  EXPECT_EQ(
      error(model),
      "operator 'DecodeImage' of domain 'com.microsoft.extensions' (node 'act') is not modelled [unknown-operator]");
  OnnxBuilder loop = linear();
  loop.graph().mutable_node(1)->set_op_type("Loop");
  auto* body = loop.graph().mutable_node(1)->add_attribute();
  body->set_name("body");
  body->set_type(5);
  body->set_g("anything");
  const auto result = read_onnx("m.onnx", loop.bytes());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.errors()[0].message, "operator 'Loop' (node 'act') is not modelled");
  EXPECT_EQ(result.errors()[0].help,
            "control flow is not modelled; export the model with its loops unrolled and its branches decided");
}

TEST(ReadOnnx, NegativeAndOverflowingDimensionsAreErrors) {
  OnnxBuilder input = linear();
  input.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(
      -1);
  EXPECT_EQ(error(input), "dimension 0 of input 'x' is -1 [onnx-shape]");
  OnnxBuilder weight = linear();
  weight.graph().mutable_initializer(0)->set_dims(0, -3);
  EXPECT_EQ(error(weight), "initializer 'w' has the shape [-3, 2], with a negative dimension [onnx-shape]");
  weight.graph().mutable_initializer(0)->set_dims(0, 1LL << 40);
  weight.graph().mutable_initializer(0)->set_dims(1, 1LL << 40);
  EXPECT_EQ(error(weight),
            "initializer 'w' has the shape [1099511627776, 1099511627776], more than 2^50 elements [onnx-shape]");
}

TEST(ReadOnnx, OperatorSetsOutsideTheRangeAreRefused) {
  OnnxBuilder model(6);
  model.input("x", {2}).output("y");
  model.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(error(model), "the model uses operator set 6; sets 7 to 21 are understood [unsupported]");
  model.model.clear_opset_import();
  EXPECT_EQ(error(model), "the model does not say which operator set it uses [onnx-graph]");
}

TEST(ReadOnnx, ModelsWithoutNodesOrOutputsAreRefused) {
  OnnxBuilder model;
  model.input("x", {2});
  const auto result = read_onnx("m.onnx", model.bytes());
  ASSERT_FALSE(result.ok());
  ASSERT_EQ(result.errors().size(), 2U);
  EXPECT_EQ(result.errors()[0].message, "the model has no nodes");
  EXPECT_EQ(result.errors()[1].message, "the model has no outputs");
}

TEST(ReadOnnx, NamesMustBeTextAndShort) {
  OnnxBuilder model = linear();
  model.graph().mutable_node(1)->set_name("\xff\xfe");
  EXPECT_EQ(error(model), "the name of a node is not UTF-8 text [onnx-syntax]");
  model.graph().mutable_node(1)->set_name("x\x1b[2J");
  EXPECT_EQ(error(model), "the name of a node holds U+001B, which cannot be shown: 'x<U+001B>[2J' [onnx-syntax]");
  model.graph().mutable_node(1)->set_name("\xE2\x80\xAEx");
  EXPECT_EQ(error(model), "the name of a node holds U+202E, which cannot be shown: '<U+202E>x' [onnx-syntax]");
  model.graph().mutable_node(1)->set_name("x\ny");
  EXPECT_EQ(error(model),
            "the name of a node holds a line break or a tab, which cannot be shown: 'x\ny' [onnx-syntax]");
  model.graph().mutable_node(1)->set_name(std::string(5000, 'n'));
  EXPECT_EQ(error(model), "the model has a name of 5000 bytes; at most 4096 are accepted [too-large]");
}

// A node costs two bytes in the file and about a hundred in memory: they are counted before they are decoded.
TEST(ReadOnnx, NodesAreCountedBeforeTheyAreDecoded) {
  std::string graph;
  for (std::size_t i = 0; i <= kMaxGraphNodes; ++i) graph.append("\x0a\x00", 2);
  std::string bytes("\x08\x08\x3a", 3);
  for (std::size_t length = graph.size(); length > 0; length >>= 7U) {
    bytes.push_back(static_cast<char>((length & 0x7FU) | (length > 0x7F ? 0x80U : 0U)));
  }
  EXPECT_EQ(error(bytes.append(graph)), "the model has more than 1000000 nodes [too-large]");
}

TEST(ReadOnnx, AtMostTwentyErrorsAreReported) {
  OnnxBuilder model;
  model.input("x", {2}).output("y");
  for (int i = 0; i < 100; ++i) model.node("Nonsense", {"x"}, {fmt::format("t{}", i)});
  model.node("Relu", {"x"}, {"y"});
  const auto result = read_onnx("m.onnx", model.bytes());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.errors().size(), 20U);
}

}  // namespace
}  // namespace plumbline::ingest
