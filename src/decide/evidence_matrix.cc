#include "decide/evidence_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/printable.h"

namespace plumbline::decide {
namespace {

bool ran(const EvidenceTable& table, const std::string& command) {
  return std::any_of(table.commands.begin(), table.commands.end(),
                     [&](const CommandRun& c) { return c.command == command; });
}

double busy_share(const Arm& arm) {
  double busy = 0;
  double span = 0;
  for (const auto& run : arm.runs) {
    busy += static_cast<double>(run.busy_ns);
    span += static_cast<double>(run.span_ns);
  }
  return span > 0 ? busy / span : 0;
}

double per_batch(const Arm& arm) {
  double requests = 0;
  double batches = 0;
  for (const auto& run : arm.runs) {
    requests += static_cast<double>(run.all.completed);
    batches += static_cast<double>(run.batches);
  }
  return batches > 0 ? requests / batches : 0;
}

EvidenceRow timeline_row(const EvidenceTable& t) {
  EvidenceRow row;
  row.evidence = "occupancy and timeline";
  row.present = t.timeline && t.candidate.ok();
  if (row.present) {
    row.shows = fmt::format(
        "the device is busy {:.1f} % of the time against {:.1f} % before; {:.2f} requests a batch against {:.2f}",
        100 * busy_share(t.candidate), 100 * busy_share(t.baseline), per_batch(t.candidate), per_batch(t.baseline));
  }
  row.does_not_prove = "the root cause";
  row.next_action = fmt::format("plumbline schedule {} --format json", t.candidate_path);
  return row;
}

EvidenceRow bandwidth_row(const EvidenceTable& t) {
  EvidenceRow row;
  row.evidence = "cache, SRAM and bandwidth";
  const auto* off_array = validate::find_metric("off_array_weight_bytes_per_inference");
  const auto* off_chip = validate::find_metric("off_chip_weight_bytes_per_inference");
  const SliceId all{"all", "all", "all", "all", false};
  const auto a = t.candidate.ok() ? compare(t.baseline, t.candidate, *off_array, all, 0, 0.05) : Paired{};
  const auto b = t.candidate.ok() ? compare(t.baseline, t.candidate, *off_chip, all, 0, 0.05) : Paired{};
  row.present = a.valid && b.valid;
  if (row.present) {
    row.shows =
        fmt::format("weights move {:.2f} MB off the array per inference ({:+.1f} %) and {:.2f} MB off chip ({:+.1f} %)",
                    a.candidate * 1e-6, a.change_percent, b.candidate * 1e-6, b.change_percent);
  }
  row.does_not_prove = "the effect on the model's quality";
  row.next_action = fmt::format("plumbline validate {} --format json", t.candidate_path);
  return row;
}

EvidenceRow counters_row(const EvidenceTable& t) {
  EvidenceRow row;
  row.evidence = "counter and profile alignment";
  const bool coalitions = !t.coalitions.empty() && t.predictions.size() == t.changes.size();
  row.present = coalitions && t.candidate.ok() &&
                std::all_of(t.candidate.runs.begin(), t.candidate.runs.end(), [](const auto& run) {
                  return !run.invariants.empty() && std::all_of(run.invariants.begin(), run.invariants.end(),
                                                                [](const auto& i) { return i.holds; });
                });
  if (row.present) {
    row.shows = fmt::format(
        "byte, stall and energy counters add up exactly in {} runs, and {} of {} subsets of the changes were run",
        t.baseline.runs.size() + t.candidate.runs.size(),
        std::count_if(t.coalitions.begin(), t.coalitions.end(), [](const auto& c) { return c.arm.ok(); }),
        t.coalitions.size());
  }
  row.does_not_prove = "that the rollout is safe";
  row.next_action =
      fmt::format("plumbline decide {} {} --pairs 24", shell_word(t.baseline_path), shell_word(t.candidate_path));
  return row;
}

EvidenceRow power_row(const EvidenceTable& t) {
  EvidenceRow row;
  row.evidence = "thermal and power";
  row.present = t.preflight.junction_limit.has_value() && t.candidate.ok();
  if (row.present) {
    const auto* energy = validate::find_metric("energy_per_inference");
    const auto e = compare(t.baseline, t.candidate, *energy, {"all", "all", "all", "all", false}, 0, 0.05);
    row.shows = fmt::format(
        "{:.1f} mJ per inference ({:+.1f} %); {:.1f} degC in steady state at the busiest power, limit {:.1f} degC",
        e.candidate * 1e3, e.change_percent, t.preflight.junction_celsius, *t.preflight.junction_limit);
  }
  row.does_not_prove = "that the results are correct";
  row.next_action = fmt::format("plumbline run {} --format json", t.candidate_path);
  return row;
}

EvidenceRow pack_row(const EvidenceTable& t) {
  EvidenceRow row;
  row.evidence = "before/after scenario pack";
  row.present = !t.baseline.hash.empty() && !t.candidate.hash.empty();
  if (row.present) {
    row.shows = fmt::format("both arms are stored by content ({} and {}), {} changes apart",
                            t.baseline.hash.substr(0, 12), t.candidate.hash.substr(0, 12), t.changes.size());
  }
  row.does_not_prove = "stability in the long tail";
  row.next_action = fmt::format("plumbline decide {} {} --pairs 60 -o out/more-pairs", shell_word(t.baseline_path),
                                shell_word(t.candidate_path));
  return row;
}

struct Kind {
  const char* name;  // as gates require it
  EvidenceRow (*row)(const EvidenceTable&);
};

constexpr Kind kKinds[] = {{"timeline", timeline_row},
                           {"bandwidth", bandwidth_row},
                           {"counters", counters_row},
                           {"thermal_power", power_row},
                           {"scenario_pack", pack_row}};

}  // namespace

std::vector<std::string> evidence_kinds() {
  std::vector<std::string> names;
  for (const auto& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

EvidenceMatrix evidence_matrix(const EvidenceTable& table) {
  EvidenceMatrix out;
  const auto& required = table.baseline.scenario->gate.required_evidence;
  for (const auto& kind : kKinds) {
    EvidenceRow row = kind.row(table);
    row.ran = ran(table, row.next_action);
    if (std::find(required.begin(), required.end(), kind.name) != required.end()) {
      out.guards.push_back({fmt::format("evidence: {}", row.evidence), row.present,
                            row.present ? "present" : "required by the gate and absent", true});
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace plumbline::decide
