#pragma once
// What a mapping of one kernel costs on an accelerator at its nominal clock: bytes by path, cycles, energy.
#include <cstddef>
#include <cstdint>
#include <string>

#include "ingest/accelerator.h"
#include "lower/kernel.h"
#include "schedule/counts.h"
#include "schedule/levels.h"
#include "schedule/mapping.h"
#include "schedule/traffic.h"

namespace plumbline::schedule {

struct MappingPrice {
  std::int64_t off_array_weight = 0;      ///< bytes of operand 0 that the level just outside the array reads
  std::int64_t off_array_activation = 0;  ///< bytes of operand 1 read there, and of finished outputs written home
  std::int64_t psum = 0;                  ///< bytes of unfinished sums moved on chip, outside the array
  std::int64_t off_chip = 0;              ///< bytes through the off-chip link, as if nothing were resident
  std::int64_t cycles = 0;                ///< of the array, or of the off-chip link when that is slower
  double femtojoules = 0;                 ///< of counted actions
};

/// The accelerator's row for the kernel's formats; lower() has checked that there is one.
[[nodiscard]] const ingest::FormatSupport& format_of(const lower::Kernel& kernel,
                                                     const ingest::Accelerator& accelerator);

/// Energy of one bit moved by `action`, or of one MAC; an action without a row costs nothing here (another covers it).
[[nodiscard]] double action_femtojoules(const ingest::Accelerator& accelerator, const std::string& action);

[[nodiscard]] MappingPrice price_mapping(const lower::Kernel& kernel, const ingest::Accelerator& accelerator,
                                         const LevelRoles& levels, std::size_t stationary, const Mapping& mapping,
                                         const AccessCounts& counts);

/// The value of `objective` (energy, latency, edp, off_array_weight_bytes); smaller is better.
[[nodiscard]] double objective_of(const MappingPrice& price, const std::string& objective);

}  // namespace plumbline::schedule
