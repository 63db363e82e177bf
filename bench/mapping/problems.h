#pragma once
// The hierarchy, kernels and random mappings the mapping benchmarks share.
#include <string>
#include <vector>

#include "core/random.h"
#include "lower/einsum.h"
#include "schedule/hierarchy.h"
#include "schedule/mapping.h"
#include "schedule/search.h"

namespace plumbline::bench {

/// Off chip 8 words a cycle each way, a buffer of 524 288 words, 32×32 PEs of 64 words; words of 8 bits.
schedule::Hierarchy reference_hierarchy();
/// Timeloop's public linear energy formula worked out for words of 8 bits, here per bit: off chip 100 a word, buffer
/// 13.352, registers 0.489, and 0.25 a multiply-accumulate (picojoules).
schedule::EnergyRates reference_rates();
/// Every operand and partial sum at 8 bits, as in the reference energies.
lower::Einsum narrow(lower::Einsum einsum);
/// Distinct random mappings with perfect factors that fit and use at least 90 % of the PEs, any orders and bypasses.
std::vector<schedule::Mapping> random_mappings(const lower::Einsum& einsum, std::size_t count, RandomStream& random);

lower::Einsum conv(std::int64_t k, std::int64_t c, std::int64_t p, std::int64_t q, std::int64_t r, std::int64_t s,
                   std::int64_t stride);

struct Layer {
  std::string name;
  lower::Einsum einsum;
};
/// The 24 distinct layer shapes of ResNet-50 (224×224 images) and the 5 of BERT-base at sequence length 512.
std::vector<Layer> resnet50_bert_layers();

}  // namespace plumbline::bench
