#include "ingest/read_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ingest/expression.h"
#include "ingest/graph_counts.h"
#include "ingest/graph_testing.h"

namespace plumbline::ingest {
namespace {

Result<Graph> read(const std::string& text) {
  PL_TRY(const Value document, parse_yaml(std::make_shared<const Source>(Source{"model.yaml", text})));
  return read_model_yaml(document);
}

Result<Graph> catalogue(const std::string& name) {
  return read(file_bytes(fmt::format("{}/catalog/models/{}.yaml", PLUMBLINE_SOURCE_DIR, name)));
}

std::int64_t value(std::string_view text, const Names& names = {}) {
  const auto result = evaluate(text, names, {});
  EXPECT_TRUE(result.ok()) << text;
  return result.ok() ? *result : INT64_MIN;
}

TEST(Expression, FollowsTheUsualPrecedence) {
  const Names names = {{"hidden", 768}, {"heads", 12}};
  EXPECT_EQ(value("hidden / heads", names), 64);
  EXPECT_EQ(value("2 + 3 * 4"), 14);
  EXPECT_EQ(value("(2 + 3) * 4"), 20);
  EXPECT_EQ(value("10 - 4 - 3"), 3);
  EXPECT_EQ(value("-hidden + 1", names), -767);
  EXPECT_EQ(value("12/3/2"), 2);
}

TEST(Expression, RefusesRemaindersOverflowAndNonsense) {
  const auto error = [](std::string_view text) {
    const auto result = evaluate(text, {{"hidden", 768}}, {});
    return result.ok() ? std::string("no error")
                       : fmt::format("{} [{}]", result.errors()[0].message, result.errors()[0].kind);
  };
  EXPECT_EQ(error("hidden / 7"), "the expression 'hidden / 7' cannot be read: 768 does not divide by 7 [bad-value]");
  EXPECT_EQ(error("1 / 0"), "the expression '1 / 0' cannot be read: it divides by 0 [bad-value]");
  EXPECT_EQ(error("hiden"), "no dimension is named 'hiden' [unknown-name]");
  EXPECT_EQ(error("9223372036854775807 + 1"),
            "the expression '9223372036854775807 + 1' does not fit 64 bits [overflow]");
  EXPECT_EQ(error("2 *"),
            "the expression '2 *' cannot be read: it ends where a number or a name is needed [bad-value]");
  EXPECT_EQ(error("2 3"), "the expression '2 3' cannot be read: '3' was not expected [bad-value]");
  EXPECT_EQ(error("(2"), "the expression '(2' cannot be read: a ')' is missing [bad-value]");
  EXPECT_EQ(error(std::string(100, '(')),
            "the expression '" + std::string(100, '(') + "' cannot be read: it nests too deeply [bad-value]");
}

// BERT-base has 110 M parameters (Devlin et al. 2019); the checkpoint's exact count with pooler is 109,482,240.
TEST(CatalogueModels, BertBaseHasThePublishedParameters) {
  const auto graph = catalogue("bert-base");
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  EXPECT_EQ(graph->name, "bert-base");
  EXPECT_EQ(graph->family, "encoder");
  EXPECT_FALSE(graph->has_weights);
  for (const auto& [batch, sequence] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 128}, {4, 384}, {16, 512}}) {
    const auto shaped = infer_shapes(*graph, {{"batch", batch}, {"sequence", sequence}});
    ASSERT_TRUE(shaped.ok()) << render(shaped.errors());
    EXPECT_EQ(parameter_elements(*shaped), 109482240);
    constexpr std::int64_t kHidden = 768, kFfn = 3072, kLayers = 12;
    const std::int64_t layer =
        4 * sequence * kHidden * kHidden + 2 * sequence * sequence * kHidden + 2 * sequence * kHidden * kFfn;
    EXPECT_EQ(multiply_accumulates(*shaped), batch * (kLayers * layer + kHidden * kHidden));
    EXPECT_EQ(shaped->shape(graph->outputs[0]), (Shape{batch, kHidden}));
    for (const auto& shape : shaped->shapes) EXPECT_TRUE(shape.has_value());
  }
}

