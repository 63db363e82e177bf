// What closes the gap: each relief is applied to both arms, and the difference of the differences is measured per seed.
#include "decide/mechanism.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "decide/decision.h"
#include "validate/statistics.h"

namespace plumbline::decide {
namespace {

// Harm per seed (positive is worse); empty when a seed has no value.
std::vector<double> gaps(const Arm& baseline, const Arm& candidate, const validate::MetricRow& metric,
                         const SliceId& slice) {
  const auto before = values(baseline, metric, slice);
  const auto after = values(candidate, metric, slice);
  std::vector<double> out;
  for (std::size_t i = 0; i < before.size() && i < after.size(); ++i) {
    if (!before[i] || !after[i]) return {};
    out.push_back((metric.lower_is_better ? 1 : -1) * (*after[i] - *before[i]));
  }
  return out;
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double a : x) sum += a;
  return x.empty() ? 0 : sum / static_cast<double>(x.size());
}

}  // namespace

std::vector<ReliefResult> measure_reliefs(const EvidenceTable& table, const Symptom& symptom) {
  std::vector<ReliefResult> out;
  const auto* metric = validate::find_metric(symptom.metric);
  if (!symptom.harmful || metric == nullptr) return out;
  const auto gap = gaps(table.baseline, table.candidate, *metric, symptom.slice);
  for (const auto& relief : table.reliefs) {
    ReliefResult row{relief.resource,
                     relief.kind,
                     relief.remapped,
                     relief.frozen,
                     relief.restores_change,
                     relief.bottleneck,
                     {},
                     0,
                     0,
                     {}};
    if (!relief.baseline.ok() || !relief.candidate.ok()) {
      row.why = relief.baseline.ok() ? relief.candidate.failure : relief.baseline.failure;
      out.push_back(std::move(row));
      continue;
    }
    // Reliefs run on the first of the judging seeds; the gap they close is the gap on those.
    const auto left = gaps(relief.baseline, relief.candidate, *metric, symptom.slice);
    const std::vector<double> same(gap.begin(),
                                   gap.begin() + static_cast<std::ptrdiff_t>(std::min(gap.size(), left.size())));
    const double total = mean_of(same);
    if (left.size() < 2 || total == 0) {
      row.why = "a seed has no value";
      out.push_back(std::move(row));
      continue;
    }
    std::vector<double> closed;
    for (std::size_t i = 0; i < same.size(); ++i) closed.push_back(same[i] - left[i]);
    const auto interval = validate::mean_interval(closed, 0.95);
    row.gap_closed_percent = 100 * interval.mean / total;
    row.ci_low = 100 * interval.low / total;
    row.ci_high = 100 * interval.high / total;
    out.push_back(std::move(row));
  }
  return out;
}

namespace {

// Row that closes most among those that may identify a mechanism; free batches before frozen ones.
std::optional<std::size_t> best_row(const std::vector<ReliefResult>& rows, const std::vector<double>& closed,
                                    double need) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].restores_change || rows[i].frozen || !rows[i].gap_closed_percent || closed[i] < need) continue;
    if (!best || closed[i] > closed[*best] + 1e-9) best = i;
  }
  return best;
}

double confidence_of(const EvidenceTable& table, const Symptom& symptom, const std::vector<ReliefResult>& rows,
                     std::size_t winner) {
  const auto* metric = validate::find_metric(symptom.metric);
  const auto& gate = table.baseline.scenario->gate;
  const auto gap = gaps(table.baseline, table.candidate, *metric, symptom.slice);
  std::vector<std::vector<double>> left;
  for (const auto& relief : table.reliefs)
    left.push_back(gaps(relief.baseline, relief.candidate, *metric, symptom.slice));
  RandomStream random(gate.seed, "resample pairs");
  std::int64_t first = 0;
  const std::size_t pairs = left[winner].size();
  for (std::int64_t r = 0; r < gate.resamples; ++r) {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < pairs; ++i) chosen.push_back(random.next_below(pairs));
    const auto resampled = [&](const std::vector<double>& x) {
      double sum = 0;
      for (const std::size_t i : chosen) sum += x[i];
      return sum;
    };
    const double total = resampled(gap);
    std::vector<double> closed(rows.size(), -1e300);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (left[i].size() == pairs && total != 0) closed[i] = 100 * (total - resampled(left[i])) / total;
    }
    const auto best = best_row(rows, closed, -1e299);
    if (best && rows[*best].bottleneck == rows[winner].bottleneck) ++first;
  }
  return static_cast<double>(first) / static_cast<double>(gate.resamples);
}

}  // namespace

MechanismResult find_mechanism(const EvidenceTable& table, const Symptom& symptom) {
  MechanismResult out;
  out.mechanism.relief = measure_reliefs(table, symptom);
  if (!symptom.harmful) {
    out.mechanism.sentence = "nothing regressed beyond its margin, so there is no mechanism to find";
    return out;
  }
  const auto& rows = out.mechanism.relief;
  std::vector<double> closed;
  for (const auto& row : rows) closed.push_back(row.gap_closed_percent.value_or(-1e300));
  const double need = 100 * table.baseline.scenario->gate.closure;
  const auto best = best_row(rows, closed, need);
  if (!best) {
    out.mechanism.sentence = fmt::format("no resource relieved alone or in a pair closes {:.0f} % of the gap", need);
    return out;
  }
  const auto& row = rows[*best];
  out.mechanism.identified = true;
  out.mechanism.resource = row.resource;
  out.mechanism.sentence =
      row.kind == ReliefKind::policy
          ? fmt::format("giving the candidate {} closes {:.0f} % of the gap", row.resource, *row.gap_closed_percent)
          : fmt::format("without a limit on {} in both arms, {:.0f} % of the gap closes", row.resource,
                        *row.gap_closed_percent);
  out.bottleneck.name = row.bottleneck;
  out.bottleneck.confidence = confidence_of(table, symptom, rows, *best);
  out.bottleneck.artifact = "reliefs.json";
  return out;
}

}  // namespace plumbline::decide
