#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"
#include "report/artefacts.h"

namespace plumbline::report {
namespace {

Result<ingest::Value> parse(const std::string& text) {
  return ingest::parse_yaml(std::make_shared<const Source>(Source{"test.yaml", text}));
}

// What readers see of a value: canonical text and whether each scalar was quoted.
std::string with_quotes(const ingest::Value& value) {
  switch (value.kind) {
    case ingest::ValueKind::null:
      return "null";
    case ingest::ValueKind::scalar:
      return (value.quoted ? "Q<" : "P<") + value.text + ">";
    case ingest::ValueKind::list: {
      std::string out = "[";
      for (const auto& item : value.items) out += with_quotes(item) + ";";
      return out + "]";
    }
    case ingest::ValueKind::map: {
      std::string out = "{";
      for (const auto& entry : value.entries) out += entry.key + "=" + with_quotes(entry.value) + ";";
      return out + "}";
    }
  }
  return "";
}

void expect_round_trip(const ingest::Value& value) {
  const std::string text = resolved_yaml(value);
  const auto again = parse(text);
  ASSERT_TRUE(again.ok()) << text << render(again.errors());
  EXPECT_EQ(ingest::canonical_text(*again), ingest::canonical_text(value)) << text;
}

TEST(ResolvedYaml, ReadsBackToTheSameCanonicalTextAndQuotes) {
  const char* kDocuments[] = {
      "a: 1\n",
      "a: -5\nb: -0.5\nc: \"-5\"\n",
      "a: 20 ms\nb: 700 /s\nc: \"20 ms\"\nd: 3 µs\ne: 30 °C\n",
      "a: {b: {c: [1, 2, {d: x}]}}\nlist: [[1, 2], [3], []]\nnone: {}\n",
      "text: a, b and {c}\nother: x [y]\nurl: http://x/y?z=1\n",
      "\"*\": star\n\"a: b\": colon\n\"\": empty\nkernels: \"*\"\n",
      "a: \"\"\nb: \"null\"\nc: null\nd: \"~\"\ne: \"NO\"\nf: \"1e3\"\n",
      "a: |\n  two\n  lines\nb: \"tab\\there\"\nc: \"quote \\\" and \\\\ slash\"\n",
      "- : x\n",
      "a: \"# no comment\"\nb: \"x # y\"\nc: x#y\n",
      "a: \"trailing \"\nb: \" leading\"\nc: \"colon:\"\n",
      "a: \"\\u0007bell\"\nb: \"\\xa0nbsp\"\nc: \"\\u2028line\"\nd: \"\\x7f\"\n",
      "long: [aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, cccccccccccccccccc]\n",
      "a: -x\nb: ?x\nc: \"---\"\nd: \"- x\"\n",
      "deep: [{x: [{y: [{z: 1}]}]}]\n",
  };
  for (const char* text : kDocuments) {
    const auto value = parse(text);
    if (!value.ok()) continue;  // not every line is a document
    expect_round_trip(*value);
    const auto again = parse(resolved_yaml(*value));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(with_quotes(*again), with_quotes(*value)) << resolved_yaml(*value);
  }
}

// Of what the reader accepts: control characters it refuses.
std::string random_text(RandomStream& random) {
  constexpr std::string_view kPieces[] = {"a", "B", "0",  "7", " ",  ".",  "-",  ":", ",", "#",    "[",           "]",
                                          "{", "}", "\"", "'", "\\", "\n", "\t", "*", "&", "!",    "|",           ">",
                                          "%", "@", "`",  "?", "~",  "=",  "/",  "µ", "→", "null", "\xef\xbb\xbf"};
  std::string out;
  const auto length = random.next_below(6);
  for (std::uint64_t i = 0; i < length; ++i) out += kPieces[random.next_below(std::size(kPieces))];
  return out;
}

// Keys are of one line.
std::string random_key(RandomStream& random) {
  std::string key = random_text(random);
  std::replace_if(
      key.begin(), key.end(), [](char c) { return c == '\n' || c == '\t'; }, '_');
  return key;
}

ingest::Value random_value(RandomStream& random, int depth) {
  const auto kind = random.next_below(depth > 3 ? 2 : 4);
  ingest::Value value;
  if (kind <= 1) {
    value.kind = ingest::ValueKind::scalar;
    value.text = random_text(random);
    value.quoted = kind == 1;
  } else if (kind == 2) {
    value.kind = ingest::ValueKind::list;
    for (auto n = random.next_below(4); n > 0; --n) value.items.push_back(random_value(random, depth + 1));
  } else {
    value.kind = ingest::ValueKind::map;
    for (auto n = random.next_below(4); n > 0; --n) {
      const std::string key = random_key(random);
      if (value.find(key) == nullptr) value.entries.push_back({key, {}, random_value(random, depth + 1)});
    }
  }
  return value;
}

TEST(ResolvedYaml, RandomTreesOfHostileTextReadBack) {
  constexpr std::uint64_t kSeed = 20260801;
  RandomStream random(kSeed, "yaml trees");
  for (int i = 0; i < 3000; ++i) {
    ingest::Value value;
    value.kind = ingest::ValueKind::map;
    value.entries.push_back({"k" + random_key(random), {}, random_value(random, 0)});
    expect_round_trip(value);
    if (HasFatalFailure() || HasNonfatalFailure()) {
      GTEST_FAIL() << "seed " << kSeed << ", tree " << i;
    }
  }
}

}  // namespace
}  // namespace plumbline::report
