#pragma once
// Small SVG charts for report.html, drawn with the page's colours. Text is escaped here.
#include <string>
#include <vector>

namespace plumbline::report {

enum class Hue { baseline, candidate, good, bad, neutral };

/// A value with its interval on one row.
struct Mark {
  std::string label;
  std::string text;  ///< the value in words, at the right edge
  double value = 0;
  double low = 0;
  double high = 0;
  Hue hue = Hue::neutral;
};

/// A vertical line across all rows, e.g. a margin or a limit.
struct Rule {
  double value = 0;
  std::string label;
};

/// Bars from zero with whiskers; `as_points` draws dots instead. Marks that are not finite are named and not drawn.
[[nodiscard]] std::string mark_chart(const std::string& title, const std::vector<Mark>& marks,
                                     const std::vector<Rule>& rules, bool as_points);

/// Parts of a whole, one bar per row; `parts[row][part]` are non-negative.
struct Stack {
  std::vector<std::string> rows;
  std::vector<std::string> parts;
  std::vector<std::vector<double>> values;
};
[[nodiscard]] std::string stack_chart(const std::string& title, const Stack& stack);

/// Two bars per row, baseline above candidate.
struct Pair {
  std::string label;
  double baseline = 0;
  double candidate = 0;
  std::string text;
};
[[nodiscard]] std::string pair_chart(const std::string& title, const std::vector<Pair>& pairs);

}  // namespace plumbline::report
