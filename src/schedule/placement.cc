#include "schedule/placement.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "schedule/roles.h"

namespace plumbline::schedule {
namespace {

class Placer {
 public:
  Placer(const lower::KernelGraph& graph, const std::vector<KernelSchedule>& kernels,
         const ingest::Accelerator& accelerator, const LevelRoles& levels, bool in_place)
      : graph_(graph), kernels_(kernels), levels_(levels), in_place_(in_place) {
    const auto& home = accelerator.levels[static_cast<std::size_t>(levels.home)];
    capacity_ = home.capacity ? home.capacity->raw() : std::numeric_limits<std::int64_t>::max();
  }

  PlacementTrial run() {
    find_lifetimes();
    if (in_place_) write_over_inputs();
    find_working_bytes();
    spill();
    for (std::size_t i = 0; i < graph_.instances.size(); ++i) {
      placement_.occupancy.push_back(live_[i] + working_[i]);
      placement_.peak = std::max(placement_.peak, placement_.occupancy.back());
      for (const lower::BufferUse& use : graph_.instances[i].writes) {
        if (in_place_ && at(use.buffer).over >= 0) placement_.in_place.push_back(static_cast<std::int32_t>(i));
      }
    }
    trial_.placement = std::move(placement_);
    return std::move(trial_);
  }

 private:
  [[nodiscard]] BufferPlacement& at(std::int32_t buffer) {
    return placement_.buffers[static_cast<std::size_t>(buffer)];
  }

  void find_lifetimes() {
    auto& buffers = placement_.buffers;
    buffers.resize(graph_.buffers.size());
    std::vector<bool> seen(buffers.size(), false);
    const auto last = static_cast<std::int32_t>(graph_.instances.size()) - 1;
    for (std::size_t i = 0; i < graph_.instances.size(); ++i) {
      for (const auto* uses : {&graph_.instances[i].reads, &graph_.instances[i].writes}) {
        for (const lower::BufferUse& use : *uses) {
          const auto at = static_cast<std::size_t>(use.buffer);
          if (!seen[at]) buffers[at].first = graph_.buffers[at].model_input ? 0 : static_cast<std::int32_t>(i);
          seen[at] = true;
          buffers[at].last = static_cast<std::int32_t>(i);
        }
      }
    }
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      // Requests and results travel through off-chip memory.
      buffers[b].off_chip = graph_.buffers[b].model_input || graph_.buffers[b].model_output;
      if (graph_.buffers[b].model_output) buffers[b].last = last;
    }
    live_.assign(graph_.instances.size(), 0);
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (!buffers[b].off_chip) occupy(b, graph_.buffers[b].on_chip);
    }
  }

  void occupy(std::size_t b, std::int64_t bytes) {
    for (std::int32_t i = placement_.buffers[b].first; i <= placement_.buffers[b].last; ++i) {
      live_[static_cast<std::size_t>(i)] += bytes;
    }
  }

  /// A result takes the memory of an input that dies where it is made: while the instance runs they are one buffer. In
  /// a chain, whose chunks follow one another, that holds share by share from the first chunk to the last.
  void write_over_inputs() {
    last_write_.assign(placement_.buffers.size(), -1);
    for (std::size_t i = 0; i < graph_.instances.size(); ++i) {
      for (const lower::BufferUse& use : graph_.instances[i].writes) {
        last_write_[static_cast<std::size_t>(use.buffer)] = static_cast<std::int32_t>(i);
      }
    }
    for (std::size_t i = 0; i < graph_.instances.size(); ++i) {
      const lower::Instance& instance = graph_.instances[i];
      if (instance.writes.size() != 1) continue;
      const auto made = static_cast<std::size_t>(instance.writes.front().buffer);
      BufferPlacement& written = placement_.buffers[made];
      if (written.first != static_cast<std::int32_t>(i) || written.off_chip) continue;
      for (const lower::BufferUse& read : instance.reads) {
        const BufferPlacement& dying = at(read.buffer);
        if (!read.replaceable || dying.last != last_write_[made] || dying.off_chip || taken_over(read.buffer)) continue;
        written.over = read.buffer;
        share(made, -1);
        break;
      }
    }
  }

  [[nodiscard]] bool taken_over(std::int32_t buffer) const {
    return std::any_of(placement_.buffers.begin(), placement_.buffers.end(),
                       [&](const BufferPlacement& placed) { return placed.over == buffer; });
  }

