#include "schedule/array_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "core/check.h"
#include "schedule/roles.h"

namespace plumbline::schedule {
namespace {

constexpr std::size_t kWeights = 0;
constexpr std::size_t kInputs = 1;
constexpr std::size_t kOutputs = 2;

/// One dimension as the array sees it.
struct DimTiles {
  std::int64_t size = 1;
  std::int64_t columns = 1;  ///< spatial bound along x
  std::int64_t rows = 1;     ///< spatial bound along y
  std::int64_t stream = 1;   ///< steps while the array keeps its tile
  [[nodiscard]] std::int64_t tile() const { return std::min(size, columns * rows * stream); }
  [[nodiscard]] std::int64_t full() const { return size / tile(); }
  [[nodiscard]] std::int64_t ragged() const { return size % tile(); }
  [[nodiscard]] std::int64_t trips() const { return full() + (ragged() > 0 ? 1 : 0); }
  [[nodiscard]] std::int64_t last() const { return ragged() > 0 ? ragged() : tile(); }
};

/// The nest from the array's point of view: outer loops change the tile it holds, stream loops do not.
struct ArrayNest {
  std::array<DimTiles, lower::kMaxDims> dims;
  int rank = 0;
  std::vector<int>
      outer;  ///< dimensions of the outer loops, outermost first; a dimension stands where its innermost loop does
  bool spills = false;  ///< a reduction loop runs outside a loop over outputs, so unfinished sums leave their keeper
};

struct TemporalLoop {
  int dim = 0;
  int level = 0;
  std::int64_t bound = 1;
};

/// Unfinished sums leave their innermost keeper when, outside it, a loop over outputs runs inside a reduction loop.
bool sums_spill(const std::vector<TemporalLoop>& loops, const Mapping& mapping, const DimRoles& roles) {
  int keeper = static_cast<int>(mapping.levels.size()) - 1;
  while (keeper > 0 && !mapping.levels[static_cast<std::size_t>(keeper)].keeps_operand(kOutputs)) --keeper;
  bool reduced = false;
  for (const TemporalLoop& loop : loops) {
    if (loop.level >= keeper) break;
    const bool over_outputs = ((roles.outputs >> loop.dim) & 1U) != 0;
    if (over_outputs && reduced) return true;
    reduced = reduced || !over_outputs;
  }
  return false;
}

ArrayNest read_nest(const lower::Einsum& einsum, const Mapping& mapping, const DimRoles& roles,
                    std::size_t stationary) {
  ArrayNest nest;
  nest.rank = einsum.rank();
  for (int d = 0; d < nest.rank; ++d) {
    nest.dims[static_cast<std::size_t>(d)].size = einsum.dims[static_cast<std::size_t>(d)];
  }
  std::vector<TemporalLoop> temporal;
  for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
    for (const Loop& loop : mapping.levels[l].loops) {
      DimTiles& dim = nest.dims[static_cast<std::size_t>(loop.dim)];
      if (loop.kind == LoopKind::spatial_x) {
        dim.columns *= loop.bound;
      } else if (loop.kind == LoopKind::spatial_y) {
        dim.rows *= loop.bound;
      } else if (loop.bound > 1) {
        temporal.push_back({loop.dim, static_cast<int>(l), loop.bound});
      }
    }
  }
  // The innermost run of loops that leave the stationary tile alone streams past it, whatever their level.
  std::size_t outer = temporal.size();
  while (outer > 0 && ((roles.relevant[stationary] >> temporal[outer - 1].dim) & 1U) == 0) {
    --outer;
    nest.dims[static_cast<std::size_t>(temporal[outer].dim)].stream *= temporal[outer].bound;
  }
  for (std::size_t i = 0; i < outer; ++i) {
    std::erase(nest.outer, temporal[i].dim);
    nest.outer.push_back(temporal[i].dim);
  }
  std::erase_if(nest.outer, [&](int d) { return nest.dims[static_cast<std::size_t>(d)].trips() == 1; });
  nest.spills = sums_spill(temporal, mapping, roles);
  return nest;
}

/// Bytes per cycle of the level that feeds an operand to the array or takes its results; nothing = unlimited.
struct Port {
  int level = -1;
  std::optional<double> read;
  std::optional<double> write;
};

/// The innermost keeper of an operand outside the array.
Port port_of(const Mapping& mapping, std::size_t operand, const ingest::Accelerator& accelerator, Clock clock) {
  for (int l = static_cast<int>(mapping.levels.size()) - 2; l >= 0; --l) {
    if (!mapping.levels[static_cast<std::size_t>(l)].keeps_operand(operand)) continue;
    const ingest::AcceleratorLevel& level = accelerator.levels[static_cast<std::size_t>(l)];
    return {l, level.read.per_cycle(clock), level.write.per_cycle(clock)};
  }
  PL_CHECK(false);
  return {};
}

/// The keeper outside `inner`, where finished outputs go; -1 when there is none.
Port next_out(const Mapping& mapping, std::size_t operand, int inner, const ingest::Accelerator& accelerator,
              Clock clock) {
  for (int l = inner - 1; l >= 0; --l) {
    if (!mapping.levels[static_cast<std::size_t>(l)].keeps_operand(operand)) continue;
    const ingest::AcceleratorLevel& level = accelerator.levels[static_cast<std::size_t>(l)];
    return {l, level.read.per_cycle(clock), level.write.per_cycle(clock)};
  }
  return {};
}

std::int64_t cycles_for(std::int64_t bits, const std::optional<double>& bytes_per_cycle) {
  if (!bytes_per_cycle || bits == 0) return 0;
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(bits) / 8.0 / *bytes_per_cycle));
}

