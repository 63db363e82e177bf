#include "ingest/shape_math.h"

#include <algorithm>

#include "core/check.h"
#include "ingest/graph_limits.h"

namespace plumbline::ingest {

std::optional<std::int64_t> element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent == 0) return 0;
  }
  for (const std::int64_t extent : shape) {
    PL_CHECK(extent > 0);
    if (__builtin_mul_overflow(count, extent, &count) || count > kMaxElements) return std::nullopt;
  }
  return count;
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (std::size_t i = 0; i < rank; ++i) {  // i counts from the last axis
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

std::optional<std::size_t> front_axis(std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::int64_t broadcast_offset(const Shape& shape, const Shape& at) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t index = shape[i] == 1 ? 0 : at[at.size() - shape.size() + i];
    offset = offset * shape[i] + index;
  }
  return offset;
}

}  // namespace plumbline::ingest
