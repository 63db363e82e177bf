#pragma once
// The boundary between integer.cc and its SIMD kernel.
#include "execute/numerics/counters.h"
#include "execute/numerics/stochastic.h"

namespace plumbline::numerics {

/// A run of elements with one scale; stochastic runs lie in one key block.
struct IntegerRun {
  const float* values;
  std::size_t count;
  std::uint8_t* codes;
  float scale;
  std::int32_t zero;
  std::int32_t low;
  std::int32_t high;
  Rounding rounding;
  int random_bits;
  BlockKey key;
  std::uint32_t first_offset;
};
void run_integer_kernel(const IntegerRun& run, Counters& counters);

/// Least and greatest finite value of the run and 0; NaN and Inf are passed over.
struct Extremes {
  float least;
  float greatest;
};
[[nodiscard]] Extremes finite_extremes(const float* values, std::size_t count);

}  // namespace plumbline::numerics
