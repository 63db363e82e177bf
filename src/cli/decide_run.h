#pragma once
// One whole decision with the files of its pack: what `decide` prints and `reproduce` makes again.
#include <cstdint>
#include <map>
#include <string>

#include "decide/decision.h"
#include "report/decision_report.h"
#include "study/decision_study.h"

namespace plumbline::cli {

struct DecideRequest {
  std::string baseline;
  std::string candidate;
  std::int64_t pairs = 0;
  unsigned threads = 0;
  bool files = true;  ///< make the pack's files
};

struct MadeDecision {
  study::DecisionStudy study;
  decide::Decision decision;
  std::map<std::string, std::string> files;
};

/// Reads, studies, decides and writes the files to memory. Errors: the readers' and the stages' diagnostics.
Result<MadeDecision> run_decision(const DecideRequest& request);

/// The instruction set that bit-exactness is promised on: "x86-64 avx512", "x86-64 avx2", …
[[nodiscard]] std::string instruction_set();

}  // namespace plumbline::cli
