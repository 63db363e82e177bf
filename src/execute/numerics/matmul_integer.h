#pragma once
// Integer matmul, exact: products of at most 16-bit integers summed into 32 bits, wrap-around counted, never saturated.
#include <cstdint>
#include <span>
#include <string>

#include "core/result.h"
#include "execute/numerics/buffer.h"

namespace plumbline::numerics {

/// A row-major matrix of 8-bit integers with one zero point: the value of code q is q - zero_point. INT4 codes are held
/// one per byte.
struct IntegerMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const std::int8_t> codes;  ///< rows * columns
  bool is_unsigned = false;            ///< read each code as unsigned
  int zero_point = 0;                  ///< within the code's range
};

struct IntegerCounters {
  std::int64_t results = 0;
  std::int64_t wrapped = 0;  ///< results whose exact sum lies outside 32 bits; their value is that sum modulo 2^32
  std::int64_t largest = 0;  ///< largest magnitude of an exact sum
  friend bool operator==(const IntegerCounters&, const IntegerCounters&) = default;
};

struct IntegerProduct {
  Buffer<std::int32_t> values;  ///< row-major, a.rows * b.columns
  IntegerCounters counters;
};

/// a b + c with c row-major or empty. The same bytes at any thread count (0: all of the machine's) and on any
/// instruction set. Errors: `shape-mismatch` for shapes that do not go together or an empty dimension, `bad-value` for
/// a zero point outside its codes.
[[nodiscard]] Result<IntegerProduct> matmul_integer(const IntegerMatrix& a, const IntegerMatrix& b,
                                                    std::span<const std::int32_t> c = {}, unsigned threads = 1);

/// The same by the definition, one result at a time in 64 bits; the kernels' judge.
[[nodiscard]] Result<IntegerProduct> matmul_integer_scalar(const IntegerMatrix& a, const IntegerMatrix& b,
                                                           std::span<const std::int32_t> c = {});

}  // namespace plumbline::numerics
