#include "study/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/elementary.h"
#include "core/parallel.h"
#include "study/sensitivity_causes.h"

namespace plumbline::study {
namespace {

using execute::KernelCost;
using execute::Movement;

constexpr double kFemtojoule = 1e-15;  // J
constexpr double kNanosecond = 1e-9;   // s
/// Sequences below this many tokens are no bucket anyone compiles by default.
constexpr std::int64_t kShortestSequence = 16;
constexpr std::int64_t kLargestSize = std::int64_t{1} << 20;  ///< of a batch or a sequence asked for

template <std::int64_t Movement::*Field>
std::optional<double> moved(const ReuseShape& shape) {
  return static_cast<double>(shape.total.movement.*Field) / static_cast<double>(shape.batch);
}
template <std::int64_t Movement::*Field>
double moved_by_class(const ReuseRow& row) {
  return static_cast<double>(row.movement.*Field);
}
template <std::int64_t Movement::*Field>
double moved_by_kernel(const KernelCost& kernel) {
  return static_cast<double>(kernel.movement.*Field);
}

double joules(const ReuseRow& row) {
  double sum = 0;
  for (const std::int64_t part : row.femtojoules) sum += static_cast<double>(part);
  return sum * kFemtojoule;
}
double cycles_of_class(const ReuseRow& row) { return static_cast<double>(row.cycles); }
double cycles_of_kernel(const KernelCost& kernel) { return static_cast<double>(kernel.cycles); }
double elements_of_class(const ReuseRow& row) { return static_cast<double>(row.weight_elements_in); }
double elements_of_kernel(const KernelCost& kernel) { return static_cast<double>(kernel.weight_elements_in); }

constexpr std::string_view kTimeCauses =
    "spill stall activation_passes weight_passes off_chip_passes padding residency dataflow";

template <std::int64_t Movement::*Field>
constexpr ShapeMetric movement_metric(std::string_view name, std::string_view causes, std::string_view meaning) {
  return {name, "B", true, moved<Field>, moved_by_class<Field>, moved_by_kernel<Field>, causes, meaning};
}

constexpr std::array kShapeMetrics = {
    movement_metric<&Movement::off_array_weight>("off_array_weight_bytes_per_inference", "weight_passes dataflow",
                                                 "model parameters read by the level just outside the array"),
    movement_metric<&Movement::off_chip_weight>("off_chip_weight_bytes_per_inference",
                                                "residency off_chip_passes dataflow",
                                                "model parameters read from off chip"),
    movement_metric<&Movement::off_array_stationary>("off_array_stationary_bytes_per_inference",
                                                     "activation_passes dataflow padding",
                                                     "activations held stationary, read by the level just outside"),
    movement_metric<&Movement::off_array_activation>("off_array_activation_bytes_per_inference",
                                                     "activation_passes dataflow",
                                                     "streamed inputs read and outputs written just outside the array"),
    movement_metric<&Movement::off_chip_activation>("off_chip_activation_bytes_per_inference", "spill dataflow",
                                                    "activations read and written off chip"),
    movement_metric<&Movement::psum>("psum_bytes_per_inference", "dataflow activation_passes weight_passes",
                                     "partial sums read and written outside the array"),
    ShapeMetric{"energy_per_inference", "J", true,
                [](const ReuseShape& s) { return std::optional(joules(s.total) / static_cast<double>(s.batch)); },
                joules, cycles_of_kernel,
                "spill residency weight_passes activation_passes off_chip_passes dataflow padding stall",
                "counted energy; idle, host and clock power need a load"},
    ShapeMetric{"service_time", "s", true,
                [](const ReuseShape& s) { return std::optional(static_cast<double>(s.duration_ns) * kNanosecond); },
                cycles_of_class, cycles_of_kernel, kTimeCauses, "one batch of the shape, host launch included", true},
    ShapeMetric{"service_time_per_inference", "s", true,
                [](const ReuseShape& s) {
                  return std::optional(static_cast<double>(s.duration_ns) * kNanosecond / static_cast<double>(s.batch));
                },
                cycles_of_class, cycles_of_kernel, kTimeCauses, "the batch's time over its requests"},
    ShapeMetric{"achieved_weight_reuse", "1", false, [](const ReuseShape& s) { return s.total.achieved_reuse(); },
                elements_of_class, elements_of_kernel, "weight_passes dataflow",
                "multiply-accumulates per weight element entering the array"},
    ShapeMetric{"weight_reuse_efficiency", "ratio", false,
                [](const ReuseShape& s) { return s.total.reuse_efficiency(); }, elements_of_class, elements_of_kernel,
                "weight_passes dataflow", "achieved reuse over multiply-accumulates per unique weight"},
    ShapeMetric{"weight_residency", "ratio", false, [](const ReuseShape& s) { return s.total.residency(); },
                cycles_of_class, cycles_of_kernel, kTimeCauses,
                "share of the busy PE-cycles that hold a weight which will still be used"},
    ShapeMetric{"feeder_utilization", "ratio", false, [](const ReuseShape& s) { return s.total.feeder_utilization(); },
                cycles_of_class, cycles_of_kernel, kTimeCauses,
                "share of the busy cycles in which the feeder serves every mapped row"},
    ShapeMetric{"inter_inference_residency", "ratio", false,
                [](const ReuseShape& s) { return s.total.inter_inference_residency(); },
                moved_by_class<&Movement::off_chip_weight>, moved_by_kernel<&Movement::off_chip_weight>, "residency",
                "share of the weight bytes a batch uses that were on chip before it"},
};

std::vector<std::int64_t> powers_up_to(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> out;
  for (std::int64_t v = first; v < last; v *= 2) out.push_back(v);
  out.push_back(last);
  return out;
}

Result<std::vector<std::int64_t>> ascending(std::vector<std::int64_t> values, const char* what) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  for (const std::int64_t v : values) {
    if (v < 1 || v > kLargestSize) {
      return make_error("bad-value", {},
                        fmt::format("a {} of {}, which is not between 1 and {}", what, v, kLargestSize));
    }
  }
  return values;
}

Result<const ShapeMetric*> choose_metric(const Prepared& prepared, const std::string& asked, std::string& note) {
  if (!asked.empty()) {
    if (const auto* found = find_shape_metric(asked)) return found;
    std::vector<std::string> names;
    for (const auto& row : kShapeMetrics) names.emplace_back(row.name);
    return make_error("unknown-name", {}, fmt::format("no shape has a metric '{}'", asked), suggest(asked, names));
  }
  const std::string& own = prepared.scenario->metric.name;
  if (const auto* found = find_shape_metric(own)) return found;
  note = fmt::format("the scenario's metric {} needs a load, so the grid shows another", own);
  return &kShapeMetrics[0];
}

std::optional<double> elasticity(std::int64_t x0, std::int64_t x1, const std::optional<double>& y0,
                                 const std::optional<double>& y1) {
  if (!y0 || !y1 || !(*y0 > 0) || !(*y1 > 0)) return std::nullopt;
  return exact_log(*y1 / *y0) / exact_log(static_cast<double>(x1) / static_cast<double>(x0));
}

/// One line of the grid: the cells that share the other coordinate.
struct Line {
  Axis axis = Axis::batch;
  std::vector<std::size_t> cells;
};

std::vector<Line> lines_of(std::size_t batches, std::size_t sequences) {
  std::vector<Line> out;
  for (std::size_t s = 0; s < sequences; ++s) {
    Line line{Axis::batch, {}};
    for (std::size_t b = 0; b < batches; ++b) line.cells.push_back(b * sequences + s);
    out.push_back(std::move(line));
  }
  for (std::size_t b = 0; b < batches; ++b) {
    Line line{Axis::sequence, {}};
    for (std::size_t s = 0; s < sequences; ++s) line.cells.push_back(b * sequences + s);
    out.push_back(std::move(line));
  }
  return out;
}

void walk_line(const Line& line, const std::vector<ShapeEvidence>& shapes, const ShapeMetric& metric,
               const ingest::Accelerator& accelerator, double threshold, ModelSensitivity& out) {
  std::vector<std::int64_t> positions;
  std::vector<std::optional<double>> values;
  for (const std::size_t c : line.cells) {
    positions.push_back(line.axis == Axis::batch ? out.cells[c].batch : out.cells[c].sequence);
    values.push_back(out.cells[c].value);
  }
  for (std::size_t i = 1; i < line.cells.size(); ++i) {
    out.elasticities.push_back({line.axis, out.cells[line.cells[i - 1]], out.cells[line.cells[i]],
                                elasticity(positions[i - 1], positions[i], values[i - 1], values[i])});
  }
  for (const TrendBreak& found : find_breaks(positions, values, threshold)) {
    Cliff cliff;
    cliff.axis = line.axis;
    const std::size_t from = line.cells[found.to - 1];
    const std::size_t to = line.cells[found.to];
    cliff.from = out.cells[from];
    cliff.to = out.cells[to];
    cliff.expected = found.expected;
    cliff.jump = *cliff.to.value / found.expected - 1;
    cliff.worse = (cliff.jump > 0) == metric.lower_is_better;
    explain(shapes[from], shapes[to], metric, accelerator, found.expected / *cliff.from.value, cliff);
    out.cliffs.push_back(std::move(cliff));
  }
}

}  // namespace

