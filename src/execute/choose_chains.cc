#include "execute/choose_chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "execute/cost.h"
#include "lower/chains.h"
#include "schedule/certify.h"
#include "schedule/levels.h"
#include "schedule/mapping_memo.h"

namespace plumbline::execute {
namespace {

using lower::Chain;
using lower::ChainCut;
using schedule::Bucket;
using schedule::ChainAlternative;
using schedule::ChainChoice;

/// Chunks per unit dimension, and of one image's rows: powers of two up to these. More chunks only repeat more.
constexpr std::int64_t kMostChunks = 64;
constexpr std::int64_t kMostRowChunks = 16;
/// Chunks in all, so that a large batch of images cut by rows stays affordable.
constexpr std::int64_t kMostInAll = 512;

/// Figures of one shape that chains are judged by.
struct Figures {
  double value = 0;          ///< of the first objective
  std::vector<double> then;  ///< of the later ones, which decide among equals
  std::int64_t off_chip = 0;
  std::int64_t off_chip_weight = 0;
  std::int64_t off_array_weight = 0;
};

/// Orders figures as a dictionary orders words; both `Figures` and the rows of a choice have them.
template <typename A, typename B>
bool precedes(const A& a, const B& b) {
  return a.value < b.value || (a.value == b.value && a.then < b.then);
}

double value_of(const BatchCost& cost, const Figures& figures, const std::string& objective) {
  const auto energy = static_cast<double>(cost.femtojoules);
  const auto cycles = static_cast<double>(cost.cycles);
  switch (schedule::search_objective(objective)) {
    case schedule::Objective::energy:
      return energy;
    case schedule::Objective::latency:
      return cycles;
    case schedule::Objective::energy_delay:
      return energy * cycles;
    case schedule::Objective::off_array_weight_bits:
      break;
  }
  return static_cast<double>(figures.off_array_weight);
}

/// Every shape's schedule with the pinned weights, and what each costs.
struct State {
  ChainedSchedules plan;
  std::vector<std::vector<Figures>> figures;  ///< [model][bucket]
};

std::int64_t peak_of(const std::vector<schedule::ModelSchedules>& models) {
  std::int64_t peak = 0;
  for (const auto& model : models) {
    for (const Bucket& bucket : model.buckets) peak = std::max(peak, bucket.schedule->placement.peak);
  }
  return peak;
}

/// Chains of one graph that are alike and share no kernel.
struct Family {
  std::vector<std::size_t> chains;
};

bool alike(const lower::KernelGraph& graph, const Chain& a, const Chain& b) {
  if (a.kind != b.kind || a.units != b.units || a.rows != b.rows || a.middle_rows != b.middle_rows ||
      a.stride != b.stride || a.reach != b.reach || a.padding != b.padding || a.members.size() != b.members.size()) {
    return false;
  }
  for (std::size_t m = 0; m < a.members.size(); ++m) {
    const auto& first = graph.instances[static_cast<std::size_t>(a.members[m].instance)];
    const auto& second = graph.instances[static_cast<std::size_t>(b.members[m].instance)];
    if (first.kernel != second.kernel || a.members[m].reads_cut != b.members[m].reads_cut) return false;
  }
  return true;
}

bool share_a_kernel(const Chain& a, const Chain& b) {
  return std::any_of(a.members.begin(), a.members.end(), [&](const auto& member) {
    return std::any_of(b.members.begin(), b.members.end(),
                       [&](const auto& other) { return other.instance == member.instance; });
  });
}

std::vector<Family> families_of(const lower::KernelGraph& graph) {
  std::vector<Family> families;
  for (std::size_t c = 0; c < graph.chains.size(); ++c) {
    auto found = std::find_if(families.begin(), families.end(), [&](const Family& family) {
      return alike(graph, graph.chains[family.chains.front()], graph.chains[c]);
    });
    if (found == families.end()) {
      families.push_back({{c}});
      continue;
    }
    const bool apart = std::none_of(found->chains.begin(), found->chains.end(), [&](std::size_t other) {
      return share_a_kernel(graph.chains[other], graph.chains[c]);
    });
    if (apart) found->chains.push_back(c);
  }
  return families;
}

class Chooser {
 public:
  Chooser(const ingest::Accelerator& accelerator, const ingest::CompileOptions& options,
          const std::map<std::string, ingest::Dataflow>& dataflows, const schedule::LevelRoles& levels,
          schedule::MappingCache* cache)
      : accelerator_(accelerator), options_(options), dataflows_(dataflows), levels_(levels), cache_(cache) {}

