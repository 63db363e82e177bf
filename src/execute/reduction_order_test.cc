#include "execute/reduction_order.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/random.h"
#include "execute/numerics/matmul.h"
#include "schedule/random_mapping.h"

namespace plumbline::execute {
namespace {

using schedule::LoopKind;
using schedule::Mapping;

/// A machine that runs the loop nest step by step and sums one result in binary16, fused.
class Machine {
 public:
  Machine(const lower::Einsum& einsum, const Mapping& mapping, std::vector<double> products)
      : einsum_(einsum), products_(std::move(products)) {
    for (const lower::Axis& axis : einsum.operands.back().axes) {
      for (const lower::AxisTerm& term : axis) kept_ |= 1U << term.dim;
    }
    for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
      for (const schedule::Loop& loop : mapping.levels[l].loops) {
        Step step{loop, l, 1};
        for (Step& outer : steps_) outer.stride *= outer.loop.dim == loop.dim ? loop.bound : 1;
        steps_.push_back(step);
        if (loop.kind != LoopKind::temporal && loop.bound > 1 && !keeps(loop.dim)) spread_ = l;
      }
    }
    keeper_ = mapping.levels.size();
    for (std::size_t l = mapping.levels.size(); l-- > spread_ + 1;) {
      if (mapping.levels[l].keeps_operand(einsum.operands.size() - 1)) keeper_ = l;
    }
    if (spread_ == kNone) keeper_ = mapping.levels.size();
    has_keeper_ = keeper_ < mapping.levels.size();
  }

  /// The sum of the result at `target`, one index for each dimension of the outputs.
  double sum(const std::vector<std::int64_t>& target) {
    target_ = target;
    std::vector<std::int64_t> digits(steps_.size(), 0);
    time(0, digits);
    flush();
    return total_;
  }

 private:
  static constexpr std::size_t kNone = 1000;
  struct Step {
    schedule::Loop loop;
    std::size_t level = 0;
    std::int64_t stride = 1;
  };

  [[nodiscard]] bool keeps(int dim) const { return ((kept_ >> dim) & 1U) != 0; }
  static double rounded(double value) { return static_cast<double>(static_cast<_Float16>(value)); }

  void time(std::size_t at, std::vector<std::int64_t>& digits) {
    while (at < steps_.size() && steps_[at].loop.kind != LoopKind::temporal) ++at;
    if (at == steps_.size()) {
      tick(digits);
      return;
    }
    for (digits[at] = 0; digits[at] < steps_[at].loop.bound; ++digits[at]) time(at + 1, digits);
    digits[at] = 0;
  }

  /// One step of time: all PEs work.
  void tick(std::vector<std::int64_t>& digits) {
    std::vector<std::int64_t> tile;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (step.loop.kind == LoopKind::temporal && keeps(step.loop.dim) && step.level < keeper_)
        tile.push_back(digits[i]);
    }
    if (tile != tile_) flush();
    tile_ = tile;
    space(0, digits, {});
    if (!has_keeper_) flush();
  }

  void space(std::size_t at, std::vector<std::int64_t>& digits, std::vector<std::int64_t> pe) {
    while (at < steps_.size() && steps_[at].loop.kind == LoopKind::temporal) ++at;
    if (at == steps_.size()) {
      multiply(digits, pe);
      return;
    }
    for (digits[at] = 0; digits[at] < steps_[at].loop.bound; ++digits[at]) {
      std::vector<std::int64_t> inner = pe;
      if (!keeps(steps_[at].loop.dim)) inner.push_back(digits[at]);
      space(at + 1, digits, inner);
    }
    digits[at] = 0;
  }

  void multiply(const std::vector<std::int64_t>& digits, const std::vector<std::int64_t>& pe) {
    std::array<std::int64_t, lower::kMaxDims> index{};
    for (std::size_t i = 0; i < steps_.size(); ++i)
      index[static_cast<std::size_t>(steps_[i].loop.dim)] += digits[i] * steps_[i].stride;
    std::int64_t flat = 0;
    for (int d = 0; d < einsum_.rank(); ++d) {
      const auto at = static_cast<std::size_t>(d);
      if (index[at] >= einsum_.dims[at]) return;
      if (keeps(d) && index[at] != target_[at]) return;
      if (!keeps(d)) flat = flat * einsum_.dims[at] + index[at];
    }
    const double product = products_[static_cast<std::size_t>(flat)];
    if (spread_ == kNone) {
      total_ = rounded(total_ + product);
    } else if (has_keeper_) {
      local_[pe] = rounded(local_[pe] + product);
    } else {
      chain_ = rounded(chain_ + product);
    }
  }

  /// Finished sums leave the array.
  void flush() {
    for (const auto& [pe, value] : local_) chain_ = rounded(chain_ + value);
    local_.clear();
    total_ = rounded(total_ + chain_);
    chain_ = 0;
  }

