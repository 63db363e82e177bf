#include "ingest/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/check.h"
#include "ingest/graph_text.h"
#include "ingest/infer_rules.h"

namespace plumbline::ingest {

namespace {

std::vector<AttributeRow> attribute_rows(std::string_view text) {
  std::vector<AttributeRow> rows;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const auto colon = item.find(':');
    PL_CHECK(colon != std::string_view::npos && colon + 2 == item.size());
    rows.push_back({item.substr(0, colon), static_cast<AttributeKind>(item[colon + 1])});
  }
  return rows;
}

std::vector<Operator> make_operators() {
  std::vector<Operator> rows;
#define OPERATOR(domain, name, min_inputs, max_inputs, max_outputs, attributes, shapes, values) \
  rows.push_back({domain, name, min_inputs, max_inputs, max_outputs, attribute_rows(attributes), shapes, values});
#include "ingest/operators.inc"
#undef OPERATOR
  return rows;
}

using OperatorKey = std::pair<std::string_view, std::string_view>;

std::map<OperatorKey, const Operator*> make_index() {
  std::map<OperatorKey, const Operator*> index;
  for (const auto& row : operators()) {
    const bool inserted = index.emplace(OperatorKey{row.domain, row.name}, &row).second;
    PL_CHECK(inserted);
  }
  return index;
}

// Operators outside the table for which the nearest name would mislead.
struct Advice {
  std::string_view name;
  std::string_view help;
};
constexpr std::string_view kControlFlow =
    "control flow is not modelled; export the model with its loops unrolled and its branches decided";
constexpr Advice kAdvice[] = {{"If", kControlFlow}, {"Loop", kControlFlow}, {"Scan", kControlFlow}};

}  // namespace

const std::vector<Operator>& operators() {
  static const std::vector<Operator> rows = make_operators();
  return rows;
}

const Operator* find_operator(std::string_view domain, std::string_view name) {
  static const std::map<OperatorKey, const Operator*> index = make_index();
  if (domain == "ai.onnx") domain = "";
  const auto found = index.find({domain, name});
  return found == index.end() ? nullptr : found->second;
}

Diagnostic unknown_operator(const Node& node) {
  std::string help;
  for (const auto& advice : kAdvice) {
    if (node.op == advice.name) help = advice.help;
  }
  if (help.empty()) {
    std::vector<std::string> names;
    for (const auto& row : operators()) names.emplace_back(row.name);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    help = suggest(node.op, names);
  }
  const std::string domain = node.domain.empty() ? "" : fmt::format(" of domain {}", quoted(node.domain));
  return make_error("unknown-operator", node.span,
                    fmt::format("operator {}{} (node {}) is not modelled", quoted(node.op), domain, quoted(node.name)),
                    std::move(help));
}

std::string_view attribute_kind_text(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::integer:
      return "a whole number";
    case AttributeKind::real:
      return "a real number";
    case AttributeKind::text:
      return "text";
    case AttributeKind::integers:
      return "a list of whole numbers";
    case AttributeKind::reals:
      return "a list of real numbers";
    case AttributeKind::texts:
      return "a list of texts";
    case AttributeKind::number:
      return "a number";
  }
  PL_CHECK(false);
  return {};
}

}  // namespace plumbline::ingest
