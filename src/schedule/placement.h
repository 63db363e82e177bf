#pragma once
// Where activations live: one home level, lifetimes in execution order, whole buffers spilled when they do not fit.
#include "ingest/accelerator.h"
#include "lower/kernel.h"
#include "schedule/levels.h"
#include "schedule/schedule.h"

namespace plumbline::schedule {

/// Places every buffer. While an instance runs, its weights (a piece of them when they are fetched in pieces) and a
/// double-buffered chunk of each off-chip operand share the home level with the live buffers; when that exceeds the
/// capacity the largest live buffer (ties: the earliest) is spilled.
/// Errors: does-not-fit (an instance does not fit with nothing else on chip).
Result<Placement> place_activations(const lower::KernelGraph& graph, const std::vector<KernelSchedule>& kernels,
                                    const ingest::Accelerator& accelerator, const LevelRoles& levels);

}  // namespace plumbline::schedule
