#include "ingest/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace plumbline::ingest {

const Value* Value::find(std::string_view key) const {
  const Entry* entry = find_entry(key);
  return entry == nullptr ? nullptr : &entry->value;
}

Value* Value::find(std::string_view key) {
  for (auto& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

const Entry* Value::find_entry(std::string_view key) const {
  for (const auto& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const Value* Value::at_path(std::string_view path) const {
  const Value* at = this;
  while (at != nullptr && !path.empty()) {
    const auto dot = path.find('.');
    at = at->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return at;
}

Value merge_patch(const Value& target, const Value& patch) {
  if (patch.kind != ValueKind::map) return patch;
  Value out = target;
  if (out.kind != ValueKind::map) {
    out = Value{};
    out.kind = ValueKind::map;
    out.span = patch.span;
  }
  for (const auto& entry : patch.entries) {
    if (entry.value.remove || entry.value.kind == ValueKind::null) {
      std::erase_if(out.entries, [&](const Entry& e) { return e.key == entry.key; });
    } else if (Value* old = out.find(entry.key)) {
      *old = merge_patch(*old, entry.value);
    } else {
      out.entries.push_back({entry.key, entry.span, merge_patch(Value{}, entry.value)});
    }
  }
  return out;
}

namespace {

void append_json_text(std::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

void append_canonical(const Value& value, std::string& out) {
  switch (value.kind) {
    case ValueKind::null:
      out += "null";
      return;
    case ValueKind::scalar:
      append_json_text(value.text, out);
      return;
    case ValueKind::list:
      out.push_back('[');
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) out.push_back(',');
        append_canonical(value.items[i], out);
      }
      out.push_back(']');
      return;
    case ValueKind::map: {
      std::vector<const Entry*> sorted;
      for (const auto& entry : value.entries) sorted.push_back(&entry);
      std::sort(sorted.begin(), sorted.end(), [](const Entry* a, const Entry* b) { return a->key < b->key; });
      out.push_back('{');
      for (std::size_t i = 0; i < sorted.size(); ++i) {
        if (i > 0) out.push_back(',');
        append_json_text(sorted[i]->key, out);
        out.push_back(':');
        append_canonical(sorted[i]->value, out);
      }
      out.push_back('}');
      return;
    }
  }
}

// Plain flow scalars of letters, digits and a few signs mean the same to every YAML reader; all else is quoted.
bool plain_is_safe(std::string_view text) {
  const auto word = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (text.empty() || text.back() == ' ') return false;
  const bool signed_number = text.front() == '-' && text.size() > 1 && word(text[1]);
  if (!word(text.front()) && text.front() != '.' && text.front() != '/' && !signed_number) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return word(c) || std::string_view(" ./%*+-()=").find(c) != std::string_view::npos;
  });
}

void append_flow(const Value& value, std::string& out) {
  switch (value.kind) {
    case ValueKind::null:
      out += value.remove ? "!delete" : "null";
      return;
    case ValueKind::scalar:
      if (value.remove) {
        out += "!delete";
      } else if (!value.quoted && plain_is_safe(value.text)) {
        out += value.text;
      } else {
        append_json_text(value.text, out);
      }
      return;
    case ValueKind::list:
      out.push_back('[');
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) out += ", ";
        append_flow(value.items[i], out);
      }
      out.push_back(']');
      return;
    case ValueKind::map:
      out.push_back('{');
      for (std::size_t i = 0; i < value.entries.size(); ++i) {
        if (i > 0) out += ", ";
        const auto& key = value.entries[i].key;
        if (plain_is_safe(key)) {
          out += key;
        } else {
          append_json_text(key, out);
        }
        out += ": ";
        append_flow(value.entries[i].value, out);
      }
      out.push_back('}');
      return;
  }
}

void collect_leaves(const Value& patch, const std::string& prefix, std::vector<PatchLeaf>& out) {
  for (const auto& entry : patch.entries) {
    const std::string path = prefix.empty() ? entry.key : prefix + "." + entry.key;
    if (entry.value.kind == ValueKind::map && !entry.value.entries.empty()) {
      collect_leaves(entry.value, path, out);
    } else {
      out.push_back({path, &entry.value, entry.span});
    }
  }
}

}  // namespace

std::string canonical_text(const Value& value) {
  std::string out;
  append_canonical(value, out);
  return out;
}

std::string flow_text(const Value& value) {
  std::string out;
  append_flow(value, out);
  return out;
}

std::vector<PatchLeaf> patch_leaves(const Value& patch) {
  std::vector<PatchLeaf> out;
  collect_leaves(patch, "", out);
  return out;
}

Value make_scalar(std::string text) {
  Value value;
  value.kind = ValueKind::scalar;
  value.text = std::move(text);
  return value;
}

Value make_map(std::vector<std::pair<std::string, Value>> entries) {
  Value value;
  value.kind = ValueKind::map;
  for (auto& entry : entries) value.entries.push_back({std::move(entry.first), {}, std::move(entry.second)});
  return value;
}

