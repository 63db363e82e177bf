#include "report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/artefacts.h"
#include "report/html_parts.h"
#include "report/plain.h"
#include "report/words.h"

namespace plumbline::report {
namespace {

using decide::Decision;
using study::DecisionStudy;

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--ground:#fff;--ink:#1b1f24;--soft:#5b6570;--line:#d5dae0;--panel:#f5f7f9;--baseline:#7a8796;
--candidate:#d9822b;--good:#2b7a4b;--bad:#c0392b;--neutral:#4a78b0;--watch:#9a6b00;
--p0:#2b7a4b;--p1:#d9822b;--p2:#c0392b;--p3:#8e5aa8;--p4:#b58900;--p5:#2f8f9d;--p6:#6b7f2a;--p7:#4a78b0;--p8:#a05050;--p9:#7a8796;--p10:#555f6b}
@media(prefers-color-scheme:dark){:root{--ground:#14181d;--ink:#e6eaee;--soft:#9aa5b1;--line:#323a44;--panel:#1c2229;--baseline:#8796a8;
--candidate:#e69a4a;--good:#55b37c;--bad:#e8695b;--neutral:#6d9edb;--watch:#e0b040;
--p0:#3f9a66;--p1:#d98a3d;--p2:#d65a4c;--p3:#a678c0;--p4:#c9a227;--p5:#45a5b3;--p6:#8a9f45;--p7:#6d9edb;--p8:#b87070;--p9:#8796a8;--p10:#6f7b88}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1000px;padding:24px 20px 60px;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:30px;margin:0}h2{font-size:21px;margin:38px 0 8px;border-bottom:1px solid var(--line);padding-bottom:4px}
h3{font-size:16px;margin:22px 0 6px}p{margin:8px 0}small,.soft{color:var(--soft)}
.verdict{border-left:8px solid var(--bad);background:var(--panel);padding:16px 20px;border-radius:4px}
.verdict.release{border-color:var(--good)}.verdict.release_with_guardrails{border-color:var(--watch)}
.verdict p.lead{font-size:19px;font-weight:600;margin:8px 0 0}
dl{display:grid;grid-template-columns:110px 1fr;gap:6px 14px;margin:18px 0}dt{color:var(--soft)}dd{margin:0}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:14px;width:100%}
th,td{text-align:left;padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--soft);font-weight:600}
td.number{font-variant-numeric:tabular-nums;white-space:nowrap}
pre{background:var(--panel);border:1px solid var(--line);border-radius:4px;padding:10px 12px;overflow-x:auto;font-size:14px}
code{font-size:.93em;overflow-wrap:anywhere}.bad{color:var(--bad);font-weight:600}.good{color:var(--good)}.watch{color:var(--watch);font-weight:600}
svg{width:100%;height:auto;display:block;margin:10px 0;font:12px system-ui,sans-serif}svg text{fill:var(--ink)}svg text.value{fill:var(--soft)}
svg .baseline{fill:var(--baseline)}svg .candidate{fill:var(--candidate)}svg .good{fill:var(--good)}svg .bad{fill:var(--bad)}svg .neutral{fill:var(--neutral)}
svg .axis{stroke:var(--soft);stroke-width:1}svg path.rule{stroke:var(--bad);stroke-width:1.3;stroke-dasharray:4 3}svg text.rule{fill:var(--bad);font-size:11px}
svg .whisker{stroke:var(--ink);stroke-width:1.4;fill:none}svg text.onpart{fill:#fff;font-size:11px}
svg .part0{fill:var(--p0)}svg .part1{fill:var(--p1)}svg .part2{fill:var(--p2)}svg .part3{fill:var(--p3)}svg .part4{fill:var(--p4)}svg .part5{fill:var(--p5)}
svg .part6{fill:var(--p6)}svg .part7{fill:var(--p7)}svg .part8{fill:var(--p8)}svg .part9{fill:var(--p9)}svg .part10{fill:var(--p10)}
.key i{display:inline-block;width:11px;height:11px;margin:0 5px 0 14px;border-radius:2px}.key i.baseline{background:var(--baseline)}.key i.candidate{background:var(--candidate)}
)css";

std::string e(std::string_view text) { return escape_html(text); }

void add_head(const DecisionStudy& study, const Decision& d, std::string& out) {
  const char* name = decide::verdict_name(d.verdict);
  const auto& scenario = *study.table.baseline.scenario;
  // No script and no request can come of the page, whatever its inputs were named.
  out +=
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">";
  out += fmt::format("<title>{}: {}</title><style>{}</style></head><body>\n", e(verdict_words(name)), e(scenario.name),
                     kStyle);
  out += fmt::format("<header class=\"verdict {}\"><h1>{}</h1><small>{} against {}</small>\n", name,
                     e(capital(verdict_words(name))), e(study.table.candidate_path), e(study.table.baseline_path));
  if (d.symptom.harmful && d.symptom_paired && d.symptom_paired->valid) {
    out += fmt::format("<p class=\"lead\">{}</p>", e(capital(symptom_sentence(d, scenario))));
  } else if (!d.reasons.empty()) {
    out += fmt::format("<p class=\"lead\">{}</p>", e(capital(plain_words(d.reasons.front(), d, scenario))));
  }
  out += "</header>\n";
}

void add_answers(const DecisionStudy& study, const Decision& d, std::string& out) {
  const auto& scenario = *study.table.baseline.scenario;
  const auto row = [&](std::string_view name, const std::string& html) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, html);
  };
  out += "<dl>\n";
  const auto& attribution = d.symptom_attribution ? *d.symptom_attribution : d.attribution;
  std::string changes;
  for (const std::size_t i : changes_by_harm(study.table, d)) {
    const auto& change = study.table.changes[i];
    const bool guilty = change.id == d.first_failing_change;
    changes +=
        fmt::format("<div{}>{}</div>", guilty ? " class=\"bad\"" : "", e(change_sentence(change, attribution, guilty)));
  }
  if (!changes.empty()) row(d.first_failing_change.empty() ? "Changes" : "Cause", changes);
  if (d.first_failing_stage != "none") row("First fails at", e(stage_sentence(d)));
  if (d.symptom.harmful)
    row("Mechanism",
        e(d.mechanism.identified ? fmt::format("{}, confidence {}: {}", metric_words(d.bottleneck.name),
                                               percent(100 * d.bottleneck.confidence), d.mechanism.sentence)
                                 : "not identified: " + d.mechanism.sentence));
  if (const auto* wrong = tempting_wrong_fix(d))
    row("Not this", fmt::format("<span class=\"watch\">{}</span>",
                                e(title_of(study.table, wrong->id) + ": " + plain_words(wrong->why, d, scenario))));
  if (d.fix) {
    row("Fix", fmt::format("{} (<a href=\"#fix\">patch</a>): recovers {}, then <b>{}</b>", e(d.fix->title),
                           percent(d.fix->recovers_percent), e(verdict_words(decide::verdict_name(d.fix->verdict)))));
  } else if (d.symptom.harmful) {
    row("Fix", "none: " + e(d.fix_why));
  }
  row("Quality", fmt::format("<span class=\"{}\">{}</span>: {}", d.quality.satisfied ? "good" : "bad", e(d.quality.how),
                             e(d.quality.detail)));
  out += "</dl>\n";
  if (d.reasons.size() > 1) {
    out += "<h3>Reasons</h3><ul>\n";
    for (const auto& reason : d.reasons)
      out += fmt::format("<li>{}</li>\n", e(capital(plain_words(reason, d, scenario))));
    out += "</ul>\n";
  }
}

