#pragma once
// Small cost tables and traces for tests: durations by a rule, so that queueing results can be worked out by hand.
#include <functional>
#include <utility>
#include <vector>

#include "execute/cost_table.h"
#include "ingest/scenario.h"
#include "serve/run.h"

namespace plumbline::serve::synthetic {

using DurationRule = std::function<std::int64_t(std::size_t model, std::int64_t batch, std::int64_t sequence)>;

/// A table whose entry durations (ns) follow `rule`; cycles equal nanoseconds, all useful.
inline execute::CostTable table(std::size_t models, std::vector<std::int64_t> batches,
                                std::vector<std::int64_t> sequences, const DurationRule& rule) {
  execute::CostTable costs;
  costs.models = models;
  costs.batch_buckets = std::move(batches);
  costs.sequence_buckets = std::move(sequences);
  for (std::size_t model = 0; model < models; ++model) {
    for (const std::int64_t batch : costs.batch_buckets) {
      for (const std::int64_t sequence : costs.sequence_buckets) {
        execute::BatchCost entry;
        entry.model = model;
        entry.batch = batch;
        entry.sequence = sequence;
        entry.cycles = rule(model, batch, sequence);
        entry.classes[0] = entry.cycles;
        entry.duration = Nanoseconds(entry.cycles);
        costs.entries.push_back(entry);
      }
    }
  }
  return costs;
}

/// One model without a sequence, every batch of up to `largest` taking `duration_ns`.
inline execute::CostTable fixed_table(std::int64_t largest, std::int64_t duration_ns) {
  return table(1, {largest}, {0}, [=](std::size_t, std::int64_t, std::int64_t) { return duration_ns; });
}

inline std::vector<ingest::Profile> one_profile() { return {{"all", 0, 1.0}}; }

inline ingest::Serving serving(std::int64_t batch_max, std::int64_t wait_ns, std::int64_t queue) {
  ingest::Serving policy;
  policy.batch_max = batch_max;
  policy.wait = Nanoseconds(wait_ns);
  policy.queue = queue;
  return policy;
}

/// Requests of model 0 and profile 0 at the given instants.
inline ArrivalTrace trace_at(const std::vector<std::int64_t>& times_ns) {
  ArrivalTrace trace;
  for (const std::int64_t time : times_ns) trace.arrivals.push_back({time, 0, 0, LoadPhase::base});
  return trace;
}

}  // namespace plumbline::serve::synthetic