TEST(CatalogueModels, BertBaseStatesTheClassOfEveryProduct) {
  const auto graph = catalogue("bert-base");
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  std::map<std::string, int> classes;
  for (const auto& node : graph->nodes) {
    if (node.op == "MatMul") ++classes[node.layer_class];
    if (node.op == "Add") {
      EXPECT_EQ(node.layer_class, "") << node.name;
    }
  }
  EXPECT_EQ(classes, (std::map<std::string, int>{
                         {"attention_context", 12}, {"attention_score", 12}, {"ffn", 24}, {"projection", 49}}));
  const auto named = std::find_if(graph->nodes.begin(), graph->nodes.end(),
                                  [](const Node& n) { return n.name == "layer.3.attention.query.MatMul"; });
  ASSERT_NE(named, graph->nodes.end());
  EXPECT_EQ(graph->tensors[named->inputs[1].at()].name, "layer.3.attention.query.kernel");
}

TEST(CatalogueModels, BertBaseRefusesSequencesBeyondItsPositions) {
  const auto graph = catalogue("bert-base");
  ASSERT_TRUE(graph.ok());
  EXPECT_FALSE(infer_shapes(*graph, {{"batch", 1}, {"sequence", 513}}).ok());
}

// torchvision's table: 25,557,032 parameters, 4.09 G multiply-accumulates at 224 × 224. The graph also holds the
// running mean and variance of 26,560 normalised channels.
TEST(CatalogueModels, ResNet50HasThePublishedParametersAndWork) {
  const auto graph = catalogue("resnet-50");
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  const auto shaped = infer_shapes(*graph, {{"batch", 2}});
  ASSERT_TRUE(shaped.ok()) << render(shaped.errors());
  std::int64_t statistics = 0;
  for (const auto& node : graph->nodes) {
    if (node.op != "BatchNormalization") continue;
    statistics += shaped->shape(node.inputs[3])[0] + shaped->shape(node.inputs[4])[0];
  }
  EXPECT_EQ(statistics, 2 * 26560);
  EXPECT_EQ(parameter_elements(*shaped) - statistics, 25557032);
  std::int64_t macs = 112 * 112 * 64 * 3 * 49 + 2048 * 1000;
  std::int64_t from = 64;
  const std::int64_t depth[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t side = 56 >> stage;
    const std::int64_t narrow = 64LL << stage;
    for (std::int64_t block = 0; block < depth[stage]; ++block) {
      const std::int64_t in_side = block == 0 && stage > 0 ? 2 * side : side;
      macs += in_side * in_side * from * narrow + side * side * (narrow * narrow * 9 + narrow * 4 * narrow);
      if (block == 0) macs += side * side * from * 4 * narrow;
      from = 4 * narrow;
    }
  }
  EXPECT_EQ(macs, 4089184256);
  EXPECT_EQ(multiply_accumulates(*shaped), 2 * macs);
  EXPECT_EQ(shaped->shape(graph->outputs[0]), (Shape{2, 1000}));
}

const char* const kHead = "plumbline: 1\nkind: model\nname: m\nfamily: f\nsource: s\nopset: 17\n";

std::string error(const std::string& rest) {
  const auto graph = read(kHead + rest);
  return graph.ok() ? "no error" : render(graph.errors());
}

TEST(ReadModel, TheExampleOfTheDocumentationIsRead) {
  const std::string page = file_bytes(std::string(PLUMBLINE_SOURCE_DIR) + "/docs/ingest.md");
  const auto begin = page.find("```yaml\n") + 8;
  const auto graph = read(page.substr(begin, page.find("```", begin) - begin));
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  const auto shaped = infer_shapes(*graph, {{"batch", 5}});
  ASSERT_TRUE(shaped.ok()) << render(shaped.errors());
  EXPECT_EQ(multiply_accumulates(*shaped), 5 * 3 * 2 * 64 * 256);
  EXPECT_EQ(graph->nodes[5].name, "step.1.widen.MatMul");
}

