#include "schedule/search_costs.h"

#include <algorithm>

namespace plumbline::schedule {
namespace {

/// Words at the three levels, before widths.
struct Words {
  std::array<double, kSearchLevels> read{};
  std::array<double, kSearchLevels> written{};
};

Load price(const SearchMachine& machine, const lower::Operand& operand, Residence residence, const Words& words,
           const std::array<double, kSearchLevels>& width) {
  Load load;
  for (std::size_t l = 0; l < kSearchLevels; ++l) {
    load.read[l] = words.read[l] * width[l];
    load.written[l] = words.written[l] * width[l];
    load.energy += load.read[l] * machine.read_energy[l] + load.written[l] * machine.write_energy[l];
  }
  if (operand.role == lower::Role::weights) {
    const int at = machine.weights_read_at >= 0 ? machine.weights_read_at : (residence & 1U) != 0 ? 1 : 0;
    load.weights = load.read[static_cast<std::size_t>(at)];
  }
  return load;
}

Words input_words(Residence residence, const SlidingWords& w, double macs) {
  const bool buffer = (residence & 1U) != 0;
  const bool registers = (residence & 2U) != 0;
  Words words;
  const std::size_t parent = buffer ? 1 : 0;
  if (buffer) words.read[0] = words.written[1] = w.into_buffer;
  words.read[parent] += registers ? w.merged : w.to_macs;
  if (registers) {
    words.written[2] = w.delivered;
    words.read[2] = macs;
  }
  return words;
}

/// Sums: the first arrival of a word at a level needs no read there.
Words output_words(Residence residence, double words, double macs, const Crossing& c) {
  const bool buffer = (residence & 1U) != 0;
  const bool registers = (residence & 2U) != 0;
  Words out;
  const double arriving = registers ? words * c.registers : macs / c.copies;  // at the keeper outside the registers
  const std::size_t parent = buffer ? 1 : 0;
  out.written[parent] += arriving;
  out.read[parent] += arriving - words;
  if (buffer) {
    out.written[0] = words * c.buffer;
    out.read[0] = words * (c.buffer - 1);
    out.written[1] += words * (c.buffer - 1);
  }
  if (registers) {
    out.written[2] = words * (c.registers - 1) * c.copies + macs;
    out.read[2] = macs - words * c.copies;
  }
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
  return c;
}

Load flat_load(const SearchMachine& machine, const lower::Operand& operand, Residence residence, double words,
               double macs, const Crossing& crossing) {
  std::array<double, kSearchLevels> width;
  width.fill(static_cast<double>(operand.bits));
  if (operand.role != lower::Role::outputs) {
    const SlidingWords w{words * crossing.buffer, words * crossing.registers,
                         words * crossing.registers * crossing.copies, macs / crossing.copies};
    return price(machine, operand, residence, input_words(residence, w, macs), width);
  }
  const Words w = output_words(residence, words, macs, crossing);
  const auto wide = static_cast<double>(std::max(operand.bits, operand.partial_bits));
  const bool refilled = (residence & 1U) != 0 && crossing.buffer > 1;
  if (w.read[0] > 0) width[0] = wide;
  if (w.read[1] > 0 || refilled) width[1] = wide;
  if (w.read[2] > 0 || crossing.registers > 1 || crossing.copies > 1) width[2] = wide;
  return price(machine, operand, residence, w, width);
}

Load sliding_load(const SearchMachine& machine, const lower::Operand& operand, Residence residence, double macs,
                  const SlidingWords& words) {
  std::array<double, kSearchLevels> width;
  width.fill(static_cast<double>(operand.bits));
  return price(machine, operand, residence, input_words(residence, words, macs), width);
}

namespace {

/// A nest of one block: the temporal loops as given, then the spatial copies, around one tile.
void build_block(const SearchSpace& space, const std::vector<WindowLoop>& loops,
                 const std::array<std::int64_t, lower::kMaxDims>& extent,
                 const std::array<std::int64_t, lower::kMaxDims>& spatial, Nest& nest) {
  nest.levels = 2;
  nest.rank = static_cast<int>(space.dims.size());
  nest.count = 0;
  nest.ragged = 0;
  std::array<std::int64_t, lower::kMaxDims> inner{};
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
                     const std::array<std::int64_t, lower::kMaxDims>& extent,
                     const std::array<std::int64_t, lower::kMaxDims>& spatial) {
  Nest nest;
  const auto words = [&](const std::vector<WindowLoop>& order) {
    build_block(space, order, extent, spatial, nest);
    Transfer moved;
    const bool counted = transfer_perfect(nest, {1, 0, nest.count}, projection, true, moved) ||
                         transfer_any(nest, {1, 0, nest.count}, projection, true, moved);
    PL_CHECK(counted);
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

double window_points(const SearchSpace& space, const Projection& projection,
                     const std::array<std::int64_t, lower::kMaxDims>& registers,
                     const std::array<std::int64_t, lower::kMaxDims>& spatial) {
  Nest nest;
  build_block(space, {}, registers, spatial, nest);
  nest.extent[1].fill(1);  // the copies stand apart by whole register tiles, but a MAC takes one element
  Transfer moved;
  const bool counted = transfer_perfect(nest, {1, 0, nest.count}, projection, false, moved) ||
                       transfer_any(nest, {1, 0, nest.count}, projection, false, moved);
  PL_CHECK(counted);
  return static_cast<double>(moved.merged);
}

}  // namespace plumbline::schedule
