#pragma once
// What was proven about a choice of mappings: a value, a bound no choice in scope is below, and what they speak of.
#include <cstdint>
#include <string>

namespace plumbline::schedule {

struct Proof {
  std::string scope;      ///< kernel | network
  std::string objective;  ///< energy-delay product (fJ·cycles), energy (fJ), latency (cycles), off-array weight bits
  std::string covered;    ///< which mappings the bound speaks of
  std::string certified_on;
  double best = 0;
  double lower_bound = 0;
  double gap = 0;               ///< best / lower_bound − 1; 0 when both are 0
  std::int64_t bounded = 0;     ///< parts of the space that were bounded
  std::int64_t pruned = 0;      ///< of these, never looked into
  std::int64_t evaluated = 0;   ///< complete mappings counted exactly
  std::int64_t candidates = 0;  ///< mappings of energy–latency fronts chosen among
};

}  // namespace plumbline::schedule