TEST(ReadModel, RepetitionCarriesOutputsToInputs) {
  const auto graph = read(std::string(kHead) +
                          "inputs:\n  a: {type: float32, shape: [batch, 4]}\noutputs: [b]\n"
                          "blocks:\n  step:\n    in: [x]\n    out: [z]\n    weights: {w: [4, 4]}\n"
                          "    nodes: [{op: MatMul, in: [x, w], out: z}]\n"
                          "nodes: [{use: step, repeat: 3, in: [a], out: b}]\n");
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  ASSERT_EQ(graph->nodes.size(), 3U);
  EXPECT_EQ(graph->nodes[1].inputs[0], graph->nodes[0].outputs[0]);
  EXPECT_EQ(graph->nodes[2].inputs[0], graph->nodes[1].outputs[0]);
  std::set<TensorId> weights;
  for (const auto& node : graph->nodes) weights.insert(node.inputs[1]);
  EXPECT_EQ(weights.size(), 3U) << "every round has weights of its own";
  EXPECT_EQ(graph->nodes[2].name, "step.2.MatMul");
}

TEST(ReadModel, MistakesArePointedAt) {
  const std::string body = "inputs:\n  a: {type: float32, shape: [batch, 4]}\noutputs: [b]\n";
  EXPECT_EQ(error(body + "nodes: [{op: Rellu, in: [a], out: b}]\n"),
            "model.yaml:10:9: error: operator 'Rellu' (node 'Rellu') is not modelled [unknown-operator]\n"
            "  nodes: [{op: Rellu, in: [a], out: b}]\n"
            "          ^\n"
            "help: did you mean 'Relu'?\n");
  EXPECT_EQ(error(body + "nodes: [{op: Relu, in: [c], out: b}]\n"),
            "model.yaml:10:25: error: no tensor is named 'c' here [unknown-name]\n"
            "  nodes: [{op: Relu, in: [c], out: b}]\n"
            "                          ^\n"
            "help: did you mean 'a'?\n");
  EXPECT_EQ(error(body + "nodes: [{op: Softmax, in: [a], out: b, axes: 1}]\n"),
            "model.yaml:10:40: error: unknown key 'axes' in a node [unknown-key]\n"
            "  nodes: [{op: Softmax, in: [a], out: b, axes: 1}]\n"
            "                                         ^~~~\n"
            "help: did you mean 'axis'?\n");
  EXPECT_EQ(error(body + "nodes: [{op: Softmax, in: [a], out: b, axis: last}]\n"),
            "model.yaml:10:46: error: no dimension is named 'last' [unknown-name]\n"
            "  nodes: [{op: Softmax, in: [a], out: b, axis: last}]\n"
            "                                               ^~~~\n");
  EXPECT_EQ(error(body + "nodes: [{use: stepp, in: [a], out: b}]\n"),
            "model.yaml:10:9: error: no block is named 'stepp' [unknown-name]\n"
            "  nodes: [{use: stepp, in: [a], out: b}]\n"
            "          ^\n");
}

TEST(ReadModel, ABlockThatUsesItselfAndARepetitionBombEnd) {
  const std::string body =
      "inputs:\n  a: {type: float32, shape: [4]}\noutputs: [b]\nnodes: [{use: s, repeat: 1000, in: [a], out: "
      "b}]\nblocks:\n";
  EXPECT_NE(error(body + "  s: {in: [x], out: [z], nodes: [{use: s, in: [x], out: z}]}\n")
                .find("blocks nest more than 16 deep"),
            std::string::npos);
  EXPECT_NE(error(body + "  s: {in: [x], out: [z], nodes: [{use: t, repeat: 1000, in: [x], out: z}]}\n"
                         "  t: {in: [x], out: [z], nodes: [{op: Relu, in: [x], out: z}]}\n")
                .find("more than 100000"),
            std::string::npos);
  EXPECT_NE(error(body + "  s: {in: [x], out: [x], nodes: [{use: t, repeat: 10000, in: [x], out: z}]}\n"
                         "  t: {in: [x], out: [x], nodes: [{use: u, repeat: 10000, in: [x], out: z}]}\n"
                         "  u: {in: [x], out: [x], nodes: []}\n")
                .find("uses blocks more than 100000 times"),
            std::string::npos);
}

