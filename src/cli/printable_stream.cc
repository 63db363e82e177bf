#include "cli/printable_stream.h"

#include <string_view>

#include "core/printable.h"

namespace plumbline::cli {
namespace {

constexpr std::size_t kLongestColour = 16;  // bytes of an escape sequence of ours
constexpr std::size_t kLongestCharacter = 4;

enum class Colour { no, whole, unfinished };

// Whether `text`, which begins with ESC, begins with a sequence of weight and colour; `bytes` becomes its length.
Colour colour_sequence(std::string_view text, std::size_t& bytes) {
  for (std::size_t i = 1; i < kLongestColour; ++i) {
    if (i >= text.size()) return Colour::unfinished;
    const char c = text[i];
    if (i == 1) {
      if (c != '[') return Colour::no;
    } else if (c == 'm') {
      bytes = i + 1;
      return Colour::whole;
    } else if ((c < '0' || c > '9') && c != ';') {
      return Colour::no;
    }
  }
  return Colour::no;
}

}  // namespace

void PrintableBuffer::pass(bool last) {
  std::string_view rest = held_;
  while (!rest.empty()) {
    const auto unshown = find_unshown(rest);
    if (!unshown) {
      sink_.write(rest.data(), static_cast<std::streamsize>(rest.size()));
      rest = {};
      break;
    }
    sink_.write(rest.data(), static_cast<std::streamsize>(unshown->at));
    rest.remove_prefix(unshown->at);
    const LeadingCharacter lead = leading_character(rest.substr(0, kLongestCharacter));
    std::size_t bytes = lead.bytes;
    const Colour colour = rest.front() == '\x1b' ? colour_sequence(rest, bytes) : Colour::no;
    if (!last && (lead.incomplete || colour == Colour::unfinished)) break;
    if (colour == Colour::whole) {
      sink_.write(rest.data(), static_cast<std::streamsize>(bytes));
    } else {
      sink_ << printable(rest.substr(0, bytes));
    }
    rest.remove_prefix(bytes);
  }
  held_.erase(0, held_.size() - rest.size());
}

void PrintableBuffer::finish() {
  pass(true);
  sink_.flush();
}

std::streamsize PrintableBuffer::xsputn(const char* text, std::streamsize size) {
  held_.append(text, static_cast<std::size_t>(size));
  pass(false);
  return sink_ ? size : 0;
}

PrintableBuffer::int_type PrintableBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  held_.push_back(traits_type::to_char_type(c));
  pass(false);
  return sink_ ? c : traits_type::eof();
}

int PrintableBuffer::sync() {
  sink_.flush();
  return sink_ ? 0 : -1;
}

}  // namespace plumbline::cli
