#include "cli/round_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "cli/command.h"
#include "cli/format_rows.h"
#include "cli/output_files.h"
#include "cli/parse.h"
#include "cli/round_report.h"
#include "execute/numerics/integer.h"
#include "execute/numerics/mx.h"
#include "execute/numerics/npy.h"
#include "execute/numerics/operand.h"

namespace plumbline::cli {
namespace {

using namespace plumbline::numerics;

struct RoundOptions {
  std::string operand;
  std::string target;
  std::string rounding = "rne";
  std::string saturation;  ///< no default: the policies of existing stacks differ
  std::string scale_rule = "floor";
  std::string sharing = "tensor";
  bool affine = false;
  bool pad = false;
  std::size_t group = 0;
  int random_bits = 16;
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::string tensor = "operand";
  int channel_axis = -1;
  bool by_channel = false;
  std::string formats_file;
  std::string values_file;
  std::string codes_file;
  std::string output = "text";
  unsigned threads = 1;

  [[nodiscard]] StochasticKey key() const { return {seed, hash_name(tensor), step, 0}; }
};

/// A rounded tensor, whatever it was rounded to.
struct Rounded {
  NpyArray codes;
  std::vector<float> values;
};

void declare(CLI::App& app, RoundOptions& o) {
  app.add_option("operand", o.operand, "a .npy file, or normal:AxB, uniform:AxB, outliers:AxB, ramp:AxB")->required();
  app.add_option("--to", o.target,
                 "format name (e4m3fn, bfloat16, …), mx:ELEMENT, nvfp4, or an integer range (int8_symmetric, …)")
      ->required();
  app.add_option("--rounding", o.rounding, "rne (unless said), rtz, ru, rd, rna or sr");
  app.add_option("--saturation", o.saturation, "on or off; must be said for floating-point formats")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--random-bits", o.random_bits, "random bits of sr")->check(CLI::Range(1, 31));
  app.add_option("--seed", o.seed, "of generated operands and of sr");
  app.add_option("--tensor", o.tensor, "tensor name that keys sr");
  app.add_option("--step", o.step, "step that keys sr");
  app.add_option("--scale", o.scale_rule, "scale rule of mx: floor (unless said) or rceil");
  app.add_option("--share", o.sharing, "who shares an integer scale: tensor (unless said), channel or group")
      ->check(CLI::IsMember({"tensor", "channel", "group"}));
  app.add_option("--group", o.group, "elements of a group, along the last dimension");
  app.add_flag("--affine", o.affine, "integer scales with zero points");
  app.add_flag("--pad", o.pad, "pad rows with zeros to whole blocks or groups");
  app.add_option("--channels", o.channel_axis, "count by index of this dimension too (from 0)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--formats", o.formats_file, "YAML file with more formats");
  app.add_option("--values", o.values_file, "write the rounded values to this .npy file");
  app.add_option("--codes", o.codes_file, "write the codes to this .npy file");
  app.add_option("--threads", o.threads, "threads, 1 unless said; 0: as many as the machine has");
  app.add_option("--format", o.output, "text or json")->check(CLI::IsMember({"text", "json"}));
}

std::string power_of_two(int exponent) { return fmt::format("2^{}", exponent); }

/// Distinct codes and the span of finite results.
void summarize_codes(const Rounded& rounded, std::uint64_t possible, RoundReport& report) {
  std::vector<std::uint32_t> codes(rounded.values.size());
  const std::size_t width = bytes_of(rounded.codes.type);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    for (std::size_t b = 0; b < width; ++b) {
      codes[i] |= std::to_integer<std::uint32_t>(rounded.codes.bytes[i * width + b]) << (8 * b);
    }
  }
  std::sort(codes.begin(), codes.end());
  report.codes_used = static_cast<std::uint64_t>(std::unique(codes.begin(), codes.end()) - codes.begin());
  report.codes_possible = possible;
  bool any = false;
  for (const float v : rounded.values) {
    if (!std::isfinite(v)) continue;
    report.least_result = any ? std::min(report.least_result, double{v}) : v;
    report.greatest_result = any ? std::max(report.greatest_result, double{v}) : v;
    any = true;
  }
}

void add_rounding_policy(const RoundOptions& o, Rounding rounding, RoundReport& report) {
  report.policy.emplace_back("rounding", to_string(rounding));
  if (rounding != Rounding::sr) return;
  report.policy.emplace_back("random bits", fmt::format("{}", o.random_bits));
  report.policy.emplace_back("random key", fmt::format("seed {}, tensor {}, step {}", o.seed, o.tensor, o.step));
}

Result<Rounded> round_to_format(const Operand& operand, const Format& format, Rounding rounding, const RoundOptions& o,
                                RoundReport& report) {
  if (o.saturation.empty()) {
    return make_error("usage", {}, "no saturation policy is given",
                      "say --saturation on (clamp) or off (IEEE overflow): existing software differs");
  }
  const RoundSpec spec{format, rounding, o.saturation == "on" ? Saturation::on : Saturation::off, o.random_bits,
                       o.key()};
  add_rounding_policy(o, rounding, report);
  report.policy.emplace_back("saturation", o.saturation);
  report.policy.emplace_back(
      "format",
      fmt::format(
          "{} exponent, {} fraction bits, bias {}; largest {:.6g}, least normal {}, least {}; infinity {}, NaN {}",
          format.exponent_bits, format.fraction_bits, format.bias, format.max_value(),
          power_of_two(format.min_normal_exponent()), power_of_two(format.min_positive_exponent()),
          format.has_infinity ? "yes" : "no", to_string(format.nan)));
  report.format = format;
  report.bits_per_element = format.bits();
  Rounded rounded;
  rounded.codes.type = format.code_bytes() == 1 ? NpyType::u1 : format.code_bytes() == 2 ? NpyType::u2 : NpyType::u4;
  rounded.codes.bytes.resize(operand.values.size() * static_cast<std::size_t>(format.code_bytes()));
  report.counters = round_to_codes(operand.values, spec, rounded.codes.bytes.data(), o.threads);
  rounded.values.resize(operand.values.size());
  decode_to_values(rounded.codes.bytes.data(), format, rounded.values);
  summarize_codes(rounded, std::uint64_t{format.code_count_minus_one()} + 1, report);
  if (!o.by_channel) return rounded;
  const auto axis = static_cast<std::size_t>(o.channel_axis);
  if (axis >= operand.shape.size()) {
    return make_error("shape-mismatch", {},
                      fmt::format("there is no dimension {} in an array of {}", axis, operand.shape.size()));
  }
  ChannelShape shape;
  for (std::size_t i = 0; i < operand.shape.size(); ++i) {
    (i < axis ? shape.outer : i == axis ? shape.channels : shape.inner) *= operand.shape[i];
  }
  std::vector<float> unused(operand.values.size());
  report.channels = round_by_channel(operand.values, shape, spec, unused, o.threads);
  return rounded;
}

std::vector<std::byte> unpadded(const ByteBuffer& codes, std::size_t rows, std::size_t columns,
                                std::size_t padded_columns) {
  std::vector<std::byte> bytes;
  bytes.reserve(rows * columns);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t c = 0; c < columns; ++c) bytes.push_back(std::byte{codes[row * padded_columns + c]});
  }
  return bytes;
}

