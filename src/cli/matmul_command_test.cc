#include "cli/matmul_command.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cli/command_testing.h"
#include "execute/numerics/npy.h"

namespace plumbline::cli {
namespace {

Ran run(const std::vector<std::string>& arguments) { return run_command(matmul_command, arguments); }
nlohmann::json run_json(std::vector<std::string> arguments) {
  return run_command_json(matmul_command, std::move(arguments));
}

std::string write_matrix(const char* name, std::vector<float> values, std::size_t rows, std::size_t columns) {
  std::string path = temporary(name);
  EXPECT_TRUE(numerics::save_npy(path, numerics::make_npy(values, {rows, columns})).ok());
  return path;
}

TEST(MatmulCommand, NamesTheAccumulatorThatLoses) {
  // 4096 ones: binary16 stops at 2048, 14 bits at 2^14 are still exact, pairwise loses nothing.
  const std::string ones = write_matrix("matmul_ones.npy", std::vector<float>(4096, 1.0F), 1, 4096);
  const std::string column = write_matrix("matmul_column.npy", std::vector<float>(4096, 1.0F), 4096, 1);
  const auto json = run_json({ones, column, "--accumulate", "fp16-rounded,fp16-pairwise,fp32-fused", "--observe", "1"});
  ASSERT_EQ(json["runs"].size(), 3U);
  EXPECT_EQ(json["runs"][0]["registers"][0]["absorbed"], 2048);
  EXPECT_EQ(json["runs"][0]["accumulation_error"]["largest"], 2048);
  EXPECT_EQ(json["runs"][1]["accumulation_error"]["largest"], 0);
  EXPECT_EQ(json["runs"][2]["accumulation_error"]["signal_to_noise_db"], nullptr);
  const Ran text = run({ones, column, "--accumulate", "fp16-rounded,fp16-pairwise"});
  EXPECT_NE(text.out.find("saturation off"), std::string::npos);
  EXPECT_NE(text.out.find("by binade"), std::string::npos);
  EXPECT_NE(text.out.find("█"), std::string::npos);
}

TEST(MatmulCommand, GivesTheSameBytesForTheSameSeedAtAnyThreadCount) {
  const std::vector<std::string> base = {"outliers:30x200", "normal:200x40", "--input", "e4m3fn", "--saturation", "on",
                                         "--accumulate",    "h100,b200",     "--seed",  "7",      "--threads"};
  auto one = base;
  one.emplace_back("1");
  auto three = base;
  three.emplace_back("3");
  const Ran first = run(one);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, run(three).out);
}

TEST(MatmulCommand, LabelsWhatIsAssumedAndRefusesWhatIsUnresolved) {
  const auto json = run_json({"uniform:4x64", "uniform:64x4", "--input", "e4m3fn", "--accumulate", "h100,ada"});
  EXPECT_EQ(json["runs"][0]["claim"].get<std::string>().substr(0, 7), "assumed");
  EXPECT_EQ(json["runs"][1]["claim"], "verified against published hardware traces");
  const Ran refused =
      run({"uniform:4x64", "uniform:64x4", "--input", "e4m3fn", "--accumulate", "h100", "--accumulator", "binary16"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("unresolved"), std::string::npos);
}

TEST(MatmulCommand, ExactIntegersAreCounted) {
  const auto json = run_json({"normal:8x300", "normal:300x8", "--input", "int8_symmetric"});
  EXPECT_EQ(json["runs"][0]["integers"]["wrapped"], 0);
  EXPECT_EQ(json["runs"][0]["integers"]["results"], 64);
  EXPECT_GT(json["runs"][0]["accumulation_error"]["signal_to_noise_db"].get<double>(), 120);  // one binary32 rounding
}

TEST(MatmulCommand, OwnAccumulationsTakeEveryPart) {
  const auto json = run_json({"normal:4x100",
                              "normal:100x5",
                              "--input",
                              "bf16",
                              "--reduction",
                              "sequential-rounded",
                              "--accumulator",
                              "bfloat16",
                              "--rounding",
                              "sr",
                              "--random-bits",
                              "8",
                              "--splits",
                              "30,60",
                              "--into",
                              "binary32",
                              "--join",
                              "pairwise",
                              "--output",
                              "e4m3fn",
                              "--output-saturation",
                              "on"});
  const auto& run = json["runs"][0];
  EXPECT_EQ(run["rules"].size(), 2U);
  EXPECT_EQ(run["result_format"], "binary32");
  EXPECT_EQ(run["output"]["counters"]["elements"], 20);
  const auto core = run_json({"normal:4x100", "normal:100x5", "--reduction", "tensor-core", "--block", "8",
                              "--fraction-bits", "20", "--result-bits", "24"});
  EXPECT_EQ(core["runs"][0]["claim"], "stated by the user");
}

TEST(MatmulCommand, WritesCodesOfTheResult) {
  const std::string a = write_matrix("matmul_a.npy", {1, 2}, 1, 2);
  const std::string b = write_matrix("matmul_b.npy", {3, 4}, 2, 1);
  const std::string codes = temporary("matmul_codes.npy");
  EXPECT_EQ(run({a, b, "--accumulate", "fp16-fused", "--codes", codes}).code, 0);
  const auto array = numerics::load_npy(codes);
  ASSERT_TRUE(array.ok());
  ASSERT_EQ(array->bytes.size(), 2U);
  EXPECT_EQ(std::to_integer<int>(array->bytes[1]) << 8 | std::to_integer<int>(array->bytes[0]), 0x4980);  // 11
}

TEST(MatmulCommand, WrongInputSaysWhatToDo) {
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& text) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2) << text;
    EXPECT_NE(ran.err.find(text), std::string::npos) << ran.err;
    EXPECT_TRUE(ran.out.empty());
  };
  refused({"normal:4x5", "normal:6x4"}, "[shape-mismatch]");
  const std::string none = write_matrix("matmul_none.npy", {}, 4, 0);
  const std::string nothing = write_matrix("matmul_nothing.npy", {}, 0, 4);
  refused({none, nothing}, "at least 1");
  refused({"normal:4", "normal:4x4"}, "dimensions");
  refused({"normal:4x4", "normal:4x4", "--accumulate", "h200"}, "[unknown-name]");
  refused({"normal:4x4", "normal:4x4", "--input", "e4m3"}, "[unknown-name]");
  refused({"normal:4x4", "normal:4x4", "--observe", "some"}, "[bad-number]");
  refused({"normal:4x4", "normal:4x4", "--splits", "3,2"}, "ascend");
  refused({"normal:4x4", "normal:4x4", "--output", "e4m3fn"}, "saturation");
  refused({"outliers:64x64", "normal:64x4", "--input", "e2m1"}, "--saturation on");
  refused({"normal:4x4", "normal:4x4", "--input", "int8_symmetric", "--accumulate", "h100"}, "exactly in 32 bits");
  refused({"normal:4x4", "normal:4x4", "--input", "int8_symmetric", "--accelerator", "ws-128"}, "exactly in 32 bits");
  refused({"normal:4x4", "normal:4x4", "--accumulate", "tpu-128"}, "round the operands");
  refused({"normal:4x4", "normal:4x4", "--reduction", "tensor-core"}, "--block");
  refused({"normal:20000x20000", "normal:1x1"}, "a is 20000 x 20000 and b is 1 x 1");  // at once: nothing is generated
  refused({"normal:4x4", "normal:4x4", "--c", "normal:30000x30000"}, "c is 30000 x 30000");
  refused({"normal:4x4", "normal:4x4", "--values", "one.npy", "--codes", "./one.npy"}, "both write");
  refused({"missing.npy", "normal:4x4"}, "[missing-file]");
  refused({"normal:4x4", "normal:4x4", "--acumulate", "h100"}, "--accumulate");
}

}  // namespace
}  // namespace plumbline::cli
