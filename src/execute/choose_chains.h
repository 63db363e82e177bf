#pragma once
// Which chains of kernels are cut into chunks so that what is between them stays on chip (docs/schedule.md, Chains).
#include <map>
#include <string>
#include <vector>

#include "core/result.h"
#include "ingest/accelerator.h"
#include "ingest/scenario.h"
#include "schedule/schedule.h"

namespace plumbline::execute {

struct ChainedSchedules {
  std::vector<schedule::ModelSchedules> models;
  schedule::Residency residency;
};

/// Tries to cut every chain of every compiled shape (KernelGraph::chains) in several ways and keeps what lowers
/// `options.objective` of the shape, by the cost table's own figures at the nominal clock, and raises no other shape's.
/// So no shape is ever worse than as it came. Where a cut changes the peak, pinned weights are planned again. Every
/// schedule receives its ChainChoice rows. With `search: certified` cuts are found on simple tilings and then scheduled
/// with proof; what does not win there too is dropped. Errors: those of build_cost_table and plan_residency.
Result<ChainedSchedules> choose_chains(const ChainedSchedules& plain, const ingest::Accelerator& accelerator,
                                       const ingest::CompileOptions& options,
                                       const std::map<std::string, ingest::Dataflow>& dataflows,
                                       schedule::MappingCache* cache);

}  // namespace plumbline::execute