Value make_list(std::vector<Value> items) {
  Value value;
  value.kind = ValueKind::list;
  value.items = std::move(items);
  return value;
}

Value make_at_path(std::string_view path, Value value) {
  const auto dot = path.rfind('.');
  if (dot == std::string_view::npos) return make_map({{std::string(path), std::move(value)}});
  return make_at_path(path.substr(0, dot), make_map({{std::string(path.substr(dot + 1)), std::move(value)}}));
}

MapReader::MapReader(const Value& value, std::string what, Diagnostics& errors)
    : value_(&value), what_(std::move(what)), errors_(&errors), usable_(value.kind == ValueKind::map) {
  if (!usable_) errors.push_back(make_error("wrong-type", value.span, what_ + " must be a map of keys and values"));
}

namespace {

// Only some of many errors are shown; what the rest might have meant is not searched for.
std::string suggest_early(std::string_view name, const std::vector<std::string>& candidates,
                          const Diagnostics& errors) {
  constexpr std::size_t kMostSuggestions = 100;
  return errors.size() < kMostSuggestions ? suggest(name, candidates) : std::string();
}

}  // namespace

const Value* MapReader::find(std::string_view key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.emplace_back(key);
  if (!usable_) return nullptr;
  const Value* value = value_->find(key);
  return value == nullptr || value->kind == ValueKind::null ? nullptr : value;
}

const Value* MapReader::require(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr && usable_) {
    errors_->push_back(make_error("missing-key", value_->span, fmt::format("{} lacks the key '{}'", what_, key)));
  }
  return value;
}

void MapReader::finish() {
  if (!usable_) return;
  std::vector<const Entry*> unknown;
  for (const auto& entry : value_->entries) {
    if (std::find(asked_.begin(), asked_.end(), entry.key) == asked_.end()) unknown.push_back(&entry);
  }
  // The line that counts the rest is one of those that are shown of a file.
  const std::size_t named = unknown.size() > kMostUnknownKeys ? kMostUnknownKeys - 1 : unknown.size();
  for (std::size_t i = 0; i < named; ++i) {
    errors_->push_back(make_error("unknown-key", unknown[i]->span,
                                  fmt::format("unknown key '{}' in {}", unknown[i]->key, what_),
                                  suggest_early(unknown[i]->key, asked_, *errors_)));
  }
  if (named < unknown.size()) {
    errors_->push_back(make_error("unknown-key", unknown[named]->span,
                                  fmt::format("and {} more unknown keys in {}", unknown.size() - named, what_)));
  }
}

namespace {

// Words that YAML 1.1 readers turn into booleans. The single letters y and n are left alone: no common reader converts
// them, and they are dimension names here.
const std::vector<std::string_view>& trap_words() {
  static const std::vector<std::string_view> words = {"yes", "Yes", "YES", "no",  "No",   "NO",   "on",    "On",
                                                      "ON",  "off", "Off", "OFF", "True", "TRUE", "False", "FALSE"};
  return words;
}

bool looks_like_number_trap(std::string_view text) {
  if (text.empty()) return false;
  std::size_t i = text[0] == '+' || text[0] == '-' ? 1 : 0;
  if (i >= text.size()) return false;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text[i] == '.' && i + 1 < text.size() && digit(text[i + 1])) return true;  // .5
  if (!digit(text[i])) return text.substr(i) == ".nan" || text.substr(i) == ".inf" || text.substr(i) == ".NaN";
  if (text[i] == '0' && i + 1 < text.size() && (digit(text[i + 1]) || text[i + 1] == 'x' || text[i + 1] == 'o')) {
    return true;  // 012, 0x1F, 0o17
  }
  bool exponent = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (digit(c) || c == '.') continue;
    if (c == '_' || c == ':') return i + 1 < text.size() && digit(text[i + 1]);  // 1_000, 1:30
    if ((c == 'e' || c == 'E') && !exponent && i + 1 < text.size()) {
      exponent = true;
      if (text[i + 1] == '+' || text[i + 1] == '-') ++i;
      continue;
    }
    return false;
  }
  return exponent;
}

bool report_unless_scalar(const Value& value, std::string_view wanted, Diagnostics& errors) {
  if (value.kind == ValueKind::scalar) return true;
  const char* got = value.kind == ValueKind::map ? "a map" : value.kind == ValueKind::list ? "a list" : "nothing";
  errors.push_back(make_error("wrong-type", value.span, fmt::format("expected {}, found {}", wanted, got)));
  return false;
}

// -?digits(.digits)?, nothing else; "-0" is 0.
bool is_plain_decimal(std::string_view text) {
  std::size_t i = !text.empty() && text[0] == '-' ? 1 : 0;
  const std::size_t first = i;
  while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
  if (i == first || (text[first] == '0' && i - first > 1)) return false;
  if (i == text.size()) return true;
  if (text[i] != '.') return false;
  const std::size_t fraction = ++i;
  while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
  return i == text.size() && i > fraction;
}

