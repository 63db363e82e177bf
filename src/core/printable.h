#pragma once
// Text that is safe to show: no control characters, no invisible reordering, no broken UTF-8.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace plumbline {

/// What a text begins with.
struct LeadingCharacter {
  std::size_t bytes = 1;  ///< it takes
  bool shown = true;      ///< it may be shown as it is; newline and tab may
  std::string name;       ///< "U+202E", or "byte 9B" where the text is no UTF-8; only when not shown
  bool is_utf8 = true;
  bool incomplete = false;  ///< more bytes may follow that make it a character
};

/// Not shown are: control characters (C0 but newline and tab, DEL, C1: terminals obey them), the marks, embeddings,
/// overrides and isolates that reorder text (Unicode 15.0, section 23.2 and UAX 9), line and paragraph separators, and
/// bytes that are no UTF-8. `text` must not be empty.
[[nodiscard]] LeadingCharacter leading_character(std::string_view text);

/// The first character that may not be shown.
struct Unshown {
  std::size_t at = 0;  ///< byte offset
  std::string name;    ///< as LeadingCharacter's
  bool is_utf8 = true;
};
[[nodiscard]] std::optional<Unshown> find_unshown(std::string_view text);

/// `text` with every character that may not be shown as <U+001B> or <byte 9B>.
[[nodiscard]] std::string printable(std::string_view text);

/// `text` as one word of a POSIX shell (IEEE 1003.1, section 2.2.2): in single quotes where it holds more than letters,
/// digits and _@%+=:,./-
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace plumbline