std::span<const ShapeMetric> shape_metrics() { return kShapeMetrics; }

const ShapeMetric* find_shape_metric(std::string_view name) {
  for (const auto& row : kShapeMetrics) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::vector<TrendBreak> find_breaks(const std::vector<std::int64_t>& positions,
                                    const std::vector<std::optional<double>>& values, double threshold) {
  std::vector<TrendBreak> out;
  std::optional<double> before;  // elasticity of the step before
  std::optional<double> steady;  // and of the last one that kept its trend
  for (std::size_t i = 1; i < positions.size(); ++i) {
    const auto here = elasticity(positions[i - 1], positions[i], values[i - 1], values[i]);
    if (!here) {
      before = steady = std::nullopt;
      continue;
    }
    const double width = exact_log(static_cast<double>(positions[i]) / static_cast<double>(positions[i - 1]));
    const auto expected = [&](double trend) { return *values[i - 1] * exact_exp(trend * width); };
    const auto off = [&](double trend) { return std::abs(*values[i] / expected(trend) - 1); };
    if (before && steady && off(*before) > threshold && off(*steady) > threshold) {
      out.push_back({i, expected(off(*before) < off(*steady) ? *before : *steady)});
    } else {
      steady = here;
    }
    before = here;
  }
  return out;
}

Result<SensitivityReport> study_sensitivity(Engine& engine, const Prepared& prepared,
                                            const SensitivityOptions& options) {
  PL_CHECK(prepared.ok());
  SensitivityReport out;
  out.scenario = prepared.scenario->name;
  out.hash = prepared.hash;
  PL_TRY(const ShapeMetric* metric, choose_metric(prepared, options.metric, out.note));
  out.metric = metric->name;
  out.unit = metric->unit;
  out.lower_is_better = metric->lower_is_better;
  if (!(options.threshold > 0) || !(options.threshold < 100)) {
    return make_error("bad-value", {}, "a threshold that is not above 0 and below 100");
  }
  out.threshold = options.threshold;
  const auto& shapes = prepared.scenario->compile.shapes;
  PL_TRY(out.batches,
         ascending(options.batches.empty() ? powers_up_to(1, shapes.batch.back()) : options.batches, "batch"));
  if (!shapes.sequence.empty()) {
    const std::int64_t last = shapes.sequence.back();
    PL_TRY(out.sequences, ascending(options.sequences.empty() ? powers_up_to(std::min(kShortestSequence, last), last)
                                                              : options.sequences,
                                    "sequence"));
  } else if (!options.sequences.empty()) {
    return make_error("bad-value", {}, "sequences were given, but no model of the scenario has one");
  }
  PL_TRY(const Prepared grid, compile_exactly(engine, prepared, out.batches, out.sequences));
  if (out.sequences.empty()) out.sequences = {0};
  const std::size_t cells = out.batches.size() * out.sequences.size();
  std::vector<std::optional<LoneShape>> alone(cells);
  std::vector<Diagnostics> failures(cells);
  parallel_for(cells, engine.threads(), [&](std::size_t c) {
    auto made = cost_alone(grid, c / out.sequences.size(), c % out.sequences.size());
    if (made.ok()) {
      alone[c] = std::move(*made);
    } else {
      failures[c] = made.errors();
    }
  });
  for (const auto& errors : failures) {
    if (!errors.empty()) return errors;
  }
  const auto& accelerator = *grid.scenario->accelerator;
  for (std::size_t m = 0; m < prepared.scenario->models.size(); ++m) {
    ModelSensitivity model;
    model.model = prepared.scenario->models[m].name;
    std::vector<ShapeEvidence> evidence(cells);
    parallel_for(cells, engine.threads(), [&](std::size_t c) {
      const LoneShape& shape = *alone[c];
      const auto& bucket = shape.models[m].buckets.front();
      const auto& entry = shape.costs.entries[shape.costs.index(m, 0, 0)];
      evidence[c] = {&bucket, &entry,
                     reuse_of(bucket, entry, shape.residency.pinned[m], shape.residency.pinned_bytes, accelerator,
                              shape.costs.clock)};
    });
    for (std::size_t c = 0; c < cells; ++c) {
      model.cells.push_back({out.batches[c / out.sequences.size()], out.sequences[c % out.sequences.size()],
                             metric->value(evidence[c].reuse)});
    }
    for (const Line& line : lines_of(out.batches.size(), out.sequences.size())) {
      walk_line(line, evidence, *metric, accelerator, out.threshold, model);
    }
    out.models.push_back(std::move(model));
  }
  return out;
}

}  // namespace plumbline::study
