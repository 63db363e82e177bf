#include "schedule/search_join.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace plumbline::schedule {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Bounds and counts add the same terms in different orders; a difference below this is none.
constexpr double kTolerance = 1e-12;

/// A chain that no other beats: everything held at once, with or without copies.
Chain ideal(const SearchDim* dim, std::int64_t copies) {
  const std::int64_t size = dim == nullptr ? 1 : dim->size;
  Chain chain;
  chain.s = dim == nullptr ? 1 : std::min(size, copies);
  chain.u = chain.t = size;
  return chain;
}

const Chain kUnit{};

}  // namespace

Joiner::Joiner(const SearchContext& context, const Evaluator& evaluator, const EnergyRates& rates,
               const SearchOptions& options)
    : context_(context), evaluator_(evaluator), rates_(rates), options_(options), unproved_(kNever) {
  by_weights_ = options.objectives[0] == Objective::off_array_weight_bits;
  best_ = {kNever, kNever};
}

Score Joiner::score(double energy, double weights, double cycles) const {
  const auto value = [&](Objective objective) {
    switch (objective) {
      case Objective::energy:
        return energy;
      case Objective::latency:
        return cycles;
      case Objective::energy_delay:
        return energy * cycles;
      case Objective::off_array_weight_bits:
        return weights;
    }
    return energy;
  };
  // Without a second objective ties are broken by what costs nothing to have: less energy.
  return {value(options_.objectives[0]),
          value(options_.objectives.size() > 1 ? options_.objectives[1] : Objective::energy)};
}

double Joiner::cycles(const Load& load, double copies) const {
  const SearchMachine& m = context_.machine;
  double slowest = std::ceil(context_.macs / copies / static_cast<double>(m.macs_per_cycle));
  for (std::size_t l = 0; l < kSearchLevels; ++l) {
    const double instances = l == 2 ? copies : 1;
    if (m.read_rate[l] > 0) slowest = std::max(slowest, std::ceil(load.read[l] / (m.read_rate[l] * instances)));
    if (m.write_rate[l] > 0) slowest = std::max(slowest, std::ceil(load.written[l] / (m.write_rate[l] * instances)));
  }
  return slowest;
}

Score Joiner::score(const Load& load, double copies) const {
  return score(load.energy + context_.macs * context_.machine.mac_energy, load.weights, cycles(load, copies));
}

bool Joiner::improves(const Score& bound) const {
  if (bound.first < best_.first * (1 - kTolerance)) return true;
  return bound.first <= best_.first * (1 + kTolerance) && bound.second < best_.second * (1 - kTolerance);
}

void Joiner::Lists::clear() {
  made = {};
  floored = {};
}

/// What of an order case the cost of one owner depends on.
int Joiner::variant(const OrderCase& order, std::size_t owner) const {
  const bool outer = order.off_chip == owner;
  const bool inner = order.buffer == owner;
  int v = (outer ? 1 : 0) + (inner ? 2 : 0);
  if (context_.space.slides && owner == context_.space.y_owner) return v + (order.z_still == 1 ? 4 : 0);
  return v + (outer && inner && order.through ? 4 : 0);
}

/// The one figure that falls with more copies: each copy of a sum skips its first read.
void Joiner::spread_sums(const Node& node, std::size_t owner, std::int64_t copies, Load& load) const {
  const lower::Operand& operand = context_.space.einsum.operands[owner];
  if (operand.role != lower::Role::outputs) return;
  const double skipped = context_.words[owner] * node.spread[owner] * static_cast<double>(copies - 1) *
                         static_cast<double>(std::max(operand.bits, operand.partial_bits));
  load.read[2] -= skipped;
  load.energy -= skipped * context_.machine.read_energy[2];
}

/// A load below that of every chain of y or z.
const Load& Joiner::floor(const Node& node, const OrderCase& order, Residence residence, bool for_y) {
  Lists& lists = for_y ? y_lists_ : z_lists_;
  const std::size_t owner = for_y ? context_.space.y_owner : context_.space.z_owner;
  const auto v = static_cast<std::size_t>(variant(order, owner));
  Load& load = lists.floor[v][residence];
  if (lists.floored[v][residence]) return load;
  lists.floored[v][residence] = true;
  const SearchDim* dim = for_y ? context_.y() : context_.z();
  const std::int64_t left = context_.machine.mesh_x * context_.machine.mesh_y / node.copies;
  const Chain spread = ideal(dim, left);
  const bool registers = (residence & 2U) != 0;
  const Chain chain = registers ? ideal(dim, 1) : spread;  // in registers copies only cost
  load = for_y ? y_load(context_, node, order, residence, chain) : z_load(context_, node, order, residence, chain);
  if (registers) spread_sums(node, owner, spread.s, load);
  return load;
}

