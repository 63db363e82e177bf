#include "schedule/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "schedule/search_join.h"
#include "schedule/search_node.h"
#include "schedule/window.h"

namespace plumbline::schedule {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

Diagnostic unsupported(std::string message, std::string help = {}) {
  return make_error("unsupported", Span{}, std::move(message), std::move(help));
}

/// 12288 → "12,288".
std::string digits(__int128 value) {
  std::string text;
  int count = 0;
  do {
    if (count > 0 && count % 3 == 0) text.insert(text.begin(), ',');
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
    ++count;
  } while (value > 0);
  return text;
}
std::string grouped(std::int64_t value) { return digits(value); }

/// The machine of the search; only the last level may have more than one instance.
Result<SearchMachine> make_machine(const Hierarchy& hierarchy, const EnergyRates& rates) {
  const std::size_t levels = hierarchy.levels.size();
  if (levels < 2 || levels > kSearchLevels) {
    return unsupported(fmt::format("searching a hierarchy of {} levels", levels),
                       fmt::format("two to {} levels", kSearchLevels));
  }
  if (rates.read.size() != levels || rates.write.size() != levels) {
    return make_error("bad-value", Span{},
                      fmt::format("energies of {} and {} levels for a hierarchy of {}", rates.read.size(),
                                  rates.write.size(), levels));
  }
  const StorageLevel& last = hierarchy.levels.back();
  SearchMachine machine;
  machine.levels = static_cast<int>(levels);
  machine.array = machine.levels - 1;
  machine.mesh_x = last.mesh_x;
  machine.mesh_y = last.instances / last.mesh_x;
  machine.macs_per_cycle = hierarchy.macs_per_cycle;
  machine.cycles_per_step = hierarchy.cycles_per_step;
  machine.mac_energy = rates.mac;
  machine.capacity.fill(kNever);
  for (std::size_t l = 0; l < levels; ++l) {
    const StorageLevel& level = hierarchy.levels[l];
    if (l + 1 < levels && level.instances != 1)
      return unsupported(fmt::format("searching with {} instances of level '{}'", level.instances, level.name));
    machine.read_energy[l] = rates.read[l];
    machine.write_energy[l] = rates.write[l];
    if (level.capacity_bits) machine.capacity[l] = static_cast<double>(*level.capacity_bits);
    if (level.read_bits_per_cycle) machine.read_rate[l] = *level.read_bits_per_cycle;
    if (level.write_bits_per_cycle) machine.write_rate[l] = *level.write_bits_per_cycle;
    if (level.array && l > 0) machine.array = static_cast<int>(l);
  }
  if (hierarchy.mac_units != last.instances) return unsupported("searching a fan-out below the last level");
  return machine;
}

/// Residences an operand may take under the demands.
std::vector<Residence> residences(const SearchMachine& machine, const SearchOptions& options, std::size_t operand) {
  const auto demanded = [&](const std::vector<std::uint32_t>& masks, std::size_t level) {
    return level < masks.size() && ((masks[level] >> operand) & 1U) != 0;
  };
  std::vector<Residence> result;
  for (Residence r = 0; r < (1U << machine.levels); r += 2) {
    bool fits = !demanded(options.must_bypass, 0);
    for (std::size_t l = 1; l < static_cast<std::size_t>(machine.levels); ++l) {
      const bool kept = ((r >> l) & 1U) != 0;
      fits = fits && !(kept && demanded(options.must_bypass, l)) && !(!kept && demanded(options.must_keep, l));
    }
    if (fits) result.push_back(r);
  }
  return result;
}

Status check_limits(const lower::Einsum& einsum, const SearchOptions& options, int levels) {
  std::vector<Objective> objectives = options.objectives;
  std::sort(objectives.begin(), objectives.end());
  if (objectives.empty() || std::adjacent_find(objectives.begin(), objectives.end()) != objectives.end()) {
    return make_error("bad-value", Span{}, objectives.empty() ? "no objective" : "an objective stands twice",
                      "one or more in order of importance");
  }
  for (const FactorBound& limit : options.factors) {
    if (limit.dim < 0 || limit.dim >= einsum.rank() || limit.level < 0 || limit.level >= levels || limit.fewest < 1) {
      return make_error(
          "bad-value", Span{},
          fmt::format("a limit on dimension {} at level {} from {}", limit.dim, limit.level, limit.fewest));
    }
    if (limit.fewest > limit.most) {
      return make_error(
          "does-not-fit", Span{},
          fmt::format("a factor of '{}' at level {} is to be at least {} and at most {}",
                      einsum.dim_names[static_cast<std::size_t>(limit.dim)], limit.level, limit.fewest, limit.most));
    }
  }
  for (const std::vector<int>& order : options.orders) {
    for (const int dim : order) {
      if (dim < 0 || dim >= einsum.rank() || std::count(order.begin(), order.end(), dim) > 1)
        return make_error("bad-value", Span{}, fmt::format("dimension {} in an order", dim), "each once");
    }
  }
  for (std::size_t l = 0; l < std::min(options.must_keep.size(), options.must_bypass.size()); ++l) {
    if ((options.must_keep[l] & options.must_bypass[l]) != 0) {
      return make_error("does-not-fit", Span{}, fmt::format("level {} is to keep and to bypass one operand", l));
    }
  }
  return Done{};
}

const char* name_of(Objective objective) {
  switch (objective) {
    case Objective::energy:
      return "energy";
    case Objective::latency:
      return "latency";
    case Objective::energy_delay:
      return "energy-delay product";
    case Objective::off_array_weight_bits:
      break;
  }
  return "off-array weight bits";
}

/// Everything lives in the outermost level, whole.
Status check_home(const lower::Einsum& einsum, const Evaluator& evaluator) {
  const StorageLevel& home = evaluator.hierarchy().levels.front();
  if (!home.capacity_bits) return Done{};
  __int128 bits = 0;
  for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
    const Projection& p = evaluator.projection(o);
    __int128 words = p.words;
    for (int w = 0; w < p.windows; ++w) {
      const std::int64_t along = axis_elements(p.axes[static_cast<std::size_t>(w)], einsum.dims);
      words *= std::max<std::int64_t>(along, 1);
    }
    bits += words * einsum.operands[o].bits;
  }
  if (bits <= *home.capacity_bits) return Done{};
  return make_error("does-not-fit", Span{},
                    fmt::format("the operands take {} bits in the level '{}', which holds {}", digits(bits), home.name,
                                grouped(*home.capacity_bits)));
}

