#include "study/reuse_study.h"

#include <algorithm>

#include "schedule/levels.h"
#include "study/decision_study.h"
#include "study/exact_shapes.h"

namespace plumbline::study {
namespace {

std::vector<ReuseShape> all_shapes(const Prepared& prepared) {
  std::vector<ReuseShape> out;
  const auto& costs = *prepared.costs;
  const auto& residency = prepared.compiled->residency;
  for (std::size_t m = 0; m < costs.models; ++m) {
    for (std::size_t b = 0; b < costs.batch_buckets.size(); ++b) {
      for (std::size_t s = 0; s < costs.sequence_buckets.size(); ++s) {
        const auto& entry = costs.entries[costs.index(m, b, s)];
        // A model without a sequence runs one shape for all of them.
        if (s > 0 && entry.sequence == 0) continue;
        out.push_back(reuse_of(bucket_of(prepared, m, b, s), entry, residency.pinned[m], residency.pinned_bytes,
                               *prepared.scenario->accelerator, costs.clock));
        out.back().model = m;
      }
    }
  }
  return out;
}

/// The level that reads the most weight bytes for the array; the innermost one that may hold weights when none is read.
int find_weight_link(const std::vector<ReuseShape>& shapes, const ingest::Accelerator& accelerator) {
  int link = 0;
  for (std::size_t l = 0; l + 1 < accelerator.levels.size(); ++l) {
    if (accelerator.levels[l].keeps.weights) link = static_cast<int>(l);
  }
  std::vector<std::int64_t> words(accelerator.levels.size(), 0);
  const auto array = static_cast<int>(accelerator.levels.size()) - 1;
  for (const auto& shape : shapes) {
    for (const auto& flow : shape.total.links) {
      if (flow.tensor == lower::Role::weights && flow.inner >= array && flow.outer < array) {
        words[static_cast<std::size_t>(flow.outer)] += flow.words_outer;
      }
    }
  }
  const auto most = std::max_element(words.begin(), words.end());
  return *most > 0 ? static_cast<int>(most - words.begin()) : link;
}

void add_loads(const Prepared& prepared, ReuseArm& arm) {
  const auto& costs = *prepared.costs;
  const auto& profiles = prepared.scenario->traffic.profiles;
  constexpr const char* kPhases[] = {"base", "burst"};
  const std::size_t classes = costs.layer_classes.size();
  for (std::size_t m = 0; m < costs.models; ++m) {
    for (int phase = -1; phase < validate::kPhases; ++phase) {
      for (std::size_t p = 0; p <= profiles.size(); ++p) {
        const bool any_profile = p == profiles.size();
        for (std::size_t c = 0; c <= classes; ++c) {
          LoadRow row;
          row.model = m;
          row.layer_class = c == classes ? "" : costs.layer_classes[c];
          row.load = phase < 0 ? "all" : kPhases[phase];
          row.profile = any_profile ? "all" : profiles[p].name;
          const auto within = [](std::size_t i, std::optional<std::size_t> chosen) { return !chosen || i == *chosen; };
          const auto layer = c == classes ? std::nullopt : std::optional(c);
          const auto profile = any_profile ? std::nullopt : std::optional(p);
          const auto of_phase = phase < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(phase));
          for (const auto& run : arm.point.runs) {
            row.completed += run.over(m, profile, of_phase).completed;
            for (std::size_t i = 0; i < run.layer_classes; ++i) {
              for (std::size_t j = 0; j < run.profiles; ++j) {
                for (std::size_t k = 0; k < validate::kPhases; ++k) {
                  if (!within(i, layer) || !within(j, profile) || !within(k, of_phase)) continue;
                  const auto& moved = run.slices[run.slice(m, i, j, k)].movement;
                  row.off_array_weight += moved.off_array_weight;
                  row.off_chip_weight += moved.off_chip_weight;
                }
              }
            }
          }
          if (row.completed > 0 && (c == classes || row.off_array_weight + row.off_chip_weight > 0)) {
            arm.loads.push_back(std::move(row));
          }
        }
      }
    }
  }
}

void add_load_reuse(const Prepared& prepared, ReuseArm& arm) {
  if (!arm.stale) return;
  const auto& costs = *prepared.costs;
  const auto& profiles = prepared.scenario->traffic.profiles;
  for (std::size_t m = 0; m < costs.models; ++m) {
    std::vector<LoadReuse> rows(costs.layer_classes.size() + 1);
    for (std::size_t c = 0; c < costs.layer_classes.size(); ++c) rows[c].layer_class = costs.layer_classes[c];
    for (std::size_t p = 0; p < profiles.size(); ++p) {
      const auto macs = useful_weight_macs(costs, arm.stale->alone, m, profiles[p].sequence);
      std::int64_t completed = 0;
      for (const auto& run : arm.point.runs) completed += run.over(m, p, std::nullopt).completed;
      for (std::size_t c = 0; c < macs.size(); ++c) rows[c].useful_weight_macs += macs[c] * completed;
    }
    for (const auto& run : arm.point.runs) {
      for (std::size_t e = 0; e < costs.entries.size(); ++e) {
        if (costs.entries[e].model != m) continue;
        for (std::size_t c = 0; c < costs.layer_classes.size(); ++c) {
          rows[c].weight_elements_in += costs.entries[e].layers[c].weight_elements_in * run.batch_counts[e];
          rows[c].padded_weight_macs += costs.entries[e].layers[c].weight_macs * run.batch_counts[e];
        }
      }
    }
    for (std::size_t c = 0; c < costs.layer_classes.size(); ++c) {
      rows.back().useful_weight_macs += rows[c].useful_weight_macs;
      rows.back().padded_weight_macs += rows[c].padded_weight_macs;
      rows.back().weight_elements_in += rows[c].weight_elements_in;
    }
    for (auto& row : rows) {
      row.model = m;
      if (row.weight_elements_in > 0) arm.reuse.push_back(std::move(row));
    }
  }
}

/// The class of that name in a shape; the total for the empty name.
const ReuseRow* find_class(const ReuseShape& shape, const std::string& name) {
  if (name.empty()) return &shape.total;
  const auto found = std::find_if(shape.classes.begin(), shape.classes.end(),
                                  [&](const auto& row) { return row.layer_class == name; });
  return found == shape.classes.end() ? nullptr : &*found;
}

void compare(const ReuseShape& from, const ReuseShape& to, Step step, std::vector<ReuseFlag>& flags) {
  std::vector<std::string> names;
  for (const auto& row : from.classes) names.push_back(row.layer_class);
  names.emplace_back();
  for (const auto& name : names) {
    const ReuseRow* a = find_class(from, name);
    const ReuseRow* b = find_class(to, name);
    if (a == nullptr || b == nullptr || !a->achieved_reuse() || !b->achieved_reuse()) continue;
    // Ratios of integers are compared as integers: a rise of one byte is a rise.
    const auto over = [](std::int64_t n1, std::int64_t d1, std::int64_t n2, std::int64_t d2) {
      return static_cast<__int128>(n1) * d2 > static_cast<__int128>(n2) * d1;
    };
    const bool reuse_rose = over(b->weight_macs, b->weight_elements_in, a->weight_macs, a->weight_elements_in);
    const bool bytes_rose = over(b->movement.off_array_weight, to.batch, a->movement.off_array_weight, from.batch);
    if (!reuse_rose || !bytes_rose) continue;
    ReuseFlag flag;
    flag.step = step;
    flag.model = from.model;
    flag.layer_class = name;
    flag.batch_from = from.batch;
    flag.sequence_from = from.sequence;
    flag.batch_to = to.batch;
    flag.sequence_to = to.sequence;
    flag.reuse_from = *a->achieved_reuse();
    flag.reuse_to = *b->achieved_reuse();
    flag.bytes_from = static_cast<double>(a->movement.off_array_weight) / static_cast<double>(from.batch);
    flag.bytes_to = static_cast<double>(b->movement.off_array_weight) / static_cast<double>(to.batch);
    flags.push_back(std::move(flag));
  }
}

const ReuseShape* next_along(const std::vector<ReuseShape>& shapes, const ReuseShape& from, Step step) {
  const ReuseShape* best = nullptr;
  for (const auto& shape : shapes) {
    if (shape.model != from.model) continue;
    const bool along = step == Step::batch ? shape.sequence == from.sequence && shape.batch > from.batch
                                           : shape.batch == from.batch && shape.sequence > from.sequence;
    if (!along) continue;
    if (best == nullptr || shape.batch < best->batch || shape.sequence < best->sequence) best = &shape;
  }
  return best;
}

void flag_neighbours(const std::vector<ReuseShape>& shapes, std::vector<ReuseFlag>& flags) {
  for (const Step step : {Step::batch, Step::sequence}) {
    for (const auto& shape : shapes) {
      if (const ReuseShape* next = next_along(shapes, shape, step)) compare(shape, *next, step, flags);
    }
  }
}

}  // namespace

