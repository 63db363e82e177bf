#include "schedule/network.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "core/random.h"
#include "schedule/network_testing.h"

namespace plumbline::schedule {
namespace {

using ingest::Topology;

/// Instances of a burst by group, found by trying every instance of the grid.
std::map<Place, std::vector<Place>> groups_of(const Grid& grid, const Burst& burst) {
  const auto split = [](const std::vector<Digit>& digits, std::int64_t at, std::int64_t& group) {
    std::int64_t extent = 1;
    for (const Digit& digit : digits) extent *= digit.bound;
    if (at >= extent) return false;
    group = 0;
    for (const Digit& digit : digits) {
      extent /= digit.bound;
      const std::int64_t value = at / extent;
      at %= extent;
      if (value < digit.from || value >= digit.until) return false;
      group = group * digit.bound + (digit.shared ? 0 : value);
    }
    return true;
  };
  std::map<Place, std::vector<Place>> groups;
  for (std::int64_t y = 0; y < grid.rows; ++y) {
    for (std::int64_t x = 0; x < grid.columns; ++x) {
      Place group;
      if (split(burst.x, x, group.x) && split(burst.y, y, group.y)) groups[group].push_back({x, y});
    }
  }
  return groups;
}

void send(const Topology& topology, const Grid& grid, const NetworkTraffic& traffic, const Burst& burst,
          SentWords& out) {
  const int sign = burst.words < 0 ? -1 : 1;
  for (const auto& [group, members] : groups_of(grid, burst)) {
    for (std::int64_t word = 0; word < burst.words * sign; ++word) {
      send_word(topology, grid, traffic, members, sign, out);
    }
  }
}

std::vector<Digit> random_digits(RandomStream& random, std::int64_t side, bool& shared) {
  std::vector<Digit> digits;
  std::int64_t left = side;
  while (left > 1 && digits.size() < 3 && random.next_below(4) != 0) {
    Digit digit;
    digit.bound = 1 + static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(left)));
    digit.shared = random.next_below(2) == 0;
    digit.until = digit.bound;
    if (random.next_below(3) == 0)
      digit.until = 1 + static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(digit.bound)));
    if (random.next_below(4) == 0)
      digit.from = static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(digit.until)));
    shared = shared || digit.shared;
    left /= digit.bound;
    digits.push_back(digit);
  }
  return digits;
}

/// The same burst over a part of its groups, taken back: what stayed where it was.
Burst part_of(RandomStream& random, const Burst& whole) {
  Burst part = whole;
  for (auto* digits : {&part.x, &part.y}) {
    for (Digit& digit : *digits) {
      if (!digit.shared) {
        digit.from +=
            static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(digit.until - digit.from)));
      }
    }
  }
  part.words = -static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(whole.words) + 1));
  return part;
}

TEST(Network, EveryLoadIsThatOfWordsSentOneByOne) {
  RandomStream random(20261130, "network");
  for (int i = 0; i < 3000; ++i) {
    const Grid grid{1 + static_cast<std::int64_t>(random.next_below(7)),
                    1 + static_cast<std::int64_t>(random.next_below(7))};
    NetworkTraffic traffic;
    traffic.direction = random.next_below(2) == 0 ? Direction::inward : Direction::outward;
    // Two shapes of pass, as whole and ragged tiles are; sharing is one fact of the whole traffic.
    for (int b = 0; b < 2; ++b) {
      Burst burst;
      burst.x = random_digits(random, grid.columns, traffic.share_x);
      burst.y = random_digits(random, grid.rows, traffic.share_y);
      burst.words = 1 + static_cast<std::int64_t>(random.next_below(4));
      traffic.bursts.push_back(burst);
      if (random.next_below(2) == 0) traffic.bursts.push_back(part_of(random, burst));
    }
    for (const Topology& topology : ingest::kTopologies) {
      SentWords sent;
      for (const Burst& burst : traffic.bursts) send(topology, grid, traffic, burst, sent);
      const auto load = load_network(topology, grid, traffic);
      ASSERT_TRUE(load.ok()) << render(load.errors());
      const std::int64_t most = sent.most();
      const std::string what = fmt::format("case {} {} on {}x{}", i, topology.name, grid.columns, grid.rows);
      ASSERT_EQ(load->receivers, sent.receivers) << what;
      ASSERT_EQ(load->word_hops, sent.hops) << what;
      ASSERT_EQ(load->max_load, most) << what;
      ASSERT_LE(static_cast<std::int64_t>(sent.loads.size()), load->links) << what;
      if (most > 0) {
        ASSERT_EQ(sent.loads.at(load->limiting), most) << what << " " << load->limiting;
      }
    }
  }
}

