#include "study/sensitivity_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "schedule/levels.h"

namespace plumbline::study {
namespace {

using execute::KernelCost;

/// Changes of a ratio below this are not worth a cause.
constexpr double kNoticeable = 0.01;

struct Pair {
  const ShapeEvidence& from;
  const ShapeEvidence& to;
  const ingest::Accelerator& accelerator;
  const KernelCost* kernel_from = nullptr;  ///< of the kernel that leaves the trend; may be absent
  const KernelCost* kernel_to = nullptr;
};

double as_double(std::int64_t v) { return static_cast<double>(v); }

/// "2", "1.5".
std::string number(double value) { return fmt::format("{:.3g}", value); }

std::string megabytes(double bytes) {
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes * 1e-6);
  return bytes >= 1e3 ? fmt::format("{:.1f} kB", bytes * 1e-3) : fmt::format("{:.0f} B", bytes);
}

const KernelCost* row_of(const ShapeEvidence& shape, std::int32_t instance) {
  for (const auto& row : shape.costs->kernels) {
    if (std::find(row.instances.begin(), row.instances.end(), instance) != row.instances.end()) return &row;
  }
  return nullptr;
}

const lower::Kernel& kernel_of(const ShapeEvidence& shape, const KernelCost& row) {
  return shape.bucket->graph->kernels[row.kernel];
}
const schedule::KernelSchedule& mapping_of(const ShapeEvidence& shape, const KernelCost& row) {
  return shape.bucket->schedule->kernels[row.kernel];
}

std::optional<CliffCause> spill(const Pair& pair) {
  const double a = as_double(pair.from.bucket->schedule->placement.spilled);
  const double b = as_double(pair.to.bucket->schedule->placement.spilled);
  if (a == b) return std::nullopt;
  const auto* home = schedule::on_chip_level(pair.accelerator);
  return CliffCause{"spill",
                    fmt::format("activations that do not fit into '{}' go from {} to {}",
                                home == nullptr ? "" : home->name, megabytes(a), megabytes(b)),
                    a, b};
}

std::optional<CliffCause> residency(const Pair& pair) {
  const double a = pair.from.reuse.total.inter_inference_residency().value_or(0);
  const double b = pair.to.reuse.total.inter_inference_residency().value_or(0);
  if (std::abs(a - b) < kNoticeable) return std::nullopt;
  return CliffCause{"residency",
                    fmt::format("{:.0f} % instead of {:.0f} % of the weights stay on chip between batches: activations "
                                "peak at {} instead of {}",
                                100 * b, 100 * a, megabytes(as_double(pair.to.bucket->schedule->placement.peak)),
                                megabytes(as_double(pair.from.bucket->schedule->placement.peak))),
                    a, b};
}

/// Temporal loops over a dimension that an operand does not have: each trip reads the operand again.
std::string refetch_loops(const ShapeEvidence& shape, const KernelCost& row, std::size_t operand) {
  const auto& kernel = kernel_of(shape, row);
  const auto& made = mapping_of(shape, row);
  std::uint32_t relevant = 0;
  for (const auto& axis : kernel.einsum.operands[operand].axes) {
    for (const auto& term : axis) relevant |= 1U << term.dim;
  }
  // What the array holds stays while the innermost loops run that leave it alone: they stream past it.
  const bool held = made.mapping.levels.back().keeps_operand(operand);
  std::vector<std::string> loops;
  std::size_t repeating = 0;
  for (std::size_t l = 0; l + 1 < made.mapping.levels.size(); ++l) {
    for (const auto& loop : made.mapping.levels[l].loops) {
      if (loop.kind != schedule::LoopKind::temporal || loop.bound < 2) continue;
      if (((relevant >> loop.dim) & 1U) != 0) {
        repeating = loops.size();
        continue;
      }
      loops.push_back(fmt::format("{} in {} ({})", kernel.einsum.dim_names[static_cast<std::size_t>(loop.dim)],
                                  loop.bound, made.hierarchy.levels[l].name));
    }
  }
  if (held) loops.resize(repeating);
  std::string text;
  for (const auto& loop : loops) text += (text.empty() ? "" : ", ") + loop;
  return text.empty() ? "none" : text;
}

double passes(double moved, std::int64_t unique) { return unique > 0 ? moved / as_double(unique) : 0; }

std::optional<CliffCause> weight_passes(const Pair& pair) {
  if (pair.kernel_from == nullptr || pair.kernel_to == nullptr) return std::nullopt;
  const double a = passes(as_double(pair.kernel_from->weight_elements_in),
                          kernel_of(pair.from, *pair.kernel_from).unique_weight_elements);
  const double b =
      passes(as_double(pair.kernel_to->weight_elements_in), kernel_of(pair.to, *pair.kernel_to).unique_weight_elements);
  if (a == 0 || b == 0 || std::abs(b / a - 1) < kNoticeable) return std::nullopt;
  return CliffCause{
      "weight_passes",
      fmt::format("each weight enters the array {} times instead of {}; loops that repeat it: {}, before: {}",
                  number(b), number(a), refetch_loops(pair.to, *pair.kernel_to, 0),
                  refetch_loops(pair.from, *pair.kernel_from, 0)),
      a, b};
}

std::optional<CliffCause> off_chip_passes(const Pair& pair) {
  if (pair.kernel_from == nullptr || pair.kernel_to == nullptr) return std::nullopt;
  const double a = passes(as_double(pair.kernel_from->movement.off_chip_weight),
                          kernel_of(pair.from, *pair.kernel_from).unique_weight_bytes);
  const double b = passes(as_double(pair.kernel_to->movement.off_chip_weight),
                          kernel_of(pair.to, *pair.kernel_to).unique_weight_bytes);
  if (std::abs(a - b) < kNoticeable) return std::nullopt;
  return CliffCause{"off_chip_passes",
                    fmt::format("each weight is fetched from off chip {} times instead of {}", number(b), number(a)), a,
                    b};
}

/// Words of the streamed operand read outside the array over its distinct words.
double input_passes(const ShapeEvidence& shape, const KernelCost& row) {
  const auto& kernel = kernel_of(shape, row);
  const auto& made = mapping_of(shape, row);
  if (kernel.kind != lower::KernelKind::matrix) return 0;
  const auto array = static_cast<int>(made.mapping.levels.size()) - 1;
  std::int64_t words = 0;
  std::int64_t distinct = 0;
  for (int l = 0; l < array; ++l) {
    if (!made.mapping.levels[static_cast<std::size_t>(l)].keeps_operand(1)) continue;
    const auto& counts = made.counts.levels[static_cast<std::size_t>(l)][1];
    if (distinct == 0) distinct = counts.tile;
    words = counts.reads;
  }
  return distinct > 0 ? as_double(words) / as_double(distinct) : 0;
}

std::optional<CliffCause> activation_passes(const Pair& pair) {
  if (pair.kernel_from == nullptr || pair.kernel_to == nullptr) return std::nullopt;
  const double a = input_passes(pair.from, *pair.kernel_from);
  const double b = input_passes(pair.to, *pair.kernel_to);
  if (a == 0 || b == 0 || std::abs(b / a - 1) < kNoticeable) return std::nullopt;
  return CliffCause{
      "activation_passes",
      fmt::format("each input is fed to the array {} times instead of {}; loops that repeat it: {}, before: {}",
                  number(b), number(a), refetch_loops(pair.to, *pair.kernel_to, 1),
                  refetch_loops(pair.from, *pair.kernel_from, 1)),
      a, b};
}

std::optional<CliffCause> dataflow(const Pair& pair) {
  if (pair.kernel_from == nullptr || pair.kernel_to == nullptr) return std::nullopt;
  const auto& a = mapping_of(pair.from, *pair.kernel_from).dataflow;
  const auto& b = mapping_of(pair.to, *pair.kernel_to).dataflow;
  if (a == b) return std::nullopt;
  return CliffCause{"dataflow", fmt::format("the dataflow goes from {} to {}", a, b), 0, 0};
}

std::optional<CliffCause> padding(const Pair& pair) {
  if (pair.kernel_from == nullptr || pair.kernel_to == nullptr) return std::nullopt;
  const auto idle_share = [](const KernelCost& row) {
    const double busy = as_double(row.pe.useful + row.pe.padded + row.pe.unmapped);
    return busy > 0 ? as_double(row.pe.padded + row.pe.unmapped) / busy : 0;
  };
  const double a = idle_share(*pair.kernel_from);
  const double b = idle_share(*pair.kernel_to);
  if (std::abs(a - b) < kNoticeable) return std::nullopt;
  return CliffCause{"padding",
                    fmt::format("{:.0f} % instead of {:.0f} % of the processing elements lie beyond ragged or short "
                                "edges while the array works",
                                100 * b, 100 * a),
                    a, b};
}

std::optional<CliffCause> stall(const Pair& pair) {
  if (pair.kernel_from == nullptr || pair.kernel_to == nullptr) return std::nullopt;
  std::size_t most = 0;
  double largest = 0;
  double share_from = 0;
  double share_to = 0;
  for (std::size_t c = 0; c < execute::kCycleClasses; ++c) {
    const double a = pair.kernel_from->cycles > 0
                         ? as_double(pair.kernel_from->classes[c]) / as_double(pair.kernel_from->cycles)
                         : 0;
    const double b =
        pair.kernel_to->cycles > 0 ? as_double(pair.kernel_to->classes[c]) / as_double(pair.kernel_to->cycles) : 0;
    if (std::abs(b - a) <= largest) continue;
    largest = std::abs(b - a);
    most = c;
    share_from = a;
    share_to = b;
  }
  if (largest < kNoticeable) return std::nullopt;
  return CliffCause{
      "stall",
      fmt::format("{:.0f} % instead of {:.0f} % of its cycles are {}{}", 100 * share_to, 100 * share_from,
                  execute::kCycleClassNames[most],
                  most == 0 ? share_to > share_from ? ": fixed costs weigh less" : ": it stalls more" : ""),
      share_from, share_to};
}

struct Detector {
  std::string_view kind;
  std::optional<CliffCause> (*find)(const Pair& pair);
};
constexpr Detector kDetectors[] = {
    {"spill", spill},
    {"residency", residency},
    {"weight_passes", weight_passes},
    {"off_chip_passes", off_chip_passes},
    {"activation_passes", activation_passes},
    {"dataflow", dataflow},
    {"padding", padding},
    {"stall", stall},
};

/// How far a part leaves the trend, in the direction of the break.
double excess(double part_from, double part_to, double batch_from, double batch_to, double expected_ratio,
              double sign) {
  return sign * (part_to / batch_to - part_from / batch_from * expected_ratio);
}

}  // namespace

