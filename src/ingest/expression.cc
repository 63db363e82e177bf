#include "ingest/expression.h"

#include <fmt/format.h>

#include <vector>

namespace plumbline::ingest {

namespace {

constexpr std::size_t kMostCharacters = 200;
constexpr int kMostDepth = 16;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Evaluator {
 public:
  Evaluator(std::string_view text, const Names& names, const Span& span) : text_(text), names_(names), span_(span) {}

  Result<std::int64_t> whole() {
    PL_TRY(const std::int64_t value, sum());
    if (peek() != '\0') return wrong(fmt::format("'{}' was not expected", text_.substr(at_)));
    return value;
  }

 private:
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Result<std::int64_t> sum() {
    PL_TRY(std::int64_t total, product());
    for (char op = peek(); op == '+' || op == '-'; op = peek()) {
      ++at_;
      PL_TRY(const std::int64_t next, product());
      const bool over =
          op == '+' ? __builtin_add_overflow(total, next, &total) : __builtin_sub_overflow(total, next, &total);
      if (over) return overflow();
    }
    return total;
  }

  Result<std::int64_t> product() {
    PL_TRY(std::int64_t total, factor());
    for (char op = peek(); op == '*' || op == '/'; op = peek()) {
      ++at_;
      PL_TRY(const std::int64_t next, factor());
      if (op == '*') {
        if (__builtin_mul_overflow(total, next, &total)) return overflow();
      } else {
        if (next == 0) return wrong("it divides by 0");
        if (next == -1) {
          if (__builtin_sub_overflow(0, total, &total)) return overflow();
          continue;
        }
        if (total % next != 0) return wrong(fmt::format("{} does not divide by {}", total, next));
        total /= next;
      }
    }
    return total;
  }

  Result<std::int64_t> factor() {
    if (++depth_ > kMostDepth) return wrong("it nests too deeply");
    auto value = unnested();
    --depth_;
    return value;
  }

  Result<std::int64_t> unnested() {
    const char c = peek();
    if (c == '-') {
      ++at_;
      PL_TRY(const std::int64_t value, factor());
      std::int64_t negated = 0;
      if (__builtin_sub_overflow(0, value, &negated)) return overflow();
      return negated;
    }
    if (c == '(') {
      ++at_;
      PL_TRY(const std::int64_t value, sum());
      if (peek() != ')') return wrong("a ')' is missing");
      ++at_;
      return value;
    }
    if (is_digit(c)) return digits();
    if (is_letter(c)) return name();
    return wrong(c == '\0' ? "it ends where a number or a name is needed"
                           : fmt::format("'{}' was not expected", text_.substr(at_)));
  }

  Result<std::int64_t> digits() {
    std::int64_t value = 0;
    while (at_ < text_.size() && is_digit(text_[at_])) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value))
        return overflow();
      ++at_;
    }
    return value;
  }

  Result<std::int64_t> name() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '_')) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    const auto found = names_.find(word);
    if (found != names_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [known_name, value] : names_) known.push_back(known_name);
    return make_error("unknown-name", span_, fmt::format("no dimension is named '{}'", word), suggest(word, known));
  }

  [[nodiscard]] Diagnostic wrong(std::string_view why) const {
    return make_error("bad-value", span_, fmt::format("the expression '{}' cannot be read: {}", text_, why),
                      "write whole numbers, names of dimensions, + - * / and parentheses");
  }
  [[nodiscard]] Diagnostic overflow() const {
    return make_error("overflow", span_, fmt::format("the expression '{}' does not fit 64 bits", text_));
  }

  std::string_view text_;
  const Names& names_;
  const Span& span_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<std::int64_t> evaluate(std::string_view text, const Names& names, const Span& span) {
  if (text.size() > kMostCharacters) {
    return make_error(
        "too-large", span,
        fmt::format("an expression of {} characters; at most {} are accepted", text.size(), kMostCharacters));
  }
  return Evaluator(text, names, span).whole();
}

bool is_name(std::string_view text) {
  if (text.empty() || !is_letter(text.front())) return false;
  for (const char c : text) {
    if (!is_letter(c) && !is_digit(c) && c != '_') return false;
  }
  return true;
}

}  // namespace plumbline::ingest
