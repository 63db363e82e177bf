#include "schedule/search_join.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace plumbline::schedule {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Mappings of classes tried when they can only improve the answer, not the bound.
constexpr std::int64_t kMostTries = 20'000;
/// Taking the costs of a chain against looking at a pair of chains, roughly.
constexpr std::int64_t kLoadWork = 8;
/// Counting a mapping, likewise.
constexpr std::int64_t kCountWork = 100;
/// Items of lists kept in memory, about 100 bytes each; more are made anew when needed.
constexpr std::size_t kMostRemembered = 2'000'000;

/// A chain that no other beats: everything held at once, with or without copies.
Chain ideal(const SearchDim* dim, std::int64_t copies) {
  const std::int64_t size = dim == nullptr ? 1 : dim->size;
  Chain chain;
  chain.extent.fill(size);
  chain.array = size;
  chain.copies = std::min(size, copies);
  chain.steps = static_cast<double>(size) / static_cast<double>(chain.copies);
  return chain;
}

const Chain kUnit{};

}  // namespace

Joiner::Joiner(const SearchContext& context, const Evaluator& evaluator, const EnergyRates& rates,
               const SearchOptions& options)
    : context_(context), evaluator_(evaluator), rates_(rates), options_(options), scorer_(options.objectives) {
  by_weights_ = scorer_.weights_first();
  best_ = unproved_ = worst_score(scorer_.count());
  const auto shared = [&](std::size_t owner) {
    return std::all_of(context.space.enumerated.begin(), context.space.enumerated.end(), [&](int d) {
      return ((context.space.dims[static_cast<std::size_t>(d)].relevant >> owner) & 1U) != 0;
    });
  };
  y_shared_ = !context.space.slides && shared(context.space.y_owner);
  z_shared_ = shared(context.space.z_owner);
  z_copies_ = {1};
  if (context.z() != nullptr) {
    for (const Chain& chain : context.z()->chains) z_copies_.push_back(chain.copies);
    std::sort(z_copies_.begin(), z_copies_.end());
    z_copies_.erase(std::unique(z_copies_.begin(), z_copies_.end()), z_copies_.end());
  }
  z_groups_.resize(z_copies_.size());
}

double Joiner::steps_to_cycles(double steps) const {
  const SearchMachine& m = context_.machine;
  return std::ceil(steps * static_cast<double>(m.cycles_per_step) / static_cast<double>(m.macs_per_cycle));
}

double Joiner::cycles(const Load& load, double steps, double used) const {
  const SearchMachine& m = context_.machine;
  double slowest = steps_to_cycles(steps);
  for (std::size_t l = 0; l < static_cast<std::size_t>(m.levels); ++l) {
    const double instances = l + 1 == static_cast<std::size_t>(m.levels) ? used : 1;
    if (m.read_rate[l] > 0) slowest = std::max(slowest, std::ceil(load.read[l] / (m.read_rate[l] * instances)));
    if (m.write_rate[l] > 0) slowest = std::max(slowest, std::ceil(load.written[l] / (m.write_rate[l] * instances)));
  }
  return slowest;
}

Score Joiner::score(const Load& load, double steps, double used) const {
  return scorer_(load.energy + context_.macs * context_.machine.mac_energy, load.weights, cycles(load, steps, used));
}

/// Steps of the node if y and z filled what it leaves of the array.
double Joiner::least_steps(const Node& node) const {
  const double rest = (context_.y() == nullptr ? 1.0 : static_cast<double>(context_.y()->size)) *
                      (context_.z() == nullptr ? 1.0 : static_cast<double>(context_.z()->size));
  const std::int64_t room = context_.machine.units() / node.copies;  // whole: copies stand on whole units
  return node.steps * rest / std::min(rest, static_cast<double>(room));
}

bool Joiner::improves(const Score& bound) const {
  // When the last tries are used up, only what could lower the bound matters.
  return clearly_below(bound, best_) && (!found_ || tries_ < kMostTries || bound < unproved_);
}

/// Forgets what belongs to another node.
void Joiner::begin(const Node& node) {
  (void)node;
  if (!y_shared_) y_lists_.made = {};
  if (!z_shared_) z_lists_.made = {};
  y_floors_.made = {};
  z_floors_.made = {};
}

