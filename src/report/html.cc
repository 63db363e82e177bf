#include "report/html.h"

namespace plumbline::report {
std::string report_html(const study::DecisionStudy&, const decide::Decision&, const Reproduce&) { return ""; }
}  // namespace plumbline::report
