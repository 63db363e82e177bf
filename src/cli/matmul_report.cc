#include "cli/matmul_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace plumbline::cli {
namespace {

using namespace numerics;
using Json = nlohmann::ordered_json;

constexpr int kBarWidth = 40;         // characters of the longest bar
constexpr std::size_t kMaxBars = 32;  // rows of a histogram, so that two fit a screen

/// The result counters once: name in both renderings, meaning in the text.
struct ResultRow {
  const char* name;
  const char* meaning;
  std::int64_t ResultCounters::*field;
};
constexpr ResultRow kResultRows[] = {
    {"overflow", "infinite or NaN though every operand is finite", &ResultCounters::overflow},
    {"infinite", "infinite results", &ResultCounters::infinite},
    {"nan", "NaN results", &ResultCounters::nan},
    {"at_largest", "of the largest finite magnitude", &ResultCounters::at_largest},
    {"subnormal", "below the result format's normals", &ResultCounters::subnormal},
    {"zero", "zero results", &ResultCounters::zero},
};

struct RegisterRow {
  const char* name;
  const char* meaning;
  std::int64_t RegisterTally::*field;
  std::int64_t RegisterTally::*of;
  bool of_blocks;  ///< whether a tensor core's block operations count it
};
constexpr RegisterRow kRegisterRows[] = {
    {"inexact", "sums the register cannot hold", &RegisterTally::inexact, &RegisterTally::observed, true},
    {"absorbed", "nonzero addends that changed nothing", &RegisterTally::absorbed, &RegisterTally::observed, false},
    {"swamped", "sums of which an addend left nothing", &RegisterTally::swamped, &RegisterTally::observed, false},
    {"beyond", "finite sums beyond the largest value", &RegisterTally::beyond, &RegisterTally::observed, false},
    {"products_inexact", "products that lost bits when rounded or aligned", &RegisterTally::products_inexact,
     &RegisterTally::products, true},
    {"products_to_zero", "nonzero products lost wholly", &RegisterTally::products_to_zero, &RegisterTally::products,
     true},
};

struct CounterRow {
  const char* name;
  std::uint64_t Counters::*field;
};
constexpr CounterRow kCounterRows[] = {
    {"overflow", &Counters::overflow},
    {"saturated", &Counters::saturated},
    {"underflow_to_zero", &Counters::underflow_to_zero},
    {"subnormal", &Counters::subnormal},
    {"inexact", &Counters::inexact},
    {"infinity_in", &Counters::infinity_in},
    {"nan_in", &Counters::nan_in},
    {"nan_lost", &Counters::nan_lost},
    {"out_of_domain", &Counters::out_of_domain},
};

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// A block of a tensor core has many addends at once, so what one addend did to the sum is not counted there.
bool counts(const RegisterRow& row, const RegisterTally& tally) { return row.of_blocks || tally.name != "tensor core"; }

std::string bar(std::int64_t count, std::int64_t largest) {
  const auto length = std::lround(static_cast<double>(count) / static_cast<double>(largest) * kBarWidth);
  std::string text;
  for (long i = 0; i < length; ++i) text += "█";
  if (length == 0 && count != 0) text = "▏";  // what occurs is seen
  return text;
}

const char* region(int exponent, const std::optional<Format>& format) {
  if (!format) return "";
  if (exponent > format->max_exponent()) return "beyond";
  if (exponent >= format->min_normal_exponent()) return "";
  return "subnormal";
}

std::string histogram_text(const RegisterTally& tally, const std::optional<Format>& format) {
  std::int64_t total = 0;
  std::int64_t largest = 1;
  std::size_t top = 0;
  for (std::size_t e = 0; e < tally.exponents.size(); ++e) {
    total += tally.exponents[e];
    largest = std::max(largest, tally.exponents[e]);
    if (tally.exponents[e] != 0 && e != 255) top = e;
  }
  if (total == 0) return {};
  std::string text = fmt::format("    sums of the {} by binade, {} seen\n", tally.name, total);
  const auto line = [&](const std::string& label, std::int64_t count, const char* note) {
    text += fmt::format("    {:>9} {:>7.3f} %  {}{}{}\n", label, percent(count, total), bar(count, largest),
                        *note != 0 ? "  " : "", note);
  };
  if (tally.exponents[255] != 0) line("inf, nan", tally.exponents[255], "");
  std::int64_t smaller = tally.exponents[0];
  for (std::size_t e = top; e > 0; --e) {
    if (top - e >= kMaxBars) {
      smaller += tally.exponents[e];
    } else if (std::any_of(tally.exponents.begin() + 1, tally.exponents.begin() + static_cast<std::ptrdiff_t>(e) + 1,
                           [](std::int64_t count) { return count != 0; })) {
      const int exponent = static_cast<int>(e) - 127;
      line(fmt::format("2^{}", exponent), tally.exponents[e], region(exponent, format));
    }
  }
  if (smaller != 0) line(smaller == tally.exponents[0] ? "zero" : "smaller", smaller, "");
  return text;
}

std::string register_text(const RegisterTally& tally, const std::optional<Format>& format) {
  std::string text = fmt::format("  {}: {} of {} accumulations observed\n", tally.name, tally.observed, tally.total);
  for (const RegisterRow& row : kRegisterRows) {
    if (tally.*row.of == 0 || !counts(row, tally)) continue;
    text += fmt::format("    {:<18} {:>14} {:>9.4f} %  {}\n", row.name, tally.*row.field,
                        percent(tally.*row.field, tally.*row.of), row.meaning);
  }
  return text + histogram_text(tally, format);
}

std::string error_text(const char* title, const ErrorSummary& error) {
  return fmt::format("  {:<36} largest {:.4g}, root mean square {:.4g}, bias {:.3g}, {:.4g} dB over {} finite pairs\n",
                     title, error.largest, error.root_mean_square, error.bias, error.signal_to_noise_db,
                     error.compared);
}

std::string run_text(const MatmulRunReport& run) {
  std::string text = fmt::format("\n{} ({})\n", run.name, run.claim);
  for (const std::string& rule : run.rules) text += fmt::format("  {}\n", rule);
  text += fmt::format("  results in {}, kernel {}\n", run.result_format, run.kernel);
  if (run.results) {
    for (const ResultRow& row : kResultRows) {
      text += fmt::format("    {:<18} {:>14} {:>9.4f} %  {}\n", row.name, *run.results.*row.field,
                          percent(*run.results.*row.field, run.results->results), row.meaning);
    }
  }
  if (run.integers) {
    text += fmt::format("    {:<18} {:>14} {:>9.4f} %  exact sums outside 32 bits\n", "wrapped", run.integers->wrapped,
                        percent(run.integers->wrapped, run.integers->results));
    text += fmt::format("    {:<18} {:>14}              largest magnitude of an exact sum\n", "largest",
                        run.integers->largest);
  }
  for (const RegisterTally& tally : run.registers) text += register_text(tally, run.accumulator);
  if (run.output) {
    text += fmt::format("  converted: {}\n", run.output_policy);
    for (const CounterRow& row : kCounterRows) {
      if (*run.output.*row.field != 0) text += fmt::format("    {:<18} {:>14}\n", row.name, *run.output.*row.field);
    }
  }
  text += error_text("error of accumulation", run.accumulation_error);
  text += error_text("error with the operands' rounding", run.total_error);
  return text;
}

std::string ranking_text(const MatmulReport& report) {
  std::string text = fmt::format("\n{:<24} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "accumulation", "error rms", "dB",
                                 "overflow", "absorbed %", "to zero %");
  for (const MatmulRunReport& run : report.runs) {
    const std::int64_t overflow = run.results ? run.results->overflow : run.integers ? run.integers->wrapped : 0;
    std::string absorbed = "-";
    std::string lost = "-";
    if (!run.registers.empty()) {
      const RegisterTally& inner = run.registers.front();
      if (run.kernel != "tensor-core") absorbed = fmt::format("{:.4f}", percent(inner.absorbed, inner.observed));
      if (inner.products != 0) lost = fmt::format("{:.4f}", percent(inner.products_to_zero, inner.products));
    }
    text += fmt::format("{:<24} {:>12.4g} {:>12.4g} {:>12} {:>12} {:>12}\n", run.name,
                        run.accumulation_error.root_mean_square, run.accumulation_error.signal_to_noise_db, overflow,
                        absorbed, lost);
  }
  return text;
}

/// JSON has no infinity: a ratio without noise is null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json error_json(const ErrorSummary& error) {
  return {{"compared", error.compared},
          {"not_finite", error.not_finite},
          {"largest", number(error.largest)},
          {"largest_relative", number(error.largest_relative)},
          {"root_mean_square", number(error.root_mean_square)},
          {"bias", number(error.bias)},
          {"signal_to_noise_db", error.compared == 0 ? Json(nullptr) : number(error.signal_to_noise_db)}};
}

