// Sliding-window axes under any factors: the digits of each dimension fall into a few situations (below, at or above
// the last index), and in each the children of one parent are looked at one by one.
#include <array>
#include <cstddef>
#include <vector>

#include "schedule/transfer.h"

namespace plumbline::schedule {
namespace {

/// One child of a parent along one dimension.
struct Place {
  bool active = true;
  std::int64_t offset = 0;  ///< of its tile from the parent's
  std::int64_t extent = 1;
  std::int64_t before = 0;  ///< of its previous tile from this one
  std::int64_t extent_before = 1;
};
struct Situation {
  std::int64_t count = 0;  ///< how often (over steps and parents)
  std::vector<Place> children;
};

enum class Digit : std::uint8_t { below, equal, above, later, child };

class Situations {
 public:
  Situations(const Nest& nest, const Boundary& at, int dim, const Moments& when)
      : extent_(nest.extent[static_cast<std::size_t>(at.inner)][static_cast<std::size_t>(dim)]),
        last_extent_((nest.size[static_cast<std::size_t>(dim)] - 1) % extent_ + 1),
        stepping_(when.stepping >= 0 && nest.loops[static_cast<std::size_t>(when.stepping)].dim == dim ? when.stepping
                                                                                                       : -1) {
    for (int i = 0; i < at.end; ++i) {
      const NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
      if (loop.dim != dim) continue;
      Digit role = Digit::below;  // a known digit, to be classed
      if (loop.spatial && i >= at.split) role = Digit::child;
      if (!loop.spatial && i >= when.prefix) role = Digit::later;
      chain_.push_back({loop, role, i});
    }
    const bool perfect = ((nest.ragged >> dim) & 1U) == 0;
    classes_.assign(chain_.size(), Digit::equal);
    branch(0, 1, perfect, true);
  }
  [[nodiscard]] const std::vector<Situation>& list() const { return list_; }

 private:
  struct Link {
    NestLoop loop;
    Digit role;
    int index;
  };

  /// `free`: known digits already put every index below the last. `plain`: no child or later digit so far.
  void branch(std::size_t at, std::int64_t count, bool free, bool plain) {
    if (count == 0) return;
    if (at == chain_.size()) return leaf(count, free);
    const Link& link = chain_[at];
    if (link.role == Digit::child || link.role == Digit::later) {
      classes_[at] = link.role;
      return branch(at + 1, count, free, false);
    }
    const std::int64_t from = link.index == stepping_ ? 1 : 0;
    const std::int64_t e = link.loop.digit;
    if (free) {
      classes_[at] = Digit::below;
      return branch(at + 1, count * (link.loop.bound - from), true, plain);
    }
    classes_[at] = Digit::below;
    branch(at + 1, count * std::max<std::int64_t>(0, e - from), plain, plain);
    classes_[at] = Digit::equal;
    if (e >= from) branch(at + 1, count, false, plain);
    classes_[at] = Digit::above;
    if (!plain) branch(at + 1, count * (link.loop.bound - 1 - std::max(e, from - 1)), false, plain);
  }

  void leaf(std::int64_t count, bool free) {
    Situation situation{count, {}};
    std::vector<std::int64_t> digits(chain_.size(), 0);
    while (true) {
      situation.children.push_back(place(digits, free));
      std::size_t k = chain_.size();
      while (k-- > 0) {
        if (chain_[k].role != Digit::child) continue;
        if (++digits[k] < chain_[k].loop.bound) break;
        digits[k] = 0;
      }
      if (k == static_cast<std::size_t>(-1)) break;
    }
    list_.push_back(std::move(situation));
  }

  [[nodiscard]] Digit compare(std::size_t k, const std::vector<std::int64_t>& digits) const {
    if (classes_[k] != Digit::child && classes_[k] != Digit::later) return classes_[k];
    const std::int64_t value = classes_[k] == Digit::child ? digits[k] : 0;
    const std::int64_t e = chain_[k].loop.digit;
    return value < e ? Digit::below : value == e ? Digit::equal : Digit::above;
  }

