#include "core/printable.h"

#include <gtest/gtest.h>

#include "core/diagnostic.h"

namespace plumbline {
namespace {

TEST(Printable, PlainTextOfAnyScriptIsLeftAlone) {
  for (const char* text : {"", "a b\tc\n", "Größe 中文 עברית µJ 🎲", "e\xCC\x81"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, WhatATerminalWouldObeyIsNamed) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a<U+001B>[31mb");
  EXPECT_EQ(printable("\r\x07\x7f"), "<U+000D><U+0007><U+007F>");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "<U+009B>31m")
      << "the eight-bit control sequence introducer";
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a<U+0000>b");
}

TEST(Printable, WhatReordersOrBreaksLinesIsNamed) {
  EXPECT_EQ(printable("ok\xE2\x80\xAE"
                      "drowssap"),
            "ok<U+202E>drowssap");
  EXPECT_EQ(printable("\xE2\x81\xA6x\xE2\x81\xA9"), "<U+2066>x<U+2069>");
  EXPECT_EQ(printable("\xE2\x80\xA8"), "<U+2028>");
  EXPECT_EQ(printable("\xD8\x9C"), "<U+061C>");
}

TEST(Printable, BytesThatAreNoUtf8AreNamed) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "<byte 9B>31m");
  EXPECT_EQ(printable("\xC0\x80"), "<byte C0><byte 80>");
  EXPECT_EQ(printable("\xED\xA0\x80"), "<byte ED><byte A0><byte 80>") << "a surrogate";
  EXPECT_EQ(printable("x\xE2\x80"), "x<byte E2><byte 80>");
}

TEST(Printable, TheFirstOffenderIsFoundWithItsPlace) {
  const auto found = find_unshown("µ\xE2\x80\xAE");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at, 2);
  EXPECT_EQ(found->name, "U+202E");
  EXPECT_FALSE(find_unshown("µJ"));
}

TEST(Printable, DiagnosticsShowNothingATerminalObeys) {
  const auto source = std::make_shared<const Source>(Source{"a\x1b.yaml", "key: \xE2\x80\xAEvalue\x1b[2J\n"});
  const std::string shown = render(make_error("bad-value", {source, 1, 6, 3}, "no \x1b[31m 'x\xE2\x80\xAE'",
                                              "\x9b"
                                              "2J"));
  EXPECT_FALSE(find_unshown(shown)) << shown;
}

TEST(ShellWord, IsOneWordThatAShellReadsAsItWas) {
  EXPECT_EQ(shell_word("../catalog/a-b_1.yaml"), "../catalog/a-b_1.yaml");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's; rm $x"), "'it'\\''s; rm $x'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace plumbline