Json counters_json(const Counters& counters) {
  Json json;
  json["elements"] = counters.elements;
  for (const CounterRow& row : kCounterRows) json[row.name] = counters.*row.field;
  return json;
}

Json register_json(const RegisterTally& tally) {
  Json json = {{"register", tally.name}, {"accumulations", tally.total}, {"observed", tally.observed}};
  json["products_observed"] = tally.products;
  for (const RegisterRow& row : kRegisterRows) {
    json[row.name] = counts(row, tally) ? Json(tally.*row.field) : Json(nullptr);
  }
  json["binades"] = Json::array();
  for (std::size_t e = 0; e < tally.exponents.size(); ++e) {
    if (tally.exponents[e] != 0) json["binades"].push_back({{"exponent_field", e}, {"sums", tally.exponents[e]}});
  }
  return json;
}

Json run_json(const MatmulRunReport& run) {
  Json json = {{"accumulation", run.name},
               {"claim", run.claim},
               {"rules", run.rules},
               {"kernel", run.kernel},
               {"result_format", run.result_format}};
  if (run.results) {
    json["results"]["results"] = run.results->results;
    for (const ResultRow& row : kResultRows) json["results"][row.name] = *run.results.*row.field;
  }
  if (run.integers) {
    json["integers"] = {
        {"results", run.integers->results}, {"wrapped", run.integers->wrapped}, {"largest", run.integers->largest}};
  }
  json["registers"] = Json::array();
  for (const RegisterTally& tally : run.registers) json["registers"].push_back(register_json(tally));
  if (run.output) {
    json["output"] = {{"policy", run.output_policy}, {"counters", counters_json(*run.output)}};
  }
  json["accumulation_error"] = error_json(run.accumulation_error);
  json["total_error"] = error_json(run.total_error);
  return json;
}

}  // namespace

