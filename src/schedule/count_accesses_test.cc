#include <fmt/format.h>
#include <gtest/gtest.h>

#include "schedule/counts.h"
#include "schedule/random_mapping.h"

namespace plumbline::schedule {
namespace {

std::string text_of(const AccessCounts& counts) {
  std::string text =
      fmt::format("macs {} steps {} cycles {}", counts.macs, counts.compute_steps, counts.cycles_overlapped);
  for (std::size_t l = 0; l < counts.levels.size(); ++l) {
    for (std::size_t o = 0; o < counts.levels[l].size(); ++o) {
      const OperandCounts& c = counts.levels[l][o];
      if (c.kept)
        text += fmt::format("\nlevel {} operand {}: tile {} reads {} fills {} updates {} bits {}/{}", l, o, c.tile,
                            c.reads, c.fills, c.updates, c.read_bits, c.write_bits);
    }
  }
  for (const NetworkCounts& n : counts.networks) {
    text += fmt::format("\n{}->{} operand {}: in {} out {} reductions {}", n.outer, n.inner, n.operand, n.ingresses,
                        n.deliveries, n.spatial_reductions);
  }
  return text;
}

void compare(std::string_view name, std::uint64_t cases, const CaseLimits& limits, const WalkLimits& walk) {
  RandomStream random(20261130, name);
  for (std::uint64_t i = 0; i < cases; ++i) {
    const MappingCase each = random_case(random, limits);
    const auto counted = count_accesses(each.einsum, each.hierarchy, each.mapping);
    const auto walked = walk_accesses(each.einsum, each.hierarchy, each.mapping, walk);
    ASSERT_TRUE(counted.ok()) << render(counted.errors()) << each.describe();
    ASSERT_TRUE(walked.ok()) << render(walked.errors()) << each.describe();
    ASSERT_EQ(text_of(*counted), text_of(*walked)) << "case " << i << "\n" << each.describe();
    ASSERT_TRUE(*counted == *walked);
  }
}

TEST(CountAccesses, agrees_with_the_walk_on_perfect_factors) {
  CaseLimits limits;
  limits.ragged = false;
  compare("perfect", 10000, limits, {});
}

TEST(CountAccesses, agrees_with_the_walk_on_ragged_factors) { compare("ragged", 10000, {}, {}); }

TEST(CountAccesses, agrees_with_the_walk_over_up_to_eight_levels) {
  CaseLimits limits;
  limits.levels_from = 5;
  limits.levels_to = 8;
  limits.largest_kernel = 1500;
  compare("deep", 3000, limits, {});
}

TEST(CountAccesses, agrees_with_the_folded_walk) {
  WalkLimits folded;
  folded.explicit_visits = 0;
  compare("folded", 8000, {}, folded);
}

TEST(CountAccesses, agrees_with_the_walk_on_wider_kernels) {
  CaseLimits limits;
  limits.largest_dim = 23;
  limits.largest_kernel = 60000;
  compare("wide", 600, limits, {});
}

/// One buffer below off-chip memory and a row of four registers, unbounded unless the test says otherwise.
struct Small {
  lower::Einsum einsum = lower::gemm_einsum(8, 4, 6);
  Hierarchy hierarchy;
  Mapping mapping;
  Small() {
    hierarchy.levels.resize(3);
    hierarchy.levels[0].name = "dram";
    hierarchy.levels[1].name = "buffer";
    hierarchy.levels[2].name = "registers";
    hierarchy.levels[2].instances = hierarchy.levels[2].mesh_x = 4;
    hierarchy.mac_units = hierarchy.mac_mesh_x = 4;
    mapping.levels.resize(3);
    mapping.levels[0] = {{{0, 8}}, 7};
    mapping.levels[1] = {{{2, 6}, {1, 4, LoopKind::spatial_x}}, 7};
    mapping.levels[2] = {{}, 7};
  }
  [[nodiscard]] std::string error() const {
    const auto counts = count_accesses(einsum, hierarchy, mapping);
    const auto walked = walk_accesses(einsum, hierarchy, mapping);
    if (counts.ok()) return walked.ok() ? "ok" : "only the walk fails";
    EXPECT_FALSE(walked.ok());
    EXPECT_EQ(counts.errors()[0].message, walked.errors()[0].message);
    return counts.errors()[0].kind;
  }
};

TEST(CountAccesses, rejects_what_cannot_be_counted) {
  EXPECT_EQ(Small().error(), "ok");
  Small wide;
  wide.hierarchy.levels[2].instances = wide.hierarchy.levels[2].mesh_x = 2;
  wide.hierarchy.mac_units = wide.hierarchy.mac_mesh_x = 2;
  EXPECT_EQ(wide.error(), "does-not-fit");
  Small full;
  full.hierarchy.levels[1].capacity_bits =
      8 * (24 + 6 + 4) - 1;  // weights, inputs and finished outputs of a buffer tile
  EXPECT_EQ(full.error(), "does-not-fit");
  full.hierarchy.levels[1].capacity_bits = 8 * (24 + 6 + 4);
  EXPECT_EQ(full.error(), "ok");
  Small short_of;
  short_of.mapping.levels[1].loops[0].bound = 5;
  EXPECT_EQ(short_of.error(), "bad-value");
  Small homeless;
  for (LevelNest& level : homeless.mapping.levels) level.keeps &= ~2U;
  EXPECT_EQ(homeless.error(), "bad-value");
  Small late;
  std::swap(late.mapping.levels[1].loops[0], late.mapping.levels[1].loops[1]);
  EXPECT_EQ(late.error(), "bad-value");
  Small stuck;
  stuck.hierarchy.levels[0].read_bits_per_cycle = 0.0;
  EXPECT_EQ(stuck.error(), "bad-value");
  Small none;
  none.einsum.dims[1] = 0;
  EXPECT_EQ(none.error(), "bad-value");
}

TEST(CountAccesses, block_scales_travel_with_every_tile_that_touches_their_group) {
  // Weights of 4 bits with a scale of 8 for every 32 along K = 96; a register tile of 16 touches one group, one of 48
  // two.
  Small small;
  small.einsum = lower::gemm_einsum(2, 4, 96);
  small.einsum.operands[0].bits = 4;
  small.einsum.operands[0].side_bits = 8;
  small.einsum.operands[0].side_group = 32;
  for (const auto& [extent, touched] : {std::pair<std::int64_t, std::int64_t>{16, 6}, {48, 4}, {96, 3}}) {
    small.mapping.levels[0] = {{{0, 2}}, 7};
    small.mapping.levels[1] = {{{2, 96 / extent}, {1, 4, LoopKind::spatial_x}}, 7};
    small.mapping.levels[2] = {{{2, extent}}, 7};
    const auto counts = count_accesses(small.einsum, small.hierarchy, small.mapping);
    ASSERT_TRUE(counts.ok());
    const OperandCounts& weights = counts->levels[1][0];
    // The whole column of K stands still under M when one tile holds it.
    const std::int64_t passes = extent == 96 ? 1 : 2;
    EXPECT_EQ(weights.reads, passes * 4 * 96);
    EXPECT_EQ(weights.read_bits, passes * 4 * (96 * 4 + touched * 8)) << extent;
    EXPECT_EQ(counts->levels[0][0].read_bits, 4 * (96 * 4 + 3 * 8));
  }
}

TEST(CountAccesses, counts_beyond_64_bits_are_an_error_and_never_wrap) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  Small huge;
  huge.einsum.dims = {kHuge, 4, 6};
  huge.mapping.levels[0].loops[0].bound = kHuge;
  const auto counts = count_accesses(huge.einsum, huge.hierarchy, huge.mapping);
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->macs, kHuge * 24);
  EXPECT_EQ(counts->levels[0][1].reads, kHuge * 6);
  huge.einsum.dims = {kHuge, kHuge, 6};
  EXPECT_EQ(huge.error(), "overflow");
  Small bits;  // the MACs fit, their bits do not
  bits.einsum.dims = {std::int64_t{1} << 58, 4, 1};
  bits.mapping.levels[0].loops[0].bound = std::int64_t{1} << 58;
  const auto wide = count_accesses(bits.einsum, bits.hierarchy, bits.mapping);
  ASSERT_FALSE(wide.ok());
  EXPECT_EQ(wide.errors()[0].kind, "overflow");
}