Result<Rounded> round_to_mx(const Operand& operand, const MxElement& element, Rounding rounding, const RoundOptions& o,
                            RoundReport& report) {
  PL_TRY(const ScaleRule rule, find_scale_rule(o.scale_rule));
  const MxSpec spec{element, rule, rounding, o.random_bits, o.key()};
  PL_TRY(const MxTensor tensor, quantize_mx(operand.values, operand.rows(), operand.columns(), spec, o.pad, o.threads));
  report.policy.emplace_back("block", "32 elements, E8M0 scale (OCP MX 1.0)");
  report.policy.emplace_back("scale rule", to_string(rule));
  add_rounding_policy(o, rounding, report);
  report.policy.emplace_back("saturation", "on (elements)");
  report.bits_per_element = mx_bits_per_element(element);
  report.counters = tensor.counters;
  report.nan_blocks = tensor.nan_blocks;
  Rounded rounded;
  rounded.codes.type = element.is_integer ? NpyType::i1 : NpyType::u1;
  rounded.codes.bytes = unpadded(tensor.codes, tensor.rows, tensor.columns, tensor.padded_columns);
  rounded.values = decode_mx(tensor, element);
  summarize_codes(rounded, std::uint64_t{1} << element.format.bits(), report);
  return rounded;
}