std::size_t Joiner::variant(const OrderCase& order, std::size_t owner) const {
  std::size_t v = 0;
  std::size_t values = 1;
  for (int l = 1; l < context_.machine.levels; ++l) {
    v += values * static_cast<std::size_t>(order.reach(owner, l));
    values *= static_cast<std::size_t>(l + 1);
  }
  // Blocks 1 and 2, or block 0 where it is the only one.
  const bool slider = context_.space.slides && owner == context_.space.y_owner;
  const unsigned moves = slider ? static_cast<unsigned>(order.z_moves) & context_.z_blocks() : 0;
  // Beyond the reaches, who stands innermost in every block matters to a slider.
  return 8 * v + moves;
}

/// The one figure that falls with more copies: each copy of a sum skips its first read.
void Joiner::spread_sums(const Node& node, std::size_t owner, std::int64_t copies, Load& load) const {
  const lower::Operand& operand = context_.space.einsum.operands[owner];
  if (operand.role != lower::Role::outputs) return;
  const double skipped = context_.words[owner] * node.most_delivered[owner] * static_cast<double>(copies - 1) *
                         static_cast<double>(std::max(operand.bits, operand.partial_bits));
  const auto last = static_cast<std::size_t>(context_.machine.levels - 1);
  load.read[last] -= skipped;
  load.energy -= skipped * context_.machine.read_energy[last];
}

/// A load below that of every chain of y or z.
const Load& Joiner::floor(const Node& node, const OrderCase& order, Residence residence, bool for_y) {
  Floors& floors = for_y ? y_floors_ : z_floors_;
  const std::size_t owner = for_y ? context_.space.y_owner : context_.space.z_owner;
  const std::size_t v = variant(order, owner);
  Load& load = floors.of[v][residence >> 1U];
  if (floors.made[v][residence >> 1U]) return load;
  floors.made[v][residence >> 1U] = true;
  const SearchDim* dim = for_y ? context_.y() : context_.z();
  const Chain spread = ideal(dim, context_.machine.units() / node.copies);
  const bool registers = ((residence >> (context_.machine.levels - 1)) & 1U) != 0;
  const Chain chain = registers ? ideal(dim, 1) : spread;  // in registers copies only cost
  load = for_y ? y_load(context_, node, order, residence, chain) : z_load(context_, node, order, residence, chain);
  if (registers) spread_sums(node, owner, spread.copies, load);
  return load;
}

namespace {

Load boundless() {
  Load load;
  load.read.fill(kNever);
  load.written.fill(kNever);
  load.energy = load.weights = kNever;
  return load;
}
const Load kNothing = boundless();

void lower(Load& into, const Load& with) {
  for (std::size_t l = 0; l < kSearchLevels; ++l) {
    into.read[l] = std::min(into.read[l], with.read[l]);
    into.written[l] = std::min(into.written[l], with.written[l]);
  }
  into.energy = std::min(into.energy, with.energy);
  into.weights = std::min(into.weights, with.weights);
}

}  // namespace

Score Joiner::root_bound() const {
  const auto units = static_cast<double>(context_.machine.units());
  Load all;
  for (std::size_t o = 0; o < 3; ++o) {
    const lower::Operand& operand = context_.space.einsum.operands[o];
    double words = 1;
    for (const lower::Axis& axis : operand.axes) {
      std::int64_t longest = 1;
      for (const lower::AxisTerm& term : axis)
        longest = std::max(longest, context_.space.einsum.dims[static_cast<std::size_t>(term.dim)]);
      words *= static_cast<double>(longest);
    }
    Crossing once;
    once.copies = std::min(units, context_.macs / words);
    once.steps = std::max(1.0, context_.macs / words / units);
    Load least = kNothing;
    for (const Residence r : residences_[o])
      lower(least, flat_load(context_.machine, operand, r, words, context_.macs, once));
    all = all + least;
  }
  return score(all, std::max(1.0, context_.macs / units), units);
}

