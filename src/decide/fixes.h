#pragma once
// The choice among tried fixes.
#include "decide/decision.h"

namespace plumbline::decide {

/// Finalists judged on fresh seeds, beside the undo.
inline constexpr std::size_t kMaxFinalists = 3;

struct FixChoice {
  std::optional<Fix> fix;
  std::string why;  ///< why there is none
  std::vector<RejectedFix> rejected;
};

/// The first finalist whose fresh-seed judgement releases; everything else with its reason.
[[nodiscard]] FixChoice choose_fix(const EvidenceTable& table, const Symptom& symptom,
                                   const std::vector<Guard>& guards);

}  // namespace plumbline::decide
