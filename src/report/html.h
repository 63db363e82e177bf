#pragma once
// report.html: one self-contained page with charts, no scripts and no external requests.
#include <string>

#include "decide/decision.h"
#include "report/decision_report.h"
#include "study/decision_study.h"

namespace plumbline::report {

/// Everything that comes from inputs is escaped.
[[nodiscard]] std::string report_html(const study::DecisionStudy& study, const decide::Decision& decision,
                                      const Reproduce& reproduce);

}  // namespace plumbline::report
