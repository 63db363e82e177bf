#include "execute/reduction_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace plumbline::execute {
namespace {

/// Products of one result: an order of 128 MiB.
constexpr std::int64_t kMostProducts = std::int64_t{1} << 24;

/// A loop over a summed dimension.
struct SummingLoop {
  std::size_t dim = 0;
  std::int64_t bound = 1;
  std::int64_t stride = 1;
};

/// The summing loops by their part: outside of a group, over the PEs of a group, within a PE.
struct Parts {
  std::vector<SummingLoop> outside;
  std::vector<SummingLoop> across;
  std::vector<SummingLoop> within;
  bool registers = false;  ///< every PE has a sum of its own
};

/// How far one step of each loop moves its dimension: the product of the bounds of that dimension's loops inside it.
std::vector<std::vector<std::int64_t>> strides_of(const schedule::Mapping& mapping) {
  std::vector<std::vector<std::int64_t>> strides(mapping.levels.size());
  std::array<std::int64_t, lower::kMaxDims> inside{};
  inside.fill(1);
  for (std::size_t l = mapping.levels.size(); l-- > 0;) {
    const auto& loops = mapping.levels[l].loops;
    strides[l].resize(loops.size());
    for (std::size_t i = loops.size(); i-- > 0;) {
      std::int64_t& size = inside[static_cast<std::size_t>(loops[i].dim)];
      strides[l][i] = size;
      size *= loops[i].bound;
    }
  }
  return strides;
}

/// The level whose spatial loops sum; -1 without one. Errors: unsupported.
Result<int> spreading_level(const schedule::Mapping& mapping, std::uint32_t kept) {
  int level = -1;
  for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
    const auto& loops = mapping.levels[l].loops;
    const bool sums = std::any_of(loops.begin(), loops.end(), [&](const schedule::Loop& loop) {
      return loop.kind != schedule::LoopKind::temporal && loop.bound > 1 && ((kept >> loop.dim) & 1U) == 0;
    });
    if (sums && level >= 0)
      return make_error("unsupported", Span{}, "the order of sums that are spread over instances at two levels");
    if (sums) level = static_cast<int>(l);
  }
  return level;
}

Result<Parts> part(const lower::Einsum& einsum, const schedule::Mapping& mapping) {
  const std::size_t outputs = einsum.operands.size() - 1;
  const std::uint32_t kept = dims_of(einsum.operands[outputs]);
  PL_TRY(const int spread, spreading_level(mapping, kept));
  // The level inside the PEs that keeps the outputs, so that a PE sums by itself.
  std::size_t keeper = mapping.levels.size();
  for (std::size_t l = mapping.levels.size(); spread >= 0 && l-- > static_cast<std::size_t>(spread) + 1;) {
    if (mapping.levels[l].keeps_operand(outputs)) keeper = l;
  }
  const auto strides = strides_of(mapping);
  Parts parts;
  parts.registers = keeper < mapping.levels.size();
  std::vector<SummingLoop>& summed = parts.registers ? parts.within : parts.outside;
  for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
    for (std::size_t i = 0; i < mapping.levels[l].loops.size(); ++i) {
      const schedule::Loop& loop = mapping.levels[l].loops[i];
      if (loop.bound == 1) continue;
      const SummingLoop summing{static_cast<std::size_t>(loop.dim), loop.bound, strides[l][i]};
      if (((kept >> loop.dim) & 1U) == 0) {
        (loop.kind == schedule::LoopKind::temporal ? summed : parts.across).push_back(summing);
      } else if (loop.kind == schedule::LoopKind::temporal && l < keeper) {
        // A tile that leaves its PE takes along what was summed so far: those loops stand outside of the group.
        parts.outside.insert(parts.outside.end(), parts.within.begin(), parts.within.end());
        parts.within.clear();
      }
    }
  }
  return parts;
}

/// Calls `visit(index by dimension)` for every combination of the loops' digits, the last loop fastest.
template <class Visit>
void each(const std::vector<SummingLoop>& loops, std::size_t at, std::array<std::int64_t, lower::kMaxDims>& index,
          const Visit& visit) {
  if (at == loops.size()) {
    visit();
    return;
  }
  std::int64_t& place = index[loops[at].dim];
  const std::int64_t before = place;
  for (std::int64_t digit = 0; digit < loops[at].bound; ++digit) {
    place = before + digit * loops[at].stride;
    each(loops, at + 1, index, visit);
  }
  place = before;
}

}  // namespace

Result<ReductionOrder> reduction_order(const lower::Einsum& einsum, const schedule::Mapping& mapping) {
  PL_TRY(const Parts parts, part(einsum, mapping));
  const std::uint32_t kept = dims_of(einsum.operands.back());
  std::vector<std::size_t> summed;
  std::int64_t products = 1;
  for (int d = 0; d < einsum.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (((kept >> d) & 1U) != 0) continue;
    summed.push_back(at);
    if (einsum.dims[at] > kMostProducts / products)
      return make_error("too-large", Span{}, fmt::format("the order of more than {} products", kMostProducts));
    products *= einsum.dims[at];
  }
  ReductionOrder made;
  made.order.reserve(static_cast<std::size_t>(products));
  std::array<std::int64_t, lower::kMaxDims> index{};
  const auto add = [&] {
    std::int64_t flat = 0;
    for (const std::size_t d : summed) {
      if (index[d] >= einsum.dims[d]) return;  // beyond the edge of a ragged pass
      flat = flat * einsum.dims[d] + index[d];
    }
    made.order.push_back(flat);
  };
  const auto begin = [&](std::vector<std::int64_t>& list) {
    const auto here = static_cast<std::int64_t>(made.order.size());
    if (here > 0 && (list.empty() || list.back() != here)) list.push_back(here);
  };
  each(parts.outside, 0, index, [&] {
    if (!parts.across.empty()) begin(made.groups);
    each(parts.across, 0, index, [&] {
      if (parts.registers) begin(made.pieces);
      each(parts.within, 0, index, add);
    });
  });
  // What began beyond the edge has no products.
  for (auto* list : {&made.groups, &made.pieces}) {
    while (!list->empty() && list->back() == static_cast<std::int64_t>(made.order.size())) list->pop_back();
  }
  return made;
}

Result<numerics::Accumulation> in_order(numerics::Accumulation accumulation, const ReductionOrder& order) {
  const bool one_by_one = accumulation.reduction == numerics::Reduction::sequential_fused ||
                          accumulation.reduction == numerics::Reduction::sequential_rounded;
  if (!one_by_one || !accumulation.blockings.empty()) {
    return make_error(
        "unsupported", Span{}, fmt::format("the order of a mapping for {}", accumulation.name),
        "trees, tensor cores and sums in pieces have an order of their own; a mapping orders fused or rounded "
        "sums of one register");
  }
  if (!std::is_sorted(order.order.begin(), order.order.end())) accumulation.order = order.order;
  for (const auto* splits : {&order.pieces, &order.groups}) {
    if (splits->empty()) continue;
    numerics::Blocking blocking;
    blocking.splits = *splits;
    blocking.into = accumulation.accumulator;
    accumulation.blockings.push_back(std::move(blocking));
  }
  return accumulation;
}

}  // namespace plumbline::execute
