// Slow: the counts behind every number of the default decision, against the walker, kernel by kernel.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "lower/sample_graphs.h"
#include "schedule/sample_machines.h"
#include "schedule/schedule.h"

namespace plumbline::schedule {
namespace {

TEST(WalkDefault, CountsOfEveryKernelEqualTheLoopNestWalk) {
  const ingest::Accelerator accelerator = catalog_accelerator("ws-256");
  ingest::CompileOptions options = sample_options();
  ingest::ConstraintRow row;
  row.level = "accumulator";
  row.dim = "M";
  row.factor_max = 2048;
  lower::EncoderShape shape;
  shape.layers = 1;  // the twelve layers are alike
  const ingest::Graph encoder = lower::sample_encoder(shape);
  std::vector<std::pair<lower::Einsum, Mapping>> walked;
  for (const bool candidate : {false, true}) {
    options.constraints.clear();
    if (candidate) options.constraints.push_back(row);
    for (const std::int64_t batch : {1, 4, 8, 16}) {
      for (const std::int64_t sequence : {128, 512}) {
        auto shaped = ingest::infer_shapes(encoder, {{"batch", batch}, {"sequence", sequence}});
        ASSERT_TRUE(shaped.ok());
        auto graph = lower::lower(*shaped, options, int8_policy(), accelerator);
        ASSERT_TRUE(graph.ok());
        auto made = schedule(*graph, accelerator, options, sample_dataflows());
        ASSERT_TRUE(made.ok());
        for (std::size_t k = 0; k < graph->kernels.size(); ++k) {
          const lower::Kernel& kernel = graph->kernels[k];
          const KernelSchedule& mapped = made->kernels[k];
          if (kernel.kind != lower::KernelKind::matrix) continue;
          bool seen = false;
          for (const auto& [einsum, mapping] : walked) {
            seen = seen || (einsum.dims == kernel.einsum.dims && mapping == mapped.mapping);
          }
          if (seen) continue;
          walked.emplace_back(kernel.einsum, mapped.mapping);
          const auto counts = walk_accesses(kernel.einsum, mapped.hierarchy, mapped.mapping);
          ASSERT_TRUE(counts.ok()) << render(counts.errors());
          EXPECT_EQ(*counts, mapped.counts) << kernel.name << " " << batch << "x" << sequence << " " << mapped.text;
        }
      }
    }
  }
  EXPECT_GE(walked.size(), 40U);
}

}  // namespace
}  // namespace plumbline::schedule
