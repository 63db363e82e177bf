// Guards, quality, and the verdict of one arm against the baseline.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "decide/decision.h"

namespace plumbline::decide {

const char* verdict_name(Verdict verdict) {
  constexpr const char* kNames[] = {"release", "release_with_guardrails", "hold", "roll_back"};
  return kNames[static_cast<int>(verdict)];
}

Symptom find_symptom(const Arm& baseline, const Arm& candidate) {
  Symptom out;
  const auto& scenario = *baseline.scenario;
  const auto* metric = validate::find_metric(scenario.metric.name);
  if (metric != nullptr) {
    std::vector<SliceId> gated;
    for (const auto& id : slices_of(baseline)) {
      if (id.gated) gated.push_back(id);
    }
    const SliceJudgement* worst = nullptr;
    const auto rows = judge(baseline, candidate, *metric, gated, scenario.gate);
    for (const auto& row : rows) {
      if (row.verdict != SliceVerdict::harmed) continue;
      if (worst == nullptr || row.paired.harm_mean > worst->paired.harm_mean) worst = &row;
    }
    if (worst != nullptr) return {scenario.metric.name, worst->id, true};
  }
  const auto before = limits(baseline, scenario.gate.alpha);
  const auto after = limits(candidate, scenario.gate.alpha);
  SliceId all{"all", "all", "all", "all", false};
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i].met || !before[i].met) continue;
    return {after[i].name == "loss" ? "loss" : "latency_" + after[i].name, all, true};
  }
  out.metric = scenario.metric.name;
  out.slice = all;
  return out;
}

namespace {

// A limit's figure as it was written: times in ms, ratios in percent.
std::string amount(double value, std::string_view unit) {
  if (unit == "s") return fmt::format("{:.4g} ms", value * 1e3);
  if (unit == "ratio") return fmt::format("{:.4g} %", value * 100);
  return fmt::format("{:.4g} {}", value, unit);
}

Quality quality_of(const Arm& baseline, const Arm& arm) {
  Quality out;
  const auto& targets = arm.scenario->targets;
  if (targets.quality_absolute) {
    out.how = "absent";
    out.detail = arm.has_weights
                     ? "an absolute quality target needs a bit-true run of the model, which this version does not make"
                     : "an absolute quality target on a model without trained weights cannot be measured";
    return out;
  }
  if (baseline.numerics_hash == arm.numerics_hash) {
    out.how = "identity";
    out.satisfied = true;
    out.proof = arm.numerics_hash;
    out.detail = arm.exact ? fmt::format(
                                 "same model, formats and exact integer sums (longest {} terms, exact below 131,072): "
                                 "every output bit carries over",
                                 arm.longest_reduction)
                           : "same model, formats and reduction order: every output bit carries over";
    return out;
  }
  out.how = "absent";
  out.detail = "the arithmetic changed (formats, model or reduction order) and no measured quality is given";
  return out;
}

Guard invariant_guard(const EvidenceTable& table) {
  Guard out{"invariants", true, "bytes, stalls, energy and Little's law hold exactly in every run", true};
  const auto check = [&](const Arm& arm) {
    for (const auto& run : arm.runs) {
      for (const auto& invariant : run.invariants) {
        if (invariant.holds || !out.holds) continue;
        out.holds = false;
        out.detail = fmt::format("{} does not hold in {}: {}", invariant.name, arm.name, invariant.detail);
      }
    }
  };
  check(table.baseline);
  check(table.candidate);
  for (const auto& coalition : table.coalitions) check(coalition.arm);
  return out;
}

}  // namespace

std::vector<Guard> guards_of(const EvidenceTable& table) {
  std::vector<Guard> out;
  const auto& scenario = *table.baseline.scenario;
  out.push_back(invariant_guard(table));

  Guard sla{"baseline meets its own limits", true, "", true};
  for (const auto& limit : limits(table.baseline, scenario.gate.alpha)) {
    if (limit.met) continue;
    sla.holds = false;
    sla.detail += fmt::format("{}{} upper bound {} is over {}", sla.detail.empty() ? "" : "; ", limit.name,
                              amount(limit.upper, limit.unit), amount(limit.limit, limit.unit));
  }
  if (sla.holds) sla.detail = "every limit's upper bound is met before the change";
  out.push_back(std::move(sla));

  out.push_back({"production shapes", !scenario.traffic.source.empty(),
                 scenario.traffic.source.empty() ? "traffic.source is empty: the profile counts as synthetic"
                                                 : "traffic.source names where the mix was observed",
                 true});
  const bool tails = scenario.targets.p95 || scenario.targets.p99;
  out.push_back({"tail latency", tails,
                 tails ? "p95 or p99 is limited, not only the mean"
                       : "no p95 or p99 limit: an average alone proves nothing about the tail",
                 true});

  const auto& flight = table.preflight;
  out.push_back({"no growing backlog", flight.utilization < 1,
                 fmt::format("the baseline's device is busy {:.1f} % of the time", 100 * flight.utilization), true});
  if (flight.junction_limit) {
    const bool cool = flight.junction_celsius <= *flight.junction_limit;
    out.push_back({"steady heat", cool,
                   fmt::format("{:.1f} degC in steady state at the busiest power, limit {:.1f} degC",
                               flight.junction_celsius, *flight.junction_limit),
                   true});
  }
  out.push_back({"no open items", table.open_items.empty(),
                 table.open_items.empty() ? "every operator and format is modelled"
                                          : fmt::format("{} open items", table.open_items.size()),
                 true});
  return out;
}

