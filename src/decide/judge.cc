#include "decide/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "validate/statistics.h"

namespace plumbline::decide {

const char* relief_kind_name(ReliefKind kind) {
  constexpr const char* kNames[] = {"rate", "capacity", "constraint", "policy"};
  return kNames[static_cast<int>(kind)];
}

const char* slice_verdict_name(SliceVerdict verdict) {
  constexpr const char* kNames[] = {"pass", "harmed", "undecided", "thin", "absent"};
  return kNames[static_cast<int>(verdict)];
}

std::string SliceId::name() const {
  return fmt::format("{} / {} / {} / {}", family, profile == "all" ? "all lengths" : profile, load, layer_class);
}

namespace {

std::optional<std::size_t> find_name(const std::vector<std::string>& names, const std::string& name) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return std::nullopt;
  return static_cast<std::size_t>(it - names.begin());
}

std::vector<std::string> families(const Arm& arm) {
  std::vector<std::string> out;
  for (const auto& model : arm.scenario->models)
    out.push_back(arm.scenario->models.size() == 1 ? model.family : model.family + ":" + model.name);
  return out;
}

std::vector<std::string> profile_names(const Arm& arm) {
  std::vector<std::string> out;
  for (const auto& profile : arm.scenario->traffic.profiles) out.push_back(profile.name);
  return out;
}

}  // namespace

std::optional<validate::Selector> selector(const Arm& arm, const SliceId& id) {
  validate::Selector out;
  if (id.family != "all") {
    const auto names = families(arm);
    out.model = find_name(names, id.family);
    // A candidate may rename a model; the traffic still sends it the same requests.
    if (!out.model && id.model && *id.model < names.size()) out.model = id.model;
    if (!out.model) return std::nullopt;
  }
  if (id.layer_class != "all") {
    out.layer = find_name(arm.costs->layer_classes, id.layer_class);
    if (!out.layer) return std::nullopt;
  }
  if (id.profile != "all") {
    out.profile = find_name(profile_names(arm), id.profile);
    if (!out.profile) return std::nullopt;
  }
  if (id.load != "all") out.phase = id.load == "burst" ? 1U : 0U;
  return out;
}

std::vector<std::optional<double>> values(const Arm& arm, const validate::MetricRow& metric, const SliceId& id) {
  std::vector<std::optional<double>> out;
  const auto chosen = arm.ok() ? selector(arm, id) : std::nullopt;
  for (const auto& run : arm.runs) out.push_back(chosen ? metric.value(run, *chosen) : std::nullopt);
  return out;
}

namespace {

std::int64_t completed(const Arm& arm, const SliceId& id) {
  const auto chosen = selector(arm, id);
  if (!chosen) return 0;
  std::int64_t total = 0;
  for (const auto& run : arm.runs) total += run.over(chosen->model, chosen->profile, chosen->phase).completed;
  return total;
}

}  // namespace

Paired compare(const Arm& baseline, const Arm& candidate, const validate::MetricRow& metric, const SliceId& id,
               double margin, double alpha) {
  Paired out;
  const auto before = values(baseline, metric, id);
  const auto after = values(candidate, metric, id);
  const std::size_t n = std::min(before.size(), after.size());
  if (n < 2) return out;
  std::vector<double> differences;
  double sum_before = 0;
  double sum_after = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!before[i] || !after[i]) return out;
    sum_before += *before[i];
    sum_after += *after[i];
    differences.push_back(*after[i] - *before[i]);
  }
  out.valid = true;
  out.n = static_cast<std::int64_t>(n);
  out.baseline = sum_before / static_cast<double>(n);
  out.candidate = sum_after / static_cast<double>(n);
  const auto interval = validate::mean_interval(differences, 0.95);
  out.change = interval.mean;
  const double sign = metric.lower_is_better ? 1.0 : -1.0;
  // Relative to the baseline mean; from nothing to something is an infinite harm, never a pass.
  const double base = std::abs(out.baseline);
  const auto ratio = [&](double x) {
    return base > 0 ? x / base : (x == 0 ? 0.0 : std::copysign(std::numeric_limits<double>::infinity(), x));
  };
  out.change_percent = 100 * ratio(interval.mean);
  out.ci_low = 100 * ratio(interval.low);
  out.ci_high = 100 * ratio(interval.high);
  out.sd_percent = 100 * ratio(interval.sd);
  out.harm_mean = sign * ratio(interval.mean);
  std::vector<double> harm;
  for (const double d : differences) harm.push_back(sign * d);
  out.harm_upper = ratio(validate::upper_bound(harm, 1 - alpha));
  out.p = validate::wilcoxon_greater(harm);
  out.requests = std::min(completed(baseline, id), completed(candidate, id));
  const double lower = out.harm_mean - (out.harm_upper - out.harm_mean);
  const bool decided = out.harm_upper < margin || lower > margin;
  out.pairs_needed = decided ? 0 : validate::pairs_needed(out.harm_mean, std::abs(out.sd_percent) / 100, margin, alpha);
  return out;
}

