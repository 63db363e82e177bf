#pragma once
// Floating-point element formats as rows, and the scalar rule that every fast kernel must equal bit for bit.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace plumbline::numerics {

/// Which codes are NaN.
enum class NanEncoding : std::uint8_t {
  none,           ///< no code is NaN
  ieee,           ///< exponent all ones, fraction not zero
  all_ones,       ///< magnitude bits all ones only (E4M3FN; 0xFF of E8M0)
  negative_zero,  ///< the code of -0 only (the FNUZ formats, which have no -0)
};

/// A format of at most 32 bits: sign | exponent | fraction. With exponent field e, fraction f, m fraction bits and bias
/// B the value is (-1)^s f 2^(1-B-m) for e = 0 and (-1)^s (2^m + f) 2^(e-B-m) otherwise. Without zero (E8M0) the field
/// e = 0 is an ordinary power of two, 2^-B. Every value of a format is a binary32 value.
struct Format {
  std::string name;
  int exponent_bits = 0;
  int fraction_bits = 0;
  int bias = 0;
  bool has_infinity = false;
  NanEncoding nan = NanEncoding::none;
  bool is_signed = true;
  bool has_zero = true;

  [[nodiscard]] int bits() const { return (is_signed ? 1 : 0) + exponent_bits + fraction_bits; }
  /// Bytes of one code in memory: 1, 2 or 4.
  [[nodiscard]] int code_bytes() const { return bits() <= 8 ? 1 : bits() <= 16 ? 2 : 4; }
  [[nodiscard]] std::uint32_t code_count_minus_one() const {
    return static_cast<std::uint32_t>((std::uint64_t{1} << bits()) - 1);
  }
  /// The sign bit in place; 0 for an unsigned format.
  [[nodiscard]] std::uint32_t sign_bit() const { return is_signed ? std::uint32_t{1} << (bits() - 1) : 0; }
  [[nodiscard]] std::uint32_t magnitude_mask() const { return code_count_minus_one() & ~sign_bit(); }
  [[nodiscard]] bool has_nan() const { return nan != NanEncoding::none; }
  [[nodiscard]] bool has_negative_zero() const { return is_signed && has_zero && nan != NanEncoding::negative_zero; }
  /// The largest finite positive code.
  [[nodiscard]] std::uint32_t max_code() const;
  /// +Inf; only where has_infinity.
  [[nodiscard]] std::uint32_t infinity_code() const;
  /// The quiet NaN we write; only where has_nan().
  [[nodiscard]] std::uint32_t nan_code() const;
  [[nodiscard]] double max_value() const;
  /// Exponents of the smallest normal and of the smallest positive value, both powers of two.
  [[nodiscard]] int min_normal_exponent() const { return (has_zero ? 1 : 0) - bias; }
  [[nodiscard]] int min_positive_exponent() const { return min_normal_exponent() - fraction_bits; }
  /// floor(log2(max_value())): the "emax" of the OCP MX scale rule.
  [[nodiscard]] int max_exponent() const;

  friend bool operator==(const Format&, const Format&) = default;
};

/// The built-in formats, in the order of formats.inc.
[[nodiscard]] const std::vector<Format>& builtin_formats();

/// A built-in format by its name or an alias (fp32, fp16, bf16 …); unknown names give `unknown-name` with the nearest
/// ones. `span` is where the name was written.
[[nodiscard]] Result<Format> find_format(std::string_view name, const Span& span = {});

/// The same for names written in our own code: an unknown one is our bug.
[[nodiscard]] const Format& builtin_format(std::string_view name);

/// A user's signed ExMy row. Without a bias the IEEE rule 2^(x-1)-1 holds.
struct FormatRow {
  std::string name;
  int exponent_bits = 0;  ///< 1 to 8
  int fraction_bits = 0;  ///< 0 to 23
  std::optional<int> bias = std::nullopt;
  bool has_infinity = false;
  NanEncoding nan = NanEncoding::none;
};
/// Checks a row: widths in range, NaN encodings that fit, normals within those of binary32, subnormals representable in
/// it. Errors: `bad-value`.
[[nodiscard]] Result<Format> make_format(const FormatRow& row, const Span& span = {});

/// rne: nearest, ties to even; rtz: toward zero; ru/rd: toward +/- infinity; rna: nearest, ties away from zero;
/// sr: stochastic.
enum class Rounding : std::uint8_t { rne, rtz, ru, rd, rna, sr };
/// on: results beyond the largest finite value become it, infinite inputs too. off: IEEE 754 overflow, NaN where the
/// format has no infinity. Formats without specials always saturate.
enum class Saturation : std::uint8_t { off, on };

[[nodiscard]] std::string_view to_string(Rounding rounding);
[[nodiscard]] std::string_view to_string(Saturation saturation);
[[nodiscard]] std::string_view to_string(NanEncoding nan);
[[nodiscard]] Result<Rounding> find_rounding(std::string_view name, const Span& span = {});

/// What happened to one element; bits of Encoded::flags.
enum Flag : std::uint16_t {
  kNanIn = 1,            ///< the input is NaN
  kInfinityIn = 2,       ///< the input is infinite
  kOverflow = 4,         ///< finite input, rounded magnitude beyond the largest finite value
  kUnderflowToZero = 8,  ///< nonzero input, zero result (-0 counts as zero)
  kSubnormal = 16,       ///< the result is subnormal
  kSaturated = 32,       ///< the result was clamped to the largest finite value
  kInexact = 64,         ///< finite input that the result does not equal
  kNanLost = 128,        ///< NaN into a format without NaN: an error; the code is zero
  kOutOfDomain = 256,    ///< zero, negative or too small for a format without them (E8M0): an error
};

struct Encoded {
  std::uint32_t code = 0;
  std::uint16_t flags = 0;
};

/// Random bits of one stochastic rounding: `value` in [0, 2^count), count in [1, 31]. Rounds away from zero if and only
/// if floor(d 2^count) + value >= 2^count, d being the discarded fraction of the grid step: bias below 2^-count ulp.
struct RandomBits {
  std::uint32_t value = 0;
  int count = 0;
};

/// The scalar reference: one value to one code. float converts to double exactly, so one signature serves both.
/// Stochastic overflow without saturation gives Inf or NaN as nearest does.
[[nodiscard]] Encoded encode(double value, const Format& format, Rounding rounding, Saturation saturation,
                             RandomBits random = {});

/// The exact value of a code; infinities and NaN as such. `code` must be below 2^bits.
[[nodiscard]] double decode(std::uint32_t code, const Format& format);
[[nodiscard]] bool is_nan_code(std::uint32_t code, const Format& format);

}  // namespace plumbline::numerics
