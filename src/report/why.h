#pragma once
// From a number of the decision down to layer class, batch shape, kernel, loop nest and the line that was written.
#include <string>
#include <vector>

#include "decide/decision.h"
#include "study/decision_study.h"

namespace plumbline::report {

/// One step down; `where` is file:line:column of the input, empty where there is none.
struct WhyStep {
  std::string level;  ///< "metric", "slice", "layer class", "batch shape", "kernel", "mapping", "input", …
  std::string text;
  std::string where;
};

struct WhyFinding {
  std::string id;    ///< "symptom", "slice:burst/512" ("slice:encoder:bert/burst/512" of several models), "limit:p95",
                     ///< "change:new-tiles", "fix", "quality"
  std::string what;  ///< one sentence
  std::vector<WhyStep> steps;
};

/// Every finding of a decision with its way down.
[[nodiscard]] std::vector<WhyFinding> why_findings(const study::DecisionStudy& study, const decide::Decision& decision);

/// why.json of the pack.
[[nodiscard]] std::string why_json(const std::vector<WhyFinding>& findings);

/// Reads why.json back. Errors: json-syntax, unknown-document.
Result<std::vector<WhyFinding>> read_why(const SourceRef& source);

/// The text `plumbline why` prints for one finding.
[[nodiscard]] std::string why_text(const WhyFinding& finding);

}  // namespace plumbline::report
