#include "schedule/random_mapping.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/side_data.h"

namespace plumbline::schedule {
namespace {

std::int64_t pick(RandomStream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(high - low + 1)));
}

lower::Einsum random_kernel(RandomStream& random, std::int64_t most) {
  const auto dim = [&] { return pick(random, 1, most); };
  const std::int64_t kind = pick(random, 0, 5);
  if (kind == 0) return lower::gemm_einsum(dim(), dim(), dim());
  if (kind == 1) {  // batched GEMM: a dimension that every operand uses
    lower::Einsum e = lower::gemm_einsum(dim(), dim(), dim());
    e.dim_names.emplace_back("B");
    e.dims[3] = pick(random, 1, 3);
    for (lower::Operand& each : e.operands) each.axes.push_back({{3, 1}});
    return e;
  }
  lower::ConvShape shape;
  shape.batch = pick(random, 1, 2);
  shape.groups = kind == 3 ? pick(random, 1, 3) : 1;
  shape.k = pick(random, 1, 4);
  shape.c = pick(random, 1, 4);
  shape.p = dim();
  shape.q = pick(random, 1, 4);
  shape.r = pick(random, 1, 4);
  shape.s = pick(random, 1, 3);
  shape.stride = {pick(random, 1, 3), pick(random, 1, 2)};
  shape.dilation = {pick(random, 1, 3), pick(random, 1, 2)};
  if (kind == 4) return lower::depthwise_einsum(shape);
  lower::Einsum e = lower::conv_einsum(shape);
  if (kind == 5 && pick(random, 0, 1) == 0) {  // rows and columns folded onto one axis of four terms
    lower::Operand& inputs = e.operands[1];
    lower::Axis& rows = inputs.axes[inputs.axes.size() - 2];
    rows.insert(rows.end(), inputs.axes.back().begin(), inputs.axes.back().end());
    inputs.axes.pop_back();
  }
  return e;
}

/// Bounds, outermost first, whose product covers `size`.
std::vector<std::int64_t> random_factors(RandomStream& random, std::int64_t size, std::size_t slots, bool ragged) {
  std::vector<std::int64_t> factors(slots, 1);
  std::int64_t left = size;
  while (left > 1) {
    std::int64_t bound = 1;
    if (ragged && pick(random, 0, 2) == 0) {
      bound = pick(random, 2, left);
    } else {
      do bound = pick(random, 2, left);
      while (left % bound != 0);
    }
    factors[static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(slots) - 1))] *= bound;
    left = (left + bound - 1) / bound;
  }
  return factors;
}

void random_nest(RandomStream& random, const lower::Einsum& einsum, std::size_t levels, bool ragged, Mapping& mapping) {
  mapping.levels.resize(levels);
  for (int d = 0; d < einsum.rank(); ++d) {
    // Per level a temporal slot, and a spatial one where chance says so.
    std::vector<LoopKind> kinds;
    std::vector<std::size_t> owners;
    for (std::size_t l = 0; l < levels; ++l) {
      kinds.push_back(LoopKind::temporal);
      owners.push_back(l);
      if (pick(random, 0, 1) == 0) continue;
      kinds.push_back(pick(random, 0, 1) == 0 ? LoopKind::spatial_x : LoopKind::spatial_y);
      owners.push_back(l);
    }
    const auto factors = random_factors(random, einsum.dims[static_cast<std::size_t>(d)], kinds.size(), ragged);
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (factors[i] > 1 || pick(random, 0, 3) == 0)
        mapping.levels[owners[i]].loops.push_back({d, factors[i], kinds[i]});
    }
  }
  for (LevelNest& level : mapping.levels) {
    auto& loops = level.loops;
    for (std::size_t i = loops.size(); i > 1; --i) std::swap(loops[i - 1], loops[random.next_below(i)]);
    std::stable_partition(loops.begin(), loops.end(), [](const Loop& loop) { return loop.kind == LoopKind::temporal; });
    // The same dimension twice in one level: split a loop in two.
    if (!loops.empty() && pick(random, 0, 2) == 0) {
      const std::size_t at = random.next_below(loops.size());
      for (std::int64_t f = 2; f * f <= loops[at].bound; ++f) {
        if (loops[at].bound % f != 0) continue;
        const Loop half{loops[at].dim, loops[at].bound / f, loops[at].kind};
        loops[at].bound = f;
        loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(at) + 1, half);
        break;
      }
    }
  }
}

}  // namespace

