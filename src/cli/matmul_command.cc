#include "cli/matmul_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <functional>
#include <optional>
#include <span>

#include "cli/command.h"
#include "cli/format_rows.h"
#include "cli/mapping_file.h"
#include "cli/matmul_report.h"
#include "cli/output_files.h"
#include "cli/parse.h"
#include "core/parallel.h"
#include "execute/numerics/integer.h"
#include "execute/numerics/npy.h"
#include "execute/numerics/operand.h"
#include "execute/numerics/round.h"

namespace plumbline::cli {
namespace {

using namespace plumbline::numerics;

struct MatmulCommandOptions {
  std::string a;
  std::string b;
  std::string c;
  std::string input = "binary16";
  std::string a_format;
  std::string b_format;
  std::string input_rounding = "rne";
  std::string saturation;  ///< of operands; must be said when an operand goes beyond its format
  std::vector<std::string> accumulations;
  std::string reduction;
  std::string accumulator;
  std::string rounding = "rne";
  std::string accumulator_saturation = "off";
  int random_bits = 16;
  int block = 0;
  int fraction_bits = 0;
  int result_bits = 0;
  std::string final_rounding = "truncate";
  std::int64_t every = 0;
  std::vector<std::int64_t> splits;
  std::string join = "sequential";
  std::string mapping;
  std::string accelerator;
  std::string into;  ///< binary32 unless said
  std::string observe = "auto";
  std::string output;
  std::string output_saturation;
  std::string values_file;
  std::string codes_file;
  std::string formats_file;
  std::string format = "text";
  std::uint64_t seed = 0;
  unsigned threads = 1;
};

void declare(CLI::App& app, MatmulCommandOptions& o) {
  const auto on_off = CLI::IsMember({"on", "off"});
  app.add_option("a", o.a, "m x k: a .npy file, or normal:MxK, uniform:MxK, outliers:MxK, ramp:MxK")->required();
  app.add_option("b", o.b, "k x n, likewise")->required();
  app.add_option("--c", o.c, "m x n: what the sums start from; zero without it");
  app.add_option(
      "--input", o.input,
      "format of both operands, fp16 unless said, or an integer range (int8_symmetric, …) for exact integers");
  app.add_option("--a-format", o.a_format, "format of a, where it differs");
  app.add_option("--b-format", o.b_format, "format of b, where it differs");
  app.add_option("--input-rounding", o.input_rounding,
                 "how operands are rounded to it: rne (unless said), rtz, ru, rd, rna");
  app.add_option("--saturation", o.saturation, "on or off: operands beyond their format; must be said if there are any")
      ->check(on_off);
  app.add_option(
         "--accumulate", o.accumulations,
         "named accumulations, compared when several: " + fmt::format("{}", fmt::join(accumulation_names(), ", ")))
      ->delimiter(',');
  app.add_option("--reduction", o.reduction,
                 "an accumulation of your own: sequential-fused, sequential-rounded, pairwise or tensor-core");
  app.add_option("--accumulator", o.accumulator, "its format; with --accumulate, instead of the named one's");
  app.add_option("--rounding", o.rounding, "its rounding: rne (unless said), rtz, ru, rd, rna or sr");
  app.add_option("--accumulator-saturation", o.accumulator_saturation, "on, or off (unless said)")->check(on_off);
  app.add_option("--random-bits", o.random_bits, "random bits of sr")->check(CLI::Range(1, 28));
  app.add_option("--block", o.block, "products per block of a tensor core");
  app.add_option("--fraction-bits", o.fraction_bits, "fraction bits its terms keep");
  app.add_option("--result-bits", o.result_bits, "significant bits of its results");
  app.add_option("--final", o.final_rounding, "its final rounding")->check(CLI::IsMember({"truncate", "nearest-even"}));
  app.add_option("--every", o.every, "partial sums of so many products, joined in another register")
      ->check(CLI::PositiveNumber);
  app.add_option("--splits", o.splits, "or pieces that begin at these positions of k (split-K)")->delimiter(',');
  app.add_option("--join", o.join, "how partial sums are joined: sequential unless said")
      ->check(CLI::IsMember({"sequential", "pairwise"}));
  app.add_option(
      "--into", o.into,
      "format of the register that joins them, fp32 unless said; with --mapping it is the accumulator's own");
  app.add_option("--mapping", o.mapping,
                 "the order a mapping adds the products in: its file, as plumbline map --save writes it");
  app.add_option("--accelerator", o.accelerator, "whose levels the mapping names: catalogue name, or path of a file");
  app.add_option("--observe", o.observe, "accumulations counted: auto (unless said), off, or every so many (1: all)");
  app.add_option("--output", o.output, "format the results are converted to");
  app.add_option("--output-saturation", o.output_saturation, "on or off; must be said with --output")->check(on_off);
  app.add_option("--values", o.values_file, "write the results to this .npy file");
  app.add_option("--codes", o.codes_file, "write the results' codes to this .npy file");
  app.add_option("--formats", o.formats_file, "YAML file with more formats");
  app.add_option("--seed", o.seed, "of generated operands and of stochastic rounding");
  app.add_option("--threads", o.threads, "threads, 1 unless said; 0: as many as the machine has");
  app.add_option("--format", o.format, "text or json")->check(CLI::IsMember({"text", "json"}));
}

/// Both operands, as given and as the multiplier sees them.
struct Loaded {
  Operand a;
  Operand b;
  Operand c;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// An operand whose shape is known and whose values may still have to be generated.
struct Announced {
  std::string text;
  std::uint64_t seed = 0;
  std::vector<std::size_t> shape;
  std::optional<Operand> file;
};

/// Reads a file, or only the shape of what is to be generated: mismatched shapes must not cost minutes.
Result<Announced> announce(const std::string& text, std::uint64_t seed, const char* name) {
  Announced announced{text, seed, {}, {}};
  PL_TRY(const auto generated, generated_shape(text));
  if (generated) {
    announced.shape = *generated;
  } else {
    PL_TRY(announced.file, read_operand(text, seed));
    announced.shape = announced.file->shape;
  }
  if (announced.shape.size() == 2) return announced;
  return make_error("shape-mismatch", {}, fmt::format("{} has {} dimensions", name, announced.shape.size()),
                    "operands are matrices");
}

Result<Operand> values_of(Announced announced) {
  if (announced.file) return std::move(*announced.file);
  return read_operand(announced.text, announced.seed);
}

Result<Loaded> load(const MatmulCommandOptions& o) {
  PL_TRY(Announced a, announce(o.a, o.seed, "a"));
  PL_TRY(Announced b, announce(o.b, o.seed + 1, "b"));
  Loaded loaded;
  loaded.m = static_cast<std::int64_t>(a.shape[0]);
  loaded.k = static_cast<std::int64_t>(a.shape[1]);
  loaded.n = static_cast<std::int64_t>(b.shape[1]);
  if (a.shape[1] != b.shape[0]) {
    return make_error("shape-mismatch", {},
                      fmt::format("a is {} x {} and b is {} x {}", loaded.m, loaded.k, b.shape[0], loaded.n),
                      "the columns of a are the rows of b");
  }
  if (loaded.m < 1 || loaded.n < 1 || loaded.k < 1) {
    return make_error("shape-mismatch", {},
                      fmt::format("a is {} x {} and b is {} x {}", loaded.m, loaded.k, loaded.k, loaded.n),
                      "every dimension is at least 1; an empty sum has no accumulator to speak of");
  }
  if (!o.c.empty()) {
    PL_TRY(Announced c, announce(o.c, o.seed + 2, "c"));
    if (c.shape[0] != a.shape[0] || c.shape[1] != b.shape[1]) {
      return make_error("shape-mismatch", {},
                        fmt::format("c is {} x {}, the product {} x {}", c.shape[0], c.shape[1], loaded.m, loaded.n));
    }
    PL_TRY(loaded.c, values_of(std::move(c)));
  }
  PL_TRY(loaded.a, values_of(std::move(a)));
  PL_TRY(loaded.b, values_of(std::move(b)));
  return loaded;
}

/// Rounds an operand to its format. Whether what lies beyond saturates must be said once it matters.
Result<std::vector<float>> round_operand(const Operand& operand, const Format& format, const MatmulCommandOptions& o,
                                         MatmulReport& report) {
  PL_TRY(const Rounding rounding, find_rounding(o.input_rounding));
  if (rounding == Rounding::sr) {
    return make_error("usage", {}, "operands rounded stochastically",
                      "plumbline round … --rounding sr --values does it");
  }
  const RoundSpec spec{
      .format = format, .rounding = rounding, .saturation = o.saturation == "on" ? Saturation::on : Saturation::off};
  std::vector<float> values(operand.values.size());
  MatmulOperandReport entry{.description = operand.description,
                            .rows = static_cast<std::int64_t>(operand.shape[0]),
                            .columns = static_cast<std::int64_t>(operand.shape[1]),
                            .format = format.name,
                            .policy = "",
                            .counters = round_to_values(operand.values, spec, values, o.threads)};
  const std::uint64_t beyond = entry.counters.overflow + entry.counters.infinity_in;
  if (beyond != 0 && o.saturation.empty()) {
    return make_error("usage", {},
                      fmt::format("{} elements of {} lie beyond {}, and no saturation policy is given", beyond,
                                  operand.description, format.name),
                      "say --saturation on (clamp) or off (IEEE overflow): existing software differs");
  }
  entry.policy =
      fmt::format("rounded {}, saturation {}", to_string(rounding), o.saturation.empty() ? "not needed" : o.saturation);
  report.operands.push_back(std::move(entry));
  return values;
}

/// The product in float64, k ascending: rows in parallel, each in one fixed order.
std::vector<double> float64_product(const Loaded& shape, const std::function<double(std::size_t)>& a,
                                    const std::function<double(std::size_t)>& b,
                                    const std::function<double(std::size_t)>& c, unsigned threads) {
  const auto m = static_cast<std::size_t>(shape.m);
  const auto n = static_cast<std::size_t>(shape.n);
  const auto k = static_cast<std::size_t>(shape.k);
  std::vector<double> b_values(k * n);
  for (std::size_t i = 0; i < b_values.size(); ++i) b_values[i] = b(i);
  std::vector<double> product(m * n);
  parallel_for(m, threads, [&](std::size_t row) {
    double* const to = product.data() + row * n;
    for (std::size_t j = 0; j < n; ++j) to[j] = c(row * n + j);
    for (std::size_t i = 0; i < k; ++i) {
      const double factor = a(row * k + i);
      const double* const from = b_values.data() + i * n;
      for (std::size_t j = 0; j < n; ++j) to[j] += factor * from[j];
    }
  });
  return product;
}

/// The accumulations asked for, named ones first.
class AccumulationReader {
 public:
  AccumulationReader(const MatmulCommandOptions& o, const std::vector<Format>& more) : o_(o), more_(more) {}

