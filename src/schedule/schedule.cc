#include "schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "schedule/certify.h"
#include "schedule/choose_mapping.h"
#include "schedule/combine_fronts.h"
#include "schedule/levels.h"
#include "schedule/mapping_memo.h"
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
/// Returns the kernels that were, ascending.
Result<std::vector<std::size_t>> place(const lower::KernelGraph& graph, const MappingRequest& shared, MappingMemo& memo,
                                       Schedule& result) {
  std::vector<std::int64_t> shrink(graph.kernels.size(), 1);
  while (true) {
    PlacementTrial trial = place_activations(graph, result.kernels, shared.accelerator, shared.levels);
    if (!trial.too_large) {
      result.placement = std::move(trial.placement);
      std::vector<std::size_t> tiled_again;
      for (std::size_t k = 0; k < shrink.size(); ++k) {
        if (shrink[k] > 1) tiled_again.push_back(k);
      }
      return tiled_again;
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
    PL_TRY(KernelSchedule smaller, memo.choose({graph.kernels[k], shared.accelerator, shared.levels, shared.options,
                                                shared.dataflows, shrink[k]}));
    smaller.text = describe(graph.kernels[k], smaller);
    if (smaller.mapping == before && shrink[k] > 4) return full;
    result.kernels[k] = std::move(smaller);
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

/// Fronts of the matrix kernels with proof, and what was taken from them.
struct CertifiedNetwork {
  std::vector<std::size_t> kernels;  ///< indices, ascending
  std::vector<KernelFront> fronts;   ///< by position in `kernels`; once chosen, only the point that was
};

/// Replaces the simple tilings by the best combination of certified mappings.
Result<CertifiedNetwork> certify(const lower::KernelGraph& graph, const MappingRequest& shared, MappingCache& cache,
                                 Schedule& result) {
  const Objective objective = search_objective(shared.options.objective);
  std::vector<CertifiedKernel> certified;
  CertifiedNetwork network;
  auto& [kernels, fronts] = network;
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
  if (kernels.empty()) return network;
  const FrontChoice choice = combine_fronts(fronts, search_objectives(shared.options));
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    KernelSchedule& made = result.kernels[kernels[i]];
    adopt(certified[i], choice.chosen[i], objective, made);
    made.text = describe(graph.kernels[kernels[i]], made);
    fronts[i].points = {fronts[i].points[choice.chosen[i]]};
  }
  total.scope = "network";
  total.covered = "every kernel's mappings as its own proof covers them; matrix kernels one after the other";
  total.certified_on = "sums over kernels of their floors";
  state(total, choice.best, choice.lower_bound, objective);
  result.proof = std::move(total);
  return network;
}

/// Kernels that had to be tiled again keep their bound, which speaks of any mapping, beside their own value.
Status prove_again(const lower::KernelGraph& graph, const MappingRequest& shared, MappingCache& cache,
                   const std::vector<std::size_t>& tiled_again, CertifiedNetwork& network, Schedule& result) {
  const Objective objective = search_objective(shared.options.objective);
  for (const std::size_t k : tiled_again) {
    KernelSchedule& made = result.kernels[k];
    PL_TRY(CertifiedKernel certified,
           certify_kernel({graph.kernels[k], shared.accelerator, shared.levels, shared.options, shared.dataflows, 1},
                          made, cache));
    made.proof = certified.proof;
    made.proof->candidates = 1;
    made.proof->covered += "; tiled again, since its chunks of off-chip operands did not fit";
    state(*made.proof, value_of(certified.front.points.front(), objective), floor_of(certified.front, objective),
          objective);
    const auto at = std::lower_bound(network.kernels.begin(), network.kernels.end(), k) - network.kernels.begin();
    KernelFront& front = network.fronts[static_cast<std::size_t>(at)];
    front = std::move(certified.front);
    front.points.resize(1);
  }
  if (tiled_again.empty() || !result.proof) return Done{};
  const FrontChoice choice = combine_fronts(network.fronts, search_objectives(shared.options));
  state(*result.proof, choice.best, choice.lower_bound, objective);
  return Done{};
}

}  // namespace

Result<Schedule> schedule(const lower::KernelGraph& graph, const ingest::Accelerator& accelerator,
                          const ingest::CompileOptions& options,
                          const std::map<std::string, ingest::Dataflow>& dataflows, MappingCache* cache,
                          MappingMemo* memo) {
  MappingMemo own_memo;
  MappingMemo& tilings = memo != nullptr ? *memo : own_memo;
  PL_TRY(const LevelRoles levels, find_levels(accelerator));
  Schedule result;
  result.kernels.reserve(graph.kernels.size());
  for (const lower::Kernel& kernel : graph.kernels) {
    if (kernel.kind != lower::KernelKind::matrix) {
      result.kernels.emplace_back();
      continue;
    }
    PL_TRY(KernelSchedule made, tilings.choose({kernel, accelerator, levels, options, dataflows, 1}));
    made.text = describe(kernel, made);
    result.kernels.push_back(std::move(made));
  }
  if (graph.kernels.empty()) return result;
  const MappingRequest shared{graph.kernels.front(), accelerator, levels, options, dataflows, 1};
  MappingCache own;
  MappingCache& known = cache != nullptr ? *cache : own;
  CertifiedNetwork network;
  const bool certified = options.search == "certified";
  if (certified) {
    PL_TRY(network, certify(graph, shared, known, result));
  }
  PL_TRY(const std::vector<std::size_t> tiled_again, place(graph, shared, tilings, result));
  if (certified) PL_TRY_STATUS(prove_again(graph, shared, known, tiled_again, network, result));
  return result;
}

}  // namespace plumbline::schedule
