#include "execute/numerics/verify_formats.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "execute/numerics/round_kernel.h"

namespace plumbline::numerics {
namespace {

nlohmann::json oracle(const std::string& name) {
  std::ifstream file(std::string(PLUMBLINE_SOURCE_DIR) + "/test/oracle/" + name);
  return nlohmann::json::parse(file);
}

std::string first_lines(const FormatVerdict& verdict) {
  std::string text;
  for (std::size_t i = 0; i < verdict.lines.size() && i < 20; ++i) text += verdict.lines[i] + "\n";
  return text;
}

TEST(FormatVectors, AllCodesOfTheReferenceAreMetOnEveryInstructionSet) {
  const auto document = oracle("format_vectors.json");
  ASSERT_TRUE(is_format_vectors(document));
  EXPECT_FALSE(is_mx_vectors(document));
  for (const std::int64_t target : kernel_targets()) {
    limit_kernels_to(target);
    const FormatVerdict verdict = verify_format_vectors(document);
    EXPECT_EQ(verdict.failed, 0) << kernel_target_name(target) << "\n" << first_lines(verdict);
    // Counted from the file: 69128 codes, 182 nulls; decode tables of 5 x 256, 2 x 64 and 16 codes.
    EXPECT_EQ(verdict.passed, 69128 + 5 * 256 + 2 * 64 + 16) << kernel_target_name(target);
    EXPECT_EQ(verdict.skipped, 182);
  }
  limit_kernels_to(0);
}

TEST(FormatVectors, AWrongCodeFailsWithItsLine) {
  auto document = oracle("format_vectors.json");
  document["formats"]["e4m3fn"]["off"]["rne"][40] = "01";
  document["formats"]["e2m1"]["on"].erase("rtz");
  document["formats"]["e2m1"]["on"]["odd"] = nlohmann::json::array();
  document["formats"]["binary16"]["inputs"][3] = "xyz";
  document["formats"]["bfloat16"]["on"] = 7;
  document["formats"]["e9m9"] = {{"inputs", nlohmann::json::array()}};
  document["formats"]["e5m2"]["decode_to_f32"][1] = "3f800000";
  const FormatVerdict verdict = verify_format_vectors(document);
  EXPECT_EQ(verdict.failed, 6) << first_lines(verdict);
  EXPECT_EQ(verdict.lines.size(), 6U);
}

// What judges nothing must not count as passed, and the line names what is missing.
TEST(FormatVectors, AnExpectationThatIsNotThereFailsByName) {
  const auto original = oracle("format_vectors.json");
  const auto line = [&](const char* key, const nlohmann::json& value, const char* renamed) {
    nlohmann::json entry = original["formats"]["e2m1"];
    if (renamed != nullptr) entry[renamed] = entry[key];
    if (value.is_null()) {
      entry.erase(key);
    } else {
      entry[key] = value;
    }
    const FormatVerdict verdict = verify_format_vectors({{"formats", {{"e2m1", entry}}}});
    EXPECT_GT(verdict.failed, 0) << key << " " << value;
    return verdict.lines.empty() ? std::string() : verdict.lines.front();
  };
  for (const char* key : {"off", "on"}) {
    EXPECT_NE(line(key, nullptr, nullptr).find(key), std::string::npos);
    EXPECT_NE(line(key, nlohmann::json::object(), nullptr).find(key), std::string::npos);
  }
  EXPECT_NE(line("inputs", nullptr, nullptr).find("inputs"), std::string::npos);
  EXPECT_NE(line("inputs", nlohmann::json::array(), nullptr).find("inputs"), std::string::npos);
  EXPECT_NE(line("decode_to_f32", nlohmann::json::array(), nullptr).find("decode_to_f32"), std::string::npos);
  EXPECT_NE(line("decode_to_f32", nullptr, "decode_to_f23").find("decode_to_f23"), std::string::npos);
  EXPECT_NE(line("decode_to_f32", "3f800000", nullptr).find("decode_to_f32"), std::string::npos);
}

TEST(FormatVectors, AFormatUnknownHereIsBuiltFromItsParameters) {
  auto document = oracle("format_vectors.json");
  for (const char* name : {"binary16", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e3m2", "e2m1"}) {
    auto entry = document["formats"][name];
    document["formats"] = {{std::string("another_") + name, entry}};
    const FormatVerdict verdict = verify_format_vectors(document);
    EXPECT_EQ(verdict.failed, 0) << first_lines(verdict);
    EXPECT_GT(verdict.passed, 1000);
    document = oracle("format_vectors.json");
  }
}

TEST(MxVectors, AllBlocksOfTheReferenceAreMetOnEveryInstructionSet) {
  const auto document = oracle("mx_vectors.json");
  ASSERT_TRUE(is_mx_vectors(document));
  EXPECT_FALSE(is_format_vectors(document));
  for (const std::int64_t target : kernel_targets()) {
    limit_kernels_to(target);
    const FormatVerdict verdict = verify_mx_vectors(document);
    EXPECT_EQ(verdict.failed, 0) << first_lines(verdict);
    EXPECT_EQ(verdict.passed, 16 * 5 * 2);  // blocks, formats, rules
  }
  limit_kernels_to(0);
}

TEST(MxVectors, AnExpectationThatIsNotThereFailsByName) {
  const auto original = oracle("mx_vectors.json");
  const auto line = [&](const char* path, const nlohmann::json& value) {
    nlohmann::json document = {{"blocks", {original["blocks"][0]}}};
    document["blocks"][0]["elem"] = {{"e2m1", {{"floor", original["blocks"][0]["elem"]["e2m1"]["floor"]}}}};
    const nlohmann::json::json_pointer at(path);
    if (value.is_null()) {
      document["blocks"][0].at(at.parent_pointer()).erase(at.back());
    } else {
      document["blocks"][0].at(at) = value;
    }
    const FormatVerdict verdict = verify_mx_vectors(document);
    EXPECT_EQ(verdict.failed, 1) << path;
    EXPECT_EQ(verdict.passed, 0) << path;
    return verdict.lines.empty() ? std::string() : verdict.lines.front();
  };
  for (const char* path : {"/elem/e2m1/floor/scale", "/elem/e2m1/floor/codes", "/elem", "/input"}) {
    const std::string field = nlohmann::json::json_pointer(path).back();
    EXPECT_NE(line(path, nullptr).find(field), std::string::npos) << line(path, nullptr);
    EXPECT_NE(line(path, 7).find(field), std::string::npos) << line(path, 7);
    EXPECT_NE(line(path, nlohmann::json::array()).find(field), std::string::npos);
  }
  EXPECT_NE(line("/elem", nlohmann::json::object()).find("elem"), std::string::npos);
  EXPECT_NE(line("/elem/e2m1", nlohmann::json::object()).find("e2m1"), std::string::npos);
}

TEST(MxVectors, AWrongScaleOrCodeFailsWithItsLine) {
  auto document = oracle("mx_vectors.json");
  document["blocks"][0]["elem"]["e4m3fn"]["floor"]["scale"] = "78";
  document["blocks"][1]["elem"]["e2m1"]["rceil"]["codes"][31] = "0f";
  document["blocks"][2]["elem"]["e2m1"]["ceil"] = 1;
  document["blocks"][3]["elem"] = 1;
  const FormatVerdict verdict = verify_mx_vectors(document);
  EXPECT_EQ(verdict.failed, 4) << first_lines(verdict);
}

}  // namespace
}  // namespace plumbline::numerics
