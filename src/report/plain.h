#pragma once
// Sentences that the terminal summary, decision.md and report.html share.
#include <string>
#include <vector>

#include "decide/decision.h"

namespace plumbline::report {

/// "off-array weight bytes per inference +41 % in burst, 512-token requests (14.2 → 20.1 MB, 95 % interval …)".
[[nodiscard]] std::string symptom_sentence(const decide::Decision& decision, const ingest::Scenario& scenario);

/// `text` with metric and slice names as the decision writes them replaced by plain words.
[[nodiscard]] std::string plain_words(std::string text, const decide::Decision& decision,
                                      const ingest::Scenario& scenario);

/// Indices into EvidenceTable::changes, largest harm first.
[[nodiscard]] std::vector<std::size_t> changes_by_harm(const decide::EvidenceTable& table,
                                                       const decide::Decision& decision);

/// "new-tiles (schedule, compiler-team): +5.9 MB, 98 % of the change".
[[nodiscard]] std::string change_sentence(const ingest::Change& change, const decide::Attribution& attribution,
                                          bool with_reason);

/// "schedule, amplified by serve (+2.5 %)".
[[nodiscard]] std::string stage_sentence(const decide::Decision& decision);

/// The rejected fix that someone under pressure would reach for and that makes things worse: the clock before others.
/// nullptr when none does.
[[nodiscard]] const decide::RejectedFix* tempting_wrong_fix(const decide::Decision& decision);

/// Title of a tried fix; its id when it is not in the table.
[[nodiscard]] std::string title_of(const decide::EvidenceTable& table, const std::string& id);

/// What to do now, most important first; commands are complete. `pack` is the folder of the pack as the reader would
/// name it, empty when there is none.
[[nodiscard]] std::vector<std::string> next_steps(const decide::EvidenceTable& table, const decide::Decision& decision,
                                                  const std::string& pack);

}  // namespace plumbline::report