  Result<ChainedSchedules> run(const ChainedSchedules& plain) {
    const bool certified = options_.search == "certified";
    simple_ = options_;
    simple_.search = "simple";
    PL_TRY(State proven, state_of(plain));
    State state = proven;
    if (certified) {
      PL_TRY(state, simply_scheduled(plain));
    }
    State& chosen = certified ? proven : state;
    for (std::size_t m = 0; m < plain.models.size(); ++m) {
      for (std::size_t b = 0; b < plain.models[m].buckets.size(); ++b) {
        if (repeats_the_one_before(plain.models[m], b)) {
          chosen.plan.models[m].buckets[b] = chosen.plan.models[m].buckets[b - 1];
          chosen.plan.models[m].buckets[b].sequence = plain.models[m].buckets[b].sequence;
          continue;
        }
        const Bucket& whole = plain.models[m].buckets[b];
        std::vector<ChainCut> cuts;
        std::vector<ChainChoice> choices;
        PL_TRY_STATUS(cut_shape(m, b, *whole.graph, cuts, choices, state));
        if (certified && !cuts.empty()) PL_TRY_STATUS(prove(m, b, *whole.graph, cuts, choices, proven));
        Bucket& out = chosen.plan.models[m].buckets[b];
        auto told = std::make_shared<schedule::Schedule>(*out.schedule);
        told->chains = std::move(choices);
        out.schedule = std::move(told);
      }
    }
    return std::move(chosen.plan);
  }

 private:
  /// A model without a sequence has one shape per batch, listed once per sequence of its neighbours.
  static bool repeats_the_one_before(const schedule::ModelSchedules& model, std::size_t b) {
    return b > 0 && model.buckets[b].graph == model.buckets[b - 1].graph;
  }

  Result<Figures> figures_of(const schedule::ModelSchedules& model, std::size_t m, const Bucket& bucket,
                             const schedule::Residency& residency) const {
    ingest::Buckets shapes;
    shapes.batch = {bucket.batch};
    schedule::Residency own;
    own.pinned = {residency.pinned[m]};
    PL_TRY(const CostTable table,
           build_cost_table({{model.name, {bucket}}}, shapes, own, accelerator_, accelerator_.nominal));
    const BatchCost& cost = table.entries.front();
    Figures figures;
    for (const ClassCost& layer : cost.layers) {
      figures.off_chip_weight += layer.movement.off_chip_weight;
      figures.off_chip += layer.movement.off_chip_weight + layer.movement.off_chip_activation;
      figures.off_array_weight += layer.movement.off_array_weight;
    }
    figures.value = value_of(cost, figures, options_.objective);
    for (const std::string& each : options_.objective_then) figures.then.push_back(value_of(cost, figures, each));
    return figures;
  }

  Result<State> state_of(ChainedSchedules plan) const {
    State state;
    state.plan = std::move(plan);
    for (std::size_t m = 0; m < state.plan.models.size(); ++m) {
      state.figures.emplace_back();
      for (const Bucket& bucket : state.plan.models[m].buckets) {
        PL_TRY(const Figures figures, figures_of(state.plan.models[m], m, bucket, state.plan.residency));
        state.figures.back().push_back(figures);
      }
    }
    return state;
  }

  Result<State> simply_scheduled(ChainedSchedules plan) {
    for (auto& model : plan.models) {
      for (Bucket& bucket : model.buckets) {
        PL_TRY(schedule::Schedule made,
               schedule::schedule(*bucket.graph, accelerator_, simple_, dataflows_, nullptr, &memo_));
        bucket.schedule = std::make_shared<const schedule::Schedule>(std::move(made));
      }
    }
    PL_TRY(plan.residency, schedule::plan_residency(plan.models, accelerator_, options_));
    return state_of(std::move(plan));
  }

