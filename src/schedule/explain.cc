#include "schedule/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "schedule/array_time.h"
#include "schedule/evaluator.h"
#include "schedule/network_time.h"
#include "schedule/tally_counts.h"
#include "schedule/traffic.h"

namespace plumbline::schedule {
namespace {

std::int64_t whole_bytes(std::int64_t bits) { return bits / 8 + (bits % 8 > 0 ? 1 : 0); }

class Explainer {
 public:
  Explainer(const lower::Kernel& kernel, const ingest::Accelerator& accelerator, const LevelRoles& levels,
            const KernelSchedule& schedule)
      : kernel_(kernel), accelerator_(accelerator), levels_(levels), schedule_(schedule) {}

  Result<KernelExplanation> run() {
    KernelExplanation made;
    made.price =
        price_mapping(kernel_, accelerator_, levels_, schedule_.stationary, schedule_.mapping, schedule_.counts);
    PL_TRY(const ArrayNetwork network,
           find_array_network(kernel_.einsum, schedule_.mapping, accelerator_, levels_, accelerator_.nominal));
    const ArrayTime time = array_time(kernel_.einsum, schedule_.mapping, schedule_.stationary,
                                      format_of(kernel_, accelerator_).macs_per_pe, accelerator_, accelerator_.nominal);
    PL_TRY_STATUS(add_ports(made));
    add_networks(network, made);
    made.resources.push_back({"array", {}, {}, 0, {}, time.useful, 0, true});
    made.binding = made.resources.size() - 1;
    for (std::size_t i = 0; i + 1 < made.resources.size(); ++i) {
      if (made.resources[i].cycles > made.resources[made.binding].cycles) made.binding = i;
    }
    add_parts(time, made);
    PL_TRY_STATUS(add_moves(made));
    return made;
  }

 private:
  [[nodiscard]] const std::string& operand_name(std::size_t o) const { return kernel_.einsum.operands[o].name; }

  /// Both ports of every level outside the array.
  Status add_ports(KernelExplanation& made) {
    const Traffic traffic = find_traffic(kernel_.einsum, schedule_.mapping, schedule_.counts, levels_.home);
    for (std::size_t l = 0; l < traffic.size(); ++l) {
      const ingest::AcceleratorLevel& level = accelerator_.levels[l];
      if (level.array) continue;
      std::array<std::int64_t, 3> reads{};
      std::array<std::int64_t, 3> writes{};
      for (std::size_t o = 0; o < traffic[l].size(); ++o) {
        reads[o] = traffic[l][o].read_bits;
        writes[o] = traffic[l][o].write_bits;
      }
      PL_TRY_STATUS(add_port(level.name + " read", reads, level.read, made));
      PL_TRY_STATUS(add_port(level.name + " write", writes, level.write, made));
      if (!level.off_chip) continue;
      const std::size_t ports = made.resources.size();
      off_chip_cycles_ =
          std::max({off_chip_cycles_, made.resources[ports - 2].cycles, made.resources[ports - 1].cycles});
    }
    return Done{};
  }

  Status add_port(std::string name, const std::array<std::int64_t, 3>& bits, const ingest::Rate& rate,
                  KernelExplanation& made) const {
    std::int64_t all = 0;
    for (const std::int64_t part : bits) {
      if (__builtin_add_overflow(all, part, &all)) {
        return make_error("overflow", {}, fmt::format("more than 2^63 - 1 bits through '{}'", name));
      }
    }
    ResourceTime row;
    row.resource = std::move(name);
    if (all > 0)
      row.tensor = operand_name(static_cast<std::size_t>(std::max_element(bits.begin(), bits.end()) - bits.begin()));
    row.bytes = whole_bytes(all);
    row.bytes_per_cycle = rate.per_cycle(accelerator_.nominal);
    if (row.bytes_per_cycle && all > 0) {
      PL_TRY(row.cycles, link_cycles(all, *row.bytes_per_cycle));
    }
    made.resources.push_back(std::move(row));
    return Done{};
  }

  void add_networks(const ArrayNetwork& network, KernelExplanation& made) const {
    for (const TensorLoad& load : network.tensors) {
      made.resources.push_back({fmt::format("{} of the {}", load.topology, operand_name(load.operand)), load.limiting,
                                operand_name(load.operand), whole_bytes(load.limiting_bits), load.bytes_per_cycle,
                                load.cycles, load.byte_hops, load.exact});
    }
  }

  /// The array's own account, then what the links outside it add: the off-chip link before the networks.
  void add_parts(const ArrayTime& time, KernelExplanation& made) const {
    const std::int64_t dram = std::max<std::int64_t>(0, std::min(off_chip_cycles_, made.price.cycles) - time.total());
    const std::pair<const char*, std::int64_t> parts[] = {{"dram", dram},
                                                          {"noc", made.price.cycles - time.total() - dram},
                                                          {"weight wait", time.weight_wait},
                                                          {"feeder", time.feeder},
                                                          {"sram", time.sram},
                                                          {"psum drain", time.psum_drain},
                                                          {"preload exposed", time.preload_exposed},
                                                          {"barrier", time.barrier},
                                                          {"useful", time.useful}};
    for (const auto& [cause, cycles] : parts) {
      if (cycles > 0) made.parts.push_back({cause, cycles});
    }
  }