/// Why no mapping fits: the least a level must hold, where that is already too much.
Diagnostic explain_none(const lower::Einsum& einsum, const Hierarchy& hierarchy, const SearchSpace& space,
                        const SearchOptions& options) {
  for (std::size_t l = 0; l < std::min(options.must_keep.size(), hierarchy.levels.size()); ++l) {
    const auto& capacity = hierarchy.levels[l].capacity_bits;
    __int128 least = 0;
    std::string names;
    for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
      if (((options.must_keep[l] >> o) & 1U) == 0) continue;
      __int128 words = 1;
      for (const SearchDim& dim : space.dims) {
        if (((dim.relevant >> o) & 1U) == 0 || dim.window) continue;  // of a window at least one word
        double held = static_cast<double>(dim.size);
        for (const Chain& chain : dim.chains) held = std::min(held, chain.held[l]);
        words *= static_cast<std::int64_t>(held);
      }
      least += words * einsum.operands[o].bits;
      names += (names.empty() ? "" : ", ") + einsum.operands[o].name;
    }
    if (capacity && least > *capacity) {
      return make_error("does-not-fit", Span{},
                        fmt::format("level '{}' is to keep {}, which needs at least {} bits, and holds {}",
                                    hierarchy.levels[l].name, names, digits(least), grouped(*capacity)));
    }
  }
  std::int64_t copies = 1;
  for (const SearchDim& dim : space.dims) {
    std::int64_t least = INT64_MAX;
    for (const Chain& chain : dim.chains) least = std::min(least, chain.copies);
    if (__builtin_mul_overflow(copies, least, &copies)) copies = INT64_MAX;
  }
  if (copies > hierarchy.levels.back().instances) {
    return make_error(
        "does-not-fit", Span{},
        fmt::format("the limits ask for at least {} copies in the level '{}', which has {}", grouped(copies),
                    hierarchy.levels.back().name, grouped(hierarchy.levels.back().instances)));
  }
  return make_error("does-not-fit", Span{},
                    fmt::format("no mapping with {} factors fits the capacities, the array and the limits",
                                options.imperfect ? "any" : "perfect"),
                    options.imperfect ? "" : "imperfect factors may fit");
}

/// A node's place in the list: mixed-radix number of its chains, and its bound.
struct Listed {
  Score bound;
  std::uint64_t number = 0;
};

class Search {
 public:
  Search(SearchContext context, const Evaluator& evaluator, const EnergyRates& rates, const SearchOptions& options)
      : context_(std::move(context)), joiner_(context_, evaluator, rates, options) {
    for (std::size_t o = 0; o < 3; ++o) joiner_.allow(o, residences(context_.machine, options, o));
  }