std::optional<double> LoadReuse::achieved_reuse() const {
  if (weight_elements_in == 0) return std::nullopt;
  return static_cast<double>(useful_weight_macs) / static_cast<double>(weight_elements_in);
}

ReuseArm reuse_arm(const Prepared& prepared, OperatingPoint point, std::optional<StaleMappings> stale,
                   std::string stale_why) {
  PL_CHECK(prepared.ok());
  ReuseArm arm;
  arm.name = prepared.scenario->name;
  arm.hash = prepared.hash;
  for (const auto& model : prepared.scenario->models) arm.models.push_back(model.name);
  const auto& accelerator = *prepared.scenario->accelerator;
  for (const auto& level : accelerator.levels) arm.levels.push_back(level.name);
  arm.clock = prepared.costs->clock;
  arm.shapes = all_shapes(prepared);
  arm.weight_link = find_weight_link(arm.shapes, accelerator);
  const auto levels = schedule::find_levels(accelerator);
  PL_CHECK(levels.ok());  // scheduling has asked the same
  arm.off_chip = levels->off_chip;
  arm.point = std::move(point);
  arm.stale = std::move(stale);
  arm.stale_why = std::move(stale_why);
  add_loads(prepared, arm);
  add_load_reuse(prepared, arm);
  return arm;
}

