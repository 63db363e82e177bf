#pragma once
// Constraint rows, resolved for one kernel: limits on factors, loop orders, spatial dimensions, what levels keep.
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/result.h"
#include "ingest/accelerator.h"
#include "ingest/scenario.h"
#include "lower/kernel.h"
#include "schedule/schedule.h"
#include "schedule/search.h"

namespace plumbline::schedule {

inline constexpr std::size_t kMaxRuleLevels = 8;

struct FactorLimit {
  std::int64_t min = 1;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  const ingest::ConstraintRow* min_row = nullptr;
  const ingest::ConstraintRow* max_row = nullptr;
};

struct Rules {
  std::array<std::array<FactorLimit, lower::kMaxDims>, kMaxRuleLevels> limits;
  std::array<std::vector<int>, kMaxRuleLevels> order;  ///< dimensions, outermost first
  std::array<const ingest::ConstraintRow*, kMaxRuleLevels> order_row{};
  std::array<std::uint32_t, kMaxRuleLevels> keep{};  ///< operands
  std::array<std::uint32_t, kMaxRuleLevels> bypass{};
  /// The row that keeps or passes by an operand.
  std::array<std::array<const ingest::ConstraintRow*, 3>, kMaxRuleLevels> holding_row{};
  int spatial_x = -1;  ///< preferred dimension; -1 = free
  int spatial_y = -1;
  const ingest::ConstraintRow* spatial_row = nullptr;  ///< the user's; a dataflow's preference does not bind
};

/// Rows that bind `kernel`: those whose glob and operation match and whose dimensions it has. A dataflow's rows come
/// first and give way. Errors: bad-value (unknown level), does-not-fit (rows that contradict each other).
Result<Rules> resolve_rules(const lower::Kernel& kernel, const ingest::Dataflow& dataflow,
                            const std::vector<ingest::ConstraintRow>& rows, const ingest::Accelerator& accelerator);

/// The rows' limits on factors as bounds of a search over `levels` levels, of which the last is the array: there, how
/// far a dimension spreads.
[[nodiscard]] std::vector<FactorBound> factor_bounds(const Rules& rules, const lower::Einsum& einsum,
                                                     std::size_t levels);

}  // namespace plumbline::schedule