  /// The hierarchy with the capacities that a moved loop may break.
  [[nodiscard]] Hierarchy bounded() const {
    Hierarchy hierarchy = make_hierarchy(accelerator_, format_of(kernel_, accelerator_).macs_per_pe);
    for (std::size_t l = 0; l < hierarchy.levels.size(); ++l) {
      StorageLevel& level = hierarchy.levels[l];
      const auto& capacity = accelerator_.levels[l].capacity;
      // 2^60 bytes at most (the reader), so bits stay below 2^63.
      if (capacity) level.capacity_bits = capacity->raw() / level.instances * 8;
    }
    return hierarchy;
  }

  Status add_moves(KernelExplanation& made) const {
    PL_TRY(const Evaluator evaluator, Evaluator::prepare(kernel_.einsum, bounded()));
    const auto& nests = schedule_.mapping.levels;
    for (std::size_t l = 0; l < nests.size(); ++l) {
      for (std::size_t i = 0; i < nests[l].loops.size(); ++i) {
        const Loop& loop = nests[l].loops[i];
        if (loop.kind != LoopKind::temporal || loop.bound == 1) continue;
        if (l > 0) try_move(evaluator, l, i, l - 1, made);
        if (l + 1 < nests.size()) try_move(evaluator, l, i, l + 1, made);
        try_swap(evaluator, l, i, made);
      }
    }
    return Done{};
  }

  [[nodiscard]] std::string loop_text(const Loop& loop) const {
    return fmt::format("{} in {}", kernel_.einsum.dim_names[static_cast<std::size_t>(loop.dim)], loop.bound);
  }

  /// Out: innermost of the temporal loops there. In: outermost.
  void try_move(const Evaluator& evaluator, std::size_t from, std::size_t at, std::size_t to,
                KernelExplanation& made) const {
    Mapping mapping = schedule_.mapping;
    const Loop loop = mapping.levels[from].loops[at];
    mapping.levels[from].loops.erase(mapping.levels[from].loops.begin() + static_cast<std::ptrdiff_t>(at));
    auto& loops = mapping.levels[to].loops;
    const auto spatial =
        std::find_if(loops.begin(), loops.end(), [](const Loop& l) { return l.kind != LoopKind::temporal; });
    loops.insert(to < from ? spatial : loops.begin(), loop);
    LoopMove move = named(loop, from);
    move.move = fmt::format("{} to {}", to < from ? "out" : "in", accelerator_.levels[to].name);
    if (accelerator_.levels[to].array && !accelerator_.levels[to].capacity) {
      move.refused = "a processing element holds one element";
    } else {
      judge(evaluator, mapping, move);
    }
    made.moves.push_back(std::move(move));
  }

  /// With the next temporal loop of the level over another dimension; loops of one trip between them do not count.
  void try_swap(const Evaluator& evaluator, std::size_t level, std::size_t at, KernelExplanation& made) const {
    Mapping mapping = schedule_.mapping;
    auto& loops = mapping.levels[level].loops;
    std::size_t other = at + 1;
    while (other < loops.size() && loops[other].bound == 1) ++other;
    if (other == loops.size() || loops[other].kind != LoopKind::temporal || loops[other].dim == loops[at].dim) return;
    LoopMove move = named(loops[at], level);
    move.move = fmt::format("swapped with {}", loop_text(loops[other]));
    std::swap(loops[at], loops[other]);
    judge(evaluator, mapping, move);
    made.moves.push_back(std::move(move));
  }

  [[nodiscard]] LoopMove named(const Loop& loop, std::size_t level) const {
    LoopMove move;
    move.loop = fmt::format("{} ({})", loop_text(loop), accelerator_.levels[level].name);
    return move;
  }

  void judge(const Evaluator& evaluator, const Mapping& mapping, LoopMove& move) const {
    Tally tally;
    const Verdict verdict = evaluator.evaluate(mapping, tally);
    if (!verdict.ok()) {
      move.refused = evaluator.explain(verdict).message;
      return;
    }
    const auto network = find_array_network(kernel_.einsum, mapping, accelerator_, levels_, accelerator_.nominal);
    if (!network.ok()) {
      move.refused = network.errors().front().message;
      return;
    }
    move.price = price_mapping(kernel_, accelerator_, levels_, schedule_.stationary, mapping,
                               counts_of(kernel_.einsum, mapping, tally));
  }

  const lower::Kernel& kernel_;
  const ingest::Accelerator& accelerator_;
  const LevelRoles& levels_;
  const KernelSchedule& schedule_;
  std::int64_t off_chip_cycles_ = 0;  ///< of the slower off-chip port
};

}  // namespace

Result<KernelExplanation> explain_kernel(const lower::Kernel& kernel, const ingest::Accelerator& accelerator,
                                         const LevelRoles& levels, const KernelSchedule& schedule) {
  PL_CHECK(kernel.kind == lower::KernelKind::matrix);
  return Explainer(kernel, accelerator, levels, schedule).run();
}

}  // namespace plumbline::schedule
