#include "execute/numerics/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/elementary.h"
#include "core/parallel.h"

namespace plumbline::numerics {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 14;

struct Sums {
  ErrorSummary summary;
  double difference = 0;
  double squares = 0;
  double signal = 0;
};

}  // namespace

ErrorSummary compare_values(std::span<const float> results, const std::function<double(std::size_t)>& original,
                            unsigned threads) {
  std::vector<Sums> parts((results.size() + kChunk - 1) / kChunk);
  parallel_for(parts.size(), threads, [&](std::size_t chunk) {
    Sums& sums = parts[chunk];
    for (std::size_t i = chunk * kChunk; i < std::min(results.size(), (chunk + 1) * kChunk); ++i) {
      const double x = original(i);
      const double y = results[i];
      if (!std::isfinite(x) || !std::isfinite(y)) {
        ++sums.summary.not_finite;
        continue;
      }
      const double difference = y - x;
      ++sums.summary.compared;
      sums.summary.largest = std::max(sums.summary.largest, std::fabs(difference));
      if (x != 0) sums.summary.largest_relative = std::max(sums.summary.largest_relative, std::fabs(difference / x));
      sums.difference += difference;
      sums.squares += difference * difference;
      sums.signal += x * x;
    }
  });
  Sums all;
  for (const Sums& part : parts) {
    all.summary.compared += part.summary.compared;
    all.summary.not_finite += part.summary.not_finite;
    all.summary.largest = std::max(all.summary.largest, part.summary.largest);
    all.summary.largest_relative = std::max(all.summary.largest_relative, part.summary.largest_relative);
    all.difference += part.difference;
    all.squares += part.squares;
    all.signal += part.signal;
  }
  ErrorSummary summary = all.summary;
  if (summary.compared == 0) return summary;
  const auto count = static_cast<double>(summary.compared);
  summary.root_mean_square = std::sqrt(all.squares / count);
  summary.bias = all.difference / count;
  summary.signal_to_noise_db = all.squares == 0 ? std::numeric_limits<double>::infinity()
                                                : 10 / std::numbers::ln10 * exact_log(all.signal / all.squares);
  return summary;
}

}  // namespace plumbline::numerics
