#include "ingest/wire_tensor.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "ingest/graph_limits.h"
#include "ingest/graph_text.h"
#include "ingest/shape_math.h"

namespace plumbline::ingest {

namespace {

constexpr std::int32_t kExternal = 1;  // TensorProto.DataLocation.EXTERNAL

Result<Shape> read_shape(const wire::Tensor& tensor, const std::string& what, const Span& span) {
  const Shape shape(tensor.dims().begin(), tensor.dims().end());
  const auto wrong = [&](std::string_view problem) {
    return make_error("onnx-shape", span, fmt::format("{} has the shape {}{}", what, shape_text(shape), problem));
  };
  if (shape.size() > kMaxRank) return wrong(fmt::format(", more than {} axes", kMaxRank));
  for (const std::int64_t extent : shape) {
    if (extent < 0) return wrong(", with a negative dimension");
    if (extent > kMaxExtent) return wrong(", with a dimension above 2^40");
  }
  if (!element_count(shape)) return wrong(", more than 2^50 elements");
  return shape;
}

// Elements in the typed field that ONNX assigns to the tensor's type.
std::int64_t typed_count(const wire::Tensor& tensor, ElementType type) {
  switch (type) {
    case ElementType::float32:
      return tensor.float_data_size();
    case ElementType::float64:
      return tensor.double_data_size();
    case ElementType::int64:
      return tensor.int64_data_size();
    case ElementType::uint32:
    case ElementType::uint64:
      return tensor.uint64_data_size();
    case ElementType::string:
      return tensor.string_data_size();
    default:
      return tensor.int32_data_size();
  }
}

template <class Stored, class Out>
std::vector<Out> from_raw(const std::string& raw) {
  std::vector<Out> out;
  for (std::size_t at = 0; at + sizeof(Stored) <= raw.size(); at += sizeof(Stored)) {
    Stored element{};
    std::memcpy(&element, raw.data() + at,
                sizeof(Stored));  // the file is little endian, as are the machines we build for
    out.push_back(static_cast<Out>(element));
  }
  return out;
}

using RawIntegers = std::vector<std::int64_t> (*)(const std::string&);

struct RawRow {
  ElementType type;
  RawIntegers read;
};

constexpr RawRow kRawIntegers[] = {
    {ElementType::uint8, from_raw<std::uint8_t, std::int64_t>},
    {ElementType::int8, from_raw<std::int8_t, std::int64_t>},
    {ElementType::uint16, from_raw<std::uint16_t, std::int64_t>},
    {ElementType::int16, from_raw<std::int16_t, std::int64_t>},
    {ElementType::int32, from_raw<std::int32_t, std::int64_t>},
    {ElementType::int64, from_raw<std::int64_t, std::int64_t>},
    {ElementType::boolean, from_raw<std::uint8_t, std::int64_t>},
    {ElementType::uint32, from_raw<std::uint32_t, std::int64_t>},
};

template <class Out, class Field>
std::vector<Out> from_field(const Field& field) {
  return {field.begin(), field.end()};
}

// Small integers and single or double precision reals; other types (float16, int4, uint64 …) are not followed.
void read_contents(const wire::Tensor& wire, Tensor& tensor) {
  if (tensor.type == ElementType::float32) {
    tensor.real_value =
        wire.has_raw_data() ? from_raw<float, double>(wire.raw_data()) : from_field<double>(wire.float_data());
  } else if (tensor.type == ElementType::float64) {
    tensor.real_value =
        wire.has_raw_data() ? from_raw<double, double>(wire.raw_data()) : from_field<double>(wire.double_data());
  } else {
    for (const auto& row : kRawIntegers) {
      if (row.type != tensor.type) continue;
      if (wire.has_raw_data()) {
        tensor.value = row.read(wire.raw_data());
      } else if (tensor.type == ElementType::int64) {
        tensor.value = from_field<std::int64_t>(wire.int64_data());
      } else if (tensor.type == ElementType::uint32) {
        tensor.value = from_field<std::int64_t>(wire.uint64_data());
      } else {
        tensor.value = from_field<std::int64_t>(wire.int32_data());
      }
    }
  }
}

}  // namespace

Result<Tensor> read_wire_tensor(const wire::Tensor& wire, const std::string& what, const Span& span) {
  Tensor tensor;
  tensor.name = wire.name();
  tensor.span = span;
  tensor.parameter = true;
  tensor.type = static_cast<ElementType>(wire.data_type());
  if (element_bits(tensor.type) == 0 && tensor.type != ElementType::string) {
    return make_error("onnx-graph", span,
                      fmt::format("{} has element type {}, which is not known", what, wire.data_type()));
  }
  if (wire.has_segment()) return make_error("unsupported", span, fmt::format("{} is stored in segments", what));
  PL_TRY(const Shape shape, read_shape(wire, what, span));
  tensor.shape.emplace();
  for (const std::int64_t extent : shape) tensor.shape->push_back({extent, {}});
  const std::int64_t count = *element_count(shape);
  if (wire.data_location() == kExternal) return tensor;
  const std::int64_t typed = typed_count(wire, tensor.type);
  if (wire.has_raw_data() && !wire.raw_data().empty()) {
    const std::int64_t needed = (count * element_bits(tensor.type) + 7) / 8;
    const auto held = static_cast<std::int64_t>(wire.raw_data().size());
    if (held != needed) {
      return make_error("onnx-graph", span,
                        fmt::format("{} of shape {} and type {} needs {} bytes of values, but holds {}", what,
                                    shape_text(shape), element_type_name(tensor.type), needed, held));
    }
    tensor.has_data = true;
  } else if (typed == count || typed == 0) {
    tensor.has_data = typed == count;  // a shape without any values: a topology
  } else {
    return make_error(
        "onnx-graph", span,
        fmt::format("{} of shape {} needs {} values, but holds {}", what, shape_text(shape), count, typed));
  }
  if (tensor.has_data && count <= static_cast<std::int64_t>(kMaxFollowedElements)) read_contents(wire, tensor);
  return tensor;
}

}  // namespace plumbline::ingest
