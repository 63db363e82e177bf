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
    PL_TRY(KernelSchedule made, choose_mapping({kernel, accelerator, levels, options, dataflows}));
    made.text = describe(kernel, made);
    result.kernels.push_back(std::move(made));
  }
  PL_TRY(result.placement, place_activations(graph, result.kernels, accelerator, levels));
  return result;
}

}  // namespace plumbline::schedule
