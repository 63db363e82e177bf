#include "ingest/units.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

namespace plumbline::ingest {
namespace {

struct BaseUnit {
  std::string_view name;
  double scale;
  Dim dim;
  bool decimal_prefix;
  bool binary_prefix;
};

// op is a plain count: energies "per op" carry the dimension of joules.
constexpr std::array<BaseUnit, 12> kBaseUnits = {{
    {"s", 1, {.second = 1}, true, false},
    {"min", 60, {.second = 1}, false, false},
    {"h", 3600, {.second = 1}, false, false},
    {"Hz", 1, {.second = -1}, true, false},
    {"B", 1, {.byte = 1}, true, true},
    {"bit", 1, {.bit = 1}, true, true},
    {"cycle", 1, {.cycle = 1}, false, false},
    {"J", 1, {.joule = 1}, true, false},
    {"W", 1, {.second = -1, .joule = 1}, true, false},
    {"K", 1, {.kelvin = 1}, true, false},
    {"MAC", 1, {.mac = 1}, true, false},
    {"op", 1, {}, false, false},
}};

struct Prefix {
  std::string_view name;
  double scale;
  bool binary;
};

constexpr std::array<Prefix, 13> kPrefixes = {{
    {"Ki", 0x1p10, true},
    {"Mi", 0x1p20, true},
    {"Gi", 0x1p30, true},
    {"Ti", 0x1p40, true},
    {"f", 1e-15, false},
    {"p", 1e-12, false},
    {"n", 1e-9, false},
    {"u", 1e-6, false},
    {"m", 1e-3, false},
    {"k", 1e3, false},
    {"M", 1e6, false},
    {"G", 1e9, false},
    {"T", 1e12, false},
}};

Dim scaled_dim(Dim d, int sign) {
  return {sign * d.bit, sign * d.byte, sign * d.cycle, sign * d.second, sign * d.joule, sign * d.mac, sign * d.kelvin};
}

Dim sum(Dim a, Dim b) { return a - scaled_dim(b, -1); }

// Multiplies or divides `out` by one factor of the unit text.
bool apply_factor(std::string_view factor, bool divide, Physical& out) {
  for (const auto& base : kBaseUnits) {
    if (!factor.ends_with(base.name)) continue;
    const std::string_view prefix_text = factor.substr(0, factor.size() - base.name.size());
    double scale = base.scale;
    if (!prefix_text.empty()) {
      bool found = false;
      for (const auto& prefix : kPrefixes) {
        if (prefix.name != prefix_text || !(prefix.binary ? base.binary_prefix : base.decimal_prefix)) continue;
        scale *= prefix.scale;
        found = true;
      }
      if (!found) continue;
    }
    out.value = divide ? out.value / scale : out.value * scale;
    out.dim = sum(out.dim, scaled_dim(base.dim, divide ? -1 : 1));
    return true;
  }
  return false;
}

std::size_t number_length(std::string_view text) {
  std::size_t i = !text.empty() && text[0] == '-' ? 1 : 0;
  const std::size_t first = i;
  const auto digits = [&] {
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
  };
  digits();
  if (i == first) return 0;
  if (i + 1 < text.size() && text[i] == '.' && text[i + 1] >= '0' && text[i + 1] <= '9') {
    ++i;
    digits();
  }
  return i;
}

}  // namespace

std::optional<Physical> parse_physical(std::string_view text, std::string& why, bool& bare) {
  bare = false;
  const std::size_t digits = number_length(text);
  if (digits == 0 || digits > 40) {
    why = fmt::format("expected a number with a unit, found '{}'", text);
    return std::nullopt;
  }
  Physical out;
  out.value = std::strtod(std::string(text.substr(0, digits)).c_str(), nullptr);
  std::string_view unit = text.substr(digits);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty()) {
    bare = true;
    why = fmt::format("'{}' has no unit", text);
    return std::nullopt;
  }
  if (unit == "%") {
    out.value /= 100;
    out.percent = true;
    return out;
  }
  if (unit == "degC") {
    out.celsius = true;
    return out;
  }
  bool divide = false;
  std::string_view rest = unit;
  if (rest.starts_with('/')) {
    divide = true;
    rest.remove_prefix(1);
  }
  for (;;) {
    const auto end = rest.find_first_of("*/");
    if (!apply_factor(rest.substr(0, end), divide, out)) {
      why = fmt::format("unknown unit '{}'", unit);
      return std::nullopt;
    }
    if (end == std::string_view::npos) return out;
    divide = rest[end] == '/';
    rest.remove_prefix(end + 1);
  }
}

