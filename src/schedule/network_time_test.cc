#include "schedule/network_time.h"

#include <gtest/gtest.h>

#include "schedule/sample_machines.h"

namespace plumbline::schedule {
namespace {

lower::Einsum gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  lower::Einsum made = lower::gemm_einsum(m, n, k);
  made.operands[2].bits = 8;
  made.operands[2].partial_bits = 32;
  return made;
}

/// ws-256 with every tensor on `topology`, links of 1 byte a cycle.
ingest::Accelerator machine(const std::string& topology, bool shared = false) {
  ingest::Accelerator made = catalog_accelerator("ws-256");
  ingest::TensorNetwork row;
  row.topology = topology;
  row.link.bytes_per_cycle = 1;
  made.levels.back().networks = ingest::ArrayNetworks{row, row, row, shared};
  return made;
}

/// M in 2 (sram); M in 64 past 256 columns of N and 128 rows of K.
Mapping weight_stationary() {
  Mapping mapping;
  mapping.levels.resize(4);
  mapping.levels[1].loops = {{0, 2}};
  mapping.levels[2].loops = {{0, 64}, {1, 256, LoopKind::spatial_x}, {2, 128, LoopKind::spatial_y}};
  mapping.levels[0].keeps = mapping.levels[1].keeps = 7;
  mapping.levels[2].keeps = 4;
  mapping.levels[3].keeps = 1;
  return mapping;
}

ArrayNetwork loaded(const ingest::Accelerator& accelerator) {
  const auto levels = find_levels(accelerator);
  auto made = find_array_network(gemm(128, 256, 128), weight_stationary(), accelerator, *levels, accelerator.nominal);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.errors()));
  return std::move(*made);
}

TEST(NetworkTime, WithoutANetworkNothingTakesTime) {
  const ArrayNetwork made = loaded(catalog_accelerator("ws-256"));
  EXPECT_TRUE(made.tensors.empty());
  EXPECT_EQ(made.cycles, 0);
  EXPECT_FALSE(made.binding);
}

TEST(NetworkTime, ASystolicArrayMovesOneWordPerLinkAndStep) {
  const ArrayNetwork made = loaded(machine("systolic"));
  // 128 rows of weights shift down each column, once.
  EXPECT_EQ(made.tensors[0].cycles, 128);
  EXPECT_EQ(made.tensors[0].limiting, "column feeder 0");
  EXPECT_EQ(made.tensors[0].byte_hops, 256 * (128 * 129 / 2));
  // 128 steps, one byte into each row; it passes 256 columns.
  EXPECT_EQ(made.tensors[1].cycles, 128);
  EXPECT_EQ(made.tensors[1].limiting, "row feeder 0");
  EXPECT_EQ(made.tensors[1].byte_hops, 128 * 128 * 256);
  // 128 sums of 4 bytes leave each column after passing all 256 rows.
  EXPECT_EQ(made.tensors[2].cycles, 128 * 4);
  EXPECT_EQ(made.tensors[2].limiting, "column 0 drain");
  EXPECT_EQ(made.tensors[2].byte_hops, std::int64_t{128} * 256 * 256 * 4);
  EXPECT_EQ(made.cycles, 512);
  EXPECT_EQ(made.binding, std::size_t{2});
}

TEST(NetworkTime, RoutersThatDoNotAddCarryEveryAddend) {
  const ArrayNetwork made = loaded(machine("mesh_xy_edge"));
  EXPECT_EQ(made.tensors[1].cycles, 128);
  EXPECT_EQ(made.tensors[2].cycles, 128 * 128 * 4);
}

TEST(NetworkTime, ABusCarriesEverythingInTurnWhenItIsShared) {
  const ArrayNetwork apart = loaded(machine("bus"));
  EXPECT_EQ(apart.tensors[0].cycles, 256 * 128);
  EXPECT_EQ(apart.tensors[1].cycles, 128 * 128);
  EXPECT_EQ(apart.tensors[2].cycles, std::int64_t{128} * 256 * 128 * 4);
  const ArrayNetwork shared = loaded(machine("bus", true));
  EXPECT_EQ(shared.cycles, apart.tensors[0].cycles + apart.tensors[1].cycles + apart.tensors[2].cycles);
}

TEST(NetworkTime, SharedTreesHaveAWireForEachDirection) {
  const ArrayNetwork apart = loaded(machine("multicast_tree"));
  const ArrayNetwork shared = loaded(machine("multicast_tree", true));
  EXPECT_EQ(shared.tensors[0].cycles, apart.tensors[0].cycles + apart.tensors[1].cycles);
  EXPECT_EQ(shared.tensors[1].cycles, shared.tensors[0].cycles);
  EXPECT_EQ(shared.tensors[2].cycles, apart.tensors[2].cycles);
}

TEST(NetworkTime, UnlimitedLinksTakeNoTimeAndStillCountHops) {
  ingest::Accelerator accelerator = machine("systolic");
  accelerator.levels.back().networks->outputs.link = {};
  const ArrayNetwork made = loaded(accelerator);
  EXPECT_EQ(made.tensors[2].cycles, 0);
  EXPECT_GT(made.tensors[2].byte_hops, 0);
  EXPECT_EQ(made.cycles, 128);
}

TEST(NetworkTime, AZeroLinkIsAnError) {
  ingest::Accelerator accelerator = machine("systolic");
  accelerator.levels.back().networks->inputs.link.bytes_per_cycle = 0;
  const auto made = find_array_network(gemm(128, 256, 128), weight_stationary(), accelerator, *find_levels(accelerator),
                                       accelerator.nominal);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.errors().front().kind, "bad-value");
}

}  // namespace
}  // namespace plumbline::schedule
