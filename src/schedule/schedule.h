#pragma once
// How each kernel runs: its mapping with exact counts, where activations live, and which weights stay on chip.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "ingest/accelerator.h"
#include "ingest/scenario.h"
#include "lower/kernel.h"
#include "schedule/chain_choice.h"
#include "schedule/counts.h"
#include "schedule/hierarchy.h"
#include "schedule/mapping.h"
#include "schedule/mapping_cache.h"
#include "schedule/price_mapping.h"
#include "schedule/proof.h"

namespace plumbline::schedule {

/// What one dataflow can do for a kernel at its best under the objective.
struct DataflowChoice {
  std::string dataflow;
  std::string failure;  ///< why it has no mapping; empty = it has one
  MappingPrice price;
  double value = 0;  ///< of the objective
};

/// The mapping of one matrix kernel. Vector kernels have an empty one.
struct KernelSchedule {
  std::string dataflow;
  std::size_t stationary = 0;  ///< operand the array holds
  Hierarchy hierarchy;
  Mapping mapping;
  AccessCounts counts;
  MappingPrice price;                   ///< of `mapping`
  std::string text;                     ///< readable loop nest, "for M in 2 (sram) …"
  std::int64_t evaluated = 0;           ///< mappings compared
  std::vector<DataflowChoice> choices;  ///< the simple tiling of each dataflow tried, in order of name
  std::optional<Proof> proof;           ///< of a certified choice; its gap is this kernel's alone
};

/// Where an activation buffer lives and when.
struct BufferPlacement {
  std::int32_t first = 0;  ///< index of the instance that writes it (or 0: there from the start)
  std::int32_t last = 0;   ///< index of the last instance that reads it
  bool off_chip = false;   ///< spilled, or a model input or output
  bool spilled = false;    ///< off chip for want of capacity
  std::int32_t over = -1;  ///< the dying buffer it is written over; -1 = it has memory of its own
};

struct Placement {
  std::vector<BufferPlacement> buffers;  ///< parallel to KernelGraph::buffers
  std::vector<std::int64_t> occupancy;   ///< on-chip activation and working bytes while instance i runs
  std::int64_t peak = 0;                 ///< largest of them
  std::int64_t spilled = 0;              ///< bytes written to spilled buffers
  std::vector<std::int32_t> in_place;    ///< instances that write over an input, ascending
  std::int64_t peak_apart = 0;           ///< peak and spilled bytes if every result had memory of its own
  std::int64_t spilled_apart = 0;
  std::int64_t streamed = 0;    ///< buffers of which attention fusion keeps a part only (Buffer::on_chip)
  std::int64_t peak_whole = 0;  ///< peak and spilled bytes if they had to exist whole
  std::int64_t spilled_whole = 0;
};

struct Schedule {
  std::vector<KernelSchedule> kernels;  ///< parallel to KernelGraph::kernels
  Placement placement;
  std::optional<Proof> proof;       ///< of a certified schedule: all matrix kernels together, one after the other
  std::vector<ChainChoice> chains;  ///< `chains` fusion only (execute/choose_chains.h)
};

/// A compiled shape of a model.
struct Bucket {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;  ///< 0 without a sequence
  std::shared_ptr<const lower::KernelGraph> graph;
  std::shared_ptr<const Schedule> schedule;
};

struct ModelSchedules {
  std::string name;
  std::vector<Bucket> buckets;  ///< [batch bucket][sequence bucket], row-major
};

/// Parameters that stay on chip across batches, decided once for all compiled shapes of all models.
struct Residency {
  std::vector<std::vector<bool>> pinned;  ///< [model][TensorId]
  std::int64_t pinned_bytes = 0;
  std::int64_t available_bytes = 0;  ///< on-chip capacity less the largest bucket's peak; -1 = unbounded
};

/// Is a parameter on chip already when an instance that uses it begins?
[[nodiscard]] inline bool on_chip_before(const lower::ParameterUse& use, const std::vector<bool>& pinned) {
  return use.kept || (!use.gathered && use.tensor.at() < pinned.size() && pinned[use.tensor.at()]);
}

class MappingMemo;

/// Chooses a mapping for every distinct kernel and places the activations. A constraint row binds the matrix kernels it
/// matches that have its dimensions. `search: certified` asks `cache` before it searches (none: a cache of this call's
/// own); `memo` keeps simple tilings from call to call, for one accelerator and options. Errors: does-not-fit,
/// bad-value (a constraint's level), unknown-name (dataflow).
Result<Schedule> schedule(const lower::KernelGraph& graph, const ingest::Accelerator& accelerator,
                          const ingest::CompileOptions& options,
                          const std::map<std::string, ingest::Dataflow>& dataflows, MappingCache* cache = nullptr,
                          MappingMemo* memo = nullptr);

/// Every constraint row must bind a kernel of some model, and dataflow_by_class name a layer class. Errors: bad-value.
Status check_constraints(const std::vector<ModelSchedules>& models, const ingest::CompileOptions& options);

/// Pins whole parameter tensors so that the pinned bytes are the most that fit (ties: earliest tensors first).
/// `residency: none` pins nothing. Gathered embedding tables are never pinned. Runs check_constraints first, being the
/// first step that sees every model and shape. Errors: bad-value, unsupported.
Result<Residency> plan_residency(const std::vector<ModelSchedules>& models, const ingest::Accelerator& accelerator,
                                 const ingest::CompileOptions& options);

/// The storage levels of `accelerator` for one kernel format, without capacities and rates: the tiling keeps within the
/// capacities, array_time() knows the rates. `macs_per_pe` per cycle.
[[nodiscard]] Hierarchy make_hierarchy(const ingest::Accelerator& accelerator, double macs_per_pe);

/// The outermost on-chip level that keeps inputs and outputs: activations live there. nullptr when there is none.
[[nodiscard]] const ingest::AcceleratorLevel* on_chip_level(const ingest::Accelerator& accelerator);

}  // namespace plumbline::schedule
