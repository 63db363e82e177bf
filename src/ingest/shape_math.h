#pragma once
// Arithmetic on static shapes: broadcasting, axes, row-major coordinates.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ingest/graph.h"

namespace plumbline::ingest {

/// Elements of a shape; nothing when the product exceeds kMaxElements. Extents must not be negative.
[[nodiscard]] std::optional<std::int64_t> element_count(const Shape& shape);

/// Multidirectional broadcasting (ONNX "Broadcasting in ONNX"): aligned at the last axis, 1 stretches. Nothing when
/// two extents differ and neither is 1.
[[nodiscard]] std::optional<Shape> broadcast(const Shape& a, const Shape& b);

/// `axis` in [-rank, rank) counted from the front; nothing outside.
[[nodiscard]] std::optional<std::size_t> front_axis(std::int64_t axis, std::size_t rank);

/// Row-major distance of neighbours along each axis.
[[nodiscard]] Shape strides_of(const Shape& shape);

/// Calls `visit(coordinates)` in row-major order; a shape without axes is visited once.
template <class Visit>
void for_each_coordinate(const Shape& shape, Visit&& visit) {
  for (const std::int64_t extent : shape) {
    if (extent == 0) return;
  }
  Shape at(shape.size(), 0);
  for (;;) {
    visit(static_cast<const Shape&>(at));
    std::size_t axis = shape.size();
    while (axis > 0 && ++at[axis - 1] == shape[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

/// Offset in a tensor of `shape` of the element that broadcasting puts at `at` (coordinates of the result).
[[nodiscard]] std::int64_t broadcast_offset(const Shape& shape, const Shape& at);

}  // namespace plumbline::ingest
