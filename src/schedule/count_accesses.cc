#include <algorithm>

#include "schedule/counts.h"
#include "schedule/evaluator.h"
#include "schedule/tally_counts.h"

namespace plumbline::schedule {

std::int64_t most_receivers(const lower::Einsum& einsum, const Mapping& mapping, int outer, int inner,
                            std::size_t operand) {
  // Of the children of one parent at the first step: those that differ in unused dimensions, times the deepest pile of
  // tiles along each window.
  std::int64_t receivers = 1;
  const auto& axes = einsum.operands[operand].axes;
  std::array<std::int64_t, lower::kMaxDims> below{};
  for (int d = 0; d < einsum.rank(); ++d) {
    std::int64_t product = 1;
    for (int l = static_cast<int>(mapping.levels.size()) - 1; l >= inner; --l) {
      for (const Loop& loop : mapping.levels[static_cast<std::size_t>(l)].loops) {
        if (loop.dim == d && __builtin_mul_overflow(product, loop.bound, &product)) product = INT64_MAX;
      }
    }
    below[static_cast<std::size_t>(d)] = std::min(product, einsum.dims[static_cast<std::size_t>(d)]);
  }
  // Starts of the children's tiles along one dimension that lie inside the problem.
  const auto starts = [&](int d) {
    std::vector<std::int64_t> result{0};
    std::int64_t stride = below[static_cast<std::size_t>(d)];
    for (int l = inner - 1; l >= outer; --l) {
      const auto& loops = mapping.levels[static_cast<std::size_t>(l)].loops;
      for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
        if (loop->dim != d) continue;
        if (loop->kind != LoopKind::temporal) {
          const std::size_t many = result.size();
          for (std::int64_t x = 1; x < loop->bound; ++x) {
            for (std::size_t i = 0; i < many; ++i) {
              if (result[i] + x * stride < einsum.dims[static_cast<std::size_t>(d)])
                result.push_back(result[i] + x * stride);
            }
          }
        }
        if (__builtin_mul_overflow(stride, loop->bound, &stride)) stride = INT64_MAX / 4;
        stride = std::min(stride, einsum.dims[static_cast<std::size_t>(d)]);
      }
    }
    return result;
  };
  std::uint32_t used = 0;
  for (const lower::Axis& axis : axes) {
    for (const lower::AxisTerm& term : axis) used |= 1U << term.dim;
    if (axis.size() < 2) continue;
    std::vector<std::int64_t> piles;  // every element of every child's tile
    std::vector<std::int64_t> bases{0};
    std::vector<std::int64_t> elements{0};
    for (const lower::AxisTerm& term : axis) {
      std::vector<std::int64_t> moved;
      for (const std::int64_t base : bases) {
        for (const std::int64_t start : starts(term.dim)) moved.push_back(base + term.coefficient * start);
      }
      bases = moved;
      moved.clear();
      for (const std::int64_t element : elements) {
        for (std::int64_t x = 0; x < below[static_cast<std::size_t>(term.dim)]; ++x)
          moved.push_back(element + term.coefficient * x);
      }
      std::sort(moved.begin(), moved.end());
      moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
      elements = moved;
    }
    if (bases.size() == 1) continue;
    for (const std::int64_t base : bases) {
      for (const std::int64_t element : elements) piles.push_back(base + element);
    }
    std::sort(piles.begin(), piles.end());
    std::int64_t deepest = 1;
    std::int64_t run = 0;
    for (std::size_t i = 0; i < piles.size(); ++i) {
      run = i > 0 && piles[i] == piles[i - 1] ? run + 1 : 1;
      deepest = std::max(deepest, run);
    }
    receivers *= deepest;
  }
  for (int d = 0; d < einsum.rank(); ++d) {
    if (((used >> d) & 1U) == 0) receivers *= static_cast<std::int64_t>(starts(d).size());
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
