#pragma once
// Numbers with units and names in plain words: one place, so that every report says the same thing the same way.
#include <string>
#include <string_view>

#include "decide/judge.h"
#include "ingest/scenario.h"

namespace plumbline::report {

/// "14.2 MB", "18.3 ms", "0.02 %": three significant digits in the unit that keeps the number between 1 and 1000.
/// `unit` is a metric's: B, s, J, 1/s, 1/J, ratio or a plain word. Not finite: "unknown".
[[nodiscard]] std::string quantity(double value, std::string_view unit);

/// "14.23 MB", "2.000 mJ": four significant digits, for tables of measured figures.
[[nodiscard]] std::string figure(double value, std::string_view unit);

/// "14.2 → 20.1 MB": both in the unit of the larger.
[[nodiscard]] std::string from_to(double before, double after, std::string_view unit);

/// A change with its sign, "+5.9 MB".
[[nodiscard]] std::string signed_quantity(double value, std::string_view unit);

/// "41 %" and "+41 %"; one decimal below 10.
[[nodiscard]] std::string percent(double value);
[[nodiscard]] std::string signed_percent(double value);

/// "+39 to +43 %".
[[nodiscard]] std::string interval_percent(double low, double high);

/// "0.0002", "below 0.0001".
[[nodiscard]] std::string p_value(double p);

/// "1,234,567".
[[nodiscard]] std::string count(std::int64_t n);

/// "off_array_weight_bytes_per_inference" → "off-array weight bytes per inference".
[[nodiscard]] std::string metric_words(std::string_view name);

/// "burst, 512-token requests"; the family is named only when the scenario has several models.
[[nodiscard]] std::string slice_words(const decide::SliceId& id, const ingest::Scenario& scenario);

/// The same text with a capital first letter.
[[nodiscard]] std::string capital(std::string text);

/// "release with guardrails"
[[nodiscard]] std::string verdict_words(std::string_view name);

/// Unit of a metric by name; "latency_p95" and the like too. Empty when there is no such metric.
[[nodiscard]] std::string metric_unit(std::string_view name);

/// `text` with <, >, &, " and ' escaped for HTML and XML; control characters become spaces.
[[nodiscard]] std::string escape_html(std::string_view text);

/// A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_text(std::string_view text);

/// `text` without control characters but line breaks, which become spaces: nothing that a terminal would obey.
[[nodiscard]] std::string one_line(std::string_view text);

}  // namespace plumbline::report