  Result<std::vector<Accumulation>> read(const Format& a, const Format& b) const {
    std::vector<Accumulation> made;
    std::vector<std::string> names = o_.accumulations;
    if (names.empty() && o_.reduction.empty()) names = {"fp32-fused"};
    for (const std::string& name : names) {
      std::string format = o_.accumulator;
      if (!format.empty()) {
        PL_TRY(const Format known, find_format_in(more_, format));
        format = known.name;
      }
      PL_TRY(Accumulation named, find_accumulation(name, a, format));
      named.seed = o_.seed;
      PL_TRY_STATUS(add_blocking(named));
      made.push_back(std::move(named));
    }
    if (!o_.reduction.empty()) {
      PL_TRY(Accumulation own, read_own(a));
      made.push_back(std::move(own));
    }
    for (const Accumulation& one : made) PL_TRY_STATUS(check_tensor_operands(one, a, b));
    return made;
  }

 private:
  static Status check_tensor_operands(const Accumulation& one, const Format& a, const Format& b) {
    if (one.reduction != Reduction::tensor_core || one.core.device.empty() || a == b) return Done{};
    return make_error("unsupported", {}, fmt::format("{} with {} and {} operands", one.name, a.name, b.name),
                      "its rows were checked with one format for both; state block, fraction bits and result bits");
  }

