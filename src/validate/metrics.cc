#include "validate/metrics.h"

#include <array>

namespace plumbline::validate {
namespace {

using execute::Movement;

constexpr double kNanosecond = 1e-9;   // s
constexpr double kFemtojoule = 1e-15;  // J

const Service& service_of(const Summary& summary, const Selector& selector) {
  return summary.over(selector.model, selector.profile, selector.phase);
}

/// Calls visit(slice) for every slice the selector covers.
template <class Visit>
void for_slices(const Summary& summary, const Selector& selector, Visit visit) {
  const auto range = [](std::optional<std::size_t> chosen, std::size_t count) {
    return chosen ? std::pair{*chosen, *chosen + 1} : std::pair{std::size_t{0}, count};
  };
  const auto [model_begin, model_end] = range(selector.model, summary.models);
  const auto [layer_begin, layer_end] = range(selector.layer, summary.layer_classes);
  const auto [profile_begin, profile_end] = range(selector.profile, summary.profiles);
  const auto [phase_begin, phase_end] = range(selector.phase, kPhases);
  for (std::size_t model = model_begin; model < model_end; ++model) {
    for (std::size_t layer = layer_begin; layer < layer_end; ++layer) {
      for (std::size_t profile = profile_begin; profile < profile_end; ++profile) {
        for (std::size_t phase = phase_begin; phase < phase_end; ++phase) {
          visit(summary.slices[summary.slice(model, layer, profile, phase)]);
        }
      }
    }
  }
}

template <std::int64_t Movement::*Field>
std::optional<double> bytes_per_inference(const Summary& summary, const Selector& selector) {
  const std::int64_t completed = service_of(summary, selector).completed;
  if (completed == 0) return std::nullopt;
  std::int64_t bytes = 0;
  for_slices(summary, selector, [&](const SliceSums& slice) { bytes += slice.movement.*Field; });
  return static_cast<double>(bytes) / static_cast<double>(completed);
}

std::optional<double> energy_per_inference(const Summary& summary, const Selector& selector) {
  const std::int64_t completed = service_of(summary, selector).completed;
  if (completed == 0) return std::nullopt;
  __int128 dynamic = 0;
  for_slices(summary, selector, [&](const SliceSums& slice) { dynamic += slice.femtojoules; });
  const bool overall = !selector.model && !selector.layer && !selector.profile && !selector.phase;
  const double joules = static_cast<double>(dynamic) * kFemtojoule + (overall ? summary.static_joules : 0.0);
  return joules / static_cast<double>(completed);
}

template <std::int64_t Service::*Percentile>
std::optional<double> latency(const Summary& summary, const Selector& selector) {
  const Service& service = service_of(summary, selector);
  if (selector.layer || service.completed == 0) return std::nullopt;
  return static_cast<double>(service.*Percentile) * kNanosecond;
}

std::optional<double> throughput(const Summary& summary, const Selector& selector) {
  if (selector.layer || summary.span_ns == 0) return std::nullopt;
  const double seconds = static_cast<double>(summary.span_ns) * kNanosecond;
  return static_cast<double>(service_of(summary, selector).completed) / seconds;
}

std::optional<double> throughput_per_watt(const Summary& summary, const Selector& selector) {
  if (selector.layer) return std::nullopt;
  const std::optional<double> joules = energy_per_inference(summary, selector);
  if (!joules || !(*joules > 0)) return std::nullopt;
  return 1.0 / *joules;
}

std::optional<double> loss(const Summary& summary, const Selector& selector) {
  const Service& service = service_of(summary, selector);
  if (selector.layer || service.offered == 0) return std::nullopt;
  return static_cast<double>(service.lost) / static_cast<double>(service.offered);
}

constexpr std::array kMetrics = {
    MetricRow{"off_array_weight_bytes_per_inference", "B", true, true, bytes_per_inference<&Movement::off_array_weight>,
              "model parameters read by the level just outside the array"},
    MetricRow{"off_chip_weight_bytes_per_inference", "B", true, true, bytes_per_inference<&Movement::off_chip_weight>,
              "model parameters read from off chip"},
    MetricRow{"off_array_stationary_bytes_per_inference", "B", true, true,
              bytes_per_inference<&Movement::off_array_stationary>,
              "activations held stationary in the array, read by the level just outside it"},
    MetricRow{"off_array_activation_bytes_per_inference", "B", true, true,
              bytes_per_inference<&Movement::off_array_activation>,
              "streamed inputs read and outputs written by the level just outside the array"},
    MetricRow{"off_chip_activation_bytes_per_inference", "B", true, true,
              bytes_per_inference<&Movement::off_chip_activation>, "activations read and written off chip"},
    MetricRow{"psum_bytes_per_inference", "B", true, true, bytes_per_inference<&Movement::psum>,
              "partial sums read and written outside the array"},
    MetricRow{"energy_per_inference", "J", true, true, energy_per_inference,
              "counted energy; over the whole run idle, host and active power too"},
    MetricRow{"latency_p50", "s", true, false, latency<&Service::p50_ns>,
              "from the scheduled arrival to the end of the batch"},
    MetricRow{"latency_p95", "s", true, false, latency<&Service::p95_ns>,
              "from the scheduled arrival to the end of the batch"},
    MetricRow{"latency_p99", "s", true, false, latency<&Service::p99_ns>,
              "from the scheduled arrival to the end of the batch"},
    MetricRow{"throughput", "1/s", false, false, throughput, "completed requests over the span of the run"},
    MetricRow{"throughput_per_watt", "1/J", false, false, throughput_per_watt,
              "completed requests per joule: requests per second per watt"},
    MetricRow{"loss", "ratio", true, false, loss, "requests refused at admission over those offered"},
};

}  // namespace

std::span<const MetricRow> metrics() { return kMetrics; }

const MetricRow* find_metric(std::string_view name) {
  for (const MetricRow& row : kMetrics) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace plumbline::validate
