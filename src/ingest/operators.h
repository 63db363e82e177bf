#pragma once
// The operators that are understood, one row each (operators.inc). A new operator is a new row.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "ingest/infer_step.h"

namespace plumbline::ingest {

/// Finds shapes and element types of all outputs. Every input present has a known shape when it is called.
using ShapeRule = Status (*)(Step&);
/// Finds contents of outputs; called after the shape rule when the contents of all inputs present are known.
using ValueRule = Status (*)(Step&);

enum class AttributeKind : char {
  integer = 'i',
  real = 'r',
  text = 's',
  integers = 'I',
  reals = 'R',
  texts = 'S',
  number = 'n',  ///< an integer or a real
};

struct AttributeRow {
  std::string_view name;
  AttributeKind kind;
};

inline constexpr std::size_t kAnyNumber = 1U << 20U;

struct Operator {
  std::string_view domain;  ///< "" is the standard domain
  std::string_view name;
  std::size_t min_inputs;
  std::size_t max_inputs;
  std::size_t max_outputs;
  std::vector<AttributeRow> attributes;
  ShapeRule shapes;
  ValueRule values;  ///< nullptr: contents are not followed through it
};

/// All rows, in the order of operators.inc.
[[nodiscard]] const std::vector<Operator>& operators();
/// nullptr when the operator is not modelled. The domain "ai.onnx" is the standard one.
[[nodiscard]] const Operator* find_operator(std::string_view domain, std::string_view name);
/// The diagnostic for a node whose operator has no row: names it, its domain, the node and the nearest known operators.
[[nodiscard]] Diagnostic unknown_operator(const Node& node);
/// The name of an attribute kind in messages: "a whole number", "a list of whole numbers", …
[[nodiscard]] std::string_view attribute_kind_text(AttributeKind kind);

}  // namespace plumbline::ingest
