#pragma once
// How K products become one result: the accumulator, the order, and the partial sums. All of it is data, so that the
// order a mapping states and a device's habits are written the same way.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "execute/numerics/format.h"
#include "execute/numerics/tensor_core.h"

namespace plumbline::numerics {

/// rnd is the accumulator's rounding; every sum starts from +0 or from the addend c.
enum class Reduction : std::uint8_t {
  sequential_fused,    ///< acc <- rnd(acc + a b), the product exact
  sequential_rounded,  ///< acc <- rnd(acc + rnd(a b))
  pairwise,     ///< products rnd(a b), summed as a balanced tree: n leaves split at the largest power of two below n
  tensor_core,  ///< blocks of products by the rule of tensor_core.h, chained
};

/// A register that sums are rounded to.
struct Register {
  Format format;
  Rounding rounding = Rounding::rne;
  Saturation saturation = Saturation::off;
  int random_bits = 16;  ///< of stochastic rounding, 1 to 28
  friend bool operator==(const Register&, const Register&) = default;
};

enum class Join : std::uint8_t { sequential, pairwise };

/// Cuts the reduction into pieces. Each piece is reduced from +0, and the pieces' sums are joined in a register:
/// sequentially (total <- rnd(total + piece), in order, from +0 or c), or as a balanced tree to which c is added last.
struct Blocking {
  std::vector<std::int64_t> splits;  ///< ascending positions in (0, K) where a new piece begins; or
  std::int64_t every = 0;            ///< a new piece every so many products, counted from where the outer piece begins
  Join join = Join::sequential;
  Register into;
  friend bool operator==(const Blocking&, const Blocking&) = default;
};

struct Accumulation {
  std::string name;  ///< a preset's or the user's, for reports
  Reduction reduction = Reduction::sequential_fused;
  Register accumulator;             ///< for tensor_core: format of core.output
  TensorCore core;                  ///< for tensor_core only
  std::vector<Blocking> blockings;  ///< innermost first; an outer cut also cuts the inner pieces
  std::vector<std::int64_t> order;  ///< order[i] is the k of the i-th product; empty: ascending k
  std::uint64_t seed = 0;           ///< of stochastic rounding
  std::string claim;                ///< what is known about the model, for reports; from claim_of() where empty
};

/// Names of the rows of accumulations.inc, in order.
[[nodiscard]] std::vector<std::string> accumulation_names();

/// A named accumulation for operands of `input`. `accumulator` (a format name) replaces the row's where not empty; for
/// a tensor core it selects the output. Errors: `unknown-name`, `unsupported` (see find_tensor_core), `bad-value` where
/// the row is meant for other operands.
[[nodiscard]] Result<Accumulation> find_accumulation(std::string_view name, const Format& input,
                                                     std::string_view accumulator = {}, const Span& span = {});

/// Checks an accumulation of `depth` products of formats a and b. Errors: `bad-value`, `unsupported`.
[[nodiscard]] Status check_accumulation(const Accumulation& accumulation, std::int64_t depth, const Format& a,
                                        const Format& b, const Span& span = {});

/// Format of the results: the outermost register's.
[[nodiscard]] const Format& result_format(const Accumulation& accumulation);

/// Positions where a blocking begins a new piece within (first, last), ascending.
[[nodiscard]] std::vector<std::int64_t> cuts(const Blocking& blocking, std::int64_t first, std::int64_t last);

/// The largest power of two below n; n >= 2. Where the balanced tree splits.
[[nodiscard]] std::int64_t tree_split(std::int64_t n);

/// What may be claimed of results of `depth` products, with or without a nonzero initial c.
[[nodiscard]] std::string claim_of(const Accumulation& accumulation, std::int64_t depth, bool nonzero_c);

/// One line per register and rule, saturation policies named, for reports.
[[nodiscard]] std::vector<std::string> describe(const Accumulation& accumulation);

[[nodiscard]] std::string_view to_string(Reduction reduction);
[[nodiscard]] std::string_view to_string(Join join);
[[nodiscard]] Result<Reduction> find_reduction(std::string_view name, const Span& span = {});

}  // namespace plumbline::numerics
