#pragma once
// The mechanism behind a symptom, from counterfactual replay.
#include "decide/decision.h"

namespace plumbline::decide {

struct MechanismResult {
  Mechanism mechanism;
  Bottleneck bottleneck;
};

/// The non-restoring relief that closes most of the gap, if it closes the gate's share; else "not identified".
[[nodiscard]] MechanismResult find_mechanism(const EvidenceTable& table, const Symptom& symptom);

}  // namespace plumbline::decide
