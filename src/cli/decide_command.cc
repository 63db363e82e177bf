#include <fmt/format.h>

#include "cli/command.h"
#include "cli/parse.h"
#include "decide/decision.h"
#include "study/decision_study.h"

namespace plumbline::cli {

int decide_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app("Judges a candidate against its baseline and says release, release with guardrails, hold or roll back.", "decide");
  std::string baseline;
  std::string candidate;
  std::string output;
  unsigned threads = 0;
  std::int64_t pairs = 0;
  app.add_option("baseline", baseline, "scenario file or stored pack")->required();
  app.add_option("candidate", candidate, "candidate file: base and changes")->required();
  app.add_option("-o,--output", output, "folder of the evidence pack");
  app.add_option("--threads", threads, "threads; 0 = all");
  app.add_option("--pairs", pairs, "replications");
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  ingest::Library library(find_catalog());
  auto comparison = ingest::read_comparison(baseline, candidate, library);
  if (!comparison.ok()) return report_errors(comparison.errors(), err);
  study::Engine engine(library, threads);
  study::StudyOptions options;
  options.pairs = pairs;
  auto studied = study::study_decision(*comparison, engine, options);
  if (!studied.ok()) return report_errors(studied.errors(), err);
  const auto d = decide::decide(studied->table);
  out << "verdict " << decide::verdict_name(d.verdict) << "\n";
  for (const auto& r : d.reasons) out << "  reason " << r << "\n";
  out << fmt::format("headline {} -> {} ({:+.2f} %) [{:.2f},{:.2f}]\n", d.headline.baseline, d.headline.candidate, d.headline.change_percent, d.headline.ci_low, d.headline.ci_high);
  for (const auto& s : d.slices) if (s.id.layer_class == "all") out << fmt::format("slice {} {:.0f} -> {:.0f} {:+.2f} % [{:.2f},{:.2f}] sd {:.2f} {} n={}\n", s.id.name(), s.paired.baseline, s.paired.candidate, s.paired.change_percent, s.paired.ci_low, s.paired.ci_high, s.paired.sd_percent, decide::slice_verdict_name(s.verdict), s.paired.requests);
  for (const auto& s : d.advisory) out << fmt::format("adv {} {} {:.4g} -> {:.4g} {:+.2f} % [{:.2f},{:.2f}] {}\n", s.metric, s.id.load, s.paired.baseline, s.paired.candidate, s.paired.change_percent, s.paired.ci_low, s.paired.ci_high, decide::slice_verdict_name(s.verdict));
  for (const auto& l : d.sla_baseline) out << fmt::format("base {} {:.5g} upper {:.5g} limit {:.5g} {}\n", l.name, l.value, l.upper, l.limit, l.met);
  for (const auto& l : d.sla_candidate) out << fmt::format("cand {} {:.5g} upper {:.5g} limit {:.5g} {}\n", l.name, l.value, l.upper, l.limit, l.met);
  out << fmt::format("preflight cap {:.1f}/s util {:.3f} peak {:.3f} largest {:.4g}s Tj {:.1f}\n", d.preflight.capacity_per_s, d.preflight.utilization, d.preflight.peak_utilization, d.preflight.largest_batch_seconds, d.preflight.junction_celsius);
  out << "symptom " << d.symptom.metric << " " << d.symptom.slice.name() << " " << d.symptom.harmful << "\n";
  out << "stage " << d.first_failing_stage << " change " << d.first_failing_change << " owner " << d.owner << "\n";
  for (const auto& f : d.feedback) out << "  feedback " << f << "\n";
  for (const auto& s : d.attribution.shares) out << fmt::format("attr {} {:.1f} {}\n", s.change, s.value, s.percent ? *s.percent : -1);
  if (d.symptom_attribution) for (const auto& s : d.symptom_attribution->shares) out << fmt::format("sattr {} {:.1f} {}\n", s.change, s.value, s.percent ? *s.percent : -1);
  out << "triage " << d.triage.quadrant << " | " << d.triage.first << fmt::format(" {:.3f} {:.3f} {:.3f} {:.3f}\n", d.triage.baseline_occupancy, d.triage.candidate_occupancy, d.triage.baseline_stall, d.triage.candidate_stall);
  for (const auto& r : d.mechanism.relief) out << fmt::format("relief {:<60} {} frozen {} restores {} closes {:.1f} {}\n", r.resource, decide::relief_kind_name(r.kind), r.frozen, r.restores_change, r.gap_closed_percent.value_or(-999), r.why);
  out << "mech " << d.mechanism.sentence << "\nbottleneck " << d.bottleneck.name << " " << d.bottleneck.confidence << "\n";
  for (const auto& h : d.hypotheses) out << fmt::format("hyp {} pred {:.1f} meas {:.1f} {}\n", h.claim, h.predicted.value_or(-999), h.measured.value_or(-999), h.verdict);
  if (d.fix) {
    out << fmt::format("FIX {} {} {} recovers {:.1f} [{:.1f},{:.1f}] rollback {} | {}\n", d.fix->id, ingest::flow_text(d.fix->patch), decide::verdict_name(d.fix->verdict), d.fix->recovers_percent, d.fix->ci_low, d.fix->ci_high, d.fix->rollback_proven, d.fix->note);
    for (const auto& r : d.fix->reasons) out << "   " << r << "\n";
  } else out << "no fix: " << d.fix_why << "\n";
  for (const auto& r : d.rejected_fixes) out << fmt::format("rej {} {} : {}\n", r.id, ingest::flow_text(r.patch), r.why);
  for (const auto& r : d.evidence_matrix) out << fmt::format("ev {} {} {} | {}\n", r.evidence, r.present, r.ran, r.shows);
  for (const auto& g : d.guards) out << fmt::format("guard {} {} {}\n", g.name, g.holds, g.detail);
  out << d.configurations << " configurations " << d.requests_simulated << " requests\n";
  return d.verdict == decide::Verdict::release || d.verdict == decide::Verdict::release_with_guardrails ? kYes : kNo;
}

}  // namespace plumbline::cli
