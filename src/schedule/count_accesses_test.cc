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
  compare("perfect", 3000, limits, {});
}

TEST(CountAccesses, agrees_with_the_walk_on_ragged_factors) { compare("ragged", 4000, {}, {}); }

TEST(CountAccesses, agrees_with_the_walk_over_up_to_eight_levels) {
  CaseLimits limits;
  limits.levels_from = 5;
  limits.levels_to = 8;
  limits.largest_kernel = 1500;
  compare("deep", 1000, limits, {});
}

TEST(CountAccesses, agrees_with_the_folded_walk) {
  WalkLimits folded;
  folded.explicit_visits = 0;
  compare("folded", 3000, {}, folded);
}

}  // namespace
}  // namespace plumbline::schedule
