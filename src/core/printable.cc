#include "core/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace plumbline {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

constexpr Range kUnshown[] = {
    {0x00, 0x08},     {0x0B, 0x1F},     {0x7F, 0x9F},  // C0 without tab and newline, DEL, C1
    {0x061C, 0x061C}, {0x200E, 0x200F},                // marks of direction
    {0x2028, 0x202E},                                  // line and paragraph separators, embeddings and overrides
    {0x2066, 0x2069},                                  // isolates
};

}  // namespace

LeadingCharacter leading_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const auto broken = [&](bool incomplete) {
    return LeadingCharacter{1, false, fmt::format("byte {:02X}", lead), false, incomplete};
  };
  std::uint32_t code = lead;
  std::size_t bytes = 1;
  if (lead >= 0x80) {
    if (lead < 0xC2 || lead > 0xF4) return broken(false);
    bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    code = lead & (0x7FU >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
      if (i >= text.size()) return broken(true);
      const auto next = static_cast<unsigned char>(text[i]);
      if ((next & 0xC0U) != 0x80U) return broken(false);
      code = (code << 6U) | (next & 0x3FU);
    }
    constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // by bytes
    if (code < kSmallest[bytes] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return broken(false);
  }
  const bool unshown = std::any_of(std::begin(kUnshown), std::end(kUnshown),
                                   [&](const Range& r) { return code >= r.first && code <= r.last; });
  if (!unshown) return {bytes, true, {}, true, false};
  return {bytes, false, fmt::format("U+{:04X}", code), true, false};
}

std::optional<Unshown> find_unshown(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c >= 0x20 && c < 0x7F) {  // most text
      ++at;
      continue;
    }
    LeadingCharacter lead = leading_character(text.substr(at, 4));
    if (!lead.shown) return Unshown{at, std::move(lead.name), lead.is_utf8};
    at += lead.bytes;
  }
  return std::nullopt;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto unshown = find_unshown(text);
    if (!unshown) return out.append(text);
    out.append(text.substr(0, unshown->at));
    out += fmt::format("<{}>", unshown->name);
    text.remove_prefix(unshown->at + leading_character(text.substr(unshown->at, 4)).bytes);
  }
  return out;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace plumbline
