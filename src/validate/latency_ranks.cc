#include "validate/latency_ranks.h"

#include <algorithm>

#include "core/check.h"
#include "validate/statistics.h"

namespace plumbline::validate {
namespace {

constexpr std::size_t kBins = 1024;  // a few dozen of ten thousand latencies each; counts of a key fit in 4 KiB

}  // namespace

LatencyRanks::LatencyRanks(std::span<const std::int64_t> latencies, std::span<const std::uint32_t> keys,
                           std::size_t key_count)
    : counts_(key_count * kBins),
      bin_begin_(kBins + 1),
      by_bin_(latencies.size()),
      key_by_bin_(latencies.size()),
      summed_(kBins) {
  PL_CHECK(latencies.size() == keys.size());
  std::int64_t largest = 0;
  for (const std::int64_t latency : latencies) {
    PL_CHECK(latency >= 0);
    largest = std::max(largest, latency);
  }
  unsigned shift = 0;
  while ((largest >> shift) >= static_cast<std::int64_t>(kBins)) ++shift;

  for (std::size_t i = 0; i < latencies.size(); ++i) {
    ++counts_[keys[i] * kBins + static_cast<std::size_t>(latencies[i] >> shift)];
  }
  for (std::size_t key = 0; key < key_count; ++key) {
    for (std::size_t bin = 0; bin < kBins; ++bin) bin_begin_[bin + 1] += counts_[key * kBins + bin];
  }
  for (std::size_t bin = 0; bin < kBins; ++bin) bin_begin_[bin + 1] += bin_begin_[bin];
  std::vector<std::uint32_t> next(bin_begin_.begin(), bin_begin_.end() - 1);
  for (std::size_t i = 0; i < latencies.size(); ++i) {
    const std::uint32_t slot = next[static_cast<std::size_t>(latencies[i] >> shift)]++;
    by_bin_[slot] = latencies[i];
    key_by_bin_[slot] = keys[i];
  }
}

void LatencyRanks::percentiles(std::span<const std::uint8_t> member, std::span<const double> ps,
                               std::span<std::int64_t> out) {
  PL_CHECK(member.size() * kBins == counts_.size() && ps.size() == out.size());
  std::fill(summed_.begin(), summed_.end(), 0U);
  std::size_t n = 0;
  for (std::size_t key = 0; key < member.size(); ++key) {
    if (member[key] == 0) continue;
    const std::uint32_t* counts = counts_.data() + key * kBins;
    for (std::size_t bin = 0; bin < kBins; ++bin) summed_[bin] += counts[bin];
  }
  for (const std::uint32_t count : summed_) n += count;
  std::size_t bin = 0;
  std::size_t below = 0;  // members in earlier bins
  for (std::size_t i = 0; i < ps.size(); ++i) {
    if (n == 0) {
      out[i] = -1;
      continue;
    }
    const std::size_t rank = percentile_index(n, ps[i]);
    while (below + summed_[bin] <= rank) below += summed_[bin++];
    out[i] = within_bin(member, bin, rank - below);
  }
}

std::int64_t LatencyRanks::within_bin(std::span<const std::uint8_t> member, std::size_t bin, std::size_t rank) {
  // Every slot is written and kept only if it counts: keys are as good as random, so a branch would often miss.
  candidates_.resize(bin_begin_[bin + 1] - bin_begin_[bin]);
  std::size_t kept = 0;
  for (std::uint32_t i = bin_begin_[bin]; i < bin_begin_[bin + 1]; ++i) {
    candidates_[kept] = by_bin_[i];
    kept += member[key_by_bin_[i]];
  }
  const auto nth = candidates_.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(candidates_.begin(), nth, candidates_.begin() + static_cast<std::ptrdiff_t>(kept));
  return *nth;
}

}  // namespace plumbline::validate