/// A tile's true extents.
struct Extent {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t stream = 1;
};

/// Visits that are alike and have alike successors.
struct VisitKind {
  Extent now;
  Extent next;
  std::int64_t count = 1;
  bool finishing = true;  ///< every reduction is at its last tile
  bool followed = true;   ///< a next visit exists
};

/// Times one visit waits for, each in cycles from its start.
struct VisitTimes {
  std::int64_t useful = 0;
  std::int64_t preload = 0;
  std::int64_t weight_read = 0;
  std::int64_t feed = 0;
  std::int64_t port = 0;  ///< everything read through one port
  std::int64_t sums = 0;  ///< partial sums and results
};

class Accountant {
 public:
  explicit Accountant(ArrayTime& time) : time_(time) {}

  /// Each late cycle goes to the outermost level that is late: the storage outside the array, then sums, then preload.
  void charge(const VisitTimes& visit, std::int64_t count) {
    std::int64_t covered = visit.useful;
    const auto late = [&](std::int64_t until, std::int64_t& owner) {
      if (until <= covered) return;
      owner += (until - covered) * count;
      covered = until;
    };
    time_.useful += visit.useful * count;
    late(visit.weight_read, time_.weight_wait);
    late(visit.feed, time_.feeder);
    late(visit.port, time_.sram);
    late(visit.sums, time_.psum_drain);
    late(visit.preload, time_.preload_exposed);
  }

  /// Nothing streams meanwhile: every cycle is exposed.
  void charge_serial(std::int64_t preload, std::int64_t weight_read, std::int64_t count) {
    time_.preload_exposed += preload * count;
    time_.weight_wait += std::max<std::int64_t>(0, weight_read - preload) * count;
  }

 private:
  ArrayTime& time_;
};

class Timing {
 public:
  Timing(const lower::Einsum& einsum, const Mapping& mapping, std::size_t stationary, double macs_per_pe,
         const ingest::Accelerator& accelerator, Clock clock)
      : einsum_(einsum),
        stationary_(stationary),
        macs_per_pe_(macs_per_pe),
        accelerator_(accelerator),
        roles_(find_roles(einsum)),
        nest_(read_nest(einsum, mapping, roles_, stationary)) {
    ports_[kWeights] = port_of(mapping, kWeights, accelerator, clock);
    ports_[kInputs] = port_of(mapping, kInputs, accelerator, clock);
    ports_[kOutputs] = port_of(mapping, kOutputs, accelerator, clock);
    beyond_ = next_out(mapping, kOutputs, ports_[kOutputs].level, accelerator, clock);
  }

  ArrayTime run() {
    const ingest::AcceleratorLevel& array = accelerator_.array();
    VisitKind all;
    mapped_ = 1;
    for (int d = 0; d < nest_.rank; ++d) {
      const DimTiles& dim = nest_.dims[static_cast<std::size_t>(d)];
      mapped_ *= std::min(dim.rows, dim.size) * std::min(dim.columns, dim.size);
      if (std::find(nest_.outer.begin(), nest_.outer.end(), d) != nest_.outer.end()) continue;
      extend(all.now, dim, dim.tile());
      extend(all.next, dim, dim.tile());
    }
    pes_ = array.fanout_x * array.fanout_y;
    Extent first = all.now;
    for (const int d : nest_.outer) extend(first, dims(d), dims(d).tile());
    charge_first(first);
    // From one visit to the next one dimension advances, those inside it start again, those outside it stay.
    for (std::size_t advancing = 0; advancing < nest_.outer.size(); ++advancing) each_kind(0, advancing, all);
    VisitKind last = all;
    last.followed = false;
    for (const int d : nest_.outer) extend(last.now, dims(d), dims(d).last());
    visit(last);
    // Skew: the first value reaches the last row and column after rows + columns - 2 cycles.
    time_.barrier += array.fanout_x + array.fanout_y - 2;
    return time_;
  }

