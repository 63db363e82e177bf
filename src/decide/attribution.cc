// Which change moved the metric: exact Shapley values over change ids, interactions, the first failing stage.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "decide/decision.h"
#include "decide/stage_walk.h"
#include "validate/statistics.h"

namespace plumbline::decide {
namespace {

const Arm* find_arm(const EvidenceTable& table, std::uint32_t changes) {
  for (const auto& coalition : table.coalitions) {
    if (coalition.changes == changes) return coalition.arm.ok() ? &coalition.arm : nullptr;
  }
  return nullptr;
}

std::string coalition_name(const EvidenceTable& table, std::uint32_t changes) {
  std::string out;
  for (std::size_t i = 0; i < table.changes.size(); ++i) {
    if ((changes >> i & 1U) != 0) out += (out.empty() ? "" : " + ") + table.changes[i].id;
  }
  return out.empty() ? "baseline" : out;
}

double factorial(int n) {
  double f = 1;
  for (int i = 2; i <= n; ++i) f *= i;
  return f;
}

// Per-seed values of every coalition; empty vectors where it has none.
std::vector<std::vector<double>> coalition_values(const EvidenceTable& table, const validate::MetricRow& metric,
                                                  const SliceId& slice, Attribution& out) {
  const std::size_t count = std::size_t{1} << table.changes.size();
  std::vector<std::vector<double>> v(count);
  for (std::size_t mask = 0; mask < count; ++mask) {
    const Arm* arm = find_arm(table, static_cast<std::uint32_t>(mask));
    if (arm == nullptr) {
      out.no_value.push_back(coalition_name(table, static_cast<std::uint32_t>(mask)));
      continue;
    }
    for (const auto& x : values(*arm, metric, slice)) {
      if (!x) {
        v[mask].clear();
        break;
      }
      v[mask].push_back(*x);
    }
  }
  return v;
}

// Orders of arrival of the changes, weighted alike; only those whose every step has a value count (all, when all do).
struct Marginals {
  std::vector<std::vector<double>> sums;  ///< [change][seed]
  double weight = 0;
};

Marginals marginals(const std::vector<std::vector<double>>& v, std::size_t changes, std::size_t seeds) {
  Marginals out;
  out.sums.assign(changes, std::vector<double>(seeds, 0.0));
  const bool all = std::all_of(v.begin(), v.end(), [](const auto& x) { return !x.empty(); });
  const int k = static_cast<int>(changes);
  if (all) {
    out.weight = 1;
    for (std::size_t mask = 0; mask < v.size(); ++mask) {
      const int size = std::popcount(mask);
      for (std::size_t i = 0; i < changes; ++i) {
        if ((mask >> i & 1U) != 0) continue;
        const double w = factorial(size) * factorial(k - size - 1) / factorial(k);
        for (std::size_t s = 0; s < seeds; ++s) out.sums[i][s] += w * (v[mask | (std::size_t{1} << i)][s] - v[mask][s]);
      }
    }
    return out;
  }
  // Some coalition has no value: average over the orders that never pass through one.
  std::vector<std::size_t> order(changes);
  for (std::size_t i = 0; i < changes; ++i) order[i] = i;
  do {
    std::size_t mask = 0;
    bool valid = !v[0].empty();
    for (const std::size_t i : order) {
      mask |= std::size_t{1} << i;
      valid = valid && !v[mask].empty();
    }
    if (!valid) continue;
    out.weight += 1;
    mask = 0;
    for (const std::size_t i : order) {
      const std::size_t next = mask | (std::size_t{1} << i);
      for (std::size_t s = 0; s < seeds; ++s) out.sums[i][s] += v[next][s] - v[mask][s];
      mask = next;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  for (auto& row : out.sums) {
    for (auto& x : row) x = out.weight > 0 ? x / out.weight : 0;
  }
  return out;
}

void add_interactions(const EvidenceTable& table, const std::vector<std::vector<double>>& v, Attribution& out) {
  const std::size_t k = table.changes.size();
  const auto mean = [](const std::vector<double>& x) {
    double sum = 0;
    for (const double a : x) sum += a;
    return sum / static_cast<double>(x.size());
  };
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = i + 1; j < k; ++j) {
      double value = 0;
      const std::size_t pair = (std::size_t{1} << i) | (std::size_t{1} << j);
      for (std::size_t mask = 0; mask < v.size(); ++mask) {
        if ((mask & pair) != 0) continue;
        const int size = std::popcount(mask);
        const double w =
            factorial(size) * factorial(static_cast<int>(k) - size - 2) / factorial(static_cast<int>(k) - 1);
        value += w * (mean(v[mask | pair]) - mean(v[mask | std::size_t{1} << i]) - mean(v[mask | std::size_t{1} << j]) +
                      mean(v[mask]));
      }
      out.interactions.push_back({{table.changes[i].id, table.changes[j].id}, value});
    }
  }
}

}  // namespace

Attribution attribute(const EvidenceTable& table, const validate::MetricRow& metric, const SliceId& slice) {
  Attribution out;
  out.metric = metric.name;
  out.slice = slice;
  out.exact = table.exact_coalitions;
  if (table.changes.empty()) return out;
  const auto v = coalition_values(table, metric, slice, out);
  if (v.front().empty() || v.back().empty()) return out;
  const std::size_t seeds = v.front().size();
  const auto m = marginals(v, table.changes.size(), seeds);
  if (m.weight <= 0) return out;
  std::vector<double> totals;
  for (std::size_t s = 0; s < seeds; ++s) totals.push_back(v.back()[s] - v.front()[s]);
  const auto total = validate::mean_interval(totals, 0.95);
  out.total = total.mean;
  const bool above_noise = total.low > 0 || total.high < 0;
  for (std::size_t i = 0; i < table.changes.size(); ++i) {
    const auto interval = validate::mean_interval(m.sums[i], 0.95);
    Share share{table.changes[i].id, interval.mean, std::nullopt, interval.low, interval.high};
    if (above_noise) share.percent = 100 * interval.mean / total.mean;
    out.shares.push_back(std::move(share));
  }
  if (out.no_value.empty()) add_interactions(table, v, out);
  return out;
}

std::optional<std::size_t> guilty_change(const EvidenceTable& table, const Symptom& symptom) {
  const auto* metric = validate::find_metric(symptom.metric);
  if (!symptom.harmful || metric == nullptr) return std::nullopt;
  const auto attribution = attribute(table, *metric, symptom.slice);
  std::optional<std::size_t> guilty;
  double worst = 0;
  for (std::size_t i = 0; i < attribution.shares.size(); ++i) {
    const double harm = (metric->lower_is_better ? 1 : -1) * attribution.shares[i].value;
    if (harm > worst) {
      worst = harm;
      guilty = i;
    }
  }
  return guilty;
}

StageWalk walk_stages(const EvidenceTable& table, const Symptom& symptom) {
  StageWalk out;
  const auto* metric = validate::find_metric(symptom.metric);
  if (!symptom.harmful || metric == nullptr) return out;
  const ingest::Gate& gate = table.baseline.scenario->gate;
  std::vector<SliceId> slices;
  if (metric->sliced_by_class) {
    for (const auto& id : slices_of(table.baseline)) {
      if (id.gated) slices.push_back(id);
    }
  } else {
    slices.push_back(symptom.slice);
    slices.back().gated = true;
  }
  std::uint32_t before = 0;
  for (int s = 0; s < ingest::kStageCount; ++s) {
    std::uint32_t with = before;
    for (std::size_t i = 0; i < table.changes.size(); ++i) {
      if (static_cast<int>(table.changes[i].stage) == s) with |= 1U << i;
    }
    if (with == before) continue;
    const Arm* low = find_arm(table, before);
    const Arm* high = find_arm(table, with);
    const std::string stage = ingest::stage_name(static_cast<ingest::Stage>(s));
    before = with;
    if (low == nullptr || high == nullptr) {
      out.feedback.push_back(
          fmt::format("{} has no value: {} cannot be scheduled", stage, coalition_name(table, with)));
      continue;
    }
    const auto rows = judge(*low, *high, *metric, slices, gate);
    const bool harmed = std::any_of(rows.begin(), rows.end(),
                                    [](const auto& r) { return r.id.gated && r.verdict == SliceVerdict::harmed; });
    if (out.first == "none") {
      if (harmed) out.first = stage;
      continue;
    }
    const double margin = gate.margin(symptom.metric);
    const auto effect = compare(*low, *high, *metric, symptom.slice, margin, gate.alpha);
    if (!effect.valid || std::abs(effect.harm_mean) <= margin || (effect.ci_low < 0 && effect.ci_high > 0)) continue;
    out.feedback.push_back(fmt::format("{}, {} by {} ({:+.1f} %)", out.first,
                                       effect.harm_mean > 0 ? "amplified" : "relieved", stage, effect.change_percent));
  }
  return out;
}

}  // namespace plumbline::decide