TEST(ReadModel, UsesMustFitTheirBlock) {
  const std::string body =
      "inputs:\n  a: {type: float32, shape: [4]}\noutputs: [b]\nblocks:\n"
      "  s: {dims: [size], in: [x], out: [z], weights: {w: [size]}, nodes: [{op: Add, in: [x, w], out: z, class: "
      "given}]}\n";
  EXPECT_NE(error(body + "nodes: [{use: s, in: [a], out: b}]\n").find("block 's' needs the dimension 'size'"),
            std::string::npos);
  EXPECT_NE(error(body + "nodes: [{use: s, dims: {size: 4, m: 2}, in: [a], out: b}]\n")
                .find("block 's' has the dimensions size"),
            std::string::npos);
  EXPECT_NE(error(body + "nodes: [{use: s, dims: {size: 4}, in: [a, a], out: b}]\n")
                .find("takes 1 tensors and makes 1; 2 and 1 are named"),
            std::string::npos);
  EXPECT_NE(error(body + "nodes: [{use: s, dims: {size: 4}, in: [a], out: b}]\n")
                .find("the use of this block states no class"),
            std::string::npos);
  EXPECT_EQ(error(body + "nodes: [{use: s, class: vector, dims: {size: 4}, in: [a], out: b}]\n"), "no error");
}

// torchvision's table: vit_b_16 has 86,567,656 parameters.
TEST(CatalogueModels, VitB16HasThePublishedParametersAndWork) {
  const auto graph = catalogue("vit-b-16");
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  for (const std::int64_t b : {1, 3}) {
    const auto shaped = infer_shapes(*graph, {{"batch", b}});
    ASSERT_TRUE(shaped.ok()) << render(shaped.errors());
    EXPECT_EQ(parameter_elements(*shaped), 86567656);
    const std::int64_t layer = 4 * 197 * 768 * 768 + 2 * 197 * 197 * 768 + 2 * 197 * 768 * 3072;
    EXPECT_EQ(multiply_accumulates(*shaped), b * (196 * 768 * 768 + 12 * layer + 768 * 1000));
    EXPECT_EQ(shaped->shape(graph->outputs[0]), (Shape{b, 1000}));
  }
}

// The published checkpoint of Llama-2-7B has 6,738,415,616 parameters.
TEST(CatalogueModels, Llama2PrefillHasThePublishedParametersAndWork) {
  const auto graph = catalogue("llama-2-7b-prefill");
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  for (const std::int64_t s : {1, 512}) {
    const auto shaped = infer_shapes(*graph, {{"batch", 2}, {"sequence", s}});
    ASSERT_TRUE(shaped.ok()) << render(shaped.errors());
    EXPECT_EQ(parameter_elements(*shaped), 6738415616);
    const std::int64_t layer = 4 * s * 4096 * 4096 + 2 * s * s * 4096 + 3 * s * 4096 * 11008;
    EXPECT_EQ(multiply_accumulates(*shaped), 2 * (32 * layer + 4096LL * 32000));
    EXPECT_EQ(shaped->shape(graph->outputs[0]), (Shape{2, 32000}));
  }
}

TEST(CatalogueModels, Llama2DecodeReadsItsCacheAndOneToken) {
  const auto graph = catalogue("llama-2-7b-decode");
  ASSERT_TRUE(graph.ok()) << render(graph.errors());
  for (const std::int64_t cached : {1, 700}) {
    const auto shaped = infer_shapes(*graph, {{"batch", 4}, {"sequence", cached}});
    ASSERT_TRUE(shaped.ok()) << render(shaped.errors());
    EXPECT_EQ(parameter_elements(*shaped), 6738415616);
    const std::int64_t layer = 4LL * 4096 * 4096 + 2 * (cached + 1) * 4096 + 3LL * 4096 * 11008;
    EXPECT_EQ(multiply_accumulates(*shaped), 4 * (32 * layer + 4096LL * 32000));
    EXPECT_EQ(shaped->shape(graph->outputs[0]), (Shape{4, 32000}));
  }
}

}  // namespace
}  // namespace plumbline::ingest
