#pragma once
// How far each network carries a growing weight-stationary array: the table of docs/networks.md.
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace plumbline::study {

/// One kernel on one array with one pair of networks: times of the parts when nothing else held them up, in cycles.
struct NetworkPoint {
  std::string inward;   ///< topology of weights and inputs
  std::string outward;  ///< topology of the sums
  std::int64_t side = 0;
  std::int64_t compute = 0;  ///< of the array, preload and skew included
  std::int64_t weights = 0;
  std::int64_t activations = 0;
  std::int64_t sums = 0;
  std::string limit;             ///< compute, weights, activations or psums; of equals the first
  double activation_width = 0;   ///< bytes per cycle at which the limiting link of the activations keeps up
  double sum_width = 0;          ///< the same of the sums
  double byte_hops_per_mac = 0;  ///< all tensors
};

struct NetworkCase {
  std::string name;
  std::vector<NetworkPoint> points;  ///< [networks][side]
};

/// Sides 16 to 256. Errors: none for the cases built in but those of counting.
Result<std::vector<NetworkCase>> study_networks();

/// The tables as Markdown: for every pair of networks the side from which a part takes longer than the array, then all
/// points.
[[nodiscard]] std::string network_markdown(const std::vector<NetworkCase>& cases);

}  // namespace plumbline::study