  const lower::Einsum& einsum_;
  std::vector<double> products_;
  std::uint32_t kept_ = 0;
  std::vector<Step> steps_;
  std::size_t spread_ = kNone;
  std::size_t keeper_ = 0;
  bool has_keeper_ = false;
  std::vector<std::int64_t> target_;
  std::vector<std::int64_t> tile_;
  std::map<std::vector<std::int64_t>, double> local_;
  double chain_ = 0;
  double total_ = 0;
};

TEST(ReductionOrder, SumsAsAMachineThatRunsTheNest) {
  int spread = 0;
  int by_itself = 0;
  int several = 0;
  for (std::uint64_t round = 0; round < 3000; ++round) {
    RandomStream random(3, "order", round);
    schedule::MappingCase made = schedule::random_case(random, {});
    const auto found = reduction_order(made.einsum, made.mapping);
    if (!found.ok()) {
      EXPECT_EQ(found.errors().front().kind, "unsupported");
      continue;
    }
    ++several;
    spread += found->groups.empty() && found->pieces.empty() ? 0 : 1;
    by_itself += found->pieces.empty() ? 0 : 1;
    const auto depth = found->order.size();
    std::vector<float> a(depth);
    std::vector<float> b(depth);
    std::vector<double> products(depth);
    for (std::size_t i = 0; i < depth; ++i) {
      a[i] = static_cast<float>(static_cast<std::int64_t>(random.next_below(2048)) - 1024) / 512;
      b[i] = static_cast<float>(static_cast<std::int64_t>(random.next_below(2048)) - 1024) / 512;
      products[i] = double{a[i]} * double{b[i]};
    }
    const auto half = numerics::find_format("binary16");
    auto named = numerics::find_accumulation("fp16-fused", *half);
    const auto ordered = in_order(*named, *found);
    ASSERT_TRUE(ordered.ok());
    const auto k = static_cast<std::int64_t>(depth);
    const auto product = numerics::matmul({1, 1, k, a, b, {}, *half, *half}, *ordered);
    ASSERT_TRUE(product.ok()) << render(product.errors());
    std::vector<std::int64_t> target(static_cast<std::size_t>(made.einsum.rank()));
    for (std::size_t d = 0; d < target.size(); ++d)
      target[d] = static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(made.einsum.dims[d])));
    Machine machine(made.einsum, made.mapping, products);
    EXPECT_EQ(double{product->values[0]}, machine.sum(target)) << round << "\n" << made.describe();
  }
  EXPECT_GT(several, 1000);
  EXPECT_GT(spread, 300);
  EXPECT_GT(by_itself, 100);
}

TEST(ReductionOrder, AWeightStationaryArraySumsDownItsColumns) {
  const lower::Einsum einsum = lower::gemm_einsum(4, 4, 10);
  const int k = einsum.dim("K");
  Mapping mapping;
  mapping.levels.resize(2);
  mapping.levels[0] = {{{k, 3, LoopKind::temporal}, {k, 4, LoopKind::spatial_y}}, 7};
  const auto order = reduction_order(einsum, mapping);
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(order->order, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(order->groups, (std::vector<std::int64_t>{4, 8}));
  EXPECT_TRUE(order->pieces.empty());
}

TEST(ReductionOrder, RowsThatTakeStridesSumInAnotherOrder) {
  const lower::Einsum einsum = lower::gemm_einsum(4, 4, 6);
  const int k = einsum.dim("K");
  Mapping mapping;
  mapping.levels.resize(2);
  mapping.levels[0] = {{{k, 2, LoopKind::spatial_y}}, 7};
  mapping.levels[1] = {{{k, 3, LoopKind::temporal}}, 0};
  const auto step_by_step = reduction_order(einsum, mapping);
  EXPECT_EQ(step_by_step->order, (std::vector<std::int64_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(step_by_step->groups, (std::vector<std::int64_t>{2, 4}));
  mapping.levels[1].keeps = 4;  // now each row keeps its own sum
  const auto by_itself = reduction_order(einsum, mapping);
  EXPECT_EQ(by_itself->order, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(by_itself->pieces, (std::vector<std::int64_t>{3}));
  EXPECT_TRUE(by_itself->groups.empty());
}

TEST(ReductionOrder, TreesAndBlocksHaveAnOrderOfTheirOwn) {
  const auto half = numerics::find_format("binary16");
  for (const char* name : {"fp16-pairwise", "h100", "tpu-128"}) {
    const auto input = numerics::find_format(std::string_view(name) == "tpu-128" ? "bfloat16" : "binary16");
    const auto named = numerics::find_accumulation(name, *input);
    ASSERT_TRUE(named.ok()) << name;
    const auto made = in_order(*named, {{1, 0}, {}, {}});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.errors().front().kind, "unsupported");
  }
}

TEST(ReductionOrder, RefusesWhatDoesNotFitInMemory) {
  lower::Einsum einsum = lower::gemm_einsum(1, 1, std::int64_t{1} << 40);
  Mapping mapping;
  mapping.levels.resize(1);
  mapping.levels[0] = {{{einsum.dim("K"), std::int64_t{1} << 40, LoopKind::temporal}}, 7};
  EXPECT_EQ(reduction_order(einsum, mapping).errors().front().kind, "too-large");
}

}  // namespace
}  // namespace plumbline::execute