namespace {

// Slices of the scenario's metric into reasons; returns whether any is harmed, and whether any stays open.
void judge_slices(const std::vector<SliceJudgement>& rows, Judgement& out, bool& harmed, bool& open) {
  for (const auto& row : rows) {
    if (!row.id.gated) continue;
    const auto& p = row.paired;
    switch (row.verdict) {
      case SliceVerdict::harmed:
        harmed = true;
        out.reasons.push_back(
            fmt::format("{} is worse by {:.1f} % in {} (95 % interval {:+.1f} to {:+.1f} %, p {:.2g})", row.metric,
                        100 * p.harm_mean, row.id.name(), p.ci_low, p.ci_high, p.p));
        break;
      case SliceVerdict::undecided:
        open = true;
        out.reasons.push_back(
            fmt::format("{} is undecided in {}: {:+.1f} % ({:+.1f} to {:+.1f} %); about {} pairs would decide",
                        row.metric, row.id.name(), p.change_percent, p.ci_low, p.ci_high,
                        p.pairs_needed < 0 ? "more than 10,000" : std::to_string(p.pairs_needed)));
        break;
      case SliceVerdict::thin:
        open = true;
        out.reasons.push_back(
            fmt::format("{} has only {} requests in {}, too few to pass alone", row.metric, p.requests, row.id.name()));
        break;
      case SliceVerdict::absent:
        open = true;
        out.reasons.push_back(fmt::format("{} has no value in {}", row.metric, row.id.name()));
        break;
      case SliceVerdict::pass:
        break;
    }
  }
}

// Resource metrics beside the gated one; relative margins on percentiles stay informational (they would need ~50
// pairs).
constexpr std::string_view kAdvisory[] = {"off_array_weight_bytes_per_inference",
                                          "off_chip_weight_bytes_per_inference",
                                          "off_array_activation_bytes_per_inference",
                                          "psum_bytes_per_inference",
                                          "energy_per_inference",
                                          "latency_p50",
                                          "latency_p95",
                                          "latency_p99",
                                          "throughput"};

bool guards_a_release(std::string_view metric) {
  return metric == "off_chip_weight_bytes_per_inference" || metric == "energy_per_inference";
}

}  // namespace

Judgement judge_arm(const Arm& baseline, const Arm& arm, bool live, const std::vector<Guard>& guards) {
  Judgement out;
  const auto& scenario = *baseline.scenario;
  if (!arm.ok()) {
    out.reasons.push_back("it has no value: " + arm.failure);
    return out;
  }
  const auto* metric = validate::find_metric(scenario.metric.name);
  bool harmed = false;
  bool open = false;
  if (metric == nullptr) {
    out.reasons.push_back(fmt::format("the metric '{}' is not known", scenario.metric.name));
    return out;
  }
  const auto slices = slices_of(baseline);
  out.slices = judge(baseline, arm, *metric, slices, scenario.gate);
  judge_slices(out.slices, out, harmed, open);

  out.sla_baseline = limits(baseline, scenario.gate.alpha);
  out.sla = limits(arm, scenario.gate.alpha);
  bool missed = false;
  bool exceeded = false;
  for (const auto& limit : out.sla) {
    if (limit.met) continue;
    missed = true;
    exceeded |= limit.value > limit.limit;
    out.reasons.push_back(fmt::format("{} upper bound {} is over the limit {}", limit.name,
                                      amount(limit.upper, limit.unit), amount(limit.limit, limit.unit)));
  }
  out.quality = quality_of(baseline, arm);
  if (!out.quality.satisfied) out.reasons.push_back("quality: " + out.quality.detail);
  bool capped = !out.quality.satisfied;
  for (const auto& guard : guards) {
    if (guard.holds || !guard.caps) continue;
    capped = true;
    out.reasons.push_back(fmt::format("{}: {}", guard.name, guard.detail));
  }
  std::vector<std::string> watch;
  for (const auto name : kAdvisory) {
    if (name == scenario.metric.name) continue;
    const auto* other = validate::find_metric(name);
    if (other == nullptr) continue;
    std::vector<SliceId> loads;
    for (const auto& id : slices) {
      if (id.profile == "all" && id.layer_class == "all") loads.push_back(id);
    }
    for (auto& row : judge(baseline, arm, *other, loads, scenario.gate)) {
      if (row.verdict == SliceVerdict::harmed && guards_a_release(name)) {
        watch.push_back(fmt::format("{} is worse by {:.1f} % under {} load (advisory)", name,
                                    100 * row.paired.harm_mean, row.id.load));
      }
      out.advisory.push_back(std::move(row));
    }
  }
  if (harmed || missed || open || capped) {
    out.verdict = live && (harmed || exceeded) ? Verdict::roll_back : Verdict::hold;
  } else {
    out.verdict = watch.empty() ? Verdict::release : Verdict::release_with_guardrails;
    out.reasons.push_back(
        fmt::format("{} is within its margin of {:.1f} % on every gated slice, every limit is met, quality {}",
                    scenario.metric.name, 100 * scenario.gate.margin(scenario.metric.name),
                    out.quality.how == "identity" ? "carries over by identity" : "is measured"));
  }
  out.reasons.insert(out.reasons.end(), watch.begin(), watch.end());
  return out;
}

}  // namespace plumbline::decide
