#include "validate/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "validate/latency_ranks.h"

namespace plumbline::validate {
namespace {

using execute::Movement;

constexpr std::array<std::int64_t Movement::*, 6> kMovementFields = {
    &Movement::off_array_weight, &Movement::off_array_stationary, &Movement::off_array_activation, &Movement::psum,
    &Movement::off_chip_weight,  &Movement::off_chip_activation};

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// How often each share of a batch fell to whom. All batches of one entry and one real size split alike, so they are
/// counted first and split once: by position in the batch, since the earliest take the remainder.
class ShareCounts {
 public:
  ShareCounts(std::size_t entries, std::size_t keys) : keys_(keys), first_of_entry_(entries) {}

  struct Kind {
    std::int32_t size = 0;
    std::int64_t batches = 0;
    std::vector<std::int64_t> at_position;  // [position][profile·phases + phase]
  };

  Kind& kind(std::int32_t entry, std::int32_t size) {
    std::vector<std::int32_t>& by_size = first_of_entry_[at(entry)];
    if (by_size.size() <= at(size)) by_size.resize(at(size) + 1, -1);
    std::int32_t& index = by_size[at(size)];
    if (index < 0) {
      index = static_cast<std::int32_t>(kinds_.size());
      kinds_.push_back({size, 0, std::vector<std::int64_t>(at(size) * keys_)});
      entry_of_kind_.push_back(entry);
    }
    return kinds_[at(index)];
  }

  [[nodiscard]] const std::vector<Kind>& kinds() const { return kinds_; }
  [[nodiscard]] std::int32_t entry(std::size_t kind) const { return entry_of_kind_[kind]; }

