#pragma once
// Integer quantization: q = clamp(round(x / s) + z, low, high), per tensor, channel or group.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "execute/numerics/counters.h"
#include "execute/numerics/format.h"
#include "execute/numerics/stochastic.h"

namespace plumbline::numerics {

/// A named range of codes, from integer_ranges.inc; codes are stored one per byte.
struct IntegerRange {
  std::string name;
  int low = 0;
  int high = 0;
};
[[nodiscard]] const std::vector<IntegerRange>& integer_ranges();
[[nodiscard]] Result<IntegerRange> find_integer_range(std::string_view name, const Span& span = {});

/// Which elements of [rows, columns] share a scale: all, a row (a channel), or `group` neighbours of a row.
enum class Sharing : std::uint8_t { tensor, channel, group };
[[nodiscard]] std::string_view to_string(Sharing sharing);

/// How a tensor becomes integers. Symmetric scales have zero point 0; affine ones map the least value to `low`.
struct IntegerSpec {
  IntegerRange range;
  bool affine = false;
  Sharing sharing = Sharing::tensor;
  std::size_t group = 0;  ///< elements of a group, along the columns
  bool pad = false;       ///< permits a last, shorter group per row (as if padded with zeros)
  Rounding rounding = Rounding::rne;
  int random_bits = 16;
  StochasticKey key{};
};

/// One scale and zero point per tensor, per row, or per row and group (row by row).
struct IntegerScales {
  std::vector<float> scale;
  std::vector<std::int32_t> zero;
};

struct IntegerTensor {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t run = 0;              ///< elements of a row that share a scale
  std::vector<std::uint8_t> codes;  ///< rows * columns, two's complement where the range has negative codes
  IntegerScales scales;
  Counters
      counters;  ///< overflow: clamped; underflow: nonzero x whose code is the zero point; inexact: x / s no integer
};

/// Scales from the finite extremes of the values themselves. Symmetric: max |x| / high. Affine: s = (max - min) /
/// (high - low) with 0 included in the span, z = clamp(RNE(low - min / s)), as in ONNX DynamicQuantizeLinear. All
/// arithmetic is binary32; scales are at least 2^-126, and 1 where all values are zero.
/// Errors: `shape-mismatch`; `bad-value` for groups that do not divide a row (without pad) or an affine spec whose
/// range excludes its own zero point.
[[nodiscard]] Result<IntegerScales> choose_scales(std::span<const float> values, std::size_t rows, std::size_t columns,
                                                  const IntegerSpec& spec, unsigned threads = 1);

/// Quantizes with the given scales. x / s is one binary32 division (as in ONNX QuantizeLinear), rounded to an integer
/// by spec.rounding. Infinite x saturate; NaN gives the zero point and counts as nan_lost, an error. Errors: those of
/// choose_scales, and `bad-value` for a scale that is zero, negative or not finite, a zero point outside the range, or
/// a wrong number of scales.
[[nodiscard]] Result<IntegerTensor> quantize_integer(std::span<const float> values, std::size_t rows,
                                                     std::size_t columns, const IntegerSpec& spec,
                                                     const IntegerScales& scales, unsigned threads = 1);

/// (q - z) s in binary32, one rounding.
[[nodiscard]] std::vector<float> decode_integer(const IntegerTensor& tensor, const IntegerRange& range);

/// The scalar rule of one element.
struct IntegerCode {
  std::int32_t code;
  std::uint16_t flags;
};
[[nodiscard]] IntegerCode encode_integer(float value, float scale, std::int32_t zero, const IntegerRange& range,
                                         Rounding rounding, RandomBits random = {});

/// Bits per element in storage: the code's width and its share of 32-bit scales and 8-bit zero points.
[[nodiscard]] double integer_bits_per_element(const IntegerSpec& spec, std::size_t rows, std::size_t columns);

}  // namespace plumbline::numerics