Score Joiner::quick_bound(const Node& node) {
  begin(node);
  const double steps = least_steps(node);
  const auto units = static_cast<double>(context_.machine.units());
  Score best = worst_score(scorer_.count());
  for (const OrderCase& order : order_cases(context_, node)) {
    Load x = kNothing, y = kNothing, z = kNothing;  // the least of every figure apart: a bound whatever the residences
    for (const Residence r : residences_[context_.space.x_owner]) lower(x, x_load(context_, node, order, r));
    for (const Residence r : residences_[context_.space.y_owner]) lower(y, floor(node, order, r, true));
    for (const Residence r : residences_[context_.space.z_owner]) lower(z, floor(node, order, r, false));
    const Score bound = score(x + y + z, steps, units);
    best = std::min(best, bound);
    work_ += kLoadWork;
  }
  return best;
}

const Joiner::List& Joiner::list(const Node& node, const OrderCase& order, Residence residence, bool for_y) {
  Lists& lists = for_y ? y_lists_ : z_lists_;
  const SearchDim* dim = for_y ? context_.y() : context_.z();
  const std::size_t v = variant(order, for_y ? context_.space.y_owner : context_.space.z_owner);
  List& list = lists.of[v][residence >> 1U];
  if (lists.made[v][residence >> 1U]) return list;
  lists.made[v][residence >> 1U] = true;
  const bool shared = for_y ? y_shared_ : z_shared_;
  const std::int64_t left = shared ? context_.machine.units() : context_.machine.units() / node.copies;
  const std::size_t many = dim == nullptr ? 1 : dim->chains.size();
  unsorted_.clear();
  ranks_.clear();
  list.least = {kNever, kNever};
  work_ += kLoadWork * static_cast<std::int64_t>(many);
  for (std::size_t i = 0; i < many; ++i) {
    Item item;
    item.chain = dim == nullptr ? &kUnit : &dim->chains[i];
    if (item.chain->copies > left) continue;
    item.index = static_cast<int>(i);
    if (!for_y)
      item.group = static_cast<int>(std::lower_bound(z_copies_.begin(), z_copies_.end(), item.chain->copies) -
                                    z_copies_.begin());
    item.load = for_y ? y_load(context_, node, order, residence, *item.chain)
                      : z_load(context_, node, order, residence, *item.chain);
    if (!(item.load.energy < kNever)) continue;
    const Load& load = item.load;
    ranks_.push_back({by_weights_ ? load.weights : load.energy, by_weights_ ? load.energy : load.weights,
                      static_cast<int>(unsorted_.size())});
    list.least = {std::min(list.least.energy, load.energy), std::min(list.least.weights, load.weights)};
    unsorted_.push_back(item);
  }
  std::sort(ranks_.begin(), ranks_.end(), [](const Ranked& a, const Ranked& b) {
    if (a.first != b.first) return a.first < b.first;
    return a.second != b.second ? a.second < b.second : a.index < b.index;
  });
  remembered_ -= list.items.size();
  list.items.clear();
  list.items.reserve(ranks_.size());
  for (const Ranked& rank : ranks_) list.items.push_back(unsorted_[static_cast<std::size_t>(rank.index)]);
  remembered_ += list.items.size();
  return list;
}

/// Forgets all lists when they take too much memory.
void Joiner::make_room() {
  if (remembered_ <= kMostRemembered) return;
  for (Lists* lists : {&y_lists_, &z_lists_}) {
    lists->made = {};
    for (auto& by_residence : lists->of) {
      for (List& list : by_residence) list = {};
    }
  }
  remembered_ = 0;
}

bool Joiner::fits(const Node& node, const std::array<Residence, 3>& residence, const Chain& y, const Chain& z,
                  unsigned wide) const {
  for (std::size_t l = 0; l < static_cast<std::size_t>(context_.machine.levels); ++l) {
    double bits = 0;
    for (std::size_t o = 0; o < 3; ++o) {
      if (l > 0 && ((residence[o] >> l) & 1U) == 0) continue;
      const lower::Operand& operand = context_.space.einsum.operands[o];
      const bool sums = operand.role == lower::Role::outputs && ((wide >> l) & 1U) != 0;
      bits += static_cast<double>(sums ? std::max(operand.bits, operand.partial_bits) : operand.bits) *
              node.tile[o][l] * (o != context_.space.y_owner ? y.held[l] : 1.0) *
              (o != context_.space.z_owner ? z.held[l] : 1.0);
    }
    if (bits > context_.machine.capacity[l]) return false;
  }
  return true;
}

