#pragma once
// Sections of report.html that draw what was measured.
#include <string>
#include <vector>

#include "decide/decision.h"
#include "study/decision_study.h"

namespace plumbline::report {

/// A table; cells are HTML already.
class HtmlTable {
 public:
  explicit HtmlTable(const std::vector<std::string>& heads);
  void row(const std::vector<std::string>& cells);
  [[nodiscard]] std::string text() const;

 private:
  std::string out_;
};

/// Change of each gated slice with its interval, against the margin.
[[nodiscard]] std::string slice_chart(const std::string& title, const std::vector<decide::SliceJudgement>& rows,
                                      double margin, bool lower_is_better, const ingest::Scenario& scenario);

/// Both arms' limits in percent of what is allowed.
[[nodiscard]] std::string limit_chart(const std::string& title, const std::vector<decide::Limit>& baseline,
                                      const std::vector<decide::Limit>& other, const std::string& other_name);

[[nodiscard]] std::string slices_section(const study::DecisionStudy& study, const decide::Decision& decision);
[[nodiscard]] std::string limits_section(const decide::Decision& decision);
[[nodiscard]] std::string attribution_section(const study::DecisionStudy& study, const decide::Decision& decision);
[[nodiscard]] std::string mechanism_section(const decide::Decision& decision);
/// Where the array's cycles go, and the batches that ran.
[[nodiscard]] std::string machine_section(const study::DecisionStudy& study);

}  // namespace plumbline::report
