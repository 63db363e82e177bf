#include "schedule/schedule.h"

#include <fmt/format.h>

#include "schedule/choose_mapping.h"
#include "schedule/levels.h"
#include "schedule/placement.h"

namespace plumbline::schedule {
namespace {

constexpr std::string_view kHeld[] = {"weights", "inputs", "outputs"};

/// "for M in 2 (sram); … N over 256 columns, K over 256 rows; weights held".
std::string describe(const lower::Kernel& kernel, const KernelSchedule& schedule) {
  std::string text;
  for (std::size_t l = 0; l < schedule.mapping.levels.size(); ++l) {
    for (const Loop& loop : schedule.mapping.levels[l].loops) {
      const std::string& dim = kernel.einsum.dim_names[static_cast<std::size_t>(loop.dim)];
      if (!text.empty()) text += "; ";
      switch (loop.kind) {
        case LoopKind::temporal:
          text += fmt::format("for {} in {} ({})", dim, loop.bound, schedule.hierarchy.levels[l].name);
          break;
        case LoopKind::spatial_x:
          text += fmt::format("{} over {} columns", dim, loop.bound);
          break;
        case LoopKind::spatial_y:
          text += fmt::format("{} over {} rows", dim, loop.bound);
          break;
      }
    }
  }
  return text + fmt::format("{}{} held", text.empty() ? "" : "; ", kHeld[schedule.stationary]);
}

/// Halvings of a stream tile before a kernel is given up: more than any dimension has.
constexpr std::int64_t kMostShrink = std::int64_t{1} << 40;

/// Places the activations; a kernel whose chunks of off-chip operands do not fit is tiled again with smaller ones.
Status place(const lower::KernelGraph& graph, const MappingRequest& shared, Schedule& result) {
  std::vector<std::int64_t> shrink(graph.kernels.size(), 1);
  while (true) {
    PlacementTrial trial = place_activations(graph, result.kernels, shared.accelerator, shared.levels);
    if (!trial.too_large) {
      result.placement = std::move(trial.placement);
      return Done{};
    }
    const lower::Instance& instance = graph.instances[*trial.too_large];
    const std::size_t k = instance.kernel.at();
    const Diagnostic full = make_error(
        "does-not-fit", shared.accelerator.levels[static_cast<std::size_t>(shared.levels.home)].span,
        fmt::format("kernel '{}' needs {} bytes on chip at once, the level '{}' holds {}", instance.name, trial.needed,
                    shared.accelerator.levels[static_cast<std::size_t>(shared.levels.home)].name,
                    shared.accelerator.levels[static_cast<std::size_t>(shared.levels.home)].capacity->raw()),
        "a smaller batch or sequence bucket");
    if (graph.kernels[k].kind != lower::KernelKind::matrix || shrink[k] > kMostShrink) return full;
    shrink[k] *= 2;
    const Mapping before = result.kernels[k].mapping;
    PL_TRY(KernelSchedule smaller, choose_mapping({graph.kernels[k], shared.accelerator, shared.levels, shared.options,
                                                   shared.dataflows, shrink[k]}));
    smaller.text = describe(graph.kernels[k], smaller);
    if (smaller.mapping == before && shrink[k] > 4) return full;
    result.kernels[k] = std::move(smaller);
  }
}

}  // namespace

Result<Schedule> schedule(const lower::KernelGraph& graph, const ingest::Accelerator& accelerator,
                          const ingest::CompileOptions& options,
                          const std::map<std::string, ingest::Dataflow>& dataflows) {
  PL_TRY(const LevelRoles levels, find_levels(accelerator));
  Schedule result;
  result.kernels.reserve(graph.kernels.size());
  for (const lower::Kernel& kernel : graph.kernels) {
    if (kernel.kind != lower::KernelKind::matrix) {
      result.kernels.emplace_back();
      continue;
    }
    PL_TRY(KernelSchedule made, choose_mapping({kernel, accelerator, levels, options, dataflows, 1}));
    made.text = describe(kernel, made);
    result.kernels.push_back(std::move(made));
  }
  if (graph.kernels.empty()) return result;
  PL_TRY_STATUS(place(graph, {graph.kernels.front(), accelerator, levels, options, dataflows, 1}, result));
  return result;
}

}  // namespace plumbline::schedule
