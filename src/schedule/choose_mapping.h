#pragma once
// Picks a kernel's dataflow and mapping. The simple tiling tries a few nests; a search may take its place behind this.
#include <map>
#include <string>

#include "core/result.h"
#include "ingest/accelerator.h"
#include "ingest/scenario.h"
#include "lower/kernel.h"
#include "schedule/levels.h"
#include "schedule/schedule.h"

namespace plumbline::schedule {

struct MappingRequest {
  const lower::Kernel& kernel;  ///< a matrix kernel
  const ingest::Accelerator& accelerator;
  const LevelRoles& levels;
  const ingest::CompileOptions& options;
  const std::map<std::string, ingest::Dataflow>& dataflows;
  std::int64_t shrink = 1;  ///< stream tiles are at most the largest that fits, divided by this
};

/// The best mapping under `options.objective` (energy, latency, edp, off_array_weight_bytes); ties go to the first
/// tried, dataflows in order of name. Errors: unknown-name (dataflow), does-not-fit, bad-value, unsupported.
Result<KernelSchedule> choose_mapping(const MappingRequest& request);

}  // namespace plumbline::schedule
