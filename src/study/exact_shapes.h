#pragma once
// Shapes compiled exactly as asked, beside a scenario's own buckets: what sensitivity and stale mappings are judged on.
#include <cstdint>
#include <vector>

#include "study/engine.h"

namespace plumbline::study {

/// Most shapes of one grid: compiling is what takes time.
inline constexpr std::size_t kMostShapes = 1024;

/// `of` compiled for every batch × sequence (ascending; sequences may be empty when no model has one). Its serving and
/// traffic say nothing: they are narrowed so that any shape is legal. Errors: too-large, and the stages' own.
Result<Prepared> compile_exactly(Engine& engine, const Prepared& of, const std::vector<std::int64_t>& batches,
                                 const std::vector<std::int64_t>& sequences);

/// Costs of all shapes of `grid` while the weights that `of` pins stay pinned: the same machine, other shapes.
Result<execute::CostTable> cost_beside(const Prepared& grid, const Prepared& of);

/// One shape of `grid` as the only one that is compiled: residency is planned for it alone. One entry per model.
struct LoneShape {
  std::vector<schedule::ModelSchedules> models;  ///< one bucket each
  schedule::Residency residency;
  execute::CostTable costs;
};
Result<LoneShape> cost_alone(const Prepared& grid, std::size_t batch_index, std::size_t sequence_index);

/// The bucket of a cost-table entry.
[[nodiscard]] const schedule::Bucket& bucket_of(const Prepared& prepared, std::size_t model, std::size_t batch_index,
                                                std::size_t sequence_index);

}  // namespace plumbline::study
