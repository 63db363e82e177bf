#pragma once
// The hierarchy, kernels and random mappings the mapping benchmarks share.
#include <vector>

#include "core/random.h"
#include "lower/einsum.h"
#include "schedule/hierarchy.h"
#include "schedule/mapping.h"

namespace plumbline::bench {

/// Off chip 8 words a cycle each way, a buffer of 524 288 words, 32×32 PEs of 64 words; words of 8 bits.
schedule::Hierarchy reference_hierarchy();
/// Every operand and partial sum at 8 bits, as in the reference energies.
lower::Einsum narrow(lower::Einsum einsum);
/// Distinct random mappings with perfect factors that fit and use at least 90 % of the PEs, any orders and bypasses.
std::vector<schedule::Mapping> random_mappings(const lower::Einsum& einsum, std::size_t count, RandomStream& random);

}  // namespace plumbline::bench
