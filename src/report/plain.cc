#include "report/plain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/printable.h"
#include "report/words.h"
#include "validate/metrics.h"

namespace plumbline::report {
namespace {

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

bool overlaps(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + ".") || b.starts_with(a + ".");
}

// Two changes may not set one key, so a patch of a changed key goes into that change.
std::string apply_sentence(const decide::EvidenceTable& table, const decide::Fix& fix, const std::string& pack) {
  const std::string patch = pack.empty() ? "the patch" : fmt::format("the patch ({}/fix.patch.yaml)", pack);
  for (const auto& change : table.changes) {
    for (const auto& set : ingest::patch_leaves(change.patch)) {
      for (const auto& leaf : ingest::patch_leaves(fix.patch)) {
        if (!overlaps(set.path, leaf.path)) continue;
        return fmt::format("in {} let '{}' set {} to what {} says, then decide again", table.candidate_path, change.id,
                           set.path, patch);
      }
    }
  }
  return fmt::format("add {} to {} as a change of {}, then decide again", patch, table.candidate_path,
                     fix.owner.empty() ? "its owner" : fix.owner);
}

}  // namespace

std::string symptom_sentence(const decide::Decision& d, const ingest::Scenario& scenario) {
  const auto& p = *d.symptom_paired;
  const std::string unit = metric_unit(d.symptom.metric);
  return fmt::format("{} {} in {} ({}, 95 % interval {})", metric_words(d.symptom.metric),
                     signed_percent(p.change_percent), slice_words(d.symptom.slice, scenario),
                     from_to(p.baseline, p.candidate, unit), interval_percent(p.ci_low, p.ci_high));
}

std::string plain_words(std::string text, const decide::Decision& d, const ingest::Scenario& scenario) {
  // Longest first: one slice's name may be the start of another's.
  std::map<std::string, std::string> names;
  for (const auto& row : d.slices) names[row.id.name()] = slice_words(row.id, scenario);
  for (const auto& row : d.advisory) names[row.id.name()] = slice_words(row.id, scenario);
  names[d.symptom.slice.name()] = slice_words(d.symptom.slice, scenario);
  for (const auto& metric : validate::metrics()) {
    if (metric.name.find('_') != std::string_view::npos) names[std::string(metric.name)] = metric_words(metric.name);
  }
  std::vector<std::pair<std::string, std::string>> sorted(names.begin(), names.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (const auto& [from, to] : sorted) replace_all(text, from, to);
  return text;
}

std::vector<std::size_t> changes_by_harm(const decide::EvidenceTable& table, const decide::Decision& d) {
  const auto& attribution = d.symptom_attribution ? *d.symptom_attribution : d.attribution;
  const auto* metric = validate::find_metric(attribution.metric);
  const double sign = metric == nullptr || metric->lower_is_better ? 1 : -1;
  std::vector<double> harm(table.changes.size(), 0);
  for (std::size_t i = 0; i < table.changes.size(); ++i) {
    for (const auto& share : attribution.shares) {
      if (share.change == table.changes[i].id) harm[i] = sign * share.value;
    }
  }
  std::vector<std::size_t> out(table.changes.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
  std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) { return harm[a] > harm[b]; });
  return out;
}

std::string change_sentence(const ingest::Change& change, const decide::Attribution& attribution, bool with_reason) {
  std::string out = fmt::format("{} ({}{})", change.id, ingest::stage_name(change.stage),
                                change.owner.empty() ? "" : ", " + change.owner);
  if (with_reason && !change.reason.empty()) out += fmt::format(" \"{}\"", change.reason);
  for (const auto& share : attribution.shares) {
    if (share.change != change.id) continue;
    out += ": " + signed_quantity(share.value, metric_unit(attribution.metric));
    if (share.percent) out += fmt::format(", {} of the change", percent(*share.percent));
    return out;
  }
  return out + ": no value";
}

std::string stage_sentence(const decide::Decision& d) {
  std::string out = d.first_failing_stage;
  for (const auto& feedback : d.feedback) {
    // Feedback on the stage itself repeats its name.
    out += feedback.starts_with(d.first_failing_stage + ", ") ? feedback.substr(d.first_failing_stage.size())
                                                              : "; " + feedback;
  }
  return out;
}

const decide::RejectedFix* tempting_wrong_fix(const decide::Decision& d) {
  const decide::RejectedFix* found = nullptr;
  for (const auto& row : d.rejected_fixes) {
    if (!row.why.starts_with("it makes the regression worse")) continue;
    if (row.kind == "clock") return &row;
    if (found == nullptr && row.kind != "clock_cap") found = &row;  // nobody is tempted to slow a late service down
  }
  return found;
}

std::string title_of(const decide::EvidenceTable& table, const std::string& id) {
  for (const auto& trial : table.fixes) {
    if (trial.id == id) return trial.title;
  }
  return id;
}

std::vector<std::string> next_steps(const decide::EvidenceTable& table, const decide::Decision& d,
                                    const std::string& pack) {
  std::vector<std::string> out;
  if (d.fix) out.push_back(apply_sentence(table, *d.fix, pack));
  if (!d.quality.satisfied)
    out.push_back("measure the quality of the candidate, or keep the arithmetic: speed without quality proves nothing");
  for (const auto& guard : d.guards) {
    if (!guard.holds && guard.caps) out.push_back(fmt::format("mend this first: {} ({})", guard.name, guard.detail));
  }
  std::int64_t needed = 0;
  for (const auto& row : d.slices) {
    if (row.id.gated && row.verdict == decide::SliceVerdict::undecided)
      needed = std::max(needed, row.paired.pairs_needed);
  }
  if (needed > 0)
    out.push_back(fmt::format("decide the open slices: plumbline decide {} {} --pairs {}",
                              shell_word(table.baseline_path), shell_word(table.candidate_path), needed));
  const bool yes = d.verdict == decide::Verdict::release || d.verdict == decide::Verdict::release_with_guardrails;
  if (yes && !d.rollout_guardrails.empty()) {
    const auto& guardrail = d.rollout_guardrails.front();
    out.push_back(fmt::format("watch {}: {}, over {}; {} guardrails in decision.md", metric_words(guardrail.metric),
                              guardrail.threshold, guardrail.window, d.rollout_guardrails.size()));
  }
  if (pack.empty()) {
    out.push_back(fmt::format("keep the evidence: plumbline decide {} {} -o out/pack", shell_word(table.baseline_path),
                              shell_word(table.candidate_path)));
  } else {
    out.push_back(fmt::format("see it down to the loop nest: plumbline why {} {}", shell_word(pack),
                              d.symptom.harmful && d.symptom_paired ? "symptom" : "verdict"));
    out.push_back(fmt::format("check this pack: plumbline reproduce {}", shell_word(pack)));
  }
  return out;
}

}  // namespace plumbline::report
