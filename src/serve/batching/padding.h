#pragma once
// Which compiled shape a set of requests is padded up into.
#include <cstdint>
#include <vector>

#include "execute/cost_table.h"
#include "ingest/scenario.h"

namespace plumbline::serve {

/// Buckets of one cost table, seen from the requests. Too long a sequence or too large a batch is the caller's bug: the
/// scenario reader rejects both.
class Padding {
 public:
  Padding(const execute::CostTable& costs, const std::vector<ingest::Profile>& profiles);

  /// Index of the smallest sequence bucket that holds the profile; 0 for a table without sequences.
  [[nodiscard]] std::int32_t sequence_index(std::uint16_t profile) const { return sequence_index_[profile]; }
  [[nodiscard]] std::size_t profiles() const { return sequence_index_.size(); }
  /// Index of the smallest batch bucket that holds `size` requests.
  [[nodiscard]] std::size_t batch_index(std::int64_t size) const;
  /// Row of CostTable::entries.
  [[nodiscard]] std::int32_t entry(std::uint16_t model, std::int64_t size, std::int32_t sequence) const {
    return static_cast<std::int32_t>(costs_->index(model, batch_index(size), static_cast<std::size_t>(sequence)));
  }

 private:
  const execute::CostTable* costs_;
  std::vector<std::int32_t> sequence_index_;
};

}  // namespace plumbline::serve
