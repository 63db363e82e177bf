#include "report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/words.h"

namespace plumbline::report {
namespace {

// Geometry in user units of the drawing; the page scales it to its column.
constexpr double kWidth = 860;
constexpr double kLabel = 250;  // column of labels on the left
constexpr double kValue = 200;  // column of values on the right
constexpr double kRow = 24;
constexpr double kTop = 22;  // room for the labels of rules
constexpr double kBar = 12;

const char* hue_class(Hue hue) {
  constexpr const char* kNames[] = {"baseline", "candidate", "good", "bad", "neutral"};
  return kNames[static_cast<int>(hue)];
}

std::string open_svg(const std::string& title, double height) {
  return fmt::format(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}"><title>{}</title>)", kWidth, height,
                     escape_html(title), escape_html(title));
}

// A label cut to what its column holds; the whole of it stands in the title.
std::string label_text(const std::string& label, double y, double width = kLabel) {
  const auto room = static_cast<std::size_t>(width / 6.6);  // mean advance of the 12-unit font
  std::string cut;
  std::size_t columns = 0;
  const std::string line = one_line(label);
  for (const char c : line) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (starts && ++columns > room) {
      cut += "…";
      break;
    }
    cut.push_back(c);
  }
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end"><title>{}</title>{}</text>)", width - 8, y,
                     escape_html(line), escape_html(cut));
}

struct Scale {
  double low = 0;
  double high = 1;
  double left = kLabel;
  double right = kWidth - kValue;
  [[nodiscard]] double at(double value) const {
    const double share = (std::clamp(value, low, high) - low) / (high - low);
    return left + share * (right - left);
  }
};

Scale scale_over(const std::vector<Mark>& marks, const std::vector<Rule>& rules) {
  Scale out;
  out.low = 0;
  out.high = 0;
  const auto include = [&](double x) {
    if (!std::isfinite(x)) return;
    out.low = std::min(out.low, x);
    out.high = std::max(out.high, x);
  };
  for (const auto& mark : marks) {
    include(mark.value);
    include(mark.low);
    include(mark.high);
  }
  for (const auto& rule : rules) include(rule.value);
  if (out.high - out.low <= 0) out.high = out.low + 1;
  const double room = 0.04 * (out.high - out.low);
  if (out.low < 0) out.low -= room;
  out.high += room;
  return out;
}

std::string draw_mark(const Mark& mark, const Scale& scale, double y, bool as_points) {
  const double middle = y + kRow / 2;
  std::string out = label_text(mark.label, middle + 4);
  out += fmt::format(R"(<text class="value" x="{:.1f}" y="{:.1f}">{}</text>)", kWidth - kValue + 8, middle + 4,
                     escape_html(mark.text));
  if (!std::isfinite(mark.value)) return out;
  const double x = scale.at(mark.value);
  const char* hue = hue_class(mark.hue);
  if (!as_points) {
    const double zero = scale.at(0);
    out += fmt::format(R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.0f}"/>)", hue,
                       std::min(x, zero), middle - kBar / 2, std::max(std::abs(x - zero), 0.8), kBar);
  }
  if (std::isfinite(mark.low) && std::isfinite(mark.high) && mark.high > mark.low) {
    const double a = scale.at(mark.low);
    const double b = scale.at(mark.high);
    out += fmt::format(R"(<path class="whisker" d="M{:.1f} {:.1f}H{:.1f}M{:.1f} {:.1f}v8M{:.1f} {:.1f}v8"/>)", a,
                       middle, b, a, middle - 4, b, middle - 4);
  }
  if (as_points) out += fmt::format(R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="5"/>)", hue, x, middle);
  return out;
}

// Categories of a stack in a fixed order; the page defines as many colours.
constexpr std::size_t kPartColours = 11;

}  // namespace

