#pragma once
// Placement and chains of one compiled shape, for people.
#include <string>

#include "schedule/schedule.h"

namespace plumbline::report {

/// Instances that write over an input, and what that saves; what streaming scores between fused attention products
/// saves. Empty when there is neither.
[[nodiscard]] std::string placement_text(const schedule::Bucket& bucket);

/// One line per chain: taken or not, how it is cut, what that saves and costs, and why.
[[nodiscard]] std::string chains_text(const schedule::Schedule& schedule);

}  // namespace plumbline::report
