#include "report/pack.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/sha256.h"
#include "report/artefacts.h"
#include "report/testing.h"

namespace plumbline::report {
namespace {

const std::map<std::string, std::string>& burst_files() {
  static const auto files = pack_files(measured_burst().study, measured_burst().decision, measured_burst().manifest, 2);
  return files;
}

nlohmann::json parsed(const std::string& name) { return nlohmann::json::parse(burst_files().at(name)); }

TEST(Pack, HoldsEveryArtefactOfBothArms) {
  for (const char* name : {"manifest.json", "decision.json", "decision.md", "report.html", "trace.perfetto.json",
                           "why.json", "evidence.json", "coalitions.json", "reliefs.json", "fixes.json"}) {
    ASSERT_TRUE(burst_files().contains(name)) << name;
    EXPECT_FALSE(burst_files().at(name).empty()) << name;
  }
  for (const std::string arm : {"baseline", "candidate"}) {
    for (const char* suffix : {".resolved.yaml", ".scenario.json", ".kernels.json", ".schedule.json", ".costs.json",
                               ".run.json", ".evidence.json"}) {
      EXPECT_TRUE(burst_files().contains(arm + suffix)) << arm << suffix;
    }
  }
}

TEST(Pack, BytesDoNotDependOnThreads) {
  EXPECT_EQ(pack_files(measured_burst().study, measured_burst().decision, measured_burst().manifest, 1), burst_files());
}

TEST(Pack, ManifestNamesEveryFileByItsHash) {
  const auto manifest = parsed("manifest.json");
  std::size_t listed = 0;
  for (const auto& file : manifest["files"]) {
    ASSERT_TRUE(burst_files().contains(file["name"]));
    EXPECT_EQ(file["sha256"], sha256(burst_files().at(file["name"])));
    EXPECT_EQ(file["bytes"], burst_files().at(file["name"]).size());
    ++listed;
  }
  EXPECT_EQ(listed + 1, burst_files().size());  // all but itself
}

TEST(Pack, RanIsTrueExactlyForCommandsOfTheManifest) {
  std::map<std::string, std::string> hashes;
  const auto manifest = parsed("manifest.json");
  for (const auto& run : manifest["commands"]) hashes[run["command"]] = run["sha256"];
  EXPECT_FALSE(hashes.empty());
  const auto decision = parsed("decision.json");
  for (const auto& row : decision["evidence_matrix"]) {
    EXPECT_EQ(row["ran"].get<bool>(), hashes.contains(row["next_action"])) << row["next_action"];
  }
}

TEST(Pack, CommandsStoreWhatTheirVerbsPrint) {
  const auto& m = measured_burst();
  EXPECT_EQ(burst_files().at("candidate.schedule.json"), schedule_json(m.study.candidate.prepared));
  EXPECT_EQ(burst_files().at("candidate.evidence.json"), evidence_json(m.study.table.candidate));
  const auto commands = pack_commands("b.yaml", "c.yaml", 0);
  const auto has = [&](const std::string& command, const std::string& output) {
    return std::any_of(commands.begin(), commands.end(),
                       [&](const auto& c) { return c.command == command && c.output == output; });
  };
  EXPECT_TRUE(has("plumbline schedule c.yaml --format json", "candidate.schedule.json"));
  EXPECT_TRUE(has("plumbline validate b.yaml --format json", "baseline.evidence.json"));
  // Other pairs are other replications, so the command must say so.
  const auto more = pack_commands("b.yaml", "c.yaml", 24);
  EXPECT_TRUE(std::any_of(more.begin(), more.end(),
                          [](const auto& c) { return c.command == "plumbline run c.yaml --format json --pairs 24"; }));
}

TEST(Pack, ResolvedScenariosHashToTheirArms) {
  const auto& table = measured_burst().study.table;
  const std::pair<const char*, const std::string&> arms[] = {{"baseline.resolved.yaml", table.baseline.hash},
                                                             {"candidate.resolved.yaml", table.candidate.hash}};
  for (const auto& [name, hash] : arms) {
    const auto value = ingest::parse_yaml(std::make_shared<const Source>(Source{name, burst_files().at(name)}));
    ASSERT_TRUE(value.ok()) << render(value.errors());
    EXPECT_EQ(sha256(ingest::canonical_text(*value)), hash);
  }
}

TEST(Pack, NothingTellsWhereItWasMade) {
  for (const auto& [name, bytes] : burst_files()) {
    EXPECT_EQ(bytes.find(PLUMBLINE_SOURCE_DIR), std::string::npos) << name;
  }
}

TEST(Pack, StoresAttachmentsAndHashesThem) {
  Manifest manifest = measured_burst().manifest;
  manifest.attachments["inputs/model.onnx"] = std::string("\x08\x00\xff", 3);
  const auto files = pack_files(measured_burst().study, measured_burst().decision, manifest, 2);
  EXPECT_EQ(files.at("inputs/model.onnx").size(), 3U);
  EXPECT_NE(files.at("manifest.json").find("inputs/model.onnx"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::report
