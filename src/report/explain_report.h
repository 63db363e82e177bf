#pragma once
// What `plumbline schedule SCENARIO --explain KERNEL` prints: one kernel in every compiled shape.
#include <string>
#include <vector>

#include "schedule/explain.h"
#include "study/engine.h"

namespace plumbline::report {

struct ExplainedKernel {
  std::string model;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;  ///< 0 without a sequence
  const lower::Kernel* kernel = nullptr;
  const schedule::KernelSchedule* schedule = nullptr;
  schedule::KernelExplanation made;
};

[[nodiscard]] std::string explain_text(const study::Prepared& prepared, const std::vector<ExplainedKernel>& kernels);
[[nodiscard]] std::string explain_json(const study::Prepared& prepared, const std::vector<ExplainedKernel>& kernels);

}  // namespace plumbline::report
