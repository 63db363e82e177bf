#pragma once
// The five kinds of evidence: what each shows here, what it does not prove, and the command that goes further.
#include "decide/decision.h"

namespace plumbline::decide {

struct EvidenceMatrix {
  std::vector<EvidenceRow> rows;
  std::vector<Guard> guards;  ///< one per kind the gate requires
};

/// Names by which a gate may require evidence.
[[nodiscard]] std::vector<std::string> evidence_kinds();

[[nodiscard]] EvidenceMatrix evidence_matrix(const EvidenceTable& table);

}  // namespace plumbline::decide