  [[nodiscard]] Place place(const std::vector<std::int64_t>& digits, bool free) const {
    Place p;
    Digit order = free ? Digit::below : Digit::equal;
    for (std::size_t k = 0; k < chain_.size(); ++k) {
      if (chain_[k].role == Digit::child) p.offset += digits[k] * chain_[k].loop.stride;
      if (order == Digit::equal) order = compare(k, digits);
    }
    p.active = order != Digit::above;
    p.extent = p.extent_before = order == Digit::equal ? last_extent_ : extent_;
    if (p.active) fall_back(digits, free, p);
    return p;
  }

  /// Where this child was at its last step before: later digits at the last values it can reach.
  void fall_back(const std::vector<std::int64_t>& digits, bool free, Place& p) const {
    p.extent_before = extent_;
    std::size_t decided = free ? 0 : chain_.size();  // later digits from here on are full
    bool borrow = false;
    if (!free && stepping_ < 0) {
      for (std::size_t k = 0; k < chain_.size(); ++k) {
        if (classes_[k] == Digit::later) continue;
        const Digit order = compare(k, digits);
        if (order == Digit::equal) continue;
        decided = k;
        borrow = order == Digit::above;
        break;
      }
      if (borrow) {
        while (decided-- > 0 && (classes_[decided] != Digit::later || chain_[decided].loop.digit == 0)) continue;
      }
      if (decided == chain_.size()) p.extent_before = last_extent_;
    }
    for (std::size_t k = 0; k < chain_.size(); ++k) {
      const NestLoop& loop = chain_[k].loop;
      if (chain_[k].index == stepping_) p.before -= loop.stride;
      if (chain_[k].role != Digit::later) continue;
      const bool full = free || stepping_ >= 0 || k > decided || (k == decided && !borrow);
      const std::int64_t reached = full ? loop.bound - 1 : loop.digit - (borrow && k == decided ? 1 : 0);
      p.before += reached * loop.stride;
    }
  }

  std::int64_t extent_;
  std::int64_t last_extent_;
  int stepping_;
  std::vector<Link> chain_;
  std::vector<Digit> classes_;
  std::vector<Situation> list_;
};

/// One child of a parent along the whole axis.
struct AxisTile {
  std::int64_t start = 0;
  std::int64_t start_before = 0;
  std::array<std::int64_t, lower::kMaxDims> extent{};
  std::array<std::int64_t, lower::kMaxDims> extent_before{};
};

class Bits {
 public:
  Bits(std::int64_t low, std::int64_t span) : low_(low), words_(static_cast<std::size_t>(span / 64 + 1), 0) {}
  /// True when the element was not there yet.
  bool add(std::int64_t element) {
    std::uint64_t& word = words_[static_cast<std::size_t>((element - low_) / 64)];
    const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>((element - low_) % 64);
    const bool fresh = (word & bit) == 0;
    word |= bit;
    return fresh;
  }
  [[nodiscard]] bool has(std::int64_t element) const {
    const std::int64_t i = element - low_;
    if (i < 0 || i / 64 >= static_cast<std::int64_t>(words_.size())) return false;
    return ((words_[static_cast<std::size_t>(i / 64)] >> static_cast<unsigned>(i % 64)) & 1U) != 0;
  }