void explain(const ShapeEvidence& from, const ShapeEvidence& to, const ShapeMetric& metric,
             const ingest::Accelerator& accelerator, double expected_ratio, Cliff& cliff) {
  const double batch_from = metric.per_batch ? 1 : as_double(from.reuse.batch);
  const double batch_to = metric.per_batch ? 1 : as_double(to.reuse.batch);
  // A ratio's driver moves against it or with it, so only the size of its change counts.
  const auto distance = [&](double a, double b) {
    return std::abs(excess(a, b, batch_from, batch_to, expected_ratio, 1));
  };
  double most = -1;
  for (const auto& row : to.reuse.classes) {
    const auto before = std::find_if(from.reuse.classes.begin(), from.reuse.classes.end(),
                                     [&](const auto& r) { return r.layer_class == row.layer_class; });
    const double part = before == from.reuse.classes.end() ? 0 : metric.class_part(*before);
    const double here = distance(part, metric.class_part(row));
    if (here <= most) continue;
    most = here;
    cliff.layer_class = row.layer_class;
  }
  Pair pair{from, to, accelerator};
  most = -1;
  for (const auto& row : to.costs->kernels) {
    if (row.layer_class != cliff.layer_class) continue;
    const KernelCost* before = row_of(from, row.instances.front());
    const double part = before == nullptr ? 0 : metric.kernel_part(*before) * as_double(before->repeats);
    const double here = distance(part, metric.kernel_part(row) * as_double(row.repeats));
    if (here <= most) continue;
    most = here;
    pair.kernel_to = &row;
    pair.kernel_from = before;
  }
  if (pair.kernel_to != nullptr) {
    cliff.kernel = pair.kernel_to->name;
    cliff.mapping_to = pair.kernel_to->mapping;
  }
  if (pair.kernel_from != nullptr) cliff.mapping_from = pair.kernel_from->mapping;

  std::vector<CliffCause> found;
  for (const auto& detector : kDetectors) {
    if (auto cause = detector.find(pair)) found.push_back(std::move(*cause));
  }
  const auto rank = [&](const CliffCause& cause) {
    const auto at = metric.causes.find(cause.kind);
    return at == std::string_view::npos ? metric.causes.size() : at;
  };
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (found.empty() || rank(found.front()) == metric.causes.size()) {
    cliff.cause = {"not_identified", "nothing that explains this metric changed", 0, 0};
    cliff.beside = std::move(found);
    return;
  }
  cliff.cause = std::move(found.front());
  found.erase(found.begin());
  cliff.beside = std::move(found);
}

}  // namespace plumbline::study
