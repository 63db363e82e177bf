#pragma once
// What one padded batch costs: cycles by exclusive class, bytes by what they carry, energy by path. The request plane
// (serve/) knows nothing else of the accelerator.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/quantity.h"

namespace plumbline::execute {

/// Exclusive classes of array cycles (DESIGN §4); a cycle has exactly one.
enum class CycleClass : std::uint8_t {
  useful,
  preload_exposed,
  weight_wait,
  feeder,
  psum_drain,
  sram,
  noc,
  dram,
  barrier,
  vector_unit,
  host,
};
inline constexpr std::size_t kCycleClasses = 11;
inline constexpr std::array<std::string_view, kCycleClasses> kCycleClassNames = {
    "useful", "preload_exposed", "weight_wait", "feeder", "psum_drain", "sram", "noc",
    "dram",   "barrier",         "vector_unit", "host"};
using ClassCycles = std::array<std::int64_t, kCycleClasses>;

/// Energy paths; their sum is the dynamic energy.
enum class EnergyPath : std::uint8_t {
  mac,
  array_registers,
  weights_sram,
  activations_sram,
  psums,
  off_chip,
  vector_unit
};
inline constexpr std::size_t kEnergyPaths = 7;
inline constexpr std::array<std::string_view, kEnergyPaths> kEnergyPathNames = {
    "mac", "array_registers", "weights_sram", "activations_sram", "psums", "off_chip", "vector_unit"};

/// Bytes moved by one batch, by what they are.
struct Movement {
  std::int64_t off_array_weight = 0;      ///< model parameters read by the level just outside the array
  std::int64_t off_array_stationary = 0;  ///< activations held stationary (K, V), read likewise
  std::int64_t off_array_activation = 0;  ///< streamed inputs read and outputs written at that level
  std::int64_t psum = 0;                  ///< partial sums read and written outside the array
  std::int64_t off_chip_weight = 0;
  std::int64_t off_chip_activation = 0;
  friend bool operator==(const Movement&, const Movement&) = default;
};

/// PE-cycles of the array, a second partition (useful, padded, unmapped, idle sum to PEs × cycles).
struct PeCycles {
  std::int64_t useful = 0;
  std::int64_t padded = 0;
  std::int64_t unmapped = 0;
  std::int64_t idle = 0;
};

/// Cost of one kind of layer within a batch.
struct ClassCost {
  std::string layer_class;
  ClassCycles cycles{};
  Movement movement;
  std::int64_t macs = 0;  ///< of the padded shape
  std::int64_t unique_weight_bytes = 0;
  std::int64_t weight_elements_in = 0;  ///< weight elements that entered the array
  std::int64_t unique_weight_elements = 0;
  std::int64_t weight_macs = 0;    ///< MACs of kernels that have weights
  std::int64_t feeder_cycles = 0;  ///< cycles the feeder delivered to every mapped row
  std::array<std::int64_t, kEnergyPaths> femtojoules{};
  PeCycles pe;
};

/// A kernel as it ran, for the trace, `why` and the report.
struct KernelCost {
  std::string name;
  std::string layer_class;
  std::int64_t repeats = 1;             ///< identical kernels in the graph
  std::int64_t cycles = 0;              ///< of one
  ClassCycles classes{};                ///< of one
  Movement movement;                    ///< of one
  std::string mapping;                  ///< readable loop nest
  std::size_t kernel = 0;               ///< index into KernelGraph::kernels
  std::vector<std::int32_t> instances;  ///< into KernelGraph::instances: those that cost this, `repeats` of them
  std::int64_t weight_elements_in = 0;  ///< of one
  std::int64_t feeder_cycles = 0;       ///< of one
  PeCycles pe;                          ///< of one
};

/// One padded batch shape of one model.
struct BatchCost {
  std::size_t model = 0;
  std::int64_t batch = 0;     ///< bucket
  std::int64_t sequence = 0;  ///< bucket, 0 without a sequence
  std::int64_t cycles = 0;    ///< Σ classes
  Nanoseconds duration;       ///< at the table's clock, host launch included
  ClassCycles classes{};
  std::vector<ClassCost> layers;  ///< by layer class, in a fixed order shared by the whole table
  std::vector<KernelCost> kernels;
  std::int64_t femtojoules = 0;            ///< dynamic energy of the batch
  std::int64_t weight_bytes_resident = 0;  ///< unique weight bytes already on chip when the batch begins
  std::int64_t weight_bytes_unique = 0;
};

struct CostTable {
  Clock clock;
  std::vector<std::string> layer_classes;  ///< index = ClassCost position in BatchCost::layers
  std::vector<std::int64_t> batch_buckets;
  std::vector<std::int64_t> sequence_buckets;  ///< {0} without a sequence
  std::size_t models = 1;
  std::vector<BatchCost> entries;  ///< [model][batch bucket][sequence bucket], row-major
  Watts idle{0};
  Watts active{0};
  Watts host{0};

  [[nodiscard]] std::size_t index(std::size_t model, std::size_t batch_index, std::size_t sequence_index) const {
    return (model * batch_buckets.size() + batch_index) * sequence_buckets.size() + sequence_index;
  }
};

}  // namespace plumbline::execute
