// Reliefs: which resources, constraints and policies are relieved in both arms, and what that measures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "core/random.h"
#include "core/sha256.h"
#include "study/decision_planner.h"
#include "study/fix_rules.h"
#include "study/reliefs.h"

namespace plumbline::study {

using decide::ReliefKind;

namespace {

// Bottleneck class that a replayed mapping stands for: what the symptom counts or, where that is no movement, the path
// whose bytes rose most in the symptom's slice; without one the mapping costs compute.
std::string movement_class(const decide::EvidenceTable& table, const decide::Symptom& symptom) {
  struct Entry {
    const char* metric;
    const char* name;
  };
  constexpr Entry kRows[] = {{"off_array_weight_bytes_per_inference", "weight_movement"},
                             {"off_array_activation_bytes_per_inference", "activation_movement"},
                             {"off_array_stationary_bytes_per_inference", "activation_movement"},
                             {"psum_bytes_per_inference", "psum_movement"},
                             {"off_chip_weight_bytes_per_inference", "off_chip_bandwidth"},
                             {"off_chip_activation_bytes_per_inference", "off_chip_bandwidth"}};
  std::string rose = "compute";
  double most = 0;
  for (const auto& row : kRows) {
    if (symptom.metric == row.metric) return row.name;
    const auto moved =
        decide::compare(table.baseline, table.candidate, *validate::find_metric(row.metric), symptom.slice, 0, 0.05);
    if (!moved.valid || !(moved.candidate - moved.baseline > most)) continue;
    most = moved.candidate - moved.baseline;
    rose = row.name;
  }
  return rose;
}

// The same where only movement over shared wires is meant.
std::string wire_class(const decide::EvidenceTable& table, const decide::Symptom& symptom) {
  const std::string rose = movement_class(table, symptom);
  return rose == "weight_movement" || rose == "psum_movement" ? rose : "activation_movement";
}

}  // namespace

void Planner::add_resource_rows(std::vector<Row>& rows, bool weight_metric) const {
  for (auto& resource : resource_reliefs(*baseline_.scenario->accelerator, weight_metric)) {
    Row row;
    row.relief.resource = resource.resource;
    row.relief.kind = resource.kind;
    row.relief.remapped = resource.edit.remap;
    row.relief.bottleneck = resource.bottleneck.empty() ? wire_class(out_.table, symptom_) : resource.bottleneck;
    row.baseline = engine_.prepare_or_fail("baseline", comparison_.baseline, resource.edit);
    row.candidate = engine_.prepare_or_fail("candidate", document(all_), resource.edit);
    if (row.relief.kind == ReliefKind::rate) {
      Row frozen = row;
      frozen.relief.frozen = true;
      rows.push_back(std::move(frozen));
    }
    rows.push_back(std::move(row));
  }
  const auto unbounded_queue = ingest::make_at_path("serving.admission.queue", ingest::make_scalar("1000000000"));
  Row queue;
  queue.relief.resource = "admission queue";
  queue.relief.kind = ReliefKind::capacity;
  queue.relief.bottleneck = "queueing";
  queue.baseline = engine_.prepare_or_fail("baseline", document(0, {unbounded_queue}));
  queue.candidate = engine_.prepare_or_fail("candidate", document(all_, {unbounded_queue}));
  for (const auto& change : comparison_.changes)
    queue.relief.restores_change |= change.patch.at_path("serving.admission.queue") != nullptr;
  // Unbounded in both arms is not the baseline's value, so it would still be a counterfactual; but it equalizes a
  // changed key.
  rows.push_back(std::move(queue));
}

void Planner::add_constraint_rows(std::vector<Row>& rows) const {
  const ingest::Value candidate = document(all_);
  const ingest::Value* before = comparison_.baseline.at_path("compile.constraints");
  const ingest::Value* after = candidate.at_path("compile.constraints");
  std::vector<std::string> seen;
  for (const ingest::Value* list : {before, after}) {
    if (list == nullptr || list->kind != ingest::ValueKind::list) continue;
    for (const auto& item : list->items) {
      const std::string text = ingest::canonical_text(item);
      if (std::find(seen.begin(), seen.end(), text) != seen.end()) continue;
      seen.push_back(text);
      const auto without = [&](const ingest::Value* from) {
        std::vector<ingest::Value> kept;
        if (from != nullptr) {
          for (const auto& other : from->items) {
            if (ingest::canonical_text(other) != text) kept.push_back(other);
          }
        }
        return ingest::make_at_path("compile.constraints", ingest::make_list(std::move(kept)));
      };
      Row row;
      row.relief.resource = fmt::format("constraint {}", ingest::flow_text(item));
      row.relief.kind = ReliefKind::constraint;
      row.relief.remapped = true;
      row.relief.bottleneck = "weight_movement";
      const auto in = [&](const ingest::Value* from) {
        return from != nullptr && std::any_of(from->items.begin(), from->items.end(),
                                              [&](const auto& v) { return ingest::canonical_text(v) == text; });
      };
      row.relief.restores_change = in(before) != in(after);
      row.baseline = engine_.prepare_or_fail("baseline", document(0, {without(before)}));
      row.candidate = engine_.prepare_or_fail("candidate", document(all_, {without(after)}));
      rows.push_back(std::move(row));
    }
  }
}

void Planner::add_policy_rows(std::vector<Row>& rows) const {
  const ingest::Value candidate = document(all_);
  Row batches;
  batches.relief.resource = "the baseline's batches";
  batches.relief.kind = ReliefKind::policy;
  batches.relief.bottleneck = "queueing";
  batches.baseline = baseline_;
  batches.candidate = candidate_;
  batches.frozen_baseline_batches = true;
  if (candidate_.costs->entries.size() == baseline_.costs->entries.size()) rows.push_back(std::move(batches));

  struct Policy {
    const char* resource;
    const char* bottleneck;  // empty: by the symptom's metric
    std::vector<const char*> paths;
  };
  const Policy policies[] = {
      {"the baseline's mapping",
       "",
       {"compile.constraints", "compile.dataflow", "compile.objective", "compile.search", "dataflows"}},
      {"the baseline's residency", "off_chip_bandwidth", {"compile.residency"}},
      {"the baseline's padding", "compute", {"compile.shapes"}},
  };
  for (const auto& policy : policies) {
    ingest::Value patch = ingest::make_map({});
    for (const char* path : policy.paths) {
      const ingest::Value* old = comparison_.baseline.at_path(path);
      const ingest::Value* now = candidate.at_path(path);
      const bool equal = (old == nullptr) == (now == nullptr) &&
                         (old == nullptr || ingest::canonical_text(*old) == ingest::canonical_text(*now));
      if (equal) continue;
      ingest::Value value;
      if (old == nullptr) {
        value.remove = true;
      } else {
        value = *old;
      }
      patch = ingest::merge_patch(patch, ingest::make_at_path(path, ingest::make_scalar("-")));
      ingest::Value* slot = &patch;
      std::string_view rest = path;
      while (slot != nullptr && !rest.empty()) {
        const auto dot = rest.find('.');
        slot = slot->find(rest.substr(0, dot));
        rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
      }
      *slot = std::move(value);
    }
    if (patch.entries.empty()) continue;
    Row row;
    row.relief.resource = policy.resource;
    row.relief.kind = ReliefKind::policy;
    row.relief.remapped = true;
    row.relief.bottleneck = policy.bottleneck[0] != '\0' ? policy.bottleneck : movement_class(out_.table, symptom_);
    row.baseline = baseline_;
    row.candidate = engine_.prepare_or_fail("candidate", document(all_, {patch}));
    rows.push_back(std::move(row));
  }
  // Operand widths: the baseline's element sizes at the candidate's arithmetic rate and energy.
  const auto& old = baseline_.scenario->precision;
  const auto& now = candidate_.scenario->precision;
  if (old.inputs != now.inputs || old.weights != now.weights) {
    const ingest::Value* precision = comparison_.baseline.at_path("precision");
    AcceleratorEdit edit;
    edit.name = "policy:operand widths";
    edit.apply = [old, now](ingest::Accelerator& a) {
      const auto find = [&](const ingest::Policy& p) {
        return std::find_if(a.formats.begin(), a.formats.end(),
                            [&](const auto& f) { return f.inputs == p.inputs && f.accumulate == p.accumulate; });
      };
      const auto from = find(now);
      const auto to = find(old);
      if (from == a.formats.end() || to == a.formats.end()) return;
      to->macs_per_pe = from->macs_per_pe;
      to->mac_action = from->mac_action;
    };
    edit.remap = true;
    Row row;
    row.relief.resource = "the baseline's operand widths at its own arithmetic rate";
    row.relief.kind = ReliefKind::policy;
    row.relief.remapped = true;
    row.relief.bottleneck = movement_class(out_.table, symptom_);
    row.baseline = baseline_;
    row.candidate =
        engine_.prepare_or_fail("candidate", document(all_, {ingest::make_at_path("precision", *precision)}), edit);
    rows.push_back(std::move(row));
  }
}

void Planner::measure_rows(std::vector<Row>& rows) {
  auto& table = out_.table;
  std::vector<Engine::Job> jobs;
  for (const auto& row : rows) {
    Replay base;
    Replay cand;
    if (row.relief.frozen) {
      base = {Replay::Kind::frozen, &baseline_batches_};
      cand = {Replay::Kind::frozen, &candidate_batches_};
    }
    if (row.frozen_baseline_batches) cand = {Replay::Kind::frozen, &baseline_batches_};
    jobs.push_back({&row.baseline, base, replay_seeds_});
    jobs.push_back({&row.candidate, cand, replay_seeds_});
  }
  auto arms = engine_.run(jobs);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    decide::Relief relief = rows[i].relief;
    relief.baseline = std::move(arms[2 * i]);
    relief.candidate = std::move(arms[2 * i + 1]);
    table.reliefs.push_back(std::move(relief));
  }
  table.configurations += static_cast<std::int64_t>(jobs.size());
}

