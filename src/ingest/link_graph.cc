#include "ingest/link_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ingest/graph_limits.h"
#include "ingest/graph_text.h"
#include "ingest/operators.h"

namespace plumbline::ingest {

namespace {

constexpr std::size_t kMostErrors = 20;
// A cycle of more nodes is named by its first ones.
constexpr std::size_t kShownCycle = 8;
// Suggestions compare with every name; beyond this many they are not worth their time.
constexpr std::size_t kMostCandidates = 10000;

class Linker {
 public:
  explicit Linker(NamedGraph named) : named_(std::move(named)) {}
  Result<Graph> link();

 private:
  void check_opset();
  void add_tensor(Tensor tensor, std::string_view what);
  void add_outputs(std::size_t index);
  void check_node(NamedNode& named);
  void check_attributes(NamedNode& named, const Operator& row);
  void resolve_inputs(std::size_t index);
  void resolve_graph_outputs();
  void apply_declared();
  void name_nodes();
  Status sort_nodes();
  [[nodiscard]] Diagnostic cycle(const std::vector<std::size_t>& waiting) const;
  void derive_parameters();
  void judge_weights();
  void fail(Diagnostic error) {
    if (errors_.size() < kMostErrors) errors_.push_back(std::move(error));
  }
  void fail(const Span& span, std::string message, std::string help = {}) {
    fail(make_error("onnx-graph", span, std::move(message), std::move(help)));
  }
  [[nodiscard]] std::string nearest_tensor(const std::string& name) const;