  /// Bounds every node, then opens them best first.
  void run(std::int64_t most_work, Certificate& certificate) {
    const Score root = joiner_.root_bound();
    std::vector<Listed> list;
    std::uint64_t total = 1;
    for (const int d : context_.space.enumerated)
      total *= context_.space.dims[static_cast<std::size_t>(d)].chains.size();
    for (std::uint64_t number = 0; number < total; ++number) {
      Node node;
      std::vector<int> chain = chains_of(number);
      if (is_mirrored(chain) || !make_node(context_, std::move(chain), node)) continue;
      ++certificate.nodes;
      const Score bound = joiner_.quick_bound(node);
      if (bound.of[0] < kNever) list.push_back({bound, number});
      if (joiner_.work() <= most_work / 2) continue;
      joiner_.leave_open(root);  // half of the work is for looking into nodes
      break;
    }
    std::sort(list.begin(), list.end(), [](const Listed& a, const Listed& b) {
      if (a.bound < b.bound) return true;
      return !(b.bound < a.bound) && a.number < b.number;
    });
    for (const Listed& each : list) {
      if (!joiner_.improves(each.bound)) continue;
      if (joiner_.exhausted()) {
        joiner_.leave_open(each.bound);
        break;
      }
      Node node;
      make_node(context_, chains_of(each.number), node);
      ++certificate.opened;
      joiner_.open(node, each.bound);
    }
    if (context_.space.sampled) joiner_.leave_open(root);
    certificate.evaluated = joiner_.evaluated();
    const Score lower = std::min(joiner_.best(), joiner_.unproved());
    const auto many = static_cast<std::ptrdiff_t>(lower.count);
    certificate.bests.assign(joiner_.best().of.begin(), joiner_.best().of.begin() + many);
    certificate.lower_bounds.assign(lower.of.begin(), lower.of.begin() + many);
  }
  [[nodiscard]] const Joiner& joiner() const { return joiner_; }
  [[nodiscard]] Joiner& joiner() { return joiner_; }

 private:
  /// Whether trading the mirrored axes gives an earlier node.
  [[nodiscard]] bool is_mirrored(const std::vector<int>& chain) const {
    for (const auto& [a, b] : context_.space.mirror) {
      if (chain[a] != chain[b]) return chain[a] > chain[b];
    }
    return false;
  }
  [[nodiscard]] std::vector<int> chains_of(std::uint64_t number) const {
    std::vector<int> chain;
    for (const int d : context_.space.enumerated) {
      const std::uint64_t many = context_.space.dims[static_cast<std::size_t>(d)].chains.size();
      chain.push_back(static_cast<int>(number % many));
      number /= many;
    }
    return chain;
  }

  SearchContext context_;
  Joiner joiner_;
};

}  // namespace

bool clearly_better(const std::vector<double>& a, const std::vector<double>& b) {
  Score left, right;
  left.count = right.count = static_cast<int>(std::min({a.size(), b.size(), kMostObjectives}));
  std::copy_n(a.begin(), left.count, left.of.begin());
  std::copy_n(b.begin(), left.count, right.of.begin());
  return clearly_below(left, right);
}

void state_gap(Certificate& c) {
  c.best = c.bests.at(0);
  c.lower_bound = c.lower_bounds.at(0);
  c.gap = 0;
  constexpr double kRounding = 1e-12;  // sums of the same terms in another order
  for (std::size_t i = 0; i < c.bests.size(); ++i) {
    if (c.bests[i] <= c.lower_bounds[i] * (1 + kRounding)) continue;
    c.gap = c.lower_bounds[i] > 0 ? c.bests[i] / c.lower_bounds[i] - 1 : std::numeric_limits<double>::infinity();
    return;
  }
}

double energy_of(const AccessCounts& counts, const EnergyRates& rates) {
  double energy = static_cast<double>(counts.macs) * rates.mac;
  for (std::size_t l = 0; l < counts.levels.size(); ++l) {
    for (const OperandCounts& each : counts.levels[l]) {
      energy +=
          static_cast<double>(each.read_bits) * rates.read[l] + static_cast<double>(each.write_bits) * rates.write[l];
    }
  }
  return energy;
}

double energy_of(const Mapping& mapping, const Tally& tally, std::size_t operands, const EnergyRates& rates) {
  double energy = static_cast<double>(tally.macs) * rates.mac;
  for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
    for (std::size_t o = 0; o < operands; ++o) {
      if (!mapping.levels[l].keeps_operand(o)) continue;
      energy += static_cast<double>(tally.levels[l][o].read_bits) * rates.read[l] +
                static_cast<double>(tally.levels[l][o].write_bits) * rates.write[l];
    }
  }
  return energy;
}

