#include "schedule/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace plumbline::schedule {
namespace {

using ingest::NetworkShape;
using ingest::Topology;
using Wide = __int128;  // words below 2^63 × instances below 2^32 × hops below 2^18 stay below 2^113

constexpr Wide kMost = INT64_MAX;

/// Where the groups of a burst lie along one axis: group k has its members at bases[k] + each offset.
struct Groups {
  std::vector<std::int64_t> bases;    ///< ascending
  std::vector<std::int64_t> offsets;  ///< ascending
  [[nodiscard]] Wide groups() const { return static_cast<Wide>(bases.size()); }
  [[nodiscard]] Wide members() const { return static_cast<Wide>(offsets.size()); }
  [[nodiscard]] Wide active() const { return groups() * members(); }
};

Status check_axis(const std::vector<Digit>& digits, std::int64_t side, const char* axis) {
  std::int64_t extent = 1;
  for (const Digit& digit : digits) {
    if (digit.bound < 1 || digit.bound > side || digit.from < 0 || digit.from >= digit.until ||
        digit.until > digit.bound) {
      return make_error("bad-value", {},
                        fmt::format("the digits {} to {} of {} along {} are no range of a grid of {}", digit.from,
                                    digit.until, digit.bound, axis, side));
    }
    extent *= digit.bound;  // at most 2^16 before, 2^16 more
    if (extent > side) {
      return make_error("bad-value", {},
                        fmt::format("digits reach {} along {}, where the grid has {}", extent, axis, side));
    }
  }
  return Done{};
}

/// With `alone` nobody shares a word.
Groups find_groups(const std::vector<Digit>& digits, bool alone) {
  Groups made{{0}, {0}};
  std::int64_t stride = 1;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    std::vector<std::int64_t>& places = digit->shared && !alone ? made.offsets : made.bases;
    std::vector<std::int64_t> next;
    next.reserve(places.size() * static_cast<std::size_t>(digit->until - digit->from));
    for (std::int64_t value = digit->from; value < digit->until; ++value) {
      for (const std::int64_t place : places) next.push_back(place + value * stride);
    }
    places = std::move(next);
    stride *= digit->bound;
  }
  return made;
}

Wide sum(const std::vector<std::int64_t>& values) {
  Wide total = 0;
  for (const std::int64_t value : values) total += value;
  return total;
}

/// Σ over groups of the farthest member's position.
Wide sum_of_last(const Groups& g) { return sum(g.bases) + g.groups() * g.offsets.back(); }
Wide sum_of_first(const Groups& g) { return sum(g.bases) + g.groups() * g.offsets.front(); }

/// Levels below the root of the leaf `place`, or of the lowest node over both places, in the tree that halves [0,
/// side).
int tree_depth(std::int64_t side, std::int64_t place, std::int64_t other) {
  std::int64_t low = 0;
  std::int64_t high = side;
  int depth = 0;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    const bool right = place >= middle;
    if (right != (other >= middle)) break;
    (right ? low : high) = middle;
    ++depth;
  }
  return depth;
}

/// Σ over groups of the tree links that lead to at least one member.
Wide sum_of_branches(const Groups& g, std::int64_t side) {
  Wide total = 0;
  for (const std::int64_t base : g.bases) {
    for (std::size_t i = 0; i < g.offsets.size(); ++i) {
      const std::int64_t place = base + g.offsets[i];
      total += tree_depth(side, place, place);
      if (i > 0) total -= tree_depth(side, place, base + g.offsets[i - 1]);
    }
  }
  return total;
}

class Loading {
 public:
  Loading(const Topology& topology, const Grid& grid, const NetworkTraffic& traffic)
      : topology_(topology), grid_(grid), traffic_(traffic) {
    const bool outward = traffic.direction == Direction::outward;
    alone_ = outward ? !topology.joins : !topology.forks;
    // Words run where they are shared; what nobody shares is shifted along the columns.
    along_x_ = outward ? traffic.share_x && !traffic.share_y : traffic.share_x;
    if (topology.shape == NetworkShape::chain) {
      lines_.resize(static_cast<std::size_t>(along_x_ ? grid.rows : grid.columns));
    }
  }

  Result<NetworkLoad> run() {
    for (const Burst& burst : traffic_.bursts) {
      PL_TRY_STATUS(check_axis(burst.x, grid_.columns, "x"));
      PL_TRY_STATUS(check_axis(burst.y, grid_.rows, "y"));
      add(burst);
    }
    Wide most = ports_;
    std::size_t line = 0;
    if (topology_.shape == NetworkShape::chain) {
      line = static_cast<std::size_t>(std::max_element(lines_.begin(), lines_.end()) - lines_.begin());
      most = lines_[line];
    }
    if (std::max({hops_, receivers_, ports_, most}) > kMost) {
      return make_error("overflow", {}, "more than 2^63 - 1 words or hops in a network");
    }
    PL_CHECK(most >= 0 && hops_ >= 0);
    NetworkLoad load;
    load.port_words = static_cast<std::int64_t>(ports_);
    load.receivers = static_cast<std::int64_t>(receivers_);
    load.word_hops = static_cast<std::int64_t>(hops_);
    load.links = links();
    load.max_load = static_cast<std::int64_t>(most);
    if (most > 0) load.limiting = name(line);
    return load;
  }

