#include "execute/numerics/accumulate.h"

#include <gtest/gtest.h>

namespace plumbline::numerics {
namespace {

TEST(Accumulate, EveryNamedRowIsValidForTheOperandsItIsMeantFor) {
  for (const std::string& name : accumulation_names()) {
    const bool tpu = name.starts_with("tpu");
    const Format& input = builtin_format(tpu ? "bfloat16" : name == "h100-promote-128" ? "e4m3fn" : "binary16");
    const auto row = find_accumulation(name, input);
    ASSERT_TRUE(row.ok()) << name << render(row.errors());
    EXPECT_TRUE(check_accumulation(*row, 1000, input, input).ok()) << name;
    EXPECT_FALSE(claim_of(*row, 1000, false).empty());
    const auto lines = describe(*row);
    ASSERT_FALSE(lines.empty());
    // The overflow policy is always named.
    EXPECT_TRUE(lines[0].find("saturation off") != std::string::npos ||
                lines[0].find("overflow to infinity") != std::string::npos);
  }
}

TEST(Accumulate, AssumedModelsSaySo) {
  const auto tpu = find_accumulation("tpu-128", builtin_format("bfloat16"));
  EXPECT_EQ(claim_of(*tpu, 1000, false).substr(0, 7), "assumed");
  EXPECT_EQ(find_accumulation("tpu-128", builtin_format("binary16")).errors()[0].kind, "bad-value");
  // Four blocks of 32 are chained between promotions, which no published trace covers.
  const auto promoted = find_accumulation("h100-promote-128", builtin_format("e4m3fn"));
  EXPECT_EQ(claim_of(*promoted, 4096, false).substr(0, 7), "assumed");
  EXPECT_EQ(claim_of(*promoted, 32, false), "verified against published hardware traces");
  EXPECT_EQ(find_accumulation("h100", builtin_format("e4m3fn"), "binary16").errors()[0].kind, "unsupported");
  EXPECT_EQ(find_accumulation("fp32-fuse", builtin_format("e4m3fn")).errors()[0].help,
            "did you mean 'fp32-fused' or 'fp16-fused'?");
}

TEST(Accumulate, CutsStartWhereTheOuterPieceBegins) {
  Blocking blocking;
  blocking.every = 128;
  EXPECT_EQ(cuts(blocking, 300, 700), (std::vector<std::int64_t>{428, 556, 684}));
  EXPECT_TRUE(cuts(blocking, 0, 128).empty());
  blocking.every = 0;
  blocking.splits = {10, 300, 400, 700};
  EXPECT_EQ(cuts(blocking, 300, 700), (std::vector<std::int64_t>{400}));
}

TEST(Accumulate, TreesSplitAtTheLargestPowerOfTwoBelow) {
  EXPECT_EQ(tree_split(2), 1);
  EXPECT_EQ(tree_split(3), 2);
  EXPECT_EQ(tree_split(4), 2);
  EXPECT_EQ(tree_split(5), 4);
  EXPECT_EQ(tree_split(1024), 512);
  EXPECT_EQ(tree_split(1025), 1024);
}

TEST(Accumulate, TheResultIsInTheOutermostRegister) {
  auto row = find_accumulation("h100-promote-128", builtin_format("e4m3fn"));
  EXPECT_EQ(result_format(*row).name, "binary32");
  row->blockings.push_back({.splits = {64}, .every = 0, .into = {.format = builtin_format("bfloat16")}});
  EXPECT_EQ(result_format(*row).name, "bfloat16");
}

}  // namespace
}  // namespace plumbline::numerics
