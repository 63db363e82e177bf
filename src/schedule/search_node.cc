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

/// Sums over the windows of the sliding operand.
void add_windows(SearchContext& context, Node& node) {
  const SearchSpace& space = context.space;
  const int levels = context.machine.levels;
  const Projection& projection = context.projections[space.y_owner];
  std::vector<WindowLoop> outer, inner;
  std::vector<std::int64_t> key;
  Sizes registers = ones(), spatial = ones(), between = ones();  // flat dimensions are counted apart, as factors
  for (std::size_t i = 0; i < space.enumerated.size(); ++i) {
    const auto d = static_cast<std::size_t>(space.enumerated[i]);
    const SearchDim& dim = space.dims[d];
    const Chain& c = dim.chains[static_cast<std::size_t>(node.chain[i])];
    if (((dim.relevant >> space.y_owner) & 1U) == 0) continue;
    const std::int64_t inner_trips = c.trips(levels - 2, levels);
    if (!dim.window) {
      node.flat *= static_cast<double>(dim.size);
      node.flat_inner *= static_cast<double>(inner_trips);
      node.points *= static_cast<double>(c.copies);
      continue;
    }
    const std::int64_t outer_trips = levels == 3 ? c.trips(0, levels) : 1;
    outer.push_back({static_cast<int>(d), outer_trips});
    inner.push_back({static_cast<int>(d), inner_trips});
    node.windows_outer *= static_cast<double>(outer_trips);
    node.windows_inner *= static_cast<double>(inner_trips);
    registers[d] = c.extent[static_cast<std::size_t>(levels - 1)];
    spatial[d] = c.copies;
    between[d] = c.extent[static_cast<std::size_t>(levels - 2)];
    key.push_back(between[d]);
  }
  const auto [at, fresh] = context.outer_sweeps.try_emplace(key);
  if (fresh) at->second = window_sweeps(space, projection, outer, between, ones());
  node.outer = &at->second;
  node.inner = window_sweeps(space, projection, inner, registers, spatial);
  if (node.windows_inner == 1) node.direct = window_sweeps(space, projection, outer, registers, spatial);
  node.points *= window_points(space, projection, registers, spatial);
}

/// One enumerated dimension into the products of the node.
void add_dim(const SearchContext& context, const SearchDim& dim, const Chain& c, Node& node) {
  const int levels = context.machine.levels;
  node.copies *= c.copies;
  node.steps *= c.steps;
  node.used *= c.delivered[0];
  for (std::size_t o = 0; o < 3; ++o) {
    if (((dim.relevant >> o) & 1U) != 0) {
      for (int b = 0; b + 1 < levels; ++b) {
        if (c.trips(b, levels) > 1) node.still_for[o] &= ~(1U << b);
      }
      if (dim.window && context.space.slides && o == context.space.y_owner) continue;
      for (std::size_t l = 0; l < static_cast<std::size_t>(levels); ++l) {
        node.tile[o][l] *= static_cast<double>(std::min(c.extent[l], dim.size));
      }
      continue;
    }
    node.unused_steps[o] *= c.steps;
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
  }
  if (!space.slides) return true;
  if (!placeable(node.copies, context.machine.mesh_x, context.machine.mesh_y)) return false;
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
    for (const int moves : {0, 1}) {
      if (moves == 1 && (context.z() == nullptr || ((order.z_still >> (blocks - 1)) & 1U) != 0)) continue;
      order.z_moves = moves;
      cases.push_back(order);
    }
    return;
  }
  const auto b = static_cast<std::size_t>(block);
  for (std::uint8_t owner = 0; owner < 3; ++owner) {
    OrderCase next = order;
    next.owner[b] = owner;
    add_cases(context, node, next, block + 1, cases);
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
  c.copies = node.delivered[operand][0] * unused.delivered[0];
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

/// Lower bounds on the sliding operand's words under an order case: of the cheapest orders, and of each kind apart.
bool slide(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence, const Chain& y,
           SlidingWords& out, SlidingWords& fewest) {
  const SearchSpace& space = context.space;
  const SearchMachine& machine = context.machine;
  const auto last = static_cast<std::size_t>(machine.levels - 1);
  const bool between = machine.levels == 3;
  const double y_outer = y.visits[last - 1];
  const double y_inner = y.visits[last] / y.visits[last - 1];
  // Every index of the flat dimensions is met once a sweep.
  const double flat = node.flat * (context.z() == nullptr ? 1.0 : static_cast<double>(context.z()->size));
  const bool first_outer = !between || order.owner[0] == space.y_owner;
  const bool first_inner = order.owner[last - 1] == space.y_owner;
  Sweep at;
  if (between && (residence & 2U) != 0) {
    cheapest(first_outer ? node.outer->alone : node.outer->mixed, first_outer ? 1 : y_outer, 1, 0, at);
    out.into[1] = fewest.into[1] = flat * at.merged;
  }
  // z's copies read different words, so they cancel against their fewer steps.
  out.to_macs = fewest.to_macs = context.macs / static_cast<double>(node.copies * y.copies) * node.points;
  if (((residence >> last) & 1U) == 0) return true;
  const std::size_t parent = between && (residence & 2U) != 0 ? 1 : 0;
  const double merged_price = machine.read_energy[parent] + 1e-30;  // never quite free, so that ties are settled
  const double delivered_price = machine.write_energy[last] * static_cast<double>(y.copies) + 1e-30;
  const bool flat_moves = node.flat_inner > 1 || order.z_moves == 1;
  if (node.windows_inner == 1 && flat_moves) {
    const double repeats = node.windows_outer * y_outer * (first_inner ? 1 : y_inner);
    at = {node.inner.still.merged * repeats, node.inner.still.delivered * repeats, 0, 0};
    at.merged_again = at.merged;
    at.delivered_again = at.delivered;
  } else if (node.windows_inner == 1) {
    if (!first_inner && y_inner > 1) return false;  // the innermost loop would be y's after all
    cheapest(first_outer ? node.direct.alone : node.direct.mixed, first_outer ? 1 : y_outer, merged_price,
             delivered_price, at);
  } else {
    cheapest(first_inner ? node.inner.alone : node.inner.mixed, first_inner ? 1 : y_inner, merged_price,
             delivered_price, at);
    const double sweeps = node.windows_outer * y_outer;
    // Where no flat loop of the inner block moves, a sweep may begin on words the last one left.
    const Sweep kept = flat_moves ? Sweep{} : node.inner.still;
    at = {sweeps * (at.merged - kept.merged) + kept.merged, sweeps * (at.delivered - kept.delivered) + kept.delivered,
          sweeps * (at.merged_again - kept.merged) + kept.merged,
          sweeps * (at.delivered_again - kept.delivered) + kept.delivered};
  }
  out.into[last] = flat * at.merged;
  out.delivered = flat * at.delivered * static_cast<double>(y.copies);
  fewest.into[last] = flat * at.merged_again;
  fewest.delivered = flat * at.delivered_again * static_cast<double>(y.copies);
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