  NamedGraph named_;
  Graph graph_;
  Diagnostics errors_;
  std::unordered_map<std::string, TensorId> ids_;  // looked up, never walked: its order decides nothing
  std::vector<std::int32_t> maker_;                // by tensor: index of the node that makes it, -1 for none
};

void Linker::check_opset() {
  if (named_.opset >= kFirstOpset && named_.opset <= kLastOpset) return;
  fail(make_error("unsupported", Span{named_.source},
                  fmt::format("the model uses operator set {}; sets {} to {} are understood", named_.opset, kFirstOpset,
                              kLastOpset)));
}

void Linker::add_tensor(Tensor tensor, std::string_view what) {
  if (tensor.name.empty()) return fail(tensor.span, fmt::format("{} without a name", what));
  const TensorId id(graph_.tensors.size());
  if (!ids_.emplace(tensor.name, id).second) {
    return fail(tensor.span, fmt::format("{} {} has a name that is already taken", what, quoted(tensor.name)));
  }
  graph_.tensors.push_back(std::move(tensor));
  maker_.push_back(-1);
}

void Linker::add_outputs(std::size_t index) {
  const NamedNode& named = named_.nodes[index];
  Node& node = graph_.nodes[index];
  for (const auto& name : named.outputs) {
    if (name.empty()) {  // an omitted optional output
      node.outputs.emplace_back();
      continue;
    }
    const TensorId id(graph_.tensors.size());
    const auto [at, added] = ids_.emplace(name, id);
    if (!added && errors_.size() < kMostErrors) {
      const std::int32_t other = maker_[at->second.at()];
      fail(node.span, fmt::format("tensor {} is made by {} and by {}", quoted(name), node_text(node),
                                  other >= 0 ? node_text(graph_.nodes[static_cast<std::size_t>(other)])
                                             : "an input or parameter of the model"));
    }
    if (!added) {
      node.outputs.emplace_back();
      continue;
    }
    Tensor tensor;
    tensor.name = name;
    tensor.span = node.span;
    graph_.tensors.push_back(std::move(tensor));
    maker_.push_back(static_cast<std::int32_t>(index));
    node.outputs.push_back(id);
  }
}

// Real attributes may be written as whole numbers; nothing else converts.
bool adapt(Attribute& attribute, AttributeKind kind) {
  if (kind == AttributeKind::real || kind == AttributeKind::number) {
    if (const auto* integer = std::get_if<std::int64_t>(&attribute);
        integer != nullptr && kind == AttributeKind::real) {
      attribute = static_cast<double>(*integer);
    }
    return std::holds_alternative<double>(attribute) || std::holds_alternative<std::int64_t>(attribute);
  }
  switch (kind) {
    case AttributeKind::integer:
      return std::holds_alternative<std::int64_t>(attribute);
    case AttributeKind::text:
      return std::holds_alternative<std::string>(attribute);
    case AttributeKind::integers:
      return std::holds_alternative<std::vector<std::int64_t>>(attribute);
    case AttributeKind::reals:
      return std::holds_alternative<std::vector<double>>(attribute);
    default:
      return std::holds_alternative<std::vector<std::string>>(attribute);
  }
}

void Linker::check_attributes(NamedNode& named, const Operator& row) {
  for (auto& [name, attribute] : named.node.attributes) {
    const auto known = std::find_if(row.attributes.begin(), row.attributes.end(),
                                    [&key = name](const AttributeRow& r) { return r.name == key; });
    if (known == row.attributes.end()) {
      std::vector<std::string> names;
      for (const auto& r : row.attributes) names.emplace_back(r.name);
      fail(
          named.node.span,
          fmt::format("{} has the attribute {}, which its operator does not know", node_text(named.node), quoted(name)),
          suggest(name, names));
    } else if (!adapt(attribute, known->kind)) {
      fail(named.node.span, fmt::format("{}: attribute {} must be {}", node_text(named.node), quoted(name),
                                        attribute_kind_text(known->kind)));
    }
  }
}

void Linker::check_node(NamedNode& named) {
  if (errors_.size() >= kMostErrors) return;
  const Operator* row = find_operator(named.node.domain, named.node.op);
  if (row == nullptr) return fail(unknown_operator(named.node));
  check_attributes(named, *row);
  const auto count_text = [](std::size_t low, std::size_t high) {
    if (low == high) return fmt::format("{}", low);
    return high >= kAnyNumber ? fmt::format("{} or more", low) : fmt::format("{} to {}", low, high);
  };
  const std::size_t inputs = named.inputs.size();
  if (inputs < row->min_inputs || inputs > row->max_inputs) {
    return fail(named.node.span, fmt::format("{} has {} inputs, {} are expected", node_text(named.node), inputs,
                                             count_text(row->min_inputs, row->max_inputs)));
  }
  const std::size_t required = row->max_inputs >= kAnyNumber ? inputs : row->min_inputs;
  for (std::size_t i = 0; i < required; ++i) {
    if (!named.inputs[i].empty()) continue;
    return fail(named.node.span, fmt::format("{} omits its input {}, which is required", node_text(named.node), i));
  }
  if (named.outputs.empty() || named.outputs.size() > row->max_outputs) {
    fail(named.node.span, fmt::format("{} has {} outputs, {} are expected", node_text(named.node), named.outputs.size(),
                                      count_text(1, row->max_outputs)));
  }
}

std::string Linker::nearest_tensor(const std::string& name) const {
  if (graph_.tensors.size() > kMostCandidates) return {};
  std::vector<std::string> names;
  for (const auto& tensor : graph_.tensors) names.push_back(tensor.name);
  const auto near = closest(name, names);
  return near.empty() ? std::string() : suggest(name, names);
}

void Linker::resolve_inputs(std::size_t index) {
  Node& node = graph_.nodes[index];
  const auto& names = named_.nodes[index].inputs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    TensorId id;
    if (!names[i].empty()) {
      const auto found = ids_.find(names[i]);
      if (found == ids_.end()) {
        if (errors_.size() < kMostErrors) {
          fail(node.span, fmt::format("{} reads {}, which nothing makes", node_text(node), quoted(names[i])),
               nearest_tensor(names[i]));
        }
      } else {
        id = found->second;
      }
    }
    node.inputs.push_back(id);
  }
}

void Linker::resolve_graph_outputs() {
  if (named_.outputs.empty()) fail(Span{named_.source}, "the model has no outputs");
  std::unordered_set<std::string_view> seen;
  for (const auto& name : named_.outputs) {
    const auto found = ids_.find(name);
    if (found == ids_.end()) {
      fail(Span{named_.source}, fmt::format("nothing makes the model's output {}", quoted(name)), nearest_tensor(name));
    } else if (!seen.insert(name).second) {
      fail(Span{named_.source}, fmt::format("the model names its output {} twice", quoted(name)));
    } else {
      graph_.outputs.push_back(found->second);
    }
  }
}

void Linker::apply_declared() {
  for (auto& declared : named_.declared) {
    const auto found = ids_.find(declared.name);
    if (found == ids_.end()) continue;  // left behind by an exporter's clean-up
    Tensor& tensor = graph_.tensors[found->second.at()];
    if (maker_[found->second.at()] < 0) continue;
    tensor.type = declared.type;
    tensor.shape = std::move(declared.shape);
  }
}

// Kernels are addressed by node names, so each needs one of its own: an empty name becomes that of the first output,
// a repeated one gets a number.
void Linker::name_nodes() {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, std::size_t> repeats;
  for (std::size_t i = 0; i < named_.nodes.size(); ++i) {
    Node& node = named_.nodes[i].node;
    const auto& outputs = named_.nodes[i].outputs;
    if (node.name.empty() && !outputs.empty()) node.name = outputs.front();
    if (node.name.empty()) node.name = fmt::format("{}#{}", node.op, i + 1);
    if (taken.insert(node.name).second) continue;
    const std::string written = node.name;
    std::size_t& suffix = repeats.try_emplace(written, 1).first->second;
    do {
      node.name = fmt::format("{}#{}", written, ++suffix);
    } while (!taken.insert(node.name).second);
  }
}

Diagnostic Linker::cycle(const std::vector<std::size_t>& waiting) const {
  // Every waiting node reads something another waiting node makes; following those from the first must come round.
  std::size_t at = 0;
  while (waiting[at] == 0) ++at;
  std::vector<std::size_t> path;
  std::unordered_map<std::size_t, std::size_t> place;
  while (place.emplace(at, path.size()).second) {
    path.push_back(at);
    for (const TensorId id : graph_.nodes[at].inputs) {
      if (!id.valid() || maker_[id.at()] < 0) continue;
      const auto maker = static_cast<std::size_t>(maker_[id.at()]);
      if (waiting[maker] == 0) continue;
      at = maker;
      break;
    }
  }
  path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(place.at(at)));
  std::reverse(path.begin(), path.end());  // in the direction of the data
  // Start at the node written first, so that the message does not depend on where the search began.
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  std::string text;
  for (std::size_t i = 0; i < path.size() && i < kShownCycle; ++i) text += quoted(graph_.nodes[path[i]].name) + " → ";
  if (path.size() > kShownCycle) text += fmt::format("… ({} nodes) → ", path.size());
  return make_error("onnx-graph", graph_.nodes[path.front()].span,
                    fmt::format("the graph has a cycle: {}{}", text, quoted(graph_.nodes[path.front()].name)));
}