void Joiner::open(const Node& node, const Score& least) {
  seen_.clear();
  begin(node);
  const SearchSpace& space = context_.space;
  const double steps = least_steps(node);
  const auto units = static_cast<double>(context_.machine.units());
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
          if (!fits(node, residence, kUnit, kUnit, x.wide)) continue;
          ++work_;
          if (improves(score(x + y + floor(node, order, rz, false), steps, units))) join(node, order, residence, x);
          if (exhausted()) {
            leave_open(least);
            return;
          }
        }
      }
    }
  }
}

namespace {

/// Whether a chain has loops in exactly those of the blocks `asked` that `moves` names.
bool moves_as_said(const Chain& chain, unsigned moves, unsigned asked) { return ((chain.moves ^ moves) & asked) == 0; }

/// Whether a chain has no loop in any block of the set.
bool obeys(const Chain& chain, unsigned still) { return (chain.moves & still) == 0; }

}  // namespace

Score Joiner::bound(const Load& x, const Price& y, const Price& z, double time) const {
  return scorer_(x.energy + y.energy + z.energy + context_.macs * context_.machine.mac_energy,
                 x.weights + y.weights + z.weights, time);
}

/// Groups the chains of z that fit beside the least of y; false when there are none.
bool Joiner::gather(const Node& node, const OrderCase& order, const std::array<Residence, 3>& residence, const Load& x,
                    const Price& least_y, const List& zs, double least) {
  const SearchMachine& m = context_.machine;
  for (Group& group : z_groups_) {
    group.items.clear();
    group.least = {kNever, kNever};
    for (auto& stairs : group.stairs) stairs.clear();
  }
  least_z_ = {kNever, kNever};
  bool any = false;
  for (const Item& z : zs.items) {
    ++work_;
    if (!improves(bound(x, least_y, from(zs.least, z.load), least))) break;
    if (node.copies * z.chain->copies > m.units() || !obeys(*z.chain, order.z_still)) continue;
    if (order.z_moves >= 0 && !moves_as_said(*z.chain, static_cast<unsigned>(order.z_moves), context_.z_blocks()))
      continue;
    if (!fits(node, residence, kUnit, *z.chain, x.wide | z.load.wide)) continue;
    Group& group = z_groups_[static_cast<std::size_t>(z.group)];
    group.least_steps = group.items.empty() ? z.chain->steps : std::min(group.least_steps, z.chain->steps);
    for (std::size_t l = 1; l < static_cast<std::size_t>(m.levels); ++l) {
      auto& stairs = group.stairs[l];
      if (stairs.empty() || z.chain->held[l] < stairs.back().held)
        stairs.push_back({z.chain->held[l], group.items.size()});
    }
    for (Price* price : {&group.least, &least_z_})
      *price = {std::min(price->energy, z.load.energy), std::min(price->weights, z.load.weights)};
    group.items.push_back(&z);
    any = true;
  }
  return any;
}

/// No item of the group before this place fits beside y.
std::size_t Joiner::first_fit(const Node& node, const std::array<Residence, 3>& residence, const Chain& y,
                              unsigned wide, std::size_t group) const {
  std::size_t first = 0;
  for (std::size_t l = 1; l < static_cast<std::size_t>(context_.machine.levels); ++l) {
    const double capacity = context_.machine.capacity[l];
    if (!(capacity < kNever)) continue;
    double fixed = 0;
    double per_z = 0;
    for (std::size_t o = 0; o < 3; ++o) {
      if (((residence[o] >> l) & 1U) == 0) continue;
      const lower::Operand& operand = context_.space.einsum.operands[o];
      const bool sums = operand.role == lower::Role::outputs && ((wide >> l) & 1U) != 0;
      const double bits = static_cast<double>(sums ? std::max(operand.bits, operand.partial_bits) : operand.bits) *
                          node.tile[o][l] * (o != context_.space.y_owner ? y.held[l] : 1.0);
      (o != context_.space.z_owner ? per_z : fixed) += bits;
    }
    constexpr double kRounding = 1e-12;  // `fits` adds in another order
    std::size_t at = z_groups_[group].items.size();
    for (const Group::Stair& stair : z_groups_[group].stairs[l]) {
      if (fixed + per_z * stair.held > capacity * (1 + kRounding)) continue;
      at = stair.at;
      break;
    }
    first = std::max(first, at);
  }
  return first;
}

