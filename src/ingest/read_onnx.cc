#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/printable.h"
#include "ingest/graph.h"
#include "ingest/graph_limits.h"
#include "ingest/graph_text.h"
#include "ingest/link_graph.h"
#include "ingest/onnx.pb.h"
#include "ingest/operators.h"
#include "ingest/wire_limits.h"
#include "ingest/wire_tensor.h"

namespace plumbline::ingest {

namespace {

constexpr std::size_t kMostErrors = 20;
// Version of the file format, IR_VERSION of onnx.proto; 13 is that of ONNX 1.20.
constexpr std::int64_t kLastIrVersion = 13;

// AttributeProto.AttributeType.
enum WireKind : std::int32_t {
  kUnstated = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
};

// Files of IR version 1 leave the type out; then the field that is filled says it.
std::int32_t kind_of(const wire::Attribute& attribute) {
  if (attribute.type() != kUnstated) return attribute.type();
  if (attribute.has_f()) return kFloat;
  if (attribute.has_i()) return kInt;
  if (attribute.has_s()) return kString;
  if (attribute.has_t()) return kTensor;
  if (attribute.floats_size() > 0) return kFloats;
  if (attribute.ints_size() > 0) return kInts;
  return attribute.strings_size() > 0 ? kStrings : kUnstated;
}

class Reader {
 public:
  Reader(const wire::Model& model, SourceRef source) : model_(model), span_{source} {
    named_.source = std::move(source);
  }
  Result<Graph> read();

 private:
  void fail(Diagnostic error) {
    if (errors_.size() < kMostErrors) errors_.push_back(std::move(error));
  }
  void fail(std::string message) { fail(make_error("onnx-graph", span_, std::move(message))); }
  std::string text(const std::string& bytes, std::string_view what);

  void check_versions();
  void add_parameter(const wire::Tensor& tensor, const std::string& what, const std::string& name);
  void add_input(const wire::Value& value);
  void add_declared(const wire::Value& value);
  std::vector<Dimension> read_dimensions(const wire::Value& value, bool input);
  void add_node(const wire::Node& node);
  void add_constant(const wire::Node& wire, const NamedNode& named);
  void add_attribute(const wire::Attribute& attribute, Node& node);
  void add_fill(const wire::Tensor& tensor, Node& node);