 private:
  std::int64_t low_;
  std::vector<std::uint64_t> words_;
};

template <class Visit>
void visit_elements(const WindowAxis& axis, const std::array<std::int64_t, lower::kMaxDims>& extent, std::int64_t start,
                    int term, Visit& visit) {
  if (term == axis.terms) return visit(start);
  const auto t = static_cast<std::size_t>(term);
  for (std::int64_t x = 0; x < extent[t]; ++x) {
    visit_elements(axis, extent, start + x * axis.coefficients[t], term + 1, visit);
  }
}

std::int64_t end_of(const WindowAxis& axis, const std::array<std::int64_t, lower::kMaxDims>& extent,
                    std::int64_t start) {
  for (int t = 0; t < axis.terms; ++t) {
    start += (extent[static_cast<std::size_t>(t)] - 1) * axis.coefficients[static_cast<std::size_t>(t)];
  }
  return start + 1;
}

bool add_tiles(const WindowAxis& axis, const std::vector<AxisTile>& tiles, std::int64_t count, AxisSums& out) {
  if (tiles.size() == 1 && axis.terms == 2) {
    const AxisTile& one = tiles[0];
    const WindowTile now{one.extent[0], one.extent[1]};
    const WindowTile then{one.extent_before[0], one.extent_before[1]};
    const std::int64_t held = window_size(axis.pair, now);
    const std::int64_t kept = window_overlap(axis.pair, now, then, (one.start_before - one.start) / axis.pair.unit);
    out.held += count * held;
    out.held_merged += count * held;
    out.kept += count * kept;
    out.kept_merged += count * kept;
    return true;
  }
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (const AxisTile& each : tiles) {
    low = std::min(low, each.start);
    high = std::max(high, end_of(axis, each.extent, each.start));
  }
  if (high - low > kWidestSpan) return false;
  Bits all(low, high - low);
  Bits fresh(low, high - low);
  AxisSums sums;
  for (const AxisTile& each : tiles) {
    Bits before(each.start_before, end_of(axis, each.extent_before, each.start_before) - each.start_before);
    const auto remember = [&](std::int64_t element) { before.add(element); };
    visit_elements(axis, each.extent_before, each.start_before, 0, remember);
    Bits seen(each.start, end_of(axis, each.extent, each.start) - each.start);
    const auto look = [&](std::int64_t element) {
      if (!seen.add(element)) return;
      const bool kept = before.has(element);
      sums.held += 1;
      sums.kept += kept ? 1 : 0;
      if (all.add(element)) sums.held_merged += 1;
      if (!kept && fresh.add(element)) sums.kept_merged -= 1;
    };
    visit_elements(axis, each.extent, each.start, 0, look);
  }
  out.held += count * sums.held;
  out.kept += count * sums.kept;
  out.held_merged += count * sums.held_merged;
  out.kept_merged += count * (sums.held_merged + sums.kept_merged);
  return true;
}

/// Every combination of the situations of the terms.
bool combine(const WindowAxis& axis, const std::vector<Situations>& terms, std::size_t term, std::int64_t count,
             const std::vector<AxisTile>& tiles, AxisSums& out) {
  if (tiles.empty()) return true;
  if (term == terms.size()) return add_tiles(axis, tiles, count, out);
  const std::int64_t coefficient = axis.coefficients[term];
  for (const Situation& situation : terms[term].list()) {
    std::vector<AxisTile> next;
    for (const AxisTile& tile : tiles) {
      for (const Place& place : situation.children) {
        if (!place.active) continue;
        AxisTile moved = tile;
        moved.start += coefficient * place.offset;
        moved.start_before += coefficient * (place.offset + place.before);
        moved.extent[term] = place.extent;
        moved.extent_before[term] = place.extent_before;
        next.push_back(moved);
      }
    }
    if (!combine(axis, terms, term + 1, count * situation.count, next, out)) return false;
  }
  return true;
}

}  // namespace

std::int64_t axis_elements(const WindowAxis& axis, const std::array<std::int64_t, lower::kMaxDims>& extent_by_dim) {
  std::array<std::int64_t, lower::kMaxDims> extent{};
  for (int t = 0; t < axis.terms; ++t) {
    const auto at = static_cast<std::size_t>(t);
    extent[at] = extent_by_dim[static_cast<std::size_t>(axis.dims[at])];
  }
  if (axis.terms == 2) return window_size(axis.pair, {extent[0], extent[1]});
  const std::int64_t span = end_of(axis, extent, 0);
  if (span > kWidestSpan) return -1;
  Bits seen(0, span);
  std::int64_t elements = 0;
  const auto count = [&](std::int64_t element) { elements += seen.add(element) ? 1 : 0; };
  visit_elements(axis, extent, 0, 0, count);
  return elements;
}

bool window_sums(const Nest& nest, const Boundary& at, const WindowAxis& axis, const Moments& when, AxisSums& out) {
  std::vector<Situations> terms;
  terms.reserve(static_cast<std::size_t>(axis.terms));
  for (int t = 0; t < axis.terms; ++t) terms.emplace_back(nest, at, axis.dims[static_cast<std::size_t>(t)], when);
  out = {};
  return combine(axis, terms, 0, 1, {AxisTile{}}, out);
}

}  // namespace plumbline::schedule
