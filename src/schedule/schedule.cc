#include "schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "schedule/certify.h"
#include "schedule/choose_mapping.h"
#include "schedule/combine_fronts.h"
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
    result.proof.reset();  // it speaks of mappings that did not fit together
  }
}

struct Texts {
  const char* name;
  const char* unit;
};

/// In the units of the search: femtojoules and cycles.
Texts objective_text(Objective objective) {
  switch (objective) {
    case Objective::energy:
      return {"energy", "fJ"};
    case Objective::latency:
      return {"latency", "cycles"};
    case Objective::energy_delay:
      return {"energy-delay product", "fJ cycles"};
    case Objective::off_array_weight_bits:
      return {"off-array weight bits", "bits"};
  }
  return {"", ""};
}

void state(Proof& proof, double best, double lower_bound, Objective objective) {
  const Texts texts = objective_text(objective);
  proof.objective = fmt::format("{} ({})", texts.name, texts.unit);
  proof.best = best;
  proof.lower_bound = std::min(best, lower_bound);
  proof.gap = lower_bound > 0 && best > lower_bound ? best / lower_bound - 1 : 0;
}

double floor_of(const KernelFront& front, Objective objective) {
  FrontPoint floor{front.energy_floor, front.cycles_floor, front.weight_bits_floor};
  return objective == Objective::energy_delay ? std::max(front.product_floor, value_of(floor, objective))
                                              : value_of(floor, objective);
}

void adopt(const CertifiedKernel& certified, std::size_t chosen, Objective objective, KernelSchedule& made) {
  const CertifiedPoint& point = certified.points[chosen];
  made.dataflow = point.dataflow;
  made.stationary = point.stationary;
  made.mapping = point.mapping;
  made.counts = point.counts;
  made.price = point.price;
  made.proof = certified.proof;
  made.proof->candidates = static_cast<std::int64_t>(certified.points.size());
  state(*made.proof, value_of(certified.front.points[chosen], objective), floor_of(certified.front, objective),
        objective);
}

/// Replaces the simple tilings by the best combination of certified mappings.
Status certify(const lower::KernelGraph& graph, const MappingRequest& shared, MappingCache& cache, Schedule& result) {
  const Objective objective = search_objective(shared.options.objective);
  std::vector<CertifiedKernel> certified;
  std::vector<KernelFront> fronts;
  std::vector<std::size_t> kernels;
  Proof total;
  for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
    if (graph.kernels[k].kind != lower::KernelKind::matrix) continue;
    PL_TRY(CertifiedKernel made,
           certify_kernel({graph.kernels[k], shared.accelerator, shared.levels, shared.options, shared.dataflows, 1},
                          result.kernels[k], cache));
    total.bounded += made.proof.bounded;
    total.pruned += made.proof.pruned;
    total.evaluated += made.proof.evaluated;
    total.candidates += static_cast<std::int64_t>(made.points.size());
    fronts.push_back(made.front);
    certified.push_back(std::move(made));
    kernels.push_back(k);
  }
  if (kernels.empty()) return Done{};
  const FrontChoice choice = combine_fronts(fronts, objective);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    KernelSchedule& made = result.kernels[kernels[i]];
    adopt(certified[i], choice.chosen[i], objective, made);
    made.text = describe(graph.kernels[kernels[i]], made);
  }
  total.scope = "network";
  total.covered = "every kernel's mappings as its own proof covers them; matrix kernels one after the other";
  total.certified_on = "sums over kernels of their floors";
  state(total, choice.best, choice.lower_bound, objective);
  result.proof = std::move(total);
  return Done{};
}

}  // namespace

Result<Schedule> schedule(const lower::KernelGraph& graph, const ingest::Accelerator& accelerator,
                          const ingest::CompileOptions& options,
                          const std::map<std::string, ingest::Dataflow>& dataflows, MappingCache* cache) {
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
  const MappingRequest shared{graph.kernels.front(), accelerator, levels, options, dataflows, 1};
  MappingCache own;
  if (options.search == "certified") PL_TRY_STATUS(certify(graph, shared, cache != nullptr ? *cache : own, result));
  PL_TRY_STATUS(place(graph, shared, result));
  return result;
}

}  // namespace plumbline::schedule
