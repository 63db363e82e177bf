#include "lower/facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "lower/kernel.h"

namespace plumbline::lower {
namespace {

struct FormatRow {
  std::string_view name;
  std::int64_t bits;
};
constexpr FormatRow kFormats[] = {
#define FORMAT_BITS(name, bits) {name, bits},
#include "lower/stored_formats.inc"
#undef FORMAT_BITS
};

// Elements of a tensor; beyond this a byte or operation count could leave 64 bits.
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

Status count_elements(const ingest::ShapedGraph& shaped, GraphFacts& facts) {
  const auto& tensors = shaped.graph.tensors;
  facts.elements.assign(tensors.size(), 0);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (!shaped.shapes[t]) continue;
    std::int64_t count = 1;
    for (const std::int64_t size : *shaped.shapes[t]) {
      if (__builtin_mul_overflow(count, size, &count) || count > kMostElements) {
        return make_error("overflow", tensors[t].span,
                          fmt::format("tensor '{}' has more than 2^48 elements", tensors[t].name));
      }
    }
    facts.elements[t] = count;
  }
  return Done{};
}

Status find_rows(const ingest::Graph& graph, GraphFacts& facts) {
  Diagnostics errors;
  facts.rows.reserve(graph.nodes.size());
  for (const ingest::Node& node : graph.nodes) {
    facts.rows.push_back(find_operator(node.domain, node.op));
    if (facts.rows.back() == nullptr) {
      errors.push_back(make_error("unknown-operator", node.span,
                                  fmt::format("node '{}' is a {}{}{}, which is not modelled on an accelerator",
                                              node.name, node.domain, node.domain.empty() ? "" : ".", node.op),
                                  suggest(node.op, operator_names())));
    }
  }
  if (!errors.empty()) return errors;
  return Done{};
}

void find_constants(const ingest::ShapedGraph& shaped, GraphFacts& facts) {
  const auto& graph = shaped.graph;
  facts.constant.assign(graph.tensors.size(), false);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    facts.constant[t] = graph.tensors[t].parameter || (t < shaped.values.size() && shaped.values[t].has_value());
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    const bool known = std::all_of(node.inputs.begin(), node.inputs.end(),
                                   [&](TensorId id) { return !id.valid() || facts.constant[id.at()]; });
    // Shape and Size depend on the bound shape only, whatever the contents.
    const bool shape_only = node.op == "Shape" || node.op == "Size";
    if (!known && !shape_only) continue;
    for (const TensorId id : node.outputs) {
      if (id.valid()) facts.constant[id.at()] = true;
    }
  }
}

void find_roots(const ingest::Graph& graph, GraphFacts& facts) {
  const std::size_t count = graph.tensors.size();
  facts.root.resize(count);
  facts.producer.assign(count, -1);
  for (std::size_t t = 0; t < count; ++t) facts.root[t] = static_cast<std::int32_t>(t);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    for (const TensorId id : node.outputs) {
      if (id.valid()) facts.producer[id.at()] = static_cast<std::int32_t>(n);
    }
    if (facts.rows[n]->lowering != Lowering::view || node.inputs.empty() || !node.inputs[0].valid()) continue;
    if (!node.outputs.empty() && node.outputs[0].valid()) {
      facts.root[node.outputs[0].at()] = facts.root[node.inputs[0].at()];
    }
  }
  facts.leaves.assign(count, false);
  facts.enters.assign(count, false);
  for (const TensorId id : graph.outputs) facts.leaves[static_cast<std::size_t>(facts.root[id.at()])] = true;
  for (const TensorId id : graph.inputs) {
    if (!graph.tensors[id.at()].parameter) facts.enters[id.at()] = true;
  }
}