 private:
  std::size_t keys_;
  std::vector<std::vector<std::int32_t>> first_of_entry_;  // [entry][size] → kind, -1 = not seen
  std::vector<Kind> kinds_;
  std::vector<std::int32_t> entry_of_kind_;
};

/// One pass over the batches: latencies with their keys, share counts, cycles and rows.
struct Walk {
  std::vector<std::int64_t> latencies;
  std::vector<std::uint32_t> keys;  // Summary::service of the request
  __int128 sojourn = 0;
  std::int64_t misplaced = 0;  // members whose own record names another batch
};

Walk walk_batches(const execute::CostTable& costs, const std::vector<ingest::Profile>& profiles,
                  const serve::ArrivalTrace& trace, const serve::Run& run, ShareCounts& shares, Summary& summary) {
  Walk walk;
  walk.latencies.reserve(run.members.size());
  walk.keys.reserve(run.members.size());
  const bool without_sequence = costs.sequence_buckets.size() == 1 && costs.sequence_buckets[0] == 0;
  std::vector<std::int64_t> rows;
  for (const ingest::Profile& profile : profiles) {
    rows.push_back(without_sequence ? 1 : std::max<std::int64_t>(profile.sequence, 1));
  }
  const std::size_t keys_per_model = profiles.size() * kPhases;
  for (std::size_t b = 0; b < run.batches.size(); ++b) {
    const serve::BatchRecord& batch = run.batches[b];
    ShareCounts::Kind& kind = shares.kind(batch.entry, batch.size);
    ++kind.batches;
    for (std::int32_t position = 0; position < batch.size; ++position) {
      const std::int32_t request = run.members[at(batch.first_member + position)];
      const serve::Arrival& arrival = trace.arrivals[at(request)];
      const std::size_t key = arrival.profile * std::size_t{kPhases} + static_cast<std::size_t>(arrival.phase);
      ++kind.at_position[at(position) * keys_per_model + key];
      const std::int64_t latency = batch.end_ns - arrival.time_ns;
      walk.latencies.push_back(latency);
      walk.keys.push_back(static_cast<std::uint32_t>(arrival.model * keys_per_model + key));
      walk.sojourn += latency;
      summary.real_rows += rows[arrival.profile];
      if (run.requests[at(request)].batch != static_cast<std::int32_t>(b)) ++walk.misplaced;
    }
  }
  return walk;
}

void count_batches(const execute::CostTable& costs, const ShareCounts& shares, Summary& summary) {
  summary.batch_counts.assign(costs.entries.size(), 0);
  for (std::size_t k = 0; k < shares.kinds().size(); ++k) {
    summary.batch_counts[at(shares.entry(k))] += shares.kinds()[k].batches;
  }
  for (std::size_t e = 0; e < costs.entries.size(); ++e) {
    const execute::BatchCost& entry = costs.entries[e];
    const std::int64_t batches = summary.batch_counts[e];
    summary.batches += batches;
    summary.padded_rows += batches * entry.batch * std::max<std::int64_t>(entry.sequence, 1);
    for (std::size_t c = 0; c < execute::kCycleClasses; ++c) summary.cycles[c] += batches * entry.classes[c];
  }
}

/// Splits what one kind of batch moved. With v = q·size + r each of its requests takes q and the first r one more.
void split_kind(const execute::BatchCost& cost, const ShareCounts::Kind& kind, std::size_t keys, Summary& summary) {
  // before[r][key]: requests of the key at positions below r, over all batches of the kind.
  std::vector<std::int64_t> before((at(kind.size) + 1) * keys);
  for (std::size_t i = 0; i < kind.at_position.size(); ++i) before[i + keys] = before[i] + kind.at_position[i];
  const std::int64_t* all = before.data() + at(kind.size) * keys;

  for (std::size_t layer = 0; layer < summary.layer_classes; ++layer) {
    const execute::ClassCost& moved = cost.layers[layer];
    SliceSums* slices = summary.slices.data() + summary.slice(cost.model, layer, 0, 0);
    for (const auto field : kMovementFields) {
      const std::int64_t share = moved.movement.*field / kind.size;
      const std::int64_t* one_more = before.data() + static_cast<std::size_t>(moved.movement.*field % kind.size) * keys;
      for (std::size_t key = 0; key < keys; ++key) slices[key].movement.*field += share * all[key] + one_more[key];
    }
    const std::int64_t energy = std::accumulate(moved.femtojoules.begin(), moved.femtojoules.end(), std::int64_t{0});
    const std::int64_t share = energy / kind.size;
    const std::int64_t* one_more = before.data() + static_cast<std::size_t>(energy % kind.size) * keys;
    for (std::size_t key = 0; key < keys; ++key) {
      slices[key].femtojoules += static_cast<__int128>(share) * all[key] + one_more[key];
    }
  }
}

void split_batches(const execute::CostTable& costs, const ShareCounts& shares, Summary& summary) {
  const std::size_t keys = summary.profiles * kPhases;
  summary.slices.assign(summary.models * summary.layer_classes * keys, SliceSums{});
  for (std::size_t k = 0; k < shares.kinds().size(); ++k) {
    const execute::BatchCost& cost = costs.entries[at(shares.entry(k))];
    PL_CHECK(cost.layers.size() == summary.layer_classes);
    split_kind(cost, shares.kinds()[k], keys, summary);
  }
}

void count_services(const serve::ArrivalTrace& trace, const serve::Run& run, Summary& summary) {
  summary.services.assign(summary.models * summary.profiles * kPhases, Service{});
  for (std::size_t i = 0; i < trace.arrivals.size(); ++i) {
    const serve::Arrival& arrival = trace.arrivals[i];
    Service& service =
        summary.services[summary.service(arrival.model, arrival.profile, static_cast<std::size_t>(arrival.phase))];
    ++service.offered;
    const bool lost = run.requests[i].batch == serve::kLost;
    service.lost += lost ? 1 : 0;
    service.completed += lost ? 0 : 1;
  }
}

/// One choice of model, profile and phase; the count itself stands for any.
struct Choice {
  std::size_t model;
  std::size_t profile;
  std::size_t phase;
};

Service service_over(const Choice& choice, const Summary& summary, LatencyRanks& ranks,
                     std::vector<std::uint8_t>& member) {
  Service service;
  std::size_t key = 0;
  for (std::size_t model = 0; model < summary.models; ++model) {
    for (std::size_t profile = 0; profile < summary.profiles; ++profile) {
      for (std::size_t phase = 0; phase < std::size_t{kPhases}; ++phase, ++key) {
        const bool in = (choice.model == summary.models || choice.model == model) &&
                        (choice.profile == summary.profiles || choice.profile == profile) &&
                        (choice.phase == std::size_t{kPhases} || choice.phase == phase);
        member[key] = in ? 1 : 0;
        if (!in) continue;
        service.offered += summary.services[key].offered;
        service.completed += summary.services[key].completed;
        service.lost += summary.services[key].lost;
      }
    }
  }
  constexpr std::array<double, 3> kPs = {0.50, 0.95, 0.99};
  std::array<std::int64_t, 3> values{};
  ranks.percentiles(member, kPs, values);
  service.p50_ns = values[0];
  service.p95_ns = values[1];
  service.p99_ns = values[2];
  return service;
}

/// Services over every choice of one or any model, profile and phase. Where there is only one, any is the same.
void fill_margins(const Walk& walk, Summary& summary) {
  const std::size_t keys = summary.services.size();
  LatencyRanks ranks(walk.latencies, walk.keys, keys);
  std::vector<std::uint8_t> member(keys);
  const std::size_t per_profile = kPhases + 1;
  const std::size_t per_model = (summary.profiles + 1) * per_profile;
  for (std::size_t model = 0; model <= summary.models; ++model) {
    for (std::size_t profile = 0; profile <= summary.profiles; ++profile) {
      for (std::size_t phase = 0; phase < per_profile; ++phase) {
        const std::size_t here = summary.margins.size();
        if (summary.models == 1 && model == 1) {
          summary.margins.push_back(Service(summary.margins[here - per_model]));
        } else if (summary.profiles == 1 && profile == 1) {
          summary.margins.push_back(Service(summary.margins[here - per_profile]));
        } else {
          summary.margins.push_back(service_over({model, profile, phase}, summary, ranks, member));
        }
      }
    }
  }
  for (std::size_t key = 0; key < keys; ++key) {
    const std::size_t profile = key / kPhases % summary.profiles;
    summary.services[key] = summary.over(key / kPhases / summary.profiles, profile, key % kPhases);
  }
  for (std::size_t phase = 0; phase < std::size_t{kPhases}; ++phase) {
    summary.by_phase[phase] = summary.over(std::nullopt, std::nullopt, phase);
  }
  summary.all = summary.over(std::nullopt, std::nullopt, std::nullopt);
}

Invariant equal(std::string name, std::string_view left, __int128 a, std::string_view right, __int128 b) {
  Invariant invariant{std::move(name), a == b, ""};
  if (!invariant.holds) invariant.detail = fmt::format("{} {}, {} {}", left, a, right, b);
  return invariant;
}

Invariant bytes_invariant(const execute::CostTable& costs, const Summary& summary) {
  __int128 slices = 0;
  __int128 batches = 0;
  for (const auto field : kMovementFields) {
    __int128 field_slices = 0;
    __int128 field_batches = 0;
    for (const SliceSums& slice : summary.slices) field_slices += slice.movement.*field;
    for (std::size_t e = 0; e < costs.entries.size(); ++e) {
      if (summary.batch_counts[e] == 0) continue;
      for (const execute::ClassCost& layer : costs.entries[e].layers) {
        field_batches += static_cast<__int128>(summary.batch_counts[e]) * (layer.movement.*field);
      }
    }
    if (field_slices != field_batches) return equal("bytes", "slices", field_slices, "batches", field_batches);
    slices += field_slices;
    batches += field_batches;
  }
  return equal("bytes", "slices", slices, "batches", batches);
}

Invariant energy_invariant(const execute::CostTable& costs, const Summary& summary) {
  __int128 slices = 0;
  __int128 batches = 0;
  for (const SliceSums& slice : summary.slices) slices += slice.femtojoules;
  for (std::size_t e = 0; e < costs.entries.size(); ++e) {
    batches += static_cast<__int128>(summary.batch_counts[e]) * costs.entries[e].femtojoules;
  }
  return equal("energy", "slices in fJ", slices, "batches in fJ", batches);
}

Invariant stalls_invariant(const execute::CostTable& costs, const Summary& summary) {
  for (std::size_t e = 0; e < costs.entries.size(); ++e) {
    const execute::BatchCost& entry = costs.entries[e];
    if (summary.batch_counts[e] == 0) continue;
    const std::int64_t classes = std::accumulate(entry.classes.begin(), entry.classes.end(), std::int64_t{0});
    if (classes == entry.cycles) continue;
    return equal("stalls", fmt::format("classes of batch {} sequence {}", entry.batch, entry.sequence), classes,
                 "cycles", entry.cycles);
  }
  return {"stalls", true, ""};
}

}  // namespace

Summary summarize(const execute::CostTable& costs, const std::vector<ingest::Profile>& profiles,
                  const serve::ArrivalTrace& trace, const serve::Run& run) {
  PL_CHECK(!profiles.empty() && run.requests.size() == trace.arrivals.size());
  Summary summary;
  summary.models = costs.models;
  summary.layer_classes = costs.layer_classes.size();
  summary.profiles = profiles.size();
  ShareCounts shares(costs.entries.size(), summary.profiles * kPhases);
  const Walk walk = walk_batches(costs, profiles, trace, run, shares, summary);
  count_batches(costs, shares, summary);
  split_batches(costs, shares, summary);
  count_services(trace, run, summary);
  fill_margins(walk, summary);

  summary.busy_ns = run.busy_ns;
  summary.span_ns = run.end_ns;
  summary.max_queue = run.max_queue;
  // Idle and host power are drawn throughout, the active part while a batch runs.
  summary.static_joules = ((costs.idle + costs.host).raw() * static_cast<double>(run.end_ns) +
                           costs.active.raw() * static_cast<double>(run.busy_ns)) *
                          1e-9;

  const std::int64_t accounted = static_cast<std::int64_t>(run.members.size()) - walk.misplaced + summary.all.lost;
  summary.invariants = {equal("requests", "in one batch or lost", accounted, "offered", summary.all.offered),
                        bytes_invariant(costs, summary), stalls_invariant(costs, summary),
                        energy_invariant(costs, summary),
                        equal("little", "integral of requests in the system in ns", run.system_integral,
                              "sum of sojourns in ns", walk.sojourn)};
  return summary;
}

}  // namespace plumbline::validate
