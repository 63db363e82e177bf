#include "execute/numerics/verify_tensor_core.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "execute/numerics/round_kernel.h"

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

TEST(TensorCoreVectors, WrongOrUnreadableCasesFailWithTheirLine) {
  nlohmann::json document = oracle();
  document["sets"][0]["vectors"][3]["d"] = "3f800001";
  document["sets"][0]["vectors"][4]["a"][0] = "xyz";
  document["sets"][1]["fraction_bits"] = 22;  // not our row's
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
