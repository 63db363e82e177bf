#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "execute/numerics/matmul_counted_kernel.h"
#include "execute/numerics/matmul_plan.h"

namespace plumbline::numerics {
namespace {

using TileValues = std::array<float, kTileElements>;

struct Extent {
  std::int64_t row;
  std::int64_t column;
  std::int64_t rows;
  std::int64_t columns;
  [[nodiscard]] std::int64_t count() const { return rows * columns; }
};

/// Walks the reduction of one tile.
class TileRun {
 public:
  TileRun(const MatmulPlan& plan, const Extent& extent, std::vector<RegisterTally>* registers)
      : plan_(plan), extent_(extent), registers_(registers) {
    const std::int64_t k = plan.operands.k;
    panels_.rows = static_cast<int>(extent.rows);
    panels_.columns = static_cast<int>(extent.columns);
    panels_.a = plan.a_panels.data() + extent.row * k;
    panels_.b = plan.b_panels.data() + extent.column * k;
    if (!plan.a_nonzero.empty()) {
      a_nonzero_ = plan.a_nonzero.data() + extent.row / kPanelRows * k;
      b_nonzero_ = plan.b_nonzero.data() + extent.column / kPanelColumns * k;
    }
    if (!plan.a_last.empty()) {
      panels_.a_last = plan.a_last.data() + extent.row * k;
      panels_.b_last = plan.b_last.data() + 2 * extent.column * k;
    }
    if (!plan.a_exponents.empty()) {
      panels_.a_exponents = plan.a_exponents.data() + extent.row * k;
      panels_.b_exponents = plan.b_exponents.data() + extent.column * k;
    }
    const TileRandom random{random_key(plan.accumulation),
                            static_cast<std::uint64_t>(extent.row * plan.operands.n + extent.column),
                            static_cast<std::uint64_t>(plan.operands.n)};
    inner_ = plan.inner;
    inner_.random = random;
    joins_ = plan.joins;
    for (WideStep& join : joins_) join.random = random;
  }

  /// Adds the products of [first, last) to the tile. `level` blockings still apply; `from_zero`: the tile holds +0.
  void reduce(std::size_t level, std::int64_t first, std::int64_t last, float* tile, bool from_zero) {
    if (level == 0) return reduce_inner(first, last, tile, from_zero);
    const Blocking& blocking = plan_.accumulation.blockings[level - 1];
    std::vector<std::int64_t> edges = cuts(blocking, first, last);
    edges.insert(edges.begin(), first);
    edges.push_back(last);
    if (blocking.join == Join::sequential) {
      for (std::size_t piece = 0; piece + 1 < edges.size(); ++piece) {
        TileValues partial{};
        reduce(level - 1, edges[piece], edges[piece + 1], partial.data(), true);
        join(level, edges[piece], piece, partial.data(), tile);
      }
      return;
    }
    TileValues total{};
    join_tree(level, edges, 0, edges.size() - 1, total.data());
    finish_tree(level, first, total.data(), tile, from_zero);
  }

 private:
  void join_tree(std::size_t level, const std::vector<std::int64_t>& edges, std::size_t begin, std::size_t end,
                 float* tile) {
    if (end - begin == 1) {
      // One rounding into the joining register, as every leaf of a tree has.
      TileValues partial{};
      reduce(level - 1, edges[begin], edges[end], partial.data(), true);
      std::fill(tile, tile + kTileElements, 0.0F);
      return join(level, edges[begin], begin, partial.data(), tile);
    }
    const std::size_t middle = begin + static_cast<std::size_t>(tree_split(static_cast<std::int64_t>(end - begin)));
    join_tree(level, edges, begin, middle, tile);
    TileValues right{};
    join_tree(level, edges, middle, end, right.data());
    join(level + kTreeLevels, edges[middle], middle, right.data(), tile);
  }

  /// tile <- rnd(tile + tree), or the tree itself where the tile holds +0.
  void finish_tree(std::size_t level, std::int64_t first, const float* tree, float* tile, bool from_zero) {
    if (!from_zero) return join(level + 2 * kTreeLevels, first, 0, tree, tile);
    for (int i = 0; i < kTileElements; ++i) tile[i] = tree[i] + 0.0F;  // -0 + 0 is +0, as an addition makes it
  }

