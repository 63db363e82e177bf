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
namespace {

using decide::Arm;

std::vector<std::uint64_t> seeds_named(const ingest::Gate& gate, const char* name, std::int64_t count) {
  RandomStream random(gate.seed, name);
  std::vector<std::uint64_t> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(random.next());
  return out;
}

}  // namespace

std::vector<std::uint64_t> judging_seeds(const ingest::Gate& gate, std::int64_t pairs) {
  return seeds_named(gate, "judge", pairs);
}
std::vector<std::uint64_t> fresh_seeds(const ingest::Gate& gate, std::int64_t pairs) {
  return seeds_named(gate, "fresh", pairs);
}

decide::PreFlight pre_flight(const Prepared& prepared, const Arm& arm) {
  decide::PreFlight out;
  const auto& scenario = *prepared.scenario;
  const auto& costs = *prepared.costs;
  const auto& arrivals = scenario.traffic.arrivals;
  double busy = 0;
  double span = 0;
  double dynamic = 0;
  for (const auto& run : arm.runs) {
    busy += static_cast<double>(run.busy_ns);
    span += static_cast<double>(run.span_ns);
    for (const auto& slice : run.slices) dynamic += static_cast<double>(slice.femtojoules) * 1e-15;
  }
  out.utilization = span > 0 ? busy / span : 0;
  // The largest batch that may form, all padded to the longest compiled sequence: what a mixed burst runs on.
  std::size_t bucket = 0;
  while (bucket + 1 < costs.batch_buckets.size() && costs.batch_buckets[bucket] < scenario.serving.batch_max) ++bucket;
  double longest = 0;
  for (std::size_t m = 0; m < costs.models; ++m) {
    longest = std::max(
        longest,
        static_cast<double>(costs.entries[costs.index(m, bucket, costs.sequence_buckets.size() - 1)].duration.raw()) *
            1e-9);
  }
  out.largest_batch_seconds = longest;
  out.capacity_per_s =
      longest > 0 ? static_cast<double>(std::min(scenario.serving.batch_max, costs.batch_buckets[bucket])) / longest
                  : 0;
  out.peak_utilization = out.capacity_per_s > 0 ? std::max(arrivals.rate, arrivals.peak) / out.capacity_per_s : 0;
  // Busiest steady power: never idle, at the mean dynamic power of busy time.
  const double busy_power =
      costs.idle.raw() + costs.active.raw() + costs.host.raw() + (busy > 0 ? dynamic / (busy * 1e-9) : 0);
  if (scenario.accelerator->cooling) {
    out.junction_celsius = scenario.ambient_celsius + scenario.accelerator->cooling->kelvin_per_watt * busy_power;
    out.junction_limit = scenario.accelerator->cooling->limit_celsius;
  }
  return out;
}

ingest::Value Planner::document(std::uint32_t changes, const std::vector<ingest::Value>& patches) const {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < comparison_.changes.size(); ++i) {
    if ((changes >> i & 1U) != 0) chosen.push_back(i);
  }
  return ingest::apply_changes(comparison_.baseline, comparison_.changes, chosen, patches);
}

Status Planner::prepare_arms() {
  all_ = (1U << comparison_.changes.size()) - 1U;
  PL_TRY(baseline_, engine_.prepare("baseline", comparison_.baseline));
  auto& table = out_.table;
  const auto& gate = baseline_.scenario->gate;
  if (validate::find_metric(baseline_.scenario->metric.name) == nullptr) {
    std::vector<std::string> names;
    for (const auto& row : validate::metrics()) names.emplace_back(row.name);
    const ingest::Value* at = comparison_.baseline.at_path("metric.name");
    return make_error("unknown-name", at == nullptr ? Span{} : at->span,
                      fmt::format("no metric '{}'", baseline_.scenario->metric.name),
                      suggest(baseline_.scenario->metric.name, names));
  }
  PL_TRY(candidate_, engine_.prepare("candidate", document(all_)));
  const std::int64_t pairs = options_.pairs > 0 ? options_.pairs : gate.pairs;
  table.seeds = judging_seeds(gate, pairs);
  table.fresh_seeds = fresh_seeds(gate, pairs);
  table.changes = comparison_.changes;
  table.live = comparison_.live;
  table.baseline_path = comparison_.baseline_path;
  table.candidate_path = comparison_.candidate_path;
  table.pack_path = options_.pack_path;
  table.commands = options_.commands;
  return Done{};
}

