#pragma once
// Why the dataflows that a schedule chose won: per layer class, what each one tried would have moved and cost.
#include <cstdint>
#include <string>
#include <vector>

#include "lower/kernel.h"
#include "schedule/schedule.h"

namespace plumbline::schedule {

/// One dataflow for all kernels of a class, each run as often as the model runs it.
struct ClassAlternative {
  std::string dataflow;
  std::int64_t won = 0;  ///< kernels that chose it
  MappingPrice total;    ///< of the simple tilings; meaningless when `failure` is not empty
  double value = 0;      ///< sum of the kernels' objective
  std::string failure;   ///< why one of the kernels has no mapping under it; empty = all have
};

struct ClassChoice {
  std::string layer_class;
  std::int64_t kernels = 0;
  std::vector<ClassAlternative> alternatives;  ///< in order of name, the chosen ones among them
  MappingPrice chosen;                         ///< each kernel under the dataflow it chose
};

/// Classes with matrix kernels in the order of the graph.
[[nodiscard]] std::vector<ClassChoice> explain_choices(const lower::KernelGraph& graph, const Schedule& schedule);

}  // namespace plumbline::schedule
