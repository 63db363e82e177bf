#pragma once
// Simple tilings once made, by the content of their kernels: graphs that differ in a few kernels share the rest.
#include <cstdint>
#include <vector>

#include "core/result.h"
#include "schedule/choose_mapping.h"

namespace plumbline::schedule {

/// For one accelerator and options that differ in `search` at most, which choose_mapping does not look at; not for
/// several threads at once.
class MappingMemo {
 public:
  /// choose_mapping(), or what it gave for an equal kernel before. Errors: those of choose_mapping.
  Result<KernelSchedule> choose(const MappingRequest& request);

 private:
  struct Known {
    lower::Kernel kernel;
    std::int64_t shrink = 1;
    KernelSchedule schedule;
  };
  std::vector<Known> known_;
};

}  // namespace plumbline::schedule
