#include "core/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "core/check.h"
#include "core/printable.h"

namespace plumbline {

std::string Span::where() const {
  if (!source) return {};
  if (line <= 0) return source->name;
  return fmt::format("{}:{}:{}", source->name, line, column);
}

std::string_view Span::line_text() const {
  if (!source || line <= 0) return {};
  std::string_view text = source->text;
  for (std::int32_t i = 1; i < line; ++i) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  std::string_view result = text.substr(0, text.find('\n'));
  if (!result.empty() && result.back() == '\r') result.remove_suffix(1);
  return result;
}

const std::vector<std::string_view>& diagnostic_kinds() {
  static const std::vector<std::string_view> kinds = {
#define DIAGNOSTIC(kind, meaning) kind,
#include "core/diagnostics.inc"
#undef DIAGNOSTIC
  };
  return kinds;
}

Diagnostic make_error(std::string_view kind, Span span, std::string message, std::string help) {
  const auto& kinds = diagnostic_kinds();
  PL_CHECK(std::find(kinds.begin(), kinds.end(), kind) != kinds.end());
  return Diagnostic{Severity::error, std::string(kind), std::move(span), std::move(message), std::move(help)};
}

namespace {

// Long lines are cut around the position.
constexpr std::size_t kShownLine = 160;

// A message or a name is one line.
std::string message_line(std::string_view text) {
  std::string out = printable(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return out;
}

// A line of an input with one column for each character, so that the caret stands where it should.
std::string source_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const LeadingCharacter lead = leading_character(text.substr(0, 4));
    if (!lead.shown || text.front() == '\t') {
      out.append((static_cast<unsigned char>(text.front()) & 0xC0U) == 0x80U ? "" : " ");
    } else {
      out.append(text.substr(0, lead.bytes));
    }
    text.remove_prefix(lead.bytes);
  }
  return out;
}

// Columns count bytes; the caret line must count characters, so UTF-8 continuation bytes take no room.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// The line of a span and a caret under it; empty without a position.
std::string excerpt(const Span& span) {
  const std::string_view line = span.line_text();
  if (line.empty() || span.column <= 0) return {};
  const auto column = static_cast<std::size_t>(span.column - 1);
  const std::size_t start = column > kShownLine / 2 ? column - kShownLine / 2 : 0;
  const std::string_view shown = line.substr(std::min(start, line.size()), kShownLine);
  const std::string_view before = shown.substr(0, std::min(column - start, shown.size()));
  const std::size_t length = std::max<std::int32_t>(1, span.length);
  const std::size_t room = shown.size() > before.size() ? shown.size() - before.size() : 1;
  const std::string_view marked = shown.substr(before.size(), std::min(length, room));
  return fmt::format("  {}\n  {}^{}\n", source_line(shown), std::string(width(before), ' '),
                     std::string(std::max<std::size_t>(width(marked), 1) - 1, '~'));
}

}  // namespace

std::string render(const Diagnostic& d) {
  const std::string where = d.span.where();
  std::string out = fmt::format("{}{}: {} [{}]\n", where.empty() ? "" : message_line(where) + ": ",
                                d.severity == Severity::error ? "error" : "warning", message_line(d.message), d.kind);
  out += excerpt(d.span);
  if (!d.help.empty()) out += fmt::format("help: {}\n", message_line(d.help));
  if (!d.note.empty()) {
    const std::string there = d.other.where();
    out += fmt::format("{}note: {}\n", there.empty() ? "" : message_line(there) + ": ", message_line(d.note));
    out += excerpt(d.other);
  }
  return out;
}

std::string render(Diagnostics diagnostics, std::size_t limit) {
  std::stable_sort(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& a, const Diagnostic& b) {
    const auto key = [](const Diagnostic& d) {
      return std::make_tuple(d.span.source ? std::string_view(d.span.source->name) : std::string_view(), d.span.line,
                             d.span.column);
    };
    return key(a) < key(b);
  });
  std::string out;
  for (std::size_t i = 0; i < diagnostics.size() && i < limit; ++i) out += render(diagnostics[i]);
  if (diagnostics.size() > limit) out += fmt::format("… and {} more\n", diagnostics.size() - limit);
  return out;
}

namespace {

// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment): "wiat" is one slip from
// "wait".
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

constexpr std::size_t kLongestCompared = 64;

}  // namespace

std::vector<std::string> closest(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > kLongestCompared) return {};
  const std::size_t limit = std::max<std::size_t>(1, name.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const auto& candidate : candidates) {
    if (candidate.size() > kLongestCompared) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance <= limit) near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> names;
  for (const auto& [distance, candidate] : near) {
    if (names.size() < 3) names.push_back(candidate);
  }
  return names;
}

std::string suggest(std::string_view name, const std::vector<std::string>& candidates) {
  const auto near = closest(name, candidates);
  if (!near.empty()) {
    std::string out = "did you mean ";
    for (std::size_t i = 0; i < near.size(); ++i) out += fmt::format("{}'{}'", i == 0 ? "" : " or ", near[i]);
    return out + "?";
  }
  if (candidates.empty() || candidates.size() > 24) return {};
  std::string out = "one of: ";
  for (std::size_t i = 0; i < candidates.size(); ++i) out += (i == 0 ? "" : ", ") + candidates[i];
  return out;
}

}  // namespace plumbline
