// Every catalogue model on every catalogue accelerator, with proof.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "study/engine.h"

namespace plumbline::study {
namespace {

const std::string kCatalog = std::string(PLUMBLINE_SOURCE_DIR) + "/catalog";

constexpr const char* kScenario = R"(plumbline: 1
name: {0}
models: [{{name: m, family: f, catalog: {0}}}]
accelerator: {1}
compile: {{shapes: {{batch: [1], sequence: [128], pad: up}}, fusion: [epilogue, attention], search: certified}}
precision: int8-exact
traffic: {{profiles: [{{sequence: 128, share: 1}}], arrivals: {{poisson: 1 /s}}, duration: 1 s}}
serving: {{batch: {{max: 1, wait: 0 ms, group: mixed}}, admission: {{queue: 8}}, clock: nominal}}
environment: {{ambient: 30 degC}}
targets: {{latency: {{p95: 1 s, p99: 2 s}}, loss: 1 %}}
metric: {{name: energy_per_inference, better: lower}}
gate: default
)";

std::vector<std::string> accelerators() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kCatalog + "/accelerators"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CatalogueSchedules, EveryModelHasAProofOnEveryAccelerator) {
  ASSERT_GE(accelerators().size(), 3U);
  ingest::Library library(kCatalog);
  Engine engine(library, 2);
  for (const char* model : {"bert-base", "vit-b-16", "llama-2-7b-prefill", "llama-2-7b-decode", "resnet-50"}) {
    for (const std::string& accelerator : accelerators()) {
      auto document = ingest::parse_yaml(std::make_shared<const Source>(
          Source{"test.yaml", fmt::format(fmt::runtime(kScenario), model, accelerator)}));
      ASSERT_TRUE(document.ok()) << render(document.errors());
      const auto prepared = engine.prepare(model, *document);
      ASSERT_TRUE(prepared.ok()) << model << " on " << accelerator << "\n" << render(prepared.errors());
      const schedule::Schedule& made = *prepared->compiled->models[0].buckets[0].schedule;
      ASSERT_TRUE(made.proof.has_value()) << model << " on " << accelerator;
      EXPECT_GT(made.proof->lower_bound, 0);
      EXPECT_LE(made.proof->lower_bound, made.proof->best);
      EXPECT_TRUE(std::isfinite(made.proof->gap));
      for (const auto& kernel : made.kernels) {
        if (kernel.dataflow.empty()) continue;
        ASSERT_TRUE(kernel.proof.has_value());
        EXPECT_FALSE(kernel.proof->covered.empty());
      }
      fmt::print("{:<20} {:<12} network gap {:.4f}\n", model, accelerator, made.proof->gap);
    }
  }
}

}  // namespace
}  // namespace plumbline::study
