#pragma once
// The decision in three dresses: JSON for machines, Markdown to keep, a terminal summary to act on.
#include <string>
#include <vector>

#include "decide/decision.h"
#include "ingest/library.h"
#include "study/decision_study.h"

namespace plumbline::report {

/// What it takes to make the same bytes again.
struct Reproduce {
  std::string command;  ///< as a user would type it, paths relative
  std::uint64_t seed = 0;
  std::vector<ingest::InputFile> inputs;  ///< every file read, sorted by path
};

/// decision.json (docs/schema/decision.schema.json). Percent fields are in percent; `ci95` is the 95 % interval of the
/// percent field beside it; what cannot be had is null with a sibling `…_why`.
[[nodiscard]] std::string decision_json(const study::DecisionStudy& study, const decide::Decision& decision,
                                        const Reproduce& reproduce);

/// decision.md.
[[nodiscard]] std::string decision_markdown(const study::DecisionStudy& study, const decide::Decision& decision,
                                            const Reproduce& reproduce);

/// The terminal summary: about 25 lines of at most `width` columns (at least 60), ANSI colours where `colour`.
[[nodiscard]] std::string decision_text(const study::DecisionStudy& study, const decide::Decision& decision,
                                        bool colour, int width);

}  // namespace plumbline::report
