#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "decide/decision.h"
#include "decide/evidence_matrix.h"
#include "decide/fixes.h"
#include "decide/mechanism.h"
#include "decide/stage_walk.h"

namespace plumbline::decide {
namespace {

double share_of(const Arm& arm, std::initializer_list<execute::CycleClass> classes) {
  double part = 0;
  double total = 0;
  for (const auto& run : arm.runs) {
    for (std::size_t c = 0; c < execute::kCycleClasses; ++c) total += static_cast<double>(run.cycles[c]);
    for (const auto c : classes) part += static_cast<double>(run.cycles[static_cast<std::size_t>(c)]);
  }
  return total > 0 ? part / total : 0;
}

Triage triage_of(const EvidenceTable& table) {
  using execute::CycleClass;
  const auto occupancy = [](const Arm& a) { return share_of(a, {CycleClass::useful}); };
  const auto stall = [](const Arm& a) {
    return share_of(a, {CycleClass::weight_wait, CycleClass::feeder, CycleClass::psum_drain, CycleClass::sram,
                        CycleClass::noc, CycleClass::dram, CycleClass::preload_exposed});
  };
  Triage out{
      occupancy(table.baseline), occupancy(table.candidate), stall(table.baseline), stall(table.candidate), {}, {}};
  // A change of two points in the share of cycles is what separates "down" from noise here.
  constexpr double kShift = 0.02;
  const bool lower = out.candidate_occupancy < out.baseline_occupancy - kShift;
  const bool stalled = out.candidate_stall > out.baseline_stall + kShift;
  if (lower && stalled) {
    out.quadrant = "occupancy down, memory stalls up";
    out.first = "locality and scheduling fixes first";
  } else if (!lower && !stalled) {
    out.quadrant = "occupancy held, memory stalls held";
    out.first =
        "movement and batching fixes first: the array is as busy as before, so look at what is moved and how batches "
        "form";
  } else if (lower) {
    out.quadrant = "occupancy down, memory stalls held";
    out.first = "padding, mapping and queueing fixes first";
  } else {
    out.quadrant = "occupancy held, memory stalls up";
    out.first = "contention and bandwidth fixes first";
  }
  return out;
}

std::vector<Hypothesis> hypotheses_of(const EvidenceTable& table, const Symptom& symptom,
                                      const std::optional<Attribution>& attribution) {
  std::vector<Hypothesis> out;
  const std::string where = symptom.slice.name();
  for (std::size_t i = 0; i < table.changes.size(); ++i) {
    Hypothesis row;
    row.change = table.changes[i].id;
    row.claim = fmt::format("'{}' changes {} in {}", row.change, symptom.metric, where);
    if (i < table.predictions.size()) {
      row.predicted = table.predictions[i].change;
      row.predicted_why = table.predictions[i].why;
    }
    double noise = 0;
    if (attribution && i < attribution->shares.size()) {
      const auto& share = attribution->shares[i];
      row.measured = share.value;
      noise = (share.ci_high - share.ci_low) / 2;
    }
    if (!row.predicted || !row.measured) {
      row.verdict = "not predicted";
    } else {
      // Confirmed within a quarter of the prediction or within the interval of the measurement.
      const double miss = std::abs(*row.predicted - *row.measured);
      row.verdict = miss <= std::max(0.25 * std::abs(*row.predicted), noise) ? "confirmed" : "refuted";
    }
    out.push_back(std::move(row));
  }
  for (const auto& trial : table.fixes) {
    if (trial.kind != "clock" || !trial.ranking.ok()) continue;
    const auto* metric = validate::find_metric(symptom.metric);
    if (metric == nullptr) continue;
    const auto effect = compare(table.candidate, trial.ranking, *metric, symptom.slice, 0, 0.05);
    if (!effect.valid) continue;
    Hypothesis row;
    row.claim = fmt::format("{} relieves {} in {}", trial.title, symptom.metric, where);
    row.change = trial.id;
    row.predicted = trial.predicted ? std::optional<double>(*trial.predicted) : std::nullopt;
    row.predicted_why = trial.predicted_why;
    row.measured = effect.change;
    row.verdict = effect.harm_mean < 0 ? "confirmed" : "refuted";
    out.push_back(std::move(row));
  }
  return out;
}

std::string human(double value, const std::string& unit) {
  if (unit == "s") return fmt::format("{:.4g} ms", value * 1e3);
  if (unit == "B") return fmt::format("{:.4g} MB", value * 1e-6);
  if (unit == "J") return fmt::format("{:.4g} mJ", value * 1e3);
  return fmt::format("{:.4g} {}", value, unit);
}

std::vector<Guardrail> guardrails_of(const EvidenceTable& table, const Decision& decision) {
  std::vector<Guardrail> out;
  const auto& scenario = *table.baseline.scenario;
  const auto& arrivals = scenario.traffic.arrivals;
  const bool bursts = arrivals.kind == ingest::ArrivalKind::burst;
  const std::string window = bursts ? fmt::format("the bursts of any {:.0f} s", 6 * arrivals.every.raw()) : "any 60 s";
  const std::string action = "apply the rollback patch and page the owner";
  for (const auto& row : decision.slices) {
    if (row.id.profile != "all" || row.id.layer_class != "all" || !row.paired.valid) continue;
    const double margin = scenario.gate.margin(row.metric);
    const double threshold =
        decision.better == "lower" ? row.paired.baseline * (1 + margin) : row.paired.baseline * (1 - margin);
    out.push_back(
        {fmt::format("{} under {} load", row.metric, row.id.load),
         fmt::format("{} {} (baseline {} and its margin)", decision.better == "lower" ? "at most" : "at least",
                     human(threshold, decision.unit), human(row.paired.baseline, decision.unit)),
         row.id.load == "burst" ? window : "any 60 s", action});
  }
  for (const auto& limit : decision.sla_candidate) {
    out.push_back({limit.name,
                   fmt::format("at most {}", limit.unit == "s" ? human(limit.limit, "s")
                                                               : fmt::format("{:.3g} %", 100 * limit.limit)),
                   window, action});
  }
  return out;
}

}  // namespace

Decision decide(const EvidenceTable& table) {
  Decision out;
  const auto& scenario = *table.baseline.scenario;
  const auto* metric = validate::find_metric(scenario.metric.name);
  PL_CHECK(metric != nullptr);
  out.metric = metric->name;
  out.unit = metric->unit;
  out.better = metric->lower_is_better ? "lower" : "higher";
  out.margin = scenario.gate.margin(out.metric);
  out.preflight = table.preflight;
  out.seed = scenario.gate.seed;
  out.configurations = table.configurations;
  out.requests_simulated = table.requests_simulated;
  out.open_items = table.open_items;
  const SliceId all{"all", "all", "all", "all", false};

  out.guards = guards_of(table);
  const auto evidence = evidence_matrix(table);
  out.evidence_matrix = evidence.rows;
  out.guards.insert(out.guards.end(), evidence.guards.begin(), evidence.guards.end());
  auto judged = judge_arm(table.baseline, table.candidate, table.live, out.guards);
  out.verdict = judged.verdict;
  out.reasons = std::move(judged.reasons);
  out.slices = std::move(judged.slices);
  out.advisory = std::move(judged.advisory);
  out.sla_baseline = std::move(judged.sla_baseline);
  out.sla_candidate = std::move(judged.sla);
  out.quality = std::move(judged.quality);
  if (!table.candidate.ok()) return out;

  out.headline = compare(table.baseline, table.candidate, *metric, all, out.margin, scenario.gate.alpha);
  out.attribution = attribute(table, *metric, all);
  out.symptom = find_symptom(table.baseline, table.candidate);
  const auto* symptom_metric = validate::find_metric(out.symptom.metric);
  if (out.symptom.harmful && symptom_metric != nullptr) {
    out.symptom_paired = compare(table.baseline, table.candidate, *symptom_metric, out.symptom.slice,
                                 scenario.gate.margin(out.symptom.metric), scenario.gate.alpha);
    out.symptom_attribution = attribute(table, *symptom_metric, out.symptom.slice);
  }
  const auto walk = walk_stages(table, out.symptom);
  out.first_failing_stage = walk.first;
  out.feedback = walk.feedback;
  if (const auto guilty = guilty_change(table, out.symptom)) {
    const auto& change = table.changes[*guilty];
    out.first_failing_change = change.id;
    out.owner = change.owner;
    const auto owner = scenario.owners.find(ingest::stage_name(change.stage));
    if (out.owner.empty() && owner != scenario.owners.end()) out.owner = owner->second;
  }
  out.triage = triage_of(table);
  auto mechanism = find_mechanism(table, out.symptom);
  out.mechanism = std::move(mechanism.mechanism);
  out.bottleneck = std::move(mechanism.bottleneck);
  out.hypotheses =
      hypotheses_of(table, out.symptom,
                    out.symptom_attribution ? out.symptom_attribution : std::optional<Attribution>(out.attribution));
  auto choice = choose_fix(table, out.symptom, out.guards);
  out.fix = std::move(choice.fix);
  out.fix_why = std::move(choice.why);
  out.rejected_fixes = std::move(choice.rejected);
  out.rollout_guardrails = guardrails_of(table, out);
  return out;
}

}  // namespace plumbline::decide
