#pragma once
// The decision: what report/ prints and the pack keeps. Every number is derived from the evidence table.
#include <optional>
#include <string>
#include <vector>

#include "decide/evidence.h"
#include "decide/judge.h"

namespace plumbline::decide {

enum class Verdict : std::uint8_t { release, release_with_guardrails, hold, roll_back };
[[nodiscard]] const char* verdict_name(Verdict verdict);

struct Quality {
  std::string how;  ///< identity | measured | absent
  std::string detail;
  bool satisfied = false;
  std::string proof;  ///< SHA-256 of what makes it identical; empty otherwise
};

struct Share {
  std::string change;             ///< change id
  double value = 0;               ///< Shapley value, in the metric's unit
  std::optional<double> percent;  ///< of the total, where the total exceeds noise
  double ci_low = 0;              ///< of the value, in the metric's unit
  double ci_high = 0;
};

struct Interaction {
  std::vector<std::string> changes;
  double value = 0;  ///< Shapley interaction index, in the metric's unit
};

/// Attribution of one metric on one slice.
struct Attribution {
  std::string metric;
  SliceId slice;
  double total = 0;
  bool exact = true;
  std::vector<Share> shares;
  std::vector<Interaction> interactions;
  std::vector<std::string> no_value;  ///< coalitions that cannot be scheduled
};

struct ReliefResult {
  std::string resource;
  ReliefKind kind = ReliefKind::rate;
  bool remapped = false;
  bool frozen = false;
  bool restores_change = false;
  std::string bottleneck;
  std::optional<double> gap_closed_percent;  ///< nothing when it has no value
  double ci_low = 0;
  double ci_high = 0;
  std::string why;  ///< why there is no value
};

struct Mechanism {
  bool identified = false;
  std::string resource;  ///< what closes the gap
  std::string sentence;  ///< in plain words
  std::vector<ReliefResult> relief;
};

struct Bottleneck {
  std::string name = "not_identified";
  double confidence = 0;  ///< share of resamples in which its relief ranks first
  std::string artifact;
};

struct Hypothesis {
  std::string claim;
  std::string change;
  std::optional<double> predicted;  ///< change of the symptom metric, in its unit
  std::string predicted_why;
  std::optional<double> measured;
  std::string verdict;  ///< confirmed | refuted | not predicted
};

struct EvidenceRow {
  std::string evidence;
  bool present = false;
  std::string shows;
  std::string does_not_prove;
  std::string next_action;  ///< a command
  bool ran = false;
};

struct BlastRow {
  SliceJudgement judgement;  ///< of candidate + fix against the baseline
};

struct Fix {
  std::string id;
  std::string kind;
  std::string title;
  std::string owner;
  std::string stage;
  ingest::Value patch;
  Verdict verdict = Verdict::hold;
  std::vector<std::string> reasons;
  double recovers_percent = 0;
  double ci_low = 0;
  double ci_high = 0;
  std::vector<BlastRow> blast_radius;
  std::vector<Limit> sla;
  ingest::Value rollback_patch;
  bool rollback_proven = false;
  std::string rollback_hash;
  ingest::Value fallback;  ///< patch that undoes the guilty change
  bool is_fallback = false;
  std::string note;
};

struct RejectedFix {
  std::string id;
  std::string kind;
  ingest::Value patch;
  std::string why;
};

struct Guardrail {
  std::string metric;
  std::string threshold;
  std::string window;
  std::string action;
};

struct Guard {
  std::string name;
  bool holds = true;
  std::string detail;
  bool caps = true;  ///< when it does not hold the verdict is at best hold
};

struct Triage {
  double baseline_occupancy = 0;  ///< useful share of busy cycles
  double candidate_occupancy = 0;
  double baseline_stall = 0;  ///< memory-stall share of busy cycles
  double candidate_stall = 0;
  std::string quadrant;
  std::string first;  ///< what to try first
};

struct Decision {
  Verdict verdict = Verdict::hold;
  std::vector<std::string> reasons;
  std::string metric;
  std::string unit;
  std::string better;
  Paired headline;  ///< the metric over all requests
  double margin = 0;
  std::vector<Limit> sla_baseline;
  std::vector<Limit> sla_candidate;
  Quality quality;
  std::vector<SliceJudgement> slices;
  std::vector<SliceJudgement> advisory;  ///< other metrics over each load
  Symptom symptom;
  std::optional<Paired> symptom_paired;
  std::string first_failing_stage = "none";
  std::string first_failing_change;
  std::string owner;
  std::vector<std::string> feedback;
  Triage triage;
  Bottleneck bottleneck;
  Mechanism mechanism;
  Attribution attribution;  ///< of the headline
  std::optional<Attribution> symptom_attribution;
  std::vector<Hypothesis> hypotheses;
  std::vector<EvidenceRow> evidence_matrix;
  std::optional<Fix> fix;
  std::string fix_why;  ///< why there is none
  std::vector<RejectedFix> rejected_fixes;
  std::vector<Guardrail> rollout_guardrails;
  std::vector<Guard> guards;
  std::vector<std::string> open_items;
  PreFlight preflight;
  std::uint64_t seed = 0;
  std::int64_t configurations = 0;
  std::int64_t requests_simulated = 0;
};

/// The decision, a pure function of the evidence.
[[nodiscard]] Decision decide(const EvidenceTable& table);

// Steps, shared with the study that plans what to measure next.

/// The worst harmed gated slice of the scenario's metric; else a missed limit; else nothing harmful.
[[nodiscard]] Symptom find_symptom(const Arm& baseline, const Arm& candidate);
/// Shapley values of the changes for a metric on a slice.
[[nodiscard]] Attribution attribute(const EvidenceTable& table, const validate::MetricRow& metric,
                                    const SliceId& slice);
/// Index of the change with the largest share of the harm; nothing when no change harms.
[[nodiscard]] std::optional<std::size_t> guilty_change(const EvidenceTable& table, const Symptom& symptom);
/// How much of the gap each relief closes.
[[nodiscard]] std::vector<ReliefResult> measure_reliefs(const EvidenceTable& table, const Symptom& symptom);
/// The verdict of an arm against the baseline: used for the candidate and for candidate + fix.
struct Judgement {
  Verdict verdict = Verdict::hold;
  std::vector<std::string> reasons;
  std::vector<SliceJudgement> slices;
  std::vector<SliceJudgement> advisory;
  std::vector<Limit> sla_baseline;
  std::vector<Limit> sla;
  Quality quality;
};
[[nodiscard]] Judgement judge_arm(const Arm& baseline, const Arm& arm, bool live, const std::vector<Guard>& guards);
/// Share of the symptom's regression that an arm recovers, per seed, as mean and interval in percent.
struct Recovery {
  double percent = 0;
  double ci_low = 0;
  double ci_high = 0;
  bool valid = false;
};
[[nodiscard]] Recovery recovery(const Arm& baseline, const Arm& candidate, const Arm& fixed, const Symptom& symptom);
/// Ranked indices of fixes worth judging on fresh seeds, best first, at most `most`.
[[nodiscard]] std::vector<std::size_t> finalists(const EvidenceTable& table, const Symptom& symptom, std::size_t most);
[[nodiscard]] std::vector<Guard> guards_of(const EvidenceTable& table);

}  // namespace plumbline::decide