ReuseReport reuse_report(ReuseArm baseline, std::optional<ReuseArm> candidate) {
  ReuseReport out;
  flag_neighbours(baseline.shapes, out.flags);
  if (candidate) {
    for (const auto& shape : baseline.shapes) {
      for (const auto& other : candidate->shapes) {
        if (shape.model == other.model && shape.batch == other.batch && shape.sequence == other.sequence) {
          compare(shape, other, Step::arm, out.flags);
        }
      }
    }
  }
  out.baseline = std::move(baseline);
  out.candidate = std::move(candidate);
  return out;
}

ReuseArm study_reuse(Engine& engine, const Prepared& prepared, const ReuseOptions& options) {
  const auto& gate = prepared.scenario->gate;
  const std::int64_t pairs = options.pairs > 0 ? options.pairs : gate.pairs;
  OperatingPoint point = find_operating_point(engine, prepared, judging_seeds(gate, pairs));
  if (!options.stale) return reuse_arm(prepared, std::move(point), std::nullopt, "not asked for");
  auto stale = find_stale_mappings(engine, prepared, point);
  if (stale.ok()) return reuse_arm(prepared, std::move(point), std::move(*stale), "");
  return reuse_arm(prepared, std::move(point), std::nullopt, stale.errors().front().message);
}

}  // namespace plumbline::study