Status Linker::sort_nodes() {
  const std::size_t count = graph_.nodes.size();
  std::vector<std::size_t> waiting(count, 0);  // inputs not yet made
  std::vector<std::vector<std::size_t>> readers(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (const TensorId id : graph_.nodes[i].inputs) {
      if (!id.valid() || maker_[id.at()] < 0) continue;
      ++waiting[i];
      readers[static_cast<std::size_t>(maker_[id.at()])].push_back(i);
    }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < count; ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  std::vector<Node> sorted;
  sorted.reserve(count);
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const std::size_t reader : readers[next]) {
      if (--waiting[reader] == 0) ready.push(reader);
    }
  }
  if (order.size() < count) return cycle(waiting);
  for (const std::size_t i : order) sorted.push_back(std::move(graph_.nodes[i]));
  graph_.nodes = std::move(sorted);
  return Done{};
}

void Linker::derive_parameters() {
  for (const auto& node : graph_.nodes) {
    bool constant = false;
    bool data = node.op != "ConstantOfShape";  // a fill stands in for values the file does not carry
    for (const TensorId id : node.inputs) {
      if (!id.valid()) continue;
      constant = graph_.tensors[id.at()].parameter;
      data = data && graph_.tensors[id.at()].has_data;
      if (!constant) break;
    }
    for (const TensorId id : node.outputs) {
      if (!id.valid()) continue;
      graph_.tensors[id.at()].parameter = constant;
      graph_.tensors[id.at()].has_data = constant && data;
    }
  }
}