// Pairs of the three best single resources, when none closes the gate's share alone.
void Planner::add_pairs() {
  auto& table = out_.table;
  const auto results = decide::measure_reliefs(table, symptom_);
  const double need = 100 * table.baseline.scenario->gate.closure;
  std::vector<std::pair<double, std::size_t>> ranked;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].restores_change || results[i].frozen || !results[i].gap_closed_percent) continue;
    if (*results[i].gap_closed_percent >= need) return;
    if (results[i].kind == ReliefKind::rate || results[i].kind == ReliefKind::capacity)
      ranked.emplace_back(-*results[i].gap_closed_percent, i);
  }
  std::sort(ranked.begin(), ranked.end());
  const auto resources =
      resource_reliefs(*baseline_.scenario->accelerator, symptom_.metric.find("weight") != std::string::npos);
  std::vector<Row> rows;
  for (std::size_t a = 0; a < ranked.size() && a < 3; ++a) {
    for (std::size_t b = a + 1; b < ranked.size() && b < 3; ++b) {
      const auto find = [&](std::size_t i) {
        return std::find_if(resources.begin(), resources.end(),
                            [&](const auto& r) { return r.resource == results[i].resource; });
      };
      const auto first = find(ranked[a].second);
      const auto second = find(ranked[b].second);
      if (first == resources.end() || second == resources.end()) continue;
      AcceleratorEdit edit;
      edit.name = first->edit.name + "+" + second->edit.name;
      edit.remap = first->edit.remap || second->edit.remap;
      edit.apply = [x = first->edit.apply, y = second->edit.apply](ingest::Accelerator& acc) {
        x(acc);
        y(acc);
      };
      Row row;
      row.relief.resource = first->resource + " + " + second->resource;
      row.relief.kind = first->kind;
      row.relief.remapped = edit.remap;
      row.relief.bottleneck = first->bottleneck.empty() ? wire_class(table, symptom_) : first->bottleneck;
      row.baseline = engine_.prepare_or_fail("baseline", comparison_.baseline, edit);
      row.candidate = engine_.prepare_or_fail("candidate", document(all_), edit);
      rows.push_back(std::move(row));
    }
  }
  measure_rows(rows);
}

void Planner::run_reliefs() {
  std::vector<Row> rows;
  add_resource_rows(rows, symptom_.metric.find("weight") != std::string::npos);
  add_constraint_rows(rows);
  add_policy_rows(rows);
  measure_rows(rows);
  add_pairs();
}

}  // namespace plumbline::study
