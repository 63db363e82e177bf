#pragma once
// What one layer class does in one compiled shape: integers as they were counted, ratios made from them in one place.
// docs/reuse.md defines every term.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "execute/cost_table.h"
#include "lower/einsum.h"
#include "study/engine.h"

namespace plumbline::study {

/// Traffic of one operand across one link of the hierarchy, per batch.
struct LinkFlow {
  int outer = 0;  ///< level index
  int inner = 0;  ///< level index; the number of levels stands for the MACs
  lower::Role tensor = lower::Role::inputs;
  std::int64_t words_outer = 0;           ///< at the outer end: a multicast or a spatial reduction counts once
  std::int64_t words_inner = 0;           ///< at the inner end: every receiver or addend counts
  std::int64_t words_returned = 0;        ///< outputs only: unfinished sums read back inward
  std::int64_t bytes = 0;                 ///< at the outer end, returned sums included
  std::int64_t additions = 0;             ///< done in the network
  std::optional<std::int64_t> byte_hops;  ///< absent: no network is described between the two
  [[nodiscard]] std::optional<double> spatial_reuse() const;  ///< inner over outer words
};

/// What one level does for one operand, per batch.
struct LevelFlow {
  int level = 0;
  lower::Role tensor = lower::Role::inputs;
  std::int64_t words_served = 0;   ///< words read towards the MACs; outputs: sums that arrive from there
  std::int64_t words_arrived = 0;  ///< words that came from outside; outputs: words that leave outward
  std::int64_t read_bytes = 0;     ///< as the port sees them, operands that are already on chip not filled again
  std::int64_t write_bytes = 0;
  [[nodiscard]] std::optional<double> temporal_reuse() const;  ///< served over arrived
};

/// Bytes through the ports of one level, the vector unit's included.
struct PortLoad {
  int level = 0;
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
  std::int64_t weight_bytes = 0;      ///< parts of the two above, by tensor: model parameters,
  std::int64_t stationary_bytes = 0;  ///< activations held stationary,
  std::int64_t activation_bytes = 0;  ///< other activations,
  std::int64_t psum_bytes = 0;        ///< and unfinished sums
  std::optional<double> read_limit;   ///< bytes per core cycle; absent = unlimited
  std::optional<double> write_limit;
};

struct ReuseRow {
  std::string layer_class;  ///< empty: all layers of the shape
  std::int64_t cycles = 0;  ///< busy: of the class's kernels; the launch of the batch belongs to none
  execute::Movement movement;
  std::int64_t macs = 0;
  std::int64_t weight_macs = 0;
  std::int64_t weight_elements_in = 0;
  std::int64_t unique_weight_elements = 0;
  std::int64_t unique_weight_bytes = 0;    ///< parameter bytes the class uses, each tensor once
  std::int64_t resident_weight_bytes = 0;  ///< of these, on chip before the batch begins
  std::int64_t feeder_cycles = 0;
  std::int64_t array_cycles = 0;     ///< busy cycles of the kernels that use the array
  std::int64_t pe_cycles = 0;        ///< processing elements × cycles
  std::int64_t held = 0;             ///< PE-cycles that hold a weight which will still be used
  execute::ClassCycles stranded{};   ///< of these without an activation, by cause
  std::int64_t held_activation = 0;  ///< the same for activations held stationary (K, V)
  execute::ClassCycles stranded_activation{};
  std::array<std::int64_t, execute::kEnergyPaths> femtojoules{};
  std::vector<LinkFlow> links;
  std::vector<LevelFlow> levels;
  std::vector<PortLoad> ports;

  // Ratios are absent without a denominator.
  [[nodiscard]] std::optional<double> achieved_reuse() const;    ///< MACs per weight element entering the array
  [[nodiscard]] std::optional<double> ideal_reuse() const;       ///< MACs per unique weight element
  [[nodiscard]] std::optional<double> reuse_efficiency() const;  ///< the former over the latter
  [[nodiscard]] std::optional<double> residency() const;
  [[nodiscard]] std::optional<double> stranded_share() const;  ///< of the held PE-cycles
  [[nodiscard]] std::optional<double> activation_residency() const;
  [[nodiscard]] std::optional<double> inter_inference_residency() const;
  [[nodiscard]] std::optional<double> feeder_utilization() const;
  [[nodiscard]] std::int64_t stranded_total() const;
  [[nodiscard]] std::int64_t off_array_bytes() const;  ///< weights, stationary and other activations, sums
};

/// On-chip bytes of one buffer while each kernel instance runs, in order.
struct BufferPressure {
  int level = 0;
  std::optional<std::int64_t> capacity;
  std::int64_t pinned = 0;              ///< weights that stay, part of every entry
  std::vector<std::int64_t> occupancy;  ///< bytes, by instance
  std::int64_t peak = 0;
  double time_weighted = 0;  ///< bytes, weighted by the cycles of each instance
  std::int64_t spilled = 0;  ///< bytes of buffers that went off chip for want of room
};

/// One compiled shape of one model.
struct ReuseShape {
  std::size_t model = 0;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;  ///< 0 without a sequence
  std::int64_t duration_ns = 0;
  ReuseRow total;
  std::vector<ReuseRow> classes;  ///< in the cost table's order; classes without work left out
  std::vector<BufferPressure> buffers;
  std::vector<std::int32_t> kernel_of_instance;  ///< for the profile's labels: index into the graph's kernels
};

/// PE-cycles that hold what will still be used, and the part of them that waits. docs/reuse.md derives them.
struct HeldCycles {
  std::int64_t held = 0;
  execute::ClassCycles stranded{};
};

/// `cost` of one execution of a matrix kernel whose stationary operand is an input of the product; nothing is held by
/// other kernels.
[[nodiscard]] HeldCycles find_held(const lower::Kernel& kernel, const schedule::KernelSchedule& mapped,
                                   const execute::KernelCost& cost);

/// Every row of one shape. `batch` must be the cost of `bucket`.
[[nodiscard]] ReuseShape reuse_of(const schedule::Bucket& bucket, const execute::BatchCost& batch,
                                  const std::vector<bool>& pinned, std::int64_t pinned_bytes,
                                  const ingest::Accelerator& accelerator, Clock clock);

/// Adds links, levels and ports of every class; see reuse_flows.cc.
void add_flows(const schedule::Bucket& bucket, const execute::BatchCost& batch, const std::vector<bool>& pinned,
               const ingest::Accelerator& accelerator, Clock clock, std::vector<ReuseRow>& classes);

}  // namespace plumbline::study
