#include <gtest/gtest.h>

#include <set>

#include "schedule/counts.h"
#include "study/decision_study.h"

namespace plumbline::study {
namespace {

const std::string kCatalog = std::string(PLUMBLINE_SOURCE_DIR) + "/catalog";
const std::string kBurst = kCatalog + "/scenarios/burst/";

// The bytes a decision rests on, against the loop-nest walker, for every kernel of every shape in both arms.
TEST(Default, EveryKernelsCountsEqualTheWalker) {
  ingest::Library library(kCatalog);
  Engine engine(library, 2);
  const auto comparison = ingest::read_comparison(kBurst + "baseline.yaml", kBurst + "candidate.yaml", library);
  std::size_t kernels = 0;
  std::set<std::string> walked;  // identical kernels with identical nests count alike
  for (const std::vector<std::size_t>& chosen : {std::vector<std::size_t>{}, std::vector<std::size_t>{0, 1, 2}}) {
    const auto prepared =
        engine.prepare("arm", ingest::apply_changes(comparison->baseline, comparison->changes, chosen, {}));
    ASSERT_TRUE(prepared.ok());
    for (const auto& model : prepared->compiled->models) {
      for (const auto& bucket : model.buckets) {
        for (std::size_t k = 0; k < bucket.graph->kernels.size(); ++k) {
          const auto& kernel = bucket.graph->kernels[k];
          if (kernel.kind != lower::KernelKind::matrix) continue;
          const auto& made = bucket.schedule->kernels[k];
          ++kernels;
          std::string key = made.text;
          for (const auto size : kernel.einsum.dims) key.append("|").append(std::to_string(size));  // GCC PR 105651
          if (!walked.insert(key).second) continue;
          const auto counts = schedule::walk_accesses(kernel.einsum, made.hierarchy, made.mapping);
          ASSERT_TRUE(counts.ok()) << kernel.name << ": " << render(counts.errors());
          EXPECT_EQ(counts->levels, made.counts.levels)
              << kernel.name << " at " << bucket.batch << " x " << bucket.sequence;
        }
      }
    }
  }
  EXPECT_GE(kernels, 80U);
  EXPECT_GE(walked.size(), 30U);
}

}  // namespace
}  // namespace plumbline::study
