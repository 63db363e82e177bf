#pragma once
// The evidence pack: every file by its name in the folder. No clock, host name or absolute path of our own in it.
#include <map>
#include <string>
#include <vector>

#include "decide/decision.h"
#include "report/decision_report.h"
#include "study/decision_study.h"

namespace plumbline::report {

/// What the manifest says beside the artefacts.
struct Manifest {
  std::string version;          ///< of Plumbline
  std::string instruction_set;  ///< what bit-exactness of bytes is promised on
  Reproduce reproduce;
  std::map<std::string, std::string> attachments;  ///< further files to store, e.g. model bytes under "inputs/"
};

/// Commands whose output the pack stores, for StudyOptions::commands: the stage verbs on both arms. `pairs` as given to
/// `decide`, 0 = as the gate says.
[[nodiscard]] std::vector<decide::CommandRun> pack_commands(const std::string& baseline_path,
                                                            const std::string& candidate_path, std::int64_t pairs);

/// File name → bytes. Writers run on `threads` threads; the bytes do not depend on it.
[[nodiscard]] std::map<std::string, std::string> pack_files(const study::DecisionStudy& study,
                                                            const decide::Decision& decision, const Manifest& manifest,
                                                            unsigned threads = 1);

}  // namespace plumbline::report
