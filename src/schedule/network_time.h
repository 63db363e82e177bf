#pragma once
// The networks between the array and the levels outside it, loaded by one execution of a kernel.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "core/result.h"
#include "ingest/accelerator.h"
#include "lower/einsum.h"
#include "schedule/levels.h"
#include "schedule/mapping.h"
#include "schedule/network.h"

namespace plumbline::schedule {

struct TensorLoad {
  std::size_t operand = 0;
  int outer = 0;  ///< innermost keeper outside the array
  int inner = 0;  ///< the array, or the number of levels for its MACs
  std::string topology;
  NetworkLoad moved;     ///< operands in, sums out
  NetworkLoad returned;  ///< unfinished sums that come back in
  bool exact = true;     ///< false: an upper bound (network_traffic.h)
  std::int64_t byte_hops = 0;
  std::string limiting;                   ///< the link that takes longest; empty when nothing moves
  std::int64_t limiting_bits = 0;         ///< over that link, other tensors' included where wires are shared
  std::optional<double> bytes_per_cycle;  ///< of every link; absent = unlimited
  std::int64_t cycles = 0;                ///< of the limiting link
};

struct ArrayNetwork {
  std::vector<TensorLoad> tensors;     ///< by operand; empty when the array's networks are ideal
  std::int64_t cycles = 0;             ///< of the slowest
  std::optional<std::size_t> binding;  ///< the slowest tensor, when any takes time
};

/// Errors: those of the mapping, of find_network_traffic and of load_network; overflow.
Result<ArrayNetwork> find_array_network(const lower::Einsum& einsum, const Mapping& mapping,
                                        const ingest::Accelerator& accelerator, const LevelRoles& levels, Clock clock);

}  // namespace plumbline::schedule
