#pragma once
// The order in which a mapping adds the products of one result, so that the same loop nest explains cycles, joules and
// bits.
#include <cstdint>
#include <vector>

#include "core/result.h"
#include "execute/numerics/accumulate.h"
#include "lower/einsum.h"
#include "schedule/mapping.h"

namespace plumbline::execute {

/// `order[i]` is the product that comes i-th, numbered row-major over the dimensions that are summed. Products are
/// added one by one from `order[0]` on, except where spatial loops sum them: then every PE adds its own from zero
/// (pieces that begin at `pieces`), the PEs of a group add up one after the other (groups begin at `groups`), and the
/// group's sum joins the result. Both lists hold ascending positions in (0, order.size()), and no position 0; `pieces`
/// is empty when a PE has one product a group, both are when no spatial loop sums.
struct ReductionOrder {
  std::vector<std::int64_t> order;
  std::vector<std::int64_t> pieces;
  std::vector<std::int64_t> groups;
};

/// `mapping` must cover `einsum` (schedule::Evaluator says so); ragged passes leave out what is beyond the sizes. A PE
/// sums by itself when a level below the fan-out keeps the outputs, until a loop over outputs outside that level takes
/// its tile away (whether or not the loop's last pass is ragged: all results have one order).
/// Errors: too-large (more than 2^24 products), unsupported (sums spread at more than one level).
[[nodiscard]] Result<ReductionOrder> reduction_order(const lower::Einsum& einsum, const schedule::Mapping& mapping);

/// The accumulation with its products in this order: what a PE and a group sum is rounded as the accumulator is.
/// Errors: unsupported (an accumulation that has pieces, or a tree or a block of its own).
[[nodiscard]] Result<numerics::Accumulation> in_order(numerics::Accumulation accumulation, const ReductionOrder& order);

}  // namespace plumbline::execute
