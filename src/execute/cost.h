#pragma once
// From schedules to costs: docs/execute.md has the formulas.
#include <vector>

#include "core/quantity.h"
#include "core/result.h"
#include "execute/cost_table.h"
#include "ingest/accelerator.h"
#include "schedule/schedule.h"

namespace plumbline::execute {

/// The cost of every compiled shape of every model at `clock`. Rates per second are converted at that clock, so a
/// faster core sees a relatively slower memory. An absent rate is unlimited, an absent capacity unbounded. `models`
/// must all have the buckets [batch][sequence] that `shapes` lists (a model without a sequence may give one per batch).
/// Errors: missing-key and unknown-name (energy actions), bad-value (no vector unit), overflow.
Result<CostTable> build_cost_table(const std::vector<schedule::ModelSchedules>& models, const ingest::Buckets& shapes,
                                   const schedule::Residency& residency, const ingest::Accelerator& accelerator,
                                   Clock clock);

}  // namespace plumbline::execute
