#include "lower/sample_graphs.h"

#include <fmt/format.h>

namespace plumbline::lower {

using ingest::Attribute;
using ingest::Dimension;
using ingest::ElementType;

GraphWriter::GraphWriter(std::string name) {
  graph_.name = std::move(name);
  graph_.opset = 20;
}

TensorId GraphWriter::tensor(ingest::Tensor made) {
  graph_.tensors.push_back(std::move(made));
  return TensorId(graph_.tensors.size() - 1);
}

TensorId GraphWriter::input(const std::string& name, ElementType type, std::vector<Dimension> shape) {
  ingest::Tensor made;
  made.name = name;
  made.type = type;
  made.shape = std::move(shape);
  const TensorId id = tensor(std::move(made));
  graph_.inputs.push_back(id);
  return id;
}

TensorId GraphWriter::parameter(const std::string& name, const std::vector<std::int64_t>& shape) {
  ingest::Tensor made;
  made.name = name;
  made.type = ElementType::float32;
  made.parameter = true;
  made.shape.emplace();
  for (const std::int64_t size : shape) made.shape->push_back({size, {}});
  return tensor(std::move(made));
}

TensorId GraphWriter::integers(const std::string& name, std::vector<std::int64_t> value) {
  ingest::Tensor made;
  made.name = name;
  made.type = ElementType::int64;
  made.parameter = true;
  made.shape.emplace();
  made.shape->push_back({static_cast<std::int64_t>(value.size()), {}});
  made.value = std::move(value);
  return tensor(std::move(made));
}

TensorId GraphWriter::node(const std::string& op, const std::string& name, const std::vector<TensorId>& inputs,
                           std::map<std::string, Attribute> attributes, const std::string& layer_class) {
  ingest::Tensor made;
  made.name = name + ":0";
  const TensorId id = tensor(std::move(made));
  ingest::Node node;
  node.op = op;
  node.name = name;
  node.layer_class = layer_class;
  node.inputs = inputs;
  node.outputs = {id};
  node.attributes = std::move(attributes);
  graph_.nodes.push_back(std::move(node));
  return id;
}

ingest::Graph GraphWriter::finish(const std::vector<TensorId>& outputs) {
  graph_.outputs = outputs;
  return std::move(graph_);
}

namespace {

class EncoderWriter {
 public:
  explicit EncoderWriter(const EncoderShape& shape) : shape_(shape), graph_("encoder") {}

  ingest::Graph write() {
    const Dimension batch{-1, "batch"};
    const Dimension sequence{-1, "sequence"};
    const TensorId ids = graph_.input("input_ids", ElementType::int64, {batch, sequence});
    mask_ = graph_.input("mask", ElementType::float32, {batch, {1, {}}, {1, {}}, sequence});
    TensorId x = graph_.node("Gather", "embeddings/word",
                             {graph_.parameter("word_table", {shape_.vocabulary, shape_.hidden}), ids});
    x = norm("embeddings/norm", x);
    for (std::int64_t l = 0; l < shape_.layers; ++l) x = layer(fmt::format("layer.{}", l), x);
    return graph_.finish({x});
  }

 private:
  TensorId linear(const std::string& name, TensorId x, std::int64_t in, std::int64_t out, const std::string& cls) {
    const TensorId product = graph_.node("MatMul", name, {x, graph_.parameter(name + "/weight", {in, out})}, {}, cls);
    return graph_.node("Add", name + "/bias", {product, graph_.parameter(name + "/bias_vector", {out})});
  }

  TensorId norm(const std::string& name, TensorId x) {
    return graph_.node(
        "LayerNormalization", name,
        {x, graph_.parameter(name + "/scale", {shape_.hidden}), graph_.parameter(name + "/shift", {shape_.hidden})},
        {{"axis", std::int64_t{-1}}});
  }

  TensorId heads(const std::string& name, TensorId x, std::vector<std::int64_t> order) {
    const TensorId split =
        graph_.node("Reshape", name + "/split",
                    {x, graph_.integers(name + "/split_shape", {0, 0, shape_.heads, shape_.hidden / shape_.heads})});
    return graph_.node("Transpose", name + "/transpose", {split}, {{"perm", std::move(order)}});
  }

