#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/elementary.h"
#include "core/random.h"
#include "serve/run.h"

namespace plumbline::serve {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;

std::int64_t whole_nanoseconds(Seconds seconds) { return std::llround(seconds.raw() * kNanosecondsPerSecond); }

/// Draws an index with probability proportional to its share: one value of the stream per request, used or not.
class ShareDraw {
 public:
  ShareDraw(const std::vector<double>& shares, std::uint64_t seed, std::string_view name) : stream_(seed, name) {
    double total = 0;
    for (const double share : shares) {
      PL_CHECK(share >= 0);
      total += share;
      upper_.push_back(total);
    }
    PL_CHECK(total > 0 && shares.size() <= std::numeric_limits<std::uint16_t>::max());
  }

  std::uint16_t next() {
    const double u = stream_.next_unit() * upper_.back();
    std::size_t i = 0;
    while (i + 1 < upper_.size() && u >= upper_[i]) ++i;
    return static_cast<std::uint16_t>(i);
  }

 private:
  RandomStream stream_;
  std::vector<double> upper_;
};

/// A stretch of constant rate.
struct Segment {
  std::int64_t begin_ns = 0;
  std::int64_t length_ns = 0;
  double per_ns = 0;
  LoadPhase phase = LoadPhase::base;
};

std::vector<Segment> poisson_segments(const ingest::Arrivals& arrivals, std::int64_t duration_ns) {
  const double base = arrivals.rate / kNanosecondsPerSecond;
  if (arrivals.kind != ingest::ArrivalKind::burst) return {{0, duration_ns, base, LoadPhase::base}};
  const double peak = arrivals.peak / kNanosecondsPerSecond;
  const std::int64_t every = whole_nanoseconds(arrivals.every);
  const std::int64_t burst = whole_nanoseconds(arrivals.length);
  PL_CHECK(every > 0 && burst >= 0 && burst <= every);
  std::vector<Segment> segments;
  const auto add = [&](std::int64_t begin, std::int64_t length, double per_ns, LoadPhase phase) {
    length = std::min(length, duration_ns - begin);
    if (length > 0) segments.push_back({begin, length, per_ns, phase});
  };
  for (std::int64_t period = 0; period < duration_ns; period += every) {
    add(period, every - burst, base, LoadPhase::base);
    add(period + every - burst, burst, peak, LoadPhase::burst);
  }
  return segments;
}

/// A Poisson process of piecewise constant rate by time change: unit exponential gaps of a rate-1 process are laid
/// along the integral of the rate, so nothing is thinned and a change of the peak moves only what comes after it.
void fill_poisson(const std::vector<Segment>& segments, std::uint64_t seed, std::vector<Arrival>& out) {
  RandomStream gaps(seed, "arrival-gaps");
  const auto next_gap = [&gaps] { return -exact_log(1.0 - gaps.next_unit()); };
  double gap = next_gap();  // what is left of the current unit-exponential gap
  for (const Segment& segment : segments) {
    if (segment.per_ns <= 0) continue;
    const auto length = static_cast<double>(segment.length_ns);
    double at = 0;  // ns from the segment's begin
    while (true) {
      const double next = at + gap / segment.per_ns;
      if (next >= length) {
        gap = std::max(0.0, gap - (length - at) * segment.per_ns);
        break;
      }
      at = next;
      out.push_back({segment.begin_ns + static_cast<std::int64_t>(at), 0, 0, segment.phase});
      gap = next_gap();
    }
  }
}

void fill_constant(double rate, std::int64_t duration_ns, std::vector<Arrival>& out) {
  if (rate <= 0) return;
  const double gap_ns = kNanosecondsPerSecond / rate;
  for (std::int64_t k = 0;; ++k) {
    const auto at = static_cast<std::int64_t>(static_cast<double>(k) * gap_ns);
    if (at >= duration_ns) return;
    out.push_back({at, 0, 0, LoadPhase::base});
  }
}

/// Arrivals to make room for: the mean and six standard deviations of a Poisson count.
std::size_t expected_count(const std::vector<Segment>& segments) {
  double mean = 0;
  for (const Segment& segment : segments) mean += segment.per_ns * static_cast<double>(segment.length_ns);
  return static_cast<std::size_t>(mean + 6 * std::sqrt(mean) + 16);
}

}  // namespace

ArrivalTrace make_arrivals(const ingest::Traffic& traffic, const std::vector<double>& model_shares,
                           std::uint64_t seed) {
  PL_CHECK(!traffic.profiles.empty() && !model_shares.empty());
  ArrivalTrace trace;
  trace.duration_ns = whole_nanoseconds(traffic.duration);
  const std::vector<Segment> segments = poisson_segments(traffic.arrivals, trace.duration_ns);
  trace.arrivals.reserve(expected_count(segments));
  if (traffic.arrivals.kind == ingest::ArrivalKind::constant) {
    fill_constant(traffic.arrivals.rate, trace.duration_ns, trace.arrivals);
  } else {
    fill_poisson(segments, seed, trace.arrivals);
  }
  // Request indices are 32 bits wide throughout the run.
  PL_CHECK(trace.arrivals.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));

  std::vector<double> profile_shares;
  for (const ingest::Profile& profile : traffic.profiles) profile_shares.push_back(profile.share);
  ShareDraw models(model_shares, seed, "arrival-models");
  ShareDraw profiles(profile_shares, seed, "arrival-profiles");
  for (Arrival& arrival : trace.arrivals) {
    arrival.model = models.next();
    arrival.profile = profiles.next();
  }
  return trace;
}

}  // namespace plumbline::serve
