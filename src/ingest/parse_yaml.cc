// The only file that knows yaml-cpp. It takes the parser's events, not its node tree, so that duplicate keys, aliases
// and depth are seen as they come.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "core/printable.h"
#include "ingest/document.h"

namespace plumbline::ingest {
namespace {

// Names, ids and reasons end up on terminals and in reports.
constexpr const char* kPlainTextOnly = "control characters and those that reorder text are not accepted";

// Where a byte stands: line and column from 1; columns count bytes.
Span span_at(const SourceRef& source, std::size_t at) {
  const std::string_view before = std::string_view(source->text).substr(0, at);
  const auto line = static_cast<std::int32_t>(1 + std::count(before.begin(), before.end(), '\n'));
  const std::size_t start = before.rfind('\n') + 1;  // 0 on the first line
  return {source, line, static_cast<std::int32_t>(at - start + 1), 1};
}

// What the text may not hold, wherever it stands: comments are shown beside what they explain.
Status check_characters(const SourceRef& source) {
  std::string_view rest = source->text;
  std::size_t at = 0;
  while (const auto unshown = find_unshown(rest.substr(at))) {
    at += unshown->at;
    if (rest[at] == '\r' && rest.substr(at, 2) == "\r\n") {
      ++at;
      continue;
    }
    const Span where = span_at(source, at);
    if (rest[at] == '\0') return make_error("yaml-syntax", where, "a zero byte in a text file");
    if (!unshown->is_utf8) return make_error("yaml-syntax", where, "the text is not UTF-8");
    return make_error("yaml-syntax", where, fmt::format("the text holds {}, which cannot be shown", unshown->name),
                      kPlainTextOnly);
  }
  return Done{};
}

// Leaves yaml-cpp's recursive parser at our first error.
struct Stop {};

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(SourceRef source) : source_(std::move(source)) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0)
      fail("yaml-syntax", span(mark), "a second document in one file", "write one document per file");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    Value value;
    value.remove = true;
    value.span = span(mark);
    add(std::move(value));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    fail("yaml-alias", span(mark), "aliases are not accepted", "repeat the value, or use base: and changes:");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_anchor(mark, anchor);
    Value value;
    value.kind = ValueKind::scalar;
    value.text = text;
    value.quoted = tag == "!";
    value.span = span(mark, static_cast<std::int32_t>(std::max<std::size_t>(1, text.size())));
    refuse_unshown(value.span, text);
    if (tag == "!delete") {
      value.kind = ValueKind::null;
      value.remove = true;
    } else if (tag != "?" && tag != "!") {
      fail("yaml-syntax", value.span, fmt::format("unknown tag '{}'", tag), "the one tag understood is !delete");
    }
    add(std::move(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    refuse_anchor(mark, anchor);
    open(mark, ValueKind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    refuse_anchor(mark, anchor);
    open(mark, ValueKind::map);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] Value& root() { return root_; }
  [[nodiscard]] bool any() const { return documents_ > 0; }
  [[nodiscard]] Diagnostics& errors() { return errors_; }

  [[nodiscard]] Span span(const YAML::Mark& mark, std::int32_t length = 1) const {
    return {source_, mark.line + 1, mark.column + 1, length};
  }
  [[noreturn]] void fail(std::string_view kind, Span at, std::string message, std::string help = {}) {
    errors_.push_back(make_error(kind, std::move(at), std::move(message), std::move(help)));
    throw Stop{};
  }

 private:
  struct Frame {
    Value value;
    std::string key;
    Span key_span;
    bool has_key = false;
  };

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0)
      fail("yaml-alias", span(mark), "anchors are not accepted", "repeat the value, or use base: and changes:");
  }

  // Escapes of quoted text; what stands in the file itself is refused before it is parsed.
  void refuse_unshown(const Span& at, const std::string& text) {
    if (const auto unshown = find_unshown(text)) {
      fail("bad-value", at, fmt::format("text that holds {}, which cannot be shown", unshown->name), kPlainTextOnly);
    }
  }

  void open(const YAML::Mark& mark, ValueKind kind) {
    if (static_cast<int>(stack_.size()) >= kMaxYamlDepth) {
      fail("too-large", span(mark), fmt::format("nesting deeper than {} levels", kMaxYamlDepth));
    }
    if (!stack_.empty() && stack_.back().value.kind == ValueKind::map && !stack_.back().has_key) {
      fail("wrong-type", span(mark), "a key must be plain text");
    }
    Frame frame;
    frame.value.kind = kind;
    frame.value.span = span(mark);
    stack_.push_back(std::move(frame));
  }

  void close() {
    Value value = std::move(stack_.back().value);
    stack_.pop_back();
    add(std::move(value));
  }

  void add(Value value) {
    if (++count_ > kMaxYamlValues) fail("too-large", value.span, fmt::format("more than {} values", kMaxYamlValues));
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& top = stack_.back();
    if (top.value.kind == ValueKind::list) {
      top.value.items.push_back(std::move(value));
      return;
    }
    if (!top.has_key) {
      take_key(top, value);
      return;
    }
    top.value.entries.push_back({std::move(top.key), top.key_span, std::move(value)});
    top.has_key = false;
  }

  void take_key(Frame& top, Value& value) {
    if (value.kind != ValueKind::scalar) fail("wrong-type", value.span, "a key must be plain text");
    if (value.text == "<<" && !value.quoted) {
      fail("yaml-alias", value.span, "merge keys are not accepted", "repeat the value, or use base: and changes:");
    }
    if (value.text.find_first_of("\n\t") != std::string::npos)
      fail("bad-value", value.span, "a key of more than one line, or with a tab");
    if (const Entry* old = top.value.find_entry(value.text)) {
      fail("duplicate-key", value.span, fmt::format("the key '{}' stands twice in one map", value.text),
           fmt::format("it was first given at line {}", old->span.line));
    }
    if (top.value.entries.size() >= kMaxYamlKeys) {
      fail("too-large", value.span, fmt::format("more than {} keys in one map", kMaxYamlKeys));
    }
    top.key = std::move(value.text);
    top.key_span = value.span;
    top.has_key = true;
  }

  SourceRef source_;
  int documents_ = 0;
  std::size_t count_ = 0;
  Value root_;
  std::vector<Frame> stack_;
  Diagnostics errors_;
};

}  // namespace

Result<Value> parse_yaml(SourceRef source) {
  if (source->text.size() > kMaxYamlBytes) {
    return make_error("too-large", {source, 0, 0, 1},
                      fmt::format("{} bytes of YAML; the limit is {}", source->text.size(), kMaxYamlBytes));
  }
  PL_TRY_STATUS(check_characters(source));
  TreeBuilder builder(source);
  try {
    std::istringstream stream(source->text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop&) {
    return builder.errors();
  } catch (const YAML::Exception& e) {
    return make_error("yaml-syntax", builder.span(e.mark), e.msg);
  }
  if (!builder.any() || builder.root().kind == ValueKind::null) {
    return make_error("empty-file", {std::move(source), 0, 0, 1}, "the file holds no YAML document");
  }
  if (builder.root().kind != ValueKind::map) {
    return make_error("wrong-type", builder.root().span, "the document must be a map of keys and values");
  }
  return std::move(builder.root());
}

}  // namespace plumbline::ingest
