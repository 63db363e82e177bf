#include "schedule/network_traffic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "schedule/counts.h"
#include "schedule/network_testing.h"
#include "schedule/random_mapping.h"

namespace plumbline::schedule {
namespace {

/// Does every dimension spread by one loop at most? Otherwise a ragged range may be no box of the grid.
bool spreads_simply(const MappingCase& each) {
  for (int d = 0; d < each.einsum.rank(); ++d) {
    int spread = 0;
    for (const LevelNest& level : each.mapping.levels) {
      for (const Loop& loop : level.loops) {
        if (loop.dim == d && loop.bound > 1 && loop.kind != LoopKind::temporal) ++spread;
      }
    }
    if (spread > 1) return false;
  }
  return true;
}

bool is_flat(const lower::Operand& operand) {
  return std::all_of(operand.axes.begin(), operand.axes.end(), [](const lower::Axis& axis) { return axis.size() < 2; });
}

TEST(NetworkTraffic, CarriesWhatTheCountsSay) {
  RandomStream random(20261130, "network traffic");
  CaseLimits limits;
  int compared = 0;
  int inexact = 0;
  for (int i = 0; i < 20000; ++i) {
    const MappingCase each = random_case(random, limits);
    const auto evaluator = Evaluator::prepare(each.einsum, each.hierarchy);
    ASSERT_TRUE(evaluator.ok());
    const auto counts = count_accesses(each.einsum, each.hierarchy, each.mapping);
    ASSERT_TRUE(counts.ok());
    for (const NetworkCounts& network : counts->networks) {
      const auto traffic =
          find_network_traffic(*evaluator, each.mapping, network.outer, network.inner, network.operand);
      if (!traffic.ok()) {
        ASSERT_EQ(traffic.errors().front().kind, "unsupported");
        continue;
      }
      ++compared;
      inexact += traffic->exact ? 0 : 1;
      if (is_flat(each.einsum.operands[network.operand]) && spreads_simply(each)) {
        ASSERT_TRUE(traffic->exact) << fmt::format("case {} {}->{} operand {}\n", i, network.outer, network.inner,
                                                   network.operand)
                                    << each.describe();
      }
    }
  }
  // Only windows that overlap across the grid are bounded instead of counted.
  EXPECT_GT(compared, 50000);
  EXPECT_LT(inexact, compared / 20);
}

using Word = std::vector<std::int64_t>;
using Tile = std::set<Word>;
using Extents = std::array<std::int64_t, lower::kMaxDims>;

/// The elements of one operand over an index range by dimension.
Tile tile_of(const lower::Einsum& einsum, std::size_t operand, const Extents& from, const Extents& extent) {
  Tile tile;
  Extents at = from;
  while (true) {
    Word word;
    for (const lower::Axis& axis : einsum.operands[operand].axes) {
      std::int64_t index = 0;
      for (const lower::AxisTerm& term : axis) index += term.coefficient * at[static_cast<std::size_t>(term.dim)];
      word.push_back(index);
    }
    tile.insert(word);
    int d = 0;
    for (; d < einsum.rank(); ++d) {
      const auto i = static_cast<std::size_t>(d);
      if (++at[i] < std::min(from[i] + extent[i], einsum.dims[i])) break;
      at[i] = from[i];
    }
    if (d == einsum.rank()) return tile;
  }
}

/// Walks every step and instance; an instance that has nothing to do keeps its tile.
class StepWalk {
 public:
  StepWalk(const MappingCase& each, const NetworkCounts& network) : each_(each), network_(network) {
    tile_.fill(1);
    stride_.fill(1);
    const auto inner = static_cast<std::size_t>(network.inner);
    for (std::size_t l = each.mapping.levels.size(); l-- > 0;) {
      const auto& loops = each.mapping.levels[l].loops;
      for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
        const auto d = static_cast<std::size_t>(loop->dim);
        if (l < inner) walked_.insert(walked_.begin(), {*loop, stride_[d]});
        stride_[d] *= loop->bound;
        if (l >= inner) tile_[d] = stride_[d];
      }
    }
  }

  void run(const ingest::Topology& topology, const Grid& grid, const NetworkTraffic& traffic, SentWords& out) {
    Extents start{};
    std::vector<std::pair<Place, Extents>> instances;
    held_.clear();
    const auto step = [&](const auto& self, std::size_t i, const Extents& at) -> void {
      if (i < walked_.size() && walked_[i].first.kind != LoopKind::temporal) return self(self, i + 1, at);
      if (i == walked_.size()) {
        instances.clear();
        spread(0, at, {0, 0}, instances);
        move(topology, grid, traffic, instances, out);
        return;
      }
      Extents next = at;
      for (std::int64_t trip = 0; trip < walked_[i].first.bound; ++trip) {
        self(self, i + 1, next);
        next[static_cast<std::size_t>(walked_[i].first.dim)] += walked_[i].second;
      }
    };
    step(step, 0, start);
  }

 private:
  void spread(std::size_t i, const Extents& at, Place place, std::vector<std::pair<Place, Extents>>& out) const {
    if (i == walked_.size()) {
      for (int d = 0; d < each_.einsum.rank(); ++d) {
        if (at[static_cast<std::size_t>(d)] >= each_.einsum.dims[static_cast<std::size_t>(d)]) return;
      }
      out.emplace_back(place, at);
      return;
    }
    const auto& [loop, stride] = walked_[i];
    if (loop.kind == LoopKind::temporal) return spread(i + 1, at, place, out);
    Extents next = at;
    for (std::int64_t trip = 0; trip < loop.bound; ++trip) {
      Place own = place;
      std::int64_t& along = loop.kind == LoopKind::spatial_x ? own.x : own.y;
      along = along * loop.bound + trip;
      spread(i + 1, next, own, out);
      next[static_cast<std::size_t>(loop.dim)] += stride;
    }
  }

