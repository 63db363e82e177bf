#pragma once
// Graphs for tests, written out operator by operator.
#include <cstdint>
#include <string>

#include "ingest/graph.h"

namespace plumbline::lower {

struct EncoderShape {
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t ffn = 3072;
  std::int64_t vocabulary = 30522;
  std::int64_t positions = 512;
  bool erf_gelu = false;  ///< Gelu as Div, Erf, Add, Mul, Mul
};

/// An encoder of BERT's structure with the symbols "batch" and "sequence"; default sizes are BERT-base's.
[[nodiscard]] ingest::Graph sample_encoder(const EncoderShape& shape = {});

/// Conv 3x3 stride 2, depthwise 3x3, pointwise, with batch normalisation and ReLU, then pooling and a classifier.
[[nodiscard]] ingest::Graph sample_convolutions();

/// Adds nodes by hand.
class GraphWriter {
 public:
  explicit GraphWriter(std::string name);
  TensorId input(const std::string& name, ingest::ElementType type, std::vector<ingest::Dimension> shape);
  TensorId parameter(const std::string& name, const std::vector<std::int64_t>& shape);
  TensorId integers(const std::string& name, std::vector<std::int64_t> value);
  TensorId node(const std::string& op, const std::string& name, const std::vector<TensorId>& inputs,
                std::map<std::string, ingest::Attribute> attributes = {}, const std::string& layer_class = {});
  [[nodiscard]] ingest::Graph finish(const std::vector<TensorId>& outputs);

 private:
  TensorId tensor(ingest::Tensor tensor);
  ingest::Graph graph_;
};

}  // namespace plumbline::lower
