#include "report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "validate/metrics.h"

namespace plumbline::report {
namespace {

struct Scale {
  std::string_view unit;  // as metrics state it
  double factor;          // one shown unit in that unit
  std::string_view shown;
};

// Smallest first within a unit; the largest whose factor does not exceed the value is shown.
constexpr std::array kScales = {
    Scale{"B", 1, "B"},     Scale{"B", 1e3, "kB"},   Scale{"B", 1e6, "MB"},     Scale{"B", 1e9, "GB"},
    Scale{"B", 1e12, "TB"}, Scale{"s", 1e-9, "ns"},  Scale{"s", 1e-6, "µs"},    Scale{"s", 1e-3, "ms"},
    Scale{"s", 1, "s"},     Scale{"J", 1e-12, "pJ"}, Scale{"J", 1e-9, "nJ"},    Scale{"J", 1e-6, "µJ"},
    Scale{"J", 1e-3, "mJ"}, Scale{"J", 1, "J"},      Scale{"ratio", 1e-2, "%"}, Scale{"1/s", 1, "/s"},
    Scale{"1/J", 1, "/J"},  Scale{"W", 1, "W"},
};

Scale scale_of(double magnitude, std::string_view unit) {
  Scale chosen{unit, 1, unit};
  bool any = false;
  for (const auto& scale : kScales) {
    if (scale.unit != unit) continue;
    // Nothing has no size: it is shown in the unit itself.
    if (!any || (magnitude == 0 ? scale.factor == 1 : magnitude >= scale.factor)) chosen = scale;
    any = true;
  }
  return chosen;
}

// Three significant digits without an exponent.
std::string digits(double value) {
  const double size = std::abs(value);
  std::string out;
  if (size == 0) {
    out = "0";
  } else if (size >= 99.95) {
    out = fmt::format("{:.0f}", value);
  } else if (size >= 9.995) {
    out = fmt::format("{:.1f}", value);
  } else if (size >= 0.0995) {
    out = fmt::format("{:.2f}", value);
  } else {
    out = fmt::format("{:.2g}", value);
  }
  return out;
}

bool is_utf8_tail(unsigned char c) { return (c & 0xC0U) == 0x80U; }

// Length of the UTF-8 sequence at the start of `text`; 0 when it is none.
std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_utf8_tail(byte(i))) return 0;
  }
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF0 && byte(1) < 0x90) ||
      (lead == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

}  // namespace

std::string quantity(double value, std::string_view unit) {
  if (!std::isfinite(value)) return "unknown";
  const Scale scale = scale_of(std::abs(value), unit);
  return fmt::format("{} {}", digits(value / scale.factor), scale.shown);
}

std::string figure(double value, std::string_view unit) {
  if (!std::isfinite(value)) return "unknown";
  // What would round up to 1000 of a unit is one of the next.
  constexpr double kRoundsUp = 1 + 0.5e-4;
  const Scale scale = scale_of(std::abs(value) * kRoundsUp, unit);
  const double shown = value / scale.factor;
  if (shown == 0) return fmt::format("0 {}", scale.shown);
  const double size = std::abs(shown);
  if (scale.shown == "B" && size == std::floor(size)) return fmt::format("{:.0f} B", shown);
  const int places = size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : size >= 0.99995 ? 3 : 4;
  if (size < 0.001) return fmt::format("{:.4g} {}", shown, scale.shown);
  return fmt::format("{:.{}f} {}", shown, places, scale.shown);
}

std::string from_to(double before, double after, std::string_view unit) {
  if (!std::isfinite(before) || !std::isfinite(after)) {
    return fmt::format("{} → {}", quantity(before, unit), quantity(after, unit));
  }
  const Scale scale = scale_of(std::max(std::abs(before), std::abs(after)), unit);
  return fmt::format("{} → {} {}", digits(before / scale.factor), digits(after / scale.factor), scale.shown);
}

std::string signed_quantity(double value, std::string_view unit) {
  return (value > 0 ? "+" : "") + quantity(value, unit);
}

std::string percent(double value) {
  if (!std::isfinite(value)) return "unknown";
  if (std::abs(value) >= 999.5 && std::abs(value) < 1e15) return count(std::llround(value)) + " %";
  std::string out = fmt::format("{:.{}f}", value, std::abs(value) < 9.95 ? 1 : 0);
  if (out == "-0.0") out = "0.0";
  return out + " %";
}

std::string signed_percent(double value) {
  const std::string text = percent(value);
  const bool positive = std::isfinite(value) && value > 0 && text != "0.0 %";
  return positive ? "+" + text : text;
}

std::string interval_percent(double low, double high) {
  if (!std::isfinite(low) || !std::isfinite(high)) return "unknown";
  std::string first = signed_percent(low);
  first.resize(first.size() - 2);
  return fmt::format("{} to {}", first, signed_percent(high));
}

std::string p_value(double p) {
  if (!std::isfinite(p)) return "unknown";
  if (p < 1e-4) return "below 0.0001";
  return fmt::format("{:.2g}", p);
}

std::string count(std::int64_t n) {
  std::string text = std::to_string(n);
  const std::size_t first = n < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string metric_words(std::string_view name) {
  struct Spelling {
    std::string_view written;
    std::string_view meant;
  };
  constexpr std::array kSpellings = {Spelling{"off array", "off-array"}, Spelling{"off chip", "off-chip"},
                                     Spelling{"psum", "partial-sum"}, Spelling{"latency p", "latency, p"}};
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', ' ');
  for (const auto& spelling : kSpellings) {
    const auto at = out.find(spelling.written);
    if (at != std::string::npos) out.replace(at, spelling.written.size(), spelling.meant);
  }
  return out;
}

std::string slice_words(const decide::SliceId& id, const ingest::Scenario& scenario) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (id.load != "all") add(id.load == "burst" ? "burst" : id.load + " load");
  if (id.family != "all" && scenario.models.size() > 1) add(id.family);
  if (id.layer_class != "all") add(id.layer_class + " layers");
  if (id.profile == "all") {
    add("all requests");
  } else {
    std::string requests = id.profile + " requests";
    for (const auto& profile : scenario.traffic.profiles) {
      if (profile.name == id.profile && profile.sequence > 0)
        requests = fmt::format("{}-token requests", profile.sequence);
    }
    add(requests);
  }
  return out;
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string verdict_words(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

std::string metric_unit(std::string_view name) {
  const auto* row = validate::find_metric(name);
  return row == nullptr ? "" : std::string(row->unit);
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      ++i;
      continue;
    }
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (c == '\n' || c >= 0x20) {
          if (c == 0x7F) {
            out.push_back(' ');
          } else {
            out += text.substr(i, length);
          }
        } else {
          out.push_back(' ');
        }
    }
    i += length;
  }
  return out;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      ++i;
      continue;
    }
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c < 0x20) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += text.substr(i, length);
    }
    i += length;
  }
  return out + "\"";
}

std::string one_line(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(text.substr(i));
    // C1 controls (U+0080 to U+009F) drive terminals as ESC does.
    const bool control =
        c < 0x20 || c == 0x7F || (c == 0xC2 && length == 2 && static_cast<unsigned char>(text[i + 1]) < 0xA0);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (control) {
      out.push_back(' ');
    } else {
      out += text.substr(i, length);
    }
    i += std::max<std::size_t>(1, length);
  }
  return out;
}

}  // namespace plumbline::report
