#include "schedule/transfer.h"

#include <array>

namespace plumbline::schedule {
namespace {

using Axes = std::array<AxisSums, lower::kMaxDims + lower::kMaxDims>;

/// How many indices have the allowed digits and lie below the last index, and whether the last one is among them.
struct Tight {
  std::int64_t below = 0;
  bool last = false;
};

/// Digits of `dim` outside the boundary: temporal ones as `when` says, spatial ones free below `spatial_end`, else
/// zero. `forced` ≥ 0 names a loop whose digit is one.
Tight count_indices(const Nest& nest, int end, int spatial_end, int dim, const Moments& when, int forced) {
  Tight t{0, true};
  for (int i = 0; i < end; ++i) {
    const NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    if (loop.dim != dim) continue;
    const std::int64_t e = loop.digit;
    const bool free = loop.spatial ? i < spatial_end : i < when.prefix;
    if (free) {
      const std::int64_t from = i == when.stepping ? 1 : 0;
      t.below = t.below * (loop.bound - from) + (t.last && e > from ? e - from : 0);
      t.last = t.last && e >= from;
    } else {
      const std::int64_t value = i == forced ? 1 : 0;
      t.below += t.last && e > value ? 1 : 0;
      t.last = t.last && e == value;
    }
  }
  return t;
}

/// The extent of the last tile of a dimension.
std::int64_t last_extent(const Nest& nest, int level, int dim) {
  const auto d = static_cast<std::size_t>(dim);
  const std::int64_t extent = nest.extent[static_cast<std::size_t>(level)][d];
  return (nest.size[d] - 1) % extent + 1;
}

/// Innermost temporal loop of `dim` between `from` and the boundary, -1 when there is none.
int innermost_below(const Nest& nest, const Boundary& at, int dim, int from) {
  for (int i = at.end - 1; i >= from; --i) {
    const NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    if (loop.dim == dim && !loop.spatial) return i;
  }
  return -1;
}

struct Factors {
  const Nest& nest;
  const Boundary& at;
  const Projection& projection;

  /// Index of the factor a dimension belongs to: itself, or its window axis behind all dimensions.
  [[nodiscard]] int of(int dim) const {
    for (int w = 0; w < projection.windows; ++w) {
      const WindowAxis& axis = projection.axes[static_cast<std::size_t>(w)];
      for (int t = 0; t < axis.terms; ++t) {
        if (axis.dims[static_cast<std::size_t>(t)] == dim) return lower::kMaxDims + w;
      }
    }
    return dim;
  }
  bool sums(int factor, const Moments& when, AxisSums& out) const {
    if (factor >= lower::kMaxDims) {
      return window_sums(nest, at, projection.axes[static_cast<std::size_t>(factor - lower::kMaxDims)], when, out);
    }
    const bool used = ((projection.flat >> factor) & 1U) != 0;
    out = used ? flat_sums(nest, at, factor, when) : idle_sums(nest, at, factor, when);
    return true;
  }
  /// Calls visit(factor) for every factor.
  template <class Visit>
  void each(Visit visit) const {
    const std::uint32_t windowed = projection.relevant & ~projection.flat;
    for (int d = 0; d < nest.rank; ++d) {
      if (((windowed >> d) & 1U) == 0) visit(d);
    }
    for (int w = 0; w < projection.windows; ++w) visit(lower::kMaxDims + w);
  }
};

AxisSums product(const Factors& factors, const Axes& axes) {
  AxisSums total{1, 1, 1, 1};
  factors.each([&](int f) {
    const AxisSums& one = axes[static_cast<std::size_t>(f)];
    total.held *= one.held;
    total.kept *= one.kept;
    total.held_merged *= one.held_merged;
    total.kept_merged *= one.kept_merged;
  });
  return total;
}

}  // namespace

AxisSums flat_sums(const Nest& nest, const Boundary& at, int dim, const Moments& when) {
  const std::int64_t extent = nest.extent[static_cast<std::size_t>(at.inner)][static_cast<std::size_t>(dim)];
  const Tight all = count_indices(nest, at.end, at.end, dim, when, -1);
  AxisSums sums;
  sums.held = all.below * extent + (all.last ? last_extent(nest, at.inner, dim) : 0);
  if (when.stepping < 0) {
    // A tile is kept when this instance has no later digit to fall back from.
    const int next = innermost_below(nest, at, dim, when.prefix);
    sums.kept = sums.held;
    if (next >= 0) {
      const Tight later = count_indices(nest, at.end, at.end, dim, when, next);
      sums.kept -= (later.below + (later.last ? 1 : 0)) * extent;
    }
  }
  sums.held_merged = sums.held;  // the children of one parent hold disjoint parts of a flat axis
  sums.kept_merged = sums.kept;
  return sums;
}

AxisSums idle_sums(const Nest& nest, const Boundary& at, int dim, const Moments& when) {
  const Tight children = count_indices(nest, at.end, at.end, dim, when, -1);
  const Tight parents = count_indices(nest, at.end, at.split, dim, when, -1);
  AxisSums sums;
  sums.held = sums.kept = children.below + (children.last ? 1 : 0);
  sums.held_merged = sums.kept_merged = parents.below + (parents.last ? 1 : 0);
  return sums;
}

bool transfer_any(const Nest& nest, const Boundary& at, const Projection& projection, bool latched, Transfer& out) {
  const Factors factors{nest, at, projection};
  Axes axes;
  bool narrow = true;
  const auto refresh = [&](int factor, const Moments& when) {
    narrow = factors.sums(factor, when, axes[static_cast<std::size_t>(factor)]) && narrow;
  };
  factors.each([&](int f) { refresh(f, {0, -1}); });
  const AxisSums first = product(factors, axes);
  // First meetings: every digit of the used dimensions, at the first digits of the others.
  out.first_delivered = out.first_merged = 1;
  factors.each([&](int f) {
    AxisSums whole = axes[static_cast<std::size_t>(f)];
    if (f >= lower::kMaxDims || ((projection.flat >> f) & 1U) != 0)
      narrow = factors.sums(f, {at.end, -1}, whole) && narrow;
    out.first_delivered *= whole.held;
    out.first_merged *= whole.held_merged;
  });
  if (!latched) {
    factors.each([&](int f) { refresh(f, {at.end, -1}); });
    const AxisSums all = product(factors, axes);
    out.delivered = all.held;
    out.merged = all.held_merged;
    return narrow;
  }
  out.delivered = first.held;
  out.merged = first.held_merged;
  for (int i = 0; i < at.end && narrow; ++i) {
    const NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    if (loop.spatial) continue;
    const int f = factors.of(loop.dim);
    refresh(f, {i + 1, i});
    const AxisSums step = product(factors, axes);
    out.delivered += step.held - step.kept;
    out.merged += step.held_merged - step.kept_merged;
    refresh(f, {i + 1, -1});
  }
  return narrow;
}

}  // namespace plumbline::schedule