Status Planner::run_coalitions() {
  auto& table = out_.table;
  std::vector<Prepared> prepared(std::size_t{1} << comparison_.changes.size());
  prepared.front() = baseline_;
  prepared.back() = candidate_;
  parallel_for(prepared.size(), engine_.threads(), [&](std::size_t mask) {
    if (prepared[mask].scenario) return;
    prepared[mask] =
        engine_.prepare_or_fail(fmt::format("changes {:#b}", mask), document(static_cast<std::uint32_t>(mask)));
  });
  std::vector<Engine::Job> jobs;
  for (const auto& p : prepared) jobs.push_back({&p, {}, table.seeds});
  auto arms = engine_.run(jobs);
  for (std::size_t mask = 0; mask < arms.size(); ++mask)
    table.coalitions.push_back({static_cast<std::uint32_t>(mask), arms[mask]});
  table.baseline = arms.front();
  table.baseline.name = "baseline";
  table.candidate = arms.back();
  table.candidate.name = "candidate";
  table.configurations += static_cast<std::int64_t>(jobs.size());
  table.preflight = pre_flight(baseline_, table.baseline);
  symptom_ = decide::find_symptom(table.baseline, table.candidate);
  return Done{};
}

void Planner::predict_changes() {
  auto& table = out_.table;
  const auto* metric = validate::find_metric(symptom_.metric);
  std::vector<Prepared> alone(comparison_.changes.size());
  std::vector<Engine::Job> jobs;
  std::vector<std::size_t> owners;
  table.predictions.resize(comparison_.changes.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    alone[i] = engine_.prepare_or_fail(comparison_.changes[i].id, document(1U << i));
    if (!alone[i].ok()) {
      table.predictions[i].why = "it cannot be run alone: " + alone[i].failure;
    } else if (alone[i].cost_key == baseline_.cost_key) {
      table.predictions[i].why =
          "it costs no batch differently; its effect is on how batches form, which a recorded histogram cannot predict";
    } else if (alone[i].costs->entries.size() != baseline_.costs->entries.size()) {
      table.predictions[i].why = "it compiles other shapes than the recorded batches have";
    } else {
      owners.push_back(i);
    }
  }
  for (const std::size_t i : owners)
    jobs.push_back({&alone[i], {Replay::Kind::frozen, &baseline_batches_}, replay_seeds_});
  const auto arms = engine_.run(jobs);
  for (std::size_t j = 0; j < arms.size(); ++j) {
    const auto paired = decide::compare(table.baseline, arms[j], *metric, symptom_.slice, 0, 0.05);
    if (paired.valid) table.predictions[owners[j]].change = paired.change;
  }
}

FixContext Planner::fix_context() const {
  FixContext out;
  out.baseline = &comparison_.baseline;
  out.scenario = candidate_.scenario.get();
  out.changes = &comparison_.changes;
  out.guilty = decide::guilty_change(out_.table, symptom_);
  const auto* metric = validate::find_metric(symptom_.metric);
  for (const auto& layer : candidate_.costs->layer_classes) {
    decide::SliceId id = symptom_.slice;
    id.layer_class = layer;
    const double margin = baseline_.scenario->gate.margin(symptom_.metric);
    const auto paired =
        decide::compare(out_.table.baseline, out_.table.candidate, *metric, id, margin, baseline_.scenario->gate.alpha);
    const bool harmed = paired.valid && paired.harm_mean > margin && paired.baseline > 0;
    (harmed ? out.harmed_classes : out.spared_classes).push_back(layer);
  }
  // Only classes with matrix kernels have loop nests to keep a constraint on.
  std::erase_if(out.spared_classes, [&](const std::string& layer) {
    for (const auto& entry : candidate_.costs->entries) {
      for (const auto& cost : entry.layers) {
        if (cost.layer_class == layer && cost.macs > 0) return false;
      }
    }
    return true;
  });
  return out;
}

