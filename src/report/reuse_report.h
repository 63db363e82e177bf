#pragma once
// The reuse-and-bandwidth report and the shape sensitivity, as text, JSON, Markdown and a self-contained page.
#include <string>

#include "study/reuse_study.h"
#include "study/sensitivity.h"

namespace plumbline::report {

/// kind "reuse": everything that was counted.
[[nodiscard]] std::string reuse_json(const study::ReuseReport& report);
[[nodiscard]] std::string reuse_text(const study::ReuseReport& report);
[[nodiscard]] std::string reuse_markdown(const study::ReuseReport& report);
[[nodiscard]] std::string reuse_html(const study::ReuseReport& report);

/// kind "sensitivity".
[[nodiscard]] std::string sensitivity_json(const study::SensitivityReport& report);
[[nodiscard]] std::string sensitivity_text(const study::SensitivityReport& report);
[[nodiscard]] std::string sensitivity_markdown(const study::SensitivityReport& report);
[[nodiscard]] std::string sensitivity_html(const study::SensitivityReport& report);

}  // namespace plumbline::report