 private:
  [[nodiscard]] const DimTiles& dims(int d) const { return nest_.dims[static_cast<std::size_t>(d)]; }

  static void extend(Extent& extent, const DimTiles& dim, std::int64_t size) {
    const std::int64_t spread = dim.rows * dim.columns;
    const std::int64_t rows = std::min(dim.rows, size);
    extent.rows *= rows;
    extent.columns *= std::min(dim.columns, std::max<std::int64_t>(1, size / rows));
    extent.stream *= (size + spread - 1) / spread;
  }

  /// All combinations of tiles of the outer dimensions from `at` on while dimension `advancing` steps.
  void each_kind(std::size_t at, std::size_t advancing, const VisitKind& so_far) {
    if (at == nest_.outer.size()) {
      visit(so_far);
      return;
    }
    const int d = nest_.outer[at];
    const DimTiles& dim = dims(d);
    const bool reduction = ((roles_.reduction() >> d) & 1U) != 0;
    const auto with = [&](std::int64_t now, std::int64_t next, std::int64_t count, bool last) {
      if (count == 0) return;
      VisitKind kind = so_far;
      extend(kind.now, dim, now);
      extend(kind.next, dim, next);
      kind.count *= count;
      kind.finishing = kind.finishing && (last || !reduction);
      each_kind(at + 1, advancing, kind);
    };
    const std::int64_t ragged = dim.ragged() > 0 ? 1 : 0;
    if (at < advancing) {
      with(dim.tile(), dim.tile(), dim.trips() - 1, false);
      with(dim.last(), dim.last(), 1, true);
    } else if (at == advancing) {
      with(dim.tile(), dim.tile(), dim.trips() - 1 - ragged, false);
      with(dim.tile(), dim.last(), ragged, false);
    } else {
      with(dim.last(), dim.tile(), 1, true);
    }
  }

  [[nodiscard]] std::int64_t streamed_bits(std::size_t operand, const Extent& kind) const {
    // Columns share what a row is fed, rows share what a column is fed.
    const std::int64_t lanes = operand == kInputs ? (stationary_ == kInputs ? 0 : kind.rows)
                                                  : (stationary_ == kWeights  ? 0
                                                     : stationary_ == kInputs ? kind.rows
                                                                              : kind.columns);
    return operand_bits(einsum_.operands[operand], lanes * kind.stream);
  }

  /// Partial sums through their keeper, and results through the level outside it.
  [[nodiscard]] std::int64_t sum_cycles(const Extent& kind, bool finishing) const {
    const lower::Operand& outputs = einsum_.operands[kOutputs];
    if (stationary_ == kOutputs) return 0;
    const std::int64_t words = kind.columns * kind.stream;
    const bool reduces_over_time = reduction_trips() > 1;
    const std::int64_t partial = words * outputs.partial_bits;
    std::int64_t cycles = std::max(cycles_for(partial, ports_[kOutputs].write),
                                   reduces_over_time ? cycles_for(partial, ports_[kOutputs].read) : 0);
    if (beyond_.level < 0) return cycles;
    if (nest_.spills) {
      cycles = std::max({cycles, cycles_for(partial, beyond_.write), cycles_for(partial, beyond_.read)});
    } else if (finishing) {
      cycles = std::max(cycles, cycles_for(words * outputs.bits, beyond_.write));
    }
    return cycles;
  }

  [[nodiscard]] std::int64_t reduction_trips() const {
    std::int64_t trips = 1;
    for (int d = 0; d < nest_.rank; ++d) {
      if (((roles_.reduction() >> d) & 1U) != 0) trips *= nest_.dims[static_cast<std::size_t>(d)].trips();
    }
    return trips;
  }

  [[nodiscard]] std::int64_t shift_cycles(std::int64_t rows) const {
    const std::int64_t rate = accelerator_.preload_rows_per_cycle;
    return rate <= 0 ? 0 : (rows + rate - 1) / rate;
  }

