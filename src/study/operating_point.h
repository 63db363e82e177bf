#pragma once
// What the traffic makes of a configuration: the batches that were formed, how often, and what they moved when.
#include <array>
#include <cstdint>
#include <vector>

#include "study/engine.h"

namespace plumbline::study {

/// Length of the windows over which the peak bandwidth is taken: long enough to hold some batches, short beside a
/// burst.
inline constexpr std::int64_t kPeakWindowNs = 100'000'000;

/// Batches of one true shape that were padded into one compiled shape.
struct FormedShape {
  std::size_t model = 0;
  std::int64_t size = 0;      ///< real requests
  std::int64_t sequence = 0;  ///< of the longest of them; 0 without a sequence
  std::int32_t entry = 0;     ///< of the cost table
  std::int64_t batches = 0;   ///< over all replications
};

/// Bytes per second through the array's boundary and the chip's.
struct PointBandwidth {
  double mean_busy = 0;  ///< over the time the device was busy
  double mean_span = 0;  ///< over the whole run
  double peak = 0;       ///< largest window of any replication
};

struct OperatingPoint {
  std::vector<std::uint64_t> seeds;
  std::vector<validate::Summary> runs;  ///< by seed
  std::vector<FormedShape> formed;      ///< by model, size, sequence, entry
  PointBandwidth off_array_weight;
  PointBandwidth off_chip_weight;
  std::int64_t busy_ns = 0;  ///< over all replications
  std::int64_t span_ns = 0;
};

/// Serves every seed. The result does not depend on the number of threads.
[[nodiscard]] OperatingPoint find_operating_point(Engine& engine, const Prepared& prepared,
                                                  const std::vector<std::uint64_t>& seeds);

/// The same of one run that was recorded.
[[nodiscard]] OperatingPoint operating_point_of(const Prepared& prepared, std::uint64_t seed,
                                                const serve::ArrivalTrace& trace, const serve::Run& run);

}  // namespace plumbline::study
