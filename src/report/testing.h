#pragma once
// The embedded burst comparison, measured on a few pairs, for the tests of report/.
#include <filesystem>

#include "report/pack.h"

namespace plumbline::report {

struct Measured {
  study::DecisionStudy study;
  decide::Decision decision;
  Manifest manifest;
};

// Fewer than 7 pairs cannot reject anything at 5 % after Holm over four slices.
inline constexpr std::int64_t kTestPairs = 8;

/// Measured once per test program; paths are relative to the source folder, which becomes the current one.
inline const Measured& measured_burst() {
  static const Measured measured = [] {
    std::filesystem::current_path(PLUMBLINE_SOURCE_DIR);
    const std::string baseline = "catalog/scenarios/burst/baseline.yaml";
    const std::string candidate = "catalog/scenarios/burst/candidate.yaml";
    ingest::Library library("catalog");
    auto comparison = ingest::read_comparison(baseline, candidate, library);
    PL_CHECK(comparison.ok());
    study::Engine engine(library, 2);
    study::StudyOptions options;
    options.pairs = kTestPairs;
    options.commands = pack_commands(baseline, candidate, kTestPairs);
    auto study = study::study_decision(*comparison, engine, options);
    PL_CHECK(study.ok());
    Measured out{std::move(study).value(), {}, {}};
    out.decision = decide::decide(out.study.table);
    study::keep_fixed_document(out.study, out.decision);
    out.manifest.version = "0.0.0";
    out.manifest.instruction_set = "test";
    out.manifest.reproduce = {"plumbline decide " + baseline + " " + candidate, out.decision.seed, library.inputs()};
    return out;
  }();
  return measured;
}

}  // namespace plumbline::report
