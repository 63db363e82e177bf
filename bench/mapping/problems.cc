#include "problems.h"

#include <algorithm>
#include <set>

#include "schedule/evaluator.h"

namespace plumbline::bench {

using schedule::LoopKind;

schedule::Hierarchy reference_hierarchy() {
  schedule::Hierarchy h;
  h.levels.resize(3);
  h.levels[0].name = "dram";
  h.levels[0].off_chip = true;
  h.levels[0].read_bits_per_cycle = h.levels[0].write_bits_per_cycle = 64.0;
  h.levels[1].name = "buffer";
  h.levels[1].capacity_bits = 524288 * 8;
  h.levels[2].name = "registers";
  h.levels[2].instances = 1024;
  h.levels[2].mesh_x = 32;
  h.levels[2].capacity_bits = 64 * 8;
  h.levels[2].array = true;
  h.mac_units = 1024;
  h.mac_mesh_x = 32;
  return h;
}

schedule::EnergyRates reference_rates() {
  schedule::EnergyRates rates;
  rates.read = rates.write = {100.0 / 8, 13.352 / 8, 0.489 / 8};
  rates.mac = 0.25;
  return rates;
}

lower::Einsum conv(std::int64_t k, std::int64_t c, std::int64_t p, std::int64_t q, std::int64_t r, std::int64_t s,
                   std::int64_t stride) {
  lower::ConvShape shape;
  shape.k = k;
  shape.c = c;
  shape.p = p;
  shape.q = q;
  shape.r = r;
  shape.s = s;
  shape.stride = {stride, stride};
  return lower::conv_einsum(shape);
}

std::vector<Layer> resnet50_bert_layers() {
  std::vector<Layer> layers{{"conv1 7x7/2", conv(64, 3, 112, 112, 7, 7, 2)}};
  // By stage: side of its feature maps, width of its bottleneck, width of its input.
  const std::int64_t stages[][3] = {{56, 64, 64}, {28, 128, 256}, {14, 256, 512}, {7, 512, 1024}};
  int number = 2;
  for (const auto& [side, width, input] : stages) {
    const std::string name = "conv" + std::to_string(number++);
    const std::int64_t wide = 4 * width;
    const bool strided = number > 3;
    if (strided) {
      layers.push_back({name + " 1x1 reduce first", conv(width, input, 2 * side, 2 * side, 1, 1, 1)});
      layers.push_back({name + " 3x3/2", conv(width, width, side, side, 3, 3, 2)});
    } else {
      layers.push_back({name + " 1x1 reduce first", conv(width, input, side, side, 1, 1, 1)});
    }
    layers.push_back({name + " 3x3", conv(width, width, side, side, 3, 3, 1)});
    layers.push_back({name + " 1x1 expand", conv(wide, width, side, side, 1, 1, 1)});
    layers.push_back({name + " 1x1 reduce", conv(width, wide, side, side, 1, 1, 1)});
    if (strided) layers.push_back({name + " 1x1/2 shortcut", conv(wide, input, side, side, 1, 1, 2)});
  }
  layers.push_back({"fc", lower::gemm_einsum(1, 1000, 2048)});
  const auto gemm = [&](const char* name, std::int64_t m, std::int64_t n, std::int64_t k) {
    layers.push_back({name, lower::gemm_einsum(m, n, k)});
  };
  gemm("bert projection", 512, 768, 768);
  gemm("bert feed-forward up", 512, 3072, 768);
  gemm("bert feed-forward down", 512, 768, 3072);
  gemm("bert scores", 512, 512, 64);
  gemm("bert context", 512, 64, 512);
  return layers;
}

lower::Einsum narrow(lower::Einsum einsum) {
  for (lower::Operand& each : einsum.operands) each.bits = each.partial_bits = 8;
  return einsum;
}

namespace {

constexpr std::int64_t kSide = 32;
constexpr std::int64_t kLeastUsed = 922;  // 90 % of 1024

/// Random divisors, one per dimension, taken out of `left`; their product is at most `most`.
std::int64_t take(std::vector<std::int64_t>& left, std::int64_t most, RandomStream& random,
                  std::vector<std::int64_t>& taken) {
  std::int64_t product = 1;
  taken.assign(left.size(), 1);
  for (int tries = 0; tries < 12 && product < most; ++tries) {
    const std::size_t d = random.next_below(left.size());
    std::vector<std::int64_t> divisors;
    for (std::int64_t f = 2; f <= std::min(left[d], most / product); ++f) {
      if (left[d] % f == 0) divisors.push_back(f);
    }
    if (divisors.empty()) continue;
    const std::int64_t f = divisors[random.next_below(divisors.size())];
    taken[d] *= f;
    left[d] /= f;
    product *= f;
  }
  return product;
}

void add_loops(schedule::LevelNest& level, const std::vector<std::int64_t>& bounds, LoopKind kind,
               RandomStream& random) {
  std::vector<schedule::Loop> loops;
  for (std::size_t d = 0; d < bounds.size(); ++d) {
    if (bounds[d] > 1) loops.push_back({static_cast<int>(d), bounds[d], kind});
  }
  for (std::size_t i = loops.size(); i > 1; --i) std::swap(loops[i - 1], loops[random.next_below(i)]);
  level.loops.insert(level.loops.end(), loops.begin(), loops.end());
}

}  // namespace

std::vector<schedule::Mapping> random_mappings(const lower::Einsum& einsum, std::size_t count, RandomStream& random) {
  const auto evaluator = schedule::Evaluator::prepare(einsum, reference_hierarchy());
  schedule::Tally tally;
  std::vector<schedule::Mapping> result;
  std::set<std::vector<std::int64_t>> seen;
  while (result.size() < count) {
    std::vector<std::int64_t> left(einsum.dims.begin(), einsum.dims.begin() + einsum.rank());
    std::vector<std::int64_t> x, y, registers, buffer;
    const std::int64_t used_x = take(left, kSide, random, x);
    const std::int64_t used_y = take(left, kSide, random, y);
    if (used_x * used_y < kLeastUsed) continue;
    take(left, static_cast<std::int64_t>(1 + random.next_below(64)), random, registers);
    take(left, static_cast<std::int64_t>(1 + random.next_below(4096)), random, buffer);
    schedule::Mapping mapping;
    mapping.levels.resize(3);
    add_loops(mapping.levels[0], left, LoopKind::temporal, random);
    add_loops(mapping.levels[1], buffer, LoopKind::temporal, random);
    add_loops(mapping.levels[1], x, LoopKind::spatial_x, random);
    add_loops(mapping.levels[1], y, LoopKind::spatial_y, random);
    add_loops(mapping.levels[2], registers, LoopKind::temporal, random);
    mapping.levels[0].keeps = 7;
    mapping.levels[1].keeps = static_cast<std::uint32_t>(random.next_below(8));
    mapping.levels[2].keeps = static_cast<std::uint32_t>(random.next_below(8));
    if (!evaluator->evaluate(mapping, tally).ok()) continue;
    std::vector<std::int64_t> key;
    for (const schedule::LevelNest& level : mapping.levels) {
      key.push_back(level.keeps);
      for (const schedule::Loop& loop : level.loops) {
        key.insert(key.end(), {loop.dim, loop.bound, static_cast<std::int64_t>(loop.kind)});
      }
      key.push_back(-1);
    }
    if (seen.insert(key).second) result.push_back(std::move(mapping));
  }
  return result;
}

}  // namespace plumbline::bench
