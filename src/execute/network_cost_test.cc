#include <gtest/gtest.h>

#include <memory>

#include "execute/cost.h"
#include "lower/sample_graphs.h"
#include "schedule/sample_machines.h"

namespace plumbline::execute {
namespace {

using ingest::Accelerator;

Accelerator with_networks(const std::string& topology, double operand_width, double sum_width) {
  Accelerator made = schedule::catalog_accelerator("ws-256");
  ingest::TensorNetwork operand;
  operand.topology = topology;
  operand.link.bytes_per_cycle = operand_width;
  ingest::TensorNetwork sum = operand;
  sum.link.bytes_per_cycle = sum_width;
  made.levels.back().networks = ingest::ArrayNetworks{operand, operand, sum};
  return made;
}

/// One mapped encoder layer, so that only the networks differ between costings.
struct Mapped {
  std::vector<schedule::ModelSchedules> models{1};
  schedule::Residency residency;
  ingest::Buckets shapes{{8}, {128}};
};

Mapped mapped() {
  const Accelerator accelerator = schedule::catalog_accelerator("ws-256");
  lower::EncoderShape shape;
  shape.layers = 1;
  auto shaped = ingest::infer_shapes(lower::sample_encoder(shape), {{"batch", 8}, {"sequence", 128}});
  PL_CHECK(shaped.ok());
  auto graph = lower::lower(*shaped, schedule::sample_options(), schedule::int8_policy(), accelerator);
  PL_CHECK(graph.ok());
  auto made = schedule::schedule(*graph, accelerator, schedule::sample_options(), schedule::sample_dataflows());
  PL_CHECK(made.ok());
  Mapped out;
  out.models[0].buckets.push_back({8, 128, std::make_shared<lower::KernelGraph>(std::move(*graph)),
                                   std::make_shared<schedule::Schedule>(std::move(*made))});
  auto residency = schedule::plan_residency(out.models, accelerator, schedule::sample_options());
  PL_CHECK(residency.ok());
  out.residency = std::move(*residency);
  return out;
}

BatchCost cost_on(const Mapped& made, const Accelerator& accelerator) {
  auto table = build_cost_table(made.models, made.shapes, made.residency, accelerator, accelerator.nominal);
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : render(table.errors()));
  return table->entries.front();
}

std::int64_t cycles_in(const BatchCost& batch, CycleClass c) { return batch.classes[static_cast<std::size_t>(c)]; }

TEST(NetworkCost, IdealNetworksTakeNoCycle) {
  EXPECT_EQ(cycles_in(cost_on(mapped(), schedule::catalog_accelerator("ws-256")), CycleClass::noc), 0);
}

TEST(NetworkCost, ASystolicArraysOwnWiresAddNothing) {
  const Mapped made = mapped();
  const BatchCost ideal = cost_on(made, schedule::catalog_accelerator("ws-256"));
  const BatchCost wired = cost_on(made, with_networks("systolic", 1, 4));
  EXPECT_EQ(wired.classes, ideal.classes);
}

TEST(NetworkCost, RoutersThatDoNotAddOwnTheirExcess) {
  const Mapped made = mapped();
  const BatchCost ideal = cost_on(made, schedule::catalog_accelerator("ws-256"));
  const BatchCost routed = cost_on(made, with_networks("mesh_xy_edge", 1, 32));
  EXPECT_GT(cycles_in(routed, CycleClass::noc), 0);
  // The array and the off-chip link are as late as before; only what follows them may hide behind the networks.
  for (const CycleClass c :
       {CycleClass::useful, CycleClass::preload_exposed, CycleClass::weight_wait, CycleClass::feeder,
        CycleClass::psum_drain, CycleClass::sram, CycleClass::dram, CycleClass::barrier}) {
    EXPECT_EQ(cycles_in(routed, c), cycles_in(ideal, c));
  }
  EXPECT_LE(cycles_in(routed, CycleClass::vector_unit), cycles_in(ideal, CycleClass::vector_unit));
  EXPECT_LE(cycles_in(routed, CycleClass::host), cycles_in(ideal, CycleClass::host));
  EXPECT_GT(routed.cycles, ideal.cycles);
}

TEST(NetworkCost, WiderLinksAreNeverSlower) {
  const Mapped made = mapped();
  std::int64_t before = INT64_MAX;
  for (const double width : {8.0, 32.0, 128.0, 1024.0, 4096.0}) {
    const std::int64_t cycles = cost_on(made, with_networks("mesh_xy_edge", 1, width)).cycles;
    EXPECT_LE(cycles, before);
    before = cycles;
  }
  EXPECT_EQ(before, cost_on(made, schedule::catalog_accelerator("ws-256")).cycles);
}

}  // namespace
}  // namespace plumbline::execute
