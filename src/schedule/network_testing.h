#pragma once
// For tests: words sent one by one over every link of a small network.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ingest/topology.h"
#include "schedule/network.h"

namespace plumbline::schedule {

struct Place {
  std::int64_t x = 0;
  std::int64_t y = 0;
  auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr): its 0
};

struct SentWords {
  std::map<std::string, std::int64_t> loads;  ///< words by link
  std::int64_t receivers = 0;
  std::int64_t hops = 0;
  [[nodiscard]] std::int64_t most() const;
};

/// Sends one word to (or the addends of one sum from) `members`; `sign` −1 takes it back.
void send_word(const ingest::Topology& topology, const Grid& grid, const NetworkTraffic& traffic,
               const std::vector<Place>& members, int sign, SentWords& out);

}  // namespace plumbline::schedule
