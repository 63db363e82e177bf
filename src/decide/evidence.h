#pragma once
// The evidence table: what the study measured, by arm and seed. decide() is a pure function of it.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/cost_table.h"
#include "ingest/scenario.h"
#include "validate/summary.h"

namespace plumbline::decide {

/// One configuration, measured on a list of seeds.
struct Arm {
  std::string name;
  std::string hash;  ///< SHA-256 of the canonical resolved scenario
  std::shared_ptr<const ingest::Scenario> scenario;
  std::shared_ptr<const execute::CostTable> costs;
  std::vector<validate::Summary> runs;  ///< by seed; arms compared with each other share the seeds
  std::string numerics_hash;            ///< equal hashes: same weights, formats and provably same sums
  std::int64_t longest_reduction = 0;   ///< terms of the longest sum
  bool exact = false;                   ///< integer sums that cannot wrap at that length
  bool has_weights = false;             ///< every model carries trained values
  std::string failure;                  ///< why it has no value (it cannot be scheduled); empty when it has
  [[nodiscard]] bool ok() const { return failure.empty() && !runs.empty(); }
};

/// A subset of the candidate's changes; bit i of `changes` is change i.
struct Coalition {
  std::uint32_t changes = 0;
  Arm arm;
};

enum class ReliefKind : std::uint8_t { rate, capacity, constraint, policy };
[[nodiscard]] const char* relief_kind_name(ReliefKind kind);

/// One resource relieved in both arms.
struct Relief {
  std::string resource;  ///< "accumulator capacity", "sram read", "batches" …
  ReliefKind kind = ReliefKind::rate;
  bool remapped = false;
  bool frozen = false;           ///< replayed with each arm's own recorded batches
  bool restores_change = false;  ///< it merely restores a changed key: attribution, no mechanism
  std::string bottleneck;        ///< class it stands for
  Arm baseline;
  Arm candidate;
};

/// A tried fix.
struct FixTrial {
  std::string id;
  std::string kind;
  std::string title;
  std::string hypothesis;
  std::string owner;
  ingest::Stage stage = ingest::Stage::serve;
  ingest::Value patch;
  int tier = 0;                     ///< 0 leaves the release's changes alone, 1 narrows the guilty one, 2 undoes it
  bool same_as_undo = false;        ///< its cost table and serving equal those without the guilty change
  std::optional<double> predicted;  ///< symptom metric from the cost table over the candidate's recorded batches
  std::string predicted_why;        ///< why there is no prediction
  Arm ranking;                      ///< on the ranking seeds
  Arm judged;                       ///< finalists only, on fresh seeds
  std::string rollback_hash;        ///< of candidate + fix with the rollback applied
  ingest::Value rollback;
};

/// A change's expected effect, from the cost table over the baseline's recorded batches.
struct Prediction {
  std::optional<double> change;  ///< of the symptom metric, in its unit
  std::string why;
};

struct PreFlight {
  double capacity_per_s = 0;         ///< requests a second in full batches of the traffic's mix, largest padded shape
  double utilization = 0;            ///< busy share of the baseline's span
  double peak_utilization = 0;       ///< offered peak over capacity
  double largest_batch_seconds = 0;  ///< service time of the largest batch
  double junction_celsius = 0;       ///< steady state at the busiest power
  std::optional<double> junction_limit;
};

struct CommandRun {
  std::string command;
  std::string output;  ///< file in the pack
};

struct EvidenceTable {
  std::vector<ingest::Change> changes;
  bool live = false;
  std::string baseline_path;
  std::string candidate_path;
  std::string pack_path;  ///< as given with -o; empty = no pack
  std::vector<std::uint64_t> seeds;
  std::vector<std::uint64_t> fresh_seeds;
  Arm baseline;
  Arm candidate;
  std::vector<Coalition> coalitions;  ///< includes the empty and the full one; exact when all 2^k are there
  bool exact_coalitions = true;
  std::vector<Relief> reliefs;
  std::vector<FixTrial> fixes;
  std::vector<Prediction> predictions;  ///< parallel to changes
  Arm fresh_baseline;                   ///< on the fresh seeds, for finalists
  Arm fresh_candidate;
  PreFlight preflight;
  bool timeline = false;                ///< a recorded run with batches and cycle classes
  std::vector<std::string> open_items;  ///< unmodelled things that cap the verdict
  std::vector<CommandRun> commands;     ///< commands whose outputs the pack holds
  std::int64_t configurations = 0;
  std::int64_t requests_simulated = 0;
};

}  // namespace plumbline::decide