  TensorId gelu(const std::string& name, TensorId x) {
    if (!shape_.erf_gelu) return graph_.node("Gelu", name, {x});
    const TensorId scaled = graph_.node("Div", name + "/div", {x, graph_.parameter(name + "/root_two", {})});
    const TensorId erf = graph_.node("Erf", name + "/erf", {scaled});
    const TensorId one = graph_.node("Add", name + "/add", {erf, graph_.parameter(name + "/one", {})});
    const TensorId product = graph_.node("Mul", name + "/mul", {x, one});
    return graph_.node("Mul", name + "/half", {product, graph_.parameter(name + "/a_half", {})});
  }

  TensorId layer(const std::string& name, TensorId x) {
    const std::int64_t h = shape_.hidden;
    const TensorId q = heads(name + "/q", linear(name + "/query", x, h, h, "projection"), {0, 2, 1, 3});
    const TensorId k = heads(name + "/k", linear(name + "/key", x, h, h, "projection"), {0, 2, 3, 1});
    const TensorId v = heads(name + "/v", linear(name + "/value", x, h, h, "projection"), {0, 2, 1, 3});
    TensorId scores = graph_.node("MatMul", name + "/scores", {q, k});
    scores = graph_.node("Div", name + "/scale", {scores, graph_.parameter(name + "/root_size", {})});
    scores = graph_.node("Add", name + "/mask", {scores, mask_});
    const TensorId share = graph_.node("Softmax", name + "/softmax", {scores}, {{"axis", std::int64_t{-1}}});
    TensorId context = graph_.node("MatMul", name + "/context", {share, v});
    context = graph_.node("Transpose", name + "/merge", {context}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
    context = graph_.node("Reshape", name + "/join", {context, graph_.integers(name + "/join_shape", {0, 0, h})});
    TensorId y = linear(name + "/attention_out", context, h, h, "projection");
    y = norm(name + "/attention_norm", graph_.node("Add", name + "/attention_residual", {y, x}));
    TensorId z = gelu(name + "/gelu", linear(name + "/up", y, h, shape_.ffn, "ffn"));
    z = linear(name + "/down", z, shape_.ffn, h, "ffn");
    return norm(name + "/ffn_norm", graph_.node("Add", name + "/ffn_residual", {z, y}));
  }

  const EncoderShape& shape_;
  GraphWriter graph_;
  TensorId mask_;
};

}  // namespace

ingest::Graph sample_encoder(const EncoderShape& shape) { return EncoderWriter(shape).write(); }

ingest::Graph sample_convolutions() {
  GraphWriter graph("convolutions");
  TensorId x = graph.input("pixels", ElementType::float32, {{-1, "batch"}, {3, {}}, {32, {}}, {32, {}}});
  using List = std::vector<std::int64_t>;
  const auto normalised = [&](const std::string& name, TensorId in, std::int64_t channels) {
    const TensorId out =
        graph.node("BatchNormalization", name,
                   {in, graph.parameter(name + "/s", {channels}), graph.parameter(name + "/b", {channels}),
                    graph.parameter(name + "/m", {channels}), graph.parameter(name + "/v", {channels})});
    return graph.node("Relu", name + "/relu", {out});
  };
  x = graph.node("Conv", "stem", {x, graph.parameter("stem/w", {16, 3, 3, 3})},
                 {{"kernel_shape", List{3, 3}}, {"strides", List{2, 2}}, {"pads", List{1, 1, 1, 1}}});
  x = normalised("stem/bn", x, 16);
  x = graph.node("Conv", "depth", {x, graph.parameter("depth/w", {16, 1, 3, 3})},
                 {{"kernel_shape", List{3, 3}}, {"pads", List{1, 1, 1, 1}}, {"group", std::int64_t{16}}});
  x = normalised("depth/bn", x, 16);
  x = graph.node("Conv", "point", {x, graph.parameter("point/w", {32, 16, 1, 1}), graph.parameter("point/b", {32})},
                 {{"kernel_shape", List{1, 1}}});
  x = graph.node("GlobalAveragePool", "pool", {x});
  x = graph.node("Flatten", "flat", {x});
  x = graph.node("Gemm", "classify", {x, graph.parameter("classify/w", {10, 32}), graph.parameter("classify/b", {10})},
                 {{"transB", std::int64_t{1}}});
  return graph.finish({x});
}

}  // namespace plumbline::lower