Score Joiner::floor_score(const Load& x, const Load& y, const Load& z, double copies) const {
  return score(x + y + z, copies);
}

Score Joiner::quick_bound(const Node& node) {
  y_lists_.clear();
  z_lists_.clear();
  const SearchMachine& m = context_.machine;
  const std::int64_t left = m.mesh_x * m.mesh_y / node.copies;
  const double copies = static_cast<double>(node.copies) *
                        std::min(static_cast<double>(left), static_cast<double>(ideal(context_.y(), left).s) *
                                                                static_cast<double>(ideal(context_.z(), left).s));
  Score best{kNever, kNever};
  // Least of every figure apart: a bound whatever the residences.
  const auto lower = [](Load& into, const Load& with) {
    for (std::size_t l = 0; l < kSearchLevels; ++l) {
      into.read[l] = std::min(into.read[l], with.read[l]);
      into.written[l] = std::min(into.written[l], with.written[l]);
    }
    into.energy = std::min(into.energy, with.energy);
    into.weights = std::min(into.weights, with.weights);
  };
  Load never;
  never.read.fill(kNever);
  never.written.fill(kNever);
  never.energy = never.weights = kNever;
  for (const OrderCase& order : order_cases(context_, node)) {
    Load x = never, y = never, z = never;
    for (const Residence r : residences_[context_.space.x_owner]) lower(x, x_load(context_, node, order, r));
    for (const Residence r : residences_[context_.space.y_owner]) lower(y, floor(node, order, r, true));
    for (const Residence r : residences_[context_.space.z_owner]) lower(z, floor(node, order, r, false));
    const Score bound = floor_score(x, y, z, copies);
    if (bound.first < best.first || (bound.first == best.first && bound.second < best.second)) best = bound;
  }
  return best;
}

const Joiner::List& Joiner::list(const Node& node, const OrderCase& order, Residence residence, bool for_y) {
  Lists& lists = for_y ? y_lists_ : z_lists_;
  const SearchDim* dim = for_y ? context_.y() : context_.z();
  const auto v = static_cast<std::size_t>(variant(order, for_y ? context_.space.y_owner : context_.space.z_owner));
  List& items = lists.of[v][residence];
  if (lists.made[v][residence]) return items;
  lists.made[v][residence] = true;
  const std::int64_t left = context_.machine.mesh_x * context_.machine.mesh_y / node.copies;
  const std::size_t many = dim == nullptr ? 1 : dim->chains.size();
  unsorted_.clear();
  ranks_.clear();
  for (std::size_t i = 0; i < many; ++i) {
    Item item;
    item.chain = dim == nullptr ? &kUnit : &dim->chains[i];
    if (item.chain->s > left) continue;
    item.index = static_cast<int>(i);
    item.load = for_y ? y_load(context_, node, order, residence, *item.chain)
                      : z_load(context_, node, order, residence, *item.chain);
    if (!(item.load.energy < kNever)) continue;
    const Load& load = item.load;
    ranks_.push_back({by_weights_ ? load.weights : load.energy, by_weights_ ? load.energy : load.weights,
                      static_cast<int>(unsorted_.size())});
    unsorted_.push_back(item);
  }
  std::sort(ranks_.begin(), ranks_.end(), [](const Ranked& a, const Ranked& b) {
    if (a.first != b.first) return a.first < b.first;
    return a.second != b.second ? a.second < b.second : a.index < b.index;
  });
  items.clear();
  for (const Ranked& rank : ranks_) items.push_back(unsorted_[static_cast<std::size_t>(rank.index)]);
  return items;
}

bool Joiner::fits(const Node& node, const std::array<Residence, 3>& residence, const Chain& y, const Chain& z) const {
  double buffer = 0;
  double registers = 0;
  for (std::size_t o = 0; o < 3; ++o) {
    const auto bits = static_cast<double>(context_.space.einsum.operands[o].bits);
    const bool uses_y = o != context_.space.y_owner;
    const bool uses_z = o != context_.space.z_owner;
    if ((residence[o] & 1U) != 0) {
      buffer += bits * node.buffer_words[o] * static_cast<double>((uses_y ? y.t : 1) * (uses_z ? z.t : 1));
    }
    if ((residence[o] & 2U) != 0) {
      registers += bits * node.register_words[o] * static_cast<double>((uses_y ? y.r : 1) * (uses_z ? z.r : 1));
    }
  }
  return buffer <= context_.machine.capacity[1] && registers <= context_.machine.capacity[2];
}

