#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>

#include "lower/match.h"
#include "schedule/levels.h"
#include "schedule/schedule.h"

namespace plumbline::schedule {
namespace {

/// Steps of the exact search (states × distinct sizes, 4 bytes each); beyond it sizes are rounded up to a coarser unit,
/// so the choice still fits but may leave up to one unit per tensor unused.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 20;

struct Candidate {
  std::size_t model = 0;
  TensorId tensor;
  std::int64_t bytes = 0;
};

/// A constraint row (or the mapping) lets the array's weights pass the level by, so they cannot wait there.
bool passes_by(const Bucket& bucket, const lower::Instance& instance, const lower::ParameterUse& use, int level) {
  const std::size_t k = instance.kernel.at();
  if (use.operand < 0 || bucket.graph->kernels[k].kind != lower::KernelKind::matrix) return false;
  const Mapping& mapping = bucket.schedule->kernels[k].mapping;
  return !mapping.levels[static_cast<std::size_t>(level)].keeps_operand(static_cast<std::size_t>(use.operand));
}

/// Every parameter tensor that is read whole and kept at `level` wherever it is used, in order of model and first use;
/// its size is the largest of any shape.
std::vector<Candidate> find_candidates(const std::vector<ModelSchedules>& models, int level, Residency& residency) {
  std::vector<Candidate> candidates;
  std::vector<Candidate> bypassing;
  residency.pinned.resize(models.size());
  for (std::size_t m = 0; m < models.size(); ++m) {
    std::vector<std::size_t> place;  // by tensor: its candidate, plus one
    for (const Bucket& bucket : models[m].buckets) {
      for (const lower::Instance& instance : bucket.graph->instances) {
        for (const lower::ParameterUse& use : instance.parameters) {
          if (use.tensor.at() >= place.size()) place.resize(use.tensor.at() + 1, 0);
          if (use.gathered || use.stored == 0) continue;
          std::size_t& at = place[use.tensor.at()];
          if (at == 0) {
            candidates.push_back({m, use.tensor, use.stored});
            at = candidates.size();
          }
          candidates[at - 1].bytes = std::max(candidates[at - 1].bytes, use.stored);
          if (passes_by(bucket, instance, use, level)) bypassing.push_back({m, use.tensor, 0});
        }
      }
    }
    residency.pinned[m].assign(place.size(), false);
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return std::any_of(bypassing.begin(), bypassing.end(), [&](const Candidate& other) {
      return other.model == candidate.model && other.tensor == candidate.tensor;
    });
  });
  return candidates;
}

struct SizeGroup {
  std::int64_t units = 0;
  std::vector<std::size_t> members;  ///< candidates, earliest first
};

std::vector<SizeGroup> group_by_size(const std::vector<Candidate>& candidates, std::int64_t unit) {
  std::vector<SizeGroup> groups;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const std::int64_t units = (candidates[c].bytes + unit - 1) / unit;
    const auto at = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.units == units; });
    if (at == groups.end()) {
      groups.push_back({units, {c}});
    } else {
      at->members.push_back(c);
    }
  }
  return groups;
}

/// Bounded subset sum: the largest reachable total of at most `room` units, then how many of each size make it, the
/// groups of earlier tensors being used last to first so that earlier ones keep as many as possible.
std::vector<std::size_t> most_that_fit(const std::vector<SizeGroup>& groups, std::int64_t room) {
  // used[g][s]: members of group g in the first way found to reach s with groups 0..g; -1 = unreachable.
  const auto states = static_cast<std::size_t>(room) + 1;
  std::vector<std::vector<std::int32_t>> used(groups.size(), std::vector<std::int32_t>(states, -1));
  std::vector<bool> reachable(states, false);
  reachable[0] = true;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto step = static_cast<std::size_t>(groups[g].units);
    const auto most = static_cast<std::int32_t>(groups[g].members.size());
    for (std::size_t s = 0; s < states; ++s) {
      if (reachable[s]) {
        used[g][s] = 0;
      } else if (s >= step && used[g][s - step] >= 0 && used[g][s - step] < most) {
        used[g][s] = used[g][s - step] + 1;
      }
    }
    for (std::size_t s = 0; s < states; ++s) reachable[s] = used[g][s] >= 0;
  }
  std::size_t total = states - 1;
  while (!reachable[total]) --total;
  std::vector<std::size_t> counts(groups.size(), 0);
  for (std::size_t g = groups.size(); g-- > 0;) {
    counts[g] = static_cast<std::size_t>(used[g][total]);
    total -= counts[g] * static_cast<std::size_t>(groups[g].units);
  }
  return counts;
}

