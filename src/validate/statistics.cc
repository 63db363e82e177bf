#include "validate/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/check.h"
#include "core/elementary.h"

namespace plumbline::validate {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Signed ranks with mid-ranks doubled, so that ties stay integers: ranks of |d| and the sum of those with d > 0.
struct SignedRanks {
  std::vector<std::int64_t> doubled;
  std::int64_t positive_sum = 0;
};

SignedRanks signed_ranks(std::span<const double> differences) {
  std::vector<double> kept;
  for (const double d : differences) {
    PL_CHECK(d == d);  // a metric without a value never becomes a difference
    if (d != 0) kept.push_back(d);
  }
  std::sort(kept.begin(), kept.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  SignedRanks ranks;
  for (std::size_t begin = 0; begin < kept.size();) {
    std::size_t end = begin;
    while (end < kept.size() && std::abs(kept[end]) == std::abs(kept[begin])) ++end;
    const auto doubled_rank = static_cast<std::int64_t>(begin + 1 + end);  // 2 · mean of ranks begin+1 … end
    for (; begin < end; ++begin) {
      ranks.doubled.push_back(doubled_rank);
      if (kept[begin] > 0) ranks.positive_sum += doubled_rank;
    }
  }
  return ranks;
}

double log_one_plus(double y) {
  if (std::abs(y) > 0.25) return exact_log(1.0 + y);
  const double s = y / (2.0 + y);  // log(1+y) = 2 atanh s; |s| <= 1/7, so 12 terms leave less than 2^-60
  const double z = s * s;
  double series = 0;
  for (int k = 23; k >= 1; k -= 2) series = series * z + 1.0 / k;
  return 2.0 * s * series;
}

/// Γ(a + 1/2) / Γ(a): the difference of two Stirling series (Abramowitz and Stegun 6.1.40 with Bernoulli polynomials
/// at 1/2) beyond a = 16, where its next term is below 1e-15, and the recurrence of Γ down to a.
double half_step_gamma_ratio(double a) {
  double down = 1.0;
  while (a < 16.0) {
    down *= a / (a + 0.5);
    a += 1.0;
  }
  const double w = 1.0 / (a * a);
  const double series = (((-31.0 / 18432.0 * w + 17.0 / 14336.0) * w - 1.0 / 640.0) * w + 1.0 / 192.0) * w - 1.0 / 8.0;
  return down * std::sqrt(a) * exact_exp(series / a);
}

/// Continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8) by Lentz's method.
double beta_fraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300;
  constexpr int kMostSteps = 100000;  // steps grow as the root of the larger parameter; far more than any use needs
  const auto off_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1.0;
  double d = 1.0 / off_zero(1.0 - (a + b) * x / (a + 1.0));
  double fraction = d;
  for (int m = 1; m < kMostSteps; ++m) {
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 / off_zero(1.0 + even * d);
    c = off_zero(1.0 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 / off_zero(1.0 + odd * d);
    c = off_zero(1.0 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1.0) < 1e-16) break;
  }
  return fraction;
}

/// Student's t with ν degrees of freedom at t >= 0.
class StudentT {
 public:
  explicit StudentT(double degrees) : degrees_(degrees), ratio_(half_step_gamma_ratio(degrees / 2)) {}

  [[nodiscard]] double density(double t) const {
    constexpr double kPi = 3.14159265358979323846;
    const double power = -(degrees_ + 1) / 2 * log_one_plus(t * t / degrees_);
    return ratio_ / std::sqrt(degrees_ * kPi) * exact_exp(power);
  }

