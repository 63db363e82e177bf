#pragma once
// Matrix products whose every accumulation is rounded as a stated accumulator rounds it, bit for bit.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "execute/numerics/accumulate.h"
#include "execute/numerics/buffer.h"
#include "execute/numerics/format.h"

namespace plumbline::numerics {

/// a (m x k), b (k x n) and the initial c (m x n, or empty for zero), row-major. Every value must be one of its format;
/// c of the outermost register's, see result_format().
struct MatmulOperands {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::span<const float> a;
  std::span<const float> b;
  std::span<const float> c;
  Format a_format;
  Format b_format;
};

/// Counts of results, always made. A result may count in several fields.
struct ResultCounters {
  std::int64_t results = 0;
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t overflow = 0;  ///< infinite or NaN although every operand of the result is finite
  std::int64_t zero = 0;
  std::int64_t subnormal = 0;   ///< nonzero, below the result format's normals
  std::int64_t at_largest = 0;  ///< of the largest finite magnitude: where saturation is on, clamped results lie here
  ResultCounters& operator+=(const ResultCounters& other);
  friend bool operator==(const ResultCounters&, const ResultCounters&) = default;
};

/// What a register did to the accumulations observed, over all results.
struct RegisterTally {
  std::string name;                   ///< "accumulator", "tensor core", "join 1" ...
  std::int64_t total = 0;             ///< accumulations (block operations of a tensor core) in the whole product
  std::int64_t observed = 0;          ///< of which counted below
  std::int64_t inexact = 0;           ///< sums the register could not hold exactly
  std::int64_t absorbed = 0;          ///< nonzero addends that changed nothing
  std::int64_t swamped = 0;           ///< nonzero sums that an addend replaced
  std::int64_t beyond = 0;            ///< finite sums beyond the register's largest value
  std::int64_t products = 0;          ///< products rounded, or aligned by a tensor core
  std::int64_t products_inexact = 0;  ///< lost bits when rounded or aligned (a tensor core counts c among them)
  std::int64_t products_to_zero = 0;  ///< nonzero, rounded or cut to zero
  /// Observed registers by binary32 exponent field: entry e counts |sum| in [2^(e-127), 2^(e-126)); 0: zero and
  /// binary32 subnormals; 255: Inf and NaN.
  std::array<std::int64_t, 256> exponents{};
  friend bool operator==(const RegisterTally&, const RegisterTally&) = default;
};

/// Which accumulations are observed: of each result, those at positions that `every` divides (blocks, for a tensor
/// core; pieces, where pieces are joined); their exponents where `histogram_every` does. 0: not observed; kAutomatic:
/// as dense as costs at most 40 %.
inline constexpr std::int64_t kAutomatic = -1;
struct Observation {
  std::int64_t every = 0;
  std::int64_t histogram_every = kAutomatic;
};

struct MatmulOptions {
  unsigned threads = 1;  ///< 0: all of the machine's; never changes a bit
  Observation observe;
};

struct MatmulProduct {
  Buffer<float> values;  ///< row-major m x n, values of `format`; every NaN is 0x7FC00000
  Format format;
  ResultCounters counters;
  std::vector<RegisterTally> registers;  ///< innermost first; empty when not observed
  std::string kernel;                    ///< which kernel served the innermost accumulation
};

/// The product. Errors: `shape-mismatch`, `bad-value` (an operand that is no value of its format; NaN or infinities
/// into accumulators that cannot hold them), and those of check_accumulation.
[[nodiscard]] Result<MatmulProduct> matmul(const MatmulOperands& operands, const Accumulation& accumulation,
                                           const MatmulOptions& options = {});

/// The same by the definition, one result at a time, every accumulation observed when options ask for any; the kernels'
/// judge.
[[nodiscard]] Result<MatmulProduct> matmul_scalar(const MatmulOperands& operands, const Accumulation& accumulation,
                                                  const MatmulOptions& options = {});

/// Shapes, values and accumulation; what both of the above check first.
[[nodiscard]] Status check_matmul(const MatmulOperands& operands, const Accumulation& accumulation);

}  // namespace plumbline::numerics
