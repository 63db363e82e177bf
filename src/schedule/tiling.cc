#include "schedule/tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace plumbline::schedule {
namespace {

using Extents = std::array<std::int64_t, lower::kMaxDims>;
constexpr std::size_t kOutputs = 2;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The tile of at most `limit` that spreads `size` evenly over the fewest passes.
std::int64_t balanced(std::int64_t size, std::int64_t limit) {
  const std::int64_t tile = std::clamp<std::int64_t>(limit, 1, size);
  return ceil_div(size, ceil_div(size, tile));
}

class Tiling {
 public:
  Tiling(const TilingProblem& problem, const TilingChoice& choice)
      : problem_(problem), choice_(choice), einsum_(problem.kernel.einsum) {
    columns_.fill(1);
    rows_.fill(1);
    stream_.fill(1);
  }

  Result<Mapping> make() {
    PL_TRY_STATUS(spread());
    PL_TRY_STATUS(fill_stream());
    PL_TRY_STATUS(order_outer());
    Mapping mapping;
    mapping.levels.resize(problem_.accelerator.levels.size());
    PL_TRY_STATUS(place_outer(mapping));
    place_inner(mapping);
    PL_TRY_STATUS(place_operands(mapping));
    move_out(mapping);
    return mapping;
  }

 private:
  [[nodiscard]] std::int64_t size(int d) const { return einsum_.dims[static_cast<std::size_t>(d)]; }
  [[nodiscard]] std::int64_t tile(int d) const {
    const auto at = static_cast<std::size_t>(d);
    return std::min(size(d), columns_[at] * rows_[at] * stream_[at]);
  }
  [[nodiscard]] std::int64_t trips(int d) const { return ceil_div(size(d), tile(d)); }
  [[nodiscard]] const FactorLimit& limit(int level, int d) const {
    return problem_.rules.limits[static_cast<std::size_t>(level)][static_cast<std::size_t>(d)];
  }
  [[nodiscard]] const std::string& name(int d) const { return einsum_.dim_names[static_cast<std::size_t>(d)]; }

  [[nodiscard]] Diagnostic unmet(const ingest::ConstraintRow& row, const std::string& why) const {
    return make_error("does-not-fit", row.span,
                      fmt::format("kernel '{}' cannot meet the row {}: {}", problem_.kernel.name, row.text, why));
  }

  /// Dimensions of `legal` in the order they fill an axis of the array: the preferred one, then as the kernel lists
  /// them.
  [[nodiscard]] std::vector<int> filling_order(std::uint32_t legal, int preferred) const {
    std::vector<int> dims;
    if (preferred >= 0 && ((legal >> preferred) & 1U) != 0) dims.push_back(preferred);
    for (int d = 0; d < einsum_.rank(); ++d) {
      if (((legal >> d) & 1U) != 0 && d != preferred) dims.push_back(d);
    }
    return dims;
  }

  Status spread() {
    const ingest::AcceleratorLevel& array = problem_.accelerator.levels.back();
    const Rules& rules = problem_.rules;
    const std::uint32_t across = problem_.roles.across_columns(choice_.stationary);
    const std::uint32_t down = problem_.roles.down_rows(choice_.stationary);
    if (rules.spatial_row != nullptr) {
      const auto illegal = [](int d, std::uint32_t mask) { return d >= 0 && ((mask >> d) & 1U) == 0; };
      if (illegal(rules.spatial_x, across)) {
        return unmet(*rules.spatial_row, fmt::format("along the columns, '{}' would need another input in every column",
                                                     name(rules.spatial_x)));
      }
      if (illegal(rules.spatial_y, down)) {
        return unmet(*rules.spatial_row,
                     fmt::format("the dataflow cannot lay '{}' down the rows", name(rules.spatial_y)));
      }
    }
    const auto fill = [&](std::uint32_t legal, int preferred, std::int64_t room, Extents& out) {
      // The user's own spatial row names the one dimension; a dataflow's preference may be joined by others.
      const bool alone = rules.spatial_row != nullptr && preferred >= 0;
      for (const int d : filling_order(legal, preferred)) {
        const std::int64_t most = std::min(room, limit(problem_.levels.array, d).max);
        out[static_cast<std::size_t>(d)] = balanced(size(d), most);
        room /= out[static_cast<std::size_t>(d)];
        if (alone) break;
      }
    };
    fill(across, rules.spatial_x, array.fanout_x, columns_);
    fill(down, rules.spatial_y, array.fanout_y, rows_);
    return Done{};
  }

