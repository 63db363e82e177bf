#include "ingest/library.h"

#include <gtest/gtest.h>

#include "ingest/scenario.h"

namespace plumbline::ingest {
namespace {

const std::string kCatalog = std::string(PLUMBLINE_SOURCE_DIR) + "/catalog";

Value yaml(const std::string& text) {
  auto parsed = parse_yaml(std::make_shared<const Source>(Source{"test.yaml", text}));
  EXPECT_TRUE(parsed.ok()) << render(parsed.errors());
  return std::move(parsed).value();
}

/// The actions of the energy table once `patch` is applied to `document` and every name is resolved.
Value actions(const std::string& document, const std::string& patch) {
  Library library(kCatalog);
  const auto resolved = library.resolve(apply_changes(yaml(document), {}, {}, {yaml(patch)}));
  EXPECT_TRUE(resolved.ok()) << render(resolved.errors());
  const Value* found = resolved->at_path("accelerator.energy.actions");
  EXPECT_NE(found, nullptr);
  return found == nullptr ? Value{} : *found;
}

// However the table came in, a removal inside it removes that entry and no other.
TEST(EnergyPatches, ARemovalInANamedTableRemovesItsEntryAlone) {
  const std::string names = "{accelerator: ws-256, precision: int8-exact}";
  const std::string based = "{accelerator: {base: ws-256, energy: cmos-45nm}, precision: int8-exact}";
  const std::string twice = "{accelerator: {base: ws-256, energy: {base: cmos-45nm}}, precision: int8-exact}";
  const std::string removal = "{accelerator: {energy: {actions: {hbm2-write: null}}}}";
  const std::string over_base = "{accelerator: {energy: {base: cmos-45nm, actions: {hbm2-write: !delete}}}}";
  for (const auto& document : {names, based, twice}) {
    for (const auto& patch : {removal, over_base}) {
      const Value table = actions(document, patch);
      EXPECT_EQ(table.find("hbm2-write"), nullptr) << document << " " << patch;
      EXPECT_NE(table.find("hbm2-read"), nullptr) << document << " " << patch;
      EXPECT_NE(table.find("int8-mac"), nullptr) << document << " " << patch;
    }
  }
}

TEST(EnergyPatches, AValueInANamedTableChangesItsEntryAlone) {
  const Value table = actions("{accelerator: ws-256, precision: int8-exact}",
                              "{accelerator: {energy: {actions: {hbm2-read: {energy: 5 pJ/bit}}}}}");
  EXPECT_EQ(table.at_path("hbm2-read.energy")->text, "5 pJ/bit");
  EXPECT_EQ(table.at_path("hbm2-write.energy")->text, "3.9 pJ/bit");
}

TEST(Catalogue, AMissingFolderIsNamedWithHowToSetIt) {
  Library library("/nowhere/catalog");
  const auto resolved = library.resolve(yaml("{accelerator: ws-256, precision: int8-exact}"));
  ASSERT_FALSE(resolved.ok());
  const std::string said = render(resolved.errors());
  EXPECT_NE(said.find("there is no folder '/nowhere/catalog/accelerators'"), std::string::npos) << said;
  EXPECT_NE(said.find("PLUMBLINE_CATALOG"), std::string::npos) << said;
}

TEST(Catalogue, AnUnknownEntryIsCalledWhatItIs) {
  Library library(kCatalog);
  const auto said = [&](const std::string& kind) {
    const auto found = library.entry(kind, "nothing", {});
    return found.ok() ? std::string() : found.errors().front().message;
  };
  EXPECT_EQ(said("fixes"), "no set of fixes 'nothing' in the catalogue");
  EXPECT_EQ(said("policies"), "no precision policy 'nothing' in the catalogue");
  EXPECT_EQ(said("energy"), "no energy table 'nothing' in the catalogue");
  EXPECT_EQ(said("gates"), "no gate 'nothing' in the catalogue");
}

TEST(Catalogue, DigestsAreOfTheBytesThatWereRead) {
  Library library(kCatalog);
  EXPECT_EQ(library.digest("catalog/gates/default.yaml"), "");
  ASSERT_TRUE(library.entry("gates", "default", {}).ok());
  const auto inputs = library.inputs();
  ASSERT_EQ(inputs.size(), 1);
  EXPECT_EQ(library.digest("catalog/gates/default.yaml"), inputs.front().sha256);
  EXPECT_EQ(inputs.front().sha256.size(), 64);
}

}  // namespace
}  // namespace plumbline::ingest
