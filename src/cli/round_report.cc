#include "cli/round_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace plumbline::cli {
namespace {

using numerics::Counters;

constexpr int kBarWidth = 40;         // characters of the longest bar
constexpr std::size_t kMaxBars = 48;  // rows of a histogram, so that it fits a screen

/// The counters once: name in both renderings, meaning in the text.
struct CounterRow {
  const char* name;
  const char* meaning;
  std::uint64_t Counters::*field;
};
constexpr CounterRow kCounters[] = {
    {"overflow", "finite, beyond the largest value once rounded", &Counters::overflow},
    {"saturated", "clamped to the largest value", &Counters::saturated},
    {"underflow_to_zero", "nonzero that became zero", &Counters::underflow_to_zero},
    {"subnormal", "results below the least normal", &Counters::subnormal},
    {"inexact", "finite inputs that changed", &Counters::inexact},
    {"infinity_in", "infinite inputs", &Counters::infinity_in},
    {"nan_in", "NaN inputs", &Counters::nan_in},
    {"nan_lost", "error: NaN into a format without NaN", &Counters::nan_lost},
    {"out_of_domain", "error: no code near the input", &Counters::out_of_domain},
};

std::string bar(std::uint64_t count, std::uint64_t largest) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double length = static_cast<double>(count) / static_cast<double>(largest) * kBarWidth;
  auto eighths = static_cast<int>(length * 8);
  if (count != 0) eighths = std::max(eighths, 1);  // what occurs is seen
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  text += kEighths[eighths % 8];
  const int used = eighths / 8 + (eighths % 8 != 0 ? 1 : 0);
  return text + std::string(static_cast<std::size_t>(kBarWidth - used), ' ');
}

/// Where inputs of the binade [2^exponent, 2^(exponent+1)) fall in a format.
const char* region(int exponent, const std::optional<numerics::Format>& format) {
  if (!format) return "";
  if (exponent > format->max_exponent()) return "overflow";
  if (exponent >= format->min_normal_exponent()) return "normal";
  return exponent >= format->min_positive_exponent() ? "subnormal" : "below the least value";
}

std::string histogram_text(const RoundReport& report) {
  const auto& counts = report.histogram;
  const std::uint64_t total = report.counters.elements;
  std::uint64_t largest = 1;
  std::size_t top = 0;
  std::size_t bottom = counts.size();
  for (std::size_t field = 1; field < 255; ++field) {
    if (counts[field] == 0) continue;
    top = field;
    bottom = std::min(bottom, field);
    largest = std::max(largest, counts[field]);
  }
  std::string text = "  inputs by binade\n";
  const auto line = [&](const std::string& label, std::uint64_t count, const char* note) {
    std::string row = fmt::format("  {:>9} {} {:>7.3f} %  {}", label, bar(count, std::max(largest, count)),
                                  100.0 * static_cast<double>(count) / static_cast<double>(total), note);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  };
  if (counts[255] != 0) line("inf, nan", counts[255], "");
  std::uint64_t smaller = counts[0];
  for (std::size_t field = top; field >= bottom && field != 0; --field) {
    const int exponent = static_cast<int>(field) - 127;
    if (top - field < kMaxBars) {
      line(fmt::format("2^{}", exponent), counts[field], region(exponent, report.format));
    } else {
      smaller += counts[field];
    }
  }
  if (smaller != 0)
    line(smaller == counts[0] ? "zero" : "smaller", smaller, smaller == counts[0] ? "or below 2^-126" : "");
  return text;
}

std::string channel_text(const RoundReport& report) {
  constexpr std::size_t kShown = 8;  // the worst ones; all are in the JSON
  std::vector<std::size_t> order(report.channels.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto lost = [&](std::size_t i) { return report.channels[i].overflow + report.channels[i].underflow_to_zero; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lost(a) > lost(b); });
  std::string text = fmt::format("\n  channels that lose most, of {}\n  {:>9} {:>12} {:>12} {:>12}\n", order.size(),
                                 "channel", "overflow", "to zero", "subnormal");
  for (std::size_t i = 0; i < std::min(order.size(), kShown); ++i) {
    const Counters& c = report.channels[order[i]];
    text += fmt::format("  {:>9} {:>12} {:>12} {:>12}\n", order[i], c.overflow, c.underflow_to_zero, c.subnormal);
  }
  return text;
}

