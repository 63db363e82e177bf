#pragma once
// The metrics a gate may name, as rows: one place for name, unit and direction, and how each is read off a summary.
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "validate/summary.h"

namespace plumbline::validate {

/// A slice of a run; what is absent is summed over. `layer` indexes CostTable::layer_classes.
struct Selector {
  std::optional<std::size_t> model = std::nullopt;
  std::optional<std::size_t> layer = std::nullopt;
  std::optional<std::size_t> profile = std::nullopt;
  std::optional<std::size_t> phase = std::nullopt;  ///< serve::LoadPhase of the scheduled arrival
};

struct MetricRow {
  std::string_view name;
  std::string_view unit;
  bool lower_is_better = true;
  bool sliced_by_class = false;  ///< has a value for one layer class
  /// Nothing where the ratio has no denominator, or a layer class is asked of a metric that has none.
  std::optional<double> (*value)(const Summary& summary, const Selector& selector) = nullptr;
  std::string_view meaning;
};

/// All rows, in the order reports print them.
///
/// "Per inference" divides by the completed requests of the selected (model, profile, phase); a layer class narrows the
/// numerator only, so classes add up. Energy: the static part (idle, host, active power over the span) belongs to no
/// slice and is shared by the requests only where nothing is selected; any slice states its counted (dynamic) energy
/// alone, so slices do not add up to the overall value. Throughput of a slice is its completions over the whole span,
/// so slices add up to the overall rate.
[[nodiscard]] std::span<const MetricRow> metrics();

/// The row of that name, or null.
[[nodiscard]] const MetricRow* find_metric(std::string_view name);

}  // namespace plumbline::validate
