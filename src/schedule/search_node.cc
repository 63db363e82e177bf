#include "schedule/search_node.h"

#include <algorithm>
#include <limits>

namespace plumbline::schedule {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Words along the windows of a tile with the given extents.
double window_tile(const Projection& projection, const std::array<std::int64_t, lower::kMaxDims>& extent) {
  double words = 1;
  for (int w = 0; w < projection.windows; ++w) {
    words *= static_cast<double>(axis_elements(projection.axes[static_cast<std::size_t>(w)], extent));
  }
  return words;
}

struct Extents {
  std::array<std::int64_t, lower::kMaxDims> registers, spatial, buffer;
  Extents() {
    registers.fill(1);
    spatial.fill(1);
    buffer.fill(1);
  }
};

/// Sums over the windows of the sliding operand.
void add_windows(SearchContext& context, const Extents& extents, Node& node) {
  const SearchSpace& space = context.space;
  const Projection& projection = context.projections[space.y_owner];
  std::vector<WindowLoop> outer, inner;
  std::vector<std::int64_t> key;
  std::array<std::int64_t, lower::kMaxDims> none;
  none.fill(1);
  Extents windows;  // flat dimensions are counted apart, as factors
  for (std::size_t i = 0; i < space.enumerated.size(); ++i) {
    const auto d = static_cast<std::size_t>(space.enumerated[i]);
    const SearchDim& dim = space.dims[d];
    const Chain& c = dim.chains[static_cast<std::size_t>(node.chain[i])];
    if (((dim.relevant >> space.y_owner) & 1U) == 0) continue;
    if (!dim.window) {
      node.flat *= static_cast<double>(dim.size);
      node.flat_outer *= static_cast<double>(dim.size / c.t);
      node.flat_inner *= static_cast<double>(c.t / c.u);
      node.points *= static_cast<double>(c.s);
      continue;
    }
    outer.push_back({static_cast<int>(d), dim.size / c.t});
    inner.push_back({static_cast<int>(d), c.t / c.u});
    node.windows_outer *= static_cast<double>(dim.size / c.t);
    node.windows_inner *= static_cast<double>(c.t / c.u);
    key.push_back(c.t);
    windows.registers[d] = extents.registers[d];
    windows.spatial[d] = extents.spatial[d];
    windows.buffer[d] = extents.buffer[d];
  }
  const auto [at, fresh] = context.buffer_sweeps.try_emplace(key);
  if (fresh) at->second = window_sweeps(space, projection, outer, windows.buffer, none);
  node.off_chip = &at->second;
  node.buffer = window_sweeps(space, projection, inner, windows.registers, windows.spatial);
  if (node.windows_inner == 1)
    node.direct = window_sweeps(space, projection, outer, windows.registers, windows.spatial);
  node.points *= window_points(space, projection, windows.registers, windows.spatial);
}

}  // namespace

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
  Extents extents;
  for (std::size_t i = 0; i < space.enumerated.size(); ++i) {
    const auto d = static_cast<std::size_t>(space.enumerated[i]);
    const SearchDim& dim = space.dims[d];
    const Chain& c = dim.chains[static_cast<std::size_t>(node.chain[i])];
    node.copies *= c.s;
    if (node.copies > context.machine.mesh_x * context.machine.mesh_y) return false;
    extents.registers[d] = c.r;
    extents.spatial[d] = c.s;
    extents.buffer[d] = c.t;
    const bool still = c.t == c.u;
    node.still = node.still && still;
    for (std::size_t o = 0; o < 3; ++o) {
      if (((dim.relevant >> o) & 1U) != 0) {
        node.still_for[o] = node.still_for[o] && still;
        if (dim.window && space.slides && o == space.y_owner) continue;
        node.buffer_words[o] *= static_cast<double>(c.t);
        node.register_words[o] *= static_cast<double>(c.r);
      } else {
        node.size[o] *= static_cast<double>(dim.size);
        node.tile[o] *= static_cast<double>(c.t);
        node.array[o] *= static_cast<double>(c.u);
        node.spread[o] *= static_cast<double>(c.s);
      }
    }
  }
  if (!placeable(node.copies, context.machine.mesh_x, context.machine.mesh_y)) return false;
  if (space.slides) {
    const Projection& projection = context.projections[space.y_owner];
    node.buffer_words[space.y_owner] *= window_tile(projection, extents.buffer);
    node.register_words[space.y_owner] *= window_tile(projection, extents.registers);
    add_windows(context, extents, node);
  }
  return true;
}

std::vector<OrderCase> order_cases(const SearchContext& context, const Node& node) {
  const SearchSpace& space = context.space;
  std::vector<OrderCase> cases;
  for (std::size_t off_chip = 0; off_chip < 3; ++off_chip) {
    if (!context.machine.buffered && off_chip != 0) continue;  // the off-chip block is empty
    for (std::size_t buffer = 0; buffer < 3; ++buffer) {
      OrderCase plain{off_chip, buffer, false, false, -1};
      if (space.slides) {
        for (const int z_still : {0, 1}) {
          plain.z_still = z_still;
          if (context.z() == nullptr && z_still == 0) continue;
          cases.push_back(plain);
        }
      } else {
        cases.push_back(plain);
      }
      if (off_chip != buffer || !node.still_for[buffer]) continue;
      if (space.slides && buffer == space.y_owner) continue;  // told by z_still
      OrderCase through{off_chip, buffer, true, buffer != space.y_owner, buffer != space.z_owner ? 1 : -1};
      if (!space.slides) {
        cases.push_back(through);
        continue;
      }
      for (const int z_still : {0, 1}) {
        if (through.z_still == 1 && z_still == 0) continue;
        if (context.z() == nullptr && z_still == 0) continue;
        OrderCase split = through;
        split.z_still = z_still;
        cases.push_back(split);
      }
    }
  }
  return cases;
}

