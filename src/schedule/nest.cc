#include "schedule/nest.h"

namespace plumbline::schedule {
namespace {

/// Bounds of one level into the nest; spatial products against the mesh.
Verdict append_level(const LevelNest& level, int index, const FanOut& fan_out, Nest& nest) {
  std::int64_t x = 1;
  std::int64_t y = 1;
  bool spatial_seen = false;
  for (const Loop& loop : level.loops) {
    if (loop.dim < 0 || loop.dim >= nest.rank || loop.bound < 1) return {Fault::malformed, index, loop.dim, loop.bound};
    const bool spatial = loop.kind != LoopKind::temporal;
    if (spatial_seen && !spatial) return {Fault::malformed, index, loop.dim, loop.bound};
    spatial_seen = spatial;
    if (loop.bound == 1) continue;
    if (spatial) {
      std::int64_t& along = loop.kind == LoopKind::spatial_x ? x : y;
      if (__builtin_mul_overflow(along, loop.bound, &along)) return {Fault::overflow, index, loop.dim};
    }
    if (nest.count == kMaxLoops) return {Fault::too_many_loops, index};
    NestLoop& out = nest.loops[static_cast<std::size_t>(nest.count++)];
    out.dim = loop.dim;
    out.level = index;
    out.spatial = spatial;
    out.bound = loop.bound;
  }
  const auto at = static_cast<std::size_t>(index);
  if (x > fan_out.x[at]) return {Fault::beyond_mesh, index, 0, x, fan_out.x[at]};
  if (y > fan_out.y[at]) return {Fault::beyond_mesh, index, 1, y, fan_out.y[at]};
  return {};
}

/// Strides, extents and, where factors are imperfect, the digits of the last index.
Verdict measure(Nest& nest) {
  std::array<std::int64_t, lower::kMaxDims> inner;
  inner.fill(1);
  std::uint32_t saturated = 0;
  nest.extent[static_cast<std::size_t>(nest.levels)] = inner;
  int level = nest.levels - 1;
  for (int i = nest.count - 1; i >= 0; --i) {
    NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    for (; level > loop.level; --level) nest.extent[static_cast<std::size_t>(level)] = inner;
    const auto d = static_cast<std::size_t>(loop.dim);
    loop.stride = inner[d];
    std::int64_t product = 0;
    if (__builtin_mul_overflow(inner[d], loop.bound, &product) || product > nest.size[d]) {
      product = nest.size[d];
      saturated |= 1U << d;
    }
    inner[d] = product;
  }
  for (; level >= 0; --level) nest.extent[static_cast<std::size_t>(level)] = inner;
  for (int d = 0; d < nest.rank; ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (inner[at] < nest.size[at]) return {Fault::not_covered, 0, d, inner[at], nest.size[at]};
  }
  nest.ragged = saturated;
  std::int64_t steps = 1;
  std::int64_t copies = 1;
  level = 0;
  for (int i = 0; i < nest.count; ++i) {
    NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    const auto d = static_cast<std::size_t>(loop.dim);
    const bool whole = ((saturated >> d) & 1U) == 0;
    loop.digit = whole ? loop.bound - 1 : (nest.size[d] - 1) / loop.stride % loop.bound;
    for (; level <= loop.level; ++level) nest.copies[static_cast<std::size_t>(level)] = copies;
    if (loop.spatial) {
      copies *= loop.bound;  // at most the mesh, so it cannot overflow
    } else if (saturated == 0) {
      loop.before = steps;
      steps *= loop.bound;  // at most the product of all sizes
    }
  }
  for (; level <= nest.levels; ++level) nest.copies[static_cast<std::size_t>(level)] = copies;
  return {};
}

}  // namespace

Verdict flatten(const lower::Einsum& einsum, const FanOut& fan_out, const Mapping& mapping, Nest& nest) {
  nest.count = 0;
  nest.rank = einsum.rank();
  nest.size = einsum.dims;
  if (static_cast<int>(mapping.levels.size()) != nest.levels) {
    return {Fault::malformed, 0, 0, static_cast<std::int64_t>(mapping.levels.size()), nest.levels};
  }
  for (int l = 0; l < nest.levels; ++l) {
    nest.first[static_cast<std::size_t>(l)] = nest.count;
    const Verdict verdict = append_level(mapping.levels[static_cast<std::size_t>(l)], l, fan_out, nest);
    if (!verdict.ok()) return verdict;
  }
  nest.first[static_cast<std::size_t>(nest.levels)] = nest.count;
  return measure(nest);
}

}  // namespace plumbline::schedule
