#pragma once
// YAML as a tree of values that remember where they stand. Scalars keep their text and are converted once, by a reader.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/source.h"

namespace plumbline::ingest {

enum class ValueKind { null, scalar, list, map };

struct Value;

struct Entry;

/// One YAML node. Maps keep document order; keys are unique.
struct Value {
  ValueKind kind = ValueKind::null;
  std::string text;     ///< scalars
  bool quoted = false;  ///< the scalar was quoted, so it is text whatever it looks like
  bool remove = false;  ///< `!delete`, or null, in a patch
  Span span;
  std::vector<Value> items;    ///< lists
  std::vector<Entry> entries;  ///< maps

  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] Value* find(std::string_view key);
  [[nodiscard]] const Entry* find_entry(std::string_view key) const;
  /// Value at a dotted path of map keys ("serving.batch.max"); nullptr when absent.
  [[nodiscard]] const Value* at_path(std::string_view path) const;
};

struct Entry {
  std::string key;
  Span span;  ///< of the key
  Value value;
};

/// Limits of the reader: bytes of text, nesting and number of values.
inline constexpr std::size_t kMaxYamlBytes = 4U << 20U;
inline constexpr int kMaxYamlDepth = 64;
inline constexpr std::size_t kMaxYamlValues = 200000;
inline constexpr std::size_t kMaxYamlKeys = 4096;  ///< of one map

/// Unknown keys of one map that are reported one by one.
inline constexpr std::size_t kMostUnknownKeys = 20;

/// Parses one YAML document. Errors: yaml-syntax, yaml-alias (anchors, aliases, merge keys), duplicate-key, too-large,
/// empty-file, wrong-type (not a map at the top).
Result<Value> parse_yaml(SourceRef source);

/// JSON Merge Patch (RFC 7386) on maps: lists are replaced whole, null or `!delete` removes. `patch` keeps its spans.
[[nodiscard]] Value merge_patch(const Value& target, const Value& patch);

/// Canonical text: JSON with sorted keys and no spaces; equal trees give equal bytes. Spans do not count.
[[nodiscard]] std::string canonical_text(const Value& value);

/// Compact flow-style YAML of a value, for showing patches to people.
[[nodiscard]] std::string flow_text(const Value& value);

/// Dotted paths of every leaf (scalar, list or removal) of a patch, with the value each sets.
struct PatchLeaf {
  std::string path;
  const Value* value = nullptr;
  Span span;
};
[[nodiscard]] std::vector<PatchLeaf> patch_leaves(const Value& patch);

/// Plain values built by code (fixes, defaults): no position.
[[nodiscard]] Value make_scalar(std::string text);
[[nodiscard]] Value make_map(std::vector<std::pair<std::string, Value>> entries);
[[nodiscard]] Value make_list(std::vector<Value> items);
/// {a: {b: value}} from "a.b".
[[nodiscard]] Value make_at_path(std::string_view path, Value value);

/// Reads a map key by key: what is not consumed is an unknown key, reported by finish() with a suggestion.
class MapReader {
 public:
  /// Reports wrong-type into `errors` when `value` is no map. `what` names the map in messages ("the serving section").
  MapReader(const Value& value, std::string what, Diagnostics& errors);

  /// The value of an optional key; nullptr when absent (or null).
  const Value* find(std::string_view key);
  /// The value of a required key; nullptr, with a diagnostic, when absent.
  const Value* require(std::string_view key);
  /// Reports keys that were never asked for: the first kMostUnknownKeys, and how many more there are.
  void finish();
  [[nodiscard]] const Span& span() const { return value_->span; }
  [[nodiscard]] Diagnostics& errors() { return *errors_; }

 private:
  const Value* value_;
  std::string what_;
  Diagnostics* errors_;
  std::vector<std::string> asked_;
  bool usable_;
};

// Scalar readers. Each reports into `errors` and returns nothing when the value is not of its kind.

/// Text, quoted or plain; a plain scalar that YAML readers disagree about (NO, 1e3, 012 …) is a yaml-trap.
std::optional<std::string> read_text(const Value& value, Diagnostics& errors);
/// One of `choices`; `off` and the like are legal where they are a choice.
std::optional<std::string> read_choice(const Value& value, const std::vector<std::string>& choices,
                                       Diagnostics& errors);
/// A decimal whole number in [low, high], without unit.
std::optional<std::int64_t> read_integer(const Value& value, std::int64_t low, std::int64_t high, Diagnostics& errors);
/// A decimal number in [low, high], without unit.
std::optional<double> read_number(const Value& value, double low, double high, Diagnostics& errors);
/// true or false.
std::optional<bool> read_flag(const Value& value, Diagnostics& errors);
/// Reports wrong-type unless `value` is a list.
bool expect_list(const Value& value, std::string_view what, Diagnostics& errors);

}  // namespace plumbline::ingest