std::string mark_chart(const std::string& title, const std::vector<Mark>& marks, const std::vector<Rule>& rules,
                       bool as_points) {
  const double height = kTop + kRow * static_cast<double>(marks.size()) + 8;
  const Scale scale = scale_over(marks, rules);
  std::string out = open_svg(title, height);
  out += fmt::format(R"(<path class="axis" d="M{:.1f} {:.1f}V{:.1f}"/>)", scale.at(0), kTop - 4, height - 4);
  for (const auto& rule : rules) {
    const double x = scale.at(rule.value);
    out += fmt::format(
        R"(<path class="rule" d="M{:.1f} {:.1f}V{:.1f}"/><text class="rule" x="{:.1f}" y="12" text-anchor="middle">{}</text>)",
        x, kTop - 6, height - 4, x, escape_html(rule.label));
  }
  for (std::size_t i = 0; i < marks.size(); ++i)
    out += draw_mark(marks[i], scale, kTop + kRow * static_cast<double>(i), as_points);
  return out + "</svg>\n";
}

std::string stack_chart(const std::string& title, const Stack& stack) {
  constexpr double kStackLabel = 90;
  constexpr double kLegendColumn = 150;
  const double bars = kRow * 1.4 * static_cast<double>(stack.rows.size());
  const auto per_line = static_cast<std::size_t>((kWidth - kStackLabel) / kLegendColumn);
  const double lines = std::ceil(static_cast<double>(stack.parts.size()) / static_cast<double>(per_line));
  std::string out = open_svg(title, bars + 12 + 20 * lines);
  for (std::size_t r = 0; r < stack.rows.size(); ++r) {
    const double y = kRow * 1.4 * static_cast<double>(r);
    out += label_text(stack.rows[r], y + 19, kStackLabel);
    double total = 0;
    for (const double v : stack.values[r]) total += v;
    double x = kStackLabel;
    for (std::size_t p = 0; p < stack.parts.size() && total > 0; ++p) {
      const double width = (kWidth - kStackLabel) * stack.values[r][p] / total;
      if (width <= 0) continue;
      const std::string share = percent(100 * stack.values[r][p] / total);
      out += fmt::format(
          R"(<rect class="part{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="24"><title>{}: {}</title></rect>)",
          p % kPartColours, x, y + 2, width, escape_html(stack.parts[p]), share);
      if (width > 46)
        out += fmt::format(R"(<text class="onpart" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)",
                           x + width / 2, y + 18, share);
      x += width;
    }
  }
  for (std::size_t p = 0; p < stack.parts.size(); ++p) {
    const double x = kStackLabel + kLegendColumn * static_cast<double>(p % per_line);
    const double y = bars + 12 + 20 * std::floor(static_cast<double>(p) / static_cast<double>(per_line));
    out += fmt::format(
        R"(<rect class="part{}" x="{:.1f}" y="{:.1f}" width="11" height="11"/><text x="{:.1f}" y="{:.1f}">{}</text>)",
        p % kPartColours, x, y, x + 16, y + 10, escape_html(stack.parts[p]));
  }
  return out + "</svg>\n";
}

std::string pair_chart(const std::string& title, const std::vector<Pair>& pairs) {
  constexpr double kPairLabel = 120;
  constexpr double kPairRow = 30;
  double most = 0;
  for (const auto& pair : pairs) most = std::max({most, pair.baseline, pair.candidate});
  if (most <= 0) most = 1;
  const double room = kWidth - kPairLabel - kValue;
  std::string out = open_svg(title, kPairRow * static_cast<double>(pairs.size()) + 4);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const double y = kPairRow * static_cast<double>(i);
    out += label_text(pairs[i].label, y + 18, kPairLabel);
    out += fmt::format(
        R"(<rect class="baseline" x="{0:.1f}" y="{1:.1f}" width="{2:.1f}" height="10"/><rect class="candidate" x="{0:.1f}" y="{3:.1f}" width="{4:.1f}" height="10"/>)",
        kPairLabel, y + 3, room * pairs[i].baseline / most, y + 14, room * pairs[i].candidate / most);
    out += fmt::format(R"(<text class="value" x="{:.1f}" y="{:.1f}">{}</text>)", kWidth - kValue + 8, y + 18,
                       escape_html(pairs[i].text));
  }
  return out + "</svg>\n";
}

}  // namespace plumbline::report
