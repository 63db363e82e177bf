#include "study/network_study.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace plumbline::study {
namespace {

const std::vector<NetworkCase>& cases() {
  static const std::vector<NetworkCase> kCases = [] {
    auto made = study_networks();
    PL_CHECK(made.ok());
    return std::move(*made);
  }();
  return kCases;
}

const NetworkPoint& point(std::size_t which, const std::string& inward, const std::string& outward, std::int64_t side) {
  for (const NetworkPoint& each : cases()[which].points) {
    if (each.inward == inward && each.outward == outward && each.side == side) return each;
  }
  ADD_FAILURE() << inward << " " << side;
  return cases()[which].points.front();
}

TEST(NetworkStudy, TheDocumentHoldsTheComputedTables) {
  std::ifstream file(std::string(PLUMBLINE_SOURCE_DIR) + "/docs/networks.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string begin = "<!-- tools/update_network_study: begin -->\n";
  const auto from = text.find(begin);
  const auto until = text.find("<!-- tools/update_network_study: end -->");
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(until, std::string::npos);
  EXPECT_EQ(text.substr(from + begin.size(), until - from - begin.size()), network_markdown(cases()))
      << "run tools/update_network_study";
}

// GEMM 512 x 768 x 768 on S x S: (768 / S)^2 passes of 512 steps. Every step one word enters each row and one sum
// leaves each column; without copies or additions on the way S times as many.
TEST(NetworkStudy, TimesAreThoseOfTheClosedForms) {
  for (const std::int64_t side : {16, 32, 64, 128, 256}) {
    const std::int64_t steps = 768 / side * (768 / side) * 512;
    EXPECT_EQ(point(0, "systolic", "systolic", side).activations, steps);
    EXPECT_EQ(point(0, "systolic", "systolic", side).sums, steps);
    EXPECT_EQ(point(0, "systolic", "systolic", side).weights, 768 / side * 768);
    EXPECT_EQ(point(0, "mesh_xy_edge", "mesh_xy_edge", side).sums, steps * side);
    EXPECT_EQ(point(0, "bus", "bus", side).activations, steps * side / 64);
    EXPECT_EQ(point(0, "bus", "bus", side).sums, steps * side * side * 4 / 64);
    EXPECT_EQ(point(0, "reduction_tree", "reduction_tree", side).activations, steps * side * side / 64);
    EXPECT_EQ(point(0, "multicast_tree", "reduction_tree", side).sums, steps * side * 4 / 64);
  }
}

TEST(NetworkStudy, ASystolicArrayNeverWaitsForItsWires) {
  for (std::size_t which = 0; which < cases().size(); ++which) {
    for (const std::int64_t side : {16, 32, 64, 128, 256}) {
      EXPECT_EQ(point(which, "systolic", "systolic", side).limit, "compute");
    }
  }
}

}  // namespace
}  // namespace plumbline::study
