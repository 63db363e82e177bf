#pragma once
// The study behind `decide`: what to run, in which order, and the evidence table it makes.
#include <string>
#include <vector>

#include "decide/decision.h"
#include "study/engine.h"

namespace plumbline::study {

struct StudyOptions {
  std::int64_t pairs = 0;  ///< 0: as the gate says
  std::string pack_path;
  std::vector<decide::CommandRun> commands;
};

/// One arm's recorded run on the first seed, for the trace.
struct Recording {
  Prepared prepared;
  std::shared_ptr<const serve::ArrivalTrace> trace;
  serve::Run run;
};

struct DecisionStudy {
  decide::EvidenceTable table;
  Recording baseline;
  Recording candidate;
  ingest::Value baseline_document;   ///< resolved
  ingest::Value candidate_document;  ///< resolved
  ingest::Value fixed_document;      ///< resolved candidate + chosen fix; null without one
};

/// Measures everything decide() needs. Errors: what makes the baseline or the candidate unreadable.
Result<DecisionStudy> study_decision(const ingest::Comparison& comparison, Engine& engine, const StudyOptions& options);

/// Keeps the resolved document of candidate + chosen fix with the study, for the pack.
void keep_fixed_document(DecisionStudy& study, const decide::Decision& decision);

/// Pre-flight figures of a prepared arm with runs.
[[nodiscard]] decide::PreFlight pre_flight(const Prepared& prepared, const decide::Arm& arm);

/// Seeds of the judging, ranking (a prefix of it) and fresh replications.
[[nodiscard]] std::vector<std::uint64_t> judging_seeds(const ingest::Gate& gate, std::int64_t pairs);
[[nodiscard]] std::vector<std::uint64_t> fresh_seeds(const ingest::Gate& gate, std::int64_t pairs);

}  // namespace plumbline::study