Result<Rounded> round_to_nvfp4(const Operand& operand, Rounding rounding, const RoundOptions& o, RoundReport& report) {
  const Nvfp4Spec spec{rounding, o.random_bits, o.key()};
  PL_TRY(const Nvfp4Tensor tensor,
         quantize_nvfp4(operand.values, operand.rows(), operand.columns(), spec, o.pad, o.threads));
  report.policy.emplace_back("block", "16 elements, E4M3 scale, float32 per tensor (NVFP4)");
  report.policy.emplace_back("tensor scale", fmt::format("{:.9g}", tensor.tensor_scale));
  add_rounding_policy(o, rounding, report);
  report.policy.emplace_back("saturation", "on (elements and scales)");
  report.bits_per_element = kNvfp4BitsPerElement;
  report.counters = tensor.counters;
  report.nan_blocks = tensor.nan_blocks;
  Rounded rounded;
  rounded.codes.type = NpyType::u1;
  rounded.codes.bytes = unpadded(tensor.codes, tensor.rows, tensor.columns, tensor.padded_columns);
  rounded.values = decode_nvfp4(tensor);
  summarize_codes(rounded, 16, report);
  return rounded;
}

Result<Rounded> round_to_integer(const Operand& operand, const IntegerRange& range, Rounding rounding,
                                 const RoundOptions& o, RoundReport& report) {
  const Sharing sharing = o.sharing == "tensor"    ? Sharing::tensor
                          : o.sharing == "channel" ? Sharing::channel
                                                   : Sharing::group;
  const IntegerSpec spec{range, o.affine, sharing, o.group, o.pad, rounding, o.random_bits, o.key()};
  const std::size_t rows = operand.rows();
  const std::size_t columns = operand.columns();
  PL_TRY(const IntegerScales scales, choose_scales(operand.values, rows, columns, spec, o.threads));
  PL_TRY(const IntegerTensor tensor, quantize_integer(operand.values, rows, columns, spec, scales, o.threads));
  report.policy.emplace_back("range", fmt::format("{} to {}", range.low, range.high));
  report.policy.emplace_back("zero point", o.affine ? "affine" : "symmetric");
  report.policy.emplace_back(
      "scale per", sharing == Sharing::group ? fmt::format("group of {}", o.group) : std::string(to_string(sharing)));
  const auto [least, greatest] = std::minmax_element(scales.scale.begin(), scales.scale.end());
  if (!scales.scale.empty()) {
    report.policy.emplace_back("scales",
                               fmt::format("{} from {:.6g} to {:.6g}", scales.scale.size(), *least, *greatest));
  }
  add_rounding_policy(o, rounding, report);
  report.policy.emplace_back("saturation", "on");
  report.bits_per_element = integer_bits_per_element(spec, rows, columns);
  report.counters = tensor.counters;
  Rounded rounded;
  rounded.codes.type = range.low < 0 ? NpyType::i1 : NpyType::u1;
  const auto bytes = std::as_bytes(std::span(tensor.codes));
  rounded.codes.bytes.assign(bytes.begin(), bytes.end());
  rounded.values = decode_integer(tensor, range);
  summarize_codes(rounded, static_cast<std::uint64_t>(range.high - range.low) + 1, report);
  return rounded;
}

