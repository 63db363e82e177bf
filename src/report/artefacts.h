#pragma once
// One writer per artefact. The stage verbs print these and the pack stores them, so the bytes agree.
// Every document starts {"plumbline": 1, "kind": …} and has a schema in docs/schema/.
#include <cstdint>
#include <string>
#include <vector>

#include "decide/decision.h"
#include "study/decision_study.h"

namespace plumbline::report {

/// A resolved document as YAML that parse_yaml reads back to the same canonical text, quotes kept.
[[nodiscard]] std::string resolved_yaml(const ingest::Value& document);

/// kind "scenario": the resolved document, scalars as text with their units. What `plumbline ingest` prints.
[[nodiscard]] std::string scenario_json(const ingest::Scenario& scenario);

/// kind "kernel_graph": kernels, instances and buffers of every compiled shape. What `plumbline lower` prints.
[[nodiscard]] std::string kernel_graph_json(const study::Prepared& prepared);

/// kind "schedule": mapping and exact counts of every kernel, placement, residency. What `plumbline schedule` prints.
[[nodiscard]] std::string schedule_json(const study::Prepared& prepared);

/// kind "cost_table": cycles, bytes and energy of every padded batch. What `plumbline execute` prints.
[[nodiscard]] std::string cost_table_json(const study::Prepared& prepared);

/// kind "run": one replication summed up. What `plumbline serve` prints.
[[nodiscard]] std::string run_json(const study::Prepared& prepared, const validate::Summary& summary,
                                   std::uint64_t seed);

/// kind "evidence": pre-flight, limits and every metric on every slice, judging replication by replication. What
/// `plumbline validate` and `plumbline run` print.
[[nodiscard]] std::string evidence_json(const decide::Arm& arm);

/// kind "evidence_table": both arms side by side on the judging and on the fresh seeds.
[[nodiscard]] std::string evidence_table_json(const decide::EvidenceTable& table, const decide::Decision& decision);
/// kind "coalitions": each subset of the changes with its values.
[[nodiscard]] std::string coalitions_json(const decide::EvidenceTable& table, const decide::Decision& decision);
/// kind "reliefs": each relief with both arms' values.
[[nodiscard]] std::string reliefs_json(const decide::EvidenceTable& table, const decide::Decision& decision);
/// kind "fixes": each fix that was tried, with prediction and measurement.
[[nodiscard]] std::string fixes_json(const decide::EvidenceTable& table, const decide::Decision& decision);

}  // namespace plumbline::report
