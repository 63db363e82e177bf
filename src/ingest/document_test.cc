#include "ingest/document.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ingest/units.h"

namespace plumbline::ingest {
namespace {

SourceRef text(std::string yaml) { return std::make_shared<const Source>(Source{"t.yaml", std::move(yaml)}); }

std::string error_of(const std::string& yaml) {
  const auto result = parse_yaml(text(yaml));
  return result.ok() ? "no error" : render(result.errors());
}

TEST(Yaml, KeepsPositionsOfKeysAndValues) {
  const auto root = parse_yaml(text("a: 1\nb:\n  - x\n  - {c: 20 ms}\n"));
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->find("b")->items[1].find("c")->span.line, 4);
  EXPECT_EQ(root->find("b")->items[1].find("c")->span.column, 9);
  EXPECT_EQ(root->find_entry("b")->span.line, 2);
}

TEST(Yaml, RefusesDuplicatesAliasesDepthAndSeconds) {
  EXPECT_NE(error_of("a: 1\na: 2\n").find("t.yaml:2:1: error: the key 'a' stands twice in one map"), std::string::npos);
  EXPECT_NE(error_of("a: &x 1\nb: *x\n").find("yaml-alias"), std::string::npos);
  EXPECT_NE(error_of("a: {<<: {b: 1}}\n").find("yaml-alias"), std::string::npos);
  EXPECT_NE(error_of("a: " + std::string(100, '[') + std::string(100, ']')).find("nesting deeper"), std::string::npos);
  EXPECT_NE(error_of("a: 1\n---\nb: 2\n").find("second document"), std::string::npos);
  EXPECT_NE(error_of("").find("empty-file"), std::string::npos);
  EXPECT_NE(error_of("[1, 2]").find("must be a map"), std::string::npos);
  EXPECT_NE(error_of("a: [1, 2").find("yaml-syntax"), std::string::npos);
  EXPECT_NE(error_of(std::string("a: \0b", 5)).find("zero byte"), std::string::npos);
}

TEST(Yaml, WhatATerminalWouldObeyOrAReaderMisreadIsRefusedWhereItStands) {
  EXPECT_NE(error_of(std::string("a: 1\nb: x\0y", 11)).find("t.yaml:2:5: error: a zero byte"), std::string::npos);
  EXPECT_NE(error_of("a: 1\nb: x\x1b[31m").find("t.yaml:2:5: error: the text holds U+001B"), std::string::npos);
  EXPECT_NE(error_of("a: 1 # \xE2\x80\xAE").find("t.yaml:1:8: error: the text holds U+202E"), std::string::npos);
  EXPECT_NE(error_of("a: \xE2\x81\xA6x").find("holds U+2066"), std::string::npos);
  EXPECT_NE(error_of("a: 1\nb: \xff").find("t.yaml:2:4: error: the text is not UTF-8"), std::string::npos);
  EXPECT_NE(error_of("a: 1\nb: \"x\\e[31m\"").find("t.yaml:2:4: error: text that holds U+001B"), std::string::npos);
  EXPECT_NE(error_of("a: 1\nb: \"\\u202E\"").find("holds U+202E"), std::string::npos);
  EXPECT_NE(error_of("\"a\\0b\": 1").find("holds U+0000"), std::string::npos);
  EXPECT_NE(error_of("\"a\\nb\": 1").find("a key of more than one line"), std::string::npos);
  EXPECT_EQ(error_of("a: Größe 中文 עברית\r\nb: |\r\n  x\r\n  y\r\n"), "no error");
}

TEST(Yaml, AMapOfVeryManyKeysIsRefused) {
  std::string yaml;
  for (std::size_t i = 0; i <= kMaxYamlKeys; ++i) yaml += fmt::format("k{}: 1\n", i);
  EXPECT_NE(error_of(yaml).find("t.yaml:4097:1: error: more than 4096 keys in one map"), std::string::npos);
}

TEST(MapReader, OfManyUnknownKeysTheFirstAreNamedAndTheRestCounted) {
  std::string yaml = "wait: 1\n";
  for (int i = 0; i < 4000; ++i) yaml += fmt::format("wait{}: 1\n", i);
  const auto root = parse_yaml(text(yaml));
  ASSERT_TRUE(root.ok());
  Diagnostics errors;
  MapReader map(*root, "the section", errors);
  map.find("wait");
  map.finish();
  ASSERT_EQ(errors.size(), kMostUnknownKeys);
  EXPECT_EQ(errors.front().help, "did you mean 'wait'?");
  EXPECT_EQ(errors.back().message, "and 3981 more unknown keys in the section");
}

TEST(MapReader, ManyWrongMapsAreNotSearchedForWhatTheyMeant) {
  const auto root = parse_yaml(text("wiat: 1\n"));
  Diagnostics errors;
  for (int i = 0; i < 300; ++i) {
    MapReader map(*root, "the section", errors);
    map.find("wait");
    map.finish();
  }
  EXPECT_EQ(errors.front().help, "did you mean 'wait'?");
  EXPECT_EQ(errors.back().help, "");
}

TEST(Text, IsOfOneLine) {
  Diagnostics errors;
  EXPECT_FALSE(read_text(*parse_yaml(text("a: \"x\\ny\""))->find("a"), errors));
  EXPECT_NE(render(errors).find("found a line break or a tab"), std::string::npos);
}

TEST(Yaml, DeepNestingInYamlCppItselfIsAnErrorNotACrash) {
  EXPECT_NE(error_of("a: " + std::string(200000, '[')), "no error");
  std::string blocks;
  for (int i = 0; i < 3000; ++i) blocks += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(error_of(blocks), "no error");
}

TEST(MergePatch, FollowsRfc7386) {
  const auto target = parse_yaml(text("a: {b: 1, c: [1, 2]}\nd: x\n"));
  const auto patch = parse_yaml(text("a: {b: !delete , c: [3]}\ne: {f: 1}\n"));
  ASSERT_TRUE(target.ok() && patch.ok());
  EXPECT_EQ(canonical_text(merge_patch(*target, *patch)), R"({"a":{"c":["3"]},"d":"x","e":{"f":"1"}})");
}

TEST(MergePatch, UndoingAPatchGivesTheSameCanonicalText) {
  const auto base = parse_yaml(text("s: {wait: 2 ms}\n"));
  const auto patch = parse_yaml(text("s: {wait: 3 ms, clock: 1 GHz}\n"));
  const auto undo = parse_yaml(text("s: {wait: 2 ms, clock: null}\n"));
  EXPECT_EQ(canonical_text(merge_patch(merge_patch(*base, *patch), *undo)), canonical_text(*base));
}

TEST(Scalars, TrapsAreErrorsWhereTextOrNumbersAreMeant) {
  const auto root = parse_yaml(text("a: NO\nb: 1e3\nc: \"NO\"\nd: 012\ne: off\nf: .nan\n"));
  ASSERT_TRUE(root.ok());
  Diagnostics errors;
  EXPECT_FALSE(read_text(*root->find("a"), errors));
  EXPECT_FALSE(read_integer(*root->find("b"), 0, 10000, errors));
  EXPECT_EQ(read_text(*root->find("c"), errors), "NO");
  EXPECT_FALSE(read_integer(*root->find("d"), 0, 100, errors));
  EXPECT_EQ(read_choice(*root->find("e"), {"off", "2:4"}, errors), "off");
  EXPECT_FALSE(read_number(*root->find("f"), 0, 1, errors));
  EXPECT_EQ(errors.size(), 4U);
}

TEST(Units, ReadPrefixesProductsAndReciprocals) {
  Diagnostics errors;
  const auto value = [&](const char* t, Dim dim) {
    return read_quantity(make_scalar(t), dim, "1 s", -1e30, 1e30, errors).value_or(-1);
  };
  EXPECT_EQ(value("20 ms", kTime), 0.02);
  EXPECT_EQ(value("200 /s", kFrequency), 200);
  EXPECT_EQ(value("614 GB/s", kBytesPerSecond), 614e9);
  EXPECT_EQ(value("4 MiB", kBytes), 4194304);
  EXPECT_EQ(value("256 B/cycle", kBytesPerCycle), 256);
  EXPECT_NEAR(value("0.94 pJ/bit", kEnergyPerBit), 0.94e-12, 1e-25);
  EXPECT_EQ(value("2 min", kTime), 120);
  EXPECT_TRUE(errors.empty());
}

TEST(Units, BareNumbersAndWrongDimensionsAreNamed) {
  Diagnostics errors;
  EXPECT_FALSE(read_quantity(make_scalar("20"), kTime, "2 ms", 0, 1, errors));
  EXPECT_FALSE(read_quantity(make_scalar("20 MHz"), kTime, "2 ms", 0, 1, errors));
  EXPECT_FALSE(read_quantity(make_scalar("20 furlong"), kTime, "2 ms", 0, 1, errors));
  EXPECT_FALSE(read_quantity(make_scalar("-5 ms"), kTime, "2 ms", 0, 1, errors));
  ASSERT_EQ(errors.size(), 4U);
  EXPECT_EQ(errors[0].kind, "missing-unit");
  EXPECT_EQ(errors[0].help, "write it with its unit, such as 20 ms");
  EXPECT_EQ(errors[1].message, "'20 MHz' is frequency (Hz or /s), but time (s) is needed");
  EXPECT_EQ(errors[2].kind, "unknown-unit");
  EXPECT_EQ(errors[3].kind, "bad-number");
}

}  // namespace
}  // namespace plumbline::ingest
