#include "schedule/network_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "schedule/evaluator.h"
#include "schedule/network_traffic.h"
#include "schedule/roles.h"
#include "schedule/schedule.h"

namespace plumbline::schedule {
namespace {

using ingest::NetworkShape;

constexpr std::size_t kOutputs = 2;
constexpr std::size_t kOperands = 3;

/// Bits over the limiting link of each direction.
struct Bits {
  std::int64_t inward = 0;
  std::int64_t outward = 0;
};

class Networks {
 public:
  Networks(const lower::Einsum& einsum, const Mapping& mapping, const ingest::Accelerator& accelerator,
           const LevelRoles& levels, Clock clock)
      : einsum_(einsum), mapping_(mapping), accelerator_(accelerator), levels_(levels), clock_(clock) {}

  Result<ArrayNetwork> run() {
    ArrayNetwork made;
    const ingest::AcceleratorLevel& array = accelerator_.array();
    if (!array.networks) return made;
    const ingest::TensorNetwork* rows[kOperands] = {&array.networks->weights, &array.networks->inputs,
                                                    &array.networks->outputs};
    PL_TRY(const Evaluator evaluator, Evaluator::prepare(einsum_, make_hierarchy(accelerator_, 1)));
    std::array<Bits, kOperands> bits;
    for (std::size_t o = 0; o < kOperands; ++o) {
      PL_TRY(TensorLoad load, load_tensor(evaluator, o, *rows[o], bits[o]));
      made.tensors.push_back(std::move(load));
    }
    for (std::size_t o = 0; o < kOperands; ++o) {
      PL_TRY_STATUS(find_time(*array.networks, o, bits, made.tensors[o]));
      if (made.tensors[o].cycles <= made.cycles) continue;
      made.cycles = made.tensors[o].cycles;
      made.binding = o;
    }
    return made;
  }

 private:
  [[nodiscard]] bool keeps(int level, std::size_t operand) const {
    return mapping_.levels[static_cast<std::size_t>(level)].keeps_operand(operand);
  }

  Result<TensorLoad> load_tensor(const Evaluator& evaluator, std::size_t o, const ingest::TensorNetwork& row,
                                 Bits& bits) const {
    const ingest::Topology* topology = ingest::find_topology(row.topology);
    PL_CHECK(topology != nullptr);  // the reader has checked the name
    TensorLoad load;
    load.operand = o;
    load.topology = row.topology;
    load.bytes_per_cycle = row.link.per_cycle(clock_);
    load.outer = levels_.array - 1;
    while (load.outer > 0 && !keeps(load.outer, o)) --load.outer;
    load.inner = keeps(levels_.array, o) ? levels_.array : evaluator.levels();
    const ingest::AcceleratorLevel& array = accelerator_.array();
    const Grid grid{array.fanout_x, array.fanout_y};
    PL_TRY(const MappedTraffic traffic, find_network_traffic(evaluator, mapping_, load.outer, load.inner, o));
    PL_TRY(load.moved, load_network(*topology, grid, traffic.moved));
    PL_TRY(load.returned, load_network(*topology, grid, traffic.returned));
    load.exact = traffic.exact;
    const bool summed = traffic.moved.share_x || traffic.moved.share_y;
    PL_TRY(const std::int64_t out, bits_of(o, load, load.moved.max_load, summed));
    PL_TRY(const std::int64_t back, bits_of(o, load, load.returned.max_load, true));
    PL_TRY(const std::int64_t out_hops, bits_of(o, load, load.moved.word_hops, summed));
    PL_TRY(const std::int64_t back_hops, bits_of(o, load, load.returned.word_hops, true));
    bits = o == kOutputs ? Bits{back, out} : Bits{out, 0};
    load.byte_hops = out_hops / 8 + back_hops / 8 + (out_hops % 8 + back_hops % 8 + 7) / 8;
    return load;
  }

  /// Sums on their way are as wide as a partial sum; only finished ones that nothing is added to any more are narrow.
  Result<std::int64_t> bits_of(std::size_t o, const TensorLoad& load, std::int64_t words, bool unfinished) const {
    const lower::Operand& operand = einsum_.operands[o];
    std::int64_t width = operand.bits;
    if (o == kOutputs) {
      const bool all_once = load.moved.receivers <= output_words(einsum_, find_roles(einsum_));
      if (unfinished || load.outer > levels_.home || !all_once) width = operand.partial_bits;
    }
    const __int128 side =
        o != kOutputs && operand.side_group > 0
            ? (static_cast<__int128>(words) + operand.side_group - 1) / operand.side_group * operand.side_bits
            : 0;
    const __int128 bits = static_cast<__int128>(words) * width + side;
    if (bits > INT64_MAX) {
      return make_error("overflow", {}, fmt::format("more than 2^63 - 1 bits of {} in a network", operand.name));
    }
    return static_cast<std::int64_t>(bits);
  }

  /// A bus carries both directions; trees and meshes have a wire for each.
  Status find_time(const ingest::ArrayNetworks& networks, std::size_t o, const std::array<Bits, kOperands>& bits,
                   TensorLoad& load) const {
    const bool bus = ingest::find_topology(load.topology)->shape == NetworkShape::bus;
    Bits own;
    for (std::size_t other = 0; other < kOperands; ++other) {
      if (other != o && !networks.shared) continue;
      if (__builtin_add_overflow(own.inward, bits[other].inward, &own.inward) ||
          __builtin_add_overflow(own.outward, bits[other].outward, &own.outward)) {
        return make_error("overflow", {}, "more than 2^63 - 1 bits on a shared wire");
      }
    }
    const bool out = o == kOutputs && own.outward >= own.inward;
    load.limiting = out ? load.moved.limiting : o == kOutputs ? load.returned.limiting : load.moved.limiting;
    load.limiting_bits = out ? own.outward : own.inward;
    if (bus && __builtin_add_overflow(own.inward, own.outward, &load.limiting_bits)) {
      return make_error("overflow", {}, "more than 2^63 - 1 bits on a bus");
    }
    if (!load.bytes_per_cycle || load.limiting_bits == 0) return Done{};
    PL_TRY(load.cycles, link_cycles(load.limiting_bits, *load.bytes_per_cycle));
    return Done{};
  }

  const lower::Einsum& einsum_;
  const Mapping& mapping_;
  const ingest::Accelerator& accelerator_;
  const LevelRoles& levels_;
  Clock clock_;
};

}  // namespace

Result<ArrayNetwork> find_array_network(const lower::Einsum& einsum, const Mapping& mapping,
                                        const ingest::Accelerator& accelerator, const LevelRoles& levels, Clock clock) {
  PL_CHECK(einsum.operands.size() == kOperands);
  return Networks(einsum, mapping, accelerator, levels, clock).run();
}

}  // namespace plumbline::schedule