  Result<Register> read_register(const std::string& format) const {
    Register made;
    PL_TRY(made.format, find_format_in(more_, format));
    PL_TRY(made.rounding, find_rounding(o_.rounding));
    made.saturation = o_.accumulator_saturation == "on" ? Saturation::on : Saturation::off;
    made.random_bits = o_.random_bits;
    return made;
  }

  Result<Accumulation> read_own(const Format& a) const {
    Accumulation own;
    own.seed = o_.seed;
    PL_TRY(own.reduction, find_reduction(o_.reduction));
    PL_TRY(own.accumulator, read_register(o_.accumulator.empty() ? "binary32" : o_.accumulator));
    own.name = fmt::format("{} {}", o_.reduction, own.accumulator.format.name);
    if (own.reduction == Reduction::tensor_core) {
      if (o_.block == 0 || o_.fraction_bits == 0 || o_.result_bits == 0) {
        return make_error("usage", {}, "a tensor core without its numbers",
                          "give --block, --fraction-bits and --result-bits, or a device by --accumulate");
      }
      own.core = {
          .device = "",
          .input = a.name,
          .output = own.accumulator.format.name,
          .block = o_.block,
          .fraction_bits = o_.fraction_bits,
          .result_bits = o_.result_bits,
          .final_rounding = o_.final_rounding == "truncate" ? FinalRounding::truncate : FinalRounding::nearest_even,
          .addend = Addend::in_block,
          .evidence = CoreEvidence::stated,
          .note = ""};
    }
    PL_TRY_STATUS(add_blocking(own));
    return own;
  }