  const wire::Model& model_;
  Span span_;
  NamedGraph named_;
  std::unordered_set<std::string> initializers_;
  Diagnostics errors_;
};

// Names end up in messages and in JSON: they must be text.
std::string Reader::text(const std::string& bytes, std::string_view what) {
  auto unshown = find_unshown(bytes);
  if (!unshown && bytes.find_first_of("\n\t") != std::string::npos) unshown = Unshown{0, "a line break or a tab"};
  if (!unshown) return bytes;
  if (!unshown->is_utf8) {
    fail(make_error("onnx-syntax", span_, fmt::format("{} is not UTF-8 text", what)));
  } else {
    fail(make_error("onnx-syntax", span_,
                    fmt::format("{} holds {}, which cannot be shown: '{}'", what, unshown->name, printable(bytes)),
                    "control characters and those that reorder text are not accepted"));
  }
  return "?";
}

void Reader::check_versions() {
  if (model_.ir_version() > kLastIrVersion) {
    fail(make_error(
        "unsupported", span_,
        fmt::format("the file has IR version {}; up to {} are understood", model_.ir_version(), kLastIrVersion)));
  }
  bool found = false;
  for (const auto& set : model_.opset_import()) {
    if (!set.domain().empty() && set.domain() != "ai.onnx") continue;
    if (found) fail("the model imports the standard operator set twice");
    found = true;
    named_.opset = set.version();
  }
  if (!found) fail("the model does not say which operator set it uses");
}

void Reader::add_parameter(const wire::Tensor& wire, const std::string& what, const std::string& name) {
  auto tensor = read_wire_tensor(wire, what, span_);
  if (!tensor.ok()) return fail(tensor.errors().front());
  tensor->name = name;
  named_.parameters.push_back(*std::move(tensor));
}

std::vector<Dimension> Reader::read_dimensions(const wire::Value& value, bool input) {
  std::vector<Dimension> dimensions;
  const auto& shape = value.type().tensor_type().shape();
  if (shape.dim_size() > static_cast<int>(kMaxRank)) {
    fail(make_error("onnx-shape", span_,
                    fmt::format("tensor {} has {} axes; at most {} are accepted", quoted(value.name()),
                                shape.dim_size(), kMaxRank)));
    return dimensions;
  }
  for (const auto& wire : shape.dim()) {
    Dimension dimension;
    if (!wire.has_dim_value()) {
      dimension.symbol = text(wire.dim_param(), "the name of a dimension");
    } else if (wire.dim_value() >= 0) {
      dimension.value = wire.dim_value();
    } else if (input) {
      fail(make_error(
          "onnx-shape", span_,
          fmt::format("dimension {} of input {} is {}", dimensions.size(), quoted(value.name()), wire.dim_value()),
          "export the model with a named dimension where the size is open"));
    }
    dimensions.push_back(std::move(dimension));
  }
  return dimensions;
}

void Reader::add_input(const wire::Value& value) {
  if (initializers_.count(value.name()) > 0) return;  // up to IR version 3 initializers were listed as inputs too
  Tensor tensor;
  tensor.name = text(value.name(), "the name of an input");
  tensor.span = span_;
  if (!value.type().has_tensor_type()) {
    return fail(make_error("unsupported", span_, fmt::format("input {} is not a tensor", quoted(tensor.name))));
  }
  const auto& type = value.type().tensor_type();
  tensor.type = static_cast<ElementType>(type.elem_type());
  if (type.has_shape()) tensor.shape = read_dimensions(value, true);
  named_.inputs.push_back(std::move(tensor));
}

void Reader::add_declared(const wire::Value& value) {
  if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape()) return;
  Tensor tensor;
  tensor.name = value.name();
  tensor.type = static_cast<ElementType>(value.type().tensor_type().elem_type());
  tensor.shape = read_dimensions(value, false);
  named_.declared.push_back(std::move(tensor));
}

// ConstantOfShape: a tensor of one element. Values of types that are not followed stay out; the type is kept.
void Reader::add_fill(const wire::Tensor& wire, Node& node) {
  const auto tensor = read_wire_tensor(wire, fmt::format("the value of {}", node_text(node)), span_);
  if (!tensor.ok()) return fail(tensor.errors().front());
  node.attributes["value_type"] = static_cast<std::int64_t>(tensor->type);
  if (tensor->value && tensor->value->size() == 1) node.attributes["value"] = tensor->value->front();
  if (tensor->real_value && tensor->real_value->size() == 1) node.attributes["value"] = tensor->real_value->front();
}

void Reader::add_attribute(const wire::Attribute& attribute, Node& node) {
  const std::string name = text(attribute.name(), "the name of an attribute");
  Attribute value;
  switch (kind_of(attribute)) {
    case kFloat:
      value = static_cast<double>(attribute.f());
      break;
    case kInt:
      value = attribute.i();
      break;
    case kString:
      value = text(attribute.s(), "an attribute");
      break;
    case kFloats:
      value = std::vector<double>(attribute.floats().begin(), attribute.floats().end());
      break;
    case kInts:
      value = std::vector<std::int64_t>(attribute.ints().begin(), attribute.ints().end());
      break;
    case kStrings: {
      std::vector<std::string> list;
      for (const auto& item : attribute.strings()) list.push_back(text(item, "an attribute"));
      value = std::move(list);
      break;
    }
    case kTensor:
      if (node.op == "ConstantOfShape" && name == "value") return add_fill(attribute.t(), node);
      [[fallthrough]];
    default:
      // An operator without a row gets a better message from link_graph().
      if (find_operator(node.domain, node.op) == nullptr) return;
      return fail(
          fmt::format("{}: attribute {} is of a kind that is not modelled here", node_text(node), quoted(name)));
  }
  if (!node.attributes.emplace(name, std::move(value)).second) {
    fail(fmt::format("{} has the attribute {} twice", node_text(node), quoted(name)));
  }
}

// Constants are parameters, exactly as initializers are: some exporters keep every weight in a Constant node.
void Reader::add_constant(const wire::Node& wire, const NamedNode& named) {
  const std::string what =
      fmt::format("constant {}", quoted(named.outputs.empty() ? std::string() : named.outputs.front()));
  if (named.outputs.size() != 1 || wire.attribute_size() != 1 || wire.input_size() != 0) {
    return fail(fmt::format("{} must have one output, one attribute and no inputs", what));
  }
  const wire::Attribute& attribute = wire.attribute(0);
  if (attribute.has_t()) return add_parameter(attribute.t(), what, named.outputs.front());
  Tensor tensor;
  tensor.name = named.outputs.front();
  tensor.span = span_;
  tensor.parameter = true;
  tensor.has_data = true;
  const auto size = [&](std::int64_t count) { tensor.shape = std::vector<Dimension>{{count, {}}}; };
  tensor.shape.emplace();
  switch (kind_of(attribute)) {
    case kFloat:
      tensor.type = ElementType::float32;
      tensor.real_value = {static_cast<double>(attribute.f())};
      break;
    case kInt:
      tensor.type = ElementType::int64;
      tensor.value = {attribute.i()};
      break;
    case kFloats:
      tensor.type = ElementType::float32;
      tensor.real_value.emplace(attribute.floats().begin(), attribute.floats().end());
      size(attribute.floats_size());
      break;
    case kInts:
      tensor.type = ElementType::int64;
      tensor.value.emplace(attribute.ints().begin(), attribute.ints().end());
      size(attribute.ints_size());
      break;
    case kString:
    case kStrings:
      tensor.type = ElementType::string;
      if (kind_of(attribute) == kStrings) size(attribute.strings_size());
      break;
    default:
      return fail(make_error("unsupported", span_, fmt::format("{} is of a kind that is not read", what)));
  }
  named_.parameters.push_back(std::move(tensor));
}

void Reader::add_node(const wire::Node& wire) {
  NamedNode named;
  Node& node = named.node;
  node.name = text(wire.name(), "the name of a node");
  node.op = text(wire.op_type(), "the operator of a node");
  node.domain = text(wire.domain() == "ai.onnx" ? std::string() : wire.domain(), "the domain of a node");
  node.span = span_;
  for (const auto& name : wire.input()) named.inputs.push_back(text(name, "the name of a tensor"));
  for (const auto& name : wire.output()) named.outputs.push_back(text(name, "the name of a tensor"));
  if (node.op == "Constant" && node.domain.empty()) return add_constant(wire, named);
  if (node.name.empty() && !named.outputs.empty()) node.name = named.outputs.front();
  for (const auto& attribute : wire.attribute()) add_attribute(attribute, node);
  named_.nodes.push_back(std::move(named));
}

Result<Graph> Reader::read() {
  check_versions();
  const wire::Graph& graph = model_.graph();
  named_.name = text(graph.name(), "the name of the graph");
  if (graph.sparse_initializer_size() > 0) {
    fail(make_error("unsupported", span_, "the model holds sparse initializers"));
  }
  for (const auto& tensor : graph.initializer()) {
    const std::string name = text(tensor.name(), "the name of an initializer");
    initializers_.insert(name);
    add_parameter(tensor, fmt::format("initializer {}", quoted(name)), name);
  }
  for (const auto& value : graph.input()) add_input(value);
  for (const auto& node : graph.node()) add_node(node);
  for (const auto& value : graph.output()) named_.outputs.push_back(text(value.name(), "the name of an output"));
  for (const auto* list : {&graph.value_info(), &graph.output()}) {
    for (const auto& value : *list) add_declared(value);
  }
  if (!errors_.empty()) return errors_;
  return link_graph(std::move(named_));
}

}  // namespace

Result<Graph> read_onnx(const std::string& path_as_written, const std::string& bytes) {
  const auto source = std::make_shared<const Source>(Source{path_as_written, {}});
  const Span span{source};
  if (bytes.empty()) return make_error("empty-file", span, "the file is empty");
  if (bytes.size() > kMaxModelBytes) {
    return make_error("too-large", span,
                      fmt::format("the file has {} bytes; at most {} are read", bytes.size(), kMaxModelBytes));
  }
  PL_TRY_STATUS(check_wire_limits(bytes, span));
  wire::Model model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return make_error("onnx-syntax", span, "not an ONNX model: the protobuf bytes cannot be decoded",
                      "is the file truncated, or of another format?");
  }
  // Other protobuf files, and random bytes, decode to a message without these.
  if (model.ir_version() < 1 || !model.has_graph()) {
    return make_error(
        "onnx-syntax", span,
        model.ir_version() < 1 ? "not an ONNX model: it has no IR version" : "not an ONNX model: it holds no graph",
        "is the file truncated, or of another format?");
  }
  return Reader(model, source).read();
}

}  // namespace plumbline::ingest
