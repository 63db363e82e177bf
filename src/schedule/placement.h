#pragma once
// Where activations live: one home level, lifetimes in execution order, whole buffers spilled when they do not fit.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ingest/accelerator.h"
#include "lower/kernel.h"
#include "schedule/levels.h"
#include "schedule/schedule.h"

namespace plumbline::schedule {

struct PlacementTrial {
  Placement placement;
  std::optional<std::size_t> too_large;  ///< an instance that does not fit even with every buffer off chip
  std::int64_t needed = 0;               ///< bytes it needs at once
};

/// Places every buffer. While an instance runs, its weights (a piece of them when they are fetched in pieces) and a
/// double-buffered chunk of each off-chip operand share the home level with the live buffers; when that exceeds the
/// capacity the largest live buffer (ties: the earliest) is spilled.
[[nodiscard]] PlacementTrial place_activations(const lower::KernelGraph& graph,
                                               const std::vector<KernelSchedule>& kernels,
                                               const ingest::Accelerator& accelerator, const LevelRoles& levels);

}  // namespace plumbline::schedule
