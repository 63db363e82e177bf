// Which fix wins: what it recovers, what it touches, whom it harms.
#include "decide/fixes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "decide/decision.h"
#include "validate/statistics.h"

namespace plumbline::decide {

Recovery recovery(const Arm& baseline, const Arm& candidate, const Arm& fixed, const Symptom& symptom) {
  Recovery out;
  const auto* metric = validate::find_metric(symptom.metric);
  if (metric == nullptr || !symptom.harmful || !fixed.ok()) return out;
  const auto before = values(baseline, *metric, symptom.slice);
  const auto after = values(candidate, *metric, symptom.slice);
  const auto mended = values(fixed, *metric, symptom.slice);
  const std::size_t n = std::min({before.size(), after.size(), mended.size()});
  std::vector<double> recovered;
  double gap = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!before[i] || !after[i] || !mended[i]) return out;
    recovered.push_back(*after[i] - *mended[i]);
    gap += *after[i] - *before[i];
  }
  if (n < 2 || gap == 0) return out;
  gap /= static_cast<double>(n);
  const auto interval = validate::mean_interval(recovered, 0.95);
  out.percent = 100 * interval.mean / gap;
  out.ci_low = 100 * std::min(interval.low / gap, interval.high / gap);
  out.ci_high = 100 * std::max(interval.low / gap, interval.high / gap);
  out.valid = true;
  return out;
}

namespace {

struct Screen {
  bool passes = false;
  double recovers = 0;
  std::string why;
};

// On the ranking seeds only means are read: few seeds may rank, never judge.
Screen screen(const EvidenceTable& table, const FixTrial& trial, const Symptom& symptom) {
  Screen out;
  const auto& gate = table.baseline.scenario->gate;
  if (!trial.ranking.ok()) {
    out.why = "it cannot be run: " + trial.ranking.failure;
    return out;
  }
  const auto got = recovery(table.baseline, table.candidate, trial.ranking, symptom);
  out.recovers = got.percent;
  const auto* metric = validate::find_metric(symptom.metric);
  if (got.valid && got.percent < 0) {
    const auto worse =
        compare(table.candidate, trial.ranking, *metric, symptom.slice, gate.margin(symptom.metric), gate.alpha);
    out.why = fmt::format("it makes the regression worse: {} {:+.1f} % against the candidate in {}", symptom.metric,
                          worse.change_percent, symptom.slice.name());
    return out;
  }
  if (!got.valid || got.percent < 100 * gate.recovery) {
    out.why =
        fmt::format("it recovers {:.0f} % of the regression; {:.0f} % is needed", got.percent, 100 * gate.recovery);
    return out;
  }
  const auto before = limits(table.baseline, gate.alpha);
  const auto now = limits(trial.ranking, gate.alpha);
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto& limit = now[i];
    if (limit.measured && limit.value <= limit.limit) continue;
    // A limit the baseline misses by itself is no fault of the fix, unless it makes it worse.
    if (limit.measured && !before[i].met && limit.value <= before[i].value * (1 + gate.default_margin)) continue;
    out.why = fmt::format("it recovers {:.0f} %, but {} rises to {:.4g} {} over the limit {:.4g}", got.percent,
                          limit.name, limit.value, limit.unit, limit.limit);
    return out;
  }
  std::vector<SliceId> gated;
  for (const auto& id : slices_of(table.baseline)) {
    if (id.gated) gated.push_back(id);
  }
  const auto* gated_metric = validate::find_metric(table.baseline.scenario->metric.name);
  for (const auto& id : gated) {
    const auto paired = compare(table.baseline, trial.ranking, *gated_metric, id,
                                gate.margin(std::string(gated_metric->name)), gate.alpha);
    if (paired.valid && paired.harm_mean <= gate.margin(std::string(gated_metric->name))) continue;
    out.why = fmt::format("it recovers {:.0f} % there, but leaves {} worse by {:.1f} % in {}", got.percent,
                          gated_metric->name, 100 * paired.harm_mean, id.name());
    return out;
  }
  out.passes = true;
  return out;
}

// Smaller and gentler first: untouched release, then narrowed change, then a narrowing that is the undo in effect.
std::tuple<int, int, std::size_t, double> rank_of(const FixTrial& trial, double recovers) {
  return {trial.tier, trial.same_as_undo ? 1 : 0, ingest::patch_leaves(trial.patch).size(), -recovers};
}

}  // namespace

