#include "schedule/search_node.h"

#include <algorithm>
#include <limits>

namespace plumbline::schedule {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Words along the windows of a tile with the given extents.
double window_tile(const Projection& projection, const Sizes& extent) {
  double words = 1;
  for (int w = 0; w < projection.windows; ++w) {
    words *= static_cast<double>(axis_elements(projection.axes[static_cast<std::size_t>(w)], extent));
  }
  return words;
}

Sizes ones() {
  Sizes sizes;
  sizes.fill(1);
  return sizes;
}

/// Sweeps of the sliding operand's tiles of one level under one block.
const Sweeps& find_sweeps(SearchContext& context, const Node& node, int level, int block) {
  const SearchSpace& space = context.space;
  const int levels = context.machine.levels;
  std::vector<WindowLoop> loops;
  std::vector<std::int64_t> key;
  Sizes tile = ones(), spatial = ones();  // flat dimensions are counted apart, as factors
  for (std::size_t i = 0; i < space.enumerated.size(); ++i) {
    const auto d = static_cast<std::size_t>(space.enumerated[i]);
    const SearchDim& dim = space.dims[d];
    const Chain& c = dim.chains[static_cast<std::size_t>(node.chain[i])];
    if (((dim.relevant >> space.y_owner) & 1U) == 0 || !dim.window) continue;
    loops.push_back({static_cast<int>(d), block < 0 ? 1 : c.trips(block, levels)});
    tile[d] = c.extent[static_cast<std::size_t>(level)];
    if (level + 1 == levels) spatial[d] = c.copies;
    key.insert(key.end(), {loops.back().trips, tile[d], spatial[d]});
  }
  const auto [at, fresh] = context.sweeps.try_emplace(key);
  if (fresh) at->second = window_sweeps(space, context.projections[space.y_owner], loops, tile, spatial);
  return at->second;
}

/// Sums over the windows of the sliding operand.
void add_windows(SearchContext& context, Node& node) {
  const SearchSpace& space = context.space;
  const int levels = context.machine.levels;
  Sizes registers = ones(), spatial = ones();
  for (std::size_t i = 0; i < space.enumerated.size(); ++i) {
    const auto d = static_cast<std::size_t>(space.enumerated[i]);
    const SearchDim& dim = space.dims[d];
    const Chain& c = dim.chains[static_cast<std::size_t>(node.chain[i])];
    if (((dim.relevant >> space.y_owner) & 1U) == 0) continue;
    PerLevel& trips = dim.window ? node.window_trips : node.flat_trips;
    for (int b = 0; b + 1 < levels; ++b) trips[static_cast<std::size_t>(b)] *= static_cast<double>(c.trips(b, levels));
    if (dim.window) {
      registers[d] = c.extent[static_cast<std::size_t>(levels - 1)];
      spatial[d] = c.copies;
    } else {
      node.flat *= static_cast<double>(dim.size);
      node.points *= static_cast<double>(c.copies);
    }
  }
  for (int l = 1; l < levels; ++l) {
    Node::Slide& slide = node.slides[static_cast<std::size_t>(l)];
    slide.block = l - 1;
    while (slide.block >= 0 && node.window_trips[static_cast<std::size_t>(slide.block)] == 1) --slide.block;
    slide.sweeps = &find_sweeps(context, node, l, slide.block);
  }
  node.points *= window_points(space, context.projections[space.y_owner], registers, spatial);
}

/// One enumerated dimension into the products of the node.
void add_dim(const SearchContext& context, const SearchDim& dim, const Chain& c, Node& node) {
  const int levels = context.machine.levels;
  node.copies *= c.copies;
  node.steps *= c.steps;
  node.used *= c.most_delivered;
  node.single = node.single && c.single;
  for (std::size_t o = 0; o < 3; ++o) {
    if (((dim.relevant >> o) & 1U) != 0) {
      node.still_for[o] &= ~static_cast<unsigned>(c.moves);
      if (dim.window && context.space.slides && o == context.space.y_owner) continue;
      for (std::size_t l = 0; l < static_cast<std::size_t>(levels); ++l) {
        node.tile[o][l] *= c.held[l];
      }
      continue;
    }
    node.unused_steps[o] *= c.steps;
    node.most_delivered[o] *= c.most_delivered;
    for (std::size_t l = 0; l < static_cast<std::size_t>(levels); ++l) {
      node.visits[o][l] *= c.visits[l];
      node.delivered[o][l] *= c.delivered[l];
    }
  }
}

}  // namespace

