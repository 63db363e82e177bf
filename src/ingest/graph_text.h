#pragma once
// How messages spell shapes, names and element types of a graph.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/graph.h"

namespace plumbline::ingest {

/// "[1, 3, 224, 224]"; long shapes are cut.
[[nodiscard]] std::string shape_text(const Shape& shape);
/// "'name'", cut in the middle when it is long.
[[nodiscard]] std::string quoted(std::string_view name);
/// "node 'name' (Op)".
[[nodiscard]] std::string node_text(const Node& node);
/// "float32"; the number for a type without a name here.
[[nodiscard]] std::string element_type_name(ElementType type);
/// The type of a name as element_type_name spells it.
[[nodiscard]] std::optional<ElementType> element_type_named(std::string_view name);
[[nodiscard]] const std::vector<std::string>& element_type_names();
/// Integers and booleans, whose contents shape inference follows exactly.
[[nodiscard]] bool is_integral(ElementType type);
[[nodiscard]] bool is_floating(ElementType type);
/// Bits of one element; 0 for strings and unknown types.
[[nodiscard]] std::int64_t element_bits(ElementType type);

}  // namespace plumbline::ingest
