#pragma once
// The counting engine: prepared once for a kernel and a hierarchy, then evaluated on many mappings without allocating
// (imperfect factors on a sliding window excepted). docs/scheduling.md derives the sums.
#include <array>
#include <cstdint>
#include <string>

#include "core/result.h"
#include "lower/einsum.h"
#include "schedule/counts.h"
#include "schedule/hierarchy.h"
#include "schedule/mapping.h"
#include "schedule/nest.h"
#include "schedule/window.h"

namespace plumbline::schedule {

/// An axis of several dimensions.
struct WindowAxis {
  int terms = 0;
  std::array<int, lower::kMaxDims> dims{};
  std::array<std::int64_t, lower::kMaxDims> coefficients{};
  Window pair;  ///< valid for two terms
};

/// Which dimensions move an operand, and how.
struct Projection {
  std::uint32_t relevant = 0;  ///< dimensions that appear in an axis
  std::uint32_t flat = 0;      ///< relevant, and alone on their axis: tiles either coincide or are disjoint
  int windows = 0;
  std::array<WindowAxis, lower::kMaxDims> axes{};
  bool pairs_only = true;  ///< no axis of more than two terms
  int side_dim = -1;       ///< dimension along which groups of side data run
  std::int64_t words = 1;  ///< distinct elements, when every axis is flat
  int flat_count = 0;
  std::array<int, lower::kMaxDims> flat_dims{};  ///< the dimensions of `flat`
};

/// Words between a keeper and the next inner one, summed over all steps and instances.
struct Transfer {
  std::int64_t merged = 0;           ///< at the outer end: a multicast or a spatial reduction counts once
  std::int64_t delivered = 0;        ///< at the inner end: every instance counts
  std::int64_t first_merged = 0;     ///< the part of `merged` that meets a word for the first time
  std::int64_t first_delivered = 0;  ///< the same of `delivered`
};

/// What one operand does at one level; fields as in OperandCounts.
struct OperandTally {
  int inner = 0;  ///< the next inner keeper; the number of levels stands for the MACs
  std::int64_t tile = 0, reads = 0, fills = 0, updates = 0;
  std::int64_t read_bits = 0, write_bits = 0;
  Transfer down;  ///< to or from the next inner keeper
};

struct Tally {
  /// [level][operand]; entries of operands not kept at a level are stale.
  std::array<std::array<OperandTally, kMaxOperands>, kMaxLevels> levels;
  std::array<std::int64_t, kMaxLevels> used{};  ///< instances that ever hold something
  std::int64_t macs = 0;
  std::int64_t compute_steps = 0;
  std::int64_t cycles_overlapped = 0;
  int binding_level = -1;  ///< the level whose bandwidth sets cycles_overlapped; -1 = compute
};

class Evaluator {
 public:
  /// Errors: bad-value (sizes, axes, meshes, bandwidths that make no sense), unsupported (more than 4 operands, a
  /// dimension on two axes of one operand, outputs on a window axis), overflow (more than 2^62 MACs).
  static Result<Evaluator> prepare(const lower::Einsum& einsum, const Hierarchy& hierarchy);

  /// The mapping as a Nest, its faults of shape, cover and fan-out found (not those of capacity).
  Verdict flatten_mapping(const Mapping& mapping, Nest& nest) const;

  /// Exact counts of one mapping; `tally` is meaningful only when the verdict is ok.
  Verdict evaluate(const Mapping& mapping, Tally& tally) const;

  /// Words between level `outer` and level `inner` (levels() for the MACs) as if `operand` were kept at both and at
  /// nothing between: what passes a link in the middle of a bypass.
  Result<Transfer> transfer_between(const Mapping& mapping, int outer, int inner, std::size_t operand) const;

  /// The mapping's first fault in words.
  [[nodiscard]] Diagnostic explain(const Verdict& verdict) const;

  [[nodiscard]] const lower::Einsum& einsum() const { return einsum_; }
  [[nodiscard]] const Hierarchy& hierarchy() const { return hierarchy_; }
  [[nodiscard]] const Projection& projection(std::size_t operand) const { return projections_[operand]; }
  [[nodiscard]] int levels() const { return static_cast<int>(hierarchy_.levels.size()); }

 private:
  Evaluator() = default;
  Status prepare_projections();
  Status prepare_fan_out();
  void count_flat(const Nest& nest, const Mapping& mapping, Tally& tally) const;
  Verdict count_bits(const Nest& nest, const Mapping& mapping, Tally& tally) const;
  bool add_side_data(const Nest& nest, int level, std::size_t operand, OperandTally& here, __int128& stored) const;
  [[nodiscard]] std::int64_t tile_words(const Nest& nest, int level, std::size_t operand) const;
  bool transfer(const Nest& nest, int outer, int inner, std::size_t operand, Transfer& out) const;
  Verdict count_operand(const Nest& nest, const Mapping& mapping, std::size_t operand, Tally& tally) const;
  void find_time(const Mapping& mapping, const Nest& nest, Tally& tally) const;
  [[nodiscard]] std::int64_t stored_bits(const Tally& tally, const Nest& nest, int level, std::size_t operand) const;

  lower::Einsum einsum_;
  Hierarchy hierarchy_;
  std::array<Projection, kMaxOperands> projections_{};
  FanOut fan_out_;
  std::int64_t macs_ = 0;
  bool bandwidths_ = false;
};

}  // namespace plumbline::schedule
