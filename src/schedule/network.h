#pragma once
// Words over the links of a network between one level and the grid of instances inside it: hops, loads, the limiting
// link. Exact integer counting; docs/networks.md states where words enter and what a hop is.
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "ingest/topology.h"

namespace plumbline::schedule {

inline constexpr std::int64_t kMostGridSide = 65536;

struct Grid {
  std::int64_t columns = 1;  ///< along x
  std::int64_t rows = 1;     ///< along y
};

/// One digit of a coordinate (mixed radix, most significant first); positions beyond the digits' product take no part.
struct Digit {
  std::int64_t bound = 1;
  bool shared = false;    ///< instances that differ here only take the same word, or add to the same sum
  std::int64_t from = 0;  ///< digits in [from, until) take part
  std::int64_t until = 1;
};

/// Groups of instances: those that agree in all digits that are not shared. `words` is per group, summed over time;
/// negative where another burst counted words that do not move.
struct Burst {
  std::vector<Digit> x;
  std::vector<Digit> y;
  std::int64_t words = 0;
};

enum class Direction : std::uint8_t { inward, outward };  ///< to the grid, or sums from it

struct NetworkTraffic {
  Direction direction = Direction::inward;
  bool share_x = false;  ///< some digit along x is shared, whatever its range in a burst
  bool share_y = false;
  std::vector<Burst> bursts;
};

struct NetworkLoad {
  std::int64_t port_words = 0;  ///< words at the ports, a word that enters several lines once per line
  std::int64_t receivers = 0;   ///< words at the grid's end: deliveries, or addends
  std::int64_t word_hops = 0;
  std::int64_t links = 0;     ///< of this direction
  std::int64_t max_load = 0;  ///< words over the most loaded link
  std::string limiting;       ///< its name; empty when nothing moves
  [[nodiscard]] double mean_load() const {
    return links == 0 ? 0 : static_cast<double>(word_hops) / static_cast<double>(links);
  }
};

/// Errors: bad-value (sides outside 1 … kMostGridSide, digits beyond the grid, empty ranges), overflow.
Result<NetworkLoad> load_network(const ingest::Topology& topology, const Grid& grid, const NetworkTraffic& traffic);

/// Cycles of the limiting link: bits / (8 · width), rounded up. Errors: bad-value (a width that is not positive),
/// overflow.
Result<std::int64_t> link_cycles(std::int64_t bits, double bytes_per_cycle);

}  // namespace plumbline::schedule