  /// Counts the shared memory once (-1) or twice (1) while both buffers live.
  void share(std::size_t written, std::int64_t sign) {
    const auto over = static_cast<std::size_t>(placement_.buffers[written].over);
    for (std::int32_t i = placement_.buffers[written].first; i <= last_write_[written]; ++i) {
      live_[static_cast<std::size_t>(i)] += sign * graph_.buffers[over].on_chip;
    }
  }

  /// One of the two goes off chip, so they share nothing any more.
  void part(std::size_t b) {
    if (placement_.buffers[b].over < 0) return;
    share(b, 1);
    placement_.buffers[b].over = -1;
  }

  /// Bytes of operand 0 at the home level, when it holds parameters of the model; all parameters of its chain when the
  /// chain keeps them.
  [[nodiscard]] std::int64_t weight_piece(const lower::Kernel& kernel, const lower::Instance& instance) const {
    if (levels_.weights != levels_.home) return 0;
    if (instance.kept_bytes > 0) return instance.kept_bytes;
    const std::size_t k = instance.kernel.at();
    std::int64_t bytes = 0;
    if (kernel.kind == lower::KernelKind::matrix) {
      const auto home = static_cast<std::size_t>(levels_.home);
      if (kernel.weight_operand() == 0 && kernels_[k].mapping.levels[home].keeps_operand(0)) {
        bytes = (operand_bits(kernel.einsum.operands[0], kernels_[k].counts.levels[home][0].tile) + 7) / 8;
        const std::int64_t whole = (operand_bits(kernel.einsum.operands[0], kernel.unique_weight_elements) + 7) / 8;
        if (bytes < whole) bytes = std::min(whole, 2 * bytes);
      }
    }
    return bytes;
  }

  /// Working space for an off-chip operand: two chunks of what the batch-like and stream loops cut it into.
  [[nodiscard]] std::int64_t chunk(const lower::Kernel& kernel, const KernelSchedule& schedule,
                                   const lower::BufferUse& use) const {
    if (use.operand < 0 || kernel.kind != lower::KernelKind::matrix) return std::min(use.bytes, kVectorChunk);
    const DimRoles roles = find_roles(kernel.einsum);
    std::int64_t pieces = 1;
    bool cuts = true;
    for (int l = 0; l <= levels_.home && cuts; ++l) {
      for (const Loop& loop : schedule.mapping.levels[static_cast<std::size_t>(l)].loops) {
        if (loop.kind != LoopKind::temporal) continue;
        // Inside a loop that does not move the operand everything is visited again, so it must be there.
        cuts = cuts && ((roles.relevant[static_cast<std::size_t>(use.operand)] >> loop.dim) & 1U) != 0;
        if (cuts) pieces *= loop.bound;
      }
    }
    return std::min(use.bytes, 2 * ((use.bytes + pieces - 1) / pieces));
  }

  void find_working_bytes() {
    working_.assign(graph_.instances.size(), 0);
    for (std::size_t i = 0; i < graph_.instances.size(); ++i) {
      const lower::Instance& instance = graph_.instances[i];
      const std::size_t k = instance.kernel.at();
      working_[i] = weight_piece(graph_.kernels[k], instance);
      for (const auto* uses : {&instance.reads, &instance.writes}) {
        for (const lower::BufferUse& use : *uses) {
          if (placement_.buffers[static_cast<std::size_t>(use.buffer)].off_chip) {
            working_[i] += chunk(graph_.kernels[k], kernels_[k], use);
          }
        }
      }
    }
  }

  void spill() {
    std::size_t i = 0;
    while (i < graph_.instances.size()) {
      if (live_[i] + working_[i] <= capacity_) {
        ++i;
        continue;
      }
      const std::size_t victim = largest_live(i);
      if (victim == graph_.buffers.size()) {
        trial_.too_large = i;
        trial_.needed = working_[i];
        return;
      }
      part(victim);
      for (std::size_t b = 0; b < placement_.buffers.size(); ++b) {
        if (placement_.buffers[b].over == static_cast<std::int32_t>(victim)) part(b);
      }
      BufferPlacement& buffer = placement_.buffers[victim];
      buffer.off_chip = true;
      buffer.spilled = true;
      placement_.spilled += written_bytes(static_cast<std::int32_t>(victim));
      occupy(victim, -graph_.buffers[victim].on_chip);
      // The spilled buffer needs chunks wherever it is used, so what was settled is looked at again.
      find_working_bytes();
      i = 0;
    }
  }

