#pragma once
// A report as sections of prose and tables, written once and rendered as terminal text, Markdown or a self-contained
// page. All text is plain; each renderer escapes it.
#include <string>
#include <vector>

namespace plumbline::report {

struct SectionTable {
  struct Column {
    std::string head;
    bool number = false;  ///< to the right
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

struct Section {
  std::string heading;
  int depth = 2;
  std::vector<std::string> paragraphs;
  std::vector<std::string> points;  ///< a list
  SectionTable table;               ///< none when it has no columns
  std::vector<std::string> charts;  ///< SVG, for the page only; made by charts.h, which escapes
};

struct Document {
  std::string title;
  std::vector<Section> sections;
};

[[nodiscard]] std::string text_of(const Document& document);
[[nodiscard]] std::string markdown_of(const Document& document);
/// No script and no request can come of the page, whatever its inputs were named.
[[nodiscard]] std::string page_of(const Document& document);

}  // namespace plumbline::report
