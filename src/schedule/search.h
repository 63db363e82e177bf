#pragma once
// The best mapping of one kernel with proof: a branch and bound over every perfect factor, loop order and bypass whose
// lower bounds are stated beside the answer. docs/scheduling.md derives the bounds.
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "lower/einsum.h"
#include "schedule/counts.h"
#include "schedule/evaluator.h"
#include "schedule/hierarchy.h"
#include "schedule/mapping.h"

namespace plumbline::schedule {

/// Energy of one bit read or written at each level, and of one multiply-accumulate, all in one unit (say femtojoules).
struct EnergyRates {
  std::vector<double> read;   ///< by level
  std::vector<double> write;  ///< by level
  double mac = 0;
};

/// What is minimized. `off_array_weight_bits`: bits of operands with the role weights that the level outside the array
/// reads.
enum class Objective : std::uint8_t { energy, latency, energy_delay, off_array_weight_bits };

/// A limit on one factor; `level` counts from the outermost. `fewest` = `most` fixes it.
struct FactorBound {
  int level = 0;
  int dim = 0;
  bool spatial = false;
  std::int64_t fewest = 1;
  std::int64_t most = INT64_MAX;
};

struct SearchOptions {
  /// In order of importance, none twice: ties of the first are broken by the second, and so on. Of one alone, by
  /// energy.
  std::vector<Objective> objectives{Objective::energy_delay};
  std::vector<std::uint32_t> must_keep;    ///< by level, bit i: operand i; empty = no demand
  std::vector<std::uint32_t> must_bypass;  ///< likewise
  std::vector<FactorBound> factors;
  /// By level: temporal loops over these dimensions stand innermost in this order, outermost first; others outside of
  /// them as they like. Empty = free.
  std::vector<std::vector<int>> orders;
  std::uint32_t along_x = ~0U;  ///< dimensions that may spread along x, one bit each
  std::uint32_t along_y = ~0U;  ///< likewise along y
  bool imperfect = false;       ///< factors need not divide (kernels without sliding windows)
  bool one_register = false;    ///< the last level holds one element of one operand, so no loop can stand below it
  std::int64_t most_evaluations = INT64_MAX;  ///< of complete mappings; beyond it the gap is reported as it stands
  std::int64_t most_chains = 25'000;          ///< ways to factor one dimension that are listed; more form classes
  std::int64_t most_work = 600'000'000;       ///< likewise of costs and pairs of factors looked at: some seconds
};

struct Certificate {
  double best = 0;                   ///< of the first objective
  double lower_bound = 0;            ///< no mapping in scope is below
  double gap = 0;                    ///< best / lower_bound − 1 of the first objective whose bound is open
  std::vector<double> bests;         ///< of every objective in order
  std::vector<double> lower_bounds;  ///< no mapping in scope is below, compared as a dictionary compares words
  std::string objective;
  std::vector<std::string> objectives;
  std::string covered;         ///< which mappings the bound speaks of
  std::string certified_on;    ///< on which counts it was proven
  std::int64_t nodes = 0;      ///< parts of the space that were bounded
  std::int64_t opened = 0;     ///< of these, looked into
  std::int64_t evaluated = 0;  ///< complete mappings counted exactly
};

struct SearchResult {
  Mapping mapping;
  AccessCounts counts;
  double energy = 0;
  Certificate certificate;
};

/// Whether values are below others by more than rounding, compared in order.
[[nodiscard]] bool clearly_better(const std::vector<double>& a, const std::vector<double>& b);
/// Fills best, lower_bound and gap from the lists; the gap is of the first objective that is open.
void state_gap(Certificate& certificate);

/// Energy of counted accesses, in the unit of `rates`.
[[nodiscard]] double energy_of(const AccessCounts& counts, const EnergyRates& rates);
[[nodiscard]] double energy_of(const Mapping& mapping, const Tally& tally, std::size_t operands,
                               const EnergyRates& rates);

/// Hierarchies: two to four levels of one instance each but the last; kernels of two inputs
/// and an output. Errors: unsupported (anything else), does-not-fit (no mapping meets the limits), and those of
/// Evaluator::prepare.
Result<SearchResult> search_mapping(const lower::Einsum& einsum, const Hierarchy& hierarchy, const EnergyRates& rates,
                                    const SearchOptions& options);

}  // namespace plumbline::schedule
