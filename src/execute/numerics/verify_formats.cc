#include "execute/numerics/verify_formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/diagnostic.h"
#include "execute/numerics/mx.h"
#include "execute/numerics/round.h"

namespace plumbline::numerics {
namespace {

using nlohmann::json;

/// A string of hexadecimal digits, all of it.
std::optional<std::uint32_t> hex(const json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, 16);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return number;
}

std::optional<std::vector<std::uint32_t>> hex_list(const json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<std::uint32_t> numbers;
  for (const json& item : value) {
    const auto number = hex(item);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<float> to_floats(const std::vector<std::uint32_t>& bits) {
  std::vector<float> values;
  for (const std::uint32_t b : bits) values.push_back(std::bit_cast<float>(b));
  return values;
}

void fail(FormatVerdict& verdict, std::string line) {
  ++verdict.failed;
  verdict.lines.push_back(std::move(line));
}

/// The names that reference files use for the deterministic modes.
std::optional<Rounding> mode_of(std::string_view name) {
  if (name == "rup") return Rounding::ru;
  if (name == "rdn") return Rounding::rd;
  const auto found = find_rounding(name);
  if (!found.ok() || *found == Rounding::sr) return std::nullopt;
  return *found;
}

/// A member of the object, or null.
const json& member(const json& object, const char* key) {
  static const json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

/// A format by name, or else by its parameters.
std::optional<Format> format_of(const std::string& name, const json& params) {
  if (const auto found = find_format(name); found.ok()) return *found;
  const json& exponent = member(params, "exp_bits");
  const json& fraction = member(params, "man_bits");
  const json& bias = member(params, "bias");
  const json& infinity = member(params, "inf");
  if (!exponent.is_number_integer() || !fraction.is_number_integer() || !bias.is_number_integer() ||
      !infinity.is_boolean()) {
    return std::nullopt;
  }
  const json& nan = member(params, "nan_codes");
  const json& negative_zero = member(params, "signed_zero");
  FormatRow row{.name = name,
                .exponent_bits = exponent.get<int>(),
                .fraction_bits = fraction.get<int>(),
                .bias = bias.get<int>(),
                .has_infinity = infinity.get<bool>()};
  if (row.has_infinity) {
    row.nan = NanEncoding::ieee;
  } else if (negative_zero.is_boolean() && !negative_zero.get<bool>()) {
    row.nan = NanEncoding::negative_zero;
  } else if (nan.is_string() && nan != "" && nan != "none") {
    row.nan = NanEncoding::all_ones;
  }
  const auto made = make_format(row);
  if (!made.ok()) return std::nullopt;
  return *made;
}

/// Notes under names of their own are welcome; a name close to one that is missing is a slip, and what it expects would
/// be judged by nobody.
bool no_slip(const json& object, const std::vector<std::string>& known, const std::string& where,
             FormatVerdict& verdict) {
  std::vector<std::string> missing;
  for (const auto& name : known) {
    if (!object.contains(name)) missing.push_back(name);
  }
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    const auto near = closest(item.key(), missing);
    if (near.empty()) continue;
    fail(verdict, fmt::format("{} has '{}': did you mean '{}'?", where, item.key(), near.front()));
    return false;
  }
  return true;
}

bool same_code(std::uint32_t code, std::uint32_t expected, const Format& format) {
  return code == expected || (is_nan_code(expected, format) && is_nan_code(code, format));
}

/// One list of expected codes: a format, a saturation and a mode.
void judge_mode(const std::vector<std::uint32_t>& inputs, const json& expected, const RoundSpec& spec,
                FormatVerdict& verdict) {
  const std::string where =
      fmt::format("{} {} saturation {}", spec.format.name, to_string(spec.rounding), to_string(spec.saturation));
  if (!expected.is_array() || expected.size() != inputs.size()) {
    return fail(verdict, where + ": expected codes and inputs differ in number");
  }
  const std::vector<float> values = to_floats(inputs);
  std::vector<std::uint8_t> bytes(inputs.size() * 4);
  round_to_codes(values, spec, bytes.data());
  const int width = spec.format.code_bytes();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (expected[i].is_null()) {
      ++verdict.skipped;
      continue;
    }
    const auto want = hex(expected[i]);
    if (!want || *want > spec.format.code_count_minus_one()) {
      fail(verdict, fmt::format("{} input {:08x}: expected code is not readable", where, inputs[i]));
      continue;
    }
    const std::uint32_t rule = encode(values[i], spec.format, spec.rounding, spec.saturation).code;
    std::uint32_t kernel = 0;
    for (int b = 0; b < width; ++b) {
      kernel |= std::uint32_t{bytes[i * static_cast<std::size_t>(width) + static_cast<std::size_t>(b)]} << (8 * b);
    }
    if (same_code(rule, *want, spec.format) && same_code(kernel, *want, spec.format)) {
      ++verdict.passed;
    } else {
      fail(verdict, fmt::format("{} input {:08x}: expected {:x}, rule {:x}, kernel {:x}", where, inputs[i], *want, rule,
                                kernel));
    }
  }
}

/// Values of codes 0, 1, …: binary32 bits, or "nan".
void judge_decoding(const json& expected, const Format& format, FormatVerdict& verdict) {
  if (!expected.is_array() || expected.empty() || expected.size() > std::size_t{format.code_count_minus_one()} + 1) {
    return fail(verdict, format.name + " decode_to_f32: not a list of codes' values");
  }
  for (std::uint32_t code = 0; code < expected.size(); ++code) {
    const bool want_nan = expected[code] == "nan";
    const auto want = want_nan ? std::optional<std::uint32_t>(0x7FC00000U) : hex(expected[code]);
    if (!want) {
      fail(verdict, fmt::format("{} decode {:x}: expected value is not readable", format.name, code));
      continue;
    }
    const auto value = static_cast<float>(decode(code, format));
    const bool both_nan = std::isnan(value) && std::isnan(std::bit_cast<float>(*want));
    if (both_nan || std::bit_cast<std::uint32_t>(value) == *want) {
      ++verdict.passed;
    } else {
      fail(verdict, fmt::format("{} decode {:x}: expected {:08x}, got {:08x}", format.name, code, *want,
                                std::bit_cast<std::uint32_t>(value)));
    }
  }
}

void judge_format(const std::string& name, const json& entry, FormatVerdict& verdict) {
  const auto format = format_of(name, member(entry, "params"));
  if (!format) return fail(verdict, fmt::format("{}: neither a known format nor parameters of one", name));
  if (entry.is_object() && !no_slip(entry, {"inputs", "off", "on", "decode_to_f32"}, name, verdict)) return;
  const auto inputs = hex_list(member(entry, "inputs"));
  if (!inputs || inputs->empty()) return fail(verdict, fmt::format("{}: inputs are no list of binary32 bits", name));
  for (const Saturation saturation : {Saturation::off, Saturation::on}) {
    const json& modes = member(entry, saturation == Saturation::on ? "on" : "off");
    if (!modes.is_object() || modes.empty()) {
      fail(verdict, fmt::format("{}: no codes for saturation {}", name, to_string(saturation)));
      continue;
    }
    for (const auto& [mode, expected] : modes.items()) {
      const auto rounding = mode_of(mode);
      if (!rounding) {
        fail(verdict, fmt::format("{}: no rounding mode is called '{}'", name, mode));
        continue;
      }
      judge_mode(*inputs, expected, {*format, *rounding, saturation}, verdict);
    }
  }
  if (const json& decoding = member(entry, "decode_to_f32"); !decoding.is_null()) {
    judge_decoding(decoding, *format, verdict);
  }
}

/// One case: a block, an element format and a scale rule.
void judge_block(const std::string& where, const std::vector<float>& values, const MxElement& element, ScaleRule rule,
                 const json& expected, FormatVerdict& verdict) {
  const auto scale = hex(member(expected, "scale"));
  if (!scale) return fail(verdict, where + ": 'scale' is missing or no hexadecimal number");
  const auto codes = hex_list(member(expected, "codes"));
  if (!codes || codes->size() != values.size()) {
    return fail(verdict,
                fmt::format("{}: 'codes' is missing or no list of {} hexadecimal numbers", where, values.size()));
  }
  const MxSpec spec{element, rule};
  std::vector<std::uint8_t> by_rule(values.size());
  Counters counters;
  const std::uint8_t rule_scale = quantize_mx_block(values, spec, 0, by_rule.data(), counters);
  const auto kernel = quantize_mx(values, 1, values.size(), spec, true);
  bool equal = kernel.ok() && rule_scale == *scale && kernel->scales.front() == *scale;
  for (std::size_t i = 0; equal && i < values.size(); ++i) {
    equal = by_rule[i] == (*codes)[i] && kernel->codes[i] == (*codes)[i];
  }
  if (equal) {
    ++verdict.passed;
  } else {
    fail(verdict, fmt::format("{}: expected scale {:02x} codes {:02x}, rule {:02x} {:02x}", where, *scale,
                              fmt::join(*codes, " "), rule_scale, fmt::join(by_rule, " ")));
  }
}

}  // namespace

bool is_format_vectors(const json& document) {
  const json& formats = member(document, "formats");
  if (!formats.is_object() || formats.empty()) return false;
  const json& first = formats.front();
  return first.is_object() && first.contains("inputs") && first.contains("off") && first.contains("on");
}

FormatVerdict verify_format_vectors(const json& document) {
  FormatVerdict verdict;
  const json& formats = member(document, "formats");
  if (!formats.is_object()) {
    fail(verdict, "formats: not an object");
    return verdict;
  }
  for (const auto& [name, entry] : formats.items()) judge_format(name, entry, verdict);
  return verdict;
}

bool is_mx_vectors(const json& document) {
  const json& blocks = member(document, "blocks");
  return blocks.is_array() && !blocks.empty() && member(blocks.front(), "elem").is_object();
}

FormatVerdict verify_mx_vectors(const json& document) {
  FormatVerdict verdict;
  const json& blocks = member(document, "blocks");
  if (!blocks.is_array()) {
    fail(verdict, "blocks: not a list");
    return verdict;
  }
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const json& label = member(blocks[b], "name");
    const std::string name = label.is_string() ? label.get<std::string>() : fmt::format("block {}", b);
    const auto bits = hex_list(member(blocks[b], "input"));
    const json& elements = member(blocks[b], "elem");
    if (!bits || bits->empty() || bits->size() > kMxBlock) {
      fail(verdict, name + ": 'input' is missing or no list of at most 32 binary32 bits");
      continue;
    }
    if (!elements.is_object() || elements.empty()) {
      fail(verdict, name + ": 'elem' is missing or holds no element format: nothing to judge");
      continue;
    }
    for (const auto& [format, rules] : elements.items()) {
      const auto element = find_mx_element(format);
      if (!element.ok() || !rules.is_object() || rules.empty()) {
        fail(verdict, fmt::format("{} {}: not an element format with rules", name, format));
        continue;
      }
      for (const auto& [rule_name, expected] : rules.items()) {
        const auto rule = find_scale_rule(rule_name);
        const std::string where = fmt::format("{} {} {}", name, format, rule_name);
        if (!rule.ok()) {
          fail(verdict, where + ": no such scale rule");
        } else {
          judge_block(where, to_floats(*bits), *element, *rule, expected, verdict);
        }
      }
    }
  }
  return verdict;
}

}  // namespace plumbline::numerics
