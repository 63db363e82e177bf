// The judge of the closed forms: every boundary of every operand is walked in time, instance by instance, with the
// words of each tile written out. Shares no sums with the evaluator; only the checks of malformed input are common.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "schedule/counts.h"
#include "schedule/evaluator.h"
#include "schedule/side_data.h"
#include "schedule/tally_counts.h"
#include "schedule/walk_boundary.h"

namespace plumbline::schedule {
namespace {

/// Leading steps of the whole array, one by one per dimension.
std::int64_t count_active(const Nest& nest, bool temporal, int level) {
  std::int64_t total = 1;
  for (int d = 0; d < nest.rank; ++d) {
    std::vector<NestLoop> loops;
    for (int i = 0; i < nest.first[static_cast<std::size_t>(level)]; ++i) {
      const NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
      if (loop.dim == d && loop.spatial != temporal) loops.push_back(loop);
    }
    std::int64_t active = 0;
    for (const WalkPoint& at : loop_positions(loops, 1U << d)) {
      active += at[static_cast<std::size_t>(d)] < nest.size[static_cast<std::size_t>(d)] ? 1 : 0;
    }
    total *= active;
  }
  return total;
}

/// Side words by listing which groups every tile along the grouped dimension touches.
struct Groups {
  std::int64_t extent = 1;  ///< of this level's tile along the dimension
  std::int64_t held = 0;    ///< most groups one tile touches
  std::int64_t read = 0;
  std::int64_t written = 0;
};

Groups walk_groups(const lower::Einsum& einsum, const Nest& nest, const AccessCounts& counts, int level,
                   std::size_t operand, std::size_t dim) {
  const std::int64_t group = einsum.operands[operand].side_group;
  const std::int64_t size = nest.size[dim];
  const OperandCounts& here = counts.levels[static_cast<std::size_t>(level)][operand];
  int inner = nest.levels;
  for (const NetworkCounts& network : counts.networks) {
    if (network.operand == operand && network.outer == level) inner = network.inner;
  }
  Groups out;
  const auto touched = [&](std::int64_t extent, std::int64_t& most) {
    std::int64_t all = 0;
    for (std::int64_t from = 0; from < size; from += extent) {
      const std::int64_t to = std::min(from + extent, size) - 1;
      most = std::max(most, to / group - from / group + 1);
      all += to / group - from / group + 1;
    }
    return all;
  };
  const auto share = [&](std::int64_t moved, std::int64_t all) {
    return static_cast<std::int64_t>((static_cast<__int128>(moved) * all + size - 1) / size);
  };
  out.extent = nest.extent[static_cast<std::size_t>(level)][dim];
  std::int64_t unused = 0;
  const std::int64_t below =
      inner == nest.levels ? std::min(group, size) : nest.extent[static_cast<std::size_t>(inner)][dim];
  out.written = share(here.fills + here.updates, touched(out.extent, out.held));
  out.read = share(here.reads, touched(below, unused));
  return out;
}

/// Stored widths, bits and time from the counted words; the rules of docs/scheduling.md, written out a second time.
Status finish(const lower::Einsum& einsum, const Hierarchy& hierarchy, const Nest& nest, const Evaluator& evaluator,
              AccessCounts& counts) {
  double slowest =
      std::ceil(static_cast<double>(counts.compute_steps) * static_cast<double>(hierarchy.cycles_per_step) /
                static_cast<double>(hierarchy.macs_per_cycle));
  for (int l = 0; l < nest.levels; ++l) {
    const StorageLevel& level = hierarchy.levels[static_cast<std::size_t>(l)];
    double read = 0, written = 0;
    __int128 stored = 0;
    for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
      OperandCounts& here = counts.levels[static_cast<std::size_t>(l)][o];
      if (!here.kept) continue;
      const lower::Operand& what = einsum.operands[o];
      bool split = false;
      for (int i = 0; i < nest.first[static_cast<std::size_t>(l)]; ++i) {
        const NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
        bool uses = false;
        for (const lower::Axis& axis : what.axes) {
          for (const lower::AxisTerm& term : axis) uses = uses || term.dim == loop.dim;
        }
        split = split || (loop.spatial && !uses);
      }
      const bool wide = what.role == lower::Role::outputs && (split || here.reads > 0 || here.fills > 0);
      const std::int64_t width = wide ? std::max(what.bits, what.partial_bits) : what.bits;
      here.read_bits = here.reads * width;
      here.write_bits = (here.fills + here.updates) * width;
      stored += static_cast<__int128>(here.tile) * width;
      if (const int d = side_dimension(einsum, o); d >= 0) {
        const Groups groups = walk_groups(einsum, nest, counts, l, o, static_cast<std::size_t>(d));
        here.read_bits += groups.read * what.side_bits;
        here.write_bits += groups.written * what.side_bits;
        stored += static_cast<__int128>(here.tile) / groups.extent * groups.held * what.side_bits;
      }
      read += static_cast<double>(here.read_bits);
      written += static_cast<double>(here.write_bits);
    }
    if (level.capacity_bits && stored > *level.capacity_bits) {
      return evaluator.explain({Fault::beyond_tile, l, 0, static_cast<std::int64_t>(stored), *level.capacity_bits});
    }
    const auto used = static_cast<double>(count_active(nest, false, l));
    if (level.read_bits_per_cycle) slowest = std::max(slowest, std::ceil(read / (*level.read_bits_per_cycle * used)));
    if (level.write_bits_per_cycle)
      slowest = std::max(slowest, std::ceil(written / (*level.write_bits_per_cycle * used)));
  }
  counts.cycles_overlapped = static_cast<std::int64_t>(slowest);
  return Done{};
}

Status walk_operand(const lower::Einsum& einsum, const Mapping& mapping, const Nest& nest, std::size_t o,
                    const WalkLimits& limits, AccessCounts& counts) {
  const bool outputs = einsum.operands[o].role == lower::Role::outputs;
  int keeper = -1;
  for (int l = 0; l <= nest.levels; ++l) {
    if (l < nest.levels && !mapping.levels[static_cast<std::size_t>(l)].keeps_operand(o)) continue;
    Transfer moved;
    if (keeper >= 0) {
      PL_TRY(moved, walk_boundary(make_walk_scene(einsum, nest, o, keeper, l), limits));
      OperandCounts& up = counts.levels[static_cast<std::size_t>(keeper)][o];
      up.updates = outputs ? moved.merged : 0;
      up.reads = outputs ? moved.merged - moved.first_merged : moved.merged;
      NetworkCounts network{keeper, l, o, moved.merged, moved.delivered, most_receivers(einsum, mapping, keeper, l, o),
                            0};
      network.spatial_reductions = outputs ? moved.delivered - moved.merged : 0;
      counts.networks.push_back(network);
    }
    if (l == nest.levels) break;
    OperandCounts& here = counts.levels[static_cast<std::size_t>(l)][o];
    here.kept = true;
    here.fills = outputs ? moved.delivered - moved.first_delivered : moved.delivered;
    here.tile = 1;
    const WalkScene scene = make_walk_scene(einsum, nest, o, 0, l);
    std::vector<std::int64_t> indices;
    for (const lower::Axis& axis : scene.operand->axes) {
      if (axis.size() == 1) {
        here.tile *= scene.tile[static_cast<std::size_t>(axis[0].dim)];
        continue;
      }
      walk_indices(scene, axis, WalkPoint{}, indices);
      here.tile *= static_cast<std::int64_t>(indices.size());
    }
    keeper = l;
  }
  return Done{};
}

}  // namespace

Result<AccessCounts> walk_accesses(const lower::Einsum& einsum, const Hierarchy& hierarchy, const Mapping& mapping,
                                   const WalkLimits& limits) {
  PL_TRY(const Evaluator evaluator, Evaluator::prepare(einsum, hierarchy));
  Nest nest;
  const Verdict verdict = evaluator.flatten_mapping(mapping, nest);
  if (!verdict.ok()) return evaluator.explain(verdict);
  AccessCounts counts;
  counts.levels.resize(mapping.levels.size(), std::vector<OperandCounts>(einsum.operands.size()));
  counts.macs =
      std::accumulate(einsum.dims.begin(), einsum.dims.begin() + einsum.rank(), std::int64_t{1}, std::multiplies<>());
  counts.compute_steps = count_active(nest, true, nest.levels);
  for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
    PL_TRY_STATUS(walk_operand(einsum, mapping, nest, o, limits, counts));
  }
  std::stable_sort(counts.networks.begin(), counts.networks.end(),
                   [](const NetworkCounts& a, const NetworkCounts& b) { return a.outer < b.outer; });
  PL_TRY_STATUS(finish(einsum, hierarchy, nest, evaluator, counts));
  return counts;
}

}  // namespace plumbline::schedule