  /// The state with one shape replaced; nothing when that raises another shape's value.
  Result<std::optional<State>> replaced(const State& state, std::size_t m, std::size_t b, Bucket bucket) const {
    State next = state;
    auto& buckets = next.plan.models[m].buckets;
    buckets[b] = std::move(bucket);
    for (std::size_t i = b + 1;
         i < buckets.size() && state.plan.models[m].buckets[i].graph == state.plan.models[m].buckets[b].graph; ++i) {
      buckets[i].graph = buckets[b].graph;
      buckets[i].schedule = buckets[b].schedule;
    }
    // More room may pin other weights, and that concerns every shape.
    const bool other_room = peak_of(next.plan.models) != peak_of(state.plan.models);
    if (other_room) {
      PL_TRY(next.plan.residency, schedule::plan_residency(next.plan.models, accelerator_, options_));
    }
    const bool other_pins = next.plan.residency.pinned != state.plan.residency.pinned;
    for (std::size_t i = 0; i < next.plan.models.size(); ++i) {
      for (std::size_t j = 0; j < next.plan.models[i].buckets.size(); ++j) {
        const bool own = i == m && next.plan.models[i].buckets[j].graph == buckets[b].graph;
        if (!own && !other_pins) continue;
        PL_TRY(next.figures[i][j],
               figures_of(next.plan.models[i], i, next.plan.models[i].buckets[j], next.plan.residency));
        if (!own && precedes(state.figures[i][j], next.figures[i][j])) return std::optional<State>();
      }
    }
    return std::optional<State>(std::move(next));
  }

  Result<Bucket> cut_bucket(const Bucket& like, const lower::KernelGraph& whole, const std::vector<ChainCut>& cuts,
                            const ingest::CompileOptions& options) {
    Bucket bucket = like;
    auto graph = std::make_shared<const lower::KernelGraph>(lower::cut_chains(whole, cuts));
    PL_TRY(schedule::Schedule made, schedule::schedule(*graph, accelerator_, options, dataflows_, cache_, &memo_));
    bucket.graph = std::move(graph);
    bucket.schedule = std::make_shared<const schedule::Schedule>(std::move(made));
    return bucket;
  }

  /// Decides family after family on what the ones before have left.
  Status cut_shape(std::size_t m, std::size_t b, const lower::KernelGraph& whole, std::vector<ChainCut>& cuts,
                   std::vector<ChainChoice>& choices, State& state) {
    for (const Family& family : families_of(whole)) {
      const Chain& chain = whole.chains[family.chains.front()];
      ChainChoice choice = named(whole, family);
      choice.value_without = state.figures[m][b].value;
      std::vector<std::size_t> free;
      for (const std::size_t c : family.chains) {
        const bool taken = std::any_of(cuts.begin(), cuts.end(), [&](const ChainCut& cut) {
          return share_a_kernel(whole.chains[cut.chain], whole.chains[c]);
        });
        if (!taken) free.push_back(c);
      }
      if (free.empty()) {
        choice.reason = "a kernel of it is in a chain that was taken before";
        choices.push_back(std::move(choice));
        continue;
      }
      choice.repeats = static_cast<std::int64_t>(free.size());
      std::optional<State> best;
      std::vector<ChainCut> best_cuts;
      for (const ChainCut& way : ways(whole, chain, state, m)) {
        std::vector<ChainCut> tried = cuts;
        for (const std::size_t c : free) {
          tried.push_back(way);
          tried.back().chain = c;
        }
        PL_TRY(std::optional<State> next, attempt(whole, tried, m, b, state, way, choice));
        if (!next) continue;
        const Figures& least = best ? best->figures[m][b] : state.figures[m][b];
        if (!precedes(next->figures[m][b], least)) continue;
        best = std::move(next);
        best_cuts = std::move(tried);
      }
      choice.taken = best.has_value();
      choice.reason = reason_of(choice, state.figures[m][b]);
      if (best) {
        state = std::move(*best);
        cuts = std::move(best_cuts);
      }
      choices.push_back(std::move(choice));
    }
    return Done{};
  }

