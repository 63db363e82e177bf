#include "ingest/graph_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace plumbline::ingest {

namespace {

enum class Sort { integral, floating, other };

struct ElementTypeRow {
  ElementType type;
  std::string_view name;
  std::int64_t bits;  // of one element, ONNX TensorProto.DataType
  Sort sort;
};

constexpr std::array<ElementTypeRow, 20> kElementTypes = {{
    {ElementType::float32, "float32", 32, Sort::floating},
    {ElementType::uint8, "uint8", 8, Sort::integral},
    {ElementType::int8, "int8", 8, Sort::integral},
    {ElementType::uint16, "uint16", 16, Sort::integral},
    {ElementType::int16, "int16", 16, Sort::integral},
    {ElementType::int32, "int32", 32, Sort::integral},
    {ElementType::int64, "int64", 64, Sort::integral},
    {ElementType::string, "string", 0, Sort::other},
    {ElementType::boolean, "boolean", 8, Sort::integral},
    {ElementType::float16, "float16", 16, Sort::floating},
    {ElementType::float64, "float64", 64, Sort::floating},
    {ElementType::uint32, "uint32", 32, Sort::integral},
    {ElementType::uint64, "uint64", 64, Sort::integral},
    {ElementType::bfloat16, "bfloat16", 16, Sort::floating},
    {ElementType::float8_e4m3fn, "float8_e4m3fn", 8, Sort::floating},
    {ElementType::float8_e4m3fnuz, "float8_e4m3fnuz", 8, Sort::floating},
    {ElementType::float8_e5m2, "float8_e5m2", 8, Sort::floating},
    {ElementType::float8_e5m2fnuz, "float8_e5m2fnuz", 8, Sort::floating},
    {ElementType::uint4, "uint4", 4, Sort::integral},
    {ElementType::int4, "int4", 4, Sort::integral},
}};

const ElementTypeRow* row_of(ElementType type) {
  for (const auto& row : kElementTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

constexpr std::size_t kShownAxes = 12;
constexpr std::size_t kShownName = 80;

}  // namespace

std::string shape_text(const Shape& shape) {
  if (shape.size() <= kShownAxes) return fmt::format("[{}]", fmt::join(shape, ", "));
  return fmt::format("[{}, … {} axes]", fmt::join(shape.begin(), shape.begin() + kShownAxes, ", "), shape.size());
}

std::string quoted(std::string_view name) {
  if (name.size() <= kShownName) return fmt::format("'{}'", name);
  // Cut between characters: a UTF-8 continuation byte never starts a piece.
  const auto boundary = [&](std::size_t at) {
    while (at < name.size() && (static_cast<unsigned char>(name[at]) & 0xC0U) == 0x80U) ++at;
    return at;
  };
  const std::size_t head = boundary(kShownName / 2);
  const std::size_t tail = boundary(name.size() - kShownName / 2);
  return fmt::format("'{}…{}'", name.substr(0, head), name.substr(tail));
}

std::string node_text(const Node& node) { return fmt::format("node {} ({})", quoted(node.name), node.op); }

std::string element_type_name(ElementType type) {
  const ElementTypeRow* row = row_of(type);
  return row == nullptr ? fmt::format("type {}", static_cast<std::int32_t>(type)) : std::string(row->name);
}

std::optional<ElementType> element_type_named(std::string_view name) {
  for (const auto& row : kElementTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

const std::vector<std::string>& element_type_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& row : kElementTypes) list.emplace_back(row.name);
    return list;
  }();
  return names;
}

bool is_integral(ElementType type) {
  const ElementTypeRow* row = row_of(type);
  return row != nullptr && row->sort == Sort::integral;
}

bool is_floating(ElementType type) {
  const ElementTypeRow* row = row_of(type);
  return row != nullptr && row->sort == Sort::floating;
}

std::int64_t element_bits(ElementType type) {
  const ElementTypeRow* row = row_of(type);
  return row == nullptr ? 0 : row->bits;
}

}  // namespace plumbline::ingest
