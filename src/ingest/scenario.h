#pragma once
// A scenario: everything one arm of a decision needs, resolved from YAML and the catalogue.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "core/result.h"
#include "ingest/accelerator.h"
#include "ingest/document.h"
#include "ingest/graph.h"

namespace plumbline::ingest {

struct ModelUse {
  std::string name;
  std::string family;
  double share = 1.0;  ///< of requests
  std::shared_ptr<const Graph> graph;
  std::string batch_symbol = "batch";        ///< the graph's symbol that a batch bucket binds
  std::string sequence_symbol = "sequence";  ///< empty: the model has no sequence dimension
  Bindings bind;                             ///< further symbols the user bound
  Span span;
};

/// Compiled shapes; actual shapes are padded up into them.
struct Buckets {
  std::vector<std::int64_t> batch;     ///< ascending
  std::vector<std::int64_t> sequence;  ///< ascending; empty when no model has a sequence
};

/// One row of compile.constraints: a restriction on the loop nests of the kernels it matches.
struct ConstraintRow {
  std::string kernels = "*";       ///< glob over layer class or kernel name
  std::string operation;           ///< "gemm" or "conv": only kernels of that iteration space; empty = any
  std::string level;               ///< storage level
  std::optional<std::string> dim;  ///< with factor
  std::optional<std::int64_t> factor_min;
  std::optional<std::int64_t> factor_max;
  std::vector<std::string> order;  ///< loop order at the level, outermost first
  std::optional<std::string> spatial_x;
  std::optional<std::string> spatial_y;
  std::vector<std::string> keep;
  std::vector<std::string> bypass;
  Span span;
  std::string text;  ///< as written, for messages and ids
};

struct CompileOptions {
  Buckets shapes;
  std::string dataflow = "auto";                         ///< a name in catalog/dataflows, or auto
  std::map<std::string, std::string> dataflow_by_class;  ///< layer class → dataflow
  std::map<std::string, Span> dataflow_class_at;         ///< layer class → where it was named
  std::string objective = "edp";
  std::vector<std::string> objective_then;  ///< what decides among equals, in order
  std::string search = "simple";            ///< simple | certified: a few tilings, or the best mapping with proof
  std::vector<ConstraintRow> constraints;
  bool fuse_epilogue = false;
  bool fuse_attention = false;
  bool fuse_in_place = false;
  bool fuse_chains = false;
  std::string residency = "auto";  ///< auto | none: weights pinned on chip across batches
  std::string sparsity = "off";
};

/// A dataflow: named constraint rows (catalog/dataflows/*.yaml).
struct Dataflow {
  std::string name;
  std::string title;
  std::string stationary;  ///< operand the array holds: weights | inputs | outputs
  std::vector<ConstraintRow> constraints;
};

struct Policy {
  std::string name;
  std::string inputs;  ///< element format of weights and activations into the array
  std::string weights;
  std::string accumulate;
  std::string outputs;
  bool exact = false;  ///< exact integer accumulation: any reduction order gives the same bits
  Span inputs_at{};    ///< where each format was written
  Span weights_at{};
  Span accumulate_at{};
  Span outputs_at{};
};

struct Profile {
  std::string name;  ///< "128"
  std::int64_t sequence = 0;
  double share = 1.0;
};

enum class ArrivalKind { poisson, burst, constant };

struct Arrivals {
  ArrivalKind kind = ArrivalKind::poisson;
  double rate = 0;    ///< per second; the base rate of bursts
  double peak = 0;    ///< per second, inside a burst
  Seconds every{0};   ///< burst period
  Seconds length{0};  ///< burst length; a burst is the last `length` of each period
};

struct Traffic {
  std::vector<Profile> profiles;
  Arrivals arrivals;
  Seconds duration{0};
  std::string source;  ///< where the mix was observed; empty = synthetic
};

enum class Grouping { mixed, by_bucket };

struct Serving {
  std::int64_t batch_max = 1;
  Nanoseconds wait;
  Grouping group = Grouping::mixed;
  std::int64_t queue = 0;      ///< waiting requests admitted at most
  std::optional<Hertz> clock;  ///< absent = nominal
};

struct Targets {
  std::optional<Nanoseconds> p95;
  std::optional<Nanoseconds> p99;
  std::optional<double> loss;              ///< ratio
  bool quality_identical = false;          ///< quality: {against_baseline: identical}
  std::optional<double> quality_absolute;  ///< needs measured weights
};

struct Metric {
  std::string name;
  bool lower_is_better = true;
};

struct Gate {
  std::string name;
  std::int64_t pairs = 0;                 ///< replications that judge
  std::int64_t replay_pairs = 0;          ///< of them, replications on which resources are relieved
  std::int64_t ranking_pairs = 0;         ///< of them, replications that only rank
  std::int64_t min_slice_requests = 0;    ///< per arm over all pairs; a thinner slice cannot pass alone
  double alpha = 0.05;                    ///< one-sided harm and the bounds
  std::map<std::string, double> margins;  ///< metric → relative margin
  double default_margin = 0.02;
  double recovery = 0.8;  ///< share of the regression a fix must recover
  double closure = 0.8;   ///< share of the gap a relief must close to be the mechanism
  std::int64_t resamples = 1000;
  std::uint64_t seed = 1;
  std::vector<std::string> required_evidence;
  [[nodiscard]] double margin(const std::string& metric) const;
};

/// A kind of fix to try (catalog/fixes/*.yaml): which key it sets, and the rule that makes the values.
struct FixRow {
  std::string id;
  std::string kind;
  std::string title;
  std::string hypothesis;
  std::string set;   ///< dotted key
  std::string rule;  ///< a row of study's table of value rules
  Value value;       ///< for the rule "value"
  double times = 1;  ///< for the rule "scale"
  Span span;
};

struct Scenario {
  std::string name;
  std::vector<ModelUse> models;
  std::shared_ptr<const Accelerator> accelerator;
  CompileOptions compile;
  std::map<std::string, Dataflow> dataflows;  ///< every dataflow that may be chosen
  Policy precision;
  Traffic traffic;
  Serving serving;
  double ambient_celsius = 25;
  Targets targets;
  Metric metric;
  std::map<std::string, std::string> owners;  ///< stage → team
  Gate gate;
  std::vector<FixRow> fixes;
  Value resolved;  ///< the document after all changes, defaults merged: what canonical_text and the pack hold
};

/// Reads a self-contained document (Library::resolve). Errors: every unknown key, wrong unit, contradiction, with
/// spans.
class Library;
Result<Scenario> read_scenario(const Value& resolved, Library& library);

/// The pipeline stage a change belongs to, by the key it patches.
enum class Stage { ingest, lower, schedule, execute, serve };
[[nodiscard]] std::string stage_name(Stage stage);
inline constexpr int kStageCount = 5;

struct Change {
  std::string id;
  std::string owner;
  std::string reason;
  Stage stage = Stage::serve;
  Value patch;
  Span span;
};

/// Patchable keys of a scenario and the stage each belongs to; unlisted keys cannot be patched.
struct PatchableKey {
  std::string_view path;
  Stage stage;
};
[[nodiscard]] const std::vector<PatchableKey>& patchable_keys();

/// Baseline and candidate documents, the candidate as changes of the baseline.
struct Comparison {
  Value baseline;  ///< resolved document
  std::vector<Change> changes;
  bool live = false;          ///< state: live — only then can the verdict be roll_back
  std::string baseline_path;  ///< as written
  std::string candidate_path;
  std::string candidate_name;
};

/// Reads both sides; the candidate is `base:` + `changes:`, and `base` must be the baseline that was given. Errors:
/// duplicate-id, patch-target (unknown or unpatchable key, stages mixed, two changes of one path), …
Result<Comparison> read_comparison(const std::string& baseline_path, const std::string& candidate_path,
                                   Library& library);

/// The baseline document with the changes (by index, in order) and then the fix patches applied.
[[nodiscard]] Value apply_changes(const Value& baseline, const std::vector<Change>& changes,
                                  const std::vector<std::size_t>& chosen, const std::vector<Value>& patches);

}  // namespace plumbline::ingest
