#include "schedule/array_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random.h"
#include "lower/einsum.h"

namespace plumbline::schedule {
namespace {

using lower::Einsum;

/// hbm, sram, accumulator, array of `rows` × `columns`; every rate unlimited.
ingest::Accelerator machine(std::int64_t rows, std::int64_t columns) {
  ingest::Accelerator made;
  made.levels.resize(4);
  const char* names[] = {"hbm", "sram", "accumulator", "array"};
  for (std::size_t l = 0; l < 4; ++l) {
    made.levels[l].name = names[l];
    made.levels[l].keeps = {l != 2, l < 2, l < 3};
  }
  made.levels[0].off_chip = true;
  made.levels[3].array = true;
  made.levels[3].fanout_x = columns;
  made.levels[3].fanout_y = rows;
  return made;
}

Einsum gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  Einsum made = lower::gemm_einsum(m, n, k);
  made.operands[2].bits = 8;
  made.operands[2].partial_bits = 32;
  return made;
}

constexpr int kM = 0, kN = 1, kK = 2;

struct Tiles {
  std::int64_t m = 1, n = 1, k = 1;
};

/// Weight stationary: M, N, K outside, then `tiles.m` rows stream past a tile of k × n weights.
Mapping weight_stationary(const Einsum& e, const Tiles& tiles) {
  const auto trips = [&](int d, std::int64_t tile) { return (e.dims[static_cast<std::size_t>(d)] + tile - 1) / tile; };
  Mapping mapping;
  mapping.levels.resize(4);
  mapping.levels[1].loops = {{kM, trips(kM, tiles.m)}, {kN, trips(kN, tiles.n)}, {kK, trips(kK, tiles.k)}};
  mapping.levels[2].loops = {{kM, tiles.m}, {kN, tiles.n, LoopKind::spatial_x}, {kK, tiles.k, LoopKind::spatial_y}};
  mapping.levels[0].keeps = mapping.levels[1].keeps = 7;
  mapping.levels[2].keeps = 4;
  mapping.levels[3].keeps = 1;
  return mapping;
}

ArrayTime timed(const Einsum& e, const Mapping& mapping, const ingest::Accelerator& accelerator,
                std::size_t stationary = 0) {
  return array_time(e, mapping, stationary, 1, accelerator, Clock{Hertz(1e9)});
}

TEST(ArrayTime, OneTileTakesItsPreloadItsStreamAndTheSkew) {
  const Einsum e = gemm(100, 8, 4);
  const ArrayTime time = timed(e, weight_stationary(e, {100, 8, 4}), machine(4, 8));
  EXPECT_EQ(time.useful, 100);
  EXPECT_EQ(time.preload_exposed, 4);
  EXPECT_EQ(time.barrier, 4 + 8 - 2);
  EXPECT_EQ(time.total(), 114);
}

TEST(ArrayTime, DoubledPreloadHidesBehindALongStreamAndShowsBehindAShortOne) {
  const Einsum longer = gemm(16, 16, 16);
  // 2 × 2 tiles of 8 × 8 weights: 8 cycles exposed once, then hidden behind 16.
  EXPECT_EQ(timed(longer, weight_stationary(longer, {16, 8, 8}), machine(8, 8)).preload_exposed, 8);
  const Einsum shorter = gemm(5, 16, 16);
  // Three later tiles each show 8 - 5 cycles.
  const ArrayTime time = timed(shorter, weight_stationary(shorter, {5, 8, 8}), machine(8, 8));
  EXPECT_EQ(time.preload_exposed, 8 + 3 * 3);
  EXPECT_EQ(time.useful, 4 * 5);
}

TEST(ArrayTime, SerialPreloadIsExposedEveryTime) {
  ingest::Accelerator serial = machine(8, 8);
  serial.preload = ingest::Preload::serial;
  const Einsum e = gemm(16, 16, 16);
  EXPECT_EQ(timed(e, weight_stationary(e, {16, 8, 8}), serial).preload_exposed, 4 * 8);
}

TEST(ArrayTime, APreloadRateOfZeroTakesNoTime) {
  ingest::Accelerator free = machine(8, 8);
  free.preload_rows_per_cycle = 0;
  const Einsum e = gemm(1, 16, 16);
  EXPECT_EQ(timed(e, weight_stationary(e, {1, 8, 8}), free).preload_exposed, 0);
}

TEST(ArrayTime, RaggedTilesStreamAndPreloadTheirTrueSize) {
  // K = 12 on 8 rows in tiles of 8 and 4; M = 10 in passes of 6 and 4; N whole.
  const Einsum e = gemm(10, 8, 12);
  const ArrayTime time = timed(e, weight_stationary(e, {6, 8, 8}), machine(8, 8));
  EXPECT_EQ(time.useful, 2 * (6 + 4));
  EXPECT_EQ(time.visits, 4);
  // First preload 8. Then, each behind the stream before it: 4 rows behind 6, 8 behind 6, 4 behind 4.
  EXPECT_EQ(time.preload_exposed, 8 + 2);
  EXPECT_EQ(time.pe_useful, 10 * 8 * 12);
  EXPECT_EQ(time.pe_useful + time.pe_padded + time.pe_unmapped, 64 * time.useful);
  EXPECT_EQ(time.pe_padded, 10 * 8 * 4);
}

TEST(ArrayTime, SlowWeightReadsAreWeightWait) {
  ingest::Accelerator slow = machine(8, 8);
  slow.levels[1].read.bytes_per_cycle = 2;  // a tile of 64 bytes takes 32 cycles
  Einsum e = gemm(16, 16, 16);
  e.operands[1].bits = 1;  // 16 rows of 8 bits: 16 bytes, 8 cycles
  const ArrayTime time = timed(e, weight_stationary(e, {16, 8, 8}), slow);
  // First tile: 32 cycles in the open, of which 8 are its preload. Three later tiles: 32 behind 16; the shared port is
  // busy 8 cycles longer.
  EXPECT_EQ(time.preload_exposed, 8);
  EXPECT_EQ(time.weight_wait, (32 - 8) + 3 * (32 - 16));
  EXPECT_EQ(time.sram, 3 * 8);
  EXPECT_EQ(time.feeder, 0);
}

TEST(ArrayTime, SlowActivationsAreFeeder) {
  ingest::Accelerator slow = machine(8, 8);
  slow.levels[1].read.bytes_per_cycle = 4;  // 8 bytes a step: two cycles for one
  const Einsum e = gemm(16, 8, 8);
  const ArrayTime time = timed(e, weight_stationary(e, {16, 8, 8}), slow);
  EXPECT_EQ(time.feeder, 16);
  EXPECT_EQ(time.sram, 0);
}

TEST(ArrayTime, ResultsThatDrainSlowerThanTheyComeAreDrain) {
  ingest::Accelerator slow = machine(8, 8);
  slow.levels[1].write.bytes_per_cycle = 2;  // 8 bytes a step: four cycles for one
  const Einsum e = gemm(16, 8, 16);
  // Two reduction tiles; only the second drains.
  EXPECT_EQ(timed(e, weight_stationary(e, {16, 8, 8}), slow).psum_drain, 16 * 3);
}

TEST(ArrayTime, SumsSpillWhenAReductionLoopRunsOutside) {
  ingest::Accelerator slow = machine(8, 8);
  slow.levels[1].write.bytes_per_cycle = 16;  // 32 bytes of unfinished sums a step: two cycles for one
  const Einsum e = gemm(16, 16, 16);
  Mapping mapping = weight_stationary(e, {16, 8, 8});
  EXPECT_EQ(timed(e, mapping, slow).psum_drain, 0);
  std::swap(mapping.levels[1].loops[1], mapping.levels[1].loops[2]);  // K outside N
  EXPECT_EQ(timed(e, mapping, slow).psum_drain, 4 * 16);
}

TEST(ArrayTime, LoopsThatLeaveTheTileAloneJustStreamOn) {
  // N and K fit: the passes over M need no second preload.
  const Einsum e = gemm(64, 8, 8);
  const ArrayTime time = timed(e, weight_stationary(e, {16, 8, 8}), machine(8, 8));
  EXPECT_EQ(time.visits, 1);
  EXPECT_EQ(time.useful, 64);
  EXPECT_EQ(time.preload_exposed, 8);
}

TEST(ArrayTime, InputStationaryIsWeightStationaryWithOperandsExchanged) {
  const Einsum e = gemm(16, 40, 24);
  Mapping mapping;
  mapping.levels.resize(4);
  mapping.levels[1].loops = {{kM, 2}, {kK, 3}};
  mapping.levels[2].loops = {{kN, 40}, {kM, 8, LoopKind::spatial_x}, {kK, 8, LoopKind::spatial_y}};
  mapping.levels[0].keeps = mapping.levels[1].keeps = 7;
  mapping.levels[2].keeps = 4;
  mapping.levels[3].keeps = 2;
  const Einsum turned = gemm(40, 16, 24);
  EXPECT_EQ(timed(e, mapping, machine(8, 8), 1), timed(turned, weight_stationary(turned, {40, 8, 8}), machine(8, 8)));
}

TEST(ArrayTime, OutputStationaryShiftsItsSumsOut) {
  const Einsum e = gemm(16, 16, 5);
  Mapping mapping;
  mapping.levels.resize(4);
  mapping.levels[1].loops = {{kM, 2}, {kN, 2}};
  mapping.levels[2].loops = {{kK, 5}, {kN, 8, LoopKind::spatial_x}, {kM, 8, LoopKind::spatial_y}};
  mapping.levels[0].keeps = mapping.levels[1].keeps = 7;
  mapping.levels[2].keeps = 4;
  mapping.levels[3].keeps = 4;
  ingest::Accelerator doubled = machine(8, 8);
  const ArrayTime time = timed(e, mapping, doubled, 2);
  EXPECT_EQ(time.useful, 4 * 5);
  EXPECT_EQ(time.preload_exposed, 0);
  EXPECT_EQ(time.psum_drain, 3 * (8 - 5) + 8);  // three behind the next stream, the last in the open
  doubled.accumulator_double_buffered = false;
  EXPECT_EQ(timed(e, mapping, doubled, 2).psum_drain, 4 * 8);
}

TEST(ArrayTime, HalfRateArraysStreamTwiceAsLong) {
  const Einsum e = gemm(100, 8, 4);
  const Mapping mapping = weight_stationary(e, {100, 8, 4});
  EXPECT_EQ(array_time(e, mapping, 0, 0.5, machine(4, 8), Clock{Hertz(1e9)}).useful, 200);
  EXPECT_EQ(array_time(e, mapping, 0, 2, machine(4, 8), Clock{Hertz(1e9)}).useful, 50);
}

/// Walks every visit in loop order and charges it by its true neighbours: slow, and independent of the closed form.
class VisitWalk {
 public:
  VisitWalk(const Einsum& e, const Tiles& tiles, const ingest::Accelerator& accelerator)
      : e_(e), tiles_(tiles), accelerator_(accelerator) {}