int OrderCase::reach(std::size_t operand, int level) const {
  int at = level;
  while (at > 0 && owner[static_cast<std::size_t>(at - 1)] == operand) {
    --at;
    if (!through[static_cast<std::size_t>(at)]) break;
  }
  return at;
}

bool placeable(std::int64_t copies, std::int64_t mesh_x, std::int64_t mesh_y) {
  if (copies > mesh_x * mesh_y) return false;
  for (std::int64_t x = std::min(copies, mesh_x); x >= 1; --x) {
    if (copies % x == 0 && copies / x <= mesh_y) return true;
  }
  return false;
}

bool make_node(SearchContext& context, std::vector<int> chain, Node& node) {
  constexpr std::size_t kMostSweeps = 300'000;  // remembered; nodes point into them only while they are looked at
  if (context.sweeps.size() > kMostSweeps) context.sweeps.clear();
  const SearchSpace& space = context.space;
  node = {};
  node.chain = std::move(chain);
  for (std::size_t o = 0; o < 3; ++o) {
    node.still_for[o] = ~0U;
    node.visits[o].fill(1);
    node.delivered[o].fill(1);
    node.tile[o].fill(1);
  }
  for (std::size_t i = 0; i < space.enumerated.size(); ++i) {
    const SearchDim& dim = space.dims[static_cast<std::size_t>(space.enumerated[i])];
    const Chain& c = dim.chains[static_cast<std::size_t>(node.chain[i])];
    if (node.copies * c.copies > context.machine.units()) return false;
    add_dim(context, dim, c, node);
    const int d = space.enumerated[i];
    node.copies_x *= space.only_along(space.along_x, space.along_y, d) ? c.copies : 1;
    node.copies_y *= space.only_along(space.along_y, space.along_x, d) ? c.copies : 1;
    if (node.copies_x > context.machine.mesh_x || node.copies_y > context.machine.mesh_y) return false;
  }
  if (!space.slides) return true;
  if (node.single && !placeable(node.copies, context.machine.mesh_x, context.machine.mesh_y)) return false;
  const Projection& projection = context.projections[space.y_owner];
  for (std::size_t l = 0; l < static_cast<std::size_t>(context.machine.levels); ++l) {
    Sizes extent = ones();
    for (std::size_t i = 0; i < space.enumerated.size(); ++i) {
      const auto d = static_cast<std::size_t>(space.enumerated[i]);
      extent[d] = space.dims[d].chains[static_cast<std::size_t>(node.chain[i])].extent[l];
    }
    node.tile[space.y_owner][l] *= window_tile(projection, extent);
  }
  add_windows(context, node);
  return true;
}

