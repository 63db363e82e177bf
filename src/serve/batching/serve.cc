#include <algorithm>
#include <limits>

#include "core/check.h"
#include "serve/batching/occupancy.h"
#include "serve/batching/padding.h"
#include "serve/run.h"

namespace plumbline::serve {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Waiting requests that may share a batch, in order of arrival: a ring over request indices.
struct Group {
  std::vector<std::int32_t> ring;  // a power of two long
  std::uint32_t head = 0;
  std::int64_t count = 0;
  std::int64_t ready_ns = kNever;  // when a batch of it may start, the device permitting

  [[nodiscard]] std::int32_t at(std::int64_t i) const {
    return ring[(head + static_cast<std::uint32_t>(i)) & (ring.size() - 1)];
  }
};

class Simulation {
 public:
  Simulation(const execute::CostTable& costs, const ingest::Serving& serving, const Padding& padding,
             const ArrivalTrace& trace, Run& run)
      : costs_(costs), serving_(serving), padding_(padding), arrivals_(trace.arrivals), run_(run) {
    by_bucket_ = serving.group == ingest::Grouping::by_bucket;
    groups_.resize(costs.models * (by_bucket_ ? costs.sequence_buckets.size() : 1));
    // At most `queue` wait, and one more for the instant in which it is admitted and dispatched.
    const std::int64_t most = std::min(serving.queue, static_cast<std::int64_t>(arrivals_.size())) + 1;
    std::size_t capacity = 1;
    while (static_cast<std::int64_t>(capacity) < most) capacity *= 2;
    for (Group& group : groups_) group.ring.resize(capacity);
  }

  void go() {
    const auto requests = static_cast<std::int32_t>(arrivals_.size());
    for (std::int32_t request = 0; request < requests; ++request) {
      const Arrival& arrival = arrivals_[static_cast<std::size_t>(request)];
      while (next_dispatch_ns_ < arrival.time_ns) dispatch();
      arrive(request, arrival);
    }
    while (next_dispatch_ns_ != kNever) dispatch();
    run_.queue_integral = waiting_.integral();
    run_.system_integral = run_.queue_integral + service_integral_;
    run_.max_queue = waiting_.most();
  }

  [[nodiscard]] std::int64_t free_ns() const { return free_ns_; }

 private:
  Group& group_of(const Arrival& arrival) {
    PL_CHECK(arrival.model < costs_.models && arrival.profile < padding_.profiles());
    if (!by_bucket_) return groups_[arrival.model];
    return groups_[arrival.model * costs_.sequence_buckets.size() +
                   static_cast<std::size_t>(padding_.sequence_index(arrival.profile))];
  }

  void arrive(std::int32_t request, const Arrival& arrival) {
    Group& group = group_of(arrival);
    if (waiting_.count() < serving_.queue) {
      join(group, request, arrival.time_ns);
      return;
    }
    // The queue is full. A batch that may start at this very instant starts first; failing that, the request is taken
    // if it would not wait at all.
    if (next_dispatch_ns_ == arrival.time_ns) {
      dispatch();
      join(group, request, arrival.time_ns);
      return;
    }
    const bool starts_at_once = group.count + 1 >= serving_.batch_max || (group.count == 0 && serving_.wait.raw() == 0);
    if (free_ns_ <= arrival.time_ns && starts_at_once) {
      join(group, request, arrival.time_ns);
      dispatch();
    }
  }

  void join(Group& group, std::int32_t request, std::int64_t now) {
    waiting_.add(now, 1);
    group.ring[(group.head + static_cast<std::uint32_t>(group.count)) & (group.ring.size() - 1)] = request;
    ++group.count;
    if (group.count != 1 && group.count != serving_.batch_max) return;  // neither a new oldest nor just full
    set_ready(group);
    next_dispatch_ns_ = std::min(next_dispatch_ns_, std::max(free_ns_, group.ready_ns));
  }

  void set_ready(Group& group) const {
    if (group.count == 0) {
      group.ready_ns = kNever;
      return;
    }
    const std::int64_t waited = arrival_ns(group.at(0)) + serving_.wait.raw();
    group.ready_ns =
        group.count < serving_.batch_max ? waited : std::min(waited, arrival_ns(group.at(serving_.batch_max - 1)));
  }