void Joiner::join(const Node& node, const OrderCase& order, const std::array<Residence, 3>& residence, const Load& x) {
  const SearchMachine& m = context_.machine;
  make_room();
  const List& ys = list(node, order, residence[context_.space.y_owner], true);
  const List& zs = list(node, order, residence[context_.space.z_owner], false);
  const double least = cycles(x, least_steps(node), static_cast<double>(m.units()));
  if (ys.items.empty() || zs.items.empty() || !improves(bound(x, ys.least, zs.least, least))) return;
  if (!gather(node, order, residence, x, ys.least, zs, least)) return;
  for (const Item& y : ys.items) {
    ++work_;
    if (!improves(bound(x, from(ys.least, y.load), least_z_, least))) break;
    const std::int64_t copies_y = node.copies * y.chain->copies;
    if (copies_y > m.units() || beyond_axes(node, y.chain->copies, 1) || !obeys(*y.chain, order.y_still) ||
        !fits(node, residence, *y.chain, kUnit, x.wide | y.load.wide))
      continue;
    for (std::size_t g = 0; g < z_groups_.size() && copies_y * z_copies_[g] <= m.units(); ++g) {
      if (!z_groups_[g].items.empty() && !beyond_axes(node, y.chain->copies, z_copies_[g]))
        join_group({&node, order, residence, &y, nullptr}, x, g, least);
    }
    if (exhausted()) return;
  }
}

bool Joiner::beyond_axes(const Node& node, std::int64_t copies_y, std::int64_t copies_z) const {
  const SearchSpace& space = context_.space;
  const auto along = [&](std::uint32_t here, std::uint32_t other, std::int64_t copies) {
    return copies * (space.only_along(here, other, space.y) ? copies_y : 1) *
           (space.only_along(here, other, space.z) ? copies_z : 1);
  };
  return along(space.along_x, space.along_y, node.copies_x) > context_.machine.mesh_x ||
         along(space.along_y, space.along_x, node.copies_y) > context_.machine.mesh_y;
}

/// One chain of y with those of z that have the same number of copies.
void Joiner::join_group(const Leaf& leaf, const Load& x, std::size_t group, double least) {
  const SearchMachine& m = context_.machine;
  const Group& zs = z_groups_[group];
  const Node& node = *leaf.node;
  const Chain& y = *leaf.y->chain;
  const double steps = node.steps * y.steps;
  const double fastest = std::max(least, steps_to_cycles(steps * zs.least_steps));
  const Price price{leaf.y->load.energy, leaf.y->load.weights};
  ++work_;
  if (!improves(bound(x, price, zs.least, fastest))) return;
  const std::int64_t copies = node.copies * y.copies * z_copies_[group];
  bool placed = false;
  for (std::size_t i = first_fit(node, leaf.residence, y, x.wide | leaf.y->load.wide, group); i < zs.items.size();
       ++i) {
    const Item& z = *zs.items[i];
    ++work_;
    if (!improves(bound(x, price, from(zs.least, z.load), fastest))) break;
    if (!fits(node, leaf.residence, y, *z.chain, x.wide | leaf.y->load.wide | z.load.wide)) continue;
    const bool single = node.single && y.single && z.chain->single;
    if (single && !placed && !placeable(copies, m.mesh_x, m.mesh_y)) return;  // the others of the group are single too
    placed = placed || single;
    const Score exact = score(x + leaf.y->load + z.load, steps * z.chain->steps,
                              node.used * y.most_delivered * z.chain->most_delivered);
    if (improves(exact)) count({leaf.node, leaf.order, leaf.residence, leaf.y, &z}, exact);
  }
}

