#pragma once
// Shape sensitivity: a metric over batch × sequence, its elasticities, and every cliff with its cause.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "study/exact_shapes.h"
#include "study/reuse_row.h"

namespace plumbline::study {

/// A metric that one shape has by itself, without load.
struct ShapeMetric {
  std::string_view name;
  std::string_view unit;
  bool lower_is_better = true;
  std::optional<double> (*value)(const ReuseShape& shape) = nullptr;
  /// What of it a class, or one kernel of it, is answerable for; adds up over classes. Ratios name their driver.
  double (*class_part)(const ReuseRow& row) = nullptr;
  double (*kernel_part)(const execute::KernelCost& kernel) = nullptr;  ///< of one execution
  std::string_view causes;  ///< kinds of cause in the order in which they explain it, separated by blanks
  std::string_view meaning;
  bool per_batch = false;  ///< the value is the batch's, not one request's
};
[[nodiscard]] std::span<const ShapeMetric> shape_metrics();
[[nodiscard]] const ShapeMetric* find_shape_metric(std::string_view name);

enum class Axis : std::uint8_t { batch, sequence };

struct SensitivityCell {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::optional<double> value;
};

/// d ln metric / d ln axis between two neighbours; absent unless both values are positive.
struct Elasticity {
  Axis axis = Axis::batch;
  SensitivityCell from;
  SensitivityCell to;
  std::optional<double> value;
};

struct CliffCause {
  std::string
      kind;  ///< spill, residency, off_chip_passes, weight_passes, activation_passes, dataflow, padding, stall …
  std::string text;
  double from = 0;
  double to = 0;
};

/// A step on which the metric leaves its trend by more than the threshold.
struct Cliff {
  Axis axis = Axis::batch;
  SensitivityCell from;
  SensitivityCell to;
  double expected = 0;  ///< the value at `to` had the trend gone on
  double jump = 0;      ///< value / expected - 1
  bool worse = false;
  std::string layer_class;  ///< that leaves the trend most
  std::string kernel;       ///< its kernel that does
  std::string mapping_from;
  std::string mapping_to;
  CliffCause cause;
  std::vector<CliffCause> beside;  ///< what else changed there
};

struct ModelSensitivity {
  std::string model;
  std::vector<SensitivityCell> cells;  ///< [batch][sequence]
  std::vector<Elasticity> elasticities;
  std::vector<Cliff> cliffs;
};

struct SensitivityReport {
  std::string scenario;
  std::string hash;
  std::string metric;
  std::string unit;
  std::string note;  ///< why the metric is not the scenario's own; empty when it is, or was asked for
  bool lower_is_better = true;
  double threshold = 0;
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> sequences;  ///< {0} without a sequence
  std::vector<ModelSensitivity> models;
};

struct SensitivityOptions {
  std::vector<std::int64_t> batches;    ///< empty: powers of two up to the largest bucket, and that bucket
  std::vector<std::int64_t> sequences;  ///< likewise; from 16 on
  std::string metric;                   ///< empty: the scenario's when a shape has it, else off-array weight bytes
  double threshold = 0.1;
};

/// Compiles every shape exactly and alone, so that residency is the shape's own. Errors: unknown-name (metric),
/// bad-value (sizes), too-large, the stages'.
Result<SensitivityReport> study_sensitivity(Engine& engine, const Prepared& prepared,
                                            const SensitivityOptions& options);

/// Steps along a line of values at positions (both ascending in position) that leave their trend: index of the step's
/// end, and the value the nearer trend gives there. A step is judged against the elasticity of the step before it and
/// of the last step that kept its trend; it must leave both by more than the threshold.
struct TrendBreak {
  std::size_t to = 0;
  double expected = 0;
};
[[nodiscard]] std::vector<TrendBreak> find_breaks(const std::vector<std::int64_t>& positions,
                                                  const std::vector<std::optional<double>>& values, double threshold);

}  // namespace plumbline::study