std::string matmul_text(const MatmulReport& report) {
  std::string text = fmt::format("matmul {} x {} x {} (m n k)\n", report.m, report.n, report.k);
  for (const MatmulOperandReport& operand : report.operands) {
    text += fmt::format("  {} [{} x {}] as {}: {}\n", operand.description, operand.rows, operand.columns,
                        operand.format, operand.policy);
    for (const CounterRow& row : kCounterRows) {
      const auto count = static_cast<std::int64_t>(operand.counters.*row.field);
      if (count == 0) continue;
      text += fmt::format("    {:<18} {:>14} {:>9.4f} %\n", row.name, count,
                          percent(count, static_cast<std::int64_t>(operand.counters.elements)));
    }
  }
  for (const MatmulRunReport& run : report.runs) text += run_text(run);
  if (report.runs.size() > 1) text += ranking_text(report);
  for (const std::string& note : report.notes) text += fmt::format("\nnote: {}\n", note);
  return text;
}

std::string matmul_json(const MatmulReport& report) {
  Json json;
  json["plumbline"] = 1;
  json["kind"] = "matmul";
  json["m"] = report.m;
  json["n"] = report.n;
  json["k"] = report.k;
  json["operands"] = Json::array();
  for (const MatmulOperandReport& operand : report.operands) {
    json["operands"].push_back({{"operand", operand.description},
                                {"shape", {operand.rows, operand.columns}},
                                {"format", operand.format},
                                {"policy", operand.policy},
                                {"counters", counters_json(operand.counters)}});
  }
  json["runs"] = Json::array();
  for (const MatmulRunReport& run : report.runs) json["runs"].push_back(run_json(run));
  json["notes"] = report.notes;
  return json.dump(2) + "\n";
}

}  // namespace plumbline::cli