namespace {

void fill_context(const Evaluator& evaluator, SearchContext& context) {
  for (std::size_t o = 0; o < 3; ++o) {
    context.projections[o] = evaluator.projection(o);
    context.words[o] = static_cast<double>(context.projections[o].words);
  }
  for (const SearchDim& dim : context.space.dims) context.macs *= static_cast<double>(dim.size);
}

/// Perfect factors are imperfect ones too, but a sample may miss the best of them.
Status try_perfect(const lower::Einsum& einsum, const Hierarchy& hierarchy, const EnergyRates& rates,
                   const SearchOptions& options, SearchResult& result) {
  SearchOptions exact = options;
  exact.imperfect = false;
  auto perfect = search_mapping(einsum, hierarchy, rates, exact);
  if (!perfect.ok()) return Done{};  // nothing perfect fits, or not within the budget
  Certificate& c = result.certificate;
  c.nodes += perfect->certificate.nodes;
  c.opened += perfect->certificate.opened;
  c.evaluated += perfect->certificate.evaluated;
  if (!clearly_better(perfect->certificate.bests, c.bests)) return Done{};
  c.bests = perfect->certificate.bests;
  result.mapping = std::move(perfect->mapping);
  result.counts = std::move(perfect->counts);
  result.energy = perfect->energy;
  return Done{};
}

/// The sample may take one part in this many of the work.
constexpr std::int64_t kShareOfSample = 4;

}  // namespace

Result<SearchResult> search_mapping(const lower::Einsum& einsum, const Hierarchy& hierarchy, const EnergyRates& rates,
                                    const SearchOptions& options) {
  PL_TRY(const Evaluator original, Evaluator::prepare(einsum, hierarchy));
  const int levels = original.levels();
  PL_TRY_STATUS(check_limits(einsum, options, levels));
  PL_TRY_STATUS(check_home(einsum, original));
  SearchContext context;
  PL_TRY(context.machine, make_machine(hierarchy, rates));
  PL_TRY(context.space, make_search_space(einsum, options, levels, context.machine.units()));
  PL_TRY(const Evaluator evaluator, Evaluator::prepare(context.space.einsum, hierarchy));
  fill_context(evaluator, context);
  SearchResult result;
  SearchOptions within = options;
  // Where the bound is compulsory traffic anyway, more work can only improve the answer.
  if (context.space.sampled) within.most_work /= kShareOfSample;
  Search search(context, evaluator, rates, within);
  const bool complete = std::all_of(context.space.dims.begin(), context.space.dims.end(),
                                    [](const SearchDim& d) { return d.list == ChainList::complete; });
  if (!complete && !context.space.slides) {
    // Classes bound well, but few of their members are tried: a good one is looked for first.
    auto space = make_search_space(einsum, options, levels, context.machine.units(), true);
    if (space.ok()) {
      SearchContext some = context;
      some.space = std::move(space).value();
      SearchOptions quick = options;
      quick.most_work = options.most_work / kShareOfSample;
      quick.most_evaluations = options.most_evaluations / 2;
      Search sample(some, evaluator, rates, quick);
      sample.run(quick.most_work, result.certificate);
      const Joiner& tried = sample.joiner();
      if (tried.found()) search.joiner().start_from(tried.best(), tried.mapping());
      search.joiner().count_before(tried);
    }
  }
  search.run(within.most_work, result.certificate);
  if (!search.joiner().found()) {
    if (!search.joiner().uncounted().ok()) return evaluator.explain(search.joiner().uncounted());
    if (search.joiner().unproved().of[0] < kNever) {
      return make_error("too-large", Span{}, "no mapping was found within the budget", "a larger budget");
    }
    return explain_none(einsum, hierarchy, context.space, options);
  }
  result.mapping = unmerge(context.space, einsum, search.joiner().mapping());
  PL_TRY(result.counts, count_accesses(einsum, hierarchy, result.mapping));
  result.energy = energy_of(result.counts, rates);
  Certificate& c = result.certificate;
  c.bests.resize(options.objectives.size());  // without what only breaks ties
  c.lower_bounds.resize(options.objectives.size());
  if (options.imperfect && context.space.sampled) PL_TRY_STATUS(try_perfect(einsum, hierarchy, rates, options, result));
  state_gap(c);
  for (const Objective each : options.objectives) {
    c.objective += (c.objective.empty() ? "" : ", then ") + std::string(name_of(each));
    c.objectives.emplace_back(name_of(each));
  }
  c.covered = options.imperfect ? "all factors of every dimension, all loop orders, all bypasses"
                                : "perfect factors of every dimension, all loop orders, all bypasses";
  // What a ragged pass saves beyond whole passes is counted in the answer but not in the bound.
  c.certified_on = context.space.sampled ? "exact counts; the bound is compulsory traffic"
                   : options.imperfect
                       ? "counts of whole passes: an idle register refetches, a ragged pass moves every loop"
                       : "exact counts";
  return result;
}

}  // namespace plumbline::schedule