  /// The chunks of a chain use one buffer again and again, and each goes off chip.
  [[nodiscard]] std::int64_t written_bytes(std::int32_t buffer) const {
    std::int64_t bytes = 0;
    for (const lower::Instance& instance : graph_.instances) {
      for (const lower::BufferUse& use : instance.writes) bytes += use.buffer == buffer ? use.bytes : 0;
    }
    return bytes;
  }

  [[nodiscard]] std::size_t largest_live(std::size_t instance) const {
    std::size_t best = graph_.buffers.size();
    for (std::size_t b = 0; b < graph_.buffers.size(); ++b) {
      const BufferPlacement& placed = placement_.buffers[b];
      const auto now = static_cast<std::int32_t>(instance);
      if (placed.off_chip || placed.first > now || placed.last < now || graph_.buffers[b].on_chip == 0) continue;
      if (best == graph_.buffers.size() || graph_.buffers[b].on_chip > graph_.buffers[best].on_chip) best = b;
    }
    return best;
  }

  /// The vector unit streams; two blocks of this many bytes hide an off-chip access. Assumed; small beside any level.
  static constexpr std::int64_t kVectorChunk = 2 * 4096;

  const lower::KernelGraph& graph_;
  const std::vector<KernelSchedule>& kernels_;
  const LevelRoles& levels_;
  bool in_place_ = true;
  std::int64_t capacity_ = 0;
  Placement placement_;
  PlacementTrial trial_;
  std::vector<std::int64_t> live_;
  std::vector<std::int64_t> working_;
  std::vector<std::int32_t> last_write_;  ///< by buffer: instance
};

/// What streaming the scores of fused attention saves: the same graph with these buffers whole.
void state_streaming(const lower::KernelGraph& graph, const std::vector<KernelSchedule>& kernels,
                     const ingest::Accelerator& accelerator, const LevelRoles& levels, Placement& placement) {
  placement.peak_whole = placement.peak;
  placement.spilled_whole = placement.spilled;
  const auto streams = [](const lower::Buffer& buffer) { return buffer.on_chip < buffer.bytes; };
  placement.streamed = std::count_if(graph.buffers.begin(), graph.buffers.end(), streams);
  if (placement.streamed == 0) return;
  lower::KernelGraph whole = graph;
  for (lower::Buffer& buffer : whole.buffers) buffer.on_chip = buffer.bytes;
  const PlacementTrial trial = Placer(whole, kernels, accelerator, levels, true).run();
  if (trial.too_large) return;
  placement.peak_whole = trial.placement.peak;
  placement.spilled_whole = trial.placement.spilled;
}

}  // namespace

PlacementTrial place_activations(const lower::KernelGraph& graph, const std::vector<KernelSchedule>& kernels,
                                 const ingest::Accelerator& accelerator, const LevelRoles& levels) {
  PlacementTrial trial = Placer(graph, kernels, accelerator, levels, true).run();
  if (trial.too_large) return trial;
  state_streaming(graph, kernels, accelerator, levels, trial.placement);
  trial.placement.peak_apart = trial.placement.peak;
  trial.placement.spilled_apart = trial.placement.spilled;
  if (trial.placement.in_place.empty() && trial.placement.spilled == 0) return trial;
  PlacementTrial apart = Placer(graph, kernels, accelerator, levels, false).run();
  if (apart.too_large) return trial;
  const auto cost = [](const Placement& p) { return std::pair(p.spilled, p.peak); };
  // Spilling the largest first is no optimum, so it may happen to do better with less to choose from.
  if (cost(apart.placement) < cost(trial.placement)) {
    const Placement stated = trial.placement;
    trial = apart;
    trial.placement.streamed = stated.streamed;
    trial.placement.peak_whole = stated.peak_whole;
    trial.placement.spilled_whole = stated.spilled_whole;
  }
  trial.placement.peak_apart = apart.placement.peak;
  trial.placement.spilled_apart = apart.placement.spilled;
  return trial;
}

}  // namespace plumbline::schedule