void Joiner::open(const Node& node) {
  seen_.clear();
  y_lists_.clear();
  z_lists_.clear();
  const SearchSpace& space = context_.space;
  const auto most_copies = static_cast<double>(context_.machine.mesh_x * context_.machine.mesh_y);
  for (const OrderCase& order : order_cases(context_, node)) {
    std::array<Residence, 3> residence{};
    for (const Residence rx : residences_[space.x_owner]) {
      residence[space.x_owner] = rx;
      const Load x = x_load(context_, node, order, rx);
      for (const Residence ry : residences_[space.y_owner]) {
        residence[space.y_owner] = ry;
        const Load& y = floor(node, order, ry, true);
        for (const Residence rz : residences_[space.z_owner]) {
          residence[space.z_owner] = rz;
          if (!fits(node, residence, kUnit, kUnit)) continue;
          if (improves(floor_score(x, y, floor(node, order, rz, false), most_copies))) join(node, order, residence, x);
        }
      }
    }
  }
}

void Joiner::join(const Node& node, const OrderCase& order, const std::array<Residence, 3>& residence, const Load& x) {
  const SearchMachine& m = context_.machine;
  const std::int64_t units = m.mesh_x * m.mesh_y;
  const List& ys = list(node, order, residence[context_.space.y_owner], true);
  const List& zs = list(node, order, residence[context_.space.z_owner], false);
  const double least_cycles = cycles(x, static_cast<double>(units));
  const auto bound = [&](const Load& y, const Load& z, double steps) {
    return score(x.energy + y.energy + z.energy + context_.macs * m.mac_energy, x.weights + y.weights + z.weights,
                 steps);
  };
  if (ys.empty() || zs.empty() || !improves(bound(ys[0].load, zs[0].load, least_cycles))) return;
  // Items that fit beside the least of the other dimension.
  z_fit_.clear();
  for (const Item& z : zs) {
    const bool still = z.chain->t == z.chain->u;
    if ((order.z_still == 1 && !still) || (order.z_still == 0 && still)) continue;
    if (fits(node, residence, kUnit, *z.chain)) z_fit_.push_back(&z);
  }
  if (z_fit_.empty()) return;
  for (const Item& y : ys) {
    if (!improves(bound(y.load, z_fit_[0]->load, least_cycles)) && !by_weights_) break;
    if (order.y_still && y.chain->t != y.chain->u) continue;
    if (!fits(node, residence, *y.chain, kUnit)) continue;
    const std::int64_t copies_y = node.copies * y.chain->s;
    for (const Item* z : z_fit_) {
      if (!improves(bound(y.load, z->load, least_cycles)) && !by_weights_) break;
      const std::int64_t copies = copies_y * z->chain->s;
      if (copies > units) continue;
      const double steps =
          std::max(least_cycles, std::ceil(context_.macs / static_cast<double>(copies * m.macs_per_cycle)));
      if (!improves(bound(y.load, z->load, steps))) continue;
      if (!fits(node, residence, *y.chain, *z->chain) || !placeable(copies, m.mesh_x, m.mesh_y)) continue;
      const Score exact = score(x + y.load + z->load, static_cast<double>(copies));
      if (improves(exact)) count({&node, order, residence, &y, z}, exact);
    }
  }
}

