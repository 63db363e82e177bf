// decision.md: the whole decision in plain words, verdict first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/artefacts.h"
#include "report/decision_report.h"
#include "report/plain.h"
#include "report/words.h"

namespace plumbline::report {
namespace {

using decide::Decision;
using study::DecisionStudy;

// Text from inputs inside Markdown: one line, and nothing that Markdown or HTML would act on.
std::string md(std::string_view text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (std::string_view("\\`*_[]<>|#").find(c) != std::string_view::npos) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

// Code spans end at the first backtick run of their own length, so the text may hold none.
std::string code(std::string_view text) {
  std::string inner = one_line(text);
  std::replace(inner.begin(), inner.end(), '`', '\'');
  for (std::size_t at = inner.find('|'); at != std::string::npos; at = inner.find('|', at + 2))
    inner.replace(at, 1, "\\|");
  return "`" + inner + "`";
}

std::string fenced(std::string_view language, std::string_view text) {
  std::string fence = "```";
  while (text.find(fence) != std::string_view::npos) fence += "`";
  return fmt::format("{}{}\n{}{}{}\n", fence, language, text, text.ends_with('\n') ? "" : "\n", fence);
}

class Table {
 public:
  explicit Table(const std::vector<std::string>& heads) {
    row(heads);
    out_ += "|";
    for (std::size_t i = 0; i < heads.size(); ++i) out_ += " --- |";
    out_ += "\n";
  }
  void row(const std::vector<std::string>& cells) {
    out_ += "|";
    for (const auto& cell : cells) out_ += " " + cell + " |";
    out_ += "\n";
  }
  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  std::string out_;
};

std::string yes(bool value) { return value ? "yes" : "no"; }

void add_verdict(const DecisionStudy& study, const Decision& d, std::string& out) {
  const auto& scenario = *study.table.baseline.scenario;
  out += fmt::format("# {}\n\n", capital(verdict_words(decide::verdict_name(d.verdict))));
  out += fmt::format("Candidate {} against baseline {}.\n\n", code(study.table.candidate_path),
                     code(study.table.baseline_path));
  for (const auto& reason : d.reasons) out += fmt::format("- {}\n", md(capital(plain_words(reason, d, scenario))));
  out += "\n";
  if (!d.first_failing_change.empty()) {
    out += fmt::format("The change that does the harm is {}; it first fails at stage **{}** and belongs to {}.\n\n",
                       code(d.first_failing_change), md(d.first_failing_stage),
                       d.owner.empty() ? "nobody named" : md(d.owner));
  }
  for (const auto& feedback : d.feedback) out += fmt::format("Feedback: {}.\n\n", md(feedback));
}

void add_slices(const DecisionStudy& study, const Decision& d, std::string& out) {
  const auto& scenario = *study.table.baseline.scenario;
  out += fmt::format("## What changed\n\n{} ({} is better), margin {}.", capital(metric_words(d.metric)), d.better,
                     percent(100 * d.margin));
  if (d.headline.valid) {
    out += fmt::format(" Over all requests {} ({}, 95 % interval {}, p {}, {} pairs).",
                       signed_percent(d.headline.change_percent),
                       from_to(d.headline.baseline, d.headline.candidate, d.unit),
                       interval_percent(d.headline.ci_low, d.headline.ci_high), p_value(d.headline.p), d.headline.n);
  }
  out += "\n\nEvery row below is gated: the release needs each of them.\n\n";
  Table table({"slice", "baseline → candidate", "change", "95 % interval", "p for harm", "requests", "verdict"});
  for (const auto& row : d.slices) {
    if (!row.id.gated) continue;
    const auto& p = row.paired;
    table.row({md(slice_words(row.id, scenario)), p.valid ? from_to(p.baseline, p.candidate, d.unit) : "no value",
               p.valid ? signed_percent(p.change_percent) : "", p.valid ? interval_percent(p.ci_low, p.ci_high) : "",
               p.valid ? p_value(p.p) : "", count(p.requests), decide::slice_verdict_name(row.verdict)});
  }
  out += table.text() + "\n";
  if (d.advisory.empty()) return;
  out += "Other metrics, for information:\n\n";
  Table others({"metric", "load", "baseline → candidate", "change", "95 % interval"});
  for (const auto& row : d.advisory) {
    if (!row.paired.valid) continue;
    const auto& p = row.paired;
    others.row({metric_words(row.metric), md(slice_words(row.id, scenario)),
                from_to(p.baseline, p.candidate, metric_unit(row.metric)), signed_percent(p.change_percent),
                interval_percent(p.ci_low, p.ci_high)});
  }
  out += others.text() + "\n";
}

std::string limit_cell(const decide::Limit& limit) {
  if (!limit.measured) return "not measured";
  return fmt::format("{} (upper bound {}): {}", quantity(limit.value, limit.unit), quantity(limit.upper, limit.unit),
                     limit.met ? "met" : "missed");
}

void add_limits(const Decision& d, std::string& out) {
  out += "## Service limits and quality\n\n";
  Table table({"limit", "allowed", "baseline", "candidate"});
  for (std::size_t i = 0; i < d.sla_candidate.size(); ++i) {
    const auto& after = d.sla_candidate[i];
    table.row({after.name, quantity(after.limit, after.unit),
               i < d.sla_baseline.size() ? limit_cell(d.sla_baseline[i]) : "", limit_cell(after)});
  }
  if (d.sla_candidate.empty()) {
    out += "No limit was judged.\n\n";
  } else {
    out += table.text() + "\n";
  }
  out += fmt::format("Quality: {}. {}.\n\n", d.quality.how.empty() ? "absent" : md(d.quality.how),
                     md(capital(d.quality.detail)));
  const auto& flight = d.preflight;
  out += fmt::format(
      "Pre-flight of the baseline: {:.0f} requests/s in full batches, device busy {} of the time, offered peak {} of "
      "capacity, largest batch {}{}.\n\n",
      flight.capacity_per_s, percent(100 * flight.utilization), percent(100 * flight.peak_utilization),
      quantity(flight.largest_batch_seconds, "s"),
      flight.junction_limit ? fmt::format(", {:.1f} °C in steady state at the busiest power (limit {:.1f} °C)",
                                          flight.junction_celsius, *flight.junction_limit)
                            : "");
}

void add_attribution(const DecisionStudy& study, const decide::Attribution& attribution, const std::string& title,
                     std::string& out) {
  const auto& scenario = *study.table.baseline.scenario;
  const std::string unit = metric_unit(attribution.metric);
  out += fmt::format("### {}\n\n{} in {}: {} in all.\n\n", title, capital(metric_words(attribution.metric)),
                     md(slice_words(attribution.slice, scenario)), signed_quantity(attribution.total, unit));
  Table table({"change", "stage", "owner", "contribution", "95 % interval", "share"});
  for (const auto& share : attribution.shares) {
    std::string stage;
    std::string owner;
    for (const auto& change : study.table.changes) {
      if (change.id != share.change) continue;
      stage = ingest::stage_name(change.stage);
      owner = change.owner;
    }
    table.row({code(share.change), stage, md(owner), signed_quantity(share.value, unit),
               fmt::format("{} to {}", signed_quantity(share.ci_low, unit), signed_quantity(share.ci_high, unit)),
               share.percent ? percent(*share.percent) : "within noise"});
  }
  out += table.text() + "\n";
  for (const auto& pair : attribution.interactions) {
    out += fmt::format("- {} together with {}: {} beyond their sum\n", code(pair.changes.front()),
                       code(pair.changes.back()), signed_quantity(pair.value, unit));
  }
  for (const auto& name : attribution.no_value) out += fmt::format("- {} has no value: it cannot be run\n", code(name));
  out += "\n";
}

void add_mechanism(const Decision& d, std::string& out) {
  out += "## Mechanism\n\n";
  out += fmt::format("{}. Class: **{}**",
                     md(capital(d.mechanism.sentence.empty() ? "nothing was measured" : d.mechanism.sentence)),
                     metric_words(d.bottleneck.name));
  if (d.mechanism.identified)
    out += fmt::format(", ranked first in {} of the resampled pairs ({})", percent(100 * d.bottleneck.confidence),
                       code(d.bottleneck.artifact));
  out += ".\n\n";
  if (!d.triage.quadrant.empty()) {
    out += fmt::format("Triage: {} (useful cycles {} → {}, memory stalls {} → {}); {}.\n\n", md(d.triage.quadrant),
                       percent(100 * d.triage.baseline_occupancy), percent(100 * d.triage.candidate_occupancy),
                       percent(100 * d.triage.baseline_stall), percent(100 * d.triage.candidate_stall),
                       md(d.triage.first));
  }
  if (d.mechanism.relief.empty()) return;
  out +=
      "Each resource below was relieved in both arms; a row that merely restores a changed key attributes and "
      "identifies nothing.\n\n";
  Table table({"relieved", "kind", "re-mapped", "batches", "closes of the gap", "95 % interval", "note"});
  for (const auto& row : d.mechanism.relief) {
    const bool has = row.gap_closed_percent.has_value();
    table.row({md(row.resource), decide::relief_kind_name(row.kind), yes(row.remapped), row.frozen ? "frozen" : "free",
               has ? percent(*row.gap_closed_percent) : "no value",
               has ? interval_percent(row.ci_low, row.ci_high) : "",
               row.restores_change ? "restores a changed key" : md(row.why)});
  }
  out += table.text() + "\n";
}

void add_hypotheses(const Decision& d, const ingest::Scenario& scenario, std::string& out) {
  if (d.hypotheses.empty()) return;
  const std::string unit = metric_unit(d.symptom.metric);
  out += "## Hypotheses\n\n";
  Table table({"claim", "predicted", "measured", "verdict"});
  for (const auto& h : d.hypotheses) {
    table.row({md(plain_words(h.claim, d, scenario)),
               h.predicted ? signed_quantity(*h.predicted, unit) : md(h.predicted_why),
               h.measured ? signed_quantity(*h.measured, unit) : "not measured", md(h.verdict)});
  }
  out += table.text() + "\n";
}

void add_fix(const DecisionStudy& study, const Decision& d, std::string& out) {
  const auto& scenario = *study.table.baseline.scenario;
  out += "## Fix\n\n";
  if (!d.fix) {
    out += fmt::format("None: {}.\n\n", md(d.fix_why.empty() ? "none was looked for" : d.fix_why));
  } else {
    const auto& fix = *d.fix;
    out += fmt::format(
        "{}. Owner {}, stage {}. It recovers {} of the regression ({}) on fresh seeds; the verdict with it is **{}**: "
        "{}.\n\n",
        md(capital(fix.title)), fix.owner.empty() ? "not named" : md(fix.owner), md(fix.stage),
        percent(fix.recovers_percent), interval_percent(fix.ci_low, fix.ci_high),
        verdict_words(decide::verdict_name(fix.verdict)), md(fix.note));
    out += "The patch:\n\n" + fenced("yaml", resolved_yaml(fix.patch)) + "\n";
    out += fmt::format("### Blast radius\n\nCandidate with the fix against the baseline, on every gated slice{}.\n\n",
                       fix.blast_radius.size() > 0 ? " (decision.json has the layer classes and other metrics)" : "");
    Table table({"slice", "baseline → with the fix", "change", "95 % interval", "verdict"});
    for (const auto& row : fix.blast_radius) {
      if (!row.judgement.id.gated) continue;
      const auto& p = row.judgement.paired;
      table.row({md(slice_words(row.judgement.id, scenario)),
                 p.valid ? from_to(p.baseline, p.candidate, metric_unit(row.judgement.metric)) : "no value",
                 p.valid ? signed_percent(p.change_percent) : "", p.valid ? interval_percent(p.ci_low, p.ci_high) : "",
                 decide::slice_verdict_name(row.judgement.verdict)});
    }
    out += table.text() + "\n";
    for (const auto& limit : fix.sla)
      out += fmt::format("- {}: {} of {}\n", limit.name, limit_cell(limit), quantity(limit.limit, limit.unit));
    out += fmt::format("\n### Rollback\n\nFrom candidate with fix back to the baseline, {}:\n\n{}\n",
                       fix.rollback_proven ? "proven: it gives the baseline's SHA-256" : "not proven",
                       fenced("yaml", resolved_yaml(fix.rollback_patch)));
    if (fix.fallback.kind == ingest::ValueKind::map)
      out += "Should the fix not hold, undo the change:\n\n" + fenced("yaml", resolved_yaml(fix.fallback)) + "\n";
  }
  if (d.rejected_fixes.empty()) return;
  out += "### Tried and rejected\n\n";
  Table table({"fix", "patch", "why not"});
  for (const auto& row : d.rejected_fixes)
    table.row(
        {md(title_of(study.table, row.id)), code(ingest::flow_text(row.patch)), md(plain_words(row.why, d, scenario))});
  out += table.text() + "\n";
}

void add_evidence(const Decision& d, std::string& out) {
  out += "## Evidence\n\n";
  Table table({"evidence", "present", "shows here", "does not prove", "next action", "ran"});
  for (const auto& row : d.evidence_matrix)
    table.row({md(row.evidence), yes(row.present), md(row.shows), md(row.does_not_prove), code(row.next_action),
               yes(row.ran)});
  out += table.text() + "\n";
  out += "### Guards\n\n";
  Table guards({"guard", "holds", "detail"});
  for (const auto& row : d.guards) guards.row({md(row.name), yes(row.holds), md(row.detail)});
  out += guards.text() + "\n";
  if (!d.open_items.empty()) {
    out += "### Open items\n\n";
    for (const auto& item : d.open_items) out += fmt::format("- {}\n", md(item));
    out += "\n";
  }
  if (d.rollout_guardrails.empty()) return;
  out += "## Rollout guardrails\n\n";
  Table rails({"metric", "threshold", "window", "action"});
  for (const auto& row : d.rollout_guardrails)
    rails.row({md(metric_words(row.metric)), md(row.threshold), md(row.window), md(row.action)});
  out += rails.text() + "\n";
}

void add_reproduce(const DecisionStudy& study, const Decision& d, const Reproduce& reproduce, std::string& out) {
  out += "## Next\n\n";
  for (const auto& step : next_steps(study.table, d, ".")) out += fmt::format("1. {}\n", md(capital(step)));
  out += "\n## Reproduce\n\n" + fenced("sh", one_line(reproduce.command)) + "\n";
  out += fmt::format("Seed {}, {} pairs of replications, {} configurations, {} requests simulated.\n\n", reproduce.seed,
                     study.table.seeds.size(), count(d.configurations), count(d.requests_simulated));
  Table table({"input", "SHA-256"});
  for (const auto& file : reproduce.inputs) table.row({code(file.path), code(file.sha256)});
  out += table.text();
}

}  // namespace

std::string decision_markdown(const DecisionStudy& study, const Decision& d, const Reproduce& reproduce) {
  const auto& scenario = *study.table.baseline.scenario;
  std::string out;
  add_verdict(study, d, out);
  if (d.symptom.harmful && d.symptom_paired && d.symptom_paired->valid)
    out += fmt::format("**{}**\n\n", md(capital(symptom_sentence(d, scenario))));
  add_slices(study, d, out);
  add_limits(d, out);
  out += "## Attribution\n\n";
  if (d.symptom_attribution) add_attribution(study, *d.symptom_attribution, "Where it hurts", out);
  if (!d.attribution.shares.empty()) add_attribution(study, d.attribution, "Over all requests", out);
  add_mechanism(d, out);
  add_hypotheses(d, scenario, out);
  add_fix(study, d, out);
  add_evidence(d, out);
  add_reproduce(study, d, reproduce, out);
  return out;
}

}  // namespace plumbline::report
