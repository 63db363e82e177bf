#pragma once
// What a mapping sends through the network into the grid: its groups, whole and ragged passes apart.
#include <cstddef>

#include "core/result.h"
#include "schedule/evaluator.h"
#include "schedule/network.h"

namespace plumbline::schedule {

struct MappedTraffic {
  NetworkTraffic moved;     ///< operands inward; sums outward
  NetworkTraffic returned;  ///< outputs kept in the grid only: unfinished sums that come back inward
  /// Every word and receiver is that of the counts. False where windows of neighbours overlap in the grid or a ragged
  /// dimension lies on both axes: then each receiver is sent its own words, an upper bound.
  bool exact = true;
};

/// Traffic of one operand between level `outer` and level `inner` (the number of levels stands for the MACs), as if it
/// were kept at both and at nothing between. Errors: those of the mapping; unsupported (a grid inside a grid).
Result<MappedTraffic> find_network_traffic(const Evaluator& evaluator, const Mapping& mapping, int outer, int inner,
                                           std::size_t operand);

}  // namespace plumbline::schedule
