#pragma once
// The model as a graph of ONNX-like operators. Dimensions may be symbolic ("batch", "sequence") until they are bound.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/source.h"

namespace plumbline::ingest {

/// Element types by ONNX name; the number is ONNX's TensorProto.DataType.
enum class ElementType : std::int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  bfloat16 = 16,
  float8_e4m3fn = 17,
  float8_e4m3fnuz = 18,
  float8_e5m2 = 19,
  float8_e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
};

/// A known size, or a symbol still to be bound. An unknown size without a name has an empty symbol and value -1.
struct Dimension {
  std::int64_t value = -1;
  std::string symbol;
  [[nodiscard]] bool known() const { return value >= 0; }
  friend bool operator==(const Dimension&, const Dimension&) = default;
};

using Shape = std::vector<std::int64_t>;

struct Tensor {
  std::string name;
  ElementType type = ElementType::undefined;
  std::optional<std::vector<Dimension>> shape;  ///< declared shape; absent when not stated
  bool parameter = false;  ///< an initializer or Constant node: a part of the model, not of a request
  bool has_data = false;   ///< the file carries its values (false in topology-only models)
  std::optional<std::vector<std::int64_t>> value;  ///< small integer constants, for shape arithmetic
  std::optional<std::vector<double>> real_value;   ///< small floating constants, for shape arithmetic (Resize scales)
  Span span;
};

/// ConstantOfShape carries its tensor attribute as two scalars: `value` (integer or real) and `value_type`
/// (ElementType).
using Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                               std::vector<std::string>>;

struct Node {
  std::string op;      ///< operator, e.g. "MatMul"
  std::string domain;  ///< "" for the standard domain
  std::string name;
  std::string layer_class;       ///< stated by a catalogue model ("ffn"); empty: lower/ derives it
  std::vector<TensorId> inputs;  ///< an invalid id is an omitted optional input
  std::vector<TensorId> outputs;
  std::map<std::string, Attribute> attributes;
  Span span;
};

struct Graph {
  std::string name;
  std::string family;  ///< e.g. "encoder", "cnn"
  std::int64_t opset = 0;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;  ///< in topological order
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  bool has_weights = false;  ///< real trained values, so quality could be measured
  SourceRef source;
};

/// Symbol → size. An input dimension without a symbol is addressed as "input.axis", e.g. "pixels.0".
using Bindings = std::map<std::string, std::int64_t>;

/// A graph whose every tensor that lower/ needs has a static shape.
struct ShapedGraph {
  Graph graph;
  std::vector<std::optional<Shape>> shapes;                      ///< by TensorId
  std::vector<std::optional<std::vector<std::int64_t>>> values;  ///< known integer contents, by TensorId
  [[nodiscard]] const Shape& shape(TensorId id) const { return *shapes[id.at()]; }
};

/// Reads an ONNX model (.onnx bytes). Errors: onnx-syntax, onnx-graph, unknown-operator, too-large, …
Result<Graph> read_onnx(const std::string& path_as_written, const std::string& bytes);

/// Binds symbols and infers every shape, with propagation of small integer values (Shape, Gather, Concat, …).
/// Errors: onnx-shape (unbound, negative, overflowing, wrong rank), unknown-operator. Source: ONNX operator semantics.
Result<ShapedGraph> infer_shapes(const Graph& graph, const Bindings& bindings);

}  // namespace plumbline::ingest
