#include "serve/batching/padding.h"

#include <algorithm>

#include "core/check.h"

namespace plumbline::serve {

Padding::Padding(const execute::CostTable& costs, const std::vector<ingest::Profile>& profiles) : costs_(&costs) {
  PL_CHECK(!costs.batch_buckets.empty() && !costs.sequence_buckets.empty());
  PL_CHECK(costs.entries.size() == costs.models * costs.batch_buckets.size() * costs.sequence_buckets.size());
  const std::vector<std::int64_t>& buckets = costs.sequence_buckets;
  const bool without_sequence = buckets.size() == 1 && buckets[0] == 0;
  for (const ingest::Profile& profile : profiles) {
    const auto bucket = std::lower_bound(buckets.begin(), buckets.end(), without_sequence ? 0 : profile.sequence);
    PL_CHECK(bucket != buckets.end());
    sequence_index_.push_back(static_cast<std::int32_t>(bucket - buckets.begin()));
  }
}

std::size_t Padding::batch_index(std::int64_t size) const {
  const std::vector<std::int64_t>& buckets = costs_->batch_buckets;
  std::size_t i = 0;
  while (i < buckets.size() && buckets[i] < size) ++i;
  PL_CHECK(i < buckets.size());
  return i;
}

}  // namespace plumbline::serve
