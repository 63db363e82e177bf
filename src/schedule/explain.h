#pragma once
// Why a kernel takes as long as it does: every level's and link's throttled time, the binding one with its tensor, what
// the cycles consist of, and what would change if one loop moved. docs/networks.md explains the table.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "ingest/accelerator.h"
#include "lower/kernel.h"
#include "schedule/levels.h"
#include "schedule/price_mapping.h"
#include "schedule/schedule.h"

namespace plumbline::schedule {

/// One resource and the time it is busy when nothing else holds it up.
struct ResourceTime {
  std::string resource;                   ///< "array", "sram read", "network of the inputs"
  std::string link;                       ///< networks: the limiting link
  std::string tensor;                     ///< the one that moves most through it; empty for the array
  std::int64_t bytes = 0;                 ///< networks: over the limiting link
  std::optional<double> bytes_per_cycle;  ///< absent = unlimited
  std::int64_t cycles = 0;                ///< 0 when unlimited
  std::int64_t byte_hops = 0;             ///< networks
  bool exact = true;                      ///< false: an upper bound (network_traffic.h)
};

/// Cycles by exclusive cause, outermost late level first; they sum to the price's cycles.
struct CyclePart {
  std::string cause;
  std::int64_t cycles = 0;
};

/// The same mapping with one loop elsewhere. Nothing is placed again: operands stay at the levels that keep them.
struct LoopMove {
  std::string loop;     ///< "N in 3 (sram)"
  std::string move;     ///< "out to hbm", "in to accumulator", "swapped with K in 2"
  std::string refused;  ///< why it is not valid; empty = it is
  MappingPrice price;
};

struct KernelExplanation {
  MappingPrice price;  ///< alone at the nominal clock, nothing on chip before
  std::vector<CyclePart> parts;
  std::vector<ResourceTime> resources;  ///< levels outermost first, networks, the array
  std::size_t binding = 0;              ///< busy longest; of equals the array, then the outermost
  std::vector<LoopMove> moves;          ///< loops outermost first
};

/// `kernel` must be a matrix kernel. Errors: those of find_array_network; overflow.
Result<KernelExplanation> explain_kernel(const lower::Kernel& kernel, const ingest::Accelerator& accelerator,
                                         const LevelRoles& levels, const KernelSchedule& schedule);

}  // namespace plumbline::schedule