 private:
  void add(const Burst& burst) {
    const Groups x = find_groups(burst.x, alone_);
    const Groups y = find_groups(burst.y, alone_);
    const Wide words = burst.words;
    receivers_ += words * x.active() * y.active();
    switch (topology_.shape) {
      case NetworkShape::chain:
        add_chain(words, along_x_ ? x : y, along_x_ ? burst.y : burst.x);
        return;
      case NetworkShape::bus:
        hops_ += words * x.groups() * y.groups();
        break;
      case NetworkShape::tree:
        hops_ += words * (x.groups() * y.groups() + x.groups() * sum_of_branches(y, grid_.rows) +
                          y.active() * sum_of_branches(x, grid_.columns));
        break;
      case NetworkShape::mesh: {
        // Inward along the port's row and then down the columns; outward along one's own row and then up the first
        // column.
        const bool outward = traffic_.direction == Direction::outward;
        const Wide rows = outward ? y.active() : y.groups();
        const Wide columns = outward ? x.groups() : x.active();
        hops_ += words * (x.groups() * y.groups() + rows * sum_of_last(x) + columns * sum_of_last(y));
        break;
      }
    }
    ports_ += words * x.groups() * y.groups();
  }

  /// Every line that takes part carries the groups along it; a word shared across lines enters each of them.
  void add_chain(Wide words, const Groups& along, const std::vector<Digit>& across) {
    const Groups lines = find_groups(across, true);
    const std::int64_t side = along_x_ ? grid_.columns : grid_.rows;
    const bool outward = traffic_.direction == Direction::outward;
    const Wide hops = outward ? along.groups() * side - sum_of_first(along) : along.groups() + sum_of_last(along);
    hops_ += words * lines.groups() * hops;
    ports_ += words * lines.groups() * along.groups();
    for (const std::int64_t line : lines.bases) lines_[static_cast<std::size_t>(line)] += words * along.groups();
  }

  [[nodiscard]] std::int64_t links() const {
    const std::int64_t c = grid_.columns;
    const std::int64_t r = grid_.rows;
    switch (topology_.shape) {
      case NetworkShape::chain:
        return c * r;
      case NetworkShape::bus:
        return 1;
      case NetworkShape::tree:
        return 1 + (2 * r - 2) + r * (2 * c - 2);
      case NetworkShape::mesh:
        return 1 + (c - 1) * r + c * (r - 1);
    }
    PL_CHECK(false);
    return 0;
  }

  [[nodiscard]] std::string name(std::size_t line) const {
    switch (topology_.shape) {
      case NetworkShape::chain: {
        const char* kind = along_x_ ? "row" : "column";
        return traffic_.direction == Direction::outward ? fmt::format("{} {} drain", kind, line)
                                                        : fmt::format("{} feeder {}", kind, line);
      }
      case NetworkShape::bus:
        return "bus";
      case NetworkShape::tree:
        return "root";
      case NetworkShape::mesh:
        return "port at (0,0)";
    }
    PL_CHECK(false);
    return {};
  }

  const Topology& topology_;
  const Grid& grid_;
  const NetworkTraffic& traffic_;
  bool alone_ = false;
  bool along_x_ = false;
  Wide ports_ = 0;
  Wide receivers_ = 0;
  Wide hops_ = 0;
  std::vector<Wide> lines_;  ///< words over the first (or last) link of each line: no other of the line has more
};

}  // namespace

Result<NetworkLoad> load_network(const Topology& topology, const Grid& grid, const NetworkTraffic& traffic) {
  if (grid.columns < 1 || grid.rows < 1 || grid.columns > kMostGridSide || grid.rows > kMostGridSide) {
    return make_error(
        "bad-value", {},
        fmt::format("a grid of {} by {}; sides run from 1 to {}", grid.columns, grid.rows, kMostGridSide));
  }
  return Loading(topology, grid, traffic).run();
}

Result<std::int64_t> link_cycles(std::int64_t bits, double bytes_per_cycle) {
  if (!(bytes_per_cycle > 0)) {
    return make_error("bad-value", {}, fmt::format("a link of {} bytes per cycle moves nothing", bytes_per_cycle));
  }
  const double cycles = std::ceil(static_cast<double>(bits) / 8.0 / bytes_per_cycle);
  if (!(cycles < 0x1p63)) return make_error("overflow", {}, "more than 2^63 - 1 cycles on a link");
  return static_cast<std::int64_t>(cycles);
}

}  // namespace plumbline::schedule