TEST(CountAccesses, a_layer_of_bert_on_a_256_by_256_array_walks_to_the_same_counts) {
  // Weight stationary: K down, N across, 2048 rows of activations a pass, sums in an accumulator below each column.
  lower::Einsum einsum = lower::gemm_einsum(8192, 3072, 768);
  Hierarchy hierarchy;
  hierarchy.levels.resize(4);
  const char* names[] = {"dram", "buffer", "accumulator", "array"};
  const std::int64_t across[] = {1, 1, 256, 256};
  const std::int64_t all[] = {1, 1, 256, 256 * 256};
  for (std::size_t l = 0; l < 4; ++l) {
    hierarchy.levels[l].name = names[l];
    hierarchy.levels[l].instances = all[l];
    hierarchy.levels[l].mesh_x = across[l];
  }
  hierarchy.mac_units = 256 * 256;
  hierarchy.mac_mesh_x = 256;
  Mapping mapping;
  mapping.levels.resize(4);
  mapping.levels[0] = {{{0, 4}, {1, 12}}, 7};
  mapping.levels[1] = {{{1, 256, LoopKind::spatial_x}}, 2};
  mapping.levels[2] = {{{2, 3}, {0, 2048}, {2, 256, LoopKind::spatial_y}}, 4};
  mapping.levels[3] = {{}, 1};
  const auto counted = count_accesses(einsum, hierarchy, mapping);
  const auto walked = walk_accesses(einsum, hierarchy, mapping);
  ASSERT_TRUE(counted.ok());
  ASSERT_TRUE(walked.ok()) << render(walked.errors());
  EXPECT_EQ(text_of(*counted), text_of(*walked));
  EXPECT_EQ(counted->compute_steps, 4 * 12 * 3 * 2048);
  EXPECT_EQ(counted->levels[0][0].reads, 4 * 3072 * 768);  // every block of rows reads all weights
}

}  // namespace
}  // namespace plumbline::schedule