  ArrayTime run() {
    std::vector<Visit> visits;
    for (std::int64_t m = 0; m < e_.dims[kM]; m += tiles_.m) {
      for (std::int64_t n = 0; n < e_.dims[kN]; n += tiles_.n) {
        for (std::int64_t k = 0; k < e_.dims[kK]; k += tiles_.k) {
          visits.push_back({std::min(tiles_.m, e_.dims[kM] - m), std::min(tiles_.n, e_.dims[kN] - n),
                            std::min(tiles_.k, e_.dims[kK] - k), k + tiles_.k >= e_.dims[kK]});
        }
      }
    }
    // When there is one tile of weights the passes over M are one stream.
    const bool one_tile = tiles_.n >= e_.dims[kN] && tiles_.k >= e_.dims[kK];
    if (one_tile) visits = {{e_.dims[kM], e_.dims[kN], e_.dims[kK], true}};
    charge_first(visits.front());
    for (std::size_t v = 0; v < visits.size(); ++v) {
      const bool loads = v + 1 < visits.size();
      charge(visits[v], loads ? &visits[v + 1] : nullptr);
    }
    time_.barrier = accelerator_.levels[3].fanout_x + accelerator_.levels[3].fanout_y - 2;
    return time_;
  }

 private:
  struct Visit {
    std::int64_t steps, columns, rows;
    bool last_reduction;
  };