// Types of dimensions, indices and masks, never of weights.
bool is_index_type(std::int64_t type) {
  return type == static_cast<std::int64_t>(ElementType::int64) ||
         type == static_cast<std::int64_t>(ElementType::boolean);
}

// Real weights: nearly all elements of weights come with values. Zero states of recurrent layers are fills too, so up
// to a hundredth may lack them.
void Linker::judge_weights() {
  double with_data = 0;
  double without = 0;
  for (const auto& tensor : graph_.tensors) {
    if (!tensor.parameter || !tensor.shape || tensor.shape->empty()) continue;
    if (maker_[ids_.at(tensor.name).at()] >= 0) continue;
    if (is_index_type(static_cast<std::int64_t>(tensor.type))) continue;
    double elements = 1;
    for (const auto& dimension : *tensor.shape) elements *= static_cast<double>(dimension.value);
    (tensor.has_data ? with_data : without) += elements;
  }
  for (const auto& node : graph_.nodes) {
    if (node.op != "ConstantOfShape" || !node.outputs[0].valid()) continue;
    if (!graph_.tensors[node.outputs[0].at()].parameter) continue;
    const auto type = node.attributes.find("value_type");
    if (type != node.attributes.end() && is_index_type(std::get<std::int64_t>(type->second))) continue;
    const auto& dimensions = graph_.tensors[node.inputs[0].at()].value;
    if (!dimensions || dimensions->empty()) continue;
    double elements = 1;
    for (const std::int64_t extent : *dimensions) elements *= static_cast<double>(extent);
    without += elements;
  }
  graph_.has_weights = with_data > 0 && without * 100 <= with_data;
}

Result<Graph> Linker::link() {
  graph_.name = named_.name;
  graph_.family = named_.family;
  graph_.opset = named_.opset;
  graph_.source = named_.source;
  check_opset();
  if (named_.nodes.empty()) fail(Span{named_.source}, "the model has no nodes");
  if (named_.nodes.size() > kMaxGraphNodes) {
    return make_error(
        "too-large", Span{named_.source},
        fmt::format("the model has {} nodes; at most {} are accepted", named_.nodes.size(), kMaxGraphNodes));
  }
  for (auto& tensor : named_.inputs) {
    const std::size_t before = graph_.tensors.size();
    add_tensor(std::move(tensor), "input");
    if (graph_.tensors.size() > before) graph_.inputs.emplace_back(before);
  }
  for (auto& tensor : named_.parameters) add_tensor(std::move(tensor), "parameter");
  name_nodes();
  for (auto& named : named_.nodes) {
    check_node(named);
    graph_.nodes.push_back(std::move(named.node));
  }
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) add_outputs(i);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) resolve_inputs(i);
  resolve_graph_outputs();
  apply_declared();
  if (!errors_.empty()) return errors_;
  PL_TRY_STATUS(sort_nodes());
  // maker_ speaks of the written order from here on; only whether there is a maker is still asked.
  derive_parameters();
  judge_weights();
  return std::move(graph_);
}

}  // namespace

Result<Graph> link_graph(NamedGraph named) { return Linker(std::move(named)).link(); }

}  // namespace plumbline::ingest