void Planner::run_fixes() {
  auto& table = out_.table;
  const auto& gate = baseline_.scenario->gate;
  const ingest::Value candidate = document(all_);
  FixContext context = fix_context();
  context.candidate = &candidate;
  std::vector<FixProposal> proposals;
  for (const auto& row : candidate_.scenario->fixes) {
    for (auto& proposal : propose(row, context)) proposals.push_back(std::move(proposal));
  }
  std::vector<Prepared> prepared(proposals.size());
  parallel_for(proposals.size(), engine_.threads(), [&](std::size_t i) {
    prepared[i] = engine_.prepare_or_fail(proposals[i].id, document(all_, {proposals[i].patch}));
  });
  std::string undo_serve;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    if (proposals[i].tier == 2) {
      undo_serve = prepared[i].serve_key;
    }
  }
  std::vector<std::uint64_t> ranking(
      table.seeds.begin(),
      table.seeds.begin() +
          std::min<std::ptrdiff_t>(gate.ranking_pairs, static_cast<std::ptrdiff_t>(replay_seeds_.size())));
  std::vector<Engine::Job> jobs;
  for (const auto& p : prepared) jobs.push_back({&p, {}, ranking});
  auto arms = engine_.run(jobs);
  std::vector<Engine::Job> frozen;
  std::vector<std::size_t> frozen_of;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    if (!prepared[i].ok() || prepared[i].cost_key == candidate_.cost_key ||
        prepared[i].costs->entries.size() != candidate_.costs->entries.size())
      continue;
    frozen.push_back({&prepared[i], {Replay::Kind::frozen, &candidate_batches_}, ranking});
    frozen_of.push_back(i);
  }
  const auto predicted = engine_.run(frozen);
  const auto* metric = validate::find_metric(symptom_.metric);
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    decide::FixTrial trial;
    const auto& p = proposals[i];
    trial.id = p.id;
    trial.kind = p.kind;
    trial.title = p.title;
    trial.hypothesis = p.hypothesis;
    trial.patch = p.patch;
    trial.tier = p.tier;
    for (const auto& key : ingest::patchable_keys()) {
      if (p.path == key.path || p.path.starts_with(std::string(key.path) + ".")) trial.stage = key.stage;
    }
    const auto owner = candidate_.scenario->owners.find(ingest::stage_name(trial.stage));
    if (owner != candidate_.scenario->owners.end()) trial.owner = owner->second;
    trial.ranking = std::move(arms[i]);
    trial.predicted_why =
        "it costs no batch differently; its effect is on how batches form, which a recorded histogram cannot predict";
    table.fixes.push_back(std::move(trial));
  }
  for (std::size_t j = 0; j < frozen_of.size(); ++j) {
    const auto paired = decide::compare(table.candidate, predicted[j], *metric, symptom_.slice, 0, 0.05);
    if (paired.valid) table.fixes[frozen_of[j]].predicted = paired.change;
  }
  // A narrowed change whose batches cost what they cost without the change is the undo in effect: say so.
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    const auto& undo = std::find_if(table.fixes.begin(), table.fixes.end(), [](const auto& f) { return f.tier == 2; });
    if (undo == table.fixes.end() || table.fixes[i].tier >= 2 || !prepared[i].ok() || !undo->ranking.ok()) continue;
    const auto& a = *prepared[i].costs;
    const auto& b = *undo->ranking.costs;
    bool same = a.entries.size() == b.entries.size() && prepared[i].serve_key == undo_serve &&
                a.clock.frequency == b.clock.frequency;
    for (std::size_t e = 0; same && e < a.entries.size(); ++e) {
      same = a.entries[e].cycles == b.entries[e].cycles && a.entries[e].femtojoules == b.entries[e].femtojoules;
      for (std::size_t l = 0; same && l < a.entries[e].layers.size(); ++l)
        same = a.entries[e].layers[l].movement == b.entries[e].layers[l].movement;
    }
    table.fixes[i].same_as_undo = same;
  }
  table.configurations += static_cast<std::int64_t>(jobs.size());
}

