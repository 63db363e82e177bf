#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "problems.h"
#include "rows.h"
#include "schedule/counts.h"
#include "schedule/evaluator.h"

namespace plumbline::bench {
namespace {

using namespace plumbline::schedule;

constexpr std::size_t kMappings = 4000;
constexpr std::size_t kWalked = 100;  // of these, judged by the walk
constexpr int kRepeats = 200;         // best of

std::uint64_t mix(std::uint64_t sum, std::int64_t value) { return mix64(sum ^ static_cast<std::uint64_t>(value)); }

std::uint64_t checksum(std::uint64_t sum, const Mapping& mapping, const Tally& tally) {
  sum = mix(mix(mix(sum, tally.macs), tally.compute_steps), tally.cycles_overlapped);
  for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
    for (std::size_t o = 0; o < 3; ++o) {
      if (!mapping.levels[l].keeps_operand(o)) continue;
      const OperandTally& t = tally.levels[l][o];
      sum = mix(mix(mix(mix(sum, t.tile), t.reads), t.fills), t.updates);
    }
  }
  return sum;
}

std::uint64_t checksum(std::uint64_t sum, const AccessCounts& counts) {
  sum = mix(mix(mix(sum, counts.macs), counts.compute_steps), counts.cycles_overlapped);
  for (const auto& level : counts.levels) {
    for (const OperandCounts& c : level) {
      if (c.kept) sum = mix(mix(mix(mix(sum, c.tile), c.reads), c.fills), c.updates);
    }
  }
  return sum;
}

/// Million evaluations a second; stops the program when the walk disagrees.
double rate(const lower::Einsum& einsum, const char* name) {
  RandomStream random(7, name);
  const std::vector<Mapping> mappings = random_mappings(einsum, kMappings, random);
  const auto evaluator = Evaluator::prepare(einsum, reference_hierarchy());
  Tally tally;
  std::uint64_t ours = 0;
  std::uint64_t walked = 0;
  for (std::size_t i = 0; i < kWalked; ++i) {
    if (!evaluator->evaluate(mappings[i], tally).ok()) std::abort();
    ours = checksum(ours, mappings[i], tally);
    const auto counts = walk_accesses(einsum, reference_hierarchy(), mappings[i], {0, 4'000'000'000});
    if (!counts.ok()) std::abort();
    walked = checksum(walked, *counts);
  }
  if (ours != walked) {
    std::fprintf(stderr, "%s: counts and walk disagree\n", name);
    std::abort();
  }
  double best = 1e30;
  std::int64_t sink = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    best = std::min(best, seconds_of([&] {
                      for (const Mapping& mapping : mappings) {
                        if (!evaluator->evaluate(mapping, tally).ok()) std::abort();
                        sink += tally.cycles_overlapped;
                      }
                    }));
  }
  if (sink == 0) std::abort();
  return static_cast<double>(kMappings) * 1e-6 / best;
}

}  // namespace

Rows evaluate_rows(const Filter& wanted) {
  Rows rows;
  if (wanted("map_evals_gemm_mevals_s")) {
    rows.push_back({"map_evals_gemm_mevals_s", rate(narrow(lower::gemm_einsum(96, 128, 160)), "gemm")});
  }
  if (wanted("map_evals_conv_mevals_s")) {
    lower::ConvShape shape;
    shape.k = shape.c = 32;
    shape.p = shape.q = 14;
    shape.r = shape.s = 3;
    rows.push_back({"map_evals_conv_mevals_s", rate(narrow(lower::conv_einsum(shape)), "conv")});
  }
  return rows;
}

}  // namespace plumbline::bench
