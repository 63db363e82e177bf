#include "schedule/combine_fronts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace plumbline::schedule {
namespace {

struct Sums {
  double energy = 0;
  double cycles = 0;
};

Sums sum_of(const std::vector<KernelFront>& kernels, const std::vector<std::size_t>& chosen) {
  Sums sums;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const auto times = static_cast<double>(kernels[k].repeats);
    sums.energy += times * kernels[k].points[chosen[k]].energy;
    sums.cycles += times * kernels[k].points[chosen[k]].cycles;
  }
  return sums;
}

/// By kernel the point of least energy + price × cycles; ties go to fewer cycles, then to the earlier point.
std::vector<std::size_t> best_at(const std::vector<KernelFront>& kernels, double price) {
  std::vector<std::size_t> chosen;
  for (const KernelFront& kernel : kernels) {
    std::size_t best = 0;
    for (std::size_t p = 1; p < kernel.points.size(); ++p) {
      const FrontPoint& a = kernel.points[p];
      const FrontPoint& b = kernel.points[best];
      const double cost_a = a.energy + price * a.cycles;
      const double cost_b = b.energy + price * b.cycles;
      if (cost_a < cost_b || (cost_a == cost_b && a.cycles < b.cycles)) best = p;
    }
    chosen.push_back(best);
  }
  return chosen;
}

/// Prices of a cycle at which some kernel changes its point.
std::vector<double> turning_prices(const std::vector<KernelFront>& kernels) {
  std::vector<double> prices{0.0};
  for (const KernelFront& kernel : kernels) {
    for (const FrontPoint& a : kernel.points) {
      for (const FrontPoint& b : kernel.points) {
        if (a.cycles < b.cycles && a.energy > b.energy) prices.push_back((a.energy - b.energy) / (b.cycles - a.cycles));
      }
    }
  }
  std::sort(prices.begin(), prices.end());
  prices.erase(std::unique(prices.begin(), prices.end()), prices.end());
  return prices;
}

/// A product of positive sums is least at a corner of the hull of all combinations, and every corner is the best
/// combination at some price between two turning points.
FrontChoice combine_products(const std::vector<KernelFront>& kernels) {
  FrontChoice best;
  best.best = std::numeric_limits<double>::infinity();
  const auto consider = [&](double price) {
    std::vector<std::size_t> chosen = best_at(kernels, price);
    const Sums sums = sum_of(kernels, chosen);
    if (!(sums.energy * sums.cycles < best.best)) return;
    best.best = sums.energy * sums.cycles;
    best.chosen = std::move(chosen);
  };
  const std::vector<double> prices = turning_prices(kernels);
  for (std::size_t i = 0; i < prices.size(); ++i) {
    consider(i + 1 < prices.size() ? (prices[i] + prices[i + 1]) / 2 : 2 * prices[i] + 1);
    consider(prices[i]);
  }
  double energy = 0;
  double cycles = 0;
  double roots = 0;
  for (const KernelFront& kernel : kernels) {
    const auto times = static_cast<double>(kernel.repeats);
    energy += times * kernel.energy_floor;
    cycles += times * kernel.cycles_floor;
    roots += times * std::sqrt(kernel.product_floor);
  }
  best.lower_bound = std::max(energy * cycles, roots * roots);
  return best;
}

bool comes_before(const FrontPoint& a, const FrontPoint& b, const std::vector<Objective>& objectives) {
  for (const Objective objective : objectives) {
    if (value_of(a, objective) != value_of(b, objective)) return value_of(a, objective) < value_of(b, objective);
  }
  return false;
}

double floor_of(const KernelFront& kernel, Objective objective) {
  switch (objective) {
    case Objective::energy:
      return kernel.energy_floor;
    case Objective::latency:
      return kernel.cycles_floor;
    case Objective::energy_delay:
      return kernel.product_floor;
    case Objective::off_array_weight_bits:
      return kernel.weight_bits_floor;
  }
  return 0;
}

}  // namespace

double value_of(const FrontPoint& point, Objective objective) {
  switch (objective) {
    case Objective::energy:
      return point.energy;
    case Objective::latency:
      return point.cycles;
    case Objective::energy_delay:
      return point.energy * point.cycles;
    case Objective::off_array_weight_bits:
      return point.weight_bits;
  }
  return 0;
}

FrontChoice combine_fronts(const std::vector<KernelFront>& kernels, const std::vector<Objective>& objectives) {
  const Objective objective = objectives.front();
  for (const KernelFront& kernel : kernels) PL_CHECK(!kernel.points.empty());
  if (objective == Objective::energy_delay) return combine_products(kernels);
  FrontChoice choice;
  for (const KernelFront& kernel : kernels) {
    std::size_t best = 0;
    for (std::size_t p = 1; p < kernel.points.size(); ++p) {
      if (comes_before(kernel.points[p], kernel.points[best], objectives)) best = p;
    }
    choice.chosen.push_back(best);
    choice.best += static_cast<double>(kernel.repeats) * value_of(kernel.points[best], objective);
    choice.lower_bound += static_cast<double>(kernel.repeats) * floor_of(kernel, objective);
  }
  return choice;
}

}  // namespace plumbline::schedule
