#pragma once
// A simple tiling: one array tile, one stream past it, loops around them at the on-chip home of the activations.
#include <cstddef>
#include <cstdint>

#include "core/result.h"
#include "ingest/accelerator.h"
#include "lower/kernel.h"
#include "schedule/levels.h"
#include "schedule/mapping.h"
#include "schedule/roles.h"
#include "schedule/rules.h"

namespace plumbline::schedule {

/// What the tiling may vary.
struct TilingChoice {
  std::size_t stationary = 0;
  std::int64_t stream_divisor = 1;  ///< the stream tile is the largest that fits, divided by this
  bool outputs_first = false;       ///< loops over other outputs outside the loops over the stream
};

struct TilingProblem {
  const lower::Kernel& kernel;
  const ingest::Accelerator& accelerator;
  const LevelRoles& levels;
  const DimRoles& roles;
  const Rules& rules;
};

/// Spatial tiles fill rows and columns; the stream tile fills what holds the partial sums; both are balanced over their
/// passes; the remaining loops run at the home level, reductions innermost so that sums stay where they are, or in the
/// order a row asks for. Errors: does-not-fit, with the span of the row that cannot be met.
Result<Mapping> make_tiling(const TilingProblem& problem, const TilingChoice& choice);

}  // namespace plumbline::schedule
