#pragma once
// The statistics of the gate. The unit of evidence is a replication, paired by seed; never a request.
// What is computed and why: docs/statistics.md. Sources: Wilcoxon (1945), Hodges and Lehmann (1963), Holm (1979).
// Every result has the same bits on every machine: core/elementary.h and IEEE + − × ÷ √ only.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::validate {

/// Index floor(n·p) into a sorted sample of n, at most n-1; 0 for an empty one. Where n·p is whole in decimals it is
/// taken as whole, however binary rounds p.
[[nodiscard]] std::size_t percentile_index(std::size_t n, double p);

/// LoadGen's percentile: the value at zero-based index floor(n·p) of the sorted sample, no interpolation.
/// `values` is reordered. Empty sample: returns -1.
[[nodiscard]] std::int64_t percentile(std::vector<std::int64_t>& values, double p);

/// Exact one-sided p of the signed-rank test that the differences tend above zero; zeros dropped, mid-ranks for ties.
/// All zero or empty: 1. Time and rounding grow as n³ and n·2^-53; a NaN is the caller's bug.
[[nodiscard]] double wilcoxon_greater(std::span<const double> differences);

/// Median of pairwise means, each value paired with itself too; NaN when empty.
[[nodiscard]] double hodges_lehmann(std::span<const double> differences);

/// Mean, standard deviation (n-1) and a two-sided t interval; unbounded below two values, mean NaN when empty.
struct MeanInterval {
  double mean = 0;
  double sd = 0;
  double low = 0;
  double high = 0;
  std::int64_t n = 0;
};
[[nodiscard]] MeanInterval mean_interval(std::span<const double> values, double confidence);

/// Upper end of a one-sided t interval of the mean; infinity below two values.
[[nodiscard]] double upper_bound(std::span<const double> values, double confidence);

/// Quantile of Student's t with `degrees` degrees of freedom (deterministic, error below 1e-9).
[[nodiscard]] double student_quantile(double probability, double degrees);

/// Holm's step-down: which hypotheses are rejected at family-wise level alpha.
[[nodiscard]] std::vector<bool> holm(std::span<const double> p_values, double alpha);

/// Smallest number of pairs, at least 2, whose one-sided t interval at 1-alpha would clear `margin` on the side of it
/// where `mean` lies, with this sd; -1 when none below 10,000 would. (A decided gate needs no more pairs: the caller
/// prints 0.)
[[nodiscard]] std::int64_t pairs_needed(double mean, double sd, double margin, double alpha);

/// P(Binomial(n, 1-p) <= t) < 1-confidence: LoadGen's early-stopping rule for t over-limit requests of n.
[[nodiscard]] bool early_stopping_passes(std::int64_t n, std::int64_t over_limit, double p, double confidence);

/// Most over-limit requests of n with which that rule still passes; -1 when not even none passes. LoadGen's percentile
/// estimate is the latency of that rank from the top: one fewer is discarded.
[[nodiscard]] std::int64_t early_stopping_allowed(std::int64_t n, double p, double confidence);

}  // namespace plumbline::validate
