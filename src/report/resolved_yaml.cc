#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/artefacts.h"

namespace plumbline::report {
namespace {

constexpr std::size_t kInlineWidth = 100;  // characters of a map or list that is kept on one line

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

// Whether `text` may stand without quotes and is read back as the same text. Non-ASCII text may (µs), as long as it
// holds no character that YAML treats as a break or that is not printable: those are all in U+0080…U+009F, U+2028/9
// and U+FEFF, so any byte of theirs (C2, E2 80, EF BB) asks for quotes.
bool may_be_plain(std::string_view text, bool flow) {
  constexpr std::array<std::string_view, 6> kNulls = {"~", "null", "Null", "NULL", "<<", "..."};
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  if (std::find(kNulls.begin(), kNulls.end(), text) != kNulls.end()) return false;
  if (std::string_view("&*!|>'\"%@`#{}[],").find(text.front()) != std::string_view::npos) return false;
  const bool dash = std::string_view("-?:").find(text.front()) != std::string_view::npos;
  if (dash && (text.size() == 1 || text[1] == ' ' || text.starts_with("---"))) return false;
  if (text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos) return false;
  if (flow && text.find_first_of(",:{}[]?") != std::string_view::npos) return false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || byte == 0xE2 || byte == 0xEF) return false;
  }
  // Of two-byte characters only µ, °, · and their like (U+00A0 and up) are plain.
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA1) return false;
  }
  return true;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

std::string scalar_text(const ingest::Value& value, bool flow) {
  return !value.quoted && may_be_plain(value.text, flow) ? value.text : quoted(value.text);
}

std::string key_text(std::string_view key, bool flow) {
  const bool simple = is_printable_ascii(key) && !key.empty() && key.front() != '-' && key.front() != '?';
  return simple && may_be_plain(key, flow) ? std::string(key) : quoted(key);
}

// The value on one line; empty when it would not read back alike or is too long.
std::string inline_text(const ingest::Value& value, std::size_t room) {
  std::string out;
  switch (value.kind) {
    case ingest::ValueKind::null:
      return "null";
    case ingest::ValueKind::scalar:
      // A plain scalar that only blocks can hold (a comma, say) must not be quoted here: quotes change its meaning.
      if (!value.quoted && may_be_plain(value.text, false) && !may_be_plain(value.text, true)) return "";
      return scalar_text(value, true);
    case ingest::ValueKind::list:
      for (const auto& item : value.items) {
        const std::string text = inline_text(item, room);
        if (text.empty() || out.size() + text.size() > room) return "";
        out += (out.empty() ? "" : ", ") + text;
      }
      return fmt::format("[{}]", out);
    case ingest::ValueKind::map:
      for (const auto& entry : value.entries) {
        const std::string text = inline_text(entry.value, room);
        if (text.empty() || out.size() + text.size() > room) return "";
        out += (out.empty() ? "" : ", ") + key_text(entry.key, true) + ": " + text;
      }
      return fmt::format("{{{}}}", out);
  }
  return "";
}

bool is_leafy(const ingest::Value& value) {
  const auto simple = [](const ingest::Value& child) {
    return child.kind == ingest::ValueKind::null || child.kind == ingest::ValueKind::scalar ||
           (child.items.empty() && child.entries.empty());
  };
  return std::all_of(value.items.begin(), value.items.end(), simple) &&
         std::all_of(value.entries.begin(), value.entries.end(), [&](const auto& e) { return simple(e.value); });
}

void append_block(const ingest::Value& value, std::size_t indent, std::string& out);

// What follows "key:" or "-": on the same line when short, else an indented block.
void append_child(const ingest::Value& value, std::size_t indent, std::string& out) {
  const bool scalar = value.kind == ingest::ValueKind::null || value.kind == ingest::ValueKind::scalar;
  if (scalar) {
    out += fmt::format(" {}\n", value.kind == ingest::ValueKind::null ? "null" : scalar_text(value, false));
    return;
  }
  if (is_leafy(value)) {
    const std::string text = inline_text(value, kInlineWidth - std::min(indent, kInlineWidth / 2));
    if (!text.empty()) {
      out += fmt::format(" {}\n", text);
      return;
    }
  }
  out += "\n";
  append_block(value, indent + 2, out);
}

void append_block(const ingest::Value& value, std::size_t indent, std::string& out) {
  const std::string pad(indent, ' ');
  for (const auto& item : value.items) {
    std::string child;
    append_child(item, indent, child);
    // A block's first line moves up beside the dash.
    if (child.front() == '\n') child.erase(0, 1 + indent + 1);
    out += pad + "-" + child;
  }
  for (const auto& entry : value.entries) {
    out += pad + key_text(entry.key, false) + ":";
    append_child(entry.value, indent, out);
  }
}

}  // namespace

std::string resolved_yaml(const ingest::Value& document) {
  if (document.kind != ingest::ValueKind::map || document.entries.empty())
    return inline_text(document, kInlineWidth) + "\n";
  std::string out;
  append_block(document, 0, out);
  return out;
}

}  // namespace plumbline::report