  static ChainChoice named(const lower::KernelGraph& whole, const Family& family) {
    const Chain& chain = whole.chains[family.chains.front()];
    ChainChoice choice;
    choice.kind = chain.kind;
    choice.unit = chain.unit;
    choice.repeats = static_cast<std::int64_t>(family.chains.size());
    for (const auto& member : chain.members) {
      choice.kernels.push_back(whole.instances[static_cast<std::size_t>(member.instance)].name);
    }
    for (const std::int32_t buffer : chain.between) {
      choice.between_bytes += whole.buffers[static_cast<std::size_t>(buffer)].bytes;
    }
    return choice;
  }

  /// Schedules and prices one way; the row it adds to `choice` says what it would bring. Nothing when it is no choice.
  Result<std::optional<State>> attempt(const lower::KernelGraph& whole, const std::vector<ChainCut>& cuts,
                                       std::size_t m, std::size_t b, const State& state, const ChainCut& way,
                                       ChainChoice& choice) {
    ChainAlternative row;
    row.chunks = lower::chunks_of(whole.chains[cuts.back().chain], cuts.back());
    row.units = way.units;
    row.rows = way.rows;
    row.keeps_parameters = way.keeps_parameters;
    const Bucket& before = state.plan.models[m].buckets[b];
    auto bucket = cut_bucket(before, whole, cuts, simple_);
    std::optional<State> next;
    if (!bucket.ok()) {
      row.failure = bucket.errors().front().message;
    } else {
      const schedule::Placement& placed = bucket->schedule->placement;
      row.peak_saved = before.schedule->placement.peak - placed.peak;
      row.spill_saved = before.schedule->placement.spilled - placed.spilled;
      PL_TRY(next, replaced(state, m, b, *bucket));
      if (!next) row.failure = "it would raise the objective of another shape";
    }
    if (next) {
      const Figures& old = state.figures[m][b];
      const Figures& now = next->figures[m][b];
      row.value = now.value;
      row.then = now.then;
      row.off_chip_saved = old.off_chip - now.off_chip;
      row.extra_weights = now.off_chip_weight - old.off_chip_weight;
      row.extra_weight_reads = now.off_array_weight - old.off_array_weight;
    }
    choice.alternatives.push_back(std::move(row));
    const auto& rows = choice.alternatives;
    const auto& best = rows[choice.best];
    if (rows.back().failure.empty() && (!best.failure.empty() || precedes(rows.back(), best))) {
      choice.best = rows.size() - 1;
    }
    return next;
  }

  /// Extent of a dimension inside the loops of the activations' level: what streams past the array in one go.
  [[nodiscard]] std::int64_t inner_extent(const schedule::Mapping& mapping, int dim) const {
    std::int64_t extent = 1;
    for (std::size_t l = static_cast<std::size_t>(levels_.home) + 1; l < mapping.levels.size(); ++l) {
      for (const schedule::Loop& loop : mapping.levels[l].loops) {
        if (loop.dim == dim) extent *= loop.bound;
      }
    }
    return extent;
  }

  /// The cuts that are tried, fewest chunks first: powers of two, and chunks as long as the streams of either product.
  std::vector<ChainCut> ways(const lower::KernelGraph& whole, const Chain& chain, const State& state, std::size_t m) {
    std::vector<std::pair<std::int64_t, std::int64_t>> sizes;  // units, rows
    for (std::int64_t n = 2; n <= kMostChunks && n / 2 < chain.units; n *= 2) {
      sizes.emplace_back((chain.units + n - 1) / n, 0);
    }
    for (const auto* member : {&chain.members.front(), &chain.members.back()}) {
      const auto& kernel = whole.kernels[whole.instances[static_cast<std::size_t>(member->instance)].kernel.at()];
      const auto tiled = memo_.choose({kernel, accelerator_, levels_, simple_, dataflows_, 1});
      if (!tiled.ok()) continue;
      const std::int64_t extent = inner_extent(tiled->mapping, member->unit_dim);
      if (extent > 1 && extent < chain.units && (chain.units + extent - 1) / extent <= kMostChunks)
        sizes.emplace_back(extent, 0);
    }
    for (std::int64_t n = 2; n <= kMostRowChunks && n / 2 < chain.rows; n *= 2) {
      if (chain.units * n <= kMostInAll) sizes.emplace_back(1, (chain.rows + n - 1) / n);
    }
    std::sort(sizes.begin(), sizes.end(), [](const auto& x, const auto& y) {
      return std::pair(x.second > 0, -std::max(x.first, x.second)) <
             std::pair(y.second > 0, -std::max(y.first, y.second));
    });
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    std::vector<ChainCut> out;
    for (const auto& [units, rows] : sizes) {
      for (const bool keeps : {false, true}) {
        if (keeps && !worth_keeping(whole, chain, state.plan.residency.pinned[m])) continue;
        out.push_back({0, units, rows, keeps});
      }
    }
    return out;
  }

