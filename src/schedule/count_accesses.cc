#include <algorithm>

#include "schedule/counts.h"
#include "schedule/evaluator.h"
#include "schedule/tally_counts.h"

namespace plumbline::schedule {

namespace {

using Extents = std::array<std::int64_t, lower::kMaxDims>;

/// Index ranges of a tile of `level`, by dimension.
Extents tile_extents(const lower::Einsum& einsum, const Mapping& mapping, int level) {
  Extents extents;
  extents.fill(1);
  for (std::size_t l = mapping.levels.size(); l-- > static_cast<std::size_t>(level);) {
    for (const Loop& loop : mapping.levels[l].loops) {
      const auto d = static_cast<std::size_t>(loop.dim);
      if (__builtin_mul_overflow(extents[d], loop.bound, &extents[d])) extents[d] = einsum.dims[d];
      extents[d] = std::min(extents[d], einsum.dims[d]);
    }
  }
  return extents;
}

/// Where the first step's children of the first parent start along one dimension.
std::vector<std::int64_t> child_starts(const lower::Einsum& einsum, const Mapping& mapping, int outer, int inner,
                                       int dim) {
  const std::int64_t size = einsum.dims[static_cast<std::size_t>(dim)];
  std::vector<std::int64_t> starts{0};
  std::int64_t stride = tile_extents(einsum, mapping, inner)[static_cast<std::size_t>(dim)];
  for (int l = inner - 1; l >= outer; --l) {
    const auto& loops = mapping.levels[static_cast<std::size_t>(l)].loops;
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      if (loop->dim != dim) continue;
      if (loop->kind != LoopKind::temporal) {
        const std::size_t many = starts.size();
        for (std::int64_t x = 1; x < loop->bound && x * stride < size; ++x) {
          for (std::size_t i = 0; i < many; ++i) {
            if (starts[i] + x * stride < size) starts.push_back(starts[i] + x * stride);
          }
        }
      }
      if (__builtin_mul_overflow(stride, loop->bound, &stride)) stride = size;
      stride = std::min(stride, size);
    }
  }
  return starts;
}

/// Most tiles that share one element of a window axis; the tiles start at `bases`.
std::int64_t deepest_pile(const lower::Axis& axis, const Extents& extents, std::vector<std::int64_t> bases) {
  std::sort(bases.begin(), bases.end());
  // An element v lies in the tile at b when v − b is an offset of the tile, so offsets are tried against all bases.
  // Two-term tiles repeat with the product of the coefficients, so farther elements than this pile up no deeper.
  const std::int64_t reach =
      axis.size() == 2 ? bases.back() - bases.front() + 2 * axis[0].coefficient * axis[1].coefficient : INT64_MAX;
  std::vector<std::int64_t> offsets{0};
  for (const lower::AxisTerm& term : axis) {
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t x = 0; x < extents[static_cast<std::size_t>(term.dim)]; ++x) {
        if (x * term.coefficient > reach) break;
        next.push_back(offset + x * term.coefficient);
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    offsets = std::move(next);
  }
  std::vector<std::int64_t> elements;
  for (const std::int64_t base : bases) {
    for (const std::int64_t offset : offsets) elements.push_back(base + offset);
  }
  std::sort(elements.begin(), elements.end());
  std::int64_t deepest = 1;
  std::int64_t run = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    run = i > 0 && elements[i] == elements[i - 1] ? run + 1 : 1;
    deepest = std::max(deepest, run);
  }
  return deepest;
}

}  // namespace

std::int64_t most_receivers(const lower::Einsum& einsum, const Mapping& mapping, int outer, int inner,
                            std::size_t operand) {
  std::int64_t receivers = 1;
  std::uint32_t used = 0;
  const Extents extents = tile_extents(einsum, mapping, inner);
  for (const lower::Axis& axis : einsum.operands[operand].axes) {
    std::vector<std::int64_t> bases{0};
    for (const lower::AxisTerm& term : axis) {
      used |= 1U << term.dim;
      if (axis.size() < 2) continue;
      std::vector<std::int64_t> moved;
      for (const std::int64_t start : child_starts(einsum, mapping, outer, inner, term.dim)) {
        for (const std::int64_t base : bases) moved.push_back(base + term.coefficient * start);
      }
      bases = std::move(moved);
    }
    if (bases.size() > 1) receivers *= deepest_pile(axis, extents, std::move(bases));
  }
  for (int d = 0; d < einsum.rank(); ++d) {
    if (((used >> d) & 1U) == 0)
      receivers *= static_cast<std::int64_t>(child_starts(einsum, mapping, outer, inner, d).size());
  }
  return receivers;
}

Result<AccessCounts> count_accesses(const lower::Einsum& einsum, const Hierarchy& hierarchy, const Mapping& mapping) {
  PL_TRY(const Evaluator evaluator, Evaluator::prepare(einsum, hierarchy));
  Tally tally;
  const Verdict verdict = evaluator.evaluate(mapping, tally);
  if (!verdict.ok()) return evaluator.explain(verdict);
  return counts_of(evaluator.einsum(), mapping, tally);
}

AccessCounts counts_of(const lower::Einsum& einsum, const Mapping& mapping, const Tally& tally) {
  const std::size_t operands = einsum.operands.size();
  AccessCounts counts;
  counts.levels.resize(mapping.levels.size(), std::vector<OperandCounts>(operands));
  counts.macs = tally.macs;
  counts.compute_steps = tally.compute_steps;
  counts.cycles_overlapped = tally.cycles_overlapped;
  for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
    for (std::size_t o = 0; o < operands; ++o) {
      if (!mapping.levels[l].keeps_operand(o)) continue;
      const OperandTally& from = tally.levels[l][o];
      counts.levels[l][o] = {true, from.tile, from.reads, from.fills, from.updates, from.read_bits, from.write_bits};
      NetworkCounts network;
      network.outer = static_cast<int>(l);
      network.inner = from.inner;
      network.operand = o;
      network.ingresses = from.down.merged;
      network.deliveries = from.down.delivered;
      network.multicast = most_receivers(einsum, mapping, network.outer, network.inner, o);
      network.spatial_reductions = o + 1 == operands ? from.down.delivered - from.down.merged : 0;
      counts.networks.push_back(network);
    }
  }
  return counts;
}

}  // namespace plumbline::schedule
