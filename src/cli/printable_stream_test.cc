#include "cli/printable_stream.h"

#include <gtest/gtest.h>

#include <sstream>

namespace plumbline::cli {
namespace {

// `text` written in pieces of `size` bytes.
std::string shown(const std::string& text, std::size_t size) {
  std::ostringstream sink;
  {
    PrintableBuffer buffer(sink);
    std::ostream stream(&buffer);
    for (std::size_t at = 0; at < text.size(); at += size) stream << text.substr(at, size);
  }
  return sink.str();
}

TEST(PrintableStream, AsksNotHowWritesWereSplit) {
  const std::string text =
      "a µ 中\t\n\x1b[1;31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \xE2\x80\xAE \xC2\x9B \x9b \xE2\x80";
  const std::string want =
      "a µ 中\t\n\x1b[1;31mred\x1b[0m <U+001B>]0;title<U+0007> <U+001B>[2J <U+202E> <U+009B> <byte 9B> <byte E2><byte "
      "80>";
  for (std::size_t size = 1; size <= text.size(); ++size) EXPECT_EQ(shown(text, size), want) << size;
}

TEST(PrintableStream, AnEscapeAtTheEndIsNamed) {
  EXPECT_EQ(shown("x\x1b[3", 1), "x<U+001B>[3");
  EXPECT_EQ(shown("\x1b[" + std::string(40, '1') + "m", 7), "<U+001B>[" + std::string(40, '1') + "m");
}

TEST(PrintableStream, AFailingSinkIsSeen) {
  std::ostringstream sink;
  sink.setstate(std::ios::badbit);
  PrintableBuffer buffer(sink);
  std::ostream stream(&buffer);
  stream << "text";
  EXPECT_FALSE(stream);
}

}  // namespace
}  // namespace plumbline::cli
