#include "lower/operators.h"

#include <algorithm>
#include <array>

namespace plumbline::lower {
namespace {

constexpr OperatorRow kRows[] = {
#define OPERATOR(domain, name, lowering, operations, counted_on, fusion, in_place, data, weight, bias)           \
  {domain, name, Lowering::lowering, operations, CountedOn::counted_on, Fusion::fusion, InPlace::in_place, data, \
   weight, bias},
#include "lower/operators.inc"
#undef OPERATOR
};

struct ByName {
  bool operator()(const OperatorRow* a, const OperatorRow* b) const {
    return a->name != b->name ? a->name < b->name : a->domain < b->domain;
  }
};

const std::vector<const OperatorRow*>& sorted_rows() {
  static const std::vector<const OperatorRow*> rows = [] {
    std::vector<const OperatorRow*> result;
    for (const OperatorRow& row : kRows) result.push_back(&row);
    std::sort(result.begin(), result.end(), ByName{});
    return result;
  }();
  return rows;
}

}  // namespace

const OperatorRow* find_operator(std::string_view domain, std::string_view name) {
  OperatorRow wanted{};
  wanted.domain = domain == "ai.onnx" ? std::string_view() : domain;
  wanted.name = name;
  const auto& rows = sorted_rows();
  const auto at = std::lower_bound(rows.begin(), rows.end(), &wanted, ByName{});
  return at != rows.end() && (*at)->name == name && (*at)->domain == wanted.domain ? *at : nullptr;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const OperatorRow* row : sorted_rows()) names.emplace_back(row->name);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace plumbline::lower