std::vector<std::size_t> finalists(const EvidenceTable& table, const Symptom& symptom, std::size_t most) {
  std::vector<std::pair<std::tuple<int, int, std::size_t, double>, std::size_t>> ranked;
  if (!symptom.harmful) return {};
  for (std::size_t i = 0; i < table.fixes.size(); ++i) {
    const auto screened = screen(table, table.fixes[i], symptom);
    if (screened.passes) ranked.emplace_back(rank_of(table.fixes[i], screened.recovers), i);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::size_t> out;
  for (const auto& [rank, i] : ranked) {
    if (out.size() < most && table.fixes[i].tier < 2) out.push_back(i);
  }
  for (const auto& [rank, i] : ranked) {
    if (table.fixes[i].tier >= 2) {
      out.push_back(i);
      break;
    }
  }
  return out;
}

namespace {

Fix describe(const EvidenceTable& table, const FixTrial& trial, const Judgement& judged, const Symptom& symptom) {
  Fix out;
  out.id = trial.id;
  out.kind = trial.kind;
  out.title = trial.title;
  out.owner = trial.owner;
  out.stage = ingest::stage_name(trial.stage);
  out.patch = trial.patch;
  out.verdict = judged.verdict;
  out.reasons = judged.reasons;
  const auto got = recovery(table.fresh_baseline, table.fresh_candidate, trial.judged, symptom);
  out.recovers_percent = got.percent;
  out.ci_low = got.ci_low;
  out.ci_high = got.ci_high;
  for (const auto& row : judged.slices) out.blast_radius.push_back({row});
  for (const auto& row : judged.advisory) out.blast_radius.push_back({row});
  out.sla = judged.sla;
  out.rollback_patch = trial.rollback;
  out.rollback_hash = trial.rollback_hash;
  out.rollback_proven = !trial.rollback_hash.empty() && trial.rollback_hash == table.baseline.hash;
  out.is_fallback = trial.tier >= 2;
  if (out.is_fallback) {
    out.note = "nothing gentler recovers enough on every slice, so the fix is to undo the guilty change";
  } else if (trial.same_as_undo) {
    out.note =
        "on the shapes compiled here this costs the same as undoing the guilty change; the change stays in force for "
        "what it does not harm";
  } else if (trial.tier == 1) {
    out.note = "it narrows the guilty change and leaves the rest of the release as it is";
  } else {
    out.note = "it leaves every change of the release in place";
  }
  return out;
}

// Every gated slice passes, whatever the limits say.
bool unharmed(const Judgement& judged) {
  return judged.quality.satisfied &&
         std::all_of(judged.slices.begin(), judged.slices.end(),
                     [](const SliceJudgement& row) { return !row.id.gated || row.verdict == SliceVerdict::pass; });
}

}  // namespace

FixChoice choose_fix(const EvidenceTable& table, const Symptom& symptom, const std::vector<Guard>& guards) {
  FixChoice out;
  if (!symptom.harmful) {
    out.why = "nothing regressed beyond its margin, so there is nothing to fix";
    return out;
  }
  const auto order = finalists(table, symptom, kMaxFinalists);
  const FixTrial* chosen = nullptr;
  const auto own = limits(table.baseline, table.baseline.scenario->gate.alpha);
  const bool baseline_misses = std::any_of(own.begin(), own.end(), [](const Limit& l) { return !l.met; });
  std::vector<std::string> failed(table.fixes.size());
  for (const std::size_t i : order) {
    const auto& trial = table.fixes[i];
    if (!trial.judged.ok()) continue;
    auto judged = judge_arm(table.fresh_baseline, trial.judged, false, guards);
    if (judged.verdict == Verdict::release || judged.verdict == Verdict::release_with_guardrails) {
      if (chosen == nullptr) {
        chosen = &trial;
        out.fix = describe(table, trial, judged, symptom);
      } else {
        failed[i] =
            fmt::format("it passes too, but '{}' is smaller or leaves more of the release in place", chosen->id);
      }
    } else if (chosen == nullptr && baseline_misses && unharmed(judged)) {
      chosen = &trial;
      out.fix = describe(table, trial, judged, symptom);
      out.fix->note += "; it mends the regression, but the baseline misses its own limits, so nothing can be released";
    } else {
      failed[i] = "on fresh seeds: " + (judged.reasons.empty() ? std::string("not released") : judged.reasons.front());
    }
  }
  for (std::size_t i = 0; i < table.fixes.size(); ++i) {
    const auto& trial = table.fixes[i];
    if (&trial == chosen) continue;
    if (trial.tier >= 2 && out.fix) out.fix->fallback = trial.patch;
    std::string why = failed[i].empty() ? screen(table, trial, symptom).why : failed[i];
    if (why.empty()) why = "it ranked behind the finalists";
    out.rejected.push_back({trial.id, trial.kind, trial.patch, std::move(why)});
  }
  if (!out.fix) out.why = "no single-part fix recovers enough, meets every limit and leaves every slice unharmed";
  return out;
}

}  // namespace plumbline::decide