Mapping Joiner::build(const Leaf& leaf) const {
  const SearchSpace& space = context_.space;
  const SearchMachine& m = context_.machine;
  Mapping mapping;
  mapping.levels.resize(m.buffered ? 3 : 2);
  LevelNest& outer = mapping.levels[0];
  LevelNest& inner = mapping.levels[m.buffered ? 1 : 0];
  LevelNest& registers = mapping.levels.back();
  std::vector<const Chain*> chains(space.dims.size(), &kUnit);
  for (std::size_t i = 0; i < space.enumerated.size(); ++i) {
    const auto d = static_cast<std::size_t>(space.enumerated[i]);
    chains[d] = &space.dims[d].chains[static_cast<std::size_t>(leaf.node->chain[i])];
  }
  if (space.y >= 0) chains[static_cast<std::size_t>(space.y)] = leaf.y->chain;
  if (space.z >= 0) chains[static_cast<std::size_t>(space.z)] = leaf.z->chain;
  // Of each block the loops the class's operand does not use stand innermost.
  for (const bool innermost : {false, true}) {
    for (std::size_t d = 0; d < space.dims.size(); ++d) {
      const auto unused = [&](std::size_t operand) { return ((space.dims[d].relevant >> operand) & 1U) == 0; };
      const std::int64_t off_chip = space.dims[d].size / chains[d]->t;
      const std::int64_t buffer = chains[d]->t / chains[d]->u;
      if (off_chip > 1 && unused(leaf.order.off_chip) == innermost)
        outer.loops.push_back({static_cast<int>(d), off_chip});
      if (buffer > 1 && unused(leaf.order.buffer) == innermost) inner.loops.push_back({static_cast<int>(d), buffer});
    }
  }
  std::int64_t copies = 1;
  for (const Chain* chain : chains) copies *= chain->s;
  std::int64_t across = std::min(copies, m.mesh_x);
  while (copies % across != 0 || copies / across > m.mesh_y) --across;
  for (std::size_t d = 0; d < space.dims.size(); ++d) {
    const std::int64_t x = std::gcd(chains[d]->s, across);
    across /= x;
    if (x > 1) inner.loops.push_back({static_cast<int>(d), x, LoopKind::spatial_x});
    if (chains[d]->s / x > 1) inner.loops.push_back({static_cast<int>(d), chains[d]->s / x, LoopKind::spatial_y});
    if (chains[d]->r > 1) registers.loops.push_back({static_cast<int>(d), chains[d]->r});
  }
  outer.keeps = 7;
  for (std::size_t o = 0; o < 3; ++o) {
    if ((leaf.residence[o] & 1U) != 0) mapping.levels[1].keeps |= 1U << o;
    if ((leaf.residence[o] & 2U) != 0) registers.keeps |= 1U << o;
  }
  return mapping;
}

void Joiner::count_mapping(const Mapping& mapping) {
  ++evaluated_;
  if (!evaluator_.evaluate(mapping, tally_).ok()) return;  // sums kept wide may be too large for the capacity after all
  double weights = 0;
  const SearchMachine& m = context_.machine;
  for (std::size_t o = 0; o < 3; ++o) {
    if (context_.space.einsum.operands[o].role != lower::Role::weights) continue;
    const bool buffered = m.buffered && mapping.levels[1].keeps_operand(o);
    const int at = m.weights_read_at >= 0 ? m.weights_read_at : buffered ? 1 : 0;
    if (mapping.levels[static_cast<std::size_t>(at)].keeps_operand(o)) {
      weights += static_cast<double>(tally_.levels[static_cast<std::size_t>(at)][o].read_bits);
    }
  }
  const Score reached =
      score(energy_of(mapping, tally_, 3, rates_), weights, static_cast<double>(tally_.cycles_overlapped));
  if (found_ && !improves(reached)) return;
  found_ = true;
  best_ = reached;
  mapping_ = mapping;
}

void Joiner::count(const Leaf& leaf, const Score& bound) {
  if (exhausted()) {
    unproved_ = std::min(unproved_, bound.first);
    return;
  }
  Mapping mapping = build(leaf);
  if (!context_.space.slides) {
    count_mapping(mapping);
    return;
  }
  std::vector<int> key{leaf.y->index, leaf.z->index};
  for (const Residence r : leaf.residence) key.push_back(static_cast<int>(r));
  if (seen_.insert(key).second) count_orders(mapping, bound);
}

/// Every order of both blocks.
void Joiner::count_orders(Mapping& mapping, const Score& bound) {
  const auto by_dim = [](const Loop& a, const Loop& b) { return a.dim < b.dim; };
  auto& outer = mapping.levels[0].loops;
  auto& inner = mapping.levels[context_.machine.buffered ? 1 : 0].loops;
  std::vector<Loop> spatial;
  std::vector<Loop> temporal;
  for (const Loop& loop : inner) (loop.kind == LoopKind::temporal ? temporal : spatial).push_back(loop);
  std::vector<Loop> block = context_.machine.buffered ? outer : std::vector<Loop>{};
  std::sort(block.begin(), block.end(), by_dim);
  do {
    if (context_.machine.buffered) outer = block;
    std::sort(temporal.begin(), temporal.end(), by_dim);
    do {
      if (exhausted()) {
        unproved_ = std::min(unproved_, bound.first);
        return;
      }
      inner = temporal;
      inner.insert(inner.end(), spatial.begin(), spatial.end());
      count_mapping(mapping);
    } while (std::next_permutation(temporal.begin(), temporal.end(), by_dim));
  } while (std::next_permutation(block.begin(), block.end(), by_dim));
}

}  // namespace plumbline::schedule
