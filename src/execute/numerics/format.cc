#include "execute/numerics/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace plumbline::numerics {
namespace {

struct RoundingName {
  Rounding rounding;
  std::string_view name;
};
constexpr RoundingName kRoundings[] = {{Rounding::rne, "rne"}, {Rounding::rtz, "rtz"}, {Rounding::ru, "ru"},
                                       {Rounding::rd, "rd"},   {Rounding::rna, "rna"}, {Rounding::sr, "sr"}};

/// Other names in common use.
struct Alias {
  std::string_view alias;
  std::string_view name;
};
constexpr Alias kAliases[] = {
    {"fp32", "binary32"}, {"float32", "binary32"}, {"fp16", "binary16"}, {"float16", "binary16"}, {"bf16", "bfloat16"}};

/// |x| = significand * 2^exponent exactly, with 2^52 <= significand < 2^53; finite nonzero x only.
struct Exact {
  std::uint64_t significand;
  int exponent;
};
Exact split(double magnitude) {
  constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;  // of binary64: 52 fraction bits, bias 1023
  const auto bits = std::bit_cast<std::uint64_t>(magnitude);
  const int field = static_cast<int>(bits >> 52);
  const std::uint64_t fraction = bits & (kHidden - 1);
  if (field != 0) return {fraction | kHidden, field - 1075};
  const int lift = std::countl_zero(fraction) - 11;
  return {fraction << lift, -1074 - lift};
}

/// Whether the integer q = floor(significand / 2^shift) moves up to q + 1. shift >= 1.
bool rounds_away(std::uint64_t significand, int shift, Rounding rounding, bool negative, bool odd, RandomBits random) {
  const int capped = std::min(shift, 60);  // significand < 2^53, so beyond 60 only "not zero, below half" remains
  const std::uint64_t rest = significand & ((std::uint64_t{1} << capped) - 1);
  const std::uint64_t half = std::uint64_t{1} << (capped - 1);
  switch (rounding) {
    case Rounding::rne:
      return rest > half || (rest == half && odd);
    case Rounding::rna:
      return rest >= half;
    case Rounding::rtz:
      return false;
    case Rounding::ru:
      return rest != 0 && !negative;
    case Rounding::rd:
      return rest != 0 && negative;
    case Rounding::sr: {
      const int down = shift - random.count;
      const std::uint64_t drawn = down >= 0 ? rest >> std::min(down, 63) : rest << -down;
      return drawn + random.value >= std::uint64_t{1} << random.count;
    }
  }
  PL_CHECK(false);
}

/// The magnitude code as if the exponent field were unbounded above, and whether bits were lost.
struct Magnitude {
  std::int64_t code;
  bool inexact;
};
Magnitude round_magnitude(Exact exact, const Format& format, Rounding rounding, bool negative, RandomBits random) {
  const int leading = exact.exponent + 52;  // floor(log2 |x|)
  const int field_exponent = std::max(leading, format.min_normal_exponent());
  const int shift = field_exponent - format.fraction_bits - exact.exponent;
  PL_CHECK(shift >= 1);
  const std::uint64_t floor = shift >= 64 ? 0 : exact.significand >> shift;
  const bool inexact = shift >= 64 || (exact.significand & ((std::uint64_t{1} << shift) - 1)) != 0;
  const std::int64_t binade = field_exponent - format.min_normal_exponent();
  // With zero the hidden bit of a normal adds one to the exponent field; without zero (E8M0) it must be taken off.
  const std::int64_t offset = format.has_zero ? 0 : -(std::int64_t{1} << format.fraction_bits);
  const std::int64_t code = (binade << format.fraction_bits) + static_cast<std::int64_t>(floor) + offset;
  const bool away = rounds_away(exact.significand, shift, rounding, negative, (code & 1) != 0, random);
  return {code + (away ? 1 : 0), inexact};
}

Encoded with_sign(std::uint32_t magnitude, bool negative, const Format& format, std::uint16_t flags) {
  if (magnitude == 0 && !format.has_negative_zero()) negative = false;
  return {magnitude | (negative ? format.sign_bit() : 0), flags};
}

Encoded nan_result(bool negative, const Format& format, std::uint16_t flags) {
  if (!format.has_nan()) return {0, static_cast<std::uint16_t>(flags | kNanLost)};
  return {format.nan_code() | (negative ? format.sign_bit() : 0), flags};
}

/// Beyond the largest finite value: an infinite input, or a finite one that overflowed.
Encoded beyond(bool negative, bool finite, const Format& format, Rounding rounding, Saturation saturation) {
  std::uint16_t flags = finite ? kOverflow | kInexact : kInfinityIn;
  const bool toward_zero = finite && (rounding == Rounding::rtz || (rounding == Rounding::ru && negative) ||
                                      (rounding == Rounding::rd && !negative));
  const bool has_specials = format.has_infinity || format.has_nan();
  if (saturation == Saturation::on || toward_zero || !has_specials) {
    flags |= kSaturated;
    return with_sign(format.max_code(), negative, format, flags);
  }
  if (format.has_infinity) return with_sign(format.infinity_code(), negative, format, flags);
  return nan_result(negative, format, flags);
}

/// A positive input below the smallest value of a format without zero: that value where the mode may round up to it.
Encoded below_smallest(const Format& format, Rounding rounding, Saturation saturation) {
  const bool may_rise = rounding != Rounding::rtz && rounding != Rounding::rd;
  if (saturation == Saturation::on || may_rise) return {0, kInexact};
  return {format.nan_code(), kOutOfDomain | kInexact};
}

}  // namespace

