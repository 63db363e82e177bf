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
    if (__builtin_mul_overflow(x, loop.kind == LoopKind::spatial_x ? loop.bound : 1, &x) ||
        __builtin_mul_overflow(y, loop.kind == LoopKind::spatial_y ? loop.bound : 1, &y)) {
      return {Fault::overflow, index, loop.dim};
    }
    if (nest.count == kMaxLoops) return {Fault::too_many_loops, index};
    NestLoop& out = nest.loops[static_cast<std::size_t>(nest.count++)];
    out.dim = loop.dim;
    out.level = index;
    out.spatial = spatial;
    out.bound = loop.bound;
    out.digit = loop.bound - 1;
    out.before = static_cast<std::int64_t>(nest.steps);
    nest.steps *= spatial ? 1U : static_cast<std::uint64_t>(loop.bound);
  }
  const auto at = static_cast<std::size_t>(index);
  if (x > fan_out.x[at]) return {Fault::beyond_mesh, index, 0, x, fan_out.x[at]};
  if (y > fan_out.y[at]) return {Fault::beyond_mesh, index, 1, y, fan_out.y[at]};
  nest.copies[at + 1] = nest.copies[at] * x * y;  // at most the number of instances
  return {};
}

/// Strides, extents and, where factors are imperfect, the digits of the last index.
Verdict measure(Nest& nest) {
  for (int l = 0; l <= nest.levels; ++l) nest.extent[static_cast<std::size_t>(l)].fill(1);
  std::uint32_t saturated = 0;
  for (int i = nest.count - 1; i >= 0; --i) {
    NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    const auto d = static_cast<std::size_t>(loop.dim);
    loop.stride = nest.extent[static_cast<std::size_t>(loop.level)][d];
    std::int64_t product = 0;
    if (__builtin_mul_overflow(loop.stride, loop.bound, &product) || product > nest.size[d]) {
      product = nest.size[d];
      saturated |= 1U << d;
    }
    for (int l = 0; l <= loop.level; ++l) nest.extent[static_cast<std::size_t>(l)][d] = product;
  }
  for (int d = 0; d < nest.rank; ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (nest.extent[0][at] < nest.size[at]) return {Fault::not_covered, 0, d, nest.extent[0][at], nest.size[at]};
  }
  nest.ragged = saturated;
  for (int i = 0; saturated != 0 && i < nest.count; ++i) {
    NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    const auto d = static_cast<std::size_t>(loop.dim);
    if (((saturated >> d) & 1U) != 0) loop.digit = (nest.size[d] - 1) / loop.stride % loop.bound;
  }
  return {};
}

}  // namespace

Verdict flatten(const lower::Einsum& einsum, const FanOut& fan_out, const Mapping& mapping, Nest& nest) {
  nest.count = 0;
  nest.steps = 1;
  nest.copies[0] = 1;
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
