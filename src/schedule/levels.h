#pragma once
// The levels of an accelerator by what they are for.
#include <cstdint>

#include "core/result.h"
#include "ingest/accelerator.h"

namespace plumbline::schedule {

struct LevelRoles {
  int array = 0;      ///< the processing elements
  int stream = 0;     ///< just outside the array: the loops that run while the array holds its operand
  int home = 0;       ///< outermost on-chip level that holds inputs and outputs: activations live here
  int weights = 0;    ///< outermost on-chip level that holds weights: pinned weights live here
  int off_chip = -1;  ///< innermost off-chip level; -1 when there is none
};

/// Errors: unsupported (no on-chip level outside the array holds inputs and outputs, or none holds weights).
Result<LevelRoles> find_levels(const ingest::Accelerator& accelerator);

/// Bit i set: the hardware of the level may hold operand i ([weights, inputs, outputs]).
[[nodiscard]] std::uint32_t held_operands(const ingest::AcceleratorLevel& level);

}  // namespace plumbline::schedule
