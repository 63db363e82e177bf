#pragma once
// Exact access counts of a mapping. Conventions (docs/scheduling.md): a multicast is one read of the parent; the first
// read of an output is skipped; draining a finished output is an update of the parent, not a read of the child; a
// sliding tile fetches only what is new; an idle PE of a ragged pass keeps its tile.
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "lower/einsum.h"
#include "schedule/hierarchy.h"
#include "schedule/mapping.h"

namespace plumbline::schedule {

/// Words (elements) summed over all instances of the level.
struct OperandCounts {
  bool kept = false;
  std::int64_t tile = 0;        ///< largest tile of one instance
  std::int64_t reads = 0;       ///< words leaving towards the next inner keeper (or the MACs)
  std::int64_t fills = 0;       ///< words arriving from the next outer keeper, one per receiving instance
  std::int64_t updates = 0;     ///< outputs only: sums arriving from below, after spatial reduction
  std::int64_t read_bits = 0;   ///< bits read: reads at the stored width, side data included
  std::int64_t write_bits = 0;  ///< bits written: fills and updates, likewise
  friend bool operator==(const OperandCounts&, const OperandCounts&) = default;
};

/// Traffic between a keeper and the next inner keeper of an operand.
struct NetworkCounts {
  int outer = 0;  ///< level index of the outer end
  int inner = 0;  ///< level index of the inner end; the number of levels stands for the MACs
  std::size_t operand = 0;
  std::int64_t ingresses = 0;           ///< words entering the network
  std::int64_t deliveries = 0;          ///< words leaving it: ingresses × multicast
  std::int64_t multicast = 1;           ///< most receivers of one word (outputs: most addends of one sum)
  std::int64_t spatial_reductions = 0;  ///< additions done in the network
  friend bool operator==(const NetworkCounts&, const NetworkCounts&) = default;
};

struct AccessCounts {
  std::vector<std::vector<OperandCounts>> levels;  ///< [level][operand]
  std::vector<NetworkCounts> networks;
  std::int64_t macs = 0;               ///< multiply-accumulates issued
  std::int64_t compute_steps = 0;      ///< temporal steps: the cycles when nothing throttles, at one MAC a cycle
  std::int64_t cycles_overlapped = 0;  ///< largest of compute and every level's throttled time (Timeloop's definition)
  friend bool operator==(const AccessCounts&, const AccessCounts&) = default;
};

/// Counts in closed form. Errors: does-not-fit (fan-out beyond the mesh, tile beyond the capacity), bad-value
/// (loops that do not cover the problem), overflow (beyond 64 bits).
Result<AccessCounts> count_accesses(const lower::Einsum& einsum, const Hierarchy& hierarchy, const Mapping& mapping);

/// How far `walk_accesses` goes. It walks every step and instance where that is affordable; above `explicit_visits` it
/// skips loops and instances that repeat what was just walked, above `most_visits` it gives up (too-large).
struct WalkLimits {
  std::int64_t explicit_visits = 20'000'000;
  std::int64_t most_visits = 4'000'000'000;
};

/// The same by walking the loop nest step by step with explicit sets: slow, independent, the judge in tests.
Result<AccessCounts> walk_accesses(const lower::Einsum& einsum, const Hierarchy& hierarchy, const Mapping& mapping,
                                   const WalkLimits& limits = {});

}  // namespace plumbline::schedule