namespace {

/// A case in which the owner's unused loop stands innermost in a block, under the order its level is to have: where a
/// used loop stands inside it, not both may move.
std::vector<OrderCase> obey_order(const SearchContext& context, const Node& node, OrderCase order, int block) {
  const SearchSpace& space = context.space;
  const std::vector<int>& wanted = space.orders[static_cast<std::size_t>(block)];
  if (wanted.empty() || !space.ordered_by_case) return {order};
  const std::size_t owner = order.owner[static_cast<std::size_t>(block)];
  const unsigned bit = 1U << block;
  int unused = -1;
  for (std::size_t d = 0; d < space.dims.size(); ++d) {
    if (((space.dims[d].relevant >> owner) & 1U) == 0) unused = static_cast<int>(d);
  }
  if (unused < 0) return {order};
  const auto moves = [&](int d) {  // of the enumerated ones
    for (std::size_t i = 0; i < space.enumerated.size(); ++i) {
      if (space.enumerated[i] != d) continue;
      const SearchDim& dim = space.dims[static_cast<std::size_t>(d)];
      return (dim.chains[static_cast<std::size_t>(node.chain[i])].moves & bit) != 0;
    }
    return false;
  };
  const bool open = unused == space.y || unused == space.z;
  if (!open && !moves(unused)) return {order};
  unsigned& still = unused == space.y ? order.y_still : order.z_still;
  auto inner = std::find(wanted.begin(), wanted.end(), unused);
  inner = inner == wanted.end() ? wanted.begin() : inner + 1;
  bool other = false;  // of y and z the other one stands inside, and both may move
  for (; inner != wanted.end(); ++inner) {
    if (*inner == space.y || *inner == space.z) {
      if (!open) {
        (*inner == space.y ? order.y_still : order.z_still) |= bit;
      } else {
        other = true;
      }
    } else if (moves(*inner)) {
      if (!open) return {};
      still |= bit;
    }
  }
  if (!other || (still & bit) != 0) return {order};
  OrderCase inside = order;
  (unused == space.y ? inside.z_still : inside.y_still) |= bit;
  still |= bit;
  return {order, inside};
}

/// All of `through` for given owners: a block can be passed through only by its owner into a block of the same owner.
void add_cases(const SearchContext& context, const Node& node, OrderCase order, int block,
               std::vector<OrderCase>& cases) {
  const int blocks = context.machine.levels - 1;
  const SearchSpace& space = context.space;
  if (block == blocks) {
    if (!space.slides) {
      cases.push_back(order);
      return;
    }
    // Every answer to where z moves that the case allows.
    const unsigned free = context.z() == nullptr ? 0U : context.z_blocks() & ~order.z_still;
    for (unsigned moves = free;; moves = (moves - 1) & free) {
      order.z_moves = static_cast<int>(moves);
      cases.push_back(order);
      if (moves == 0) break;
    }
    return;
  }
  const auto b = static_cast<std::size_t>(block);
  for (std::uint8_t owner = 0; owner < 3; ++owner) {
    OrderCase next = order;
    next.owner[b] = owner;
    for (const OrderCase& each : obey_order(context, node, next, block))
      add_cases(context, node, each, block + 1, cases);
    if (block == 0 || order.owner[b - 1] != owner || ((node.still_for[owner] >> block) & 1U) == 0) continue;
    if (space.slides && owner == space.y_owner) continue;  // told by z_moves
    next.through[b] = true;
    if (owner != space.y_owner) next.y_still |= 1U << block;
    if (owner != space.z_owner) next.z_still |= 1U << block;
    add_cases(context, node, next, block + 1, cases);
  }
}

const Chain kUnit{};

Crossing cross(const SearchContext& context, const Node& node, const OrderCase& order, std::size_t operand,
               const Chain& unused) {
  const int last = context.machine.levels - 1;
  Crossing c;
  for (int l = 1; l <= last; ++l) {
    const auto at = static_cast<std::size_t>(order.reach(operand, l));
    c.into[static_cast<std::size_t>(l)] = node.visits[operand][at] * unused.visits[at];
    c.delivered = node.delivered[operand][at] * unused.delivered[at];
  }
  c.copies = node.most_delivered[operand] * unused.most_delivered;
  c.spread = node.delivered[operand][0] * unused.delivered[0] > 1;
  c.steps = node.unused_steps[operand] * unused.steps;
  return c;
}

/// The cheapest order's words in `at`; the fewest of either kind over all orders in its `_again` fields.
void cheapest(const std::vector<Sweep>& sweeps, double repeats, double merged_price, double delivered_price,
              Sweep& at) {
  double best = kNever;
  double fewest_merged = kNever;
  double fewest_delivered = kNever;
  for (const Sweep& each : sweeps) {
    const double merged = each.merged + (repeats - 1) * each.merged_again;
    const double delivered = each.delivered + (repeats - 1) * each.delivered_again;
    const double price = merged * merged_price + delivered * delivered_price;
    fewest_merged = std::min(fewest_merged, merged);
    fewest_delivered = std::min(fewest_delivered, delivered);
    if (price < best) best = price, at = {merged, delivered, 0, 0};
  }
  at.merged_again = fewest_merged;
  at.delivered_again = fewest_delivered;
}

/// What the sliding operand's lower bounds depend on, by block.
struct Blocks {
  const SearchContext& context;
  const Node& node;
  const OrderCase& order;
  const Chain& y;

