#include "study/operating_point.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/parallel.h"

namespace plumbline::study {
namespace {

using FormedKey = std::tuple<std::size_t, std::int64_t, std::int64_t, std::int32_t>;

struct Replication {
  validate::Summary summary;
  std::map<FormedKey, std::int64_t> formed;
  std::array<double, 2> peak{};  ///< bytes per second: off array, off chip
  std::array<std::int64_t, 2> bytes{};
};

std::array<std::int64_t, 2> weight_bytes(const execute::BatchCost& cost) {
  std::array<std::int64_t, 2> out{};
  for (const auto& layer : cost.layers) {
    out[0] += layer.movement.off_array_weight;
    out[1] += layer.movement.off_chip_weight;
  }
  return out;
}

/// A batch moves its bytes evenly over its service time.
class Windows {
 public:
  void add(std::int64_t start, std::int64_t end, const std::array<std::int64_t, 2>& bytes) {
    if (end <= start) return;
    const double length = static_cast<double>(end - start);
    for (std::int64_t w = start / kPeakWindowNs; w * kPeakWindowNs < end; ++w) {
      const std::int64_t overlap = std::min(end, (w + 1) * kPeakWindowNs) - std::max(start, w * kPeakWindowNs);
      if (static_cast<std::size_t>(w) >= sums_.size()) sums_.resize(static_cast<std::size_t>(w) + 1);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        sums_[static_cast<std::size_t>(w)][i] +=
            static_cast<double>(bytes[i]) * (static_cast<double>(overlap) / length);
      }
    }
  }
  [[nodiscard]] double peak(std::size_t i) const {
    double most = 0;
    for (const auto& sum : sums_) most = std::max(most, sum[i]);
    return most / (static_cast<double>(kPeakWindowNs) * 1e-9);
  }

 private:
  std::vector<std::array<double, 2>> sums_;
};

Replication sum_up(const Prepared& prepared, const serve::ArrivalTrace& trace, const serve::Run& run) {
  const auto& scenario = *prepared.scenario;
  const auto& costs = *prepared.costs;
  Replication out;
  out.summary = validate::summarize(costs, scenario.traffic.profiles, trace, run);
  std::vector<std::array<std::int64_t, 2>> moved;
  for (const auto& entry : costs.entries) moved.push_back(weight_bytes(entry));
  Windows windows;
  for (const auto& batch : run.batches) {
    const auto& entry = costs.entries[static_cast<std::size_t>(batch.entry)];
    const auto& bytes = moved[static_cast<std::size_t>(batch.entry)];
    std::int64_t longest = 0;
    for (std::int32_t i = 0; i < batch.size; ++i) {
      const auto request = static_cast<std::size_t>(
          run.members[static_cast<std::size_t>(batch.first_member) + static_cast<std::size_t>(i)]);
      longest = std::max(longest, scenario.traffic.profiles[trace.arrivals[request].profile].sequence);
    }
    if (entry.sequence == 0) longest = 0;
    ++out.formed[{entry.model, batch.size, longest, batch.entry}];
    windows.add(batch.start_ns, batch.end_ns, bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) out.bytes[i] += bytes[i];
  }
  for (std::size_t i = 0; i < out.peak.size(); ++i) out.peak[i] = windows.peak(i);
  return out;
}

OperatingPoint merge(const std::vector<std::uint64_t>& seeds, std::vector<Replication> made) {
  OperatingPoint out;
  out.seeds = seeds;
  std::map<FormedKey, std::int64_t> formed;
  std::array<std::int64_t, 2> bytes{};
  for (Replication& replication : made) {
    for (const auto& [key, batches] : replication.formed) formed[key] += batches;
    out.busy_ns += replication.summary.busy_ns;
    out.span_ns += replication.summary.span_ns;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] += replication.bytes[i];
    out.off_array_weight.peak = std::max(out.off_array_weight.peak, replication.peak[0]);
    out.off_chip_weight.peak = std::max(out.off_chip_weight.peak, replication.peak[1]);
    out.runs.push_back(std::move(replication.summary));
  }
  for (const auto& [key, batches] : formed) {
    out.formed.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), batches});
  }
  const auto rate = [](std::int64_t moved, std::int64_t ns) {
    return ns > 0 ? static_cast<double>(moved) / (static_cast<double>(ns) * 1e-9) : 0.0;
  };
  out.off_array_weight.mean_busy = rate(bytes[0], out.busy_ns);
  out.off_array_weight.mean_span = rate(bytes[0], out.span_ns);
  out.off_chip_weight.mean_busy = rate(bytes[1], out.busy_ns);
  out.off_chip_weight.mean_span = rate(bytes[1], out.span_ns);
  return out;
}

}  // namespace

OperatingPoint find_operating_point(Engine& engine, const Prepared& prepared, const std::vector<std::uint64_t>& seeds) {
  PL_CHECK(prepared.ok());
  std::vector<Replication> made(seeds.size());
  parallel_for(seeds.size(), engine.threads(), [&](std::size_t s) {
    const auto& scenario = *prepared.scenario;
    const auto trace = engine.arrivals(scenario, seeds[s]);
    made[s] =
        sum_up(prepared, *trace, serve::serve(*prepared.costs, scenario.serving, scenario.traffic.profiles, *trace));
  });
  return merge(seeds, std::move(made));
}

OperatingPoint operating_point_of(const Prepared& prepared, std::uint64_t seed, const serve::ArrivalTrace& trace,
                                  const serve::Run& run) {
  return merge({seed}, {sum_up(prepared, trace, run)});
}

}  // namespace plumbline::study
