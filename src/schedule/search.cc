#include "schedule/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "schedule/search_join.h"
#include "schedule/search_node.h"

namespace plumbline::schedule {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Nodes are listed in memory; a space of more is refused.
constexpr double kMostNodes = 4e6;

Diagnostic unsupported(std::string message, std::string help = {}) {
  return make_error("unsupported", Span{}, std::move(message), std::move(help));
}

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
  if (options.objectives.empty() || options.objectives.size() > 2) {
    return make_error("bad-value", Span{}, fmt::format("{} objectives", options.objectives.size()),
                      "one, or two in order of importance");
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
  for (std::size_t l = 0; l < std::min(options.must_keep.size(), options.must_bypass.size()); ++l) {
    if ((options.must_keep[l] & options.must_bypass[l]) != 0) {
      return make_error("does-not-fit", Span{}, fmt::format("level {} is to keep and to bypass one operand", l));
    }
  }
  return Done{};
}

std::string describe(const std::vector<Objective>& objectives) {
  std::string text;
  for (const Objective each : objectives) {
    if (!text.empty()) text += ", then ";
    switch (each) {
      case Objective::energy:
        text += "energy";
        break;
      case Objective::latency:
        text += "latency";
        break;
      case Objective::energy_delay:
        text += "energy-delay product";
        break;
      case Objective::off_array_weight_bits:
        text += "off-array weight bits";
        break;
    }
  }
  return text;
}

/// Why no mapping fits: the least a level must hold, where that is already too much.
Diagnostic explain_none(const lower::Einsum& einsum, const Hierarchy& hierarchy, const SearchOptions& options) {
  for (std::size_t l = 0; l < std::min(options.must_keep.size(), hierarchy.levels.size()); ++l) {
    const auto& capacity = hierarchy.levels[l].capacity_bits;
    std::int64_t least = 0;
    for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
      if (((options.must_keep[l] >> o) & 1U) != 0) least += einsum.operands[o].bits;
    }
    if (capacity && least > *capacity) {
      return make_error(
          "does-not-fit", Span{},
          fmt::format("level '{}' is to keep operands of which one element each takes {} bits, and holds {}",
                      hierarchy.levels[l].name, least, *capacity));
    }
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
  void run(Certificate& certificate) {
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
      if (bound.first < kNever) list.push_back({bound, number});
    }
    std::sort(list.begin(), list.end(), [](const Listed& a, const Listed& b) {
      if (a.bound.first != b.bound.first) return a.bound.first < b.bound.first;
      if (a.bound.second != b.bound.second) return a.bound.second < b.bound.second;
      return a.number < b.number;
    });
    double open_bound = kNever;
    for (const Listed& each : list) {
      if (!joiner_.improves(each.bound)) continue;
      if (joiner_.exhausted()) {
        open_bound = std::min(open_bound, each.bound.first);
        break;
      }
      Node node;
      make_node(context_, chains_of(each.number), node);
      ++certificate.opened;
      joiner_.open(node);
    }
    certificate.evaluated = joiner_.evaluated();
    certificate.lower_bound = std::min({joiner_.best().first, open_bound, joiner_.unproved()});
  }
  [[nodiscard]] const Joiner& joiner() const { return joiner_; }

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

Result<SearchResult> search_mapping(const lower::Einsum& einsum, const Hierarchy& hierarchy, const EnergyRates& rates,
                                    const SearchOptions& options) {
  PL_TRY(const Evaluator original, Evaluator::prepare(einsum, hierarchy));
  const int levels = original.levels();
  PL_TRY_STATUS(check_limits(einsum, options, levels));
  SearchContext context;
  PL_TRY(context.machine, make_machine(hierarchy, rates));
  PL_TRY(context.space, make_search_space(einsum, options, levels, context.machine.units()));
  double nodes = 1;
  for (const int d : context.space.enumerated)
    nodes *= static_cast<double>(context.space.dims[static_cast<std::size_t>(d)].chains.size());
  if (nodes > kMostNodes) return unsupported(fmt::format("a search of {:.3g} nodes", nodes), "limit some factors");
  PL_TRY(const Evaluator evaluator, Evaluator::prepare(context.space.einsum, hierarchy));
  for (std::size_t o = 0; o < 3; ++o) {
    context.projections[o] = evaluator.projection(o);
    context.words[o] = static_cast<double>(context.projections[o].words);
  }
  for (const SearchDim& dim : context.space.dims) context.macs *= static_cast<double>(dim.size);

  SearchResult result;
  Search search(context, evaluator, rates, options);
  search.run(result.certificate);
  if (!search.joiner().found()) return explain_none(einsum, hierarchy, options);
  result.mapping = unmerge(context.space, einsum, search.joiner().mapping());
  PL_TRY(result.counts, count_accesses(einsum, hierarchy, result.mapping));
  result.energy = energy_of(result.counts, rates);
  Certificate& c = result.certificate;
  c.best = search.joiner().best().first;
  c.gap = c.lower_bound > 0 ? c.best / c.lower_bound - 1 : 0;
  c.objective = describe(options.objectives);
  c.covered = options.imperfect ? "all factors of every dimension, all loop orders, all bypasses"
                                : "perfect factors of every dimension, all loop orders, all bypasses";
  // What a ragged pass saves beyond whole passes is counted in the answer but not in the bound.
  c.certified_on = options.imperfect
                       ? "counts of whole passes: an idle register refetches, a ragged pass moves every loop"
                       : "exact counts";
  return result;
}

}  // namespace plumbline::schedule
