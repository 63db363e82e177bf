#pragma once
// The certified search on an accelerator file: its levels as a hierarchy with capacities, rates and energies, and every
// operand its array may hold tried in turn.
#include <string>
#include <vector>

#include "core/result.h"
#include "ingest/accelerator.h"
#include "schedule/search.h"

namespace plumbline::schedule {

/// An accelerator for one format pair at its nominal clock.
struct AcceleratorModel {
  Hierarchy hierarchy;
  EnergyRates rates;                    ///< femtojoules
  bool one_register = false;            ///< a PE holds one element, whatever its width
  std::vector<std::uint32_t> may_hold;  ///< by level, bit i: operand i of [weights, inputs, outputs]
};

/// Rates in bits per cycle at the nominal clock; an array without a capacity holds one element a PE. Errors:
/// unknown-name (formats, energy rows), unsupported (a rate that is no fraction with a small denominator).
Result<AcceleratorModel> model_accelerator(const ingest::Accelerator& accelerator, const std::string& inputs,
                                           const std::string& accumulate, const lower::Einsum& einsum);

/// The best of the searches with each operand held in the array. Errors: those of search_mapping.
Result<SearchResult> search_on(const AcceleratorModel& model, const lower::Einsum& einsum,
                               const SearchOptions& options);

}  // namespace plumbline::schedule
