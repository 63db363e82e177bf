#include "schedule/search_costs.h"

#include <algorithm>

namespace plumbline::schedule {
namespace {

/// Words by level, before widths.
struct Words {
  PerLevel read{};
  PerLevel written{};
};

bool kept(Residence residence, std::size_t level) { return ((residence >> level) & 1U) != 0; }

Load price(const SearchMachine& machine, const lower::Operand& operand, Residence residence, const Words& words,
           const PerLevel& width) {
  Load load;
  for (std::size_t l = 0; l < static_cast<std::size_t>(machine.levels); ++l) {
    load.read[l] = words.read[l] * width[l];
    load.written[l] = words.written[l] * width[l];
    load.energy += load.read[l] * machine.read_energy[l] + load.written[l] * machine.write_energy[l];
  }
  if (operand.role == lower::Role::weights) {
    auto at = static_cast<std::size_t>(machine.array - 1);
    while (at > 0 && !kept(residence, at)) --at;
    load.weights = load.read[at];
  }
  return load;
}

Words input_words(const SearchMachine& machine, Residence residence, const SlidingWords& w, double macs) {
  Words words;
  const auto last = static_cast<std::size_t>(machine.levels - 1);
  std::size_t keeper = 0;
  for (std::size_t l = 1; l <= last; ++l) {
    if (!kept(residence, l)) continue;
    words.read[keeper] += w.into[l];
    words.written[l] += l == last ? w.delivered : w.into[l];
    keeper = l;
  }
  words.read[keeper] += keeper == last ? macs : w.to_macs;
  return words;
}

/// Sums: the first arrival of a word at a level needs no read there.
Words output_words(const SearchMachine& machine, Residence residence, double words, double macs, const Crossing& c) {
  Words out;
  const auto last = static_cast<std::size_t>(machine.levels - 1);
  std::size_t keeper = 0;
  for (std::size_t l = 1; l <= last; ++l) {
    if (!kept(residence, l)) continue;
    out.written[keeper] += words * c.into[l];
    out.read[keeper] += words * (c.into[l] - 1);
    out.written[l] += l == last ? words * std::max(0.0, c.delivered - c.copies) : words * (c.into[l] - 1);
    keeper = l;
  }
  out.written[keeper] += keeper == last ? macs : words * c.steps;
  out.read[keeper] += keeper == last ? std::max(0.0, macs - words * c.copies) : words * std::max(0.0, c.steps - 1);
  return out;
}

}  // namespace

Load operator+(const Load& a, const Load& b) {
  Load c;
  for (std::size_t l = 0; l < kSearchLevels; ++l) {
    c.read[l] = a.read[l] + b.read[l];
    c.written[l] = a.written[l] + b.written[l];
  }
  c.energy = a.energy + b.energy;
  c.weights = a.weights + b.weights;
  c.wide = static_cast<std::uint8_t>(a.wide | b.wide);
  return c;
}

Load flat_load(const SearchMachine& machine, const lower::Operand& operand, Residence residence, double words,
               double macs, const Crossing& crossing) {
  PerLevel width;
  width.fill(static_cast<double>(operand.bits));
  if (operand.role != lower::Role::outputs) {
    SlidingWords w;
    for (std::size_t l = 0; l < kSearchLevels; ++l) w.into[l] = words * crossing.into[l];
    w.delivered = words * crossing.delivered;
    w.to_macs = words * crossing.steps;
    return price(machine, operand, residence, input_words(machine, residence, w, macs), width);
  }
  const Words w = output_words(machine, residence, words, macs, crossing);
  const auto wide = static_cast<double>(std::max(operand.bits, operand.partial_bits));
  std::uint8_t widened = 0;
  for (std::size_t l = 0; l < static_cast<std::size_t>(machine.levels); ++l) {
    const bool refilled = l > 0 && kept(residence, l) && crossing.into[l] > 1;
    const bool split = l + 1 == static_cast<std::size_t>(machine.levels) && crossing.spread;
    if (!(w.read[l] > 0 || refilled || split)) continue;
    width[l] = wide;
    widened |= static_cast<std::uint8_t>(1U << l);
  }
  Load load = price(machine, operand, residence, w, width);
  load.wide = widened;
  return load;
}

Load sliding_load(const SearchMachine& machine, const lower::Operand& operand, Residence residence, double macs,
                  const SlidingWords& words) {
  PerLevel width;
  width.fill(static_cast<double>(operand.bits));
  return price(machine, operand, residence, input_words(machine, residence, words, macs), width);
}

namespace {

/// A nest of one block: the temporal loops as given, then the spatial copies, around one tile.
void build_block(const SearchSpace& space, const std::vector<WindowLoop>& loops, const Sizes& extent,
                 const Sizes& spatial, Nest& nest) {
  nest.levels = 2;
  nest.rank = static_cast<int>(space.dims.size());
  nest.count = 0;
  nest.ragged = 0;
  Sizes inner{};
  for (int d = 0; d < nest.rank; ++d) {
    inner[static_cast<std::size_t>(d)] = extent[static_cast<std::size_t>(d)] * spatial[static_cast<std::size_t>(d)];
  }
  const auto add = [&](int dim, std::int64_t bound, std::int64_t stride, bool is_spatial) {
    NestLoop& loop = nest.loops[static_cast<std::size_t>(nest.count++)];
    loop.dim = dim;
    loop.level = 0;
    loop.spatial = is_spatial;
    loop.bound = bound;
    loop.stride = stride;
    loop.digit = bound - 1;
  };
  std::int64_t before = 1;
  for (const WindowLoop& loop : loops) {
    add(loop.dim, loop.trips, 0, false);
    nest.loops[static_cast<std::size_t>(nest.count - 1)].before = before;
    before *= loop.trips;
  }
  for (int i = nest.count - 1; i >= 0; --i) {
    NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    loop.stride = inner[static_cast<std::size_t>(loop.dim)];
    inner[static_cast<std::size_t>(loop.dim)] *= loop.bound;
  }
  for (int d = 0; d < nest.rank; ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (spatial[at] > 1) add(d, spatial[at], extent[at], true);
  }
  nest.first = {};
  nest.first[1] = nest.count;
  nest.extent[1] = extent;
}

void keep_best(std::vector<Sweep>& list, const Sweep& sweep) {
  const auto covers = [](const Sweep& a, const Sweep& b) {
    return a.merged <= b.merged && a.delivered <= b.delivered && a.merged_again <= b.merged_again &&
           a.delivered_again <= b.delivered_again;
  };
  for (const Sweep& each : list) {
    if (covers(each, sweep)) return;
  }
  std::erase_if(list, [&](const Sweep& each) { return covers(sweep, each); });
  list.push_back(sweep);
}

}  // namespace

Sweeps window_sweeps(const SearchSpace& space, const Projection& projection, const std::vector<WindowLoop>& loops,
                     const Sizes& extent, const Sizes& spatial) {
  Nest nest;
  const auto words = [&](const std::vector<WindowLoop>& order) {
    build_block(space, order, extent, spatial, nest);
    Transfer moved;
    const bool counted = transfer_perfect(nest, {1, 0, nest.count}, projection, true, moved) ||
                         transfer_any(nest, {1, 0, nest.count}, projection, true, moved);
    if (!counted) return Sweep{};  // a window too wide to count: nothing is below no words
    return Sweep{static_cast<double>(moved.merged), static_cast<double>(moved.delivered), 0, 0};
  };
  Sweeps out;
  out.still = words({});
  std::vector<WindowLoop> order;
  for (const WindowLoop& loop : loops) {
    if (loop.trips > 1) order.push_back(loop);
  }
  std::sort(order.begin(), order.end(), [](const WindowLoop& a, const WindowLoop& b) { return a.dim < b.dim; });
  if (order.empty()) {
    out.alone = {out.still};
    out.mixed = {{out.still.merged, out.still.delivered, out.still.merged, out.still.delivered}};
    return out;
  }
  do {
    const Sweep alone = words(order);
    keep_best(out.alone, alone);
    if (space.y < 0) continue;
    for (std::size_t at = 0; at < order.size(); ++at) {
      std::vector<WindowLoop> twice = order;
      twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(at), {space.y, 2});
      const Sweep doubled = words(twice);
      keep_best(out.mixed,
                {alone.merged, alone.delivered, doubled.merged - alone.merged, doubled.delivered - alone.delivered});
    }
  } while (std::next_permutation(order.begin(), order.end(),
                                 [](const WindowLoop& a, const WindowLoop& b) { return a.dim < b.dim; }));
  if (out.mixed.empty()) out.mixed = out.alone;
  return out;
}

double window_points(const SearchSpace& space, const Projection& projection, const Sizes& registers,
                     const Sizes& spatial) {
  Nest nest;
  build_block(space, {}, registers, spatial, nest);
  nest.extent[1].fill(1);  // the copies stand apart by whole register tiles, but a MAC takes one element
  Transfer moved;
  const bool counted = transfer_perfect(nest, {1, 0, nest.count}, projection, false, moved) ||
                       transfer_any(nest, {1, 0, nest.count}, projection, false, moved);
  return counted ? static_cast<double>(moved.merged) : 0;
}

}  // namespace plumbline::schedule
