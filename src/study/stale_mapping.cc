#include "study/stale_mapping.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/check.h"
#include "execute/cost.h"
#include "schedule/counts.h"
#include "study/exact_shapes.h"

namespace plumbline::study {
namespace {

constexpr double kFemtojoule = 1e-15;  // J

ShapePrice price_of(const execute::BatchCost& cost) {
  ShapePrice out;
  out.cycles = cost.cycles;
  out.femtojoules = cost.femtojoules;
  for (const auto& layer : cost.layers) {
    out.off_array_weight += layer.movement.off_array_weight;
    out.off_chip_weight += layer.movement.off_chip_weight;
  }
  return out;
}

struct ObjectiveRow {
  std::string_view name;
  std::string_view unit;
  double (*value)(const ShapePrice&, Clock);
};
double joules(const ShapePrice& p, Clock) { return static_cast<double>(p.femtojoules) * kFemtojoule; }
double seconds(const ShapePrice& p, Clock clock) { return static_cast<double>(p.cycles) / clock.frequency.raw(); }
constexpr ObjectiveRow kObjectives[] = {
    {"edp", "J·s", [](const ShapePrice& p, Clock clock) { return joules(p, clock) * seconds(p, clock); }},
    {"energy", "J", joules},
    {"latency", "s", seconds},
    {"off_array_weight_bytes", "B", [](const ShapePrice& p, Clock) { return static_cast<double>(p.off_array_weight); }},
};

/// `name` is a compile.objective, which the reader has checked.
const ObjectiveRow& objective_row(const std::string& name) {
  const auto* const row = std::find_if(std::begin(kObjectives), std::end(kObjectives),
                                       [&](const ObjectiveRow& each) { return each.name == name; });
  PL_CHECK(row != std::end(kObjectives));
  return *row;
}

/// `exact` with every kernel mapped as the same instance is in `compiled`; nothing when the kernels do not correspond
/// or a mapping does not cover the shape.
std::optional<schedule::Bucket> with_mappings_of(const schedule::Bucket& compiled, const schedule::Bucket& exact) {
  if (compiled.graph->instances.size() != exact.graph->instances.size()) return std::nullopt;
  auto made = std::make_shared<schedule::Schedule>(*exact.schedule);
  std::vector<bool> done(made->kernels.size(), false);
  for (std::size_t i = 0; i < exact.graph->instances.size(); ++i) {
    const std::size_t k = exact.graph->instances[i].kernel.at();
    if (done[k]) continue;
    done[k] = true;
    const std::size_t from = compiled.graph->instances[i].kernel.at();
    const auto& kernel = exact.graph->kernels[k];
    const auto& other = compiled.graph->kernels[from];
    if (kernel.kind != other.kind || kernel.einsum.dim_names != other.einsum.dim_names) return std::nullopt;
    if (kernel.kind != lower::KernelKind::matrix) continue;
    schedule::KernelSchedule mapped = compiled.schedule->kernels[from];
    auto counts = schedule::count_accesses(kernel.einsum, mapped.hierarchy, mapped.mapping);
    if (!counts.ok()) return std::nullopt;
    mapped.counts = std::move(*counts);
    made->kernels[k] = std::move(mapped);
  }
  schedule::Bucket out = exact;
  out.schedule = std::move(made);
  return out;
}

std::size_t position(const std::vector<std::int64_t>& values, std::int64_t value) {
  const auto found = std::find(values.begin(), values.end(), value);
  PL_CHECK(found != values.end());
  return static_cast<std::size_t>(found - values.begin());
}

/// The single bucket's cost beside the pinned weights of `prepared`.
Result<ShapePrice> price_alone(const Prepared& grid, const Prepared& prepared, std::size_t model,
                               const schedule::Bucket& bucket) {
  schedule::Residency residency;
  residency.pinned = {prepared.compiled->residency.pinned[model]};
  ingest::Buckets shapes;
  shapes.batch = {bucket.batch};
  if (bucket.sequence > 0) shapes.sequence = {bucket.sequence};
  PL_TRY(const execute::CostTable costs,
         execute::build_cost_table({{prepared.compiled->models[model].name, {bucket}}}, shapes, residency,
                                   *grid.scenario->accelerator, prepared.costs->clock));
  return price_of(costs.entries.front());
}

}  // namespace

double ShapePrice::objective(const std::string& name, Clock clock) const {
  return objective_row(name).value(*this, clock);
}

std::optional<double> StaleRow::stale_cost(const std::string& objective, Clock clock) const {
  if (!stale) return std::nullopt;
  return stale->objective(objective, clock) - best.objective(objective, clock);
}

std::optional<double> StaleRow::padding_cost(const std::string& objective, Clock clock) const {
  if (!stale) return std::nullopt;
  return padded.objective(objective, clock) - stale->objective(objective, clock);
}

std::string objective_unit(const std::string& name) { return std::string(objective_row(name).unit); }

Result<StaleMappings> find_stale_mappings(Engine& engine, const Prepared& prepared, const OperatingPoint& point) {
  StaleMappings out;
  out.objective = prepared.scenario->compile.objective;
  std::set<std::int64_t> sizes{1};
  std::set<std::int64_t> lengths;
  const bool sequenced = !prepared.scenario->compile.shapes.sequence.empty();
  for (const auto& formed : point.formed) {
    sizes.insert(formed.size);
    if (formed.sequence > 0) lengths.insert(formed.sequence);
  }
  if (sequenced) {
    for (const auto& profile : prepared.scenario->traffic.profiles) {
      if (profile.sequence > 0) lengths.insert(profile.sequence);
    }
    if (lengths.empty()) lengths.insert(prepared.scenario->compile.shapes.sequence.front());
  }
  const std::vector<std::int64_t> batches(sizes.begin(), sizes.end());
  const std::vector<std::int64_t> sequences(lengths.begin(), lengths.end());
  PL_TRY(const Prepared grid, compile_exactly(engine, prepared, batches, sequences));
  PL_TRY(out.alone, cost_beside(grid, prepared));
  const auto& shapes = prepared.scenario->compile.shapes;
  for (const FormedShape& formed : point.formed) {
    const std::size_t b = position(batches, formed.size);
    const std::size_t s = formed.sequence > 0 ? position(sequences, formed.sequence) : 0;
    const auto& entry = prepared.costs->entries[static_cast<std::size_t>(formed.entry)];
    StaleRow row;
    row.formed = formed;
    row.bucket_batch = entry.batch;
    row.bucket_sequence = entry.sequence;
    row.padded = price_of(entry);
    row.best = price_of(out.alone.entries[out.alone.index(formed.model, b, s)]);
    const auto& compiled = bucket_of(prepared, formed.model, position(shapes.batch, entry.batch),
                                     entry.sequence > 0 ? position(shapes.sequence, entry.sequence) : 0);
    if (const auto mapped = with_mappings_of(compiled, bucket_of(grid, formed.model, b, s))) {
      PL_TRY(row.stale, price_alone(grid, prepared, formed.model, *mapped));
    }
    out.rows.push_back(row);
  }
  return out;
}

std::vector<std::int64_t> useful_weight_macs(const execute::CostTable& costs, const execute::CostTable& alone,
                                             std::size_t model, std::int64_t sequence) {
  std::vector<std::int64_t> out(costs.layer_classes.size(), 0);
  const auto& lengths = alone.sequence_buckets;
  const auto length = std::find(lengths.begin(), lengths.end(), sequence);
  const std::size_t s = length == lengths.end() ? 0 : static_cast<std::size_t>(length - lengths.begin());
  const auto& entry = alone.entries[alone.index(model, position(alone.batch_buckets, 1), s)];
  for (const auto& layer : entry.layers) {
    const auto at = std::find(costs.layer_classes.begin(), costs.layer_classes.end(), layer.layer_class);
    if (at != costs.layer_classes.end())
      out[static_cast<std::size_t>(at - costs.layer_classes.begin())] = layer.weight_macs;
  }
  return out;
}

}  // namespace plumbline::study