  [[nodiscard]] std::int64_t tile_bits(const Extent& tile) const {
    return operand_bits(einsum_.operands[stationary_], tile.rows * tile.columns);
  }

  /// What a visit waits for: its own stream and sums and, when tiles are doubled, the load of the next one.
  [[nodiscard]] VisitTimes times_of(const VisitKind& kind, bool loading) const {
    VisitTimes times;
    times.useful = useful_cycles(kind.now);
    std::int64_t weight_bits = streamed_bits(kWeights, kind.now);
    std::int64_t input_bits = streamed_bits(kInputs, kind.now);
    if (loading) {
      times.preload = shift_cycles(kind.next.rows);
      (stationary_ == kWeights ? weight_bits : input_bits) += tile_bits(kind.next);
    }
    times.weight_read = cycles_for(weight_bits, ports_[kWeights].read);
    times.feed = cycles_for(input_bits, ports_[kInputs].read);
    if (ports_[kWeights].level == ports_[kInputs].level) {
      times.port = cycles_for(weight_bits + input_bits, ports_[kWeights].read);
    }
    times.sums = sum_cycles(kind.now, kind.finishing);
    return times;
  }

  [[nodiscard]] std::int64_t useful_cycles(const Extent& kind) const {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(kind.stream) / macs_per_pe_));
  }

  /// The first tile has nothing to hide behind.
  void charge_first(const Extent& first) {
    if (stationary_ == kOutputs) return;
    time_.shift += shift_cycles(first.rows);
    charge_open(first, 1);
  }

  void charge_open(const Extent& tile, std::int64_t count) {
    Accountant(time_).charge_serial(shift_cycles(tile.rows), cycles_for(tile_bits(tile), ports_[stationary_].read),
                                    count);
  }

  void visit(const VisitKind& kind) {
    time_.visits += kind.count;
    const bool overlapped = accelerator_.preload == ingest::Preload::double_buffered;
    const bool loads = kind.followed && stationary_ != kOutputs;
    if (loads) time_.shift += kind.count * shift_cycles(kind.next.rows);
    if (loads && !overlapped) charge_open(kind.next, kind.count);
    const VisitTimes times = times_of(kind, loads && overlapped);
    Accountant(time_).charge(times, kind.count);
    if (stationary_ == kOutputs) drain_outputs(kind);
    const std::int64_t useful = times.useful * kind.count;
    const std::int64_t working = kind.now.rows * kind.now.columns;
    time_.pe_useful += useful * working;
    time_.pe_padded += useful * (mapped_ - working);
    time_.pe_unmapped += useful * (pes_ - mapped_);
  }

  /// Stationary outputs shift out once their sums are complete (or must be spilled): behind the next stream when the
  /// accumulators are doubled, else exposed; the last drain of a kernel always is.
  void drain_outputs(const VisitKind& kind) {
    const lower::Operand& outputs = einsum_.operands[kOutputs];
    const std::int64_t bits = kind.now.rows * kind.now.columns * (nest_.spills ? outputs.partial_bits : outputs.bits);
    time_.shift += kind.count * shift_cycles(kind.now.rows);
    std::int64_t drain = std::max(shift_cycles(kind.now.rows), cycles_for(bits, ports_[kOutputs].write));
    if (nest_.spills) drain += cycles_for(bits, ports_[kOutputs].read);
    std::int64_t hidden = 0;
    if (kind.followed && accelerator_.accumulator_double_buffered) {
      VisitKind next = kind;
      next.now = kind.next;
      const VisitTimes times = times_of(next, false);
      hidden = std::max({times.useful, times.weight_read, times.feed, times.port});
    }
    time_.psum_drain += kind.count * std::max<std::int64_t>(0, drain - hidden);
  }

  const lower::Einsum& einsum_;
  std::size_t stationary_;
  double macs_per_pe_;
  const ingest::Accelerator& accelerator_;
  DimRoles roles_;
  ArrayNest nest_;
  std::array<Port, 3> ports_;
  Port beyond_;
  std::int64_t mapped_ = 1;
  std::int64_t pes_ = 1;
  ArrayTime time_;
};

}  // namespace

ArrayTime array_time(const lower::Einsum& einsum, const Mapping& mapping, std::size_t stationary, double macs_per_pe,
                     const ingest::Accelerator& accelerator, Clock clock) {
  return Timing(einsum, mapping, stationary, macs_per_pe, accelerator, clock).run();
}

}  // namespace plumbline::schedule
