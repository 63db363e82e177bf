#include <array>
#include <span>

#include "schedule/transfer.h"

namespace plumbline::schedule {
namespace {

/// A two-term axis while the loops are walked from the innermost outward.
struct Sliding {
  const WindowAxis* axis = nullptr;
  WindowTile tile;
  std::int64_t size = 0;
  std::array<std::int64_t, 2> reset{};  ///< how far each dimension falls back when an outer loop steps
  std::array<Progression, kMostProgressions> copies;
  std::size_t copy_count = 0;
  std::int64_t children = 1;
  std::int64_t all = 0;  ///< elements of all children of a parent together

  [[nodiscard]] std::int64_t coefficient(int term) const { return term == 0 ? axis->pair.a : axis->pair.b; }
};

struct Walk {
  const Nest& nest;
  const Boundary& at;
  const Projection& projection;
  std::array<Sliding, 4> windows;  // eight dimensions make at most four two-term axes
  std::int64_t flat_tile = 1;      ///< elements of a tile over the flat axes
  std::int64_t flat_spread = 1;    ///< the same over all children of a parent
};

bool start(Walk& walk) {
  const auto& extent = walk.nest.extent[static_cast<std::size_t>(walk.at.inner)];
  for (int d = 0; d < walk.nest.rank; ++d) {
    if (((walk.projection.flat >> d) & 1U) != 0) walk.flat_tile *= extent[static_cast<std::size_t>(d)];
  }
  walk.flat_spread = walk.flat_tile;
  for (int w = 0; w < walk.projection.windows; ++w) {
    Sliding& s = walk.windows[static_cast<std::size_t>(w)];
    s.axis = &walk.projection.axes[static_cast<std::size_t>(w)];
    s.tile = {extent[static_cast<std::size_t>(s.axis->dims[0])], extent[static_cast<std::size_t>(s.axis->dims[1])]};
    s.size = window_size(s.axis->pair, s.tile);
  }
  for (int i = walk.at.split; i < walk.at.end; ++i) {
    const NestLoop& loop = walk.nest.loops[static_cast<std::size_t>(i)];
    if (!loop.spatial || ((walk.projection.relevant >> loop.dim) & 1U) == 0) continue;
    if (((walk.projection.flat >> loop.dim) & 1U) != 0) {
      walk.flat_spread *= loop.bound;
      continue;
    }
    for (int w = 0; w < walk.projection.windows; ++w) {
      Sliding& s = walk.windows[static_cast<std::size_t>(w)];
      const int term = s.axis->dims[0] == loop.dim ? 0 : 1;
      if (s.axis->dims[static_cast<std::size_t>(term)] != loop.dim) continue;
      if (s.copy_count == s.copies.size()) return false;
      s.copies[s.copy_count++] = {loop.bound, s.coefficient(term) * loop.stride};
      s.children *= loop.bound;
    }
  }
  for (int w = 0; w < walk.projection.windows; ++w) {
    Sliding& s = walk.windows[static_cast<std::size_t>(w)];
    s.all = s.size;
    if (s.copy_count > 0) s.all = window_union(s.axis->pair, s.tile, 0, {s.copies.data(), s.copy_count}).all;
    if (s.all < 0) return false;
  }
  return true;
}

struct Fresh {
  std::int64_t child = 0;   ///< new words of one child
  std::int64_t merged = 0;  ///< new words of all children of a parent, each once
};

/// New words when `loop` steps; every window's resets are those of the loops inside it.
bool fresh_words(const Walk& walk, const NestLoop& loop, const Fresh& full, Fresh& out) {
  std::int64_t kept = walk.flat_tile;
  std::int64_t kept_merged = walk.flat_spread;
  for (int w = 0; w < walk.projection.windows; ++w) {
    const Sliding& s = walk.windows[static_cast<std::size_t>(w)];
    std::int64_t before = s.reset[0] * s.coefficient(0) + s.reset[1] * s.coefficient(1);
    for (int term = 0; term < 2; ++term) {
      if (s.axis->dims[static_cast<std::size_t>(term)] == loop.dim) before -= s.coefficient(term) * loop.stride;
    }
    const std::int64_t overlap = before == 0 ? s.size : window_overlap(s.axis->pair, s.tile, s.tile, before);
    kept *= overlap;
    if (s.copy_count == 0) {
      kept_merged *= overlap;
    } else if (before != 0) {
      const WindowUnion u = window_union(s.axis->pair, s.tile, before, {s.copies.data(), s.copy_count});
      if (u.all < 0) return false;
      kept_merged *= u.all - u.fresh;
    } else {
      kept_merged *= s.all;
    }
  }
  out = {full.child - kept, full.merged - kept_merged};
  return true;
}

/// Sum over all steps of the new words, without the factor of spatial copies.
bool sum_steps(Walk& walk, const Fresh& full, Fresh& total) {
  for (int i = walk.at.end - 1; i >= 0; --i) {
    const NestLoop& loop = walk.nest.loops[static_cast<std::size_t>(i)];
    if (loop.spatial) continue;
    if (((walk.projection.flat >> loop.dim) & 1U) != 0) {
      // From here outward every step moves a flat axis, by its own step or by this loop's fall-back.
      const std::int64_t moves = loop.before * loop.bound;
      total = {total.child + moves * full.child, total.merged + moves * full.merged};
      return true;
    }
    Fresh fresh;
    if (!fresh_words(walk, loop, full, fresh)) return false;
    const std::int64_t moves = loop.before * (loop.bound - 1);
    total = {total.child + moves * fresh.child, total.merged + moves * fresh.merged};
    for (int w = 0; w < walk.projection.windows; ++w) {
      Sliding& s = walk.windows[static_cast<std::size_t>(w)];
      for (int term = 0; term < 2; ++term) {
        if (s.axis->dims[static_cast<std::size_t>(term)] == loop.dim) {
          s.reset[static_cast<std::size_t>(term)] += (loop.bound - 1) * loop.stride;
        }
      }
    }
  }
  total = {total.child + full.child, total.merged + full.merged};
  return true;
}

}  // namespace

bool transfer_perfect(const Nest& nest, const Boundary& at, const Projection& projection, bool latched, Transfer& out) {
  Walk walk{nest, at, projection, {}, 1, 1};
  if (!start(walk)) return false;
  Fresh full{walk.flat_tile, walk.flat_spread};
  for (int w = 0; w < projection.windows; ++w) {
    full.child *= walk.windows[static_cast<std::size_t>(w)].size;
    full.merged *= walk.windows[static_cast<std::size_t>(w)].all;
  }
  std::int64_t children = 1;  // all instances
  std::int64_t parents = 1;
  std::int64_t steps = 1;
  out.first_delivered = full.child;
  out.first_merged = full.merged;
  for (int i = 0; i < at.end; ++i) {
    const NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    if (loop.spatial) {
      children *= loop.bound;
      if (i < at.split) parents *= loop.bound;
    } else {
      steps *= loop.bound;
      if (((projection.relevant >> loop.dim) & 1U) == 0) continue;
      out.first_delivered *= loop.bound;
      out.first_merged *= loop.bound;
    }
  }
  out.first_delivered *= children;
  out.first_merged *= parents;
  Fresh total;
  if (!latched) {
    total = {steps * full.child, steps * full.merged};
  } else if (!sum_steps(walk, full, total)) {
    return false;
  }
  out.delivered = total.child * children;
  out.merged = total.merged * parents;
  return true;
}

}  // namespace plumbline::schedule
