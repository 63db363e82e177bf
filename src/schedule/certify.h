#pragma once
// Certified mappings of one kernel on an accelerator: the searches its network objective needs, under the dataflows and
// rows the user allows, with floors that hold for every mapping there is.
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "schedule/choose_mapping.h"
#include "schedule/combine_fronts.h"
#include "schedule/mapping_cache.h"
#include "schedule/proof.h"

namespace plumbline::schedule {

struct CertifiedPoint {
  std::string dataflow;
  std::size_t stationary = 0;
  Mapping mapping;
  AccessCounts counts;  ///< on make_hierarchy(), as the simple tiling's
  MappingPrice price;
};

struct CertifiedKernel {
  KernelFront front;                   ///< costs and floors
  std::vector<CertifiedPoint> points;  ///< parallel to front.points; the first is the simple tiling's
  Proof proof;                         ///< scope and texts and counters; best and bound are set by the choice
};

/// The search objective that a compile.objective names.
[[nodiscard]] Objective search_objective(const std::string& name);

/// compile.objective and what decides among equals, in order.
[[nodiscard]] std::vector<Objective> search_objectives(const ingest::CompileOptions& options);

/// Searches with each operand held that an allowed dataflow holds. A mapping whose layout the array cannot have, or
/// that is worse than the simple one in the tool's own cycles and energy, is dropped; its bound stays. Where the search
/// declines (too many nodes, a form it does not know), the floor is compulsory traffic: `proof.covered` says so.
/// Errors: unsupported (formats below one MAC a cycle and PE), those of choose_mapping's rules.
Result<CertifiedKernel> certify_kernel(const MappingRequest& request, const KernelSchedule& simple,
                                       MappingCache& cache);

}  // namespace plumbline::schedule
