// Artefacts of the study: what was measured, by configuration, slice and seed.
#include <algorithm>

#include "report/artefacts.h"
#include "report/json.h"
#include "validate/metrics.h"

namespace plumbline::report {
namespace {

using decide::Arm;
using decide::SliceId;

const SliceId kEverything{"all", "all", "all", "all", false};

// Per-seed values; null with its reason for an arm that was not run or has no value.
void put_values(Json& out, const std::string& key, const Arm& arm, const validate::MetricRow& metric,
                const SliceId& id) {
  if (!arm.ok()) {
    put_null(out, key, arm.failure.empty() ? "it was not run" : arm.failure);
    return;
  }
  Json values = Json::array();
  for (const auto& x : decide::values(arm, metric, id)) values.push_back(x ? Json(*x) : Json(nullptr));
  out[key] = std::move(values);
}

Json arm_json(const Arm& arm) {
  Json out = {{"sha256", arm.hash},
              {"numerics_sha256", arm.numerics_hash},
              {"exact_sums", arm.exact},
              {"longest_reduction", arm.longest_reduction},
              {"has_weights", arm.has_weights}};
  if (!arm.failure.empty()) out["failure"] = arm.failure;
  return out;
}

Json symptom_json(const decide::Decision& decision) {
  return {{"metric", decision.symptom.metric},
          {"slice", decision.symptom.slice.name()},
          {"harmful", decision.symptom.harmful}};
}

}  // namespace

std::string evidence_json(const Arm& arm) {
  Json out = json_document("evidence");
  out["scenario"] = arm.scenario->name;
  out["sha256"] = arm.hash;
  out["seeds"] = seeds_json(study::judging_seeds(arm.scenario->gate, static_cast<std::int64_t>(arm.runs.size())));
  study::Prepared prepared;
  prepared.scenario = arm.scenario;
  prepared.costs = arm.costs;
  out["preflight"] = preflight_json(study::pre_flight(prepared, arm));
  out["limits"] = Json::array();
  for (const auto& limit : decide::limits(arm, arm.scenario->gate.alpha)) {
    Json row = {{"name", limit.name}};
    row.update(limit_json(limit));
    out["limits"].push_back(std::move(row));
  }
  out["metrics"] = Json::array();
  auto slices = decide::slices_of(arm);
  slices.insert(slices.begin(), kEverything);
  for (const auto& metric : validate::metrics()) {
    Json rows = Json::array();
    for (const auto& id : slices) {
      if (id.layer_class != "all" && !metric.sliced_by_class) continue;
      Json row = {{"slice", id.name()}, {"gated", id.gated && metric.name == arm.scenario->metric.name}};
      put_values(row, "values", arm, metric, id);
      rows.push_back(std::move(row));
    }
    out["metrics"].push_back({{"name", metric.name},
                              {"unit", metric.unit},
                              {"better", metric.lower_is_better ? "lower" : "higher"},
                              {"meaning", metric.meaning},
                              {"slices", std::move(rows)}});
  }
  return json_dump(out);
}

std::string evidence_table_json(const decide::EvidenceTable& table, const decide::Decision& decision) {
  Json out = json_document("evidence_table");
  out["symptom"] = symptom_json(decision);
  out["seeds"] = seeds_json(table.seeds);
  out["fresh_seeds"] = seeds_json(table.fresh_seeds);
  out["baseline"] = arm_json(table.baseline);
  out["candidate"] = arm_json(table.candidate);
  out["rows"] = Json::array();
  auto slices = decide::slices_of(table.baseline);
  slices.insert(slices.begin(), kEverything);
  const std::string& gated = table.baseline.scenario->metric.name;
  for (const auto& metric : validate::metrics()) {
    for (const auto& id : slices) {
      // Layer classes only of the metric the gate judges: of the others metrics.json has them.
      if (id.layer_class != "all" && (!metric.sliced_by_class || metric.name != gated)) continue;
      Json row = {{"metric", metric.name},
                  {"unit", metric.unit},
                  {"slice", id.name()},
                  {"gated", id.gated && metric.name == gated}};
      put_values(row, "baseline", table.baseline, metric, id);
      put_values(row, "candidate", table.candidate, metric, id);
      if (table.fresh_baseline.ok() && id.layer_class == "all") {
        put_values(row, "fresh_baseline", table.fresh_baseline, metric, id);
        put_values(row, "fresh_candidate", table.fresh_candidate, metric, id);
      }
      out["rows"].push_back(std::move(row));
    }
  }
  return json_dump(out);
}

std::string coalitions_json(const decide::EvidenceTable& table, const decide::Decision& decision) {
  Json out = json_document("coalitions");
  out["symptom"] = symptom_json(decision);
  out["metric"] = decision.metric;
  out["exact"] = table.exact_coalitions;
  out["seeds"] = seeds_json(table.seeds);
  out["coalitions"] = Json::array();
  const auto* metric = validate::find_metric(decision.metric);
  const auto* symptom = validate::find_metric(decision.symptom.metric);
  for (const auto& coalition : table.coalitions) {
    Json changes = Json::array();
    for (std::size_t i = 0; i < table.changes.size(); ++i) {
      if ((coalition.changes >> i & 1U) != 0) changes.push_back(table.changes[i].id);
    }
    Json row = {{"changes", std::move(changes)}, {"sha256", coalition.arm.hash}};
    if (metric != nullptr) put_values(row, "overall", coalition.arm, *metric, kEverything);
    if (symptom != nullptr) put_values(row, "symptom", coalition.arm, *symptom, decision.symptom.slice);
    out["coalitions"].push_back(std::move(row));
  }
  return json_dump(out);
}

std::string reliefs_json(const decide::EvidenceTable& table, const decide::Decision& decision) {
  Json out = json_document("reliefs");
  out["symptom"] = symptom_json(decision);
  out["seeds"] = seeds_json(table.seeds);
  out["reliefs"] = Json::array();
  const auto* symptom = validate::find_metric(decision.symptom.metric);
  for (const auto& relief : table.reliefs) {
    Json row = {{"resource", relief.resource},
                {"kind", decide::relief_kind_name(relief.kind)},
                {"remapped", relief.remapped},
                {"batches", relief.frozen ? "frozen" : "free"},
                {"restores_change", relief.restores_change},
                {"class", relief.bottleneck}};
    if (symptom != nullptr) {
      put_values(row, "baseline", relief.baseline, *symptom, decision.symptom.slice);
      put_values(row, "candidate", relief.candidate, *symptom, decision.symptom.slice);
    }
    out["reliefs"].push_back(std::move(row));
  }
  return json_dump(out);
}

std::string fixes_json(const decide::EvidenceTable& table, const decide::Decision& decision) {
  Json out = json_document("fixes");
  out["symptom"] = symptom_json(decision);
  out["ranking_seeds"] = Json::array();
  std::size_t ranking = 0;
  for (const auto& trial : table.fixes) ranking = std::max(ranking, trial.ranking.runs.size());
  for (std::size_t i = 0; i < ranking && i < table.seeds.size(); ++i)
    out["ranking_seeds"].push_back(std::to_string(table.seeds[i]));
  out["fresh_seeds"] = seeds_json(table.fresh_seeds);
  out["fixes"] = Json::array();
  const auto* symptom = validate::find_metric(decision.symptom.metric);
  for (const auto& trial : table.fixes) {
    Json row = {{"id", trial.id},
                {"kind", trial.kind},
                {"title", trial.title},
                {"hypothesis", trial.hypothesis},
                {"owner", trial.owner},
                {"stage", ingest::stage_name(trial.stage)},
                {"patch", value_json(trial.patch)},
                {"patch_text", ingest::flow_text(trial.patch)},
                {"tier", trial.tier},
                {"same_as_undo", trial.same_as_undo},
                {"sha256", trial.ranking.hash}};
    if (trial.predicted) {
      put_number(row, "predicted_change", *trial.predicted);
    } else {
      put_null(row, "predicted_change", trial.predicted_why.empty() ? "nothing predicts it" : trial.predicted_why);
    }
    if (symptom != nullptr) {
      put_values(row, "ranking", trial.ranking, *symptom, decision.symptom.slice);
      put_values(row, "judged", trial.judged, *symptom, decision.symptom.slice);
    }
    if (!trial.rollback_hash.empty()) {
      row["rollback"] = value_json(trial.rollback);
      row["rollback_sha256"] = trial.rollback_hash;
    }
    out["fixes"].push_back(std::move(row));
  }
  return json_dump(out);
}

}  // namespace plumbline::report