void add_fix(const DecisionStudy& study, const Decision& d, std::string& out) {
  const auto& scenario = *study.table.baseline.scenario;
  out += "<h2 id=\"fix\">Fix</h2>\n";
  if (!d.fix) {
    out += fmt::format("<p>None: {}.</p>\n", e(d.fix_why.empty() ? "none was looked for" : d.fix_why));
  } else {
    const auto& fix = *d.fix;
    out += fmt::format(
        "<p>{}. Owner {}, stage {}. It recovers {} of the regression ({}) on fresh seeds; the verdict with it is "
        "<b>{}</b>: {}.</p>\n",
        e(capital(fix.title)), e(fix.owner.empty() ? "not named" : fix.owner), e(fix.stage),
        percent(fix.recovers_percent), interval_percent(fix.ci_low, fix.ci_high),
        e(verdict_words(decide::verdict_name(fix.verdict))), e(fix.note));
    out += fmt::format("<pre>{}</pre>\n", e(resolved_yaml(fix.patch)));
    out += "<h3>Blast radius: candidate with the fix against the baseline</h3>\n";
    std::vector<decide::SliceJudgement> rows;
    for (const auto& row : fix.blast_radius) rows.push_back(row.judgement);
    out += slice_chart("blast radius", rows, d.margin, d.better == "lower", scenario);
    out += limit_chart("service limits with the fix", {}, fix.sla, "with the fix");
    out += fmt::format("<h3>Rollback ({})</h3><pre>{}</pre>\n",
                       fix.rollback_proven ? "proven: it gives the baseline's SHA-256" : "not proven",
                       e(resolved_yaml(fix.rollback_patch)));
    if (fix.fallback.kind == ingest::ValueKind::map)
      out += fmt::format("<h3>Should the fix not hold, undo the change</h3><pre>{}</pre>\n",
                         e(resolved_yaml(fix.fallback)));
  }
  if (d.rejected_fixes.empty()) return;
  HtmlTable table({"fix", "patch", "why not"});
  for (const auto& row : d.rejected_fixes)
    table.row({e(title_of(study.table, row.id)), fmt::format("<code>{}</code>", e(ingest::flow_text(row.patch))),
               e(plain_words(row.why, d, scenario))});
  out += "<h3>Tried and rejected</h3>\n" + table.text();
}