  [[nodiscard]] static std::int64_t cycles(std::int64_t bytes, const ingest::Rate& rate) {
    return rate.bytes_per_cycle
               ? static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) / *rate.bytes_per_cycle))
               : 0;
  }

  void charge_first(const Visit& visit) {
    const std::int64_t read = cycles(visit.rows * visit.columns, accelerator_.levels[1].read);
    time_.preload_exposed += visit.rows;
    time_.weight_wait += std::max<std::int64_t>(0, read - visit.rows);
  }

  void charge(const Visit& now, const Visit* next) {
    const std::int64_t weights = next == nullptr ? 0 : next->rows * next->columns;
    const std::int64_t fed = now.rows * now.steps;
    const auto& sram = accelerator_.levels[1];
    std::int64_t end = now.steps;
    time_.useful += now.steps;
    const auto wait = [&](std::int64_t until, std::int64_t& owner) {
      owner += std::max<std::int64_t>(0, until - end);
      end = std::max(end, until);
    };
    wait(cycles(weights, sram.read), time_.weight_wait);
    wait(cycles(fed, sram.read), time_.feeder);
    wait(cycles(weights + fed, sram.read), time_.sram);
    wait(now.last_reduction ? cycles(now.steps * now.columns, sram.write) : 0, time_.psum_drain);
    wait(next == nullptr ? 0 : next->rows, time_.preload_exposed);
  }

  const Einsum& e_;
  const Tiles& tiles_;
  const ingest::Accelerator& accelerator_;
  ArrayTime time_;
};