nlohmann::ordered_json counters_json(const Counters& counters) {
  nlohmann::ordered_json json;
  json["elements"] = counters.elements;
  for (const CounterRow& row : kCounters) json[row.name] = counters.*row.field;
  return json;
}

/// JSON has no infinity: a ratio without noise is null.
nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string round_text(const RoundReport& report) {
  std::string text =
      fmt::format("round {} [{}] to {}\n", report.operand, fmt::join(report.shape, " x "), report.target);
  for (const auto& [name, value] : report.policy) text += fmt::format("  {:<18} {}\n", name, value);
  text += fmt::format("  {:<18} {:.6g}\n\n", "bits per element", report.bits_per_element);
  const auto total = static_cast<double>(std::max<std::uint64_t>(report.counters.elements, 1));
  text += fmt::format("  {:<18} {:>12}\n", "elements", report.counters.elements);
  for (const CounterRow& row : kCounters) {
    const std::uint64_t count = report.counters.*row.field;
    text += fmt::format("  {:<18} {:>12} {:>8.4f} %  {}\n", row.name, count, 100.0 * static_cast<double>(count) / total,
                        row.meaning);
  }
  if (report.nan_blocks != 0)
    text += fmt::format("  {:<18} {:>12}   their scale is NaN\n", "nan blocks", report.nan_blocks);
  text += fmt::format("  {:<18} {:>12}   of {}; results {:.6g} to {:.6g}\n", "codes used", report.codes_used,
                      report.codes_possible, report.least_result, report.greatest_result);
  const numerics::ErrorSummary& error = report.error;
  text += fmt::format("\n  error against float64 over {} finite pairs\n", error.compared);
  text += fmt::format("  {:<18} {:.6g}\n", "largest", error.largest);
  text += fmt::format("  {:<18} {:.6g}\n", "largest relative", error.largest_relative);
  text += fmt::format("  {:<18} {:.6g}\n", "root mean square", error.root_mean_square);
  text += fmt::format("  {:<18} {:.6g}\n", "bias", error.bias);
  text += fmt::format("  {:<18} {:.4g} dB\n\n", "signal to noise", error.signal_to_noise_db);
  if (report.counters.elements != 0) text += histogram_text(report);
  if (!report.channels.empty()) text += channel_text(report);
  for (const std::string& note : report.notes) text += fmt::format("\n  note: {}\n", note);
  return text;
}

std::string round_json(const RoundReport& report) {
  nlohmann::ordered_json json;
  json["plumbline"] = 1;
  json["kind"] = "round";
  json["operand"] = report.operand;
  json["shape"] = report.shape;
  json["target"] = report.target;
  for (const auto& [name, value] : report.policy) json["policy"][name] = value;
  json["bits_per_element"] = report.bits_per_element;
  json["counters"] = counters_json(report.counters);
  json["nan_blocks"] = report.nan_blocks;
  json["codes"] = {{"used", report.codes_used},
                   {"possible", report.codes_possible},
                   {"least_result", report.least_result},
                   {"greatest_result", report.greatest_result}};
  const numerics::ErrorSummary& error = report.error;
  json["error"] = {
      {"compared", error.compared},
      {"not_finite", error.not_finite},
      {"largest", error.largest},
      {"largest_relative", error.largest_relative},
      {"root_mean_square", error.root_mean_square},
      {"bias", error.bias},
      {"signal_to_noise_db", error.compared == 0 ? nlohmann::ordered_json(nullptr) : number(error.signal_to_noise_db)}};
  json["binades"] = nlohmann::ordered_json::array();
  for (std::size_t field = 0; field < report.histogram.size(); ++field) {
    if (report.histogram[field] == 0) continue;
    json["binades"].push_back({{"exponent_field", field}, {"elements", report.histogram[field]}});
  }
  if (!report.channels.empty()) {
    json["channels"] = nlohmann::ordered_json::array();
    for (const Counters& counters : report.channels) json["channels"].push_back(counters_json(counters));
  }
  json["notes"] = report.notes;
  return json.dump(2) + "\n";
}

}  // namespace plumbline::cli
