#include "schedule/verify_timeloop.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace plumbline::schedule {
namespace {

nlohmann::json cases() {
  std::ifstream file(PLUMBLINE_SOURCE_DIR "/test/oracle/timeloop_cases.json");
  return nlohmann::json::parse(file);
}

TEST(VerifyTimeloop, every_reference_case_passes) {
  const auto outcome = verify_timeloop(cases());
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->lines, std::vector<std::string>{});
  EXPECT_EQ(outcome->passed, 21);
  EXPECT_EQ(outcome->failed, 0);
}

TEST(VerifyTimeloop, a_changed_number_fails_its_case_and_no_other) {
  auto document = cases();
  document["cases"][0]["expected"]["levels"]["rf"]["tensors"]["A"]["fills_total"] = 33;
  const auto outcome = verify_timeloop(document);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->failed, 1);
  EXPECT_EQ(outcome->lines, std::vector<std::string>{"g01_single_pe_os: rf.A.fills_total is 32, expected 33"});
}

TEST(VerifyTimeloop, a_case_that_cannot_be_read_fails) {
  auto document = cases();
  document["cases"][1].erase("arch");
  const auto outcome = verify_timeloop(document);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->failed, 1);
}

TEST(VerifyTimeloop, another_document_is_refused) {
  EXPECT_FALSE(verify_timeloop(nlohmann::json::parse(R"({"cases": []})")).ok());
}

}  // namespace
}  // namespace plumbline::schedule
