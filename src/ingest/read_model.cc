#include "ingest/read_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ingest/expression.h"
#include "ingest/graph_limits.h"
#include "ingest/graph_text.h"
#include "ingest/link_graph.h"
#include "ingest/operators.h"
#include "ingest/shape_math.h"

namespace plumbline::ingest {

namespace {

constexpr int kMostDepth = 16;                // blocks within blocks
constexpr std::int64_t kMostRepeats = 10000;  // rounds of one use
// Nodes, uses of blocks, and weights with constants, of one model: repetition multiplies.
constexpr std::size_t kMostNodes = 100000;
constexpr std::size_t kMostUses = 100000;
constexpr std::size_t kMostParameters = 400000;
constexpr double kLargestReal = 1e30;
constexpr std::string_view kGiven = "given";  // a node takes the class that the use of its block states

/// Where names are resolved: the dimensions and tensors seen inside one use of a block.
struct Scope {
  std::string path;  // "layer.0.attention"
  Names dims;
  std::map<std::string, std::string> tensors;  // local name → name in the graph
  std::string layer_class;                     // stated by the use
  int depth = 0;
};

struct Block {
  const Value* body = nullptr;
  std::vector<std::string> dims, in, out;
};

class ModelReader {
 public:
  Result<Graph> read(const Value& document);

 private:
  void read_head(MapReader& map);
  void read_dims(const Value& value, Names& dims);
  void read_inputs(const Value& value, Scope& scope);
  void read_blocks(const Value& value);
  void read_weights(const Value& value, Scope& scope);
  void read_nodes(const Value& value, Scope& scope);
  void read_node(const Value& value, const std::string& op, MapReader& map, Scope& scope);
  void read_use(const std::string& block_name, MapReader& map, Scope& scope);
  void enter(const Block& block, Scope inner, const std::vector<std::string>& inputs,
             std::vector<std::string>& outputs);
  void read_attributes(const Operator& row, MapReader& map, const Scope& scope, Node& node);
  std::optional<Attribute> read_attribute(const Value& value, AttributeKind kind, const Scope& scope);
  std::string read_operand(const Value& value, Scope& scope);
  std::string constant(Tensor tensor, const Span& span);
  void add_parameter(Tensor tensor);
  std::vector<std::string> read_outputs(const Value& value);
  std::vector<std::string> read_name_list(const Value& value, std::string_view what);
  std::string read_class(MapReader& map, const Scope& scope);

  std::optional<std::int64_t> expression(const Value& value, const Names& dims);
  std::optional<std::vector<std::int64_t>> expressions(const Value& value, const Names& dims, std::string_view what);
  void fail(std::string_view kind, const Span& span, std::string message, std::string help = {}) {
    errors_.push_back(make_error(kind, span, std::move(message), std::move(help)));
  }
  // Repetition would repeat a mistake: reading stops after the first faulty item.
  [[nodiscard]] bool failed() const { return !errors_.empty(); }

