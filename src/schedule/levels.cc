#include "schedule/levels.h"

#include <fmt/format.h>

#include "schedule/schedule.h"

namespace plumbline::schedule {

std::uint32_t held_operands(const ingest::AcceleratorLevel& level) {
  return (level.keeps.weights ? 1U : 0U) | (level.keeps.inputs ? 2U : 0U) | (level.keeps.outputs ? 4U : 0U);
}

Result<LevelRoles> find_levels(const ingest::Accelerator& accelerator) {
  LevelRoles roles;
  const auto count = static_cast<int>(accelerator.levels.size());
  roles.array = count - 1;
  roles.stream = count - 2;
  roles.home = -1;
  roles.weights = -1;
  PL_CHECK(count > 0 && accelerator.levels.back().array);
  for (int l = 0; l < roles.array; ++l) {
    const ingest::AcceleratorLevel& level = accelerator.levels[static_cast<std::size_t>(l)];
    if (level.off_chip) {
      roles.off_chip = l;
      continue;
    }
    if (roles.home < 0 && level.keeps.inputs && level.keeps.outputs) roles.home = l;
    if (roles.weights < 0 && level.keeps.weights) roles.weights = l;
  }
  if (roles.home < 0 || roles.weights < 0) {
    return make_error("unsupported", accelerator.levels.front().span,
                      fmt::format("'{}' has no on-chip level outside the array for {}", accelerator.name,
                                  roles.home < 0 ? "inputs and outputs" : "weights"));
  }
  return roles;
}

Hierarchy make_hierarchy(const ingest::Accelerator& accelerator, double macs_per_pe) {
  Hierarchy hierarchy;
  for (const ingest::AcceleratorLevel& level : accelerator.levels) {
    StorageLevel made;
    made.name = level.name;
    made.off_chip = level.off_chip;
    made.array = level.array;
    if (level.array) {
      made.instances = level.fanout_x * level.fanout_y;
      made.mesh_x = level.fanout_x;
      hierarchy.mac_units = made.instances;
      hierarchy.mac_mesh_x = made.mesh_x;
    }
    hierarchy.levels.push_back(std::move(made));
  }
  hierarchy.macs_per_cycle = macs_per_pe > 1 ? static_cast<std::int64_t>(macs_per_pe) : 1;
  return hierarchy;
}

const ingest::AcceleratorLevel* on_chip_level(const ingest::Accelerator& accelerator) {
  const auto roles = find_levels(accelerator);
  return roles.ok() ? &accelerator.levels[static_cast<std::size_t>(roles->home)] : nullptr;
}

}  // namespace plumbline::schedule