  /// tile <- rnd(tile + addend) in the register of a level; `ordinal` decides whether the step is observed.
  void join(std::size_t step_level, std::int64_t position, std::size_t ordinal, const float* addend, float* tile) {
    const std::size_t level = step_level % kTreeLevels;
    const WideStep& step = level == 0 ? inner_ : joins_[level - 1];
    StepTally tally;
    const std::int64_t every = level == 0 ? plan_.observed.every : plan_.observed_joins;
    const bool observe = registers_ != nullptr && static_cast<std::int64_t>(ordinal) % every == 0;
    const NarrowRegister narrow = level == 0 ? plan_.leaves : plan_.narrow_joins[level - 1];
    if (!observe && narrow != NarrowRegister::none) {
      tile_add_narrow(narrow, addend, tile);
    } else {
      tile_add(step, join_step(step_level, position), addend, tile, observe ? &tally : nullptr);
    }
    if (registers_ == nullptr) return;
    RegisterTally& reg = (*registers_)[level];
    reg.total += extent_.count();
    if (!observe) return;
    if (level > 0) count_exponents(tile, reg);
    add_sums(tally, 1, reg);
  }

  void reduce_inner(std::int64_t first, std::int64_t last, float* tile, bool from_zero) {
    if (plan_.kernel == InnerKernel::tensor_core) return reduce_blocks(first, last, tile);
    if (plan_.kernel == InnerKernel::pairwise) {
      TileValues total{};
      product_tree(first, last, total.data());
      return finish_tree(0, first, total.data(), tile, from_zero);
    }
    if (registers_ == nullptr) return run_fast(first, last, tile);
    const std::int64_t every = plan_.observed.every;
    RegisterTally& reg = (*registers_)[0];
    reg.total += extent_.count() * (last - first);
    if (plan_.sums_apart) return reduce_apart(first, last, tile, reg);
    if (every == 1 && plan_.counted != NarrowRegister::none) return reduce_counted(first, last, tile, reg);
    while (first < last) {
      const std::int64_t next = std::min(last, (first + every - 1) / every * every);
      run_fast(first, next, tile);
      if (next == last) return;
      StepTally tally;
      tile_wide(panels_, inner_, next, next + 1, tile, &tally, plan_.observed.histogram_every);
      if (next % plan_.observed.histogram_every == 0) add_exponents(tally.exponents, reg);
      add_sums(tally, 1, reg);
      if (!inner_.fused) add_products(tally, 1, reg);
      first = next + 1;
    }
  }

  /// Every step counted, exponents where histogram_every divides.
  void reduce_counted(std::int64_t first, std::int64_t last, float* tile, RegisterTally& reg) {
    constexpr std::int64_t kMostSteps = std::int64_t{1} << 20U;
    const std::int64_t period = plan_.observed.histogram_every;
    while (first < last) {
      const std::int64_t seen = (first + period - 1) / period * period;  // the next step whose sums are seen
      const std::int64_t next = std::min({last, seen + 1, first + kMostSteps});
      StepTally tally;
      tile_rounded_counted(panels_, plan_.counted, first, next, tile, tally);
      if (next == seen + 1) count_exponents(tile, reg);
      add_sums(tally, next - first, reg);
      add_products(tally, next - first, reg);
      first = next;
    }
  }

  /// Every sum counted, products left to the caller of the whole: `absorbed` and `inexact` hold what remains of them
  /// once the products with a value are added.
  void reduce_apart(std::int64_t first, std::int64_t last, float* tile, RegisterTally& reg) {
    constexpr std::int64_t kMostSteps = 512;  // so that little is done again where a sum overflows
    const std::int64_t period = plan_.observed.histogram_every;
    reg.observed += extent_.count() * (last - first);
    reg.products += extent_.count() * (last - first);
    while (first < last) {
      const std::int64_t seen = (first + period - 1) / period * period;  // the next step whose sums are seen
      const std::int64_t special = next_special(first);
      // Special operands by themselves: their steps are few.
      const std::int64_t next = special == first ? first + 1 : std::min({last, seen + 1, first + kMostSteps, special});
      if (special == first) {
        count_slowly(first, next, tile, reg);
      } else {
        count_finite(first, next, tile, reg);
      }
      if (next == seen + 1) count_exponents(tile, reg);
      first = next;
    }
  }

  /// Steps whose operands are finite.
  void count_finite(std::int64_t first, std::int64_t last, float* tile, RegisterTally& reg) {
    if (extent_.count() != kTileElements) fill_padding(tile);
    TileValues start;
    std::copy(tile, tile + kTileElements, start.begin());
    SumTally sums;
    tile_binary16_sums(panels_, first, last, tile, sums);
    if (sums.became_special || (sums.began_special && plan_.products_end)) {
      std::copy(start.begin(), start.end(), tile);
      return count_slowly(first, last, tile, reg);
    }
    // Lanes that were no numbers have no sums.
    const std::int64_t foreign =
        sums.began_special ? count_binary16_products(panels_, first, last, mark_special(start).data()) : 0;
    reg.absorbed += sums.unchanged - kTileElements * (last - first) - foreign;
    reg.inexact -= sums.changed_exactly + foreign;
    reg.swamped += sums.swamped;
  }

