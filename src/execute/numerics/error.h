#pragma once
// How far rounded values are from the originals, in float64.
#include <cstdint>
#include <functional>
#include <span>

namespace plumbline::numerics {

/// Errors over the pairs whose original and result are both finite; others are counted, not measured.
struct ErrorSummary {
  std::uint64_t compared = 0;
  std::uint64_t not_finite = 0;
  double largest = 0;             ///< max |y - x|
  double largest_relative = 0;    ///< max |y - x| / |x| over x != 0
  double root_mean_square = 0;    ///< sqrt(mean (y - x)^2)
  double bias = 0;                ///< mean (y - x): stochastic rounding brings it to zero
  double signal_to_noise_db = 0;  ///< 10 log10(sum x^2 / sum (y - x)^2); infinite where nothing changed
};

/// Compares `results` with original(0), original(1), … Sums are taken in fixed chunks and added in order: the same bits
/// at any thread count.
[[nodiscard]] ErrorSummary compare_values(std::span<const float> results,
                                          const std::function<double(std::size_t)>& original, unsigned threads = 1);

}  // namespace plumbline::numerics