  /// Words of outputs that one step of the stream needs at the stream level.
  [[nodiscard]] std::int64_t output_width() const {
    std::int64_t words = 1;
    for (int d = 0; d < einsum_.rank(); ++d) {
      if (((problem_.roles.outputs >> d) & 1U) == 0) continue;
      words *= columns_[static_cast<std::size_t>(d)] * rows_[static_cast<std::size_t>(d)];
    }
    return words;
  }

  [[nodiscard]] bool keeps(int level, std::size_t operand) const {
    const auto at = static_cast<std::size_t>(level);
    const bool hardware = ((held_operands(problem_.accelerator.levels[at]) >> operand) & 1U) != 0;
    return hardware && ((problem_.rules.bypass[at] >> operand) & 1U) == 0;
  }

  Status fill_stream() {
    const int level = problem_.levels.stream;
    const auto& storage = problem_.accelerator.levels[static_cast<std::size_t>(level)];
    const std::uint32_t streaming = problem_.roles.streaming(choice_.stationary);
    std::int64_t steps = std::numeric_limits<std::int64_t>::max();
    const bool bounded = level != problem_.levels.home && keeps(level, kOutputs) && storage.capacity.has_value();
    if (bounded) {
      const std::int64_t width = output_width() * einsum_.operands[kOutputs].partial_bits;
      steps = storage.capacity->raw() * 8 / width;
      if (steps < 1) {
        return make_error("does-not-fit", storage.span,
                          fmt::format("one row of partial sums of kernel '{}' is {} bytes, the level '{}' holds {}",
                                      problem_.kernel.name, (width + 7) / 8, storage.name, storage.capacity->raw()));
      }
    }
    std::vector<int> dims;
    for (int d = einsum_.rank() - 1; d >= 0; --d) {
      if (((streaming >> d) & 1U) != 0) dims.push_back(d);
    }
    bool divided = choice_.stream_divisor == 1;
    for (const int d : dims) {
      const bool fills_sums = ((problem_.roles.outputs >> d) & 1U) != 0;
      const FactorLimit& factor = limit(level, d);
      std::int64_t most = std::min(factor.max, fills_sums ? steps : size(d));
      if (!divided && fills_sums) {
        // Halving applies to the outermost streamed dimension that is not whole, so decide on its whole extent first.
        const std::int64_t whole = balanced(size(d), most);
        if (whole < size(d) || d == dims.back()) {
          most = std::max<std::int64_t>(1, whole / choice_.stream_divisor);
          divided = true;
        }
      }
      std::int64_t chosen = balanced(size(d), most);
      if (factor.min > chosen) {
        if (factor.min > most || factor.min > size(d)) {
          return unmet(*factor.min_row, fmt::format("at most {} of '{}' fit there", std::min(most, size(d)), name(d)));
        }
        chosen = factor.min;
      }
      stream_[static_cast<std::size_t>(d)] = chosen;
      if (fills_sums) steps /= chosen;
      // A dimension that is cut stops the ones outside it from streaming: sums of the next cut would not fit.
      if (fills_sums && steps < 1) steps = 1;
    }
    for (int d = 0; d < einsum_.rank(); ++d) {
      const FactorLimit& factor = limit(level, d);
      if (((streaming >> d) & 1U) == 0 && factor.min > 1) {
        return unmet(*factor.min_row, fmt::format("'{}' changes what the array holds, so it does not loop at '{}'",
                                                  name(d), storage.name));
      }
      const FactorLimit& inside = limit(problem_.levels.array, d);
      const auto at = static_cast<std::size_t>(d);
      if (inside.min > columns_[at] * rows_[at]) {
        return unmet(*inside.min_row,
                     fmt::format("{} of '{}' lie across the array", columns_[at] * rows_[at], name(d)));
      }
    }
    return Done{};
  }

