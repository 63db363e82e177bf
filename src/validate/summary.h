#pragma once
// One replication reduced to what the decision needs: exact integer sums per slice, percentiles, invariants.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "execute/cost_table.h"
#include "serve/run.h"

namespace plumbline::validate {

inline constexpr int kPhases = 2;  ///< base, burst

/// Sums over the completed requests of one (model, layer class, profile, phase). A batch moves the bytes of its padded
/// shape, split equally among its real requests: integers, the remainder to the earliest.
struct SliceSums {
  execute::Movement movement;
  __int128 femtojoules = 0;  ///< 128 bits: a minute of joule-sized inferences overflows 64
  friend bool operator==(const SliceSums&, const SliceSums&) = default;
};

/// Latency and loss of one (model, profile, phase), or of all.
struct Service {
  std::int64_t offered = 0;
  std::int64_t completed = 0;
  std::int64_t lost = 0;
  std::int64_t p50_ns = -1;
  std::int64_t p95_ns = -1;
  std::int64_t p99_ns = -1;
};

struct Invariant {
  std::string name;  ///< "requests", "bytes", "stalls", "energy", "little"
  bool holds = true;
  std::string detail;  ///< both sides, when it does not hold
};

struct Summary {
  std::size_t models = 0;
  std::size_t layer_classes = 0;
  std::size_t profiles = 0;
  std::vector<SliceSums> slices;  ///< [model][layer class][profile][phase]
  std::vector<Service> services;  ///< [model][profile][phase]
  Service all;
  std::array<Service, kPhases> by_phase;
  std::vector<Service> margins;   ///< [model or any][profile or any][phase or any], any last; see over()
  execute::ClassCycles cycles{};  ///< over all batches
  std::int64_t batches = 0;
  std::int64_t padded_rows = 0;  ///< Σ batch·max(sequence,1) of buckets
  std::int64_t real_rows = 0;    ///< Σ max(sequence,1) of real requests
  std::int64_t busy_ns = 0;
  std::int64_t span_ns = 0;  ///< from zero to the last completion (at least the trace)
  std::int64_t max_queue = 0;
  double static_joules = 0;                ///< idle, active and host power over the span
  std::vector<std::int64_t> batch_counts;  ///< [cost-table entry]: batches run
  std::vector<Invariant> invariants;

  [[nodiscard]] std::size_t slice(std::size_t model, std::size_t layer, std::size_t profile, std::size_t phase) const {
    return ((model * layer_classes + layer) * profiles + profile) * kPhases + phase;
  }
  [[nodiscard]] std::size_t service(std::size_t model, std::size_t profile, std::size_t phase) const {
    return (model * profiles + profile) * kPhases + phase;
  }
  /// Latency and loss over what is given, everything where nothing is.
  [[nodiscard]] const Service& over(std::optional<std::size_t> model, std::optional<std::size_t> profile,
                                    std::optional<std::size_t> phase) const {
    return margins[(model.value_or(models) * (profiles + 1) + profile.value_or(profiles)) * (kPhases + 1) +
                   phase.value_or(kPhases)];
  }
};

/// Reduces a run. Invariants are judged, not assumed: "requests" (each is in the one batch that lists it, or lost),
/// "bytes" and "energy" (Σ slices = Σ batches), "stalls" (Σ classes = cycles), "little" (∫N dt = Σ sojourn, exactly).
[[nodiscard]] Summary summarize(const execute::CostTable& costs, const std::vector<ingest::Profile>& profiles,
                                const serve::ArrivalTrace& trace, const serve::Run& run);

}  // namespace plumbline::validate
