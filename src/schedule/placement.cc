#include "schedule/placement.h"

#include <algorithm>
#include <limits>

#include "schedule/roles.h"

namespace plumbline::schedule {
namespace {

class Placer {
 public:
  Placer(const lower::KernelGraph& graph, const std::vector<KernelSchedule>& kernels,
         const ingest::Accelerator& accelerator, const LevelRoles& levels)
      : graph_(graph), kernels_(kernels), levels_(levels) {
    const auto& home = accelerator.levels[static_cast<std::size_t>(levels.home)];
    capacity_ = home.capacity ? home.capacity->raw() : std::numeric_limits<std::int64_t>::max();
  }

  PlacementTrial run() {
    find_lifetimes();
    find_working_bytes();
    spill();
    for (std::size_t i = 0; i < graph_.instances.size(); ++i) {
      placement_.occupancy.push_back(live_[i] + working_[i]);
      placement_.peak = std::max(placement_.peak, placement_.occupancy.back());
    }
    trial_.placement = std::move(placement_);
    return std::move(trial_);
  }

 private:
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

  /// Bytes of operand 0 at the home level, when it holds parameters of the model.
  [[nodiscard]] std::int64_t weight_piece(const lower::Kernel& kernel, std::size_t k) const {
    if (levels_.weights != levels_.home) return 0;
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
      working_[i] = weight_piece(graph_.kernels[k], k);
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
      BufferPlacement& buffer = placement_.buffers[victim];
      buffer.off_chip = true;
      buffer.spilled = true;
      placement_.spilled += graph_.buffers[victim].bytes;
      occupy(victim, -graph_.buffers[victim].on_chip);
      // The spilled buffer needs chunks wherever it is used, so what was settled is looked at again.
      find_working_bytes();
      i = 0;
    }
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
  std::int64_t capacity_ = 0;
  Placement placement_;
  PlacementTrial trial_;
  std::vector<std::int64_t> live_;
  std::vector<std::int64_t> working_;
};

}  // namespace

PlacementTrial place_activations(const lower::KernelGraph& graph, const std::vector<KernelSchedule>& kernels,
                                 const ingest::Accelerator& accelerator, const LevelRoles& levels) {
  return Placer(graph, kernels, accelerator, levels).run();
}

}  // namespace plumbline::schedule
