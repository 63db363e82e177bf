#pragma once
// Where a value came from: a shared source text and a position in it, kept from the reader to the decision.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace plumbline {

/// One input text. `name` is the path as the user wrote it (relative paths stay relative).
struct Source {
  std::string name;
  std::string text;  ///< empty for binary inputs
};
using SourceRef = std::shared_ptr<const Source>;

/// A position in a source; line and column count from 1, 0 means "the whole file".
struct Span {
  SourceRef source;
  std::int32_t line = 0;
  std::int32_t column = 0;
  std::int32_t length = 1;  ///< characters to underline

  /// `file:line:column`, `file` when there is no position, empty when there is no source.
  [[nodiscard]] std::string where() const;
  /// The text of the line, without its end; empty when unknown.
  [[nodiscard]] std::string_view line_text() const;
};

}  // namespace plumbline
