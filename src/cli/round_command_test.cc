#include "cli/round_command.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "cli/command_testing.h"
#include "execute/numerics/npy.h"

namespace plumbline::cli {
namespace {

Ran run(const std::vector<std::string>& arguments) { return run_command(round_command, arguments); }
nlohmann::json run_json(std::vector<std::string> arguments) {
  return run_command_json(round_command, std::move(arguments));
}

TEST(RoundCommand, CountsAndMeasuresARamp) {
  const auto json = run_json({"ramp:20", "--to", "e2m1", "--saturation", "on"});
  EXPECT_EQ(json["kind"], "round");
  EXPECT_EQ(json["counters"]["elements"], 20);
  // 0 to 6 hold 0 1 2 3 4 4 6; 7 and up exceed 6, the tie of 5 goes to 4.
  EXPECT_EQ(json["counters"]["overflow"], 13);
  EXPECT_EQ(json["counters"]["saturated"], 13);
  EXPECT_EQ(json["counters"]["inexact"], 14);
  EXPECT_EQ(json["error"]["largest"], 13);
  EXPECT_EQ(json["codes"]["used"], 6);
  EXPECT_EQ(json["policy"]["saturation"], "on");
}

TEST(RoundCommand, SaturationMustBeSaid) {
  const Ran ran = run({"ramp:4", "--to", "e4m3fn"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--saturation on"), std::string::npos);
  EXPECT_EQ(run({"ramp:32", "--to", "mx:e4m3fn", "--saturation", "off"}).code, 2);
}

TEST(RoundCommand, EveryKindOfTargetPrintsItsPolicyAndAHistogram) {
  for (const std::vector<std::string>& target :
       std::vector<std::vector<std::string>>{{"e4m3fn", "--saturation", "off"},
                                             {"tf32", "--saturation", "off"},
                                             {"mx:e2m1", "--scale", "rceil"},
                                             {"mx:int8"},
                                             {"nvfp4", "--rounding", "sr"},
                                             {"int4_full", "--share", "group", "--group", "16"},
                                             {"uint8", "--affine", "--share", "channel"}}) {
    std::vector<std::string> arguments = {"outliers:8x64", "--to"};
    arguments.insert(arguments.end(), target.begin(), target.end());
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("saturation"), std::string::npos);
    EXPECT_NE(ran.out.find("inputs by binade"), std::string::npos);
    EXPECT_NE(ran.out.find("█"), std::string::npos);
  }
}

TEST(RoundCommand, SameBytesAtAnyThreadCount) {
  const std::vector<std::string> base = {
      "normal:300x700", "--to", "e5m2",     "--saturation", "off",      "--rounding", "sr",
      "--channels",     "0",    "--format", "json",         "--threads"};
  auto one = base, many = base;
  one.emplace_back("1");
  many.emplace_back("4");
  EXPECT_EQ(run(one).out, run(many).out);
}

TEST(RoundCommand, NanWithoutAPlaceToGoIsAnAnswerOfNo) {
  const std::string path = temporary("plumbline_round_nan.npy");
  ASSERT_TRUE(numerics::save_npy(path, numerics::make_npy(std::vector<float>{1, NAN}, {2})).ok());
  const Ran ran = run({path, "--to", "e2m1", "--saturation", "on"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("1 elements have no meaning"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(RoundCommand, WritesValuesAndCodes) {
  const std::string values = temporary("plumbline_round_values.npy"), codes = temporary("plumbline_round_codes.npy");
  const Ran ran = run({"ramp:2x20", "--to", "mx:e2m1", "--pad", "--values", values, "--codes", codes});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto written = numerics::load_npy(codes);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->shape, (std::vector<std::size_t>{2, 20}));
  const auto floats = numerics::to_float32(numerics::load_npy(values).value());
  EXPECT_EQ(floats.values[19], 16.0F);  // block maximum 19: scale 4; 4.75 lies nearer to 4 than to 6
  std::filesystem::remove(values);
  std::filesystem::remove(codes);
}

TEST(RoundCommand, ReadsUserFormats) {
  const std::string path = temporary("plumbline_formats.yaml");
  std::ofstream(path)
      << "plumbline: 1\nformats:\n  - {name: e3m4, exponent: 3, fraction: 4, infinity: true, nan: ieee}\n";
  EXPECT_EQ(run_json({"ramp:16", "--to", "e3m4", "--saturation", "off", "--formats", path})["counters"]["overflow"], 0);
  std::ofstream(path)
      << "plumbline: 1\nformats:\n  - {name: e9m4, exponent: 9, fraction: 4, infinity: true, nan: ieee}\n"
      << "  - {name: e4m3fn, exponent: 4, fraction: 3, infinity: false, nan: all_ones}\n"
      << "  - {name: x, exponent: 4, fraction: 3, infinity: false, nan: al_ones}\n";
  const Ran ran = run({"ramp:16", "--to", "e9m4", "--saturation", "off", "--formats", path});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("9 exponent bits"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("duplicate-id"), std::string::npos);
  EXPECT_NE(ran.err.find(":5:"), std::string::npos);
  std::ofstream(path) << "plumbline: 1\nformats:\n"
                      << "  - {name: mine, exponent: 4, fraction: 3, infinity: false, nan: all_ones}\n"
                      << "  - {name: mine, exponent: 5, fraction: 2, infinity: false, nan: all_ones}\n";
  const Ran twice = run({"ramp:16", "--to", "mine", "--saturation", "off", "--formats", path});
  EXPECT_EQ(twice.code, 2);
  EXPECT_NE(twice.err.find(":4:12: error: two formats are named 'mine' [duplicate-id]"), std::string::npos)
      << twice.err;
  EXPECT_NE(twice.err.find("the first is in line 3"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(RoundCommand, TheCataloguesFormatsAreReadable) {
  const std::string path = std::string(PLUMBLINE_SOURCE_DIR) + "/catalog/formats/more.yaml";
  for (const char* name : {"e3m4", "e4m3", "e4m3b11fnuz", "e3m0", "e6m9"}) {
    EXPECT_EQ(run({"normal:1000", "--to", name, "--saturation", "off", "--formats", path}).code, 0) << name;
  }
}

TEST(RoundCommand, BadInputIsExplained) {
  const auto error_of = [](const std::vector<std::string>& arguments) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2);
    return ran.err;
  };
  EXPECT_NE(error_of({"ramp:40", "--to", "e2m1", "--saturation", "on", "--values", "x.npy", "--codes", "./x.npy"})
                .find("both write './x.npy'"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists("x.npy"));
  EXPECT_NE(error_of({"ramp:40", "--to", "mx:e2m1"}).find("do not divide"), std::string::npos);
  EXPECT_NE(error_of({"ramp:40", "--to", "int8_full", "--share", "group"}).find("0 elements"), std::string::npos);
  EXPECT_NE(error_of({"ramp:40", "--to", "e4m3", "--saturation", "on"}).find("e4m3fn, e4m3fnuz"), std::string::npos);
  EXPECT_NE(error_of({"ramp:40", "--to", "e4m3fn", "--saturation", "on", "--affine"}).find("--affine"),
            std::string::npos);
  EXPECT_NE(error_of({"ramp:40", "--to", "e4m3fn", "--saturation", "on", "--rounding", "up"}).find("'up'"),
            std::string::npos);
  EXPECT_NE(error_of({"ramp:4", "--to", "e4m3fn", "--saturation", "on", "--channels", "1"}).find("dimension 1"),
            std::string::npos);
  EXPECT_NE(error_of({"ramp:4"}).find("--to"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::cli
