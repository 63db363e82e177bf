#pragma once
// Bits that a mapping moves at every level, from its counts: what energy and bandwidth are reckoned on.
#include <array>
#include <cstdint>
#include <vector>

#include "lower/einsum.h"
#include "schedule/counts.h"
#include "schedule/mapping.h"

namespace plumbline::schedule {

struct OperandTraffic {
  std::int64_t read_bits = 0;
  std::int64_t write_bits = 0;
  /// Outputs only: the part of the above that is unfinished sums.
  std::int64_t partial_read_bits = 0;
  std::int64_t partial_write_bits = 0;
};

/// [level][operand]. Sums are `partial_bits` wide inside the level `home` and finished ones `bits` wide there and
/// outside. Draining a finished sum is a read of its keeper here (counts.h leaves it out, the port does not).
using Traffic = std::vector<std::array<OperandTraffic, 3>>;
[[nodiscard]] Traffic find_traffic(const lower::Einsum& einsum, const Mapping& mapping, const AccessCounts& counts,
                                   int home);

}  // namespace plumbline::schedule
