#pragma once
// Why a schedule's dataflows won, and what its search proved, in words.
#include <string>

#include "core/quantity.h"
#include "schedule/schedule.h"

namespace plumbline::report {

/// Per layer class the dataflows tried and why the chosen one won: locality, then movement cost, then throughput and
/// power at `clock`. Empty when no kernel had a choice.
[[nodiscard]] std::string dataflow_choice_text(const schedule::Bucket& bucket, Hertz clock);

/// "proven within 0.4 % of the least energy-delay product …"; never "optimal" unless the bound closes.
[[nodiscard]] std::string proof_text(const schedule::Proof& proof);

}  // namespace plumbline::report