  void count_slowly(std::int64_t first, std::int64_t last, float* tile, RegisterTally& reg) {
    StepTally tally;
    tile_rounded_counted(panels_, NarrowRegister::binary16, first, last, tile, tally);
    add_sums(tally, 0, reg);
    const std::int64_t products = count_binary16_products(panels_, first, last, nullptr);
    reg.absorbed -= products;
    reg.inexact -= products;
  }

  /// All bits set where a value is infinite or NaN.
  static std::array<std::int32_t, kTileElements> mark_special(const TileValues& tile) {
    std::array<std::int32_t, kTileElements> marks;
    for (std::size_t i = 0; i < marks.size(); ++i) {
      marks[i] = (std::bit_cast<std::int32_t>(tile[i]) & 0x7FFFFFFF) >= 0x7F800000 ? -1 : 0;
    }
    return marks;
  }

  /// Lanes beyond the matrix hold anything but zero, which would be taken for a sum that became its product.
  void fill_padding(float* tile) const {
    for (std::int64_t r = 0; r < kPanelRows; ++r) {
      const std::int64_t begin = r < extent_.rows ? extent_.columns : 0;
      std::fill(tile + r * kPanelColumns + begin, tile + (r + 1) * kPanelColumns, 1.0F);
    }
  }

  /// The first k from `first` on with a special operand in the tile, or beyond all.
  [[nodiscard]] std::int64_t next_special(std::int64_t first) const {
    std::int64_t next = plan_.operands.k;
    if (plan_.a_specials.empty()) return next;
    for (const auto* at : {&plan_.a_specials[static_cast<std::size_t>(extent_.row / kPanelRows)],
                           &plan_.b_specials[static_cast<std::size_t>(extent_.column / kPanelColumns)]}) {
      const auto found = std::lower_bound(at->begin(), at->end(), first);
      if (found != at->end()) next = std::min(next, *found);
    }
    return next;
  }

  void run_fast(std::int64_t first, std::int64_t last, float* tile) {
    if (first == last) return;
    switch (plan_.kernel) {
      case InnerKernel::binary32_fused:
        return tile_binary32_fused(panels_, first, last, tile);
      case InnerKernel::binary32_rounded:
        return tile_binary32_rounded(panels_, first, last, tile);
      case InnerKernel::binary16_rounded:
        return tile_binary16_rounded(panels_, first, last, tile);
      case InnerKernel::bfloat16_rounded:
        return tile_bfloat16_rounded(panels_, first, last, tile);
      case InnerKernel::wide:
        return tile_wide(panels_, inner_, first, last, tile, nullptr, 1);
      case InnerKernel::pairwise:
      case InnerKernel::tensor_core:
        break;
    }
    PL_CHECK(false);
  }

  void product_tree(std::int64_t first, std::int64_t last, float* tile) {
    if (last - first == 1) {
      StepTally tally;
      const bool observe = registers_ != nullptr && first % plan_.observed.every == 0;
      if (!observe && plan_.leaves != NarrowRegister::none)
        return tile_products_narrow(panels_, plan_.leaves, first, tile);
      tile_products(panels_, inner_, first, tile, observe ? &tally : nullptr);
      if (observe) add_products(tally, 1, (*registers_)[0]);
      return;
    }
    const std::int64_t middle = first + tree_split(last - first);
    product_tree(first, middle, tile);
    TileValues right;
    product_tree(middle, last, right.data());
    join(0, middle, static_cast<std::size_t>(middle), right.data(), tile);
  }

