// The only file that knows yaml-cpp. It takes the parser's events, not its node tree, so that duplicate keys, aliases
// and depth are seen as they come.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>

#include "ingest/document.h"
#include "ingest/utf8.h"

namespace plumbline::ingest {
namespace {

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
    if (const Entry* old = top.value.find_entry(value.text)) {
      fail("duplicate-key", value.span, fmt::format("the key '{}' stands twice in one map", value.text),
           fmt::format("it was first given at line {}", old->span.line));
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
  if (source->text.find('\0') != std::string::npos) {
    return make_error("yaml-syntax", {source, 0, 0, 1}, "a zero byte in a text file");
  }
  if (!is_utf8(source->text)) {
    std::int32_t line = 1;
    std::size_t start = 0;
    for (std::size_t end = source->text.find('\n'); end != std::string::npos; end = source->text.find('\n', start)) {
      if (!is_utf8(std::string_view(source->text).substr(start, end - start))) break;
      start = end + 1;
      ++line;
    }
    return make_error("yaml-syntax", {source, line, 1, 1}, "the text is not UTF-8");
  }
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
    return make_error("empty-file", {source, 0, 0, 1}, "the file holds no YAML document");
  }
  if (builder.root().kind != ValueKind::map) {
    return make_error("wrong-type", builder.root().span, "the document must be a map of keys and values");
  }
  return std::move(builder.root());
}

}  // namespace plumbline::ingest
