#include "schedule/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lower/sample_graphs.h"
#include "schedule/sample_machines.h"

namespace plumbline::schedule {
namespace {

struct Explained {
  ingest::Accelerator accelerator;
  lower::Kernel kernel;
  LevelRoles levels;
  KernelSchedule schedule;
  KernelExplanation made;
};

lower::KernelGraph encoder_kernels(const ingest::Accelerator& accelerator) {
  lower::EncoderShape shape;
  shape.layers = 1;
  auto shaped = ingest::infer_shapes(lower::sample_encoder(shape), {{"batch", 4}, {"sequence", 128}});
  PL_CHECK(shaped.ok());
  auto graph = lower::lower(*shaped, sample_options(), int8_policy(), accelerator);
  PL_CHECK(graph.ok());
  return std::move(*graph);
}

std::vector<Explained> explain_all(const ingest::Accelerator& accelerator) {
  const lower::KernelGraph graph = encoder_kernels(accelerator);
  auto scheduled = schedule(graph, accelerator, sample_options(), sample_dataflows());
  PL_CHECK(scheduled.ok());
  const auto levels = find_levels(accelerator);
  std::vector<Explained> all;
  for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
    if (graph.kernels[k].kind != lower::KernelKind::matrix) continue;
    auto made = explain_kernel(graph.kernels[k], accelerator, *levels, scheduled->kernels[k]);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.errors()));
    all.push_back({accelerator, graph.kernels[k], *levels, scheduled->kernels[k], std::move(*made)});
  }
  EXPECT_FALSE(all.empty());
  return all;
}

std::int64_t part(const KernelExplanation& made, const std::string& cause) {
  for (const CyclePart& each : made.parts) {
    if (each.cause == cause) return each.cycles;
  }
  return 0;
}

TEST(Explain, PartsSumToTheKernelsCycles) {
  for (const char* name : {"ws-256", "ws-256-mesh", "ws-128", "flex-128"}) {
    for (const Explained& each : explain_all(catalog_accelerator(name))) {
      std::int64_t sum = 0;
      for (const CyclePart& one : each.made.parts) sum += one.cycles;
      EXPECT_EQ(sum, each.made.price.cycles) << name << " " << each.kernel.name;
      EXPECT_GT(part(each.made, "useful"), 0);
    }
  }
}

TEST(Explain, TheBindingResourceIsBusyLongestAndNoLongerThanTheKernel) {
  for (const char* name : {"ws-256", "ws-256-mesh"}) {
    for (const Explained& each : explain_all(catalog_accelerator(name))) {
      const ResourceTime& binding = each.made.resources[each.made.binding];
      for (const ResourceTime& row : each.made.resources) EXPECT_LE(row.cycles, binding.cycles) << row.resource;
      EXPECT_LE(binding.cycles, each.made.price.cycles + 1) << each.kernel.name;  // rounded up here, down there
    }
  }
}

TEST(Explain, SumsThatMeshRoutersCannotAddBindAndOwnTheNocCycles) {
  for (const Explained& each : explain_all(catalog_accelerator("ws-256-mesh"))) {
    const ResourceTime& binding = each.made.resources[each.made.binding];
    EXPECT_EQ(binding.resource, "mesh_xy_edge of the outputs") << each.kernel.name;
    EXPECT_EQ(binding.link, "column 0 drain");
    EXPECT_GT(part(each.made, "noc"), 0);
  }
  for (const Explained& each : explain_all(catalog_accelerator("ws-256"))) EXPECT_EQ(part(each.made, "noc"), 0);
}

TEST(Explain, ASlowPortBindsByName) {
  ingest::Accelerator accelerator = catalog_accelerator("ws-256");
  accelerator.levels[1].read.bytes_per_cycle = 4;
  for (const Explained& each : explain_all(accelerator)) {
    const ResourceTime& binding = each.made.resources[each.made.binding];
    EXPECT_EQ(binding.resource, "sram read") << each.kernel.name;
    EXPECT_FALSE(binding.tensor.empty());
  }
}

TEST(Explain, AMoveIsPricedAsTheMappingItMakes) {
  int swaps = 0;
  int moves = 0;
  int refused = 0;
  for (const Explained& each : explain_all(catalog_accelerator("ws-128"))) {
    for (const LoopMove& move : each.made.moves) {
      if (!move.refused.empty()) {
        ++refused;
        continue;
      }
      EXPECT_GT(move.price.cycles, 0);
      EXPECT_GT(move.price.femtojoules, 0);
      (move.move.starts_with("swapped") ? swaps : moves) += 1;
    }
  }
  EXPECT_GT(swaps, 0);
  EXPECT_GT(moves, 0);
  EXPECT_GT(refused, 0);
}

TEST(Explain, StreamingLoopInsideLetsWeightsStay) {
  // M in 4 outside N and K fetches every weight four times; moved inside them, once.
  const ingest::Accelerator accelerator = catalog_accelerator("ws-256");
  lower::Kernel kernel = encoder_kernels(accelerator).kernels.front();
  for (const lower::Kernel& each : encoder_kernels(accelerator).kernels) {
    if (each.kind == lower::KernelKind::matrix) kernel = each;
  }
  kernel.einsum = lower::gemm_einsum(1024, 512, 256);
  kernel.einsum.operands[2].bits = 8;
  kernel.einsum.operands[2].partial_bits = 32;
  KernelSchedule schedule;
  schedule.hierarchy = make_hierarchy(accelerator, 1);
  schedule.mapping.levels.resize(4);
  schedule.mapping.levels[1].loops = {{0, 4}, {1, 2}};
  schedule.mapping.levels[2].loops = {{0, 256}, {1, 256, LoopKind::spatial_x}, {2, 256, LoopKind::spatial_y}};
  schedule.mapping.levels[0].keeps = schedule.mapping.levels[1].keeps = 7;
  schedule.mapping.levels[2].keeps = 4;
  schedule.mapping.levels[3].keeps = 1;
  const auto counts = count_accesses(kernel.einsum, schedule.hierarchy, schedule.mapping);
  ASSERT_TRUE(counts.ok()) << render(counts.errors());
  schedule.counts = *counts;
  const auto made = explain_kernel(kernel, accelerator, *find_levels(accelerator), schedule);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->price.off_array_weight, 4 * 512 * 256);
  const auto swap = std::find_if(made->moves.begin(), made->moves.end(),
                                 [](const LoopMove& m) { return m.move == "swapped with N in 2"; });
  ASSERT_NE(swap, made->moves.end());
  EXPECT_EQ(swap->loop, "M in 4 (sram)");
  EXPECT_EQ(swap->refused, "");
  EXPECT_EQ(swap->price.off_array_weight, 512 * 256);
  const auto inward = std::find_if(made->moves.begin(), made->moves.end(), [](const LoopMove& m) {
    return m.loop == "M in 256 (accumulator)" && m.move == "in to array";
  });
  ASSERT_NE(inward, made->moves.end());
  EXPECT_EQ(inward->refused, "a processing element holds one element");
}

}  // namespace
}  // namespace plumbline::schedule