  [[nodiscard]] std::int64_t arrival_ns(std::int32_t request) const {
    return arrivals_[static_cast<std::size_t>(request)].time_ns;
  }

  /// Of the groups that are ready, the one whose oldest request came first: no group can starve.
  Group& oldest_ready(std::int64_t now) {
    Group* oldest = nullptr;
    for (Group& group : groups_) {
      if (group.ready_ns <= now && (oldest == nullptr || group.at(0) < oldest->at(0))) oldest = &group;
    }
    PL_CHECK(oldest != nullptr);
    return *oldest;
  }

  void dispatch() {
    const std::int64_t now = next_dispatch_ns_;
    Group& group = oldest_ready(now);
    const std::int64_t size = std::min(group.count, serving_.batch_max);
    const std::uint16_t model = arrivals_[static_cast<std::size_t>(group.at(0))].model;
    const auto batch = static_cast<std::int32_t>(run_.batches.size());
    const auto first_member = static_cast<std::int32_t>(run_.members.size());
    std::int32_t sequence = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int32_t request = group.at(i);
      const auto index = static_cast<std::size_t>(request);
      sequence = std::max(sequence, padding_.sequence_index(arrivals_[index].profile));
      run_.requests[index].batch = batch;
      run_.members.push_back(request);
    }
    const std::int32_t entry = padding_.entry(model, size, sequence);
    const std::int64_t duration = costs_.entries[static_cast<std::size_t>(entry)].duration.raw();
    PL_CHECK(duration >= 0);
    run_.batches.push_back({now, now + duration, entry, static_cast<std::int32_t>(size), first_member});
    run_.busy_ns += duration;
    service_integral_ += static_cast<__int128>(size) * duration;
    waiting_.add(now, -size);
    group.head += static_cast<std::uint32_t>(size);
    group.count -= size;
    set_ready(group);
    free_ns_ = now + duration;
    next_dispatch_ns_ = next_after_dispatch();
  }

  [[nodiscard]] std::int64_t next_after_dispatch() const {
    std::int64_t ready = kNever;
    for (const Group& group : groups_) ready = std::min(ready, group.ready_ns);
    return std::max(free_ns_, ready);
  }

  const execute::CostTable& costs_;
  const ingest::Serving& serving_;
  const Padding& padding_;
  const std::vector<Arrival>& arrivals_;
  Run& run_;
  bool by_bucket_ = false;
  std::vector<Group> groups_;
  Occupancy waiting_;
  __int128 service_integral_ = 0;
  std::int64_t free_ns_ = 0;
  std::int64_t next_dispatch_ns_ = kNever;
};

}  // namespace

void serve_into(Run& run, const execute::CostTable& costs, const ingest::Serving& serving,
                const std::vector<ingest::Profile>& profiles, const ArrivalTrace& trace) {
  PL_CHECK(serving.batch_max >= 1 && serving.wait.raw() >= 0 && serving.queue >= 0);
  const Padding padding(costs, profiles);
  PL_CHECK(serving.batch_max <= costs.batch_buckets.back());
  clear(run, trace);
  Simulation simulation(costs, serving, padding, trace, run);
  simulation.go();
  run.end_ns = std::max(trace.duration_ns, simulation.free_ns());
}

Run serve(const execute::CostTable& costs, const ingest::Serving& serving, const std::vector<ingest::Profile>& profiles,
          const ArrivalTrace& trace) {
  Run run;
  serve_into(run, costs, serving, profiles, trace);
  return run;
}

void clear(Run& run, const ArrivalTrace& trace) {
  run.requests.assign(trace.arrivals.size(), RequestRecord{});
  run.batches.clear();
  run.members.clear();
  run.members.reserve(trace.arrivals.size());
  run.end_ns = 0;
  run.busy_ns = 0;
  run.max_queue = 0;
  run.queue_integral = 0;
  run.system_integral = 0;
}

}  // namespace plumbline::serve