NetworkTraffic row_multicast(const Grid& grid, std::int64_t words) {
  NetworkTraffic traffic;
  traffic.share_x = true;
  traffic.bursts.push_back({{{grid.columns, true, 0, grid.columns}}, {{grid.rows, false, 0, grid.rows}}, words});
  return traffic;
}

TEST(Network, ARowsWordPassesEveryNeighbourOfALine) {
  const Grid grid{4, 3};
  const auto load = load_network(*ingest::find_topology("systolic"), grid, row_multicast(grid, 10));
  ASSERT_TRUE(load.ok());
  EXPECT_EQ(load->port_words, 30);
  EXPECT_EQ(load->receivers, 120);
  EXPECT_EQ(load->word_hops, 3 * 10 * 4);
  EXPECT_EQ(load->max_load, 10);
  EXPECT_EQ(load->limiting, "row feeder 0");
  EXPECT_EQ(load->mean_load(), 10);
}

TEST(Network, ATreeThatCannotCopySendsEveryReceiverItsOwnWord) {
  const Grid grid{4, 2};
  EXPECT_EQ(load_network(*ingest::find_topology("multicast_tree"), grid, row_multicast(grid, 5))->max_load, 10);
  EXPECT_EQ(load_network(*ingest::find_topology("reduction_tree"), grid, row_multicast(grid, 5))->max_load, 40);
}

TEST(Network, TheLargestGridIsCountedWithoutVisitingItsLinks) {
  const Grid grid{kMostGridSide, kMostGridSide};
  for (const Topology& topology : ingest::kTopologies) {
    const auto load = load_network(topology, grid, row_multicast(grid, 1000));
    ASSERT_TRUE(load.ok()) << topology.name;
    EXPECT_EQ(load->receivers, std::int64_t{65536} * 65536 * 1000) << topology.name;
  }
}

TEST(Network, WrongGridsAndOverflowsAreErrors) {
  const Topology& systolic = *ingest::find_topology("systolic");
  EXPECT_EQ(load_network(systolic, {0, 1}, {}).errors().front().kind, "bad-value");
  EXPECT_EQ(load_network(systolic, {kMostGridSide + 1, 1}, {}).errors().front().kind, "bad-value");
  NetworkTraffic wide = row_multicast({4, 4}, 1);
  EXPECT_EQ(load_network(systolic, {3, 4}, wide).errors().front().kind, "bad-value");
  wide = row_multicast({4, 4}, INT64_MAX);
  EXPECT_EQ(load_network(systolic, {4, 4}, wide).errors().front().kind, "overflow");
  wide.bursts.front().x.front().until = 0;
  EXPECT_EQ(load_network(systolic, {4, 4}, wide).errors().front().kind, "bad-value");
}

TEST(Network, ALinkWithoutWidthIsAnError) {
  EXPECT_EQ(link_cycles(8, 0).errors().front().kind, "bad-value");
  EXPECT_EQ(link_cycles(8, -1).errors().front().kind, "bad-value");
  EXPECT_EQ(link_cycles(INT64_MAX, 1e-9).errors().front().kind, "overflow");
  EXPECT_EQ(*link_cycles(17, 1), 3);
  EXPECT_EQ(*link_cycles(0, 1), 0);
}

}  // namespace
}  // namespace plumbline::schedule