namespace {

/// `size`, `tile`, `array`, `spread`: of the dimensions the operand does not use.
Crossing cross(const OrderCase& order, std::size_t operand, double size, double tile, double array, double spread) {
  Crossing c;
  c.copies = spread;
  c.buffer = order.off_chip == operand ? 1 : size / tile;
  c.registers = order.buffer != operand ? size / array : order.through ? 1 : size / tile;
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
  const double size_y = context.y() == nullptr ? 1 : static_cast<double>(context.y()->size);
  const double size_z = context.z() == nullptr ? 1 : static_cast<double>(context.z()->size);
  const double y_outer = size_y / static_cast<double>(y.t);
  const double y_inner = static_cast<double>(y.t / y.u);
  const double flat = node.flat * size_z;  // every index of the flat dimensions is met once a sweep
  const bool first_off_chip = order.off_chip == space.y_owner;
  const bool first_buffer = order.buffer == space.y_owner;
  Sweep at;
  if ((residence & 1U) != 0) {
    const double repeats = first_off_chip ? 1 : y_outer;
    cheapest(first_off_chip ? node.off_chip->alone : node.off_chip->mixed, repeats, 1, 0, at);
    out.into_buffer = fewest.into_buffer = flat * at.merged;
  }
  const double temporal = context.macs / static_cast<double>(node.copies * y.s);  // z's copies cancel against its words
  out.to_macs = fewest.to_macs = temporal * node.points;
  if ((residence & 2U) == 0) return true;
  const std::size_t parent = (residence & 1U) != 0 ? 1 : 0;
  const double merged_price = machine.read_energy[parent] + 1e-30;
  const double delivered_price = machine.write_energy[2] * static_cast<double>(y.s) + 1e-30;
  const bool flat_moves = node.flat_inner > 1 || order.z_still == 0;
  if (node.windows_inner == 1 && flat_moves) {
    const double repeats = node.windows_outer * y_outer * (first_buffer ? 1 : y_inner);
    at = {node.buffer.still.merged * repeats, node.buffer.still.delivered * repeats, 0, 0};
    at.merged_again = at.merged;
    at.delivered_again = at.delivered;
  } else if (node.windows_inner == 1) {
    if (!first_buffer && y_inner > 1) return false;  // the innermost loop would be y's after all
    cheapest(first_off_chip ? node.direct.alone : node.direct.mixed, first_off_chip ? 1 : y_outer, merged_price,
             delivered_price, at);
  } else {
    cheapest(first_buffer ? node.buffer.alone : node.buffer.mixed, first_buffer ? 1 : y_inner, merged_price,
             delivered_price, at);
    const double sweeps = node.windows_outer * y_outer;
    // Where no flat loop of the buffer moves, a sweep may begin on words the last one left.
    const Sweep kept = flat_moves ? Sweep{} : node.buffer.still;
    at = {sweeps * (at.merged - kept.merged) + kept.merged, sweeps * (at.delivered - kept.delivered) + kept.delivered,
          sweeps * (at.merged_again - kept.merged) + kept.merged,
          sweeps * (at.delivered_again - kept.delivered) + kept.delivered};
  }
  out.merged = flat * at.merged;
  out.delivered = flat * at.delivered * static_cast<double>(y.s);
  fewest.merged = flat * at.merged_again;
  fewest.delivered = flat * at.delivered_again * static_cast<double>(y.s);
  return true;
}

}  // namespace

Load x_load(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence) {
  const std::size_t o = context.space.x_owner;
  return flat_load(context.machine, context.space.einsum.operands[o], residence, context.words[o], context.macs,
                   cross(order, o, node.size[o], node.tile[o], node.array[o], node.spread[o]));
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
  const double size = context.y() == nullptr ? 1 : static_cast<double>(context.y()->size);
  return flat_load(context.machine, operand, residence, context.words[o], context.macs,
                   cross(order, o, node.size[o] * size, node.tile[o] * static_cast<double>(y.t),
                         node.array[o] * static_cast<double>(y.u), node.spread[o] * static_cast<double>(y.s)));
}

Load z_load(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence,
            const Chain& z) {
  const std::size_t o = context.space.z_owner;
  const double size = context.z() == nullptr ? 1 : static_cast<double>(context.z()->size);
  return flat_load(context.machine, context.space.einsum.operands[o], residence, context.words[o], context.macs,
                   cross(order, o, node.size[o] * size, node.tile[o] * static_cast<double>(z.t),
                         node.array[o] * static_cast<double>(z.u), node.spread[o] * static_cast<double>(z.s)));
}

}  // namespace plumbline::schedule