void pin(const std::vector<Candidate>& candidates, std::size_t c, Residency& residency) {
  residency.pinned[candidates[c].model][candidates[c].tensor.at()] = true;
  residency.pinned_bytes += candidates[c].bytes;
}

void pin_most(const std::vector<Candidate>& candidates, std::int64_t room, Residency& residency) {
  std::int64_t total = 0;
  std::int64_t unit = 0;
  for (const Candidate& candidate : candidates) {
    total += candidate.bytes;
    unit = std::gcd(unit, candidate.bytes);
  }
  if (total <= room) {
    for (std::size_t c = 0; c < candidates.size(); ++c) pin(candidates, c, residency);
    return;
  }
  if (room <= 0) return;
  std::vector<SizeGroup> groups = group_by_size(candidates, unit);
  while ((room / unit + 1) * static_cast<std::int64_t>(groups.size()) > kMostSteps) {
    unit *= 2;
    groups = group_by_size(candidates, unit);
  }
  const std::vector<std::size_t> counts = most_that_fit(groups, room / unit);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < counts[g]; ++i) pin(candidates, groups[g].members[i], residency);
  }
}

std::string dims_named(const ingest::ConstraintRow& row) {
  std::string names = row.dim.value_or("");
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (const std::string& name : row.order) add(name);
  if (row.spatial_x) add(*row.spatial_x);
  if (row.spatial_y) add(*row.spatial_y);
  return names;
}

}  // namespace

Status check_constraints(const std::vector<ModelSchedules>& models, const ingest::CompileOptions& options) {
  Diagnostics errors;
  std::set<std::string> classes;
  for (std::size_t r = 0; r < options.constraints.size(); ++r) {
    const ingest::ConstraintRow& row = options.constraints[r];
    bool matched = false;
    bool applies = false;
    for (const ModelSchedules& model : models) {
      for (const Bucket& bucket : model.buckets) {
        for (const lower::Kernel& kernel : bucket.graph->kernels) {
          classes.insert(kernel.layer_class);
          if (((kernel.constraint_rows >> r) & 1U) == 0) continue;
          matched = true;
          applies = applies || lower::has_dimensions(kernel, row);
        }
      }
    }
    if (!matched) {
      errors.push_back(make_error("bad-value", row.span, fmt::format("no kernel is called '{}'", row.kernels),
                                  suggest(row.kernels, {classes.begin(), classes.end()})));
    } else if (!applies) {
      errors.push_back(make_error(
          "bad-value", row.span,
          fmt::format("no matrix kernel that '{}' matches has the dimensions {}", row.kernels, dims_named(row)),
          "products have M, N, K (and G), convolutions N, K, C, P, Q, R, S"));
    }
  }
  for (const auto& [name, dataflow] : options.dataflow_by_class) {
    for (const ModelSchedules& model : models) {
      for (const Bucket& bucket : model.buckets) {
        for (const lower::Kernel& kernel : bucket.graph->kernels) classes.insert(kernel.layer_class);
      }
    }
    if (classes.contains(name)) continue;
    const auto at = options.dataflow_class_at.find(name);
    errors.push_back(make_error("bad-value", at == options.dataflow_class_at.end() ? Span{} : at->second,
                                fmt::format("no kernel is of the layer class '{}'", name),
                                suggest(name, {classes.begin(), classes.end()})));
  }
  if (!errors.empty()) return errors;
  return Done{};
}

Result<Residency> plan_residency(const std::vector<ModelSchedules>& models, const ingest::Accelerator& accelerator,
                                 const ingest::CompileOptions& options) {
  PL_TRY_STATUS(check_constraints(models, options));
  PL_TRY(const LevelRoles levels, find_levels(accelerator));
  Residency residency;
  const std::vector<Candidate> candidates = find_candidates(models, levels.weights, residency);
  std::int64_t peak = 0;
  for (const ModelSchedules& model : models) {
    for (const Bucket& bucket : model.buckets) peak = std::max(peak, bucket.schedule->placement.peak);
  }
  const auto& storage = accelerator.levels[static_cast<std::size_t>(levels.weights)];
  const bool shared = levels.weights == levels.home;
  residency.available_bytes = storage.capacity ? storage.capacity->raw() - (shared ? peak : 0) : -1;
  if (options.residency == "none") return residency;
  const std::int64_t room = storage.capacity ? residency.available_bytes : std::numeric_limits<std::int64_t>::max();
  pin_most(candidates, room, residency);
  return residency;
}

}  // namespace plumbline::schedule
