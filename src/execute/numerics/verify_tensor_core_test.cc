#include "execute/numerics/verify_tensor_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "execute/numerics/round_kernel.h"
#include "execute/numerics/tensor_core.h"

namespace plumbline::numerics {
namespace {

nlohmann::json oracle() {
  std::ifstream file(std::string(PLUMBLINE_SOURCE_DIR) + "/test/oracle/tc_vectors.json");
  return nlohmann::json::parse(file);
}

TEST(TensorCoreVectors, AllVectorsPassOnEveryInstructionSet) {
  const nlohmann::json document = oracle();
  ASSERT_TRUE(is_tensor_core_vectors(document));
  std::size_t vectors = 0;
  for (const auto& set : document["sets"]) vectors += set["vectors"].size();
  for (const std::int64_t target : kernel_targets()) {
    limit_kernels_to(target);
    const TensorCoreVerdict verdict = verify_tensor_core(document);
    EXPECT_EQ(verdict.passed, static_cast<std::int64_t>(vectors)) << kernel_target_name(target);
    EXPECT_TRUE(verdict.lines.empty()) << verdict.lines[0];
  }
  limit_kernels_to(0);
}

TEST(TensorCoreVectors, TheSetsNumbersAreThoseOfOurRows) {
  const std::map<std::string, std::string> names = {{"fp16", "binary16"}, {"bf16", "bfloat16"}, {"tf32", "tf32"},
                                                    {"fp32", "binary32"}, {"E4M3", "e4m3fn"},   {"E5M2", "e5m2"}};
  const nlohmann::json document = oracle();
  for (const auto& set : document["sets"]) {
    auto device = set["model"].get<std::string>();
    std::transform(device.begin(), device.end(), device.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto row = find_tensor_core(device, names.at(set["in"]), names.at(set["out"]));
    ASSERT_TRUE(row.ok()) << set["model"];
    EXPECT_EQ(row->block, set["block"]);
    EXPECT_EQ(row->fraction_bits, set["fraction_bits"]);
    EXPECT_EQ(row->result_bits, set["result_bits"]);
    EXPECT_EQ(to_string(row->final_rounding), set["result_rounding"].get<std::string>());
  }
}

TEST(TensorCoreVectors, AnExpectationThatIsNotThereFailsByName) {
  const nlohmann::json original = oracle();
  nlohmann::json set = original["sets"][0];
  set["vectors"] = {original["sets"][0]["vectors"][0]};
  const auto line = [](const nlohmann::json& changed) {
    const TensorCoreVerdict verdict = verify_tensor_core({{"sets", {changed}}});
    EXPECT_EQ(verdict.failed, 1);
    EXPECT_EQ(verdict.passed, 0);
    return verdict.lines.empty() ? std::string() : verdict.lines.front();
  };
  for (const char* key : {"a", "b", "c", "d"}) {
    for (const nlohmann::json& value : {nlohmann::json(), nlohmann::json(1.5), nlohmann::json::array()}) {
      nlohmann::json changed = set;
      changed["vectors"][0][key] = value;
      EXPECT_NE(line(changed).find(std::string("'") + key + "'"), std::string::npos) << line(changed);
    }
  }
  nlohmann::json empty = set;
  empty["vectors"] = nlohmann::json::array();
  EXPECT_NE(line(empty).find("vectors"), std::string::npos);
}

TEST(TensorCoreVectors, WrongOrUnreadableCasesFailWithTheirLine) {
  nlohmann::json document = oracle();
  document["sets"][0]["vectors"][3]["d"] = "3f800001";
  document["sets"][0]["vectors"][4]["a"][0] = "xyz";
  document["sets"][1]["result_rounding"] = "up";
  document["sets"][2]["in"] = "fp13";
  document["sets"][3]["vectors"] = 7;
  document["sets"][4] = 1;
  const std::int64_t all = verify_tensor_core(oracle()).passed;
  const TensorCoreVerdict verdict = verify_tensor_core(document);
  EXPECT_EQ(verdict.failed, 6);
  EXPECT_EQ(verdict.passed, all - 2 - 4 * 18);
  EXPECT_EQ(verdict.lines.size(), 6U);
  EXPECT_NE(verdict.lines[0].find("vector 3"), std::string::npos) << verdict.lines[0];
}

TEST(TensorCoreVectors, OtherDocumentsAreNotTaken) {
  EXPECT_FALSE(is_tensor_core_vectors(nlohmann::json::array()));
  EXPECT_FALSE(is_tensor_core_vectors({{"sets", nlohmann::json::array()}}));
  EXPECT_EQ(verify_tensor_core(nlohmann::json::object()).failed, 1);
}

}  // namespace
}  // namespace plumbline::numerics
