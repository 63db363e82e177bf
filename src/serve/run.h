#pragma once
// One replication of the request plane: every request, every batch, on the device's own clock.
#include <cstdint>
#include <vector>

#include "core/quantity.h"
#include "execute/cost_table.h"
#include "ingest/scenario.h"

namespace plumbline::serve {

enum class LoadPhase : std::uint8_t { base, burst };

/// A request as it arrives: made once per seed and shared by every arm (common random numbers).
struct Arrival {
  std::int64_t time_ns = 0;  ///< scheduled instant; latency is counted from here
  std::uint16_t model = 0;
  std::uint16_t profile = 0;
  LoadPhase phase = LoadPhase::base;
};

struct ArrivalTrace {
  std::vector<Arrival> arrivals;  ///< ascending in time
  std::int64_t duration_ns = 0;   ///< of the offered load; the run goes on until the queue is empty
};

/// Arrivals of one replication. The same seed gives the same trace on every machine (own exp/log, counter streams).
[[nodiscard]] ArrivalTrace make_arrivals(const ingest::Traffic& traffic, const std::vector<double>& model_shares,
                                         std::uint64_t seed);

inline constexpr std::int32_t kLost = -1;

struct RequestRecord {
  std::int32_t batch = kLost;  ///< index into batches; kLost = refused at admission
};

struct BatchRecord {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int32_t entry = 0;         ///< index into CostTable::entries
  std::int32_t size = 0;          ///< real requests
  std::int32_t first_member = 0;  ///< into Run::members
};

struct Run {
  std::vector<RequestRecord> requests;  ///< parallel to ArrivalTrace::arrivals
  std::vector<BatchRecord> batches;     ///< in order of start
  std::vector<std::int32_t> members;    ///< request indices, batch by batch, earliest first
  std::int64_t end_ns = 0;              ///< last completion, at least the trace's duration
  std::int64_t busy_ns = 0;
  std::int64_t max_queue = 0;    ///< most requests waiting at once, for longer than an instant
  __int128 queue_integral = 0;   ///< Σ waiting·dt, request-nanoseconds
  __int128 system_integral = 0;  ///< Σ (waiting + in service)·dt: Little's law must hold exactly
};

/// A recorded batch composition to replay instead of forming batches (policy relief): sizes in order of dispatch.
struct FrozenBatches {
  std::vector<BatchRecord> batches;
  std::vector<std::int32_t> members;
};

/// Empties a run and makes room for the trace's requests; the buffers are kept.
void clear(Run& run, const ArrivalTrace& trace);

/// Simulates one device behind a FIFO queue. A batch is dispatched when `batch_max` requests wait or the oldest has
/// waited `wait`, and the device is free; arrivals beyond `queue` waiting are lost. Requests of two models, and with
/// `by_bucket` of two sequence buckets, never share a batch; of the groups that are ready the one with the oldest
/// request goes first. Within one instant: completion, arrivals, dispatch; only when the queue is full does a batch
/// that may start now start before the arrival is judged. `batch_max` must not exceed the largest batch bucket
/// (docs/serving.md).
[[nodiscard]] Run serve(const execute::CostTable& costs, const ingest::Serving& serving,
                        const std::vector<ingest::Profile>& profiles, const ArrivalTrace& trace);

/// The same, reusing the buffers of an earlier run.
void serve_into(Run& run, const execute::CostTable& costs, const ingest::Serving& serving,
                const std::vector<ingest::Profile>& profiles, const ArrivalTrace& trace);

/// The batches of a run, to replay.
[[nodiscard]] FrozenBatches freeze(const Run& run);

/// Replays recorded batches (same members, same order) on other costs: each starts when the device is free and no
/// earlier than its last member's arrival and its recorded start when the device was idle.
[[nodiscard]] Run replay(const execute::CostTable& costs, const std::vector<ingest::Profile>& profiles,
                         const ArrivalTrace& trace, const FrozenBatches& frozen);

}  // namespace plumbline::serve