namespace {

// "B/s", "J/bit": a dimension in base units; empty for a plain ratio.
std::string base_unit(Dim d) {
  if (d == kPower) return "W";
  struct Part {
    int exponent;
    std::string_view name;
  };
  const std::array<Part, 7> parts = {{{d.bit, "bit"},
                                      {d.byte, "B"},
                                      {d.cycle, "cycle"},
                                      {d.second, "s"},
                                      {d.joule, "J"},
                                      {d.mac, "MAC"},
                                      {d.kelvin, "K"}}};
  std::string top;
  std::string bottom;
  for (const auto& part : parts) {
    for (int i = 0; i < part.exponent; ++i) top += top.empty() ? part.name : fmt::format("*{}", part.name);
    for (int i = 0; i > part.exponent; --i) bottom += fmt::format("/{}", part.name);
  }
  return top + bottom;
}

}  // namespace

std::string dim_text(Dim d) {
  if (d == kPower) return "power (W)";
  if (d == kFrequency) return "frequency (Hz or /s)";
  if (d == kTime) return "time (s)";
  if (d == kBytes) return "bytes (B)";
  const std::string unit = base_unit(d);
  return unit.empty() ? "a plain ratio" : unit;
}

namespace {

std::optional<Physical> parse_or_report(const Value& value, std::string_view example, Diagnostics& errors) {
  if (value.kind != ValueKind::scalar) {
    errors.push_back(
        make_error("wrong-type", value.span, fmt::format("expected a number with a unit such as {}", example)));
    return std::nullopt;
  }
  std::string why;
  bool bare = false;
  auto physical = parse_physical(value.text, why, bare);
  if (physical) return physical;
  if (bare) {
    const auto space = example.find(' ');
    const std::string_view unit = space == std::string_view::npos ? example : example.substr(space + 1);
    errors.push_back(make_error("missing-unit", value.span, why,
                                fmt::format("write it with its unit, such as {} {}", value.text, unit)));
  } else if (why.starts_with("unknown unit")) {
    errors.push_back(make_error("unknown-unit", value.span, why, fmt::format("write it like {}", example)));
  } else {
    errors.push_back(make_error("bad-number", value.span, why, fmt::format("write it like {}", example)));
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> read_quantity(const Value& value, Dim dim, std::string_view example, double low, double high,
                                    Diagnostics& errors) {
  const auto physical = parse_or_report(value, example, errors);
  if (!physical) return std::nullopt;
  if (physical->dim != dim || physical->celsius || physical->percent) {
    const std::string got = physical->celsius   ? "a temperature (degC)"
                            : physical->percent ? "a percentage"
                                                : dim_text(physical->dim);
    errors.push_back(make_error("wrong-dimension", value.span,
                                fmt::format("'{}' is {}, but {} is needed", value.text, got, dim_text(dim)),
                                fmt::format("write it like {}", example)));
    return std::nullopt;
  }
  if (!(physical->value >= low && physical->value <= high)) {
    errors.push_back(make_error("bad-number", value.span,
                                fmt::format("'{}' is outside {:g} to {:g} {}", value.text, low, high, base_unit(dim))));
    return std::nullopt;
  }
  return physical->value;
}

std::optional<double> read_celsius(const Value& value, Diagnostics& errors) {
  const auto physical = parse_or_report(value, "30 degC", errors);
  if (!physical) return std::nullopt;
  if (!physical->celsius) {
    errors.push_back(
        make_error("wrong-dimension", value.span,
                   fmt::format("'{}' is {}, but a temperature is needed", value.text, dim_text(physical->dim)),
                   "write it like 30 degC"));
    return std::nullopt;
  }
  if (physical->value < -100 || physical->value > 300) {
    errors.push_back(make_error("bad-number", value.span, fmt::format("'{}' is outside -100 to 300 degC", value.text)));
    return std::nullopt;
  }
  return physical->value;
}

std::optional<double> read_percent(const Value& value, double low, double high, Diagnostics& errors) {
  const auto physical = parse_or_report(value, "0.1 %", errors);
  if (!physical) return std::nullopt;
  if (!physical->percent) {
    errors.push_back(
        make_error("wrong-dimension", value.span,
                   fmt::format("'{}' is {}, but a percentage is needed", value.text, dim_text(physical->dim)),
                   "write it like 0.1 %"));
    return std::nullopt;
  }
  if (!(physical->value >= low && physical->value <= high)) {
    errors.push_back(make_error("bad-number", value.span,
                                fmt::format("'{}' is outside {:g} % to {:g} %", value.text, low * 100, high * 100)));
    return std::nullopt;
  }
  return physical->value;
}

}  // namespace plumbline::ingest
