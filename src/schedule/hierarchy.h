#pragma once
// The storage hierarchy as the mapping model sees it: levels from off-chip inward, with fan-out between them.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plumbline::schedule {

struct StorageLevel {
  std::string name;
  std::int64_t instances = 1;                  ///< total at this level
  std::int64_t mesh_x = 1;                     ///< how many of them lie along X; instances / mesh_x along Y
  std::optional<std::int64_t> capacity_bits;   ///< per instance; absent = unbounded
  std::optional<double> read_bits_per_cycle;   ///< per instance; absent = unlimited
  std::optional<double> write_bits_per_cycle;  ///< per instance; absent = unlimited
  bool off_chip = false;
  bool array = false;  ///< the array itself; off-array traffic is what the next level out reads
};

struct Hierarchy {
  std::vector<StorageLevel> levels;  ///< outermost first
  std::int64_t mac_units = 1;        ///< below the innermost level
  std::int64_t mac_mesh_x = 1;
  std::int64_t macs_per_cycle = 1;   ///< per MAC unit, for the kernel's format
  std::int64_t cycles_per_step = 1;  ///< a unit takes this many cycles for macs_per_cycle
};

/// Cycles of `steps` temporal steps when nothing throttles; at most INT64_MAX.
[[nodiscard]] inline std::int64_t compute_cycles(const Hierarchy& hierarchy, std::int64_t steps) {
  const __int128 busy = static_cast<__int128>(steps) * hierarchy.cycles_per_step;
  const std::int64_t rate = hierarchy.macs_per_cycle;
  return static_cast<std::int64_t>(std::min<__int128>((busy + rate - 1) / rate, INT64_MAX));
}

}  // namespace plumbline::schedule
