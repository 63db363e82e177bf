#include "study/reuse_row.h"

#include <algorithm>
#include <numeric>

#include "schedule/levels.h"
#include "schedule/roles.h"

namespace plumbline::study {
namespace {

using execute::ClassCycles;
using execute::CycleClass;
using execute::kCycleClasses;

std::size_t at(CycleClass c) { return static_cast<std::size_t>(c); }

std::optional<double> ratio(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

/// value × part / whole, rounded down.
std::int64_t share(std::int64_t value, std::int64_t part, std::int64_t whole) {
  if (whole == 0) return 0;
  return static_cast<std::int64_t>(static_cast<__int128>(value) * part / whole);
}

/// Rows or columns of the array that a mapping uses at most.
std::int64_t mapped(const lower::Kernel& kernel, const schedule::KernelSchedule& schedule, schedule::LoopKind kind) {
  std::int64_t lanes = 1;
  for (const auto& level : schedule.mapping.levels) {
    for (const auto& loop : level.loops) {
      if (loop.kind == kind) lanes *= std::min(loop.bound, kernel.einsum.dims[static_cast<std::size_t>(loop.dim)]);
    }
  }
  return lanes;
}

/// Causes that hold up the stream past a tile which is still needed. What is late in `weight_wait` and
/// `preload_exposed` is the next tile: the held one has done its work. A host launch finds an empty array.
constexpr CycleClass kStreamStalls[] = {CycleClass::feeder, CycleClass::sram, CycleClass::noc, CycleClass::psum_drain,
                                        CycleClass::vector_unit};

void add(ClassCycles& sum, const ClassCycles& part, std::int64_t times) {
  for (std::size_t c = 0; c < kCycleClasses; ++c) sum[c] += part[c] * times;
}

template <class Number>
void add_all(Number& sum, const Number& part) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

void add(execute::Movement& sum, const execute::Movement& part) {
  sum.off_array_weight += part.off_array_weight;
  sum.off_array_stationary += part.off_array_stationary;
  sum.off_array_activation += part.off_array_activation;
  sum.psum += part.psum;
  sum.off_chip_weight += part.off_chip_weight;
  sum.off_chip_activation += part.off_chip_activation;
}

/// Parameter bytes by class, each tensor once per class; the shape's own total counts each tensor once.
void add_weight_bytes(const schedule::Bucket& bucket, const std::vector<bool>& pinned, std::vector<ReuseRow>& classes) {
  std::vector<std::vector<bool>> seen(classes.size());
  for (const auto& instance : bucket.graph->instances) {
    const std::string& name = bucket.graph->kernels[instance.kernel.at()].layer_class;
    const auto row = std::find_if(classes.begin(), classes.end(), [&](const auto& r) { return r.layer_class == name; });
    PL_CHECK(row != classes.end());
    auto& marks = seen[static_cast<std::size_t>(row - classes.begin())];
    for (const auto& use : instance.parameters) {
      if (use.tensor.at() >= marks.size()) marks.resize(use.tensor.at() + 1, false);
      if (marks[use.tensor.at()]) continue;
      marks[use.tensor.at()] = true;
      const std::int64_t bytes = std::min(use.bytes, use.stored);
      row->unique_weight_bytes += bytes;
      const bool stays = !use.gathered && use.tensor.at() < pinned.size() && pinned[use.tensor.at()];
      if (stays) row->resident_weight_bytes += bytes;
    }
  }
}

std::int64_t tile_bytes(const lower::Kernel& kernel, const schedule::KernelSchedule& mapped, std::size_t level,
                        bool weights_counted_elsewhere) {
  std::int64_t bits = 0;
  for (std::size_t o = 0; o < kernel.einsum.operands.size(); ++o) {
    if (!mapped.mapping.levels[level].keeps_operand(o)) continue;
    const auto& operand = kernel.einsum.operands[o];
    if (weights_counted_elsewhere && operand.role == lower::Role::weights) continue;
    const std::int64_t words = mapped.counts.levels[level][o].tile * mapped.hierarchy.levels[level].instances;
    bits +=
        operand.role == lower::Role::outputs ? words * operand.partial_bits : schedule::operand_bits(operand, words);
  }
  return (bits + 7) / 8;
}

BufferPressure pressure_of(const schedule::Bucket& bucket, int level, const schedule::LevelRoles& levels,
                           std::int64_t pinned_bytes, const ingest::Accelerator& accelerator,
                           const std::vector<std::int64_t>& cycles) {
  BufferPressure out;
  out.level = level;
  const auto& storage = accelerator.levels[static_cast<std::size_t>(level)];
  if (storage.capacity) out.capacity = storage.capacity->raw();
  const auto& placement = bucket.schedule->placement;
  if (level == levels.weights) out.pinned = pinned_bytes;
  if (level == levels.home) out.spilled = placement.spilled;
  double weighted = 0;
  std::int64_t busy = 0;
  for (std::size_t i = 0; i < bucket.graph->instances.size(); ++i) {
    std::int64_t bytes = out.pinned;
    const std::size_t k = bucket.graph->instances[i].kernel.at();
    if (level == levels.home) {
      bytes += placement.occupancy[i];
    } else if (bucket.graph->kernels[k].kind == lower::KernelKind::matrix) {
      bytes += tile_bytes(bucket.graph->kernels[k], bucket.schedule->kernels[k], static_cast<std::size_t>(level),
                          out.pinned > 0);
    }
    out.occupancy.push_back(bytes);
    out.peak = std::max(out.peak, bytes);
    weighted += static_cast<double>(bytes) * static_cast<double>(cycles[i]);
    busy += cycles[i];
  }
  if (busy > 0) out.time_weighted = weighted / static_cast<double>(busy);
  return out;
}

ReuseRow sum_of(const std::vector<ReuseRow>& classes);

template <class Flow, class Same, class Merge>
void merge_into(std::vector<Flow>& sum, const std::vector<Flow>& part, Same same, Merge merge) {
  for (const Flow& flow : part) {
    const auto found = std::find_if(sum.begin(), sum.end(), [&](const Flow& other) { return same(other, flow); });
    if (found == sum.end()) {
      sum.push_back(flow);
    } else {
      merge(*found, flow);
    }
  }
}

void merge_flows(ReuseRow& sum, const ReuseRow& part) {
  merge_into(
      sum.links, part.links,
      [](const LinkFlow& a, const LinkFlow& b) {
        return a.outer == b.outer && a.inner == b.inner && a.tensor == b.tensor;
      },
      [](LinkFlow& a, const LinkFlow& b) {
        a.words_outer += b.words_outer;
        a.words_inner += b.words_inner;
        a.words_returned += b.words_returned;
        a.bytes += b.bytes;
        a.additions += b.additions;
        a.byte_hops = a.byte_hops && b.byte_hops ? std::optional(*a.byte_hops + *b.byte_hops) : std::nullopt;
      });
  merge_into(
      sum.levels, part.levels,
      [](const LevelFlow& a, const LevelFlow& b) { return a.level == b.level && a.tensor == b.tensor; },
      [](LevelFlow& a, const LevelFlow& b) {
        a.words_served += b.words_served;
        a.words_arrived += b.words_arrived;
        a.read_bytes += b.read_bytes;
        a.write_bytes += b.write_bytes;
      });
  merge_into(
      sum.ports, part.ports, [](const PortLoad& a, const PortLoad& b) { return a.level == b.level; },
      [](PortLoad& a, const PortLoad& b) {
        a.read_bytes += b.read_bytes;
        a.write_bytes += b.write_bytes;
        a.weight_bytes += b.weight_bytes;
        a.stationary_bytes += b.stationary_bytes;
        a.activation_bytes += b.activation_bytes;
        a.psum_bytes += b.psum_bytes;
      });
}

ReuseRow sum_of(const std::vector<ReuseRow>& classes) {
  ReuseRow sum;
  for (const ReuseRow& part : classes) {
    sum.cycles += part.cycles;
    add(sum.movement, part.movement);
    sum.macs += part.macs;
    sum.weight_macs += part.weight_macs;
    sum.weight_elements_in += part.weight_elements_in;
    sum.unique_weight_elements += part.unique_weight_elements;
    sum.feeder_cycles += part.feeder_cycles;
    sum.array_cycles += part.array_cycles;
    sum.pe_cycles += part.pe_cycles;
    sum.held += part.held;
    sum.held_activation += part.held_activation;
    add_all(sum.stranded, part.stranded);
    add_all(sum.stranded_activation, part.stranded_activation);
    add_all(sum.femtojoules, part.femtojoules);
    merge_flows(sum, part);
  }
  return sum;
}

}  // namespace

std::optional<double> LinkFlow::spatial_reuse() const { return ratio(words_inner, words_outer); }
std::optional<double> LevelFlow::temporal_reuse() const { return ratio(words_served, words_arrived); }
std::optional<double> ReuseRow::achieved_reuse() const { return ratio(weight_macs, weight_elements_in); }
std::optional<double> ReuseRow::ideal_reuse() const { return ratio(weight_macs, unique_weight_elements); }
std::optional<double> ReuseRow::reuse_efficiency() const { return ratio(unique_weight_elements, weight_elements_in); }
std::optional<double> ReuseRow::residency() const {
  return unique_weight_elements == 0 ? std::nullopt : ratio(held, pe_cycles);
}
std::optional<double> ReuseRow::stranded_share() const { return ratio(stranded_total(), held); }
std::optional<double> ReuseRow::activation_residency() const {
  return held_activation == 0 ? std::nullopt : ratio(held_activation, pe_cycles);
}
std::optional<double> ReuseRow::inter_inference_residency() const {
  return ratio(resident_weight_bytes, unique_weight_bytes);
}
std::optional<double> ReuseRow::feeder_utilization() const {
  return array_cycles == 0 ? std::nullopt : ratio(feeder_cycles, cycles);
}
std::int64_t ReuseRow::stranded_total() const {
  return std::accumulate(stranded.begin(), stranded.end(), std::int64_t{0});
}
std::int64_t ReuseRow::off_array_bytes() const {
  return movement.off_array_weight + movement.off_array_stationary + movement.off_array_activation + movement.psum;
}

HeldCycles find_held(const lower::Kernel& kernel, const schedule::KernelSchedule& schedule,
                     const execute::KernelCost& cost) {
  HeldCycles out;
  const std::size_t outputs = kernel.einsum.operands.empty() ? 0 : kernel.einsum.operands.size() - 1;
  if (kernel.kind != lower::KernelKind::matrix || schedule.stationary == outputs) return out;
  const std::int64_t useful = cost.classes[at(CycleClass::useful)];
  const auto wait = [&](std::int64_t cycles) { return share(cycles, cost.pe.useful, useful); };
  for (const CycleClass c : kStreamStalls) out.stranded[at(c)] = wait(cost.classes[at(c)]);
  // Off-chip time is late for what the link carries: activations find their weights waiting, weights find them gone.
  const std::int64_t activations = cost.movement.off_chip_activation;
  out.stranded[at(CycleClass::dram)] =
      wait(share(cost.classes[at(CycleClass::dram)], activations, activations + cost.movement.off_chip_weight));
  // Skew: the first activation reaches row r, column c after r + c cycles; the sum over the tile is a triangle.
  const std::int64_t rows = mapped(kernel, schedule, schedule::LoopKind::spatial_y);
  const std::int64_t columns = mapped(kernel, schedule, schedule::LoopKind::spatial_x);
  const std::int64_t triangle = rows * columns * (rows + columns - 2) / 2;
  out.stranded[at(CycleClass::barrier)] = std::min(triangle, rows * columns * cost.classes[at(CycleClass::barrier)]);
  out.held = cost.pe.useful + std::accumulate(out.stranded.begin(), out.stranded.end(), std::int64_t{0});
  return out;
}

ReuseShape reuse_of(const schedule::Bucket& bucket, const execute::BatchCost& batch, const std::vector<bool>& pinned,
                    std::int64_t pinned_bytes, const ingest::Accelerator& accelerator, Clock clock) {
  ReuseShape out;
  out.model = batch.model;
  out.batch = batch.batch;
  out.sequence = batch.sequence;
  out.duration_ns = batch.duration.raw();
  for (const auto& instance : bucket.graph->instances) {
    out.kernel_of_instance.push_back(static_cast<std::int32_t>(instance.kernel.at()));
  }
  const std::int64_t pes = accelerator.array().fanout_x * accelerator.array().fanout_y;
  std::vector<std::int64_t> cycles(bucket.graph->instances.size(), 0);
  for (const execute::ClassCost& layer : batch.layers) {
    const bool used = std::any_of(batch.kernels.begin(), batch.kernels.end(),
                                  [&](const auto& kernel) { return kernel.layer_class == layer.layer_class; });
    if (!used) continue;
    ReuseRow row;
    row.layer_class = layer.layer_class;
    row.cycles = std::accumulate(layer.cycles.begin(), layer.cycles.end(), std::int64_t{0});
    row.movement = layer.movement;
    row.macs = layer.macs;
    row.weight_macs = layer.weight_macs;
    row.weight_elements_in = layer.weight_elements_in;
    row.unique_weight_elements = layer.unique_weight_elements;
    row.feeder_cycles = layer.feeder_cycles;
    row.femtojoules = layer.femtojoules;
    row.pe_cycles = pes * row.cycles;
    for (const execute::KernelCost& cost : batch.kernels) {
      if (cost.layer_class != layer.layer_class) continue;
      const lower::Kernel& kernel = bucket.graph->kernels[cost.kernel];
      for (const std::int32_t i : cost.instances) cycles[static_cast<std::size_t>(i)] = cost.cycles;
      if (kernel.kind != lower::KernelKind::matrix) continue;
      row.array_cycles += cost.cycles * cost.repeats;
      const schedule::KernelSchedule& made = bucket.schedule->kernels[cost.kernel];
      const HeldCycles held = find_held(kernel, made, cost);
      const bool weights = kernel.weight_operand() == static_cast<int>(made.stationary);
      (weights ? row.held : row.held_activation) += held.held * cost.repeats;
      add(weights ? row.stranded : row.stranded_activation, held.stranded, cost.repeats);
    }
    out.classes.push_back(std::move(row));
  }
  add_weight_bytes(bucket, pinned, out.classes);
  add_flows(bucket, batch, pinned, accelerator, clock, out.classes);
  out.total = sum_of(out.classes);
  out.total.unique_weight_bytes = batch.weight_bytes_unique;
  out.total.resident_weight_bytes = batch.weight_bytes_resident;
  const auto levels = schedule::find_levels(accelerator);
  PL_CHECK(levels.ok());  // scheduling has asked the same
  for (int l = 0; l < levels->array; ++l) {
    if (accelerator.levels[static_cast<std::size_t>(l)].off_chip) continue;
    out.buffers.push_back(pressure_of(bucket, l, *levels, pinned_bytes, accelerator, cycles));
  }
  return out;
}

}  // namespace plumbline::study
