#pragma once
// Random kernels, hierarchies and mappings for tests, all of them valid.
#include <string>

#include "core/random.h"
#include "lower/einsum.h"
#include "schedule/hierarchy.h"
#include "schedule/mapping.h"

namespace plumbline::schedule {

struct MappingCase {
  lower::Einsum einsum;
  Hierarchy hierarchy;
  Mapping mapping;
  [[nodiscard]] std::string describe() const;
};

/// Which corners a random case may take.
struct CaseLimits {
  std::int64_t largest_dim = 7;
  std::int64_t largest_kernel = 4000;  ///< multiply-accumulates
  int levels_from = 2;
  int levels_to = 4;
  bool ragged = true;
};

/// A small problem: GEMM, batched GEMM, convolution (strided, dilated, grouped, depthwise) or a three-term axis.
MappingCase random_case(RandomStream& random, const CaseLimits& limits);

}  // namespace plumbline::schedule