std::uint32_t Format::max_code() const {
  const std::uint32_t all = magnitude_mask();
  switch (nan) {
    case NanEncoding::none:
    case NanEncoding::negative_zero:
      return has_infinity ? all - 1 : all;
    case NanEncoding::all_ones:
      return has_infinity ? all - 2 : all - 1;
    case NanEncoding::ieee:
      return (((std::uint32_t{1} << exponent_bits) - 1) << fraction_bits) - 1;
  }
  PL_CHECK(false);
}

std::uint32_t Format::infinity_code() const {
  PL_CHECK(has_infinity);
  return max_code() + 1;
}

std::uint32_t Format::nan_code() const {
  PL_CHECK(has_nan());
  switch (nan) {
    case NanEncoding::all_ones:
      return magnitude_mask();
    case NanEncoding::negative_zero:
      return sign_bit();
    default:
      return max_code() + 1 + (std::uint32_t{1} << (fraction_bits - 1));
  }
}

double Format::max_value() const { return decode(max_code(), *this); }

int Format::max_exponent() const { return std::ilogb(max_value()); }

const std::vector<Format>& builtin_formats() {
  static const std::vector<Format> formats = {
#define PLUMBLINE_FORMAT(name, exponent, fraction, bias, infinity, nan, is_signed, zero) \
  {name, exponent, fraction, bias, infinity, NanEncoding::nan, is_signed, zero},
#include "execute/numerics/formats.inc"
#undef PLUMBLINE_FORMAT
  };
  return formats;
}

Result<Format> find_format(std::string_view name, const Span& span) {
  for (const Alias& row : kAliases) {
    if (row.alias == name) return builtin_format(row.name);
  }
  std::vector<std::string> names;
  std::vector<std::string> longer;  // "e4m3" is short for several formats that differ: name them all
  for (const Format& format : builtin_formats()) {
    if (format.name == name) return format;
    names.push_back(format.name);
    if (format.name.starts_with(name) && !name.empty()) longer.push_back(format.name);
  }
  return make_error("unknown-name", span, fmt::format("no number format is called '{}'", name),
                    longer.empty() ? suggest(name, names) : fmt::format("one of: {}", fmt::join(longer, ", ")));
}

const Format& builtin_format(std::string_view name) {
  for (const Format& format : builtin_formats()) {
    if (format.name == name) return format;
  }
  PL_CHECK(false);
}

Result<Format> make_format(const FormatRow& row, const Span& span) {
  const auto wrong = [&](std::string message, std::string help) {
    return make_error("bad-value", span, fmt::format("format '{}' {}", row.name, message), std::move(help));
  };
  if (row.exponent_bits < 1 || row.exponent_bits > 8) {
    return wrong(fmt::format("has {} exponent bits", row.exponent_bits), "exponents have 1 to 8 bits");
  }
  if (row.fraction_bits < 0 || row.fraction_bits > 23) {
    return wrong(fmt::format("has {} fraction bits", row.fraction_bits), "fractions have 0 to 23 bits");
  }
  Format format{.name = row.name,
                .exponent_bits = row.exponent_bits,
                .fraction_bits = row.fraction_bits,
                .bias = row.bias.value_or((1 << (row.exponent_bits - 1)) - 1),
                .has_infinity = row.has_infinity,
                .nan = row.nan};
  if (row.nan == NanEncoding::ieee && (!row.has_infinity || row.fraction_bits == 0 || row.exponent_bits < 2)) {
    return wrong("asks for ieee NaN codes without room for them",
                 "ieee NaN needs infinity, 2 exponent bits and 1 fraction bit; or nan: all_ones, negative_zero, none");
  }
  if (format.bits() < 3) return wrong("has fewer than 3 bits", "give it more exponent or fraction bits");
  if (format.bias < 0 || format.min_normal_exponent() < -126 || format.min_positive_exponent() < -149 ||
      format.max_exponent() > 127) {
    return wrong(fmt::format("with bias {} reaches beyond binary32", format.bias),
                 "biases are not negative; normals lie within 2^-126 to 2^128 and subnormals from 2^-149 up");
  }
  return format;
}

