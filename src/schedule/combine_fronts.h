#pragma once
// One mapping per kernel for the least energy, latency or energy-delay product of all kernels together.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/search.h"

namespace plumbline::schedule {

/// What one execution of a kernel costs under one of its mappings.
struct FrontPoint {
  double energy = 0;
  double cycles = 0;
  double weight_bits = 0;
};

/// A kernel's mappings, with proven floors of one execution.
struct KernelFront {
  std::int64_t repeats = 1;
  std::vector<FrontPoint> points;  ///< at least one
  double energy_floor = 0;
  double cycles_floor = 0;
  double product_floor = 0;  ///< of energy × cycles of the same mapping
  double weight_bits_floor = 0;
};

struct FrontChoice {
  std::vector<std::size_t> chosen;  ///< by kernel: index into its points
  double best = 0;
  double lower_bound = 0;
};

/// The best combination of the given points under `objectives` (kernels run one after the other), and a bound on any
/// combination of mappings the floors speak of. For the product, that is the larger of (Σ r·E)(Σ r·T) and
/// (Σ r·√(E·T))²: by Cauchy's inequality the product of the sums is never below the latter. Best and bound are of the
/// first objective; the later ones decide among equal points where the first is a sum.
[[nodiscard]] FrontChoice combine_fronts(const std::vector<KernelFront>& kernels,
                                         const std::vector<Objective>& objectives);

/// The value of one execution under `objective`.
[[nodiscard]] double value_of(const FrontPoint& point, Objective objective);

}  // namespace plumbline::schedule