/// Where a loop stands among those whose order is given: free ones first, spatial ones last.
std::ptrdiff_t Joiner::place_of(std::size_t level, const Loop& loop) const {
  const std::vector<int>& order = context_.space.orders[level];
  if (loop.kind != LoopKind::temporal) return static_cast<std::ptrdiff_t>(order.size());
  const auto at = std::find(order.begin(), order.end(), loop.dim);
  return at == order.end() ? -1 : at - order.begin();
}

/// Spatial loops of the copies; false when the mesh has no place for them.
bool Joiner::lay_out(const std::vector<const Chain*>& chains, LevelNest& level) const {
  const SearchMachine& m = context_.machine;
  const SearchSpace& space = context_.space;
  const auto add = [&](std::size_t d, std::int64_t x, std::int64_t y) {
    if (x > 1) level.loops.push_back({static_cast<int>(d), x, LoopKind::spatial_x});
    if (y > 1) level.loops.push_back({static_cast<int>(d), y, LoopKind::spatial_y});
  };
  const auto all = (std::uint32_t{1} << chains.size()) - 1;
  if ((space.along_x & space.along_y & all) == all) {
    std::int64_t copies = 1;
    for (const Chain* chain : chains) copies *= chain->laid;
    std::int64_t across = std::min(copies, m.mesh_x);
    while (across > 0 && (copies % across != 0 || copies / across > m.mesh_y)) --across;
    if (across == 0) return false;
    for (std::size_t d = 0; d < chains.size(); ++d) {
      const std::int64_t x = std::gcd(chains[d]->laid, across);
      across /= x;
      add(d, x, chains[d]->laid / x);
    }
    return true;
  }
  const auto place = [&](auto&& self, std::size_t d, std::int64_t x, std::int64_t y) -> bool {
    if (d == chains.size()) return true;
    const std::int64_t laid = chains[d]->laid;
    for (std::int64_t across = std::min(laid, m.mesh_x / x); across >= 1; --across) {
      const std::int64_t down = laid / across;
      if (laid % across != 0 || down > m.mesh_y / y) continue;
      if ((across > 1 && ((space.along_x >> d) & 1U) == 0) || (down > 1 && ((space.along_y >> d) & 1U) == 0)) continue;
      const std::size_t before = level.loops.size();
      add(d, across, down);
      if (self(self, d + 1, x * across, y * down)) return true;
      level.loops.resize(before);
    }
    return false;
  };
  return place(place, 0, 1, 1);
}

std::optional<Mapping> Joiner::build(const Leaf& leaf) const {
  const SearchSpace& space = context_.space;
  const SearchMachine& m = context_.machine;
  Mapping mapping;
  mapping.levels.resize(static_cast<std::size_t>(m.levels));
  std::vector<const Chain*> chains(space.dims.size(), &kUnit);
  for (std::size_t i = 0; i < space.enumerated.size(); ++i) {
    const auto d = static_cast<std::size_t>(space.enumerated[i]);
    chains[d] = &space.dims[d].chains[static_cast<std::size_t>(leaf.node->chain[i])];
  }
  if (space.y >= 0) chains[static_cast<std::size_t>(space.y)] = leaf.y->chain;
  if (space.z >= 0) chains[static_cast<std::size_t>(space.z)] = leaf.z->chain;
  if (std::any_of(chains.begin(), chains.end(), [](const Chain* c) { return c->laid == 0; })) return std::nullopt;
  // Of each block the loops its owner does not use stand innermost.
  for (int block = 0; block + 1 < m.levels; ++block) {
    for (const bool innermost : {false, true}) {
      for (std::size_t d = 0; d < space.dims.size(); ++d) {
        const bool unused = ((space.dims[d].relevant >> leaf.order.owner[static_cast<std::size_t>(block)]) & 1U) == 0;
        const std::int64_t trips = chains[d]->trips(block, m.levels);
        if (trips > 1 && unused == innermost)
          mapping.levels[static_cast<std::size_t>(block)].loops.push_back({static_cast<int>(d), trips});
      }
    }
  }
  LevelNest& above = mapping.levels[static_cast<std::size_t>(m.levels - 2)];
  if (!lay_out(chains, above)) return std::nullopt;
  LevelNest& registers = mapping.levels.back();
  for (std::size_t d = 0; d < space.dims.size(); ++d) {
    const std::int64_t within = chains[d]->extent[static_cast<std::size_t>(m.levels - 1)];
    if (within > 1) registers.loops.push_back({static_cast<int>(d), within});
  }
  for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
    std::stable_sort(mapping.levels[l].loops.begin(), mapping.levels[l].loops.end(),
                     [&](const Loop& a, const Loop& b) { return place_of(l, a) < place_of(l, b); });
  }
  mapping.levels[0].keeps = 7;
  for (std::size_t l = 1; l < mapping.levels.size(); ++l) {
    for (std::size_t o = 0; o < 3; ++o) mapping.levels[l].keeps |= ((leaf.residence[o] >> l) & 1U) << o;
  }
  return mapping;
}

