#pragma once
// Constraint rows for `plumbline map`: the same rows as in a scenario's compile.constraints.
#include <vector>

#include "cli/map_kernel.h"
#include "ingest/accelerator.h"
#include "ingest/scenario.h"
#include "schedule/search_accelerator.h"

namespace plumbline::cli {

/// A file `constraints: [rows]`. Errors: with spans for every bad key.
Result<std::vector<ingest::ConstraintRow>> read_constraints(const ingest::Value& document);

/// The best mapping under the rows. Errors: does-not-fit (rows that contradict each other, naming both; rows that admit
/// no mapping, naming those whose removal admits one), bad-value (a row that does not speak of this kernel), and those
/// of search_on.
Result<schedule::SearchResult> search_under(const std::vector<ingest::ConstraintRow>& rows, const KernelText& kernel,
                                            const ingest::Accelerator& accelerator,
                                            const schedule::AcceleratorModel& model,
                                            const schedule::SearchOptions& options);

}  // namespace plumbline::cli
