#pragma once
// From the evaluator's fixed arrays to the public counts.
#include "schedule/counts.h"
#include "schedule/evaluator.h"

namespace plumbline::schedule {

/// Most children of one parent that receive the same word at the first step (for outputs: that add to one sum).
[[nodiscard]] std::int64_t most_receivers(const lower::Einsum& einsum, const Mapping& mapping, int outer, int inner,
                                          std::size_t operand);

/// `tally` must come from an ok evaluation of `mapping`.
[[nodiscard]] AccessCounts counts_of(const lower::Einsum& einsum, const Mapping& mapping, const Tally& tally);

}  // namespace plumbline::schedule
