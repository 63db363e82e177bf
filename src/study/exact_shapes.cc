#include "study/exact_shapes.h"

#include <fmt/format.h>

#include <algorithm>

#include "execute/cost.h"

namespace plumbline::study {
namespace {

ingest::Value list_of(const std::vector<std::int64_t>& values) {
  std::vector<ingest::Value> items;
  for (const std::int64_t v : values) items.push_back(ingest::make_scalar(std::to_string(v)));
  return ingest::make_list(std::move(items));
}

}  // namespace

Result<Prepared> compile_exactly(Engine& engine, const Prepared& of, const std::vector<std::int64_t>& batches,
                                 const std::vector<std::int64_t>& sequences) {
  PL_CHECK(of.ok() && !batches.empty());
  const std::size_t shapes = batches.size() * std::max<std::size_t>(1, sequences.size());
  if (shapes > kMostShapes) {
    return make_error("too-large", {}, fmt::format("{} shapes, more than {}", shapes, kMostShapes),
                      "ask for fewer batch sizes or sequences");
  }
  ingest::Value document = of.scenario->resolved;
  const auto set = [&](const char* path, ingest::Value value) {
    document = ingest::merge_patch(document, ingest::make_at_path(path, std::move(value)));
  };
  set("compile.shapes.batch", list_of(batches));
  set("serving.batch.max", ingest::make_scalar("1"));
  if (!sequences.empty()) {
    set("compile.shapes.sequence", list_of(sequences));
    set("traffic.profiles",
        ingest::make_list({ingest::make_map({{"sequence", ingest::make_scalar(std::to_string(sequences.back()))},
                                             {"share", ingest::make_scalar("1.0")}})}));
  }
  return engine.prepare(of.name, document);
}

Result<execute::CostTable> cost_beside(const Prepared& grid, const Prepared& of) {
  return execute::build_cost_table(grid.compiled->models, grid.scenario->compile.shapes, of.compiled->residency,
                                   *grid.scenario->accelerator, of.costs->clock);
}

const schedule::Bucket& bucket_of(const Prepared& prepared, std::size_t model, std::size_t batch_index,
                                  std::size_t sequence_index) {
  const auto& buckets = prepared.compiled->models[model].buckets;
  const auto& shapes = prepared.scenario->compile.shapes;
  const std::size_t sequences = std::max<std::size_t>(1, shapes.sequence.size());
  // A model without a sequence may have one shape per batch.
  const bool single = buckets.size() == shapes.batch.size();
  return buckets[single ? batch_index : batch_index * sequences + sequence_index];
}

Result<LoneShape> cost_alone(const Prepared& grid, std::size_t batch_index, std::size_t sequence_index) {
  LoneShape out;
  const auto& scenario = *grid.scenario;
  ingest::Buckets shapes;
  shapes.batch = {scenario.compile.shapes.batch[batch_index]};
  if (!scenario.compile.shapes.sequence.empty()) shapes.sequence = {scenario.compile.shapes.sequence[sequence_index]};
  for (std::size_t m = 0; m < grid.compiled->models.size(); ++m) {
    out.models.push_back({grid.compiled->models[m].name, {bucket_of(grid, m, batch_index, sequence_index)}});
  }
  PL_TRY(out.residency, schedule::plan_residency(out.models, *scenario.accelerator, scenario.compile));
  PL_TRY(out.costs,
         execute::build_cost_table(out.models, shapes, out.residency, *scenario.accelerator, grid.costs->clock));
  return out;
}

}  // namespace plumbline::study
