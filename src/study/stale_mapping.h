#pragma once
// What the mapping of a compiled bucket loses against the best one for the shape that really came.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/operating_point.h"

namespace plumbline::study {

/// What one batch costs, in the measures a compiler may be told to minimize.
struct ShapePrice {
  std::int64_t off_array_weight = 0;  ///< bytes
  std::int64_t off_chip_weight = 0;   ///< bytes
  std::int64_t cycles = 0;
  std::int64_t femtojoules = 0;
  /// In the unit of the objective: J, s, J·s or bytes.
  [[nodiscard]] double objective(const std::string& name, Clock clock) const;
};

/// Unit of an objective, for reports.
[[nodiscard]] std::string objective_unit(const std::string& name);

struct StaleRow {
  FormedShape formed;
  std::int64_t bucket_batch = 0;
  std::int64_t bucket_sequence = 0;
  ShapePrice padded;                ///< the compiled bucket as it ran
  std::optional<ShapePrice> stale;  ///< the true shape under the bucket's mappings; absent when they do not apply
  ShapePrice best;                  ///< the true shape compiled for itself
  /// Per batch, in the objective's unit: what the bucket's mappings lose on the true shape, and what padding adds.
  [[nodiscard]] std::optional<double> stale_cost(const std::string& objective, Clock clock) const;
  [[nodiscard]] std::optional<double> padding_cost(const std::string& objective, Clock clock) const;
};

struct StaleMappings {
  std::string objective;
  std::vector<StaleRow> rows;  ///< parallel to OperatingPoint::formed
  execute::CostTable alone;    ///< every formed size × sequence, and single requests, compiled exactly
};

/// Compiles every formed shape for itself. The pinned weights stay as they are, so the difference is the mappings'.
/// Errors: the stages'; too-large.
Result<StaleMappings> find_stale_mappings(Engine& engine, const Prepared& prepared, const OperatingPoint& point);

/// Weight MACs of one request of `sequence`, by layer class of `costs`: what counts as useful. `alone` holds it.
[[nodiscard]] std::vector<std::int64_t> useful_weight_macs(const execute::CostTable& costs,
                                                           const execute::CostTable& alone, std::size_t model,
                                                           std::int64_t sequence);

}  // namespace plumbline::study
