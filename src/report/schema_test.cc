#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/artefacts.h"
#include "report/schema_testing.h"
#include "report/testing.h"

namespace plumbline::report {
namespace {

using nlohmann::json;

std::map<std::string, std::string> documents() {
  const auto& m = measured_burst();
  auto files = pack_files(m.study, m.decision, m.manifest, 2);
  std::erase_if(files,
                [](const auto& file) { return !file.first.ends_with(".json") || file.first.starts_with("trace"); });
  return files;
}

TEST(Schema, EveryDocumentOfThePackObeysItsSchema) {
  for (const auto& [name, bytes] : documents()) {
    const json document = json::parse(bytes);
    ASSERT_TRUE(document.contains("kind")) << name;
    EXPECT_EQ(document["plumbline"], 1) << name;
    EXPECT_EQ(violations(schema_of(document["kind"]), document), "") << name;
  }
}

TEST(Schema, RefusesWhatItDoesNotDescribe) {
  json decision = json::parse(documents().at("decision.json"));
  const json schema = schema_of("decision");
  decision["surprise"] = 1;
  EXPECT_NE(violations(schema, decision), "");
  decision.erase("surprise");
  EXPECT_EQ(violations(schema, decision), "");
  decision.erase("verdict");
  EXPECT_NE(violations(schema, decision), "");
}

// Walks a document: a null under a key needs a reason beside it.
void expect_reasons(const json& node, const std::string& where) {
  if (node.is_array()) {
    for (std::size_t i = 0; i < node.size(); ++i) expect_reasons(node[i], where + "/" + std::to_string(i));
  }
  if (!node.is_object()) return;
  for (const auto& [key, value] : node.items()) {
    // Patches and documents of users say null where they mean removal.
    if (key == "patch" || key == "fallback" || key == "document" || key == "rollback") continue;
    if (value.is_null()) {
      EXPECT_TRUE(node.contains(key + "_why") || node.contains("why")) << where << "/" << key;
    }
    expect_reasons(value, where + "/" + key);
  }
}

TEST(Schema, EveryNullHasItsReason) {
  for (const auto& [name, bytes] : documents()) expect_reasons(json::parse(bytes), name);
}

TEST(Schema, TheDecisionCarriesTheKeysOfItsContract) {
  const json d = json::parse(documents().at("decision.json"));
  for (const char* key : {"verdict",
                          "reasons",
                          "metric",
                          "sla",
                          "quality",
                          "slices",
                          "first_failing_stage",
                          "feedback",
                          "bottleneck",
                          "mechanism",
                          "attribution",
                          "interactions",
                          "hypotheses",
                          "evidence_matrix",
                          "fix",
                          "rejected_fixes",
                          "rollout_guardrails",
                          "guards",
                          "open_items",
                          "reproduce"}) {
    EXPECT_TRUE(d.contains(key)) << key;
  }
  double sum = 0;
  for (const auto& share : d["attribution"]) sum += share["value"].get<double>();
  EXPECT_NEAR(sum, d["metric"]["change"].get<double>(), 1e-6 * std::abs(d["metric"]["baseline"].get<double>()));
}

}  // namespace
}  // namespace plumbline::report