void add_evidence(const Decision& d, std::string& out) {
  const auto yes = [](bool value) {
    return value ? std::string("<span class=\"good\">yes</span>") : std::string("<span class=\"bad\">no</span>");
  };
  out += "<h2>Evidence</h2>\n";
  HtmlTable table({"evidence", "present", "shows here", "does not prove", "next action", "ran"});
  for (const auto& row : d.evidence_matrix)
    table.row({e(row.evidence), yes(row.present), e(row.shows), e(row.does_not_prove),
               fmt::format("<code>{}</code>", e(row.next_action)), row.ran ? "yes" : "not yet"});
  out += table.text();
  HtmlTable guards({"guard", "holds", "detail"});
  for (const auto& row : d.guards) guards.row({e(row.name), yes(row.holds), e(row.detail)});
  out += "<h3>Guards</h3>\n" + guards.text();
  if (!d.open_items.empty()) {
    out += "<h3>Open items</h3><ul>";
    for (const auto& item : d.open_items) out += fmt::format("<li>{}</li>", e(item));
    out += "</ul>\n";
  }
  if (d.rollout_guardrails.empty()) return;
  HtmlTable rails({"metric", "threshold", "window", "action"});
  for (const auto& row : d.rollout_guardrails)
    rails.row({e(metric_words(row.metric)), e(row.threshold), e(row.window), e(row.action)});
  out += "<h2>Rollout guardrails</h2>\n" + rails.text();
}

void add_reproduce(const DecisionStudy& study, const Decision& d, const Reproduce& reproduce, std::string& out) {
  out += fmt::format(
      "<h2>Reproduce</h2>\n<pre>{}</pre>\n<p>Seed {}, {} pairs of replications, {} configurations, {} requests "
      "simulated.</p>\n",
      e(reproduce.command), reproduce.seed, study.table.seeds.size(), count(d.configurations),
      count(d.requests_simulated));
  HtmlTable table({"input", "SHA-256"});
  for (const auto& file : reproduce.inputs)
    table.row({fmt::format("<code>{}</code>", e(file.path)), fmt::format("<code>{}</code>", e(file.sha256))});
  out += table.text();
}

}  // namespace

std::string report_html(const DecisionStudy& study, const Decision& d, const Reproduce& reproduce) {
  std::string out;
  add_head(study, d, out);
  add_answers(study, d, out);
  out += slices_section(study, d);
  out += limits_section(d);
  out += attribution_section(study, d);
  out += mechanism_section(d);
  out += machine_section(study);
  add_fix(study, d, out);
  add_evidence(d, out);
  add_reproduce(study, d, reproduce, out);
  return out + "</body></html>\n";
}

}  // namespace plumbline::report
