#include "cli/map_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/command.h"
#include "cli/command_testing.h"

namespace plumbline::cli {
namespace {

Ran map(const std::vector<std::string>& arguments) {
  setenv("PLUMBLINE_CATALOG", PLUMBLINE_SOURCE_DIR "/catalog", 1);
  return run_command(map_command, arguments);
}

TEST(MapCommand, proves_a_mapping_of_a_projection_on_a_catalogue_accelerator) {
  const Ran o =
      map({"--accelerator", "ws-128", "--kernel", "gemm M=512 N=768 K=768 in=int8 acc=int32", "--format", "json"});
  ASSERT_EQ(o.code, kYes) << o.err;
  const auto document = nlohmann::json::parse(o.out);
  EXPECT_EQ(document["kind"], "map");
  EXPECT_EQ(document["macs"], 512 * 768 * 768);
  EXPECT_NEAR(document["certificate"]["gap"].get<double>(), 0, 1e-9);
  EXPECT_EQ(document["mapping"].size(), 4);
  // The array is full: no port of this machine need hold it up.
  EXPECT_EQ(document["compute_steps"], 512 * 768 * 768 / (128 * 128));
}

TEST(MapCommand, prints_a_loop_nest) {
  const Ran o = map({"--accelerator", "ws-128", "--kernel", "gemm M=64 N=128 K=128"});
  ASSERT_EQ(o.code, kYes) << o.err;
  EXPECT_NE(o.out.find("hbm            keeps weights, inputs, outputs"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("at once "), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("proof   energy-delay product"), std::string::npos) << o.out;
}

TEST(MapCommand, counts_a_given_mapping) {
  const std::string path = (std::filesystem::temp_directory_path() / "plumbline_map_command_test.yaml").string();
  std::ofstream(path) << "mapping:\n"
                         "  - {level: hbm, keep: [weights, inputs, outputs]}\n"
                         "  - {level: sram, keep: [weights, inputs, outputs], loops: [N 2]}\n"
                         "  - {level: accumulator, keep: [outputs], loops: [K 3, M 64, N 128 x, K 128 y]}\n"
                         "  - {level: array, keep: [weights]}\n";
  const Ran o =
      map({"--accelerator", "ws-128", "--kernel", "gemm M=64 N=256 K=384", "--mapping", path, "--format", "json"});
  ASSERT_EQ(o.code, kYes) << o.err;
  const auto document = nlohmann::json::parse(o.out);
  EXPECT_TRUE(document["certificate"].is_null());
  EXPECT_EQ(document["compute_steps"], 2 * 3 * 64);
  for (const auto& row : document["counts"]) {
    if (row["level"] == "sram" && row["operand"] == "weights") {
      EXPECT_EQ(row["reads"], 256 * 384);
    }
    if (row["level"] == "accumulator") {
      EXPECT_EQ(row["updates"], 3 * 64 * 256);
    }
  }
  std::filesystem::remove(path);
}

TEST(MapCommand, saves_what_it_can_count_again) {
  const std::string path = testing::TempDir() + "saved_mapping.yaml";
  const std::vector<std::string> kernel{"--accelerator", "ws-128", "--kernel", "gemm M=197 N=300 K=500"};
  auto saving = kernel;
  saving.insert(saving.end(), {"--imperfect", "--save", path, "--format", "json"});
  auto counting = kernel;
  counting.insert(counting.end(), {"--mapping", path, "--format", "json"});
  const Ran searched = map(saving);
  const Ran counted = map(counting);
  ASSERT_EQ(searched.code, kYes) << searched.err;
  ASSERT_EQ(counted.code, kYes) << counted.err;
  auto left = nlohmann::json::parse(searched.out);
  const auto right = nlohmann::json::parse(counted.out);
  EXPECT_EQ(left["mapping"], right["mapping"]);
  EXPECT_EQ(left["counts"], right["counts"]);
  saving.back() = "text";
  saving[saving.size() - 3] = testing::TempDir() + "no/such/folder/m.yaml";
  const Ran unwritable = map(saving);
  EXPECT_EQ(unwritable.code, kCannotSay);
  EXPECT_NE(unwritable.err.find("[unwritable]"), std::string::npos);
  EXPECT_TRUE(unwritable.out.empty());
}

TEST(MapCommand, imperfect_windows_are_never_worse_than_perfect_ones) {
  std::vector<std::string> words{"--accelerator", "ws-128", "--kernel", "depthwise C=32 P=56 Q=56 R=3 S=3",
                                 "--format",      "json"};
  const auto best = [&] {
    const Ran o = map(words);
    EXPECT_EQ(o.code, kYes) << o.err;
    return nlohmann::json::parse(o.out)["certificate"]["best"].get<double>();
  };
  const double perfect = best();
  words.emplace_back("--imperfect");
  EXPECT_LE(best(), perfect * (1 + 1e-9));
}

TEST(MapCommand, a_given_mapping_is_not_searched_so_what_a_search_obeys_is_refused) {
  for (const std::vector<std::string>& option : {std::vector<std::string>{"--constraints", "rows.yaml"},
                                                 {"--objective", "energy"},
                                                 {"--imperfect"},
                                                 {"--budget", "1"},
                                                 {"--work", "1"}}) {
    std::vector<std::string> arguments{"--accelerator",    "ws-128",    "--kernel",
                                       "gemm M=4 N=4 K=4", "--mapping", "m.yaml"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    const Ran ran = map(arguments);
    EXPECT_EQ(ran.code, kCannotSay);
    EXPECT_NE(ran.err.find("[usage]"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find(option[0]), std::string::npos) << ran.err;
  }
}

TEST(MapCommand, names_what_is_wrong_with_a_kernel) {
  EXPECT_NE(map({"--accelerator", "ws-128", "--kernel", "gem M=4 N=4 K=4"}).err.find("did you mean 'gemm'"),
            std::string::npos);
  EXPECT_NE(map({"--accelerator", "ws-128", "--kernel", "gemm M=4 N=4"}).err.find("a gemm needs 'K'"),
            std::string::npos);
  EXPECT_NE(map({"--accelerator", "ws-128", "--kernel", "gemm M=0 N=4 K=4"}).err.find("'0' is no size for M"),
            std::string::npos);
  EXPECT_NE(map({"--accelerator", "ws-128", "--kernel", "gemm M=4 N=4 K=4 in=int7"}).err.find("int7"),
            std::string::npos);
  EXPECT_EQ(map({"--accelerator", "ws-128", "--kernel", "gemm M=1099511627776 N=1099511627776 K=4"}).code, kCannotSay);
}

TEST(MapCommand, proves_a_convolution_through_all_four_levels) {
  const Ran o = map({"--accelerator", "ws-128", "--kernel", "conv K=16 C=16 P=6 Q=6 R=3 S=3", "--format", "json"});
  ASSERT_EQ(o.code, kYes) << o.err;
  const auto document = nlohmann::json::parse(o.out);
  EXPECT_NEAR(document["certificate"]["gap"].get<double>(), 0, 1e-9);
  EXPECT_EQ(document["certificate"]["certified_on"], "exact counts");
}

TEST(MapCommand, states_the_gap_a_budget_leaves) {
  const Ran o = map(
      {"--accelerator", "ws-128", "--kernel", "conv K=16 C=16 P=6 Q=6 R=3 S=3", "--budget", "3", "--format", "json"});
  ASSERT_EQ(o.code, kYes) << o.err;
  const auto document = nlohmann::json::parse(o.out);
  EXPECT_LE(document["certificate"]["lower_bound"].get<double>(), document["certificate"]["best"].get<double>());
  EXPECT_LE(document["certificate"]["evaluated"].get<int>(), 3);
}

}  // namespace
}  // namespace plumbline::cli
