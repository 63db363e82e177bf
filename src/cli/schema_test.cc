// Every JSON document that a command prints or packs, held against its schema.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "cli/command.h"
#include "report/schema_testing.h"

namespace plumbline::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kScenarios = "catalog/scenarios/";

struct Printed {
  std::string command;
  std::string text;
};

/// Runs a command line in the source folder; codes 0 and 1 are answers.
Printed run(const std::vector<std::string>& words) {
  fs::current_path(PLUMBLINE_SOURCE_DIR);
  setenv("PLUMBLINE_CATALOG", "catalog", 1);
  std::ostringstream out;
  std::ostringstream err;
  Printed printed;
  for (const auto& word : words) printed.command += fmt::format("{} ", word);
  for (const auto& command : commands()) {
    if (command.name != words.front()) continue;
    EXPECT_NE(command.run({words.begin() + 1, words.end()}, out, err), kCannotSay) << printed.command << err.str();
  }
  printed.text = out.str();
  return printed;
}

/// Checks a document and notes its kind.
void check(const std::string& what, const std::string& text, std::set<std::string>& kinds) {
  const json document = json::parse(text, nullptr, false);
  ASSERT_TRUE(document.is_object()) << what;
  ASSERT_TRUE(document.contains("kind")) << what;
  EXPECT_EQ(document.value("plumbline", 0), 1) << what;
  const std::string kind = document["kind"];
  kinds.insert(kind);
  EXPECT_EQ(report::violations(report::schema_of(kind), document), "") << what;
}

std::vector<std::vector<std::string>> printing_commands() {
  const std::string onnx = kScenarios + "onnx-encoder/baseline.yaml";
  const std::string burst = kScenarios + "burst/baseline.yaml";
  std::vector<std::vector<std::string>> out;
  for (const char* verb : {"run", "ingest", "lower", "schedule", "execute", "serve", "validate"}) {
    out.push_back({verb, onnx});
    out.push_back({verb, burst});
  }
  for (const char* scenario : {"onnx-encoder/candidate.yaml", "dataflow-attention/candidate.yaml"})
    out.push_back({"schedule", kScenarios + scenario});
  out.push_back({"schedule", onnx, "--explain", "/layers.0/narrow/MatMul"});
  out.push_back({"decide", onnx, kScenarios + "onnx-encoder/candidate.yaml", "--pairs", "8"});
  out.push_back({"reuse", onnx, "--pairs", "4"});
  out.push_back({"reuse", burst, kScenarios + "burst/candidate.yaml", "--pairs", "4", "--no-stale"});
  out.push_back({"sensitivity", burst});
  out.push_back({"sensitivity", onnx, "--batch", "1,2,3", "--sequence", "64", "--metric", "service_time"});
  out.push_back({"map", "--accelerator", "ws-128", "--kernel", "gemm M=64 N=64 K=64 in=int8 acc=int32"});
  out.push_back({"round", "normal:8x64", "--to", "e4m3fn", "--saturation", "on"});
  out.push_back({"round", "normal:8x64", "--to", "mx:e2m1"});
  out.push_back({"matmul", "normal:8x64", "normal:64x8", "--input", "binary16", "--saturation", "off", "--accumulate",
                 "fp16-fused", "fp32-fused"});
  return out;
}

TEST(Schema, EveryPrintedOrPackedDocumentObeysItsSchemaAndEverySchemaHasOne) {
  std::set<std::string> kinds;
  for (auto words : printing_commands()) {
    words.insert(words.end(), {"--format", "json"});
    const Printed printed = run(words);
    check(printed.command, printed.text, kinds);
  }
  const std::string pack = testing::TempDir() + "plumbline_schema_pack";
  fs::remove_all(pack);
  run({"decide", kScenarios + "burst/baseline.yaml", kScenarios + "burst/candidate.yaml", "--pairs", "8", "-o", pack});
  for (const auto& entry : fs::directory_iterator(pack)) {
    const std::string name = entry.path().filename();
    // The trace is Perfetto's own format.
    if (!name.ends_with(".json") || name == "trace.perfetto.json") continue;
    std::ifstream file(entry.path());
    std::ostringstream text;
    text << file.rdbuf();
    check(name, text.str(), kinds);
  }
  fs::remove_all(pack);
  for (const auto& entry : fs::directory_iterator("docs/schema")) {
    const std::string file = entry.path().filename();
    ASSERT_TRUE(file.ends_with(".schema.json")) << file;
    const std::string kind = file.substr(0, file.find('.'));
    EXPECT_TRUE(kinds.contains(kind)) << "no command makes a document of the kind '" << kind << "'";
  }
}

}  // namespace
}  // namespace plumbline::cli
