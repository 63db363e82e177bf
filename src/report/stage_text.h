#pragma once
// What each stage verb prints for people.
#include <string>

#include "decide/judge.h"
#include "study/engine.h"

namespace plumbline::report {

[[nodiscard]] std::string ingest_text(const ingest::Scenario& scenario);
[[nodiscard]] std::string lower_text(const study::Prepared& prepared);
[[nodiscard]] std::string schedule_text(const study::Prepared& prepared);
[[nodiscard]] std::string execute_text(const study::Prepared& prepared);
/// One replication.
[[nodiscard]] std::string serve_text(const study::Prepared& prepared, const validate::Summary& summary,
                                     std::uint64_t seed);
/// Means over replications: service, limits, the gated metric per slice, invariants.
[[nodiscard]] std::string validate_text(const decide::Arm& arm, const decide::PreFlight& flight);
/// The pre-flight line.
[[nodiscard]] std::string pre_flight_text(const decide::PreFlight& flight);

}  // namespace plumbline::report
