#pragma once
// Diagnostics for wrong input: lower case, no full stop, what was seen, then how to mend it.
#include <string>
#include <string_view>
#include <vector>

#include "core/source.h"

namespace plumbline {

enum class Severity { error, warning };

struct Diagnostic {
  Severity severity = Severity::error;
  std::string kind;     ///< a row of diagnostics.inc, e.g. "unknown-key"
  Span span;            ///< where
  std::string message;  ///< what was seen and why it is wrong
  std::string help;     ///< what to write instead; may be empty
  Span other{};         ///< a second place that has to do with it, e.g. the line it contradicts
  std::string note{};   ///< what stands there; empty = there is none
};
using Diagnostics = std::vector<Diagnostic>;

/// Every diagnostic kind, from diagnostics.inc.
[[nodiscard]] const std::vector<std::string_view>& diagnostic_kinds();

/// An error diagnostic; `kind` must be a row of diagnostics.inc.
[[nodiscard]] Diagnostic make_error(std::string_view kind, Span span, std::string message, std::string help = {});

/// `file:line:col: error: message [kind]`, the line, a caret span, `help:`, and the note with its own line; ends with a
/// newline.
[[nodiscard]] std::string render(const Diagnostic& diagnostic);

/// Sorted by position, at most `limit` shown, the rest counted.
[[nodiscard]] std::string render(Diagnostics diagnostics, std::size_t limit = 20);

/// At most three of `candidates` near `name`, nearest first (edit distance <= max(1, length/3)).
[[nodiscard]] std::vector<std::string> closest(std::string_view name, const std::vector<std::string>& candidates);

/// "did you mean 'a' or 'b'?" or, when nothing is near and the list is short, "one of: …".
[[nodiscard]] std::string suggest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace plumbline