void find_consumers(const ingest::Graph& graph, GraphFacts& facts) {
  facts.consumer_start.assign(graph.tensors.size() + 1, 0);
  const auto each = [&](auto&& visit) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      if (facts.rows[n]->lowering == Lowering::view || facts.folded(graph.nodes[n])) continue;
      const auto& inputs = graph.nodes[n].inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].valid() || facts.constant[inputs[i].at()]) continue;
        const std::int32_t root = facts.root[inputs[i].at()];
        const bool repeated = std::any_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(i),
                                          [&](TensorId id) { return id.valid() && facts.root[id.at()] == root; });
        if (!repeated) visit(static_cast<std::size_t>(root), static_cast<std::int32_t>(n));
      }
    }
  };
  each([&](std::size_t root, std::int32_t) { ++facts.consumer_start[root + 1]; });
  for (std::size_t t = 1; t < facts.consumer_start.size(); ++t) facts.consumer_start[t] += facts.consumer_start[t - 1];
  facts.consumer_list.resize(static_cast<std::size_t>(facts.consumer_start.back()));
  std::vector<std::int32_t> next(facts.consumer_start.begin(), facts.consumer_start.end() - 1);
  each(
      [&](std::size_t root, std::int32_t node) { facts.consumer_list[static_cast<std::size_t>(next[root]++)] = node; });
}

}  // namespace

bool GraphFacts::folded(const ingest::Node& node) const {
  return std::all_of(node.outputs.begin(), node.outputs.end(),
                     [&](TensorId id) { return !id.valid() || constant[id.at()]; });
}

Result<GraphFacts> inspect(const ingest::ShapedGraph& shaped) {
  GraphFacts facts;
  PL_TRY_STATUS(find_rows(shaped.graph, facts));
  PL_TRY_STATUS(count_elements(shaped, facts));
  find_constants(shaped, facts);
  find_roots(shaped.graph, facts);
  find_consumers(shaped.graph, facts);
  for (const ingest::Node& node : shaped.graph.nodes) {
    for (const auto* list : {&node.inputs, &node.outputs}) {
      for (const TensorId id : *list) {
        if (!id.valid() || shaped.shapes[id.at()]) continue;
        return make_error(
            "onnx-shape", node.span,
            fmt::format("the shape of '{}' at node '{}' is not known", shaped.graph.tensors[id.at()].name, node.name));
      }
    }
  }
  return facts;
}

Result<std::int64_t> format_bits(const std::string& format, const Span& span) {
  for (const FormatRow& row : kFormats) {
    if (row.name == format) return row.bits;
  }
  std::vector<std::string> names;
  for (const FormatRow& row : kFormats) names.emplace_back(row.name);
  return make_error("unknown-name", span, fmt::format("no format is called '{}'", format), suggest(format, names));
}

Result<FormatBits> policy_bits(const ingest::Policy& policy) {
  FormatBits bits;
  PL_TRY(bits.inputs, format_bits(policy.inputs, policy.inputs_at));
  PL_TRY(bits.weights, format_bits(policy.weights, policy.weights_at));
  PL_TRY(bits.accumulate, format_bits(policy.accumulate, policy.accumulate_at));
  PL_TRY(bits.outputs, format_bits(policy.outputs, policy.outputs_at));
  return bits;
}

std::int64_t activation_bits(ingest::ElementType type, const FormatBits& bits) {
  switch (type) {
    case ingest::ElementType::int64:
    case ingest::ElementType::uint64:
      return 64;
    case ingest::ElementType::int32:
    case ingest::ElementType::uint32:
      return 32;
    case ingest::ElementType::int16:
    case ingest::ElementType::uint16:
      return 16;
    case ingest::ElementType::int8:
    case ingest::ElementType::uint8:
    case ingest::ElementType::boolean:
      return 8;
    case ingest::ElementType::int4:
    case ingest::ElementType::uint4:
      return 4;
    default:
      return bits.outputs;
  }
}

std::int64_t integer_attribute(const ingest::Node& node, const char* name, std::int64_t otherwise) {
  const auto at = node.attributes.find(name);
  if (at == node.attributes.end()) return otherwise;
  const auto* value = std::get_if<std::int64_t>(&at->second);
  return value == nullptr ? otherwise : *value;
}

std::vector<std::int64_t> list_attribute(const ingest::Node& node, const char* name) {
  const auto at = node.attributes.find(name);
  if (at == node.attributes.end()) return {};
  const auto* value = std::get_if<std::vector<std::int64_t>>(&at->second);
  return value == nullptr ? std::vector<std::int64_t>{} : *value;
}

}  // namespace plumbline::lower