  [[nodiscard]] bool first(int b) const { return order.owner[static_cast<std::size_t>(b)] == context.space.y_owner; }
  [[nodiscard]] double y_trips(int b) const { return static_cast<double>(y.trips(b, context.machine.levels)); }
  [[nodiscard]] bool flat_moves(int b) const {
    return node.flat_trips[static_cast<std::size_t>(b)] > 1 || ((order.z_moves >> b) & 1) != 0;
  }
  /// Trips over windows and y of all blocks outside b.
  [[nodiscard]] double outside(int b) const {
    double trips = 1;
    for (int a = 0; a < b; ++a) trips *= node.window_trips[static_cast<std::size_t>(a)] * y_trips(a);
    return trips;
  }
};

/// Words of tiles of `level` while the flat dimensions are passed once: lower bounds as in `cheapest`. False when the
/// case cannot be.
bool slide_into(const Blocks& blocks, int level, double merged_price, double delivered_price, Sweep& at) {
  const Node::Slide& slide = blocks.node.slides[static_cast<std::size_t>(level)];
  const Sweep& still = slide.sweeps->still;
  double repeats = 1;
  for (int b = level - 1; b > slide.block; --b) {
    const bool said = ((blocks.context.z_blocks() >> b) & 1U) != 0;
    if (!said || blocks.flat_moves(b)) {
      // A flat loop moves in b, or b is the outermost block: every step meets a whole new tile.
      repeats = blocks.outside(b) * (blocks.first(b) ? 1 : blocks.y_trips(b));
      at = {still.merged * repeats, still.delivered * repeats, still.merged * repeats, still.delivered * repeats};
      return true;
    }
    if (!blocks.first(b) && blocks.y_trips(b) > 1) return false;  // the innermost loop would be y's after all
  }
  if (slide.block < 0) {
    at = {still.merged, still.delivered, still.merged, still.delivered};
    return true;
  }
  const bool first = blocks.first(slide.block);
  cheapest(first ? slide.sweeps->alone : slide.sweeps->mixed, first ? 1 : blocks.y_trips(slide.block), merged_price,
           delivered_price, at);
  const double sweeps = blocks.outside(slide.block);
  // Where no flat loop of the block moves, a sweep may begin on words the last one left.
  const Sweep kept = blocks.flat_moves(slide.block) ? Sweep{} : still;
  at = {sweeps * (at.merged - kept.merged) + kept.merged, sweeps * (at.delivered - kept.delivered) + kept.delivered,
        sweeps * (at.merged_again - kept.merged) + kept.merged,
        sweeps * (at.delivered_again - kept.delivered) + kept.delivered};
  return true;
}

/// Lower bounds on the sliding operand's words under an order case: of the cheapest orders, and of each kind apart.
bool slide(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence, const Chain& y,
           SlidingWords& out, SlidingWords& fewest) {
  const SearchMachine& machine = context.machine;
  const int last = machine.levels - 1;
  // Every index of the flat dimensions is met once a sweep.
  const double flat = node.flat * (context.z() == nullptr ? 1.0 : static_cast<double>(context.z()->size));
  const Blocks blocks{context, node, order, y};
  // z's copies read different words, so they cancel against their fewer steps.
  out.to_macs = fewest.to_macs = context.macs / static_cast<double>(node.copies * y.copies) * node.points;
  constexpr double kNearlyFree = 1e-30;  // never quite free, so that ties are settled
  std::size_t parent = 0;
  for (int l = 1; l <= last; ++l) {
    const auto level = static_cast<std::size_t>(l);
    if (((residence >> l) & 1U) == 0) continue;
    const double receivers = l == last ? static_cast<double>(y.copies) : 1;
    const double merged_price =
        machine.read_energy[parent] + (l == last ? 0 : machine.write_energy[level]) + kNearlyFree;
    const double delivered_price = l == last ? machine.write_energy[level] * receivers + kNearlyFree : 0;
    Sweep at;
    if (!slide_into(blocks, l, merged_price, delivered_price, at)) return false;
    out.into[level] = flat * at.merged;
    fewest.into[level] = flat * at.merged_again;
    if (l == last) {
      out.delivered = flat * at.delivered * receivers;
      fewest.delivered = flat * at.delivered_again * receivers;
    }
    parent = level;
  }
  return true;
}

}  // namespace

std::vector<OrderCase> order_cases(const SearchContext& context, const Node& node) {
  std::vector<OrderCase> cases;
  add_cases(context, node, {}, 0, cases);
  return cases;
}

Load x_load(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence) {
  const std::size_t o = context.space.x_owner;
  return flat_load(context.machine, context.space.einsum.operands[o], residence, context.words[o], context.macs,
                   cross(context, node, order, o, kUnit));
}

Load y_load(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence,
            const Chain& y) {
  const std::size_t o = context.space.y_owner;
  const lower::Operand& operand = context.space.einsum.operands[o];
  if (context.space.slides) {
    SlidingWords words, fewest;
    if (slide(context, node, order, residence, y, words, fewest)) {
      Load load = sliding_load(context.machine, operand, residence, context.macs, fewest);
      load.energy = sliding_load(context.machine, operand, residence, context.macs, words).energy;
      return load;
    }
    Load never;
    never.energy = never.weights = kNever;
    return never;
  }
  return flat_load(context.machine, operand, residence, context.words[o], context.macs,
                   cross(context, node, order, o, y));
}

Load z_load(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence,
            const Chain& z) {
  const std::size_t o = context.space.z_owner;
  return flat_load(context.machine, context.space.einsum.operands[o], residence, context.words[o], context.macs,
                   cross(context, node, order, o, z));
}

}  // namespace plumbline::schedule
