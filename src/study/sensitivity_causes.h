#pragma once
// Why a metric leaves its trend between two shapes: what changed in placement, residency, mappings and stalls.
#include <vector>

#include "study/sensitivity.h"

namespace plumbline::study {

/// One shape with everything a cause can be read from.
struct ShapeEvidence {
  const schedule::Bucket* bucket = nullptr;
  const execute::BatchCost* costs = nullptr;
  ReuseShape reuse;
};

/// Names the class, kernel, cause and what else changed. `expected_ratio` is trend value / value at `from`.
void explain(const ShapeEvidence& from, const ShapeEvidence& to, const ShapeMetric& metric,
             const ingest::Accelerator& accelerator, double expected_ratio, Cliff& cliff);

}  // namespace plumbline::study