  /// Some parameter would be fetched from off chip by every chunk, and there is one place for it and the activations.
  [[nodiscard]] bool worth_keeping(const lower::KernelGraph& whole, const Chain& chain,
                                   const std::vector<bool>& pinned) const {
    if (levels_.off_chip < 0 || levels_.weights != levels_.home) return false;
    return std::any_of(chain.members.begin(), chain.members.end(), [&](const auto& member) {
      const auto& parameters = whole.instances[static_cast<std::size_t>(member.instance)].parameters;
      return std::any_of(parameters.begin(), parameters.end(),
                         [&](const auto& use) { return !schedule::on_chip_before(use, pinned); });
    });
  }

  static std::string reason_of(const ChainChoice& choice, const Figures& without) {
    if (choice.alternatives.empty()) return "there is no way to cut it";
    const ChainAlternative& best = choice.alternatives[choice.best];
    if (!best.failure.empty()) return best.failure;
    if (choice.taken && best.value == without.value)
      return "it lowers a later objective, and the ones before are equal";
    if (choice.taken) return "it lowers the objective";
    if (best.value == without.value && best.then == without.then) return "the objective does not see what it saves";
    if (best.extra_weights > 0 && best.off_chip_saved <= 0)
      return "weights would be fetched again by every chunk, and nothing else would stay on chip instead";
    if (best.off_chip_saved <= 0)
      return "no byte less leaves the chip, so that chunks only add starts, loads and shorter streams";
    return "what stays on chip does not pay for the starts, loads and shorter streams of its chunks";
  }

  /// The cuts once more with proof; they stay only where they win there too.
  Status prove(std::size_t m, std::size_t b, const lower::KernelGraph& whole, const std::vector<ChainCut>& cuts,
               std::vector<ChainChoice>& choices, State& proven) {
    auto bucket = cut_bucket(proven.plan.models[m].buckets[b], whole, cuts, options_);
    std::optional<State> next;
    if (bucket.ok()) {
      PL_TRY(next, replaced(proven, m, b, std::move(*bucket)));
    }
    if (next && precedes(next->figures[m][b], proven.figures[m][b])) {
      proven = std::move(*next);
      return Done{};
    }
    for (ChainChoice& choice : choices) {
      if (!choice.taken) continue;
      choice.taken = false;
      choice.reason = "it wins on simple tilings, but not on certified mappings";
    }
    return Done{};
  }

  const ingest::Accelerator& accelerator_;
  const ingest::CompileOptions& options_;
  const std::map<std::string, ingest::Dataflow>& dataflows_;
  const schedule::LevelRoles& levels_;
  schedule::MappingCache* cache_;
  ingest::CompileOptions simple_;
  schedule::MappingMemo memo_;
};

}  // namespace

Result<ChainedSchedules> choose_chains(const ChainedSchedules& plain, const ingest::Accelerator& accelerator,
                                       const ingest::CompileOptions& options,
                                       const std::map<std::string, ingest::Dataflow>& dataflows,
                                       schedule::MappingCache* cache) {
  PL_TRY(const schedule::LevelRoles levels, schedule::find_levels(accelerator));
  return Chooser(accelerator, options, dataflows, levels, cache).run(plain);
}

}  // namespace plumbline::execute
