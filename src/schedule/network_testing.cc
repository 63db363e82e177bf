#include "schedule/network_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace plumbline::schedule {
namespace {

using ingest::NetworkShape;
using ingest::Topology;

using Route = std::vector<std::string>;

/// Links from the root of a binary tree over [low, high) to one leaf.
void descend(const std::string& tree, std::int64_t low, std::int64_t high, std::int64_t leaf, Route& route) {
  if (high - low == 1) return;
  const std::int64_t middle = (low + high) / 2;
  const bool right = leaf >= middle;
  (right ? low : high) = middle;
  route.push_back(fmt::format("{} [{},{})", tree, low, high));
  descend(tree, low, high, leaf, route);
}

/// Every link that a word passes between the outer level and one instance.
Route route_of(const Topology& topology, const Grid& grid, const NetworkTraffic& traffic, const Place& at) {
  Route route;
  const bool outward = traffic.direction == Direction::outward;
  const bool along_x = outward ? traffic.share_x && !traffic.share_y : traffic.share_x;
  switch (topology.shape) {
    case NetworkShape::bus:
      return {"bus"};
    case NetworkShape::chain:
      if (along_x && !outward) {
        route.push_back(fmt::format("row feeder {}", at.y));
        for (std::int64_t x = 0; x < at.x; ++x) route.push_back(fmt::format("({},{})->({},{})", x, at.y, x + 1, at.y));
      } else if (!along_x && !outward) {
        route.push_back(fmt::format("column feeder {}", at.x));
        for (std::int64_t y = 0; y < at.y; ++y) route.push_back(fmt::format("({},{})->({},{})", at.x, y, at.x, y + 1));
      } else if (along_x) {
        for (std::int64_t x = at.x; x + 1 < grid.columns; ++x)
          route.push_back(fmt::format("({},{})->({},{})", x, at.y, x + 1, at.y));
        route.push_back(fmt::format("row {} drain", at.y));
      } else {
        for (std::int64_t y = at.y; y + 1 < grid.rows; ++y)
          route.push_back(fmt::format("({},{})->({},{})", at.x, y, at.x, y + 1));
        route.push_back(fmt::format("column {} drain", at.x));
      }
      return route;
    case NetworkShape::tree:
      route.push_back("root");
      descend("rows", 0, grid.rows, at.y, route);
      descend(fmt::format("row {}", at.y), 0, grid.columns, at.x, route);
      return route;
    case NetworkShape::mesh:
      route.push_back("port at (0,0)");
      if (outward) {
        for (std::int64_t x = at.x; x > 0; --x) route.push_back(fmt::format("({},{})->({},{})", x, at.y, x - 1, at.y));
        for (std::int64_t y = at.y; y > 0; --y) route.push_back(fmt::format("(0,{})->(0,{})", y, y - 1));
      } else {
        for (std::int64_t x = 0; x < at.x; ++x) route.push_back(fmt::format("({},0)->({},0)", x, x + 1));
        for (std::int64_t y = 0; y < at.y; ++y) route.push_back(fmt::format("({},{})->({},{})", at.x, y, at.x, y + 1));
      }
      return route;
  }
  return route;
}

}  // namespace

std::int64_t SentWords::most() const {
  std::int64_t most = 0;
  for (const auto& [link, words] : loads) most = std::max(most, words);
  return most;
}

void send_word(const Topology& topology, const Grid& grid, const NetworkTraffic& traffic,
               const std::vector<Place>& members, int sign, SentWords& out) {
  const bool merges = traffic.direction == Direction::outward ? topology.joins : topology.forks;
  std::set<std::string> once;
  for (const Place& member : members) {
    out.receivers += sign;
    for (const std::string& link : route_of(topology, grid, traffic, member)) {
      if (merges && !once.insert(link).second) continue;
      out.loads[link] += sign;
      out.hops += sign;
    }
  }
}

}  // namespace plumbline::schedule