std::vector<SliceId> slices_of(const Arm& arm) {
  std::vector<SliceId> out;
  std::vector<std::string> loads = {"base"};
  if (arm.scenario->traffic.arrivals.kind == ingest::ArrivalKind::burst) loads.emplace_back("burst");
  const auto names = families(arm);
  for (std::size_t m = 0; m < names.size(); ++m) {
    for (const auto& load : loads) {
      out.push_back({names[m], "all", "all", load, false, m});
      for (const auto& profile : profile_names(arm)) {
        out.push_back({names[m], "all", profile, load, true, m});
        for (const auto& layer : arm.costs->layer_classes) out.push_back({names[m], layer, profile, load, false, m});
      }
    }
  }
  return out;
}

std::vector<SliceJudgement> judge(const Arm& baseline, const Arm& candidate, const validate::MetricRow& metric,
                                  const std::vector<SliceId>& slices, const ingest::Gate& gate) {
  const double margin = gate.margin(std::string(metric.name));
  std::vector<SliceJudgement> out;
  std::vector<double> p_gated;
  for (const auto& id : slices) {
    if (id.layer_class != "all" && !metric.sliced_by_class) continue;
    SliceJudgement row{id, std::string(metric.name), compare(baseline, candidate, metric, id, margin, gate.alpha),
                       SliceVerdict::absent};
    if (id.gated) p_gated.push_back(row.paired.valid ? row.paired.p : 1.0);
    out.push_back(std::move(row));
  }
  const std::vector<bool> rejected = validate::holm(p_gated, gate.alpha);
  std::size_t gated = 0;
  for (auto& row : out) {
    const bool holm_rejects = row.id.gated ? rejected[gated++] : row.paired.p < gate.alpha;
    if (!row.paired.valid) continue;  // absent
    if (row.paired.harm_mean > margin && holm_rejects) {
      row.verdict = SliceVerdict::harmed;
    } else if (row.paired.harm_upper >= margin) {
      row.verdict = SliceVerdict::undecided;
      // The interval decides but the exact test cannot yet: its smallest p is 2^-n, and Holm asks for alpha over the
      // slices.
      if (row.paired.pairs_needed == 0) {
        const auto slices_tested = static_cast<double>(std::max<std::size_t>(1, p_gated.size()));
        row.paired.pairs_needed = row.paired.n + 1;
        while (std::ldexp(slices_tested, -static_cast<int>(row.paired.pairs_needed)) > gate.alpha)
          ++row.paired.pairs_needed;
      }
    } else {
      row.verdict = row.paired.requests < gate.min_slice_requests ? SliceVerdict::thin : SliceVerdict::pass;
    }
  }
  return out;
}

std::vector<Limit> limits(const Arm& arm, double alpha) {
  std::vector<Limit> out;
  const auto& targets = arm.scenario->targets;
  const auto add = [&](std::string name, std::string unit, double limit, auto measure) {
    Limit row;
    row.name = std::move(name);
    row.unit = std::move(unit);
    row.limit = limit;
    std::vector<double> seeds;
    for (const auto& run : arm.runs) {
      const double x = measure(run);
      row.measured = row.measured && x >= 0;
      seeds.push_back(x);
    }
    row.value = validate::mean_interval(seeds, 0.95).mean;
    row.upper = validate::upper_bound(seeds, 1 - alpha);
    row.met = row.measured && row.upper <= limit;
    out.push_back(std::move(row));
  };
  if (targets.p95)
    add("p95", "s", static_cast<double>(targets.p95->raw()) * 1e-9,
        [](const validate::Summary& s) { return static_cast<double>(s.all.p95_ns) * 1e-9; });
  if (targets.p99)
    add("p99", "s", static_cast<double>(targets.p99->raw()) * 1e-9,
        [](const validate::Summary& s) { return static_cast<double>(s.all.p99_ns) * 1e-9; });
  if (targets.loss) {
    add("loss", "ratio", *targets.loss, [](const validate::Summary& s) {
      return s.all.offered == 0 ? 0.0 : static_cast<double>(s.all.lost) / static_cast<double>(s.all.offered);
    });
  }
  return out;
}

}  // namespace plumbline::decide