  /// Loops outside the array tile, outermost first.
  Status order_outer() {
    const std::uint32_t streaming = problem_.roles.streaming(choice_.stationary);
    const auto rank_of = [&](int d) {
      if (((problem_.roles.shared() >> d) & 1U) != 0) return 0;
      if (((problem_.roles.outputs >> d) & 1U) == 0) return 3;
      const bool streams = ((streaming >> d) & 1U) != 0;
      return streams != choice_.outputs_first ? 1 : 2;
    };
    for (int d = 0; d < einsum_.rank(); ++d) outer_.push_back(d);
    std::stable_sort(outer_.begin(), outer_.end(), [&](int a, int b) { return rank_of(a) < rank_of(b); });
    // A row names loops innermost in the order it gives; loops it does not name stay outside, as they were.
    const auto& wanted = problem_.rules.order[static_cast<std::size_t>(problem_.levels.home)];
    if (!wanted.empty()) {
      std::erase_if(outer_, [&](int d) { return std::find(wanted.begin(), wanted.end(), d) != wanted.end(); });
      outer_.insert(outer_.end(), wanted.begin(), wanted.end());
    }
    std::erase_if(outer_, [&](int d) { return trips(d) == 1; });
    return Done{};
  }

  /// Outer loops at the home level; what a row forbids there goes to the next level out.
  Status place_outer(Mapping& mapping) {
    const int home = problem_.levels.home;
    for (int l = 0; l < static_cast<int>(mapping.levels.size()); ++l) {
      if (l == home || l == problem_.levels.stream || l == problem_.levels.array) continue;
      for (int d = 0; d < einsum_.rank(); ++d) {
        if (limit(l, d).min > 1) {
          return unmet(*limit(l, d).min_row,
                       fmt::format("loops over '{}' run at '{}'", name(d),
                                   problem_.accelerator.levels[static_cast<std::size_t>(home)].name));
        }
      }
    }
    for (int d = 0; d < einsum_.rank(); ++d) {
      const FactorLimit& factor = limit(home, d);
      // With no level between, the stream's own loop counts at the home level too.
      const std::int64_t here =
          home == problem_.levels.stream ? trips(d) * stream_[static_cast<std::size_t>(d)] : trips(d);
      if (factor.min > here) {
        return unmet(*factor.min_row, fmt::format("'{}' makes {} passes there", name(d), here));
      }
    }
    auto& loops = mapping.levels[static_cast<std::size_t>(home)].loops;
    for (const int d : outer_) {
      const FactorLimit& factor = limit(home, d);
      const std::int64_t here = std::min(trips(d), factor.max);
      const std::int64_t beyond = ceil_div(trips(d), here);
      if (here > 1) loops.push_back({d, here, LoopKind::temporal});
      if (beyond == 1) continue;
      if (home == 0)
        return unmet(*factor.max_row,
                     fmt::format("'{}' makes {} passes and no level is further out", name(d), trips(d)));
      const std::int64_t further = limit(home - 1, d).max;
      if (further < beyond) return unmet(*factor.max_row, fmt::format("'{}' makes {} passes", name(d), trips(d)));
      mapping.levels[static_cast<std::size_t>(home) - 1].loops.push_back({d, beyond, LoopKind::temporal});
    }
    return Done{};
  }