  void reduce_blocks(std::int64_t first, std::int64_t last, float* tile) {
    if (registers_ == nullptr) {
      return tile_tensor_core(panels_, plan_.core, first, last, tile, nullptr, plan_.observed);
    }
    BlockTally tally;
    tile_tensor_core(panels_, plan_.core, first, last, tile, &tally, plan_.observed);
    RegisterTally& reg = (*registers_)[0];
    const std::int64_t block = plan_.accumulation.core.block;
    std::int64_t pairs = 0;  // products of nonzero operands: none in padding
    for (std::int64_t begin = first; begin < last; begin += block) {
      reg.total += extent_.count();
      if (begin / block % plan_.observed.every != 0) continue;
      const std::int64_t end = std::min(last, begin + block);
      reg.observed += extent_.count();
      reg.products += extent_.count() * (end - begin);
      for (std::int64_t k = begin; k < end; ++k) pairs += std::int64_t{a_nonzero_[k]} * b_nonzero_[k];
    }
    reg.inexact += static_cast<std::int64_t>(tally.results_inexact);
    reg.products_to_zero += pairs - static_cast<std::int64_t>(tally.terms_nonzero + tally.pairs_void);
    reg.products_inexact += static_cast<std::int64_t>(tally.terms_cut);
    add_exponents(tally.exponents, reg);
  }

  void add_sums(const StepTally& tally, std::int64_t steps, RegisterTally& reg) const {
    reg.observed += steps * extent_.count();
    reg.inexact += static_cast<std::int64_t>(tally.sums_inexact);
    reg.absorbed += static_cast<std::int64_t>(tally.absorbed);
    reg.swamped += static_cast<std::int64_t>(tally.swamped);
    reg.beyond += static_cast<std::int64_t>(tally.sums_beyond);
  }

  void add_products(const StepTally& tally, std::int64_t steps, RegisterTally& reg) const {
    reg.products += steps * extent_.count();
    reg.products_inexact += static_cast<std::int64_t>(tally.products_inexact);
    reg.products_to_zero += static_cast<std::int64_t>(tally.products_to_zero);
  }

  void add_exponents(const std::array<std::uint64_t, 256>& exponents, RegisterTally& reg) const {
    for (std::size_t i = 0; i < exponents.size(); ++i) reg.exponents[i] += static_cast<std::int64_t>(exponents[i]);
  }

  void count_exponents(const float* tile, RegisterTally& reg) const {
    std::array<std::array<std::uint32_t, 256>, 4>
        counts{};  // four, so that equal neighbours do not wait for each other
    for (std::int64_t r = 0; r < extent_.rows; ++r) {
      for (std::int64_t i = 0; i < extent_.columns; ++i) {
        ++counts[static_cast<std::size_t>(i % 4)]
                [(std::bit_cast<std::uint32_t>(tile[r * kPanelColumns + i]) >> 23) & 0xFF];
      }
    }
    for (std::size_t e = 0; e < 256; ++e) {
      reg.exponents[e] += std::int64_t{counts[0][e]} + counts[1][e] + counts[2][e] + counts[3][e];
    }
  }

  /// Separates the random steps of a tree's inner nodes and of its last addition from those of its leaves.
  static constexpr std::size_t kTreeLevels = 64;