  NamedGraph named_;
  Names global_dims_;
  std::map<std::string, Block> blocks_;
  Diagnostics errors_;
  std::size_t constants_ = 0;
  std::size_t uses_ = 0;
};

std::string joined(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::optional<std::int64_t> ModelReader::expression(const Value& value, const Names& dims) {
  if (value.kind != ValueKind::scalar || value.quoted) {
    fail("wrong-type", value.span, "expected a whole number or an expression of dimensions");
    return std::nullopt;
  }
  auto result = evaluate(value.text, dims, value.span);
  if (result.ok()) return *result;
  errors_.push_back(result.errors().front());
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> ModelReader::expressions(const Value& value, const Names& dims,
                                                                  std::string_view what) {
  if (!expect_list(value, what, errors_)) return std::nullopt;
  std::vector<std::int64_t> out;
  for (const auto& item : value.items) {
    const auto number = expression(item, dims);
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

std::vector<std::string> ModelReader::read_name_list(const Value& value, std::string_view what) {
  std::vector<std::string> names;
  if (!expect_list(value, what, errors_)) return names;
  for (const auto& item : value.items) {
    const auto name = read_text(item, errors_);
    if (!name) continue;
    if (!is_name(*name))
      fail("bad-value", item.span, fmt::format("'{}' is not a name", *name),
           "letters, digits and underscores, a letter first");
    if (std::find(names.begin(), names.end(), *name) != names.end())
      fail("duplicate-id", item.span, fmt::format("'{}' is named twice", *name));
    names.push_back(*name);
  }
  return names;
}

void ModelReader::read_dims(const Value& value, Names& dims) {
  if (value.kind != ValueKind::map) return fail("wrong-type", value.span, "dims must be a map of names and sizes");
  for (const auto& entry : value.entries) {
    if (!is_name(entry.key)) fail("bad-value", entry.span, fmt::format("'{}' is not a name", entry.key));
    const auto size = expression(entry.value, dims);
    if (!size) continue;
    if (*size < 0 || *size > kMaxExtent)
      fail("bad-value", entry.value.span, fmt::format("dimension {} is {}, outside 0 to 2^40", entry.key, *size));
    dims.emplace(entry.key, *size);
  }
}

void ModelReader::read_head(MapReader& map) {
  if (const Value* version = map.require("plumbline")) (void)read_integer(*version, 1, 1, errors_);
  if (const Value* kind = map.require("kind")) (void)read_choice(*kind, {"model"}, errors_);
  if (const Value* name = map.require("name")) named_.name = read_text(*name, errors_).value_or("");
  if (const Value* family = map.require("family")) named_.family = read_text(*family, errors_).value_or("");
  if (const Value* source = map.require("source")) (void)read_text(*source, errors_);
  if (const Value* opset = map.require("opset"))
    named_.opset = read_integer(*opset, kFirstOpset, kLastOpset, errors_).value_or(kLastOpset);
}

// A dimension of an input is an expression, or a symbol: a name that `dims` does not know.
void ModelReader::read_inputs(const Value& value, Scope& scope) {
  if (value.kind != ValueKind::map) return fail("wrong-type", value.span, "inputs must be a map of names and tensors");
  for (const auto& entry : value.entries) {
    Tensor tensor;
    tensor.name = entry.key;
    tensor.span = entry.span;
    MapReader map(entry.value, fmt::format("input {}", entry.key), errors_);
    if (const Value* type = map.require("type")) {
      if (const auto name = read_choice(*type, element_type_names(), errors_)) tensor.type = *element_type_named(*name);
    }
    const Value* shape = map.require("shape");
    map.finish();
    if (shape == nullptr || !expect_list(*shape, "a shape", errors_)) continue;
    tensor.shape.emplace();
    for (const auto& item : shape->items) {
      Dimension dimension;
      if (item.kind == ValueKind::scalar && is_name(item.text) && scope.dims.count(item.text) == 0) {
        dimension.symbol = item.text;
      } else {
        dimension.value = expression(item, scope.dims).value_or(1);
      }
      tensor.shape->push_back(std::move(dimension));
    }
    scope.tensors[entry.key] = entry.key;
    named_.inputs.push_back(std::move(tensor));
  }
}

void ModelReader::read_blocks(const Value& value) {
  if (value.kind != ValueKind::map) return fail("wrong-type", value.span, "blocks must be a map of names and blocks");
  for (const auto& entry : value.entries) {
    Block block;
    block.body = &entry.value;
    MapReader map(entry.value, fmt::format("block {}", entry.key), errors_);
    if (const Value* dims = map.find("dims")) block.dims = read_name_list(*dims, "dims of a block");
    for (const auto& dim : block.dims) {
      if (global_dims_.count(dim) > 0)
        fail("duplicate-id", entry.span, fmt::format("dimension '{}' of the block is one of the model", dim));
    }
    if (const Value* in = map.require("in")) block.in = read_name_list(*in, "in");
    if (const Value* out = map.require("out")) block.out = read_name_list(*out, "out");
    (void)map.find("weights");
    (void)map.require("nodes");
    map.finish();
    blocks_.emplace(entry.key, std::move(block));
  }
}

void ModelReader::read_weights(const Value& value, Scope& scope) {
  if (value.kind != ValueKind::map) return fail("wrong-type", value.span, "weights must be a map of names and shapes");
  for (const auto& entry : value.entries) {
    const auto shape = expressions(entry.value, scope.dims, "the shape of a weight");
    if (!shape) return;
    Tensor tensor;
    tensor.name = joined(scope.path, entry.key);
    tensor.type = ElementType::float32;
    tensor.parameter = true;
    tensor.span = entry.span;
    tensor.shape.emplace();
    for (const std::int64_t extent : *shape) {
      if (extent < 1 || extent > kMaxExtent)
        return fail("onnx-shape", entry.value.span,
                    fmt::format("weight {} has the shape {}, with a dimension outside 1 to 2^40", quoted(tensor.name),
                                shape_text(*shape)));
      tensor.shape->push_back({extent, {}});
    }
    if (!element_count(*shape))
      return fail(
          "onnx-shape", entry.value.span,
          fmt::format("weight {} has the shape {}, more than 2^50 elements", quoted(tensor.name), shape_text(*shape)));
    if (!scope.tensors.emplace(entry.key, tensor.name).second)
      return fail("duplicate-id", entry.span, fmt::format("'{}' is already a tensor here", entry.key));
    add_parameter(std::move(tensor));
  }
}

void ModelReader::add_parameter(Tensor tensor) {
  if (named_.parameters.size() >= kMostParameters)
    return fail("too-large", tensor.span,
                fmt::format("the model has more than {} weights and constants", kMostParameters));
  named_.parameters.push_back(std::move(tensor));
}

std::string ModelReader::constant(Tensor tensor, const Span& span) {
  tensor.name = fmt::format("constant.{}", ++constants_);
  tensor.parameter = true;
  tensor.has_data = true;
  tensor.span = span;
  std::string name = tensor.name;
  add_parameter(std::move(tensor));
  return name;
}

// A name of a tensor; a list of whole numbers or one number, which become constants; "" for an omitted input.
std::string ModelReader::read_operand(const Value& value, Scope& scope) {
  Tensor tensor;
  tensor.shape.emplace();
  if (value.kind == ValueKind::list) {
    tensor.type = ElementType::int64;
    tensor.value = expressions(value, scope.dims, "a constant");
    if (!tensor.value) return {};
    tensor.shape->push_back({static_cast<std::int64_t>(tensor.value->size()), {}});
    return constant(std::move(tensor), value.span);
  }
  if (value.kind != ValueKind::scalar) {
    fail("wrong-type", value.span, "an input is the name of a tensor, a number or a list of whole numbers");
    return {};
  }
  if (value.quoted && value.text.empty()) return {};
  if (is_name(value.text)) {
    const auto found = scope.tensors.find(value.text);
    if (found != scope.tensors.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [local, name] : scope.tensors) known.push_back(local);
    fail("unknown-name", value.span, fmt::format("no tensor is named '{}' here", value.text),
         suggest(value.text, known));
    return {};
  }
  if (value.text.find('.') != std::string::npos) {
    const auto number = read_number(value, -kLargestReal, kLargestReal, errors_);
    tensor.type = ElementType::float32;
    tensor.real_value = {number.value_or(0)};
  } else {
    const auto number = expression(value, scope.dims);
    tensor.type = ElementType::int64;
    tensor.value = {number.value_or(0)};
  }
  return constant(std::move(tensor), value.span);
}

std::vector<std::string> ModelReader::read_outputs(const Value& value) {
  if (value.kind == ValueKind::list) return read_name_list(value, "out");
  Value list;
  list.kind = ValueKind::list;
  list.items.push_back(value);
  return read_name_list(list, "out");
}

std::string ModelReader::read_class(MapReader& map, const Scope& scope) {
  const Value* value = map.find("class");
  if (value == nullptr) return {};
  const auto text = read_text(*value, errors_);
  if (!text) return {};
  if (*text != kGiven) return *text;
  if (scope.layer_class.empty())
    fail("missing-key", value->span, "class is 'given', but the use of this block states no class");
  return scope.layer_class;
}

std::optional<Attribute> ModelReader::read_attribute(const Value& value, AttributeKind kind, const Scope& scope) {
  switch (kind) {
    case AttributeKind::integer:
      if (const auto number = expression(value, scope.dims)) return *number;
      return std::nullopt;
    case AttributeKind::real:
    case AttributeKind::number:
      if (const auto number = read_number(value, -kLargestReal, kLargestReal, errors_)) return *number;
      return std::nullopt;
    case AttributeKind::text:
      if (const auto text = read_text(value, errors_)) return *text;
      return std::nullopt;
    case AttributeKind::integers:
      if (auto list = expressions(value, scope.dims, "a list attribute")) return *std::move(list);
      return std::nullopt;
    case AttributeKind::reals:
    case AttributeKind::texts:
      break;
  }
  fail("unsupported", value.span,
       fmt::format("an attribute that is {} cannot be written here", attribute_kind_text(kind)));
  return std::nullopt;
}

void ModelReader::read_attributes(const Operator& row, MapReader& map, const Scope& scope, Node& node) {
  for (const auto& attribute : row.attributes) {
    const Value* value = map.find(attribute.name);
    if (value == nullptr) continue;
    if (auto read = read_attribute(*value, attribute.kind, scope))
      node.attributes.emplace(std::string(attribute.name), *std::move(read));
  }
}

void ModelReader::read_node(const Value& value, const std::string& op, MapReader& map, Scope& scope) {
  NamedNode named;
  Node& node = named.node;
  node.op = op;
  node.span = value.span;
  const Value* name = map.find("name");
  node.name = joined(scope.path, name == nullptr ? op : read_text(*name, errors_).value_or(op));
  node.layer_class = read_class(map, scope);
  const Value* in = map.require("in");
  if (in != nullptr && expect_list(*in, "in", errors_)) {
    for (const auto& item : in->items) named.inputs.push_back(read_operand(item, scope));
  }
  const Operator* row = find_operator("", op);
  if (row == nullptr) {
    errors_.push_back(unknown_operator(node));
    return;
  }
  read_attributes(*row, map, scope, node);
  const Value* out = map.require("out");
  map.finish();
  if (out == nullptr || failed()) return;
  for (const auto& local : read_outputs(*out)) {
    const std::string made = joined(scope.path, local);
    if (!scope.tensors.emplace(local, made).second)
      fail("duplicate-id", out->span, fmt::format("'{}' is already a tensor here", local));
    named.outputs.push_back(made);
  }
  if (named_.nodes.size() >= kMostNodes)
    return fail("too-large", value.span, fmt::format("the model has more than {} nodes", kMostNodes));
  named_.nodes.push_back(std::move(named));
}

void ModelReader::enter(const Block& block, Scope inner, const std::vector<std::string>& inputs,
                        std::vector<std::string>& outputs) {
  for (std::size_t i = 0; i < block.in.size(); ++i) inner.tensors[block.in[i]] = inputs[i];
  if (const Value* weights = block.body->find("weights")) read_weights(*weights, inner);
  if (!failed()) read_nodes(*block.body->find("nodes"), inner);
  outputs.clear();
  for (const auto& local : block.out) {
    const auto found = inner.tensors.find(local);
    if (found == inner.tensors.end()) {
      if (!failed())
        fail("unknown-name", block.body->span, fmt::format("the block makes no tensor '{}', which it promises", local));
      return;
    }
    outputs.push_back(found->second);
  }
}

void ModelReader::read_use(const std::string& block_name, MapReader& map, Scope& scope) {
  const Span span = map.span();
  const auto found = blocks_.find(block_name);
  if (found == blocks_.end()) {
    std::vector<std::string> known;
    for (const auto& [name, block] : blocks_) known.push_back(name);
    return fail("unknown-name", span, fmt::format("no block is named '{}'", block_name), suggest(block_name, known));
  }
  const Block& block = found->second;
  if (scope.depth >= kMostDepth)
    return fail("too-large", span, fmt::format("blocks nest more than {} deep", kMostDepth),
                "does a block use itself?");
  Scope inner;
  inner.depth = scope.depth + 1;
  inner.layer_class = read_class(map, scope);
  inner.dims = global_dims_;
  const Value* name = map.find("name");
  const std::string path =
      joined(scope.path, name == nullptr ? block_name : read_text(*name, errors_).value_or(block_name));
  std::vector<std::string> inputs;
  if (const Value* in = map.require("in"); in != nullptr && expect_list(*in, "in", errors_)) {
    for (const auto& item : in->items) inputs.push_back(read_operand(item, scope));
  }
  std::int64_t rounds = 1;
  const Value* repeat = map.find("repeat");
  if (repeat != nullptr) rounds = expression(*repeat, scope.dims).value_or(1);
  const Value* given = map.find("dims");
  const Value* out = map.require("out");
  map.finish();
  if (out == nullptr || failed()) return;
  std::size_t stated = 0;
  for (const auto& dim : block.dims) {
    const Value* size = given == nullptr ? nullptr : given->find(dim);
    if (size == nullptr)
      return fail("missing-key", span, fmt::format("block '{}' needs the dimension '{}'", block_name, dim));
    const auto number = expression(*size, scope.dims);
    if (!number) return;
    inner.dims[dim] = *number;
    ++stated;
  }
  if (given != nullptr && given->entries.size() != stated)
    return fail("unknown-key", given->span,
                fmt::format("block '{}' has the dimensions {}", block_name, fmt::join(block.dims, ", ")));
  const auto locals = read_outputs(*out);
  if (failed()) return;
  if (inputs.size() != block.in.size() || locals.size() != block.out.size()) {
    return fail("bad-value", span,
                fmt::format("block '{}' takes {} tensors and makes {}; {} and {} are named", block_name,
                            block.in.size(), block.out.size(), inputs.size(), locals.size()));
  }
  if (rounds < 1 || rounds > kMostRepeats)
    return fail("bad-value", repeat->span, fmt::format("repeat is {}, outside 1 to {}", rounds, kMostRepeats));
  if (rounds > 1 && block.out.size() > block.in.size())
    return fail("bad-value", repeat->span, "a repeated block must take what it makes");
  std::vector<std::string> made;
  for (std::int64_t round = 0; round < rounds && !failed(); ++round) {
    if (++uses_ > kMostUses)
      return fail("too-large", span, fmt::format("the model uses blocks more than {} times", kMostUses));
    inner.path = repeat == nullptr ? path : fmt::format("{}.{}", path, round);
    enter(block, inner, inputs, made);
    std::copy(made.begin(), made.end(), inputs.begin());  // what one round makes, the next one takes first
  }
  if (failed()) return;
  for (std::size_t i = 0; i < locals.size(); ++i) {
    if (!scope.tensors.emplace(locals[i], made[i]).second)
      fail("duplicate-id", out->span, fmt::format("'{}' is already a tensor here", locals[i]));
  }
}

void ModelReader::read_nodes(const Value& value, Scope& scope) {
  if (!expect_list(value, "nodes", errors_)) return;
  for (const auto& item : value.items) {
    if (failed()) return;
    MapReader map(item, "a node", errors_);
    const Value* op = map.find("op");
    const Value* use = map.find("use");
    if (failed()) return;
    if ((op == nullptr) == (use == nullptr))
      return fail("missing-key", item.span, "a node states either 'op' or 'use'");
    const auto what = read_text(op != nullptr ? *op : *use, errors_);
    if (!what) return;
    if (op != nullptr) {
      read_node(item, *what, map, scope);
    } else {
      read_use(*what, map, scope);
    }
  }
}

Result<Graph> ModelReader::read(const Value& document) {
  named_.source = document.span.source;
  MapReader map(document, "a model", errors_);
  read_head(map);
  Scope scope;
  if (const Value* dims = map.find("dims")) read_dims(*dims, global_dims_);
  scope.dims = global_dims_;
  if (const Value* inputs = map.require("inputs")) read_inputs(*inputs, scope);
  if (const Value* blocks = map.find("blocks")) read_blocks(*blocks);
  const Value* weights = map.find("weights");
  const Value* nodes = map.require("nodes");
  const Value* outputs = map.require("outputs");
  map.finish();
  if (failed()) return errors_;
  if (weights != nullptr) read_weights(*weights, scope);
  if (!failed()) read_nodes(*nodes, scope);
  if (!failed() && expect_list(*outputs, "outputs", errors_)) {
    for (const auto& item : outputs->items) named_.outputs.push_back(read_operand(item, scope));
  }
  if (failed()) return errors_;
  return link_graph(std::move(named_));
}

}  // namespace

Result<Graph> read_model_yaml(const Value& document) { return ModelReader().read(document); }

}  // namespace plumbline::ingest