  Status add_blocking(Accumulation& accumulation) const {
    if (o_.every == 0 && o_.splits.empty()) return Done{};
    Blocking blocking;
    blocking.every = o_.every;
    blocking.splits = o_.splits;
    blocking.join = o_.join == "pairwise" ? Join::pairwise : Join::sequential;
    PL_TRY(blocking.into.format, find_format_in(more_, o_.into.empty() ? "binary32" : o_.into));
    accumulation.blockings.push_back(std::move(blocking));
    return Done{};
  }

  const MatmulCommandOptions& o_;
  const std::vector<Format>& more_;
};

Result<Observation> read_observation(const std::string& text) {
  if (text == "auto") return Observation{kAutomatic, kAutomatic};
  if (text == "off") return Observation{0, kAutomatic};
  std::int64_t every = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), every);
  if (error != std::errc{} || end != text.data() + text.size() || every < 1) {
    return make_error("bad-number", {}, fmt::format("--observe {}", text), "auto, off, or a number from 1");
  }
  return Observation{every, kAutomatic};
}

/// Converts results and writes what was asked for; `values` become the converted ones.
Status finish_run(const MatmulCommandOptions& o, const std::vector<Format>& more, const Loaded& loaded, Format format,
                  std::span<float> values, MatmulRunReport& run) {
  RoundSpec spec{.format = std::move(format), .rounding = Rounding::rne, .saturation = Saturation::off};
  if (!o.output.empty()) {
    if (o.output_saturation.empty()) {
      return make_error("usage", {}, "--output without a saturation policy",
                        "say --output-saturation on (clamp) or off (IEEE overflow)");
    }
    PL_TRY(spec.format, find_format_in(more, o.output));
    spec.saturation = o.output_saturation == "on" ? Saturation::on : Saturation::off;
    run.output = round_to_values(values, spec, values, o.threads);
    run.output_policy = fmt::format("{}, rne, saturation {}", spec.format.name, o.output_saturation);
  }
  const std::vector<std::size_t> shape{static_cast<std::size_t>(loaded.m), static_cast<std::size_t>(loaded.n)};
  if (!o.values_file.empty()) PL_TRY_STATUS(save_npy(o.values_file, make_npy(values, shape)));
  if (o.codes_file.empty()) return Done{};
  NpyArray codes;
  codes.type = spec.format.code_bytes() == 1 ? NpyType::u1 : spec.format.code_bytes() == 2 ? NpyType::u2 : NpyType::u4;
  codes.shape = shape;
  codes.bytes.resize(values.size() * static_cast<std::size_t>(spec.format.code_bytes()));
  round_to_codes(values, spec, codes.bytes.data(), o.threads);
  return save_npy(o.codes_file, codes);
}

struct Truth {
  std::vector<double> rounded;  ///< of the operands the multiplier sees
  std::vector<double> given;
};

void measure(const Truth& truth, std::span<const float> values, unsigned threads, MatmulRunReport& run) {
  run.accumulation_error = compare_values(
      values, [&](std::size_t i) { return truth.rounded[i]; }, threads);
  run.total_error = compare_values(
      values, [&](std::size_t i) { return truth.given[i]; }, threads);
}

/// Puts the products of every accumulation in the order of the mapping.
Status take_order(const MatmulCommandOptions& o, const Loaded& loaded, std::vector<Accumulation>& accumulations) {
  if (o.accelerator.empty() != o.mapping.empty()) {
    return make_error("usage", {},
                      o.mapping.empty() ? "--accelerator without --mapping" : "--mapping without --accelerator",
                      "a mapping names the levels of an accelerator");
  }
  if (!o.into.empty() && o.every == 0 && o.splits.empty()) {
    return make_error("usage", {}, "--into without --every or --splits",
                      "it is the format in which pieces are joined; those of a mapping join in the accumulator's own");
  }
  if (o.mapping.empty()) return Done{};
  PL_TRY(const execute::ReductionOrder order,
         read_reduction_order(o.mapping, o.accelerator, loaded.m, loaded.n, loaded.k));
  for (Accumulation& one : accumulations) {
    PL_TRY(one, execute::in_order(std::move(one), order));
  }
  return Done{};
}

Status run_floats(const MatmulCommandOptions& o, const std::vector<Format>& more, const Loaded& loaded,
                  MatmulReport& report) {
  PL_TRY(const Format a_format, find_format_in(more, o.a_format.empty() ? o.input : o.a_format));
  PL_TRY(const Format b_format, find_format_in(more, o.b_format.empty() ? o.input : o.b_format));
  PL_TRY(std::vector<Accumulation> accumulations, AccumulationReader(o, more).read(a_format, b_format));
  PL_TRY_STATUS(take_order(o, loaded, accumulations));
  for (const Accumulation& one : accumulations) PL_TRY_STATUS(check_accumulation(one, loaded.k, a_format, b_format));
  if (accumulations.size() > 1 && (!o.values_file.empty() || !o.codes_file.empty())) {
    return make_error("usage", {}, "--values or --codes with several accumulations", "write one result at a time");
  }
  PL_TRY(const Observation observe, read_observation(o.observe));
  PL_TRY(const std::vector<float> a, round_operand(loaded.a, a_format, o, report));
  PL_TRY(const std::vector<float> b, round_operand(loaded.b, b_format, o, report));
  Truth truth;
  for (const Accumulation& accumulation : accumulations) {
    std::vector<float> c;
    if (!o.c.empty()) {
      PL_TRY(c, round_operand(loaded.c, result_format(accumulation), o, report));
    }
    const MatmulOperands operands{loaded.m, loaded.n, loaded.k, a, b, c, a_format, b_format};
    PL_TRY(MatmulProduct product, matmul(operands, accumulation, {o.threads, observe}));
    if (truth.given.empty() || !c.empty()) {
      truth.rounded = float64_product(
          loaded, [&](std::size_t i) { return a[i]; }, [&](std::size_t i) { return b[i]; },
          [&](std::size_t i) { return c.empty() ? 0.0 : c[i]; }, o.threads);
      truth.given = float64_product(
          loaded, [&](std::size_t i) { return loaded.a.original(i); },
          [&](std::size_t i) { return loaded.b.original(i); },
          [&](std::size_t i) { return c.empty() ? 0.0 : loaded.c.original(i); }, o.threads);
    }
    MatmulRunReport run;
    run.name = accumulation.name;
    run.rules = describe(accumulation);
    run.claim = claim_of(accumulation, loaded.k, !c.empty());
    run.kernel = product.kernel;
    run.result_format = product.format.name;
    run.results = product.counters;
    run.registers = std::move(product.registers);
    run.accumulator = accumulation.accumulator.format;
    PL_TRY_STATUS(finish_run(o, more, loaded, product.format, product.values, run));
    measure(truth, product.values, o.threads, run);
    report.runs.push_back(std::move(run));
  }
  return Done{};
}

/// Options that would be passed over in silence are errors instead.
Status check_integer_options(const MatmulCommandOptions& o) {
  const bool misplaced = !o.accumulations.empty() || !o.reduction.empty() || !o.accumulator.empty() || o.every != 0 ||
                         !o.splits.empty() || !o.mapping.empty() || !o.accelerator.empty() || !o.c.empty() ||
                         !o.codes_file.empty();
  if (!misplaced) return Done{};
  return make_error("usage", {}, "an accumulation option with integer operands",
                    "integer products are summed exactly in 32 bits, in any order; wrap-around is counted");
}

Result<IntegerTensor> quantize(const Operand& operand, const IntegerRange& range, const MatmulCommandOptions& o,
                               MatmulReport& report) {
  PL_TRY(const Rounding rounding, find_rounding(o.input_rounding));
  IntegerSpec spec;
  spec.range = range;
  spec.rounding = rounding;
  const std::size_t rows = operand.rows();
  const std::size_t columns = operand.columns();
  PL_TRY(const IntegerScales scales, choose_scales(operand.values, rows, columns, spec, o.threads));
  PL_TRY(IntegerTensor tensor, quantize_integer(operand.values, rows, columns, spec, scales, o.threads));
  report.operands.push_back({.description = operand.description,
                             .rows = static_cast<std::int64_t>(rows),
                             .columns = static_cast<std::int64_t>(columns),
                             .format = range.name,
                             .policy = fmt::format("rounded {}, saturation on, scale {:.9g} per tensor",
                                                   to_string(rounding), scales.scale[0]),
                             .counters = tensor.counters});
  return tensor;
}

Status run_integers(const MatmulCommandOptions& o, const std::vector<Format>& more, const Loaded& loaded,
                    MatmulReport& report) {
  PL_TRY_STATUS(check_integer_options(o));
  PL_TRY(const IntegerRange a_range, find_integer_range(o.a_format.empty() ? o.input : o.a_format));
  PL_TRY(const IntegerRange b_range, find_integer_range(o.b_format.empty() ? o.input : o.b_format));
  PL_TRY(const IntegerTensor a, quantize(loaded.a, a_range, o, report));
  PL_TRY(const IntegerTensor b, quantize(loaded.b, b_range, o, report));
  const auto matrix = [](const IntegerTensor& tensor, const IntegerRange& range) {
    return IntegerMatrix{static_cast<std::int64_t>(tensor.rows),
                         static_cast<std::int64_t>(tensor.columns),
                         {reinterpret_cast<const std::int8_t*>(tensor.codes.data()), tensor.codes.size()},
                         range.low >= 0};
  };
  PL_TRY(const IntegerProduct product, matmul_integer(matrix(a, a_range), matrix(b, b_range), {}, o.threads));
  const double scale = double{a.scales.scale[0]} * double{b.scales.scale[0]};
  std::vector<float> values;
  values.reserve(product.values.size());
  for (const std::int32_t sum : product.values) values.push_back(static_cast<float>(sum * scale));
  const std::vector<float> a_values = decode_integer(a, a_range);
  const std::vector<float> b_values = decode_integer(b, b_range);
  const auto zero = [](std::size_t) { return 0.0; };
  Truth truth;
  truth.rounded = float64_product(
      loaded, [&](std::size_t i) { return a_values[i]; }, [&](std::size_t i) { return b_values[i]; }, zero, o.threads);
  truth.given = float64_product(
      loaded, [&](std::size_t i) { return loaded.a.original(i); }, [&](std::size_t i) { return loaded.b.original(i); },
      zero, o.threads);
  MatmulRunReport run;
  run.name = "int32-exact";
  run.rules = {"products summed exactly in 32 bits, wrap-around modulo 2^32 (no saturation)",
               "sums times both scales in float64, rounded once to binary32"};
  run.claim = "definition";
  run.kernel = "integer";
  run.result_format = "binary32";
  run.integers = product.counters;
  PL_TRY_STATUS(finish_run(o, more, loaded, builtin_format("binary32"), values, run));
  measure(truth, values, o.threads, run);
  report.runs.push_back(std::move(run));
  return Done{};
}

Result<MatmulReport> make_report(const MatmulCommandOptions& o) {
  std::vector<Format> more;
  if (!o.formats_file.empty()) {
    PL_TRY(more, read_format_rows(o.formats_file));
  }
  PL_TRY_STATUS(check_output_files(o.values_file, o.codes_file));
  PL_TRY(const Loaded loaded, load(o));
  MatmulReport report{.m = loaded.m, .n = loaded.n, .k = loaded.k, .operands = {}, .runs = {}, .notes = {}};
  for (const Operand* operand : {&loaded.a, &loaded.b, &loaded.c}) {
    if (operand->inexact_values == 0) continue;
    report.notes.push_back(
        fmt::format("{} elements of {} were rounded to float32 first; the total error is against "
                    "the file's own values",
                    operand->inexact_values, operand->description));
  }
  const bool integers = find_integer_range(o.a_format.empty() ? o.input : o.a_format).ok();
  PL_TRY_STATUS(integers ? run_integers(o, more, loaded, report) : run_floats(o, more, loaded, report));
  return report;
}

}  // namespace

int matmul_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app("Multiplies two matrices as an accumulator really sums, and tells what was lost where.", "matmul");
  MatmulCommandOptions options;
  declare(app, options);
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  const auto report = make_report(options);
  if (!report.ok()) {
    err << render(report.errors());
    return kCannotSay;
  }
  out << (options.format == "json" ? matmul_json(*report) : matmul_text(*report));
  std::uint64_t lost = 0;
  for (const MatmulOperandReport& operand : report->operands) lost += operand.counters.errors();
  for (const MatmulRunReport& run : report->runs) lost += run.output ? run.output->errors() : 0;
  if (lost == 0) return kYes;
  err << fmt::format("{} elements have no meaning in their format: the result is not usable as it stands\n", lost);
  return kNo;
}

}  // namespace plumbline::cli
