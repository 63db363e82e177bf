#pragma once
// search_mapping with a memory: the same question is searched once, and once for all runs that share a cache folder.
#include <string>

#include "core/result.h"
#include "schedule/mapping_cache.h"
#include "schedule/search.h"

namespace plumbline::schedule {

/// Everything an answer depends on, as text.
[[nodiscard]] std::string search_key(const lower::Einsum& einsum, const Hierarchy& hierarchy, const EnergyRates& rates,
                                     const SearchOptions& options);

/// As search_mapping; `counts` of a remembered answer are counted anew, and must give the value it claims. A refusal is
/// remembered too. Errors: those of search_mapping.
Result<SearchResult> search_once(const lower::Einsum& einsum, const Hierarchy& hierarchy, const EnergyRates& rates,
                                 const SearchOptions& options, MappingCache& cache);

}  // namespace plumbline::schedule
