#pragma once
// Percentiles of many overlapping groups of one set of latencies, without sorting it once per group.
#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::validate {

/// Latencies counted into equal bins per key. A percentile of any set of keys is found by its bin, then among the few
/// latencies of that bin: exact, and linear in the number of requests however many sets are asked for.
class LatencyRanks {
 public:
  /// `keys[i]` < `key_count` is the key of `latencies[i]` >= 0.
  LatencyRanks(std::span<const std::int64_t> latencies, std::span<const std::uint32_t> keys, std::size_t key_count);

  /// LoadGen's percentiles (statistics.h) over the latencies of the keys with `member[key]` 1 and not 0, one for each
  /// of the ascending `ps`; -1 each when there are none.
  void percentiles(std::span<const std::uint8_t> member, std::span<const double> ps, std::span<std::int64_t> out);

 private:
  std::int64_t within_bin(std::span<const std::uint8_t> member, std::size_t bin, std::size_t rank);

  std::vector<std::uint32_t> counts_;      // [key][bin]
  std::vector<std::uint32_t> bin_begin_;   // into the two below
  std::vector<std::int64_t> by_bin_;       // latencies, bin by bin
  std::vector<std::uint32_t> key_by_bin_;  // their keys
  std::vector<std::uint32_t> summed_;      // one group's counts
  std::vector<std::int64_t> candidates_;   // one group's latencies in one bin
};

}  // namespace plumbline::validate
