#include <gtest/gtest.h>

#include <set>

#include "ingest/graph_testing.h"
#include "ingest/graph_text.h"
#include "ingest/operators.h"

namespace plumbline::ingest {
namespace {

Result<ShapedGraph> infer(const OnnxBuilder& model, const Bindings& bindings = {}) {
  PL_TRY(const Graph graph, read_onnx("test.onnx", model.bytes()));
  return infer_shapes(graph, bindings);
}

std::string first_error(const Result<ShapedGraph>& result) {
  return result.ok() ? "no error" : result.errors().front().message + " [" + result.errors().front().kind + "]";
}

TensorId tensor(const ShapedGraph& shaped, const std::string& name) {
  for (std::size_t i = 0; i < shaped.graph.tensors.size(); ++i) {
    if (shaped.graph.tensors[i].name == name) return TensorId(i);
  }
  ADD_FAILURE() << "no tensor " << name;
  return TensorId(0);
}

Shape shape_of(const Result<ShapedGraph>& result, const std::string& name) {
  if (!result.ok()) {
    ADD_FAILURE() << first_error(result);
    return {};
  }
  return result->shape(tensor(*result, name));
}

TEST(Bindings, SymbolsAndAddressesGiveSizes) {
  OnnxBuilder model;
  model.input("x", {-1, -2, 4}).output("y");
  model.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(shape_of(infer(model, {{"a", 3}, {"b", 5}}), "y"), (Shape{3, 5, 4}));
  EXPECT_EQ(shape_of(infer(model, {{"x.0", 3}, {"b", 5}}), "y"), (Shape{3, 5, 4}));
  EXPECT_EQ(shape_of(infer(model, {{"a", 3}, {"b", 5}, {"x.2", 8}}), "y"), (Shape{3, 5, 8}));
}

TEST(Bindings, EveryUnboundDimensionIsNamed) {
  OnnxBuilder model;
  model.input("x", {-1, -2}).output("y");
  model.node("Relu", {"x"}, {"y"});
  const auto result = infer(model, {{"batch", 3}});
  ASSERT_FALSE(result.ok());
  ASSERT_EQ(result.errors().size(), 2U);
  EXPECT_EQ(result.errors()[0].message, "dimension 0 of input 'x' has no size");
  EXPECT_EQ(result.errors()[0].help, "bind 'a'; bound are: batch");
  EXPECT_EQ(result.errors()[1].help, "bind 'b'; bound are: batch");
}

TEST(Bindings, SizesMustBePositiveAndMustNotOverflow) {
  OnnxBuilder model;
  model.input("x", {-1, -2}).output("y");
  model.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(first_error(infer(model, {{"a", 0}, {"b", 1}})),
            "dimension 0 of input 'x' has size 0, outside 1 to 2^40 [onnx-shape]");
  EXPECT_EQ(first_error(infer(model, {{"a", -4}, {"b", 1}})),
            "dimension 0 of input 'x' has size -4, outside 1 to 2^40 [onnx-shape]");
  EXPECT_EQ(first_error(infer(model, {{"a", 1LL << 39}, {"b", 1LL << 39}})),
            "input 'x' would have the shape [549755813888, 549755813888], more than 2^50 elements [onnx-shape]");
  EXPECT_EQ(first_error(infer(model, {{"a", INT64_MAX}, {"b", INT64_MAX}})),
            "dimension 0 of input 'x' has size 9223372036854775807, outside 1 to 2^40 [onnx-shape]");
}

TEST(MatMul, StretchesLeadingAxesAndTreatsVectorsAsNumpyDoes) {
  struct Case {
    Shape a, b, out;
  };
  for (const auto& c : std::vector<Case>{{{2, 3, 4}, {4, 5}, {2, 3, 5}},
                                         {{7, 1, 3, 4}, {6, 4, 5}, {7, 6, 3, 5}},
                                         {{4}, {4, 5}, {5}},
                                         {{3, 4}, {4}, {3}},
                                         {{4}, {4}, {}}}) {
    OnnxBuilder model;
    model.input("x", c.a).input("w", c.b).output("y");
    model.node("MatMul", {"x", "w"}, {"y"});
    EXPECT_EQ(shape_of(infer(model), "y"), c.out);
  }
}

TEST(MatMul, MismatchedOperandsAreNamed) {
  OnnxBuilder model;
  model.input("x", {2, 3}).input("w", {4, 5}).output("y");
  model.node("MatMul", {"x", "w"}, {"y"}, "classifier");
  EXPECT_EQ(
      first_error(infer(model)),
      "node 'classifier' (MatMul): shapes [2, 3] and [4, 5] cannot be multiplied: 3 columns meet 4 rows [onnx-shape]");
}

TEST(Gemm, WrongRankIsAnError) {
  OnnxBuilder model;
  model.input("x", {2, 3, 4}).input("w", {4, 5}).output("y");
  model.node("Gemm", {"x", "w"}, {"y"}, "fc");
  EXPECT_EQ(first_error(infer(model)),
            "node 'fc' (Gemm): input 0 'x' must have rank 2, but its shape is [2, 3, 4] [onnx-shape]");
}

Shape conv_shape(const Shape& x, const Shape& w, const std::vector<std::pair<std::string, Shape>>& attributes,
                 std::int64_t group = 1, const std::string& auto_pad = "") {
  OnnxBuilder model;
  model.input("x", x).weight("w", w).output("y");
  auto& node = model.node("Conv", {"x", "w"}, {"y"});
  for (const auto& [name, value] : attributes) set_integers(node, name, value);
  set_integer(node, "group", group);
  if (!auto_pad.empty()) set_text(node, "auto_pad", auto_pad);
  return shape_of(infer(model), "y");
}

TEST(Conv, OutputFollowsTheWindowFormula) {
  EXPECT_EQ(conv_shape({1, 3, 224, 224}, {64, 3, 7, 7}, {{"strides", {2, 2}}, {"pads", {3, 3, 3, 3}}}),
            (Shape{1, 64, 112, 112}));
  EXPECT_EQ(conv_shape({1, 8, 9, 9}, {8, 1, 3, 3}, {{"dilations", {2, 2}}}, 8), (Shape{1, 8, 5, 5}));
  EXPECT_EQ(conv_shape({1, 1, 5, 8}, {2, 1, 3, 3}, {{"pads", {0, 1, 2, 3}}}), (Shape{1, 2, 5, 10}));
  EXPECT_EQ(conv_shape({1, 1, 7, 8}, {2, 1, 3, 3}, {{"strides", {2, 2}}}, 1, "SAME_UPPER"), (Shape{1, 2, 4, 4}));
  EXPECT_EQ(conv_shape({2, 4, 10}, {6, 4, 3}, {}), (Shape{2, 6, 8}));
}

TEST(Conv, WindowsThatDoNotFitAreErrors) {
  const auto error = [](const Shape& w, std::int64_t group, const Shape& strides) {
    OnnxBuilder model;
    model.input("x", {1, 4, 5, 5}).weight("w", w).output("y");
    auto& node = model.node("Conv", {"x", "w"}, {"y"}, "c");
    set_integer(node, "group", group);
    set_integers(node, "strides", strides);
    return first_error(infer(model));
  };
  EXPECT_EQ(error({2, 4, 7, 7}, 1, {1, 1}),
            "node 'c' (Conv): a window of 7 elements does not fit spatial axis 0 of 5 with 0 of padding [onnx-shape]");
  EXPECT_EQ(
      error({2, 3, 3, 3}, 1, {1, 1}),
      "node 'c' (Conv): an input of 4 channels in 1 groups does not fit weights of shape [2, 3, 3, 3] [onnx-shape]");
  EXPECT_EQ(error({2, 4, 3, 3}, 0, {1, 1}), "node 'c' (Conv): attribute 'group' is 0 [onnx-shape]");
  EXPECT_EQ(error({2, 4, 3, 3}, 1, {0, 1}),
            "node 'c' (Conv): attribute 'strides' holds 0, outside 1 to 1048576 [onnx-shape]");
  EXPECT_EQ(error({2, 4, 3, 3}, 1, {1}),
            "node 'c' (Conv): attribute 'strides' has 1 values, 2 are needed [onnx-shape]");
}

TEST(Pool, CeilModeDropsAWindowThatWouldStartInThePadding) {
  const auto pooled = [](std::int64_t extent, std::int64_t pad, bool ceil) {
    OnnxBuilder model;
    model.input("x", {1, 1, extent}).output("y");
    auto& node = model.node("MaxPool", {"x"}, {"y"});
    set_integers(node, "kernel_shape", {2});
    set_integers(node, "strides", {3});
    set_integers(node, "pads", {0, pad});
    set_integer(node, "ceil_mode", ceil ? 1 : 0);
    return shape_of(infer(model), "y")[2];
  };
  EXPECT_EQ(pooled(6, 0, false), 2);
  EXPECT_EQ(pooled(6, 0, true), 3 - 1 + 0);  // starts at 0, 3; a window at 6 would lie outside
  EXPECT_EQ(pooled(7, 0, true), 3);
  EXPECT_EQ(pooled(6, 1, true), 2);
}

// What exporters do: cut the shape of an input apart, compute with it, and reshape by the result.
TEST(Values, AreFollowedFromShapeToReshape) {
  OnnxBuilder model;
  model.input("x", {-1, -2, 12}).output("y");
  model.integers("zero", {0}, true)
      .integers("one", {1}, true)
      .integers("axis", {0})
      .integers("heads", {3})
      .integers("rest", {-1});
  model.integers("two", {2});
  model.node("Shape", {"x"}, {"dims"});
  model.node("Gather", {"dims", "zero"}, {"batch"});
  model.node("Gather", {"dims", "one"}, {"sequence"});
  model.node("Unsqueeze", {"batch", "axis"}, {"batch1"});
  model.node("Unsqueeze", {"sequence", "axis"}, {"sequence1"});
  model.node("Mul", {"sequence1", "two"}, {"sequence2"});
  set_integer(model.node("Concat", {"batch1", "sequence2", "heads", "rest"}, {"target"}), "axis", 0);
  model.node("Reshape", {"x", "target"}, {"y"});
  const auto shaped = infer(model, {{"a", 2}, {"b", 5}});
  EXPECT_EQ(shape_of(shaped, "y"), (Shape{2, 10, 3, 2}));
  EXPECT_EQ(shaped->values[tensor(*shaped, "target").at()], (std::vector<std::int64_t>{2, 10, 3, -1}));
}

TEST(Values, ThatTheModelComputesFromDataAreAnErrorWhereAShapeNeedsThem) {
  OnnxBuilder model;
  model.input("x", {4}, 7).input("data", {6}).output("y");
  model.node("Reshape", {"data", "x"}, {"y"}, "r");
  EXPECT_EQ(first_error(infer(model)),
            "node 'r' (Reshape): its target dimensions come from 'x', whose values are known only when the model runs "
            "[onnx-shape]");
}

TEST(Values, ArithmeticThatOverflowsOrDividesByZeroIsAnError) {
  const auto error = [](const std::string& op, std::int64_t a, std::int64_t b) {
    OnnxBuilder model;
    model.integers("p", {a}).integers("q", {b}).output("y");
    model.node(op, {"p", "q"}, {"y"}, "n");
    return first_error(infer(model));
  };
  EXPECT_EQ(error("Mul", INT64_MAX, 2), "node 'n' (Mul): its value does not fit 64 bits [onnx-shape]");
  EXPECT_EQ(error("Add", INT64_MAX, 1), "node 'n' (Add): its value does not fit 64 bits [onnx-shape]");
  EXPECT_EQ(error("Div", INT64_MIN, -1), "node 'n' (Div): its value does not fit 64 bits [onnx-shape]");
  EXPECT_EQ(error("Div", 7, 0), "node 'n' (Div): it divides by 0 [onnx-shape]");
  EXPECT_EQ(error("Mod", 7, 0), "node 'n' (Mod): it divides by 0 [onnx-shape]");
}

TEST(Values, IntegerDivisionTruncatesAndModuloTakesTheSignOfTheDivisor) {
  const auto value = [](const std::string& op, std::int64_t a, std::int64_t b) {
    OnnxBuilder model;
    model.integers("p", {a}).integers("q", {b}).output("y");
    model.node(op, {"p", "q"}, {"y"});
    const auto shaped = infer(model);
    return shaped->values[tensor(*shaped, "y").at()]->front();
  };
  EXPECT_EQ(value("Div", -7, 2), -3);
  EXPECT_EQ(value("Mod", -7, 3), 2);
  EXPECT_EQ(value("Mod", 7, -3), -2);
}

TEST(Reshape, ElementsMustBeKept) {
  OnnxBuilder model;
  model.input("x", {2, 3}).integers("target", {4, -1}).output("y");
  model.node("Reshape", {"x", "target"}, {"y"}, "r");
  EXPECT_EQ(first_error(infer(model)),
            "node 'r' (Reshape): a tensor of shape [2, 3] cannot take the shape [4, -1] [onnx-shape]");
}

TEST(Slice, ClampsOpenEndsAndStepsBackwards) {
  const auto sliced = [](std::int64_t start, std::int64_t end, std::int64_t step) {
    OnnxBuilder model;
    model.input("x", {10})
        .integers("s", {start})
        .integers("e", {end})
        .integers("a", {0})
        .integers("t", {step})
        .output("y");
    model.node("Slice", {"x", "s", "e", "a", "t"}, {"y"});
    return shape_of(infer(model), "y")[0];
  };
  EXPECT_EQ(sliced(0, INT64_MAX, 1), 10);
  EXPECT_EQ(sliced(-3, INT64_MAX, 1), 3);
  EXPECT_EQ(sliced(1, 9, 3), 3);
  EXPECT_EQ(sliced(-1, INT64_MIN, -1), 10);
  EXPECT_EQ(sliced(9, 0, -4), 3);
  EXPECT_EQ(sliced(5, 2, 1), 0);
  EXPECT_EQ(sliced(0, 10, INT64_MAX), 1);
  EXPECT_EQ(sliced(9, INT64_MIN, INT64_MIN), 1);
}

TEST(Einsum, LettersAndEllipsisGiveTheShape) {
  const auto shape = [](const std::string& equation, const Shape& a, const Shape& b) {
    OnnxBuilder model;
    model.input("a", a).input("b", b).output("y");
    set_text(model.node("Einsum", {"a", "b"}, {"y"}), "equation", equation);
    return shape_of(infer(model), "y");
  };
  EXPECT_EQ(shape("bhqd,bhkd->bhqk", {2, 4, 5, 8}, {2, 4, 6, 8}), (Shape{2, 4, 5, 6}));
  EXPECT_EQ(shape("...ij,...jk->...ik", {7, 2, 3}, {7, 3, 4}), (Shape{7, 2, 4}));
  EXPECT_EQ(shape("ij,jk", {2, 3}, {3, 4}), (Shape{2, 4}));
}

TEST(Operators, UnknownOnesAreNamedWithTheNearest) {
  OnnxBuilder model;
  model.input("x", {2}).output("y");
  model.node("Rellu", {"x"}, {"y"}, "act");
  const auto result = infer(model);
  EXPECT_EQ(first_error(result), "operator 'Rellu' (node 'act') is not modelled [unknown-operator]");
  EXPECT_EQ(result.errors().front().help, "did you mean 'Relu'?");
}

TEST(Operators, TheTableInTheDocumentationListsExactlyTheRows) {
  const std::string page = file_bytes(std::string(PLUMBLINE_SOURCE_DIR) + "/docs/ingest.md");
  const auto begin = page.find("| group | operators |");
  const std::string table = page.substr(begin, page.find("\n\n", begin) - begin);
  std::set<std::string> listed;
  for (std::size_t at = table.find('`'); at != std::string::npos; at = table.find('`', table.find('`', at + 1) + 1)) {
    listed.insert(table.substr(at + 1, table.find('`', at + 1) - at - 1));
  }
  std::set<std::string> rows;
  for (const auto& row : operators()) {
    rows.insert(row.domain.empty() ? std::string(row.name) : std::string(row.domain) + "." + std::string(row.name));
  }
  EXPECT_EQ(listed, rows);
}

TEST(Lstm, LayoutAndDirectionsDecideTheShapes) {
  OnnxBuilder model;
  model.input("x", {7, 2, 3}).weight("w", {2, 20, 3}).weight("r", {2, 20, 5}).output("y").output("h").output("c");
  auto& node = model.node("LSTM", {"x", "w", "r"}, {"y", "h", "c"});
  set_text(node, "direction", "bidirectional");
  set_integer(node, "hidden_size", 5);
  const auto shaped = infer(model);
  EXPECT_EQ(shape_of(shaped, "y"), (Shape{7, 2, 2, 5}));
  EXPECT_EQ(shape_of(shaped, "h"), (Shape{2, 2, 5}));
  EXPECT_EQ(shape_of(shaped, "c"), (Shape{2, 2, 5}));
}

}  // namespace
}  // namespace plumbline::ingest
