#pragma once
// The recorded replication as a trace that Perfetto opens.
#include <string>

#include "study/decision_study.h"

namespace plumbline::report {

/// Chrome JSON trace events: one process per arm with its batches, what runs inside them, queue length and power.
/// Only the first burst period (or the first seconds of steady traffic) is shown; `otherData` says what was left out.
[[nodiscard]] std::string perfetto_json(const study::DecisionStudy& study);

}  // namespace plumbline::report
