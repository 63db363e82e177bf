#include "report/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/words.h"

namespace plumbline::report {
namespace {

/// Columns a terminal needs: UTF-8 sequences count once.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::size_t have = width_of(text);
  const std::string room(width > have ? width - have : 0, ' ');
  return right ? room + text : text + room;
}

std::string table_text(const SectionTable& table) {
  std::vector<std::size_t> widths;
  for (const auto& column : table.columns) widths.push_back(width_of(one_line(column.head)));
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(one_line(row[c])));
  }
  const auto line = [&](const auto& cell) {
    std::string out = " ";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      out += " " + padded(one_line(cell(c)), widths[c], table.columns[c].number);
      if (c + 1 < table.columns.size()) out += " ";
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  };
  std::string out = line([&](std::size_t c) { return table.columns[c].head; });
  for (const auto& row : table.rows) out += line([&](std::size_t c) { return row[c]; });
  return out;
}

/// Text that Markdown shows as it is.
std::string plain_markdown(const std::string& text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (std::string_view("\\`*_{}[]<>#|~!&").find(c) != std::string_view::npos) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string table_markdown(const SectionTable& table) {
  std::string out = "|";
  for (const auto& column : table.columns) out += " " + plain_markdown(column.head) + " |";
  out += "\n|";
  for (const auto& column : table.columns) out += column.number ? " ---: |" : " --- |";
  out += "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const auto& cell : row) out += " " + plain_markdown(cell) + " |";
    out += "\n";
  }
  return out;
}

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--ground:#fff;--ink:#1b1f24;--soft:#5b6570;--line:#d5dae0;--baseline:#7a8796;--candidate:#d9822b;--good:#2b7a4b;--bad:#c0392b;--neutral:#4a78b0}
@media(prefers-color-scheme:dark){:root{--ground:#14181d;--ink:#e6eaee;--soft:#9aa5b1;--line:#323a44;--baseline:#8796a8;--candidate:#e69a4a;--good:#55b37c;--bad:#e8695b;--neutral:#6d9edb}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1100px;padding:24px 20px 60px;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:28px;margin:0}h2{font-size:21px;margin:36px 0 8px;border-bottom:1px solid var(--line);padding-bottom:4px}h3{font-size:16px;margin:22px 0 6px}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:14px}th,td{text-align:left;padding:4px 14px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-weight:600}.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
svg{width:100%;height:auto;display:block;margin:10px 0;font:12px system-ui,sans-serif}svg text{fill:var(--ink)}svg text.value{fill:var(--soft)}
svg .baseline{fill:var(--baseline)}svg .candidate{fill:var(--candidate)}svg .good{fill:var(--good)}svg .bad{fill:var(--bad)}svg .neutral{fill:var(--neutral)}
svg .axis{stroke:var(--soft)}svg path.rule{stroke:var(--bad);stroke-dasharray:4 3}svg text.rule{fill:var(--bad);font-size:11px}svg text.onpart{fill:#fff;font-size:11px}
svg .part0{fill:#4a78b0}svg .part1{fill:#8e5aa8}svg .part2{fill:#2b7a4b}svg .part3{fill:#d9822b}
)css";

}  // namespace

std::string text_of(const Document& document) {
  std::string out = one_line(document.title) + "\n";
  for (const auto& section : document.sections) {
    out += "\n";
    if (!section.heading.empty()) out += one_line(section.heading) + "\n";
    for (const auto& paragraph : section.paragraphs) out += "  " + one_line(paragraph) + "\n";
    for (const auto& point : section.points) out += "  - " + one_line(point) + "\n";
    if (!section.table.columns.empty()) out += table_text(section.table);
  }
  return out;
}

std::string markdown_of(const Document& document) {
  std::string out = "# " + plain_markdown(document.title) + "\n";
  for (const auto& section : document.sections) {
    out += "\n";
    if (!section.heading.empty()) {
      out += std::string(static_cast<std::size_t>(section.depth), '#') + " " + plain_markdown(section.heading) + "\n\n";
    }
    for (const auto& paragraph : section.paragraphs) out += plain_markdown(paragraph) + "\n\n";
    for (const auto& point : section.points) out += "- " + plain_markdown(point) + "\n";
    if (!section.points.empty()) out += "\n";
    if (!section.table.columns.empty()) out += table_markdown(section.table);
  }
  return out;
}

std::string page_of(const Document& document) {
  const auto e = [](const std::string& text) { return escape_html(one_line(text)); };
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">";
  out += fmt::format("<title>{}</title><style>{}</style></head><body>\n<h1>{}</h1>\n", e(document.title), kStyle,
                     e(document.title));
  for (const auto& section : document.sections) {
    if (!section.heading.empty()) out += fmt::format("<h{0}>{1}</h{0}>\n", section.depth, e(section.heading));
    for (const auto& paragraph : section.paragraphs) out += fmt::format("<p>{}</p>\n", e(paragraph));
    if (!section.points.empty()) {
      out += "<ul>\n";
      for (const auto& point : section.points) out += fmt::format("<li>{}</li>\n", e(point));
      out += "</ul>\n";
    }
    for (const auto& chart : section.charts) out += chart;
    if (section.table.columns.empty()) continue;
    const auto open = [&](const char* tag, std::size_t c) {
      return fmt::format("<{}{}>", tag, section.table.columns[c].number ? " class=\"number\"" : "");
    };
    out += "<div class=\"scroll\"><table><tr>";
    for (std::size_t c = 0; c < section.table.columns.size(); ++c) {
      out += open("th", c) + e(section.table.columns[c].head) + "</th>";
    }
    out += "</tr>\n";
    for (const auto& row : section.table.rows) {
      out += "<tr>";
      for (std::size_t c = 0; c < row.size(); ++c) out += open("td", c) + e(row[c]) + "</td>";
      out += "</tr>\n";
    }
    out += "</table></div>\n";
  }
  return out + "</body></html>\n";
}

}  // namespace plumbline::report
