#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/elementary.h"
#include "core/parallel.h"
#include "core/quantity.h"
#include "core/random.h"
#include "core/result.h"
#include "core/sha256.h"

namespace plumbline {
namespace {

static_assert(ceil_bytes(Bits(9)) == Bytes(2));
static_assert(Bytes(6) / Bytes(3) == 2.0);
static_assert((Joules(6.0) / Seconds(3.0)).raw() == 2.0);

double ulp_error(double got, double want) {
  return std::abs(got - want) / std::abs(std::nextafter(want, INFINITY) - want);
}

TEST(Elementary, LogIsWithinTwoUlpOfLibm) {
  RandomStream random(1, "log");
  for (int i = 0; i < 200000; ++i) {
    const double x = std::ldexp(1.0 + random.next_unit(), static_cast<int>(random.next_below(2000)) - 1000);
    EXPECT_LE(ulp_error(exact_log(x), std::log(x)), 2.0) << x;
  }
  EXPECT_EQ(exact_log(1.0), 0.0);
  EXPECT_TRUE(std::isinf(exact_log(0.0)));
  EXPECT_TRUE(std::isnan(exact_log(-1.0)));
}

TEST(Elementary, ExpIsWithinTwoUlpOfLibm) {
  RandomStream random(2, "exp");
  for (int i = 0; i < 200000; ++i) {
    const double x = (random.next_unit() - 0.5) * 1400;
    EXPECT_LE(ulp_error(exact_exp(x), std::exp(x)), 2.0) << x;
  }
  EXPECT_EQ(exact_exp(0.0), 1.0);
  EXPECT_EQ(exact_exp(-800.0), 0.0);
  EXPECT_TRUE(std::isinf(exact_exp(800.0)));
}

TEST(Parallel, ResultsDoNotDependOnTheThreadCount) {
  const auto run = [](unsigned threads) {
    std::vector<std::uint64_t> out(1000);
    parallel_for(out.size(), threads, [&](std::size_t i) { out[i] = RandomStream(7, "slot", i).next(); });
    return out;
  };
  EXPECT_EQ(run(1), run(2));
  EXPECT_EQ(run(1), run(7));
}

TEST(Parallel, RethrowsTheFirstFailure) {
  EXPECT_THROW(parallel_for(8, 2, [](std::size_t i) { PL_CHECK(i != 5); }), std::logic_error);
}

TEST(Sha256, MatchesTheStandardsExamples) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Diagnostic, RendersPositionLineAndCaret) {
  auto source = std::make_shared<Source>(Source{"a.yaml", "x: 1\nclok: 2\n"});
  const auto d = make_error("unknown-key", {source, 2, 1, 4}, "unknown key 'clok'", "did you mean 'clock'?");
  EXPECT_EQ(render(d),
            "a.yaml:2:1: error: unknown key 'clok' [unknown-key]\n  clok: 2\n  ^~~~\nhelp: did you mean 'clock'?\n");
}

TEST(Diagnostic, SuggestsNearNames) {
  EXPECT_EQ(suggest("batsh", {"batch", "wait", "group"}), "did you mean 'batch'?");
  EXPECT_EQ(suggest("zzzz", {"batch", "wait"}), "one of: batch, wait");
}

TEST(Random, StreamsAreIndependentOfOrder) {
  RandomStream a(3, "x");
  const auto third = a.at(2);
  a.next();
  a.next();
  EXPECT_EQ(a.next(), third);
}

}  // namespace
}  // namespace plumbline