  /// P(T > t).
  [[nodiscard]] double tail(double t) const {
    constexpr double kRootPi = 1.77245385090551602730;
    const double a = degrees_ / 2;
    const double below = degrees_ / (degrees_ + t * t);  // x of I_x(ν/2, 1/2) = P(|T| > t)
    const double above = t * t / (degrees_ + t * t);
    // x^a (1-x)^(1/2) / B(a, 1/2)
    const double front = exact_exp(-a * log_one_plus(t * t / degrees_)) * std::sqrt(above) * ratio_ / kRootPi;
    if (below < (a + 1) / (a + 2.5)) return 0.5 * front * beta_fraction(below, a, 0.5) / a;
    return 0.5 * (1.0 - front * beta_fraction(above, 0.5, a) / 0.5);
  }

 private:
  double degrees_;
  double ratio_;
};

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double deviation_of(std::span<const double> values, double mean) {
  if (values.size() < 2) return 0;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

std::size_t percentile_index(std::size_t n, double p) {
  PL_CHECK(p >= 0 && p <= 1);
  // p is a decimal (0.95) that binary cannot hold: a product this near a whole number is meant to be it.
  const double rank = static_cast<double>(n) * p;
  const double nearest = std::floor(rank + 0.5);
  const double whole = std::abs(rank - nearest) <= 1e-12 * nearest ? nearest : std::floor(rank);
  const auto index = static_cast<std::size_t>(whole);
  return n == 0 ? 0 : std::min(index, n - 1);
}

std::int64_t percentile(std::vector<std::int64_t>& values, double p) {
  if (values.empty()) return -1;
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(percentile_index(values.size(), p));
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

double wilcoxon_greater(std::span<const double> differences) {
  const SignedRanks ranks = signed_ranks(differences);
  if (ranks.doubled.empty()) return 1.0;
  const std::int64_t total = std::accumulate(ranks.doubled.begin(), ranks.doubled.end(), std::int64_t{0});
  // Distribution of the positive sum when every sign is a fair coin, one rank after the other. Halving is exact in
  // binary and every term is positive, so rounding stays below n · 2^-53 of the result.
  std::vector<double> probability(static_cast<std::size_t>(total) + 1, 0.0);
  probability[0] = 1.0;
  std::int64_t reach = 0;
  for (const std::int64_t rank : ranks.doubled) {
    reach += rank;
    for (std::int64_t s = reach; s >= 0; --s) {
      const double with = s >= rank ? probability[static_cast<std::size_t>(s - rank)] : 0.0;
      double& here = probability[static_cast<std::size_t>(s)];
      here = 0.5 * here + 0.5 * with;
    }
  }
  double p = 0;
  for (std::int64_t s = total; s >= ranks.positive_sum; --s) p += probability[static_cast<std::size_t>(s)];
  return std::min(p, 1.0);
}

double hodges_lehmann(std::span<const double> differences) {
  if (differences.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> means;
  means.reserve(differences.size() * (differences.size() + 1) / 2);
  for (std::size_t i = 0; i < differences.size(); ++i) {
    for (std::size_t j = i; j < differences.size(); ++j) means.push_back((differences[i] + differences[j]) / 2);
  }
  const auto middle = means.begin() + static_cast<std::ptrdiff_t>(means.size() / 2);
  std::nth_element(means.begin(), middle, means.end());
  if (means.size() % 2 == 1) return *middle;
  return (*std::max_element(means.begin(), middle) + *middle) / 2;
}

MeanInterval mean_interval(std::span<const double> values, double confidence) {
  PL_CHECK(confidence > 0 && confidence < 1);
  MeanInterval interval;
  interval.n = static_cast<std::int64_t>(values.size());
  interval.low = -kInfinity;
  interval.high = kInfinity;
  if (values.empty()) {
    interval.mean = std::numeric_limits<double>::quiet_NaN();
    return interval;
  }
  interval.mean = mean_of(values);
  interval.sd = deviation_of(values, interval.mean);
  if (values.size() < 2) return interval;
  const auto n = static_cast<double>(values.size());
  const double half = student_quantile((1 + confidence) / 2, n - 1) * interval.sd / std::sqrt(n);
  interval.low = interval.mean - half;
  interval.high = interval.mean + half;
  return interval;
}

double upper_bound(std::span<const double> values, double confidence) {
  if (values.size() < 2) return kInfinity;
  const double mean = mean_of(values);
  const auto n = static_cast<double>(values.size());
  return mean + student_quantile(confidence, n - 1) * deviation_of(values, mean) / std::sqrt(n);
}

double student_quantile(double probability, double degrees) {
  PL_CHECK(probability > 0 && probability < 1 && degrees > 0);
  if (probability == 0.5) return 0;
  const double tail = probability > 0.5 ? 1.0 - probability : probability;
  const StudentT student(degrees);
  double low = 0;
  double high = 1;
  while (student.tail(high) > tail) {
    low = high;
    high *= 2;
  }
  double t = 0.5 * (low + high);
  for (int step = 0; step < 200 && high - low > 1e-13 * high; ++step) {
    const double excess = student.tail(t) - tail;
    (excess > 0 ? low : high) = t;
    const double newton = t + excess / student.density(t);
    const double next = newton > low && newton < high ? newton : 0.5 * (low + high);
    if (std::abs(next - t) <= 1e-14 * t) break;
    t = next;
  }
  return probability > 0.5 ? t : -t;
}

std::vector<bool> holm(std::span<const double> p_values, double alpha) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<bool> rejected(p_values.size(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(order.size() - i);
    if (!(p_values[order[i]] * left <= alpha)) break;
    rejected[order[i]] = true;
  }
  return rejected;
}

std::int64_t pairs_needed(double mean, double sd, double margin, double alpha) {
  constexpr std::int64_t kMost = 10000;
  const double distance = std::abs(margin - mean);
  const auto clears = [&](std::int64_t n) {
    const auto pairs = static_cast<double>(n);
    return student_quantile(1 - alpha, pairs - 1) * sd / std::sqrt(pairs) < distance;
  };
  if (!(distance > 0) || !(sd >= 0) || !clears(kMost - 1)) return -1;
  std::int64_t low = 1;  // does not clear: one pair has no interval
  std::int64_t high = kMost - 1;
  while (high - low > 1) {  // the half-width falls with every further pair
    const std::int64_t middle = low + (high - low) / 2;
    (clears(middle) ? high : low) = middle;
  }
  return high;
}

bool early_stopping_passes(std::int64_t n, std::int64_t over_limit, double p, double confidence) {
  PL_CHECK(n >= 0 && over_limit >= 0 && p > 0 && p < 1 && confidence > 0 && confidence < 1);
  if (over_limit >= n) return false;
  const double q = 1 - p;
  // Sum around the largest term, whose logarithm cannot underflow as (1-q)^n does.
  const auto mode = static_cast<std::int64_t>(static_cast<double>(n + 1) * q);
  const std::int64_t peak = std::min(over_limit, mode);
  double log_peak = static_cast<double>(n - peak) * exact_log(p) + static_cast<double>(peak) * exact_log(q);
  for (std::int64_t k = 1; k <= peak; ++k) {
    log_peak += exact_log(static_cast<double>(n - k + 1) / static_cast<double>(k));
  }
  double sum = 1;
  double term = 1;
  for (std::int64_t k = peak; k > 0 && term > 0; --k) {
    term *= static_cast<double>(k) / static_cast<double>(n - k + 1) * (p / q);
    sum += term;
  }
  term = 1;
  for (std::int64_t k = peak; k < over_limit && term > 0; ++k) {
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1) * (q / p);
    sum += term;
  }
  return exact_exp(log_peak + exact_log(sum)) < 1 - confidence;
}

std::int64_t early_stopping_allowed(std::int64_t n, double p, double confidence) {
  if (!early_stopping_passes(n, 0, p, confidence)) return -1;
  std::int64_t low = 0;   // passes
  std::int64_t high = n;  // does not
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (early_stopping_passes(n, middle, p, confidence) ? low : high) = middle;
  }
  return low;
}

}  // namespace plumbline::validate
