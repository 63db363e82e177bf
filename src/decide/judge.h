#pragma once
// Paired judgement of one metric on every slice: equivalence within a margin, harm only after Holm.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decide/evidence.h"
#include "validate/metrics.h"

namespace plumbline::decide {

enum class SliceVerdict : std::uint8_t { pass, harmed, undecided, thin, absent };
[[nodiscard]] const char* slice_verdict_name(SliceVerdict verdict);

/// Paired comparison of per-seed values; `change` > 0 may be good or bad, harm is oriented.
struct Paired {
  double baseline = 0;  ///< mean, in the metric's unit
  double candidate = 0;
  double change = 0;          ///< mean paired difference, in the metric's unit
  double change_percent = 0;  ///< of the baseline mean
  double ci_low = 0;          ///< two-sided 95 % interval of the mean difference, percent of the baseline mean
  double ci_high = 0;
  double harm_upper = 0;  ///< one-sided upper bound of the harm at 1-alpha, ratio
  double harm_mean = 0;   ///< oriented: positive is worse, ratio
  double p = 1;           ///< one-sided exact Wilcoxon for harm
  double sd_percent = 0;
  std::int64_t n = 0;
  std::int64_t pairs_needed = 0;  ///< 0 when decided; -1: more than 10,000
  std::int64_t requests = 0;      ///< completed, smaller arm, all pairs
  bool valid = false;             ///< every seed has a value in both arms
};

struct SliceId {
  std::string family;
  std::string layer_class = "all";
  std::string profile = "all";
  std::string load = "all";
  bool gated = false;
  std::optional<std::size_t> model = {};  ///< place of the model in the scenario, where an arm calls it otherwise
  [[nodiscard]] std::string name() const;
  friend bool operator==(const SliceId&, const SliceId&) = default;
};

struct SliceJudgement {
  SliceId id;
  std::string metric;
  Paired paired;
  SliceVerdict verdict = SliceVerdict::absent;
};

/// Selector of a slice in an arm's summaries; nothing when the arm has no such layer class.
[[nodiscard]] std::optional<validate::Selector> selector(const Arm& arm, const SliceId& id);

/// Per-seed values; empty optional entries where the metric has no value.
[[nodiscard]] std::vector<std::optional<double>> values(const Arm& arm, const validate::MetricRow& metric,
                                                        const SliceId& id);

/// Pairs two arms on one slice. `margin` and `alpha` as ratios.
[[nodiscard]] Paired compare(const Arm& baseline, const Arm& candidate, const validate::MetricRow& metric,
                             const SliceId& id, double margin, double alpha);

/// Every slice of a scenario: gated ones (family × profile × load), their margins, and each layer class within.
[[nodiscard]] std::vector<SliceId> slices_of(const Arm& arm);

/// Judges the metric on the given slices; Holm runs over the gated ones.
[[nodiscard]] std::vector<SliceJudgement> judge(const Arm& baseline, const Arm& candidate,
                                                const validate::MetricRow& metric, const std::vector<SliceId>& slices,
                                                const ingest::Gate& gate);

/// One limit of the service: measured per seed, gated on the upper bound of its mean.
struct Limit {
  std::string name;  ///< "p95", "p99", "loss"
  std::string unit;
  double value = 0;  ///< mean over seeds
  double upper = 0;  ///< one-sided bound at 1-alpha
  double limit = 0;
  bool met = false;
  bool measured = true;
};
[[nodiscard]] std::vector<Limit> limits(const Arm& arm, double alpha);

/// The slice and metric that the rest of the decision explains.
struct Symptom {
  std::string metric;
  SliceId slice;
  bool harmful = false;  ///< false: nothing is wrong
};

}  // namespace plumbline::decide
