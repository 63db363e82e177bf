#pragma once
// One kernel in one situation: which of its operands are on chip already.
#include <array>
#include <cstdint>
#include <vector>

#include "core/result.h"
#include "execute/cost_table.h"
#include "ingest/accelerator.h"
#include "lower/kernel.h"
#include "schedule/levels.h"
#include "schedule/schedule.h"

namespace plumbline::execute {

/// Where the data of an instance is; parallel to its reads, writes and parameters.
struct Situation {
  std::size_t kernel = 0;
  std::vector<bool> reads_off_chip;
  std::vector<bool> writes_off_chip;
  std::vector<bool> parameters_on_chip;  ///< pinned, or kept by the chain that has begun
  bool again = false;                    ///< a later chunk of a layer: its parameters are counted already
  friend bool operator==(const Situation&, const Situation&) = default;
};

/// Cost of one execution.
struct SituationCost {
  ClassCycles classes{};
  Movement movement;
  std::array<std::int64_t, kEnergyPaths> femtojoules{};
  PeCycles pe;
  std::int64_t weight_elements_in = 0;
  std::int64_t feeder_cycles = 0;
  [[nodiscard]] std::int64_t cycles() const;
};

/// Prices of the energy table, looked up once. Errors: missing-key (a level without actions), unknown-name.
struct Prices {
  std::vector<double> level_read;  ///< femtojoules per bit, by level
  std::vector<double> level_write;
  double operation = 0;  ///< femtojoules per operation of the vector unit
};
Result<Prices> find_prices(const ingest::Accelerator& accelerator);

struct CostContext {
  const ingest::Accelerator& accelerator;
  const schedule::LevelRoles& levels;
  const Prices& prices;
  Clock clock;
};

/// `instance` is any instance in this situation: its sizes are the kernel's. Errors: unknown-name (the energy of the
/// kernel's format), overflow (more than 2^63 − 1 femtojoules).
Result<SituationCost> cost_kernel(const CostContext& context, const lower::Kernel& kernel,
                                  const schedule::KernelSchedule& schedule, const lower::Instance& instance,
                                  const Situation& situation);

/// Host time in device cycles, rounded up.
[[nodiscard]] std::int64_t host_cycles(Seconds time, Clock clock);

}  // namespace plumbline::execute