  const MatmulPlan& plan_;
  Extent extent_;
  std::vector<RegisterTally>* registers_;
  Panels panels_;
  const std::int16_t* a_nonzero_ = nullptr;
  const std::int16_t* b_nonzero_ = nullptr;
  WideStep inner_;
  std::vector<WideStep> joins_;
};

/// Counts of a row of results as binary32 bits; 32-bit sums so that the compiler vectorizes them.
struct RowCounts {
  std::int32_t nan = 0;
  std::int32_t infinite = 0;
  std::int32_t zero = 0;
  std::int32_t below_normal = 0;  ///< zero included
  std::int32_t at_largest = 0;
};

RowCounts count_row(const float* from, float* to, std::int64_t columns, std::int32_t least_normal,
                    std::int32_t largest) {
  constexpr std::int32_t kInfinity = 0x7F800000;
  constexpr std::int32_t kQuietNan = 0x7FC00000;
  RowCounts counts;
  for (std::int64_t i = 0; i < columns; ++i) {
    const auto bits = std::bit_cast<std::int32_t>(from[i]);
    const std::int32_t magnitude = bits & 0x7FFFFFFF;
    counts.nan += magnitude > kInfinity ? 1 : 0;
    counts.infinite += magnitude == kInfinity ? 1 : 0;
    counts.zero += magnitude == 0 ? 1 : 0;
    counts.below_normal += magnitude < least_normal ? 1 : 0;
    counts.at_largest += magnitude == largest ? 1 : 0;
    to[i] = std::bit_cast<float>(magnitude > kInfinity ? kQuietNan : bits);
  }
  return counts;
}

Extent extent_of(const MatmulPlan& plan, std::int64_t row, std::int64_t column) {
  return {row, column, std::min<std::int64_t>(kPanelRows, plan.operands.m - row),
          std::min<std::int64_t>(kPanelColumns, plan.operands.n - column)};
}

void load_start(const MatmulPlan& plan, const Extent& extent, TileValues& tile) {
  const MatmulOperands& operands = plan.operands;
  tile.fill(0.0F);
  for (std::int64_t r = 0; r < extent.rows && !operands.c.empty(); ++r) {
    const float* const from = operands.c.data() + (extent.row + r) * operands.n + extent.column;
    std::copy(from, from + extent.columns, tile.data() + r * kPanelColumns);
  }
}

void store_results(const MatmulPlan& plan, const Extent& extent, const TileValues& tile, Buffer<float>& values,
                   ResultCounters& counters) {
  const MatmulOperands& operands = plan.operands;
  const Format& format = result_format(plan.accumulation);
  const auto least = std::bit_cast<std::int32_t>(std::ldexp(1.0F, format.min_normal_exponent()));
  const auto largest = std::bit_cast<std::int32_t>(static_cast<float>(format.max_value()));
  for (std::int64_t r = 0; r < extent.rows; ++r) {
    const auto row = static_cast<std::size_t>(extent.row + r);
    const std::size_t at = row * static_cast<std::size_t>(operands.n) + static_cast<std::size_t>(extent.column);
    float* const to = values.data() + at;
    const RowCounts counts = count_row(tile.data() + r * kPanelColumns, to, extent.columns, least, largest);
    counters.nan += counts.nan;
    counters.infinite += counts.infinite;
    counters.zero += counts.zero;
    counters.subnormal += counts.below_normal - counts.zero;
    counters.at_largest += counts.at_largest;
    if (counts.nan + counts.infinite == 0) continue;
    const bool row_special = !plan.row_special.empty() && plan.row_special[row] != 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(extent.columns); ++i) {
      if (std::isfinite(to[i])) continue;
      const auto column = static_cast<std::size_t>(extent.column) + i;
      const bool column_special = !plan.column_special.empty() && plan.column_special[column] != 0;
      const bool c_special = !operands.c.empty() && !std::isfinite(operands.c[at + i]);
      counters.overflow += row_special || column_special || c_special ? 0 : 1;
    }
  }
  counters.results += extent.count();
}

/// Products of k that all tiles of a block take before the next: 256 packed rows of a panel of b are 32 KiB, read from
/// the first-level cache by every tile of a column but the first.
constexpr std::int64_t kBlockDepth = 256;

/// Plain reductions, whose whole state is the tile. `runs` and `tiles` hold one column panel after the other.
void run_plain_block(const MatmulPlan& plan, std::vector<TileRun>& runs, std::vector<TileValues>& tiles) {
  std::int64_t step = kBlockDepth;
  if (plan.kernel == InnerKernel::tensor_core) {
    const std::int64_t block = plan.accumulation.core.block;
    step = std::max(block, kBlockDepth / block * block);  // whole blocks, so that the chain is the same
  }
  for (std::int64_t first = 0; first < plan.operands.k; first += step) {
    const std::int64_t last = std::min(plan.operands.k, first + step);
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i].reduce(0, first, last, tiles[i].data(), false);
  }
}

}  // namespace

void run_matmul_block(const MatmulPlan& plan, const BlockShape& shape, std::int64_t row, std::int64_t column,
                      Buffer<float>& values, ResultCounters& counters, std::vector<RegisterTally>* registers) {
  std::vector<Extent> extents;
  std::vector<TileRun> runs;
  const std::int64_t row_end = std::min(plan.operands.m, row + shape.rows);
  const std::int64_t column_end = std::min(plan.operands.n, column + shape.columns);
  for (std::int64_t j = column; j < column_end; j += kPanelColumns) {
    for (std::int64_t i = row; i < row_end; i += kPanelRows) {
      extents.push_back(extent_of(plan, i, j));
      runs.emplace_back(plan, extents.back(), registers);
    }
  }
  std::vector<TileValues> tiles(extents.size());
  for (std::size_t i = 0; i < tiles.size(); ++i) load_start(plan, extents[i], tiles[i]);
  const std::size_t levels = plan.accumulation.blockings.size();
  if (levels == 0 && plan.kernel != InnerKernel::pairwise) {
    run_plain_block(plan, runs, tiles);
  } else {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i].reduce(levels, 0, plan.operands.k, tiles[i].data(), plan.operands.c.empty());
    }
  }
  for (std::size_t i = 0; i < tiles.size(); ++i) store_results(plan, extents[i], tiles[i], values, counters);
}

}  // namespace plumbline::numerics
