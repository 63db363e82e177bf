#pragma once
// The first stage whose changes make a gated slice worse, and what later stages add to it.
#include <string>
#include <vector>

#include "decide/decision.h"

namespace plumbline::decide {

struct StageWalk {
  std::string first = "none";
  std::vector<std::string> feedback;
};

/// Adds the changes stage by stage; a stage fails when it harms a gated slice beyond the margin (Holm over slices).
[[nodiscard]] StageWalk walk_stages(const EvidenceTable& table, const Symptom& symptom);

}  // namespace plumbline::decide