void Joiner::count_mapping(const Mapping& mapping, const Score& bound) {
  ++evaluated_;
  const Verdict verdict = evaluator_.evaluate(mapping, tally_);
  if (!verdict.ok()) {
    // Sums kept wide may be too large for the capacity after all; what cannot be counted stays open.
    if (verdict.fault == Fault::beyond_tile) return;
    uncounted_ = verdict;
    leave_open(bound);
    return;
  }
  double weights = 0;
  for (std::size_t o = 0; o < 3; ++o) {
    if (context_.space.einsum.operands[o].role != lower::Role::weights) continue;
    auto at = static_cast<std::size_t>(context_.machine.array - 1);
    while (at > 0 && !mapping.levels[at].keeps_operand(o)) --at;
    weights += static_cast<double>(tally_.levels[at][o].read_bits);
  }
  const Score reached =
      scorer_(energy_of(mapping, tally_, 3, rates_), weights, static_cast<double>(tally_.cycles_overlapped));
  if (found_ && !clearly_below(reached, best_)) return;
  found_ = true;
  best_ = reached;
  mapping_ = mapping;
}

void Joiner::count(const Leaf& leaf, const Score& bound) {
  if (exhausted()) return leave_open(bound);
  std::optional<Mapping> mapping = build(leaf);
  if (!leaf.node->single || !leaf.y->chain->single || !leaf.z->chain->single) {
    if (!(bound < unproved_)) ++tries_;
    leave_open(bound);
  }
  work_ += kCountWork;
  if (!mapping) return;
  const auto& orders = context_.space.orders;
  const bool any_order = std::any_of(orders.begin(), orders.end(), [](const auto& order) { return !order.empty(); });
  if (!context_.space.slides && (!any_order || context_.space.ordered_by_case)) return count_mapping(*mapping, bound);
  std::vector<int> key{leaf.y->index, leaf.z->index};
  for (const Residence r : leaf.residence) key.push_back(static_cast<int>(r));
  if (!seen_.insert(key).second) return;
  auto& loops = mapping->levels[static_cast<std::size_t>(context_.machine.levels - 2)].loops;
  const auto from = std::stable_partition(loops.begin(), loops.end(),
                                          [](const Loop& loop) { return loop.kind == LoopKind::temporal; });
  const std::vector<Loop> spatial(from, loops.end());
  loops.erase(from, loops.end());
  count_orders(*mapping, spatial, 0, bound);
}

/// Every order of every block from `block` inward.
void Joiner::count_orders(Mapping& mapping, const std::vector<Loop>& spatial, int block, const Score& bound) {
  if (block + 1 == context_.machine.levels) {
    if (exhausted()) return leave_open(bound);
    LevelNest& last = mapping.levels[static_cast<std::size_t>(block - 1)];
    last.loops.insert(last.loops.end(), spatial.begin(), spatial.end());
    count_mapping(mapping, bound);
    last.loops.resize(last.loops.size() - spatial.size());
    return;
  }
  const auto by_dim = [](const Loop& a, const Loop& b) { return a.dim < b.dim; };
  auto& loops = mapping.levels[static_cast<std::size_t>(block)].loops;
  const auto named = std::stable_partition(loops.begin(), loops.end(), [&](const Loop& loop) {
    return place_of(static_cast<std::size_t>(block), loop) < 0;
  });
  std::sort(loops.begin(), named, by_dim);
  do count_orders(mapping, spatial, block + 1, bound);
  while (std::next_permutation(loops.begin(), named, by_dim));
}

}  // namespace plumbline::schedule