std::string_view to_string(Rounding rounding) { return kRoundings[static_cast<int>(rounding)].name; }

std::string_view to_string(Saturation saturation) { return saturation == Saturation::on ? "on" : "off"; }

std::string_view to_string(NanEncoding nan) {
  constexpr std::string_view kNames[] = {"none", "ieee", "all_ones", "negative_zero"};
  return kNames[static_cast<int>(nan)];
}

Result<Rounding> find_rounding(std::string_view name, const Span& span) {
  std::vector<std::string> names;
  for (const auto& row : kRoundings) {
    if (row.name == name) return row.rounding;
    names.emplace_back(row.name);
  }
  return make_error("unknown-name", span, fmt::format("no rounding mode is called '{}'", name), suggest(name, names));
}

Encoded encode(double value, const Format& format, Rounding rounding, Saturation saturation, RandomBits random) {
  if (rounding == Rounding::sr) PL_CHECK(random.count >= 1 && random.count <= 31 && random.value >> random.count == 0);
  const bool negative = std::signbit(value);
  if (std::isnan(value)) return nan_result(negative, format, kNanIn);
  if (!format.is_signed && (negative || value == 0)) {
    const auto flags = static_cast<std::uint16_t>(kOutOfDomain | (std::isinf(value) ? kInfinityIn : 0));
    return {format.nan_code(), flags};
  }
  if (std::isinf(value)) return beyond(negative, false, format, rounding, saturation);
  if (value == 0) return with_sign(0, negative, format, 0);
  const double magnitude = std::fabs(value);
  if (!format.has_zero && magnitude < std::ldexp(1.0, format.min_normal_exponent())) {
    return below_smallest(format, rounding, saturation);
  }
  const Magnitude rounded = round_magnitude(split(magnitude), format, rounding, negative, random);
  if (rounded.code > std::int64_t{format.max_code()}) return beyond(negative, true, format, rounding, saturation);
  std::uint16_t flags = rounded.inexact ? kInexact : 0;
  const auto code = static_cast<std::uint32_t>(rounded.code);
  if (format.has_zero && code == 0) flags |= kUnderflowToZero;
  if (format.has_zero && code != 0 && code >> format.fraction_bits == 0) flags |= kSubnormal;
  return with_sign(code, negative, format, flags);
}

bool is_nan_code(std::uint32_t code, const Format& format) {
  const std::uint32_t magnitude = code & format.magnitude_mask();
  switch (format.nan) {
    case NanEncoding::none:
      return false;
    case NanEncoding::ieee:
      return magnitude > format.infinity_code();
    case NanEncoding::all_ones:
      return magnitude == format.magnitude_mask();
    case NanEncoding::negative_zero:
      return code == format.sign_bit();
  }
  PL_CHECK(false);
}

double decode(std::uint32_t code, const Format& format) {
  PL_CHECK(code <= format.code_count_minus_one());
  if (is_nan_code(code, format)) return std::numeric_limits<double>::quiet_NaN();
  const std::uint32_t magnitude = code & format.magnitude_mask();
  const double sign = (code & format.sign_bit()) != 0 ? -1.0 : 1.0;
  if (format.has_infinity && magnitude == format.infinity_code()) {
    return sign * std::numeric_limits<double>::infinity();
  }
  const int field = static_cast<int>(magnitude >> format.fraction_bits);
  const std::uint32_t fraction = magnitude & ((std::uint32_t{1} << format.fraction_bits) - 1);
  if (field == 0 && format.has_zero) return sign * std::ldexp(fraction, format.min_positive_exponent());
  const std::uint32_t significand = fraction + (std::uint32_t{1} << format.fraction_bits);
  return sign * std::ldexp(significand, field - format.bias - format.fraction_bits);
}

}  // namespace plumbline::numerics
