#include "report/pack.h"

#include <fmt/format.h>

#include <functional>

#include "core/parallel.h"
#include "core/printable.h"
#include "core/sha256.h"
#include "report/artefacts.h"
#include "report/html.h"
#include "report/json.h"
#include "report/reuse_report.h"
#include "report/trace.h"
#include "report/why.h"

namespace plumbline::report {
namespace {

using study::DecisionStudy;

// Artefacts of one arm: the stage verb that prints them, and whether it takes --pairs.
struct ArmFile {
  std::string_view verb;
  std::string_view suffix;
  bool replicated;
};
constexpr ArmFile kArmFiles[] = {
    {"ingest", "scenario.json", false}, {"lower", "kernels.json", false}, {"schedule", "schedule.json", false},
    {"execute", "costs.json", false},   {"serve", "run.json", false},     {"validate", "evidence.json", true},
    {"run", "evidence.json", true},
};

struct Writer {
  std::string name;
  std::function<std::string()> write;
};

void add_arm(std::vector<Writer>& out, const std::string& arm, const study::Recording& recording,
             const decide::Arm& measured, const ingest::Value& document) {
  const auto* prepared = &recording.prepared;
  const auto* runs = &measured;
  const auto* resolved = &document;
  out.push_back({arm + ".resolved.yaml", [resolved] { return resolved_yaml(*resolved); }});
  if (!measured.ok()) return;
  out.push_back({arm + ".scenario.json", [prepared] { return scenario_json(*prepared->scenario); }});
  out.push_back({arm + ".kernels.json", [prepared] { return kernel_graph_json(*prepared); }});
  out.push_back({arm + ".schedule.json", [prepared] { return schedule_json(*prepared); }});
  out.push_back({arm + ".costs.json", [prepared] { return cost_table_json(*prepared); }});
  out.push_back({arm + ".run.json", [prepared, runs] {
                   const auto seed = study::judging_seeds(prepared->scenario->gate, 1).front();
                   return run_json(*prepared, runs->runs.front(), seed);
                 }});
  out.push_back({arm + ".evidence.json", [runs] { return evidence_json(*runs); }});
}

// Both arms' reuse on the recorded run; formed shapes are compiled by `plumbline reuse` only.
std::string recorded_reuse_json(const DecisionStudy& study) {
  const auto arm = [](const study::Recording& recording) {
    const auto& prepared = recording.prepared;
    const auto seed = study::judging_seeds(prepared.scenario->gate, 1).front();
    return study::reuse_arm(prepared, study::operating_point_of(prepared, seed, *recording.trace, recording.run),
                            std::nullopt, "`plumbline reuse` compiles the formed shapes");
  };
  std::optional<study::ReuseArm> candidate;
  if (study.table.candidate.ok()) candidate = arm(study.candidate);
  return reuse_json(study::reuse_report(arm(study.baseline), std::move(candidate)));
}

std::vector<Writer> writers(const DecisionStudy& study, const decide::Decision& decision, const Manifest& manifest) {
  const auto& table = study.table;
  const auto& reproduce = manifest.reproduce;
  std::vector<Writer> out;
  // The longest first, so that threads end together.
  out.push_back({"trace.perfetto.json", [&] { return perfetto_json(study); }});
  add_arm(out, "baseline", study.baseline, table.baseline, study.baseline_document);
  add_arm(out, "candidate", study.candidate, table.candidate, study.candidate_document);
  if (table.baseline.ok()) out.push_back({"reuse.json", [&] { return recorded_reuse_json(study); }});
  out.push_back({"report.html", [&] { return report_html(study, decision, reproduce); }});
  out.push_back({"decision.json", [&] { return decision_json(study, decision, reproduce); }});
  out.push_back({"decision.md", [&] { return decision_markdown(study, decision, reproduce); }});
  out.push_back({"why.json", [&] { return why_json(why_findings(study, decision)); }});
  out.push_back({"evidence.json", [&] { return evidence_table_json(table, decision); }});
  out.push_back({"coalitions.json", [&] { return coalitions_json(table, decision); }});
  out.push_back({"reliefs.json", [&] { return reliefs_json(table, decision); }});
  out.push_back({"fixes.json", [&] { return fixes_json(table, decision); }});
  if (decision.fix) {
    out.push_back({"fix.patch.yaml", [&] { return resolved_yaml(decision.fix->patch); }});
    out.push_back({"rollback.patch.yaml", [&] { return resolved_yaml(decision.fix->rollback_patch); }});
  }
  if (study.fixed_document.kind == ingest::ValueKind::map) {
    out.push_back({"fixed.resolved.yaml", [&] { return resolved_yaml(study.fixed_document); }});
  }
  return out;
}

std::string manifest_json(const DecisionStudy& study, const decide::Decision& decision, const Manifest& manifest,
                          const std::map<std::string, std::string>& files,
                          const std::map<std::string, std::string>& hashes) {
  Json out = json_document("manifest");
  out["version"] = manifest.version;
  out["instruction_set"] = manifest.instruction_set;
  out["verdict"] = decide::verdict_name(decision.verdict);
  out["command"] = manifest.reproduce.command;
  out["seed"] = manifest.reproduce.seed;
  out["baseline"] = {{"path", study.table.baseline_path},
                     {"sha256", study.table.baseline.hash},
                     {"resolved", "baseline.resolved.yaml"}};
  out["candidate"] = {{"path", study.table.candidate_path},
                      {"sha256", study.table.candidate.hash},
                      {"resolved", "candidate.resolved.yaml"}};
  out["inputs"] = Json::array();
  for (const auto& input : manifest.reproduce.inputs)
    out["inputs"].push_back({{"path", input.path}, {"sha256", input.sha256}});
  out["commands"] = Json::array();
  for (const auto& run : study.table.commands) {
    PL_CHECK(hashes.contains(run.output));
    out["commands"].push_back({{"command", run.command}, {"output", run.output}, {"sha256", hashes.at(run.output)}});
  }
  out["files"] = Json::array();
  for (const auto& [name, bytes] : files)
    out["files"].push_back({{"name", name}, {"bytes", bytes.size()}, {"sha256", hashes.at(name)}});
  return json_dump(out);
}

}  // namespace

std::vector<decide::CommandRun> pack_commands(const std::string& baseline_path, const std::string& candidate_path,
                                              std::int64_t pairs) {
  std::vector<decide::CommandRun> out;
  const std::pair<std::string_view, const std::string&> arms[] = {{"baseline", baseline_path},
                                                                  {"candidate", candidate_path}};
  for (const auto& [arm, path] : arms) {
    for (const auto& file : kArmFiles) {
      std::string command = fmt::format("plumbline {} {} --format json", file.verb, shell_word(path));
      if (file.replicated && pairs > 0) command += fmt::format(" --pairs {}", pairs);
      out.push_back({std::move(command), fmt::format("{}.{}", arm, file.suffix)});
    }
  }
  return out;
}

std::map<std::string, std::string> pack_files(const DecisionStudy& study, const decide::Decision& decision,
                                              const Manifest& manifest, unsigned threads) {
  const auto jobs = writers(study, decision, manifest);
  std::vector<std::string> bytes(jobs.size());
  std::vector<std::string> digests(jobs.size());
  parallel_for(jobs.size(), threads, [&](std::size_t i) {
    bytes[i] = jobs[i].write();
    digests[i] = sha256(bytes[i]);
  });
  std::map<std::string, std::string> out = manifest.attachments;
  std::map<std::string, std::string> hashes;
  for (const auto& [name, text] : out) hashes[name] = sha256(text);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    out[jobs[i].name] = std::move(bytes[i]);
    hashes[jobs[i].name] = std::move(digests[i]);
  }
  out["manifest.json"] = manifest_json(study, decision, manifest, out, hashes);
  return out;
}

}  // namespace plumbline::report
