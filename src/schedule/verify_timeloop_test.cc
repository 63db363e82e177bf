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

// Each field that judges, taken away, renamed by a slip, or of another type: the case must fail and name it.
TEST(VerifyTimeloop, an_expectation_that_is_not_there_as_it_should_be_fails_by_name) {
  constexpr const char* kJudged[] = {"/expected",
                                     "/expected/cycles",
                                     "/expected/macs_issued",
                                     "/expected/levels",
                                     "/expected/levels/rf",
                                     "/expected/levels/rf/tensors",
                                     "/expected/levels/rf/tensors/A",
                                     "/expected/levels/rf/tensors/A/reads_total",
                                     "/expected/levels/rf/tensors/A/fills_total",
                                     "/expected/levels/rf/tensors/A/updates_total",
                                     "/expected/levels/rf/tensors/A/tile_words",
                                     "/expected/networks",
                                     "/expected/networks/0/between",
                                     "/expected/networks/0/tensors",
                                     "/expected/networks/0/tensors/A/ingresses",
                                     "/expected/networks/0/tensors/A/multicast_factor",
                                     "/expected/networks/0/tensors/A/spatial_reductions"};
  const auto original = cases();
  for (const char* path : kJudged) {
    const nlohmann::json::json_pointer at(path);
    const std::string& field = at.back();
    const auto judged = [&](nlohmann::json first) {
      nlohmann::json document = original;
      document["cases"] = nlohmann::json::array({std::move(first)});
      const auto outcome = verify_timeloop(document);
      EXPECT_TRUE(outcome.ok());
      EXPECT_EQ(outcome->failed, 1) << path;
      EXPECT_EQ(outcome->passed, 0) << path;
      return outcome->lines.empty() ? std::string() : outcome->lines.front();
    };
    nlohmann::json gone = original["cases"][0];
    gone.at(at.parent_pointer()).erase(field);
    EXPECT_NE(judged(gone).find(field), std::string::npos) << judged(gone);
    nlohmann::json slipped = gone;
    slipped.at(at.parent_pointer())[field + "s"] = original["cases"][0].at(at);
    EXPECT_NE(judged(slipped).find(field), std::string::npos) << judged(slipped);
    nlohmann::json mistyped = original["cases"][0];
    mistyped.at(at) = "seven";
    judged(mistyped);
    mistyped.at(at) = nlohmann::json::object();
    judged(mistyped);
  }
}

TEST(VerifyTimeloop, a_fraction_is_no_count) {
  auto document = cases();
  document["cases"][0]["expected"]["cycles"] = document["cases"][0]["expected"]["cycles"].get<double>() + 0.5;
  const auto outcome = verify_timeloop(document);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->failed, 1);
}

TEST(VerifyTimeloop, notes_under_names_of_their_own_are_welcome) {
  auto document = cases();
  document["cases"][0]["expected"]["measured_by"] = "a newer version";
  const auto outcome = verify_timeloop(document);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->failed, 0);
}

TEST(VerifyTimeloop, another_document_is_refused) {
  EXPECT_FALSE(verify_timeloop(nlohmann::json::parse(R"({"cases": []})")).ok());
}

}  // namespace
}  // namespace plumbline::schedule
