#include "schedule/compulsory_floor.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/random.h"

namespace plumbline::schedule {
namespace {

double passes_of(std::int64_t size, std::int64_t places) {
  const std::int64_t passes = (size + places - 1) / places;
  return static_cast<double>(passes);
}

/// Passes of the best spatial factors, each tried.
double passes_by_trying(const std::vector<std::int64_t>& sizes, std::int64_t room) {
  double fewest = std::numeric_limits<double>::infinity();
  const std::function<void(std::size_t, std::int64_t, double)> lay = [&](std::size_t at, std::int64_t left,
                                                                         double so_far) {
    if (at == sizes.size()) {
      fewest = std::min(fewest, so_far);
      return;
    }
    for (std::int64_t places = 1; places <= std::min(left, sizes[at]); ++places)
      lay(at + 1, left / places, so_far * passes_of(sizes[at], places));
  };
  lay(0, room, 1);
  return fewest;
}

TEST(BestArrayUse, APrimeTakesWholePasses) {
  const lower::Einsum einsum = lower::gemm_einsum(197, 768, 64);
  const std::uint32_t m = 1U << einsum.dim("M");
  const std::uint32_t k = 1U << einsum.dim("K");
  const ArrayUse use = best_array_use(einsum, m, k, 128, 128);
  EXPECT_EQ(use.columns, 98.5);
  EXPECT_EQ(use.rows, 64);
}

TEST(BestArrayUse, IsTheBestOfAllSpatialFactors) {
  for (std::uint64_t round = 0; round < 200; ++round) {
    RandomStream random(5, "use", round);
    lower::Einsum einsum = lower::gemm_einsum(1 + static_cast<std::int64_t>(random.next_below(40)),
                                              1 + static_cast<std::int64_t>(random.next_below(12)),
                                              1 + static_cast<std::int64_t>(random.next_below(9)));
    const auto room = 1 + static_cast<std::int64_t>(random.next_below(50));
    const std::vector<std::int64_t> sizes{einsum.dims[0], einsum.dims[1], einsum.dims[2]};
    const auto all = static_cast<double>(sizes[0] * sizes[1] * sizes[2]);
    EXPECT_DOUBLE_EQ(best_array_use(einsum, 7U, 0U, room, 1).columns, all / passes_by_trying(sizes, room)) << round;
  }
}

TEST(WithShifts, TilesThatAreNotDoubledShiftBetweenTheirStreams) {
  ingest::Accelerator accelerator;
  accelerator.preload = ingest::Preload::double_buffered;
  EXPECT_EQ(with_shifts(100, 60, 130, 0, accelerator), 130);
  EXPECT_EQ(with_shifts(100, 60, 90, 0, accelerator), 100);
  accelerator.preload = ingest::Preload::serial;
  EXPECT_EQ(with_shifts(100, 60, 90, 0, accelerator), 150);
  accelerator.accumulator_double_buffered = false;
  EXPECT_EQ(with_shifts(100, 60, 90, 2, accelerator), 150);
  accelerator.accumulator_double_buffered = true;
  EXPECT_EQ(with_shifts(100, 60, 90, 2, accelerator), 100);
}

}  // namespace
}  // namespace plumbline::schedule