struct Case {
  Einsum e;
  Tiles tiles;
  ingest::Accelerator accelerator;
};

Case random_case(RandomStream& random, bool perfect) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(high - low + 1)));
  };
  Case made{{}, {pick(1, 40), pick(1, 8), pick(1, 8)}, machine(8, 8)};
  const auto size = [&](std::int64_t tile) {
    return tile * pick(1, 4) - (perfect || tile == 1 ? 0 : pick(0, tile - 1));
  };
  made.e = gemm(size(made.tiles.m), size(made.tiles.n), size(made.tiles.k));
  made.tiles.m = std::min(made.tiles.m, made.e.dims[kM]);
  made.tiles.n = std::min(made.tiles.n, made.e.dims[kN]);
  made.tiles.k = std::min(made.tiles.k, made.e.dims[kK]);
  if (pick(0, 3) > 0) made.accelerator.levels[1].read.bytes_per_cycle = static_cast<double>(pick(1, 32)) / 2;
  if (pick(0, 3) > 0) made.accelerator.levels[1].write.bytes_per_cycle = static_cast<double>(pick(1, 32)) / 2;
  return made;
}

TEST(ArrayTime, ClosedFormEqualsTheWalkOverVisits) {
  RandomStream random(11, "array time");
  for (int i = 0; i < 1000; ++i) {
    const Case c = random_case(random, i % 2 == 0);
    const ArrayTime closed = timed(c.e, weight_stationary(c.e, c.tiles), c.accelerator);
    const ArrayTime walked = VisitWalk(c.e, c.tiles, c.accelerator).run();
    EXPECT_EQ(closed.useful, walked.useful) << i << " seed 11";
    EXPECT_EQ(closed.preload_exposed, walked.preload_exposed) << i << " seed 11";
    EXPECT_EQ(closed.weight_wait, walked.weight_wait) << i << " seed 11";
    EXPECT_EQ(closed.feeder, walked.feeder) << i << " seed 11";
    EXPECT_EQ(closed.sram, walked.sram) << i << " seed 11";
    EXPECT_EQ(closed.psum_drain, walked.psum_drain) << i << " seed 11";
    EXPECT_EQ(closed.total(), walked.total()) << i << " seed 11";
  }
}

TEST(ArrayTime, MoreBandwidthIsNeverSlower) {
  RandomStream random(13, "array time");
  for (int i = 0; i < 300; ++i) {
    Case c = random_case(random, false);
    const Mapping mapping = weight_stationary(c.e, c.tiles);
    const std::int64_t before = timed(c.e, mapping, c.accelerator).total();
    for (ingest::Rate* rate : {&c.accelerator.levels[1].read, &c.accelerator.levels[1].write}) {
      if (rate->bytes_per_cycle) *rate->bytes_per_cycle *= 1.5;
    }
    EXPECT_LE(timed(c.e, mapping, c.accelerator).total(), before) << i << " seed 13";
  }
}

}  // namespace
}  // namespace plumbline::schedule
