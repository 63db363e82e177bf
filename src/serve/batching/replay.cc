#include <algorithm>

#include "core/check.h"
#include "serve/batching/occupancy.h"
#include "serve/batching/padding.h"
#include "serve/run.h"

namespace plumbline::serve {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// Marks each request with its batch; a request in two batches, or a batch of two models, is no recording of a run.
void assign_members(Run& run, const FrozenBatches& frozen, const ArrivalTrace& trace) {
  std::int32_t next_member = 0;
  for (std::size_t b = 0; b < frozen.batches.size(); ++b) {
    const BatchRecord& batch = frozen.batches[b];
    PL_CHECK(batch.size >= 1 && batch.first_member == next_member);
    next_member += batch.size;
    PL_CHECK(at(next_member) <= frozen.members.size());
    const std::uint16_t model = trace.arrivals.at(at(frozen.members[at(batch.first_member)])).model;
    for (std::int32_t m = batch.first_member; m < next_member; ++m) {
      const std::int32_t request = frozen.members[at(m)];
      RequestRecord& record = run.requests.at(at(request));
      PL_CHECK(record.batch == kLost && trace.arrivals[at(request)].model == model);
      record.batch = static_cast<std::int32_t>(b);
    }
  }
  run.members = frozen.members;
}

/// The earliest start of a recorded batch on another device: its members must be there, and where the recorded device
/// stood idle it was the dispatch rule that held the batch back, so the recorded instant stays.
std::int64_t earliest_start(const FrozenBatches& frozen, std::size_t b, const ArrivalTrace& trace) {
  const BatchRecord& batch = frozen.batches[b];
  std::int64_t earliest = 0;
  for (std::int32_t m = batch.first_member; m < batch.first_member + batch.size; ++m) {
    earliest = std::max(earliest, trace.arrivals[at(frozen.members[at(m)])].time_ns);
  }
  const bool device_was_idle = b == 0 || batch.start_ns > frozen.batches[b - 1].end_ns;
  return device_was_idle ? std::max(earliest, batch.start_ns) : earliest;
}

}  // namespace

FrozenBatches freeze(const Run& run) { return {run.batches, run.members}; }

Run replay(const execute::CostTable& costs, const std::vector<ingest::Profile>& profiles, const ArrivalTrace& trace,
           const FrozenBatches& frozen) {
  const Padding padding(costs, profiles);
  Run run;
  clear(run, trace);
  assign_members(run, frozen, trace);
  run.batches.reserve(frozen.batches.size());

  Occupancy waiting;
  std::size_t next_arrival = 0;
  const auto arrivals_until = [&](std::int64_t now) {
    for (; next_arrival < trace.arrivals.size() && trace.arrivals[next_arrival].time_ns <= now; ++next_arrival) {
      if (run.requests[next_arrival].batch != kLost) waiting.add(trace.arrivals[next_arrival].time_ns, 1);
    }
  };
  std::int64_t free_ns = 0;
  __int128 service_integral = 0;
  for (std::size_t b = 0; b < frozen.batches.size(); ++b) {
    const BatchRecord& recorded = frozen.batches[b];
    std::int32_t sequence = 0;
    for (std::int32_t m = recorded.first_member; m < recorded.first_member + recorded.size; ++m) {
      const Arrival& arrival = trace.arrivals[at(frozen.members[at(m)])];
      PL_CHECK(arrival.model < costs.models && arrival.profile < padding.profiles());
      sequence = std::max(sequence, padding.sequence_index(arrival.profile));
    }
    const std::uint16_t model = trace.arrivals[at(frozen.members[at(recorded.first_member)])].model;
    const std::int32_t entry = padding.entry(model, recorded.size, sequence);
    const std::int64_t duration = costs.entries[at(entry)].duration.raw();
    PL_CHECK(duration >= 0);
    const std::int64_t start = std::max(free_ns, earliest_start(frozen, b, trace));
    arrivals_until(start);
    waiting.add(start, -recorded.size);
    free_ns = start + duration;
    run.batches.push_back({start, free_ns, entry, recorded.size, recorded.first_member});
    run.busy_ns += duration;
    service_integral += static_cast<__int128>(recorded.size) * duration;
  }
  run.queue_integral = waiting.integral();
  run.system_integral = run.queue_integral + service_integral;
  run.max_queue = waiting.most();
  run.end_ns = std::max(trace.duration_ns, free_ns);
  return run;
}

}  // namespace plumbline::serve
