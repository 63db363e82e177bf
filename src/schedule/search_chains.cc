#include "schedule/search_chains.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace plumbline::schedule {
namespace {

std::int64_t passes(std::int64_t size, std::int64_t tile) { return (size + tile - 1) / tile; }

/// Divisors of a product, ascending. Parts are at most 2^40, so trial division ends after 2^20 steps.
std::vector<std::int64_t> divisors(const std::vector<std::int64_t>& parts) {
  std::map<std::int64_t, int> exponents;
  for (std::int64_t n : parts) {
    for (std::int64_t f = 2; f <= n / f; ++f) {
      for (; n % f == 0; n /= f) ++exponents[f];
    }
    if (n > 1) ++exponents[n];
  }
  std::vector<std::int64_t> out{1};
  for (const auto& [prime, exponent] : exponents) {
    const std::size_t before = out.size();
    std::int64_t power = 1;
    for (int e = 1; e <= exponent; ++e) {
      power *= prime;
      for (std::size_t i = 0; i < before; ++i) out.push_back(out[i] * power);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// The least tile for every number of passes over `n`: about 2·√n of them.
std::vector<std::int64_t> distinct_passes(std::int64_t n) {
  std::vector<std::int64_t> tiles;
  for (std::int64_t tile = 1; tile <= n;) {
    tiles.push_back(tile);
    const std::int64_t count = passes(n, tile);
    if (count == 1) break;
    tile = (n + count - 2) / (count - 1);  // the least tile with fewer passes
  }
  return tiles;
}

struct Range {
  std::int64_t low = 1;
  std::int64_t high = 1;
};

/// The member of a range with most factors of two: copies that split find a place on the mesh.
std::int64_t roundest(const Range& range) {
  std::int64_t best = range.high;
  for (std::int64_t step = 2; step <= range.high; step *= 2) {
    if (const std::int64_t multiple = range.high / step * step; multiple >= range.low) best = multiple;
  }
  return best;
}

class ChainMaker {
 public:
  ChainMaker(const std::vector<std::int64_t>& parts, const ChainRules& rules, std::vector<Chain>& chains)
      : rules_(rules), chains_(chains), last_(static_cast<std::size_t>(rules.levels - 1)) {
    for (const std::int64_t part : parts) size_ *= part;
    if (!rules.imperfect) divisors_ = divisors(parts);
  }

  /// Every chain: perfect ones, or of the imperfect ones the least that reach a given number of passes at every level:
  /// any other holds as much, moves as much and uses as many copies as one of these. False when there are too many.
  bool list(std::size_t most) {
    most_ = most;
    chains_.clear();
    if (!rules_.apart && (rules_.imperfect ? size_ > kLargestListed : divisors_.size() > kMostDivisors)) return false;
    for (const std::int64_t registers : tiles_of(size_, rules_.apart || rules_.one_register)) {
      for (const std::int64_t copies : tiles_of(passes(size_, registers), false)) {
        if (copies > rules_.units) break;
        Chain chain;
        chain.extent[last_] = registers;
        chain.laid = chain.copies = copies;
        chain.array = registers * copies;
        if (!extend(chain, rules_.levels - 2, chain.array)) return false;
      }
    }
    return true;
  }

  /// Classes of chains whose factors lie in ranges that grow by `growth`. False when there are too many.
  bool classify(double growth, std::size_t most, bool sample) {
    most_ = most;
    sample_ = sample;
    chains_.clear();
    if (!ranges(growth, size_, tiles_) || !ranges(1 + (growth - 1) / kFinerCopies, rules_.units, fans_)) return false;
    const std::vector<Range> one{{1, 1}};
    for (const Range& registers : rules_.apart || rules_.one_register ? one : tiles_) {
      for (const Range& fan : fans_) {
        if (fan.low > rules_.units || fan.low > passes(size_, registers.low)) break;
        registers_ = registers;
        copies_ = {fan.low, std::min(fan.high, rules_.units)};
        Range array{registers.low * fan.low, registers.high * copies_.high};
        if (!snap(array)) continue;
        held_[last_] = array;
        if (!extend_class(rules_.levels - 2, 0)) return false;
      }
    }
    return true;
  }

  /// A chain of another size as one of this.
  void adopt(Chain chain) const {
    chain.extent[0] = std::max(size_, chain.extent[1]);
    if (rules_.levels == 2) chain.extent[0] = std::max(size_, chain.array);
    if (allowed(chain)) chains_.push_back(measured(chain));
  }

 private:
  /// Tiles grow with the square root of the size and chains nest them: beyond this listing is hopeless.
  static constexpr std::int64_t kLargestListed = std::int64_t{1} << 20;
  static constexpr std::size_t kMostDivisors = 2000;  ///< likewise
  static constexpr std::size_t kMostRanges = 4096;
  static constexpr double kFinerCopies = 8;  ///< copies set the time, so their ranges are narrower

  [[nodiscard]] std::vector<std::int64_t> tiles_of(std::int64_t n, bool only_one) const {
    if (only_one) return {1};
    if (rules_.imperfect) return distinct_passes(n);
    std::vector<std::int64_t> factors;
    for (const std::int64_t f : divisors_) {
      if (f > n) break;
      if (n % f == 0) factors.push_back(f);
    }
    return factors;
  }

  /// The levels outside the array, the innermost first; `inner` is the extent of the tile below.
  bool extend(Chain& chain, int level, std::int64_t inner) {
    if (level == 0) {
      chain.extent[0] = std::max(size_, inner);
      if (allowed(chain)) chains_.push_back(measured(chain));
      return chains_.size() <= most_;
    }
    for (const std::int64_t trips : tiles_of(passes(size_, inner), rules_.apart)) {
      chain.extent[static_cast<std::size_t>(level)] = trips * inner;
      if (!extend(chain, level - 1, trips * inner)) return false;
    }
    return true;
  }

  /// Whether a chain meets every limit.
  [[nodiscard]] bool allowed(const Chain& c) const {
    const int levels = rules_.levels;
    return std::all_of(rules_.limits.begin(), rules_.limits.end(), [&](const FactorBound& limit) {
      const std::int64_t factor = limit.spatial               ? (limit.level == levels - 2 ? c.laid : 1)
                                  : limit.level == levels - 1 ? c.extent[static_cast<std::size_t>(limit.level)]
                                                              : c.trips(limit.level, levels);
      return factor >= limit.fewest && factor <= limit.most;
    });
  }

  /// Sums over the passes of a single chain.
  [[nodiscard]] Chain measured(Chain c) const {
    const std::int64_t registers = c.extent[last_];
    c.moves = 0;
    for (int b = 0; b + 1 < rules_.levels; ++b) {
      if (c.trips(b, rules_.levels) > 1) c.moves |= static_cast<std::uint8_t>(1U << b);
    }
    c.visits[last_] = static_cast<double>(passes(size_, c.array));
    c.delivered[last_] = static_cast<double>(passes(size_, registers));
    for (std::size_t l = 0; l < last_; ++l) {
      const std::int64_t tile = c.extent[l];
      const std::int64_t whole = size_ / tile;
      const std::int64_t rest = size_ % tile;
      c.visits[l] = static_cast<double>(passes(size_, tile));
      c.delivered[l] = static_cast<double>(whole * std::min(c.laid, passes(tile, registers)) +
                                           (rest == 0 ? 0 : std::min(c.laid, passes(rest, registers))));
    }
    for (std::size_t l = 0; l <= last_; ++l) c.held[l] = static_cast<double>(std::min(c.extent[l], size_));
    c.most_delivered = c.delivered[0];
    c.copies = c.laid;
    const std::int64_t full = (size_ - 1) / c.array;
    c.steps = static_cast<double>(full * registers + std::min(registers, size_ - full * c.array));
    c.extent[0] = size_;
    return c;
  }

  bool ranges(double growth, std::int64_t upto, std::vector<Range>& out) const {
    out.clear();
    const auto reach = [&](std::int64_t low) {
      return std::min(static_cast<std::int64_t>(static_cast<double>(low) * growth), size_ - 1);
    };
    if (rules_.imperfect) {
      for (std::int64_t low = 1; low < size_ && low <= upto; low = out.back().high + 1) {
        out.push_back({low, std::max(low, reach(low))});
        if (out.size() > kMostRanges) return false;
      }
    } else {
      for (std::size_t i = 0; i + 1 < divisors_.size() && divisors_[i] <= upto;) {
        const std::int64_t low = divisors_[i];
        std::int64_t high = low;
        for (; i + 1 < divisors_.size() && (divisors_[i] == low || divisors_[i] <= reach(low)); ++i)
          high = divisors_[i];
        out.push_back({low, high});
        if (out.size() > kMostRanges) return false;
      }
    }
    out.push_back({size_, size_});
    return true;
  }

  /// Narrows a range to what an extent can be; false when nothing is left.
  [[nodiscard]] bool snap(Range& range) const {
    if (rules_.imperfect) return range.low <= range.high;
    const auto low = std::lower_bound(divisors_.begin(), divisors_.end(), range.low);
    auto high = std::upper_bound(divisors_.begin(), divisors_.end(), range.high);
    if (low == divisors_.end() || high == divisors_.begin()) return false;
    range = {*low, *--high};
    return range.low <= range.high;
  }

  /// held_[l] is the range of the extent of level l (of the array for the last); `moves` the blocks with a loop.
  bool extend_class(int level, unsigned moves) {
    const Range inner = held_[static_cast<std::size_t>(level) + 1];
    if (level == 0) {
      if (inner.high >= size_) finish({std::max(inner.low, size_), inner.high}, moves);
      if (inner.low < size_) finish({inner.low, std::min(inner.high, size_ - 1)}, moves | 1U);
      return chains_.size() <= most_;
    }
    Range& here = held_[static_cast<std::size_t>(level)];
    here = inner;
    if (!extend_class(level - 1, moves)) return false;
    if (rules_.apart || inner.low >= size_) return true;
    for (const Range& tile : tiles_) {
      here = {std::max(tile.low, std::min(2 * inner.low, size_)), tile.high};
      if (!snap(here)) continue;
      if (!extend_class(level - 1, moves | (1U << level))) return false;
    }
    return true;
  }

  /// A class whose outermost tile lies in `outer`: ranges are narrowed, figures taken, a member found.
  void finish(const Range& outer, unsigned moves) {
    std::array<Range, kSearchLevels> at = held_;
    at[0] = {size_, size_};
    at[1] = {std::max(at[1].low, outer.low), std::min(at[1].high, outer.high)};
    if (!snap(at[1])) return;
    for (std::size_t l = 2; l <= last_; ++l) {
      const bool moving = ((moves >> (l - 1)) & 1U) != 0;
      if (!moving) {
        at[l] = {std::max(at[l].low, at[l - 1].low), std::min(at[l].high, at[l - 1].high)};
      } else {
        at[l].high = std::min(at[l].high, at[l - 1].high >= size_ ? size_ - 1 : at[l - 1].high / 2);
      }
      if (!snap(at[l])) return;
    }
    Range copies{copies_.low, std::min(copies_.high, at[last_].high / registers_.low)};
    Range registers{registers_.low, std::min(registers_.high, at[last_].high / copies.low)};
    if (copies.low > copies.high || registers.low > registers.high || !may_be_allowed(at, copies, registers, moves))
      return;
    Chain c;
    const bool found = find_member(at, copies, registers, moves, c);
    if (sample_) {
      if (found) chains_.push_back(measured(c));
      return;
    }
    if (!found && !rules_.imperfect) return;  // every member was looked at
    if (!found) c.laid = 0;
    chains_.push_back(bounded(at, copies, registers, moves, c));
  }

  [[nodiscard]] bool may_be_allowed(const std::array<Range, kSearchLevels>& at, const Range& copies,
                                    const Range& registers, unsigned moves) const {
    return std::all_of(rules_.limits.begin(), rules_.limits.end(), [&](const FactorBound& limit) {
      Range factor{1, 1};
      if (limit.spatial) {
        if (limit.level == rules_.levels - 2) factor = copies;
      } else if (limit.level == rules_.levels - 1) {
        factor = registers;
      } else if (((moves >> limit.level) & 1U) != 0) {
        const auto l = static_cast<std::size_t>(limit.level);
        factor = {2, passes(at[l].high, at[l + 1].low)};
      }
      return factor.high >= limit.fewest && factor.low <= limit.most;
    });
  }

  /// The first member of a class. Of imperfect factors one is made up, and may miss the limits.
  bool find_member(const std::array<Range, kSearchLevels>& at, const Range& copies, const Range& registers,
                   unsigned moves, Chain& c) const {
    if (rules_.imperfect) {
      c.extent[last_] = registers.low;
      c.laid = roundest(copies);
      c.array = registers.low * c.laid;
      std::int64_t inner = c.array;
      for (int l = rules_.levels - 2; l >= 1; --l) {
        if (((moves >> l) & 1U) != 0)
          inner *= std::max<std::int64_t>(2, passes(at[static_cast<std::size_t>(l)].low, inner));
        c.extent[static_cast<std::size_t>(l)] = inner;
      }
      c.extent[0] = std::max(size_, inner);
      return allowed(c);
    }
    const auto each = [&](const Range& range, auto&& visit) {
      for (auto d = std::lower_bound(divisors_.begin(), divisors_.end(), range.low);
           d != divisors_.end() && *d <= range.high; ++d) {
        if (visit(*d)) return true;
      }
      return false;
    };
    return each(registers, [&](std::int64_t r) {
      return each(copies, [&](std::int64_t fan) {
        if (size_ / r % fan != 0) return false;
        c.extent[last_] = r;
        c.laid = fan;
        c.array = r * fan;
        return find_outer(at, rules_.levels - 2, moves, c.array, c);
      });
    });
  }

  bool find_outer(const std::array<Range, kSearchLevels>& at, int level, unsigned moves, std::int64_t inner,
                  Chain& c) const {
    if (level == 0) {
      c.extent[0] = size_;
      return allowed(c);
    }
    const auto l = static_cast<std::size_t>(level);
    if (((moves >> level) & 1U) == 0) {
      if (inner < at[l].low || inner > at[l].high) return false;
      c.extent[l] = inner;
      return find_outer(at, level - 1, moves, inner, c);
    }
    for (auto d = std::lower_bound(divisors_.begin(), divisors_.end(), std::max(at[l].low, 2 * inner));
         d != divisors_.end() && *d <= at[l].high; ++d) {
      if (*d % inner != 0) continue;
      c.extent[l] = *d;
      if (find_outer(at, level - 1, moves, *d, c)) return true;
    }
    return false;
  }

  /// Figures that hold for every member.
  [[nodiscard]] Chain bounded(const std::array<Range, kSearchLevels>& at, const Range& copies, const Range& registers,
                              unsigned moves, Chain c) const {
    c.moves = static_cast<std::uint8_t>(moves);
    c.single = false;
    c.copies = copies.low;
    c.extent[0] = size_;
    for (std::size_t l = 0; l <= last_; ++l) {
      c.visits[l] = static_cast<double>(passes(size_, at[l].high));
      c.held[l] = static_cast<double>(std::min(l == last_ ? registers.low : at[l].low, size_));
    }
    const auto few = static_cast<double>(std::min(copies.low, passes(size_, registers.high)));
    for (std::size_t l = 0; l < last_; ++l) {
      // Whole tiles use every copy, the last one at least one.
      const double whole = c.visits[l] - 1;
      c.delivered[l] = whole == 0         ? few
                       : rules_.imperfect ? whole * static_cast<double>(copies.low) + 1
                                          : c.visits[l] * static_cast<double>(copies.low);
    }
    c.delivered[last_] = static_cast<double>(passes(size_, registers.high));
    c.most_delivered = static_cast<double>(std::min(copies.high, passes(size_, registers.low)));
    c.steps = static_cast<double>(passes(size_, copies.high));
    return c;
  }

  const ChainRules& rules_;
  std::vector<Chain>& chains_;
  std::size_t last_;
  std::int64_t size_ = 1;
  std::size_t most_ = 0;
  bool sample_ = false;
  std::vector<std::int64_t> divisors_;
  std::vector<Range> tiles_, fans_;
  std::array<Range, kSearchLevels> held_{};
  Range registers_, copies_;
};

/// A number is rounded up by one part in this many at most.
constexpr std::int64_t kRounding = 64;

/// How coarse classes may become, finest first.
constexpr double kGrowths[] = {1.01, 1.02, 1.035, 1.05, 1.07, 1.1, 1.15, 1.2, 1.3,  1.4, 1.55,
                               1.7,  2,    2.5,   3,    4,    8,   16,   64,  1024, 1e6, 1e13};

}  // namespace

std::int64_t Chain::trips(int block, int levels) const {
  const auto b = static_cast<std::size_t>(block);
  if (block + 1 == levels) return extent[b];
  const std::int64_t inner = block + 2 == levels ? array : extent[b + 1];
  return passes(extent[b], inner);
}

ChainList make_chains(const std::vector<std::int64_t>& parts, const ChainRules& rules, std::size_t most,
                      bool classes_allowed, std::vector<Chain>& chains) {
  ChainMaker maker(parts, rules, chains);
  if (maker.list(most)) return ChainList::complete;
  for (const double growth : kGrowths) {
    if (maker.classify(growth, classes_allowed ? std::min(most, kMostClasses) : most, !classes_allowed)) break;
  }
  return classes_allowed ? ChainList::classes : ChainList::sample;
}

void sample_chains(const std::vector<std::int64_t>& parts, const ChainRules& rules, std::size_t most,
                   std::vector<Chain>& chains) {
  if (!rules.imperfect) {
    make_chains(parts, rules, most, false, chains);
    return;
  }
  std::int64_t size = 1;
  for (const std::int64_t part : parts) size *= part;
  ChainRules perfect = rules;
  perfect.imperfect = false;
  perfect.limits.clear();
  chains.clear();
  ChainMaker maker(parts, rules, chains);
  for (const std::int64_t near : {size, roundest({size + 1, size + 1 + size / kRounding})}) {
    std::vector<Chain> whole;
    make_chains({near}, perfect, most / 2, false, whole);
    for (const Chain& chain : whole) maker.adopt(chain);
  }
}

}  // namespace plumbline::schedule