  void move(const ingest::Topology& topology, const Grid& grid, const NetworkTraffic& traffic,
            const std::vector<std::pair<Place, Extents>>& instances, SentWords& out) {
    const bool latched = network_.inner < static_cast<int>(each_.mapping.levels.size());
    std::map<Word, std::vector<Place>> moving;
    for (const auto& [place, at] : instances) {
      Tile tile = tile_of(each_.einsum, network_.operand, at, tile_);
      Tile& held = held_[place];
      for (const Word& word : tile) {
        if (!latched || held.count(word) == 0) moving[word].push_back(place);
      }
      held = std::move(tile);
    }
    for (const auto& [word, members] : moving) send_word(topology, grid, traffic, members, 1, out);
  }

  const MappingCase& each_;
  const NetworkCounts& network_;
  Extents tile_{};
  Extents stride_{};
  std::vector<std::pair<Loop, std::int64_t>> walked_;  ///< loops outside the inner level with their strides
  std::map<Place, Tile> held_;
};

TEST(NetworkTraffic, LoadsTheLinksThatAWalkOverEveryStepLoads) {
  RandomStream random(20261130, "network walk");
  CaseLimits limits;
  limits.largest_kernel = 400;
  limits.levels_to = 3;
  int compared = 0;
  for (int i = 0; i < 2500; ++i) {
    const MappingCase each = random_case(random, limits);
    const auto evaluator = Evaluator::prepare(each.einsum, each.hierarchy);
    const auto counts = count_accesses(each.einsum, each.hierarchy, each.mapping);
    ASSERT_TRUE(evaluator.ok() && counts.ok());
    for (const NetworkCounts& network : counts->networks) {
      const auto traffic =
          find_network_traffic(*evaluator, each.mapping, network.outer, network.inner, network.operand);
      if (!traffic.ok() || !traffic->exact) continue;
      Grid grid;
      for (const LevelNest& level : each.mapping.levels) {
        for (const Loop& loop : level.loops) {
          if (loop.kind == LoopKind::spatial_x) grid.columns *= loop.bound;
          if (loop.kind == LoopKind::spatial_y) grid.rows *= loop.bound;
        }
      }
      ++compared;
      for (const ingest::Topology& topology : ingest::kTopologies) {
        SentWords sent;
        StepWalk(each, network).run(topology, grid, traffic->moved, sent);
        const auto load = load_network(topology, grid, traffic->moved);
        ASSERT_TRUE(load.ok());
        const std::string what = fmt::format("case {} {}->{} operand {} {}\n{}", i, network.outer, network.inner,
                                             network.operand, topology.name, each.describe());
        ASSERT_EQ(load->receivers, sent.receivers) << what;
        ASSERT_EQ(load->word_hops, sent.hops) << what;
        ASSERT_EQ(load->max_load, sent.most()) << what;
        if (sent.most() > 0) {
          ASSERT_EQ(sent.loads.at(load->limiting), sent.most()) << what;
        }
      }
    }
  }
  EXPECT_GT(compared, 3000);
}

TEST(NetworkTraffic, PrimesNearTwoToTheFortyOnTheWidestGrid) {
  MappingCase each;
  each.einsum = lower::gemm_einsum(1099511627689, 65537, 3);  // 2^40 - 87 and 2^16 + 1 are primes
  each.hierarchy.levels.resize(2);
  each.hierarchy.levels[1].instances = std::int64_t{kMostGridSide} * 2;
  each.hierarchy.levels[1].mesh_x = kMostGridSide;
  each.hierarchy.mac_units = each.hierarchy.levels[1].instances;
  each.hierarchy.mac_mesh_x = kMostGridSide;
  each.mapping.levels.resize(2);
  each.mapping.levels[0] = {
      {{1, 2}, {2, 2}, {0, 1099511627689}, {1, 65536, LoopKind::spatial_x}, {2, 2, LoopKind::spatial_y}}, 7};
  each.mapping.levels[1] = {{}, 1};
  const auto evaluator = Evaluator::prepare(each.einsum, each.hierarchy);
  const auto counts = count_accesses(each.einsum, each.hierarchy, each.mapping);
  ASSERT_TRUE(evaluator.ok() && counts.ok());
  const Grid grid{kMostGridSide, 2};
  for (const NetworkCounts& network : counts->networks) {
    if (network.outer != 0) continue;
    const auto traffic = find_network_traffic(*evaluator, each.mapping, 0, network.inner, network.operand);
    ASSERT_TRUE(traffic.ok());
    EXPECT_TRUE(traffic->exact) << network.operand;
    for (const ingest::Topology& topology : ingest::kTopologies) {
      const auto load = load_network(topology, grid, traffic->moved);
      if (load.ok()) {
        EXPECT_EQ(load->receivers, network.deliveries);
      } else {
        EXPECT_EQ(load.errors().front().kind, "overflow") << topology.name;
      }
    }
  }
}

}  // namespace
}  // namespace plumbline::schedule