/// Options that would be passed over in silence are errors instead.
Status check_options(const RoundOptions& o, bool is_format, bool is_mx, bool is_integer) {
  const auto misplaced = [&](bool given, const char* flag, const char* where) -> Status {
    if (!given) return Done{};
    return make_error("usage", {}, fmt::format("{} does not apply to '{}'", flag, o.target),
                      fmt::format("it is for {}", where));
  };
  PL_TRY_STATUS(
      misplaced(!is_format && o.saturation == "off", "--saturation off", "formats rounded element by element"));
  PL_TRY_STATUS(misplaced(!is_mx && o.scale_rule != "floor", "--scale", "mx: targets"));
  PL_TRY_STATUS(misplaced(!is_integer && o.affine, "--affine", "integer ranges"));
  PL_TRY_STATUS(misplaced(!is_integer && o.sharing != "tensor", "--share", "integer ranges"));
  PL_TRY_STATUS(misplaced(o.sharing != "group" && o.group != 0, "--group", "integer ranges with --share group"));
  PL_TRY_STATUS(misplaced(!is_format && o.by_channel, "--channels", "formats rounded element by element"));
  return Done{};
}

Result<Rounded> round_operand(const Operand& operand, const RoundOptions& o, RoundReport& report) {
  std::vector<Format> more;
  if (!o.formats_file.empty()) {
    PL_TRY(more, read_format_rows(o.formats_file));
  }
  PL_TRY(const Rounding rounding, find_rounding(o.rounding));
  constexpr std::string_view kMx = "mx:";
  const bool is_mx = o.target.starts_with(kMx);
  const auto range = find_integer_range(o.target);
  const bool is_format = !is_mx && o.target != "nvfp4" && !range.ok();
  PL_TRY_STATUS(check_options(o, is_format, is_mx, range.ok()));
  if (o.target == "nvfp4") return round_to_nvfp4(operand, rounding, o, report);
  if (range.ok()) return round_to_integer(operand, *range, rounding, o, report);
  const std::string name = is_mx ? o.target.substr(kMx.size()) : o.target;
  if (is_mx && name == "int8") return round_to_mx(operand, *find_mx_element(name), rounding, o, report);
  PL_TRY(const Format format, find_format_in(more, name));
  if (!is_mx) return round_to_format(operand, format, rounding, o, report);
  PL_TRY(const MxElement element, make_mx_element(format));
  return round_to_mx(operand, element, rounding, o, report);
}

Result<RoundReport> make_report(const RoundOptions& o) {
  PL_TRY_STATUS(check_output_files(o.values_file, o.codes_file));
  PL_TRY(const Operand operand, read_operand(o.operand, o.seed));
  RoundReport report;
  report.operand = operand.description;
  report.shape = operand.shape;
  report.target = o.target;
  PL_TRY(Rounded rounded, round_operand(operand, o, report));
  report.error = compare_values(
      rounded.values, [&](std::size_t i) { return operand.original(i); }, o.threads);
  report.histogram = exponent_histogram(operand.values, o.threads);
  if (operand.inexact_values != 0) {
    report.notes.push_back(
        fmt::format("{} elements were rounded to float32 first; the error is against the file's own values",
                    operand.inexact_values));
  }
  if (!o.values_file.empty()) {
    PL_TRY_STATUS(save_npy(o.values_file, make_npy(rounded.values, operand.shape)));
  }
  if (!o.codes_file.empty()) {
    rounded.codes.shape = operand.shape;
    PL_TRY_STATUS(save_npy(o.codes_file, rounded.codes));
  }
  return report;
}

}  // namespace

int round_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app("Rounds a tensor to a number format and tells what happened to it.", "round");
  RoundOptions options;
  declare(app, options);
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  options.by_channel = options.channel_axis >= 0;
  const auto report = make_report(options);
  if (!report.ok()) {
    err << render(report.errors());
    return kCannotSay;
  }
  out << (options.output == "json" ? round_json(*report) : round_text(*report));
  if (report->counters.errors() == 0) return kYes;
  err << fmt::format("{} elements have no meaning in {}: the result is not usable as it stands\n",
                     report->counters.errors(), report->target);
  return kNo;
}

}  // namespace plumbline::cli