std::optional<double> parse_decimal(const Value& value, std::string_view wanted, Diagnostics& errors) {
  if (!report_unless_scalar(value, wanted, errors)) return std::nullopt;
  if (value.quoted) {
    errors.push_back(make_error("wrong-type", value.span,
                                fmt::format("expected {}, found the text \"{}\"", wanted, value.text),
                                "remove the quotes"));
    return std::nullopt;
  }
  if (!is_plain_decimal(value.text)) {
    if (looks_like_number_trap(value.text)) {
      errors.push_back(make_error("yaml-trap", value.span,
                                  fmt::format("'{}' is a number that YAML readers disagree about", value.text),
                                  "write a plain decimal number such as 1000 or 0.5"));
    } else {
      errors.push_back(
          make_error("bad-number", value.span, fmt::format("expected {}, found '{}'", wanted, value.text)));
    }
    return std::nullopt;
  }
  if (value.text.size() > 40) {
    errors.push_back(make_error("bad-number", value.span, "a number of more than 40 characters"));
    return std::nullopt;
  }
  return std::strtod(value.text.c_str(), nullptr);
}

}  // namespace

std::optional<std::string> read_text(const Value& value, Diagnostics& errors) {
  if (!report_unless_scalar(value, "text", errors)) return std::nullopt;
  if (!value.quoted) {
    const auto& traps = trap_words();
    if (std::find(traps.begin(), traps.end(), value.text) != traps.end() || looks_like_number_trap(value.text)) {
      errors.push_back(make_error("yaml-trap", value.span,
                                  fmt::format("'{}' is a word that YAML readers disagree about", value.text),
                                  fmt::format("write \"{}\" if text is meant", value.text)));
      return std::nullopt;
    }
  }
  if (value.text.empty()) {
    errors.push_back(make_error("bad-value", value.span, "expected text, found an empty string"));
    return std::nullopt;
  }
  if (value.text.find_first_of("\n\t") != std::string::npos) {
    errors.push_back(make_error("bad-value", value.span, "expected text of one line, found a line break or a tab",
                                "write it on one line, or fold it with >-"));
    return std::nullopt;
  }
  return value.text;
}

std::optional<std::string> read_choice(const Value& value, const std::vector<std::string>& choices,
                                       Diagnostics& errors) {
  if (!report_unless_scalar(value, "a name", errors)) return std::nullopt;
  if (std::find(choices.begin(), choices.end(), value.text) != choices.end()) return value.text;
  const auto& traps = trap_words();
  if (!value.quoted && std::find(traps.begin(), traps.end(), value.text) != traps.end()) {
    errors.push_back(make_error("yaml-trap", value.span,
                                fmt::format("'{}' is a word that YAML readers disagree about", value.text),
                                suggest_early(value.text, choices, errors)));
  } else {
    errors.push_back(make_error("unknown-name", value.span, fmt::format("unknown name '{}'", value.text),
                                suggest_early(value.text, choices, errors)));
  }
  return std::nullopt;
}

std::optional<std::int64_t> read_integer(const Value& value, std::int64_t low, std::int64_t high, Diagnostics& errors) {
  const auto number = parse_decimal(value, "a whole number", errors);
  if (!number) return std::nullopt;
  if (*number != std::floor(*number)) {
    errors.push_back(
        make_error("bad-number", value.span, fmt::format("expected a whole number, found {}", value.text)));
    return std::nullopt;
  }
  if (*number < static_cast<double>(low) || *number > static_cast<double>(high)) {
    errors.push_back(
        make_error("bad-number", value.span, fmt::format("{} is outside {} to {}", value.text, low, high)));
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

std::optional<double> read_number(const Value& value, double low, double high, Diagnostics& errors) {
  const auto number = parse_decimal(value, "a number", errors);
  if (!number) return std::nullopt;
  if (*number < low || *number > high) {
    errors.push_back(
        make_error("bad-number", value.span, fmt::format("{} is outside {:g} to {:g}", value.text, low, high)));
    return std::nullopt;
  }
  return number;
}

std::optional<bool> read_flag(const Value& value, Diagnostics& errors) {
  if (!report_unless_scalar(value, "true or false", errors)) return std::nullopt;
  if (value.text == "true") return true;
  if (value.text == "false") return false;
  errors.push_back(make_error("bad-value", value.span, fmt::format("expected true or false, found '{}'", value.text)));
  return std::nullopt;
}

bool expect_list(const Value& value, std::string_view what, Diagnostics& errors) {
  if (value.kind == ValueKind::list) return true;
  errors.push_back(make_error("wrong-type", value.span, fmt::format("{} must be a list", what)));
  return false;
}

}  // namespace plumbline::ingest