  void place_inner(Mapping& mapping) {
    auto& loops = mapping.levels[static_cast<std::size_t>(problem_.levels.stream)].loops;
    std::vector<int> dims;
    for (int d = 0; d < einsum_.rank(); ++d) dims.push_back(d);
    const auto& wanted = problem_.rules.order[static_cast<std::size_t>(problem_.levels.stream)];
    if (!wanted.empty() && problem_.levels.stream != problem_.levels.home) {
      std::erase_if(dims, [&](int d) { return std::find(wanted.begin(), wanted.end(), d) != wanted.end(); });
      dims.insert(dims.end(), wanted.begin(), wanted.end());
    }
    for (const int d : dims) {
      if (stream_[static_cast<std::size_t>(d)] > 1) {
        loops.push_back({d, stream_[static_cast<std::size_t>(d)], LoopKind::temporal});
      }
    }
    for (int d = 0; d < einsum_.rank(); ++d) {
      if (columns_[static_cast<std::size_t>(d)] > 1) {
        loops.push_back({d, columns_[static_cast<std::size_t>(d)], LoopKind::spatial_x});
      }
    }
    for (int d = 0; d < einsum_.rank(); ++d) {
      if (rows_[static_cast<std::size_t>(d)] > 1) {
        loops.push_back({d, rows_[static_cast<std::size_t>(d)], LoopKind::spatial_y});
      }
    }
  }

  Status place_operands(Mapping& mapping) {
    for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
      LevelNest& nest = mapping.levels[l];
      nest.keeps = held_operands(problem_.accelerator.levels[l]) & ~problem_.rules.bypass[l];
      // The array holds its stationary operand; the others pass through it.
      if (static_cast<int>(l) == problem_.levels.array) nest.keeps = 1U << choice_.stationary;
    }
    std::uint32_t outside = 0;
    for (int l = 0; l < problem_.levels.array; ++l) outside |= mapping.levels[static_cast<std::size_t>(l)].keeps;
    if (outside != 7U) {
      return make_error(
          "does-not-fit", {},
          fmt::format("kernel '{}' has an operand that no level outside the array keeps", problem_.kernel.name),
          "drop a bypass row");
    }
    return Done{};
  }

  /// Weights beyond half the on-chip level that holds them are fetched in pieces: leading loops move off chip until a
  /// piece fits (half, so that the next piece can arrive meanwhile).
  void move_out(Mapping& mapping) {
    const int home = problem_.levels.weights;
    const auto& storage = problem_.accelerator.levels[static_cast<std::size_t>(home)];
    if (home == 0 || home != problem_.levels.home || !storage.capacity || problem_.kernel.weight_operand() != 0) return;
    auto& here = mapping.levels[static_cast<std::size_t>(home)].loops;
    auto& further = mapping.levels[static_cast<std::size_t>(home) - 1].loops;
    const std::uint32_t relevant = problem_.roles.relevant[0];
    Extents held{};
    for (int d = 0; d < einsum_.rank(); ++d) held[static_cast<std::size_t>(d)] = size(d);
    const auto words = [&] {
      std::int64_t product = 1;
      for (int d = 0; d < einsum_.rank(); ++d) {
        if (((relevant >> d) & 1U) != 0) product *= held[static_cast<std::size_t>(d)];
      }
      return product;
    };
    std::size_t movable = home == problem_.levels.stream ? outer_.size() : here.size();
    while (movable > 0 && operand_bits(einsum_.operands[0], words()) > storage.capacity->raw() * 8 / 2) {
      const Loop loop = here.front();
      here.erase(here.begin());
      further.push_back(loop);
      held[static_cast<std::size_t>(loop.dim)] = ceil_div(held[static_cast<std::size_t>(loop.dim)], loop.bound);
      --movable;
    }
  }

  const TilingProblem& problem_;
  const TilingChoice& choice_;
  const lower::Einsum& einsum_;
  Extents columns_{};
  Extents rows_{};
  Extents stream_{};
  std::vector<int> outer_;
};

}  // namespace

Result<Mapping> make_tiling(const TilingProblem& problem, const TilingChoice& choice) {
  return Tiling(problem, choice).make();
}

}  // namespace plumbline::schedule
