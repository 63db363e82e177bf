#include <algorithm>
#include <cmath>

#include "report/decision_report.h"
#include "report/json.h"
#include "report/words.h"

namespace plumbline::report {
namespace {

using decide::Decision;
using decide::Paired;

constexpr std::string_view kNoPair = "a replication has no value in one of the arms";

// Numbers of a paired comparison under the keys that metric, slices and the symptom share.
void put_paired(Json& out, const Paired& paired) {
  if (!paired.valid) {
    for (const char* key : {"baseline", "candidate", "change", "change_percent", "ci95", "n", "p", "pairs_needed"}) {
      out[key] = nullptr;
    }
    out["why"] = kNoPair;
    return;
  }
  constexpr std::string_view kFromNothing = "the baseline is zero, so the change has no percentage";
  put_number(out, "baseline", paired.baseline);
  put_number(out, "candidate", paired.candidate);
  put_number(out, "change", paired.change);
  put_number(out, "change_percent", paired.change_percent, kFromNothing);
  put_interval(out, "ci95", paired.ci_low, paired.ci_high, kFromNothing);
  out["n"] = paired.n;
  put_number(out, "p", paired.p);
  if (paired.pairs_needed < 0) {
    put_null(out, "pairs_needed", "more than 10,000 pairs");
  } else {
    out["pairs_needed"] = paired.pairs_needed;
  }
}

Json metric_json(const Decision& d) {
  Json out = {{"name", d.metric}, {"unit", d.unit}, {"better", d.better}};
  put_paired(out, d.headline);
  put_number(out, "margin_percent", 100 * d.margin);
  return out;
}

Json limits_json(const std::vector<decide::Limit>& limits) {
  Json out = Json::object();
  out["met"] = std::all_of(limits.begin(), limits.end(), [](const auto& l) { return l.met; });
  if (limits.empty()) put_null(out, "met", "the scenario limits nothing, or the arm has no value");
  for (const auto& limit : limits) out[limit.name] = limit_json(limit);
  return out;
}

Json quality_json(const decide::Quality& quality) {
  Json out = {{"how", quality.how.empty() ? "absent" : quality.how},
              {"satisfied", quality.satisfied},
              {"detail", quality.detail}};
  if (quality.proof.empty()) {
    put_null(out, "proof", "nothing proves it");
  } else {
    out["proof"] = quality.proof;
  }
  return out;
}

Json slice_json(const decide::SliceJudgement& row) {
  Json out = {{"name", row.id.name()},
              {"metric", row.metric},
              {"unit", metric_unit(row.metric)},
              {"family", row.id.family},
              {"layer_class", row.id.layer_class},
              {"profile", row.id.profile},
              {"load", row.id.load},
              {"step", "forward"},
              {"gated", row.id.gated}};
  put_paired(out, row.paired);
  out["requests"] = row.paired.requests;
  out["verdict"] = decide::slice_verdict_name(row.verdict);
  return out;
}

Json slices_json(const std::vector<decide::SliceJudgement>& rows) {
  Json out = Json::array();
  for (const auto& row : rows) out.push_back(slice_json(row));
  return out;
}

Json symptom_json(const Decision& d) {
  Json out = {{"harmful", d.symptom.harmful},
              {"metric", d.symptom.metric},
              {"unit", metric_unit(d.symptom.metric)},
              {"slice",
               {{"name", d.symptom.slice.name()},
                {"family", d.symptom.slice.family},
                {"layer_class", d.symptom.slice.layer_class},
                {"profile", d.symptom.slice.profile},
                {"load", d.symptom.slice.load}}}};
  if (d.symptom_paired) put_paired(out, *d.symptom_paired);
  return out;
}

Json triage_json(const decide::Triage& triage) {
  Json out = Json::object();
  put_number(out, "baseline_occupancy_percent", 100 * triage.baseline_occupancy);
  put_number(out, "candidate_occupancy_percent", 100 * triage.candidate_occupancy);
  put_number(out, "baseline_memory_stall_percent", 100 * triage.baseline_stall);
  put_number(out, "candidate_memory_stall_percent", 100 * triage.candidate_stall);
  out["quadrant"] = triage.quadrant;
  out["first"] = triage.first;
  return out;
}

Json bottleneck_json(const Decision& d) {
  Json out = {{"class", d.bottleneck.name}};
  if (d.bottleneck.name == "not_identified") {
    put_null(out, "confidence", "no bottleneck is identified");
    put_null(out, "artifact", "no bottleneck is identified");
  } else {
    put_number(out, "confidence", d.bottleneck.confidence);
    out["artifact"] = d.bottleneck.artifact;
  }
  return out;
}

Json mechanism_json(const decide::Mechanism& mechanism) {
  Json out = {{"identified", mechanism.identified}};
  if (mechanism.identified) {
    out["resource"] = mechanism.resource;
  } else {
    put_null(out, "resource", mechanism.sentence.empty() ? "the candidate has no value" : mechanism.sentence);
  }
  out["sentence"] = mechanism.sentence;
  out["relief"] = Json::array();
  for (const auto& row : mechanism.relief) {
    Json item = {{"resource", row.resource},
                 {"kind", decide::relief_kind_name(row.kind)},
                 {"remapped", row.remapped},
                 {"batches", row.frozen ? "frozen" : "free"},
                 {"restores_change", row.restores_change},
                 {"class", row.bottleneck}};
    if (row.gap_closed_percent) {
      put_number(item, "gap_closed_percent", *row.gap_closed_percent);
      put_interval(item, "ci95", row.ci_low, row.ci_high);
    } else {
      item["gap_closed_percent"] = nullptr;
      item["ci95"] = nullptr;
      item["why"] = row.why;
    }
    out["relief"].push_back(std::move(item));
  }
  return out;
}

// Shares with the interval of the value in the metric's unit, and of the share in percent of the total.
Json shares_json(const decide::Attribution& attribution) {
  Json out = Json::array();
  for (const auto& share : attribution.shares) {
    Json row = {{"change", share.change}};
    put_number(row, "value", share.value);
    put_interval(row, "value_ci95", share.ci_low, share.ci_high);
    if (share.percent && attribution.total != 0) {
      const double low = 100 * share.ci_low / attribution.total;
      const double high = 100 * share.ci_high / attribution.total;
      put_number(row, "share_percent", *share.percent);
      put_interval(row, "ci95", std::min(low, high), std::max(low, high));
    } else {
      constexpr std::string_view kNoise = "the total change does not exceed its noise";
      put_null(row, "share_percent", kNoise);
      put_null(row, "ci95", kNoise);
    }
    out.push_back(std::move(row));
  }
  return out;
}

Json interactions_json(const decide::Attribution& attribution) {
  Json out = Json::array();
  for (const auto& pair : attribution.interactions) {
    Json row = {{"changes", pair.changes}};
    put_number(row, "value", pair.value);
    out.push_back(std::move(row));
  }
  return out;
}

Json attribution_json(const decide::Attribution& attribution) {
  Json out = {
      {"metric", attribution.metric}, {"unit", metric_unit(attribution.metric)}, {"slice", attribution.slice.name()}};
  put_number(out, "total", attribution.total);
  out["exact"] = attribution.exact;
  out["shares"] = shares_json(attribution);
  out["interactions"] = interactions_json(attribution);
  out["no_value"] = attribution.no_value;
  return out;
}

Json hypotheses_json(const Decision& d) {
  Json out = Json::array();
  for (const auto& h : d.hypotheses) {
    Json row = {{"claim", h.claim}, {"change", h.change}};
    if (h.predicted) {
      put_number(row, "predicted", *h.predicted);
    } else {
      put_null(row, "predicted", h.predicted_why.empty() ? "nothing predicts it" : h.predicted_why);
    }
    if (h.measured) {
      put_number(row, "measured", *h.measured);
    } else {
      put_null(row, "measured", "it was not measured");
    }
    row["verdict"] = h.verdict;
    out.push_back(std::move(row));
  }
  return out;
}

Json evidence_matrix_json(const Decision& d) {
  Json out = Json::array();
  for (const auto& row : d.evidence_matrix) {
    out.push_back({{"evidence", row.evidence},
                   {"present", row.present},
                   {"shows", row.shows},
                   {"does_not_prove", row.does_not_prove},
                   {"next_action", row.next_action},
                   {"ran", row.ran}});
  }
  return out;
}

// A patch as an object and as the line one would paste into a scenario.
void put_patch(Json& out, const std::string& key, const ingest::Value& patch, std::string_view why) {
  if (patch.kind == ingest::ValueKind::null) {
    put_null(out, key, why);
    return;
  }
  out[key] = value_json(patch);
  out[key + "_text"] = ingest::flow_text(patch);
}

Json fix_json(const Decision& d) {
  if (!d.fix) return nullptr;
  const auto& fix = *d.fix;
  Json out = {{"id", fix.id}, {"kind", fix.kind}, {"title", fix.title}};
  put_patch(out, "patch", fix.patch, "it changes nothing");
  out["owner"] = fix.owner;
  out["stage"] = fix.stage;
  out["verdict"] = decide::verdict_name(fix.verdict);
  out["reasons"] = fix.reasons;
  put_number(out, "recovers_percent", fix.recovers_percent);
  put_interval(out, "ci95", fix.ci_low, fix.ci_high);
  out["sla"] = limits_json(fix.sla);
  Json rollback = Json::object();
  put_patch(rollback, "patch", fix.rollback_patch, "nothing needs to be undone");
  rollback["proven"] = fix.rollback_proven;
  if (fix.rollback_hash.empty()) {
    put_null(rollback, "sha256", "the rolled-back scenario could not be resolved");
  } else {
    rollback["sha256"] = fix.rollback_hash;
  }
  out["rollback"] = std::move(rollback);
  put_patch(out, "fallback", fix.fallback,
            fix.is_fallback ? "this fix is the fallback: it undoes the change" : "no change is to be undone");
  out["is_fallback"] = fix.is_fallback;
  out["note"] = fix.note;
  out["blast_radius"] = Json::array();
  for (const auto& row : fix.blast_radius) out["blast_radius"].push_back(slice_json(row.judgement));
  return out;
}

Json rejected_json(const Decision& d) {
  Json out = Json::array();
  for (const auto& row : d.rejected_fixes) {
    Json item = {{"id", row.id}, {"kind", row.kind}};
    put_patch(item, "patch", row.patch, "it changes nothing");
    item["why"] = row.why;
    out.push_back(std::move(item));
  }
  return out;
}

Json guardrails_json(const Decision& d) {
  Json out = Json::array();
  for (const auto& row : d.rollout_guardrails) {
    out.push_back(
        {{"metric", row.metric}, {"threshold", row.threshold}, {"window", row.window}, {"action", row.action}});
  }
  return out;
}

Json guards_json(const Decision& d) {
  Json out = Json::array();
  for (const auto& row : d.guards) {
    out.push_back({{"name", row.name}, {"holds", row.holds}, {"caps", row.caps}, {"detail", row.detail}});
  }
  return out;
}

Json changes_json(const study::DecisionStudy& study) {
  Json out = Json::array();
  for (const auto& change : study.table.changes) {
    out.push_back({{"id", change.id},
                   {"owner", change.owner},
                   {"reason", change.reason},
                   {"stage", ingest::stage_name(change.stage)},
                   {"patch", value_json(change.patch)},
                   {"patch_text", ingest::flow_text(change.patch)}});
  }
  return out;
}

Json reproduce_json(const Reproduce& reproduce) {
  Json inputs = Json::array();
  for (const auto& file : reproduce.inputs) inputs.push_back({{"path", file.path}, {"sha256", file.sha256}});
  return {{"command", reproduce.command}, {"seed", reproduce.seed}, {"inputs", std::move(inputs)}};
}

}  // namespace

std::string decision_json(const study::DecisionStudy& study, const Decision& d, const Reproduce& reproduce) {
  Json out = json_document("decision");
  out["verdict"] = decide::verdict_name(d.verdict);
  out["reasons"] = d.reasons;
  out["baseline"] = {{"path", study.table.baseline_path}, {"sha256", study.table.baseline.hash}};
  out["candidate"] = {{"path", study.table.candidate_path}, {"sha256", study.table.candidate.hash}};
  out["state"] = study.table.live ? "live" : "candidate";
  out["metric"] = metric_json(d);
  out["sla"] = {{"baseline", limits_json(d.sla_baseline)}, {"candidate", limits_json(d.sla_candidate)}};
  out["quality"] = quality_json(d.quality);
  out["symptom"] = symptom_json(d);
  out["first_failing_stage"] = d.first_failing_stage;
  if (d.first_failing_change.empty()) {
    put_null(out, "first_failing_change", "no change harms");
    put_null(out, "owner", "no change harms");
  } else {
    out["first_failing_change"] = d.first_failing_change;
    out["owner"] = d.owner;
  }
  out["feedback"] = d.feedback;
  out["bottleneck"] = bottleneck_json(d);
  out["mechanism"] = mechanism_json(d.mechanism);
  out["changes"] = changes_json(study);
  out["attribution"] = shares_json(d.attribution);
  out["interactions"] = interactions_json(d.attribution);
  if (d.symptom_attribution) {
    out["symptom_attribution"] = attribution_json(*d.symptom_attribution);
  } else {
    put_null(out, "symptom_attribution", "nothing regressed beyond its margin");
  }
  out["triage"] = triage_json(d.triage);
  out["hypotheses"] = hypotheses_json(d);
  out["evidence_matrix"] = evidence_matrix_json(d);
  out["fix"] = fix_json(d);
  if (!d.fix) out["fix_why"] = d.fix_why.empty() ? "none was looked for" : d.fix_why;
  out["rejected_fixes"] = rejected_json(d);
  out["rollout_guardrails"] = guardrails_json(d);
  out["guards"] = guards_json(d);
  out["open_items"] = d.open_items;
  out["preflight"] = preflight_json(d.preflight);
  out["slices"] = slices_json(d.slices);
  out["advisory"] = slices_json(d.advisory);
  out["configurations"] = d.configurations;
  out["requests_simulated"] = d.requests_simulated;
  out["reproduce"] = reproduce_json(reproduce);
  return json_dump(out);
}

}  // namespace plumbline::report
