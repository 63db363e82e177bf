#pragma once
// Judges a file of Timeloop reference cases (recognized by `readme` and `cases[].mapping`) against our counts.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/result.h"

namespace plumbline::schedule {

struct VerifyOutcome {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  std::vector<std::string> lines;  ///< one per failing or skipped case
};

/// True when the document looks like Timeloop reference cases.
[[nodiscard]] bool is_timeloop_cases(const nlohmann::json& document);

/// Every case: total reads, fills and updates, tiles, MACs and cycles exactly; per-instance figures, utilisation,
/// throttle and network ingresses where the file's own recount agrees. Where it does not, the recounted value of each
/// listed field stands in for Timeloop's, and its runs without neighbour links for those with.
/// Errors: unknown-document.
Result<VerifyOutcome> verify_timeloop(const nlohmann::json& document);

}  // namespace plumbline::schedule