MappingCase random_case(RandomStream& random, const CaseLimits& limits) {
  MappingCase result;
  do {
    result.einsum = random_kernel(random, limits.largest_dim);
    std::int64_t macs = 1;
    for (int d = 0; d < result.einsum.rank(); ++d) macs *= result.einsum.dims[static_cast<std::size_t>(d)];
    if (macs <= limits.largest_kernel) break;
  } while (true);
  for (lower::Operand& each : result.einsum.operands) {
    each.bits = pick(random, 1, 16);
    if (each.role == lower::Role::outputs || pick(random, 0, 2) > 0) continue;
    each.side_bits = 8;
    each.side_group = pick(random, 1, 5);
    if (side_dimension(result.einsum, static_cast<std::size_t>(&each - result.einsum.operands.data())) < 0)
      each.side_bits = 0;
  }
  const auto levels = static_cast<std::size_t>(pick(random, limits.levels_from, limits.levels_to));
  random_nest(random, result.einsum, levels, limits.ragged, result.mapping);
  std::int64_t x = 1;
  std::int64_t y = 1;
  const auto operands = static_cast<std::uint32_t>(result.einsum.operands.size());
  for (std::size_t l = 0; l < levels; ++l) {
    StorageLevel level;
    level.name = fmt::format("level{}", l);
    level.instances = x * y;
    level.mesh_x = x;
    if (pick(random, 0, 3) == 0) level.read_bits_per_cycle = static_cast<double>(pick(random, 1, 64));
    if (pick(random, 0, 3) == 0) level.write_bits_per_cycle = static_cast<double>(pick(random, 1, 64));
    for (const Loop& loop : result.mapping.levels[l].loops) {
      if (loop.kind == LoopKind::spatial_x) x *= loop.bound;
      if (loop.kind == LoopKind::spatial_y) y *= loop.bound;
    }
    result.hierarchy.levels.push_back(level);
    result.mapping.levels[l].keeps =
        l == 0 ? (1U << operands) - 1 : static_cast<std::uint32_t>(random.next_below(1U << operands));
  }
  result.hierarchy.mac_units = x * y;
  result.hierarchy.mac_mesh_x = x;
  return result;
}

std::string MappingCase::describe() const {
  std::string text;
  for (int d = 0; d < einsum.rank(); ++d)
    text +=
        fmt::format("{}={} ", einsum.dim_names[static_cast<std::size_t>(d)], einsum.dims[static_cast<std::size_t>(d)]);
  for (const lower::Operand& each : einsum.operands) {
    text += fmt::format("\n  {}:", each.name);
    for (const lower::Axis& axis : each.axes) {
      text += " [";
      for (const lower::AxisTerm& term : axis)
        text += fmt::format("{}{}*{}", &term == axis.data() ? "" : "+",
                            einsum.dim_names[static_cast<std::size_t>(term.dim)], term.coefficient);
      text += "]";
    }
  }
  for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
    text += fmt::format("\n  level {} keeps {:b}:", l, mapping.levels[l].keeps);
    for (const Loop& loop : mapping.levels[l].loops) {
      const char* kind = loop.kind == LoopKind::temporal ? "" : loop.kind == LoopKind::spatial_x ? "/x" : "/y";
      text += fmt::format(" {}{}{}", einsum.dim_names[static_cast<std::size_t>(loop.dim)], loop.bound, kind);
    }
  }
  return text;
}

}  // namespace plumbline::schedule