void Planner::run_finalists() {
  auto& table = out_.table;
  const auto chosen = decide::finalists(table, symptom_, 3);
  std::vector<Prepared> prepared = {baseline_, candidate_};
  for (const std::size_t i : chosen)
    prepared.push_back(engine_.prepare_or_fail(table.fixes[i].id, document(all_, {table.fixes[i].patch})));
  std::vector<Engine::Job> jobs;
  for (const auto& p : prepared) jobs.push_back({&p, {}, table.fresh_seeds});
  auto arms = engine_.run(jobs);
  table.fresh_baseline = std::move(arms[0]);
  table.fresh_candidate = std::move(arms[1]);
  for (std::size_t j = 0; j < chosen.size(); ++j) {
    auto& trial = table.fixes[chosen[j]];
    trial.judged = std::move(arms[j + 2]);
    // Rollback: from candidate + fix back to the baseline, proven by the hash of what results.
    const ingest::Value fixed = document(all_, {trial.patch});
    trial.rollback = difference(fixed, comparison_.baseline);
    const auto resolved = engine_.library().resolve(ingest::merge_patch(fixed, trial.rollback));
    if (resolved.ok()) trial.rollback_hash = sha256(ingest::canonical_text(*resolved));
  }
  table.configurations += static_cast<std::int64_t>(jobs.size());
}

void Planner::record_arms() {
  const auto record = [&](const Prepared& prepared) {
    Recording out;
    out.prepared = prepared;
    out.trace = engine_.arrivals(*prepared.scenario, out_.table.seeds.front());
    out.run =
        serve::serve(*prepared.costs, prepared.scenario->serving, prepared.scenario->traffic.profiles, *out.trace);
    return out;
  };
  out_.baseline = record(baseline_);
  out_.candidate = record(candidate_);
  out_.table.timeline = !out_.baseline.run.batches.empty() && !out_.candidate.run.batches.empty();
}

Result<DecisionStudy> Planner::run() {
  PL_TRY_STATUS(prepare_arms());
  PL_TRY_STATUS(run_coalitions());
  auto& table = out_.table;
  const auto replays =
      std::min<std::size_t>(static_cast<std::size_t>(baseline_.scenario->gate.replay_pairs), table.seeds.size());
  replay_seeds_.assign(table.seeds.begin(), table.seeds.begin() + static_cast<std::ptrdiff_t>(replays));
  baseline_batches_ = engine_.record(baseline_, replay_seeds_);
  candidate_batches_ = engine_.record(candidate_, replay_seeds_);
  predict_changes();
  if (symptom_.harmful) {
    run_reliefs();
    run_fixes();
    run_finalists();
  }
  record_arms();
  out_.baseline_document = baseline_.scenario->resolved;
  out_.candidate_document = candidate_.scenario->resolved;
  table.requests_simulated = engine_.requests_simulated();
  return std::move(out_);
}

void keep_fixed_document(DecisionStudy& study, const decide::Decision& decision) {
  if (!decision.fix) return;
  for (const auto& trial : study.table.fixes) {
    if (trial.id == decision.fix->id && trial.ranking.scenario) study.fixed_document = trial.ranking.scenario->resolved;
  }
}

Result<DecisionStudy> study_decision(const ingest::Comparison& comparison, Engine& engine,
                                     const StudyOptions& options) {
  return Planner(comparison, engine, options).run();
}

}  // namespace plumbline::study
