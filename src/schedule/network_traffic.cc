#include "schedule/network_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "schedule/transfer.h"

namespace plumbline::schedule {
namespace {

using Wide = __int128;

constexpr std::int64_t kFar = std::int64_t{1} << 62U;  // beyond every size

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > kFar ? kFar : product;
}

std::int64_t parts(std::int64_t n, std::int64_t each) { return n <= 0 ? 0 : (n - 1) / each + 1; }

/// Values that a run of temporal digits of one dimension takes: multiples of `step` that are none of `skip`.
struct Values {
  std::int64_t step = 1;
  std::int64_t skip = 0;  ///< 0 = none
  [[nodiscard]] std::int64_t below(std::int64_t n) const { return parts(n, step) - (skip > 0 ? parts(n, skip) : 0); }
  [[nodiscard]] bool has(std::int64_t n) const { return n % step == 0 && (skip == 0 || n % skip != 0); }
};

/// Instances [from, until) of a dimension's spread hold a tile of `full` words each, the last of them `last`.
struct Spread {
  std::int64_t from = 0;
  std::int64_t until = 1;
  std::int64_t full = 1;
  std::int64_t last = 1;
  Wide count = 1;  ///< moments
};

struct SpatialLoop {
  std::int64_t bound = 1;
  bool along_x = false;
  std::size_t place = 0;  ///< among the loops of its axis
};

/// One dimension outside the boundary: index = (outside · spread + place) · inside · tile + …
struct Dimension {
  bool used = false;
  bool windowed = false;  ///< its words are those of a window axis; here it only counts moments
  std::int64_t size = 1;
  std::int64_t tile = 1;
  std::vector<int> outside;  ///< temporal loops around the grid, as indices into the nest
  std::vector<SpatialLoop> spatial;
  std::vector<int> inside;  ///< temporal loops within each instance
  std::int64_t spread = 1;
  std::int64_t inner = 1;

  [[nodiscard]] std::int64_t step() const { return std::min(size, times(tile, inner)); }
  [[nodiscard]] std::int64_t pass() const { return std::min(size, times(step(), spread)); }
  [[nodiscard]] std::int64_t passes() const { return parts(size, pass()); }
};

struct Box {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  ///< one per spatial loop of the dimension
  std::int64_t words = 1;
};

/// [from, until) of mixed-radix numbers as boxes of digits.
void split_range(const std::vector<SpatialLoop>& loops, std::size_t at, std::int64_t from, std::int64_t until,
                 std::vector<std::pair<std::int64_t, std::int64_t>>& prefix, std::vector<Box>& out,
                 std::int64_t words) {
  if (from >= until) return;
  if (at == loops.size()) {
    out.push_back({prefix, words});
    return;
  }
  std::int64_t rest = 1;
  for (std::size_t i = at + 1; i < loops.size(); ++i) rest *= loops[i].bound;
  const auto part = [&](std::int64_t low, std::int64_t high, std::int64_t inner_from, std::int64_t inner_until) {
    if (low >= high) return;
    prefix.emplace_back(low, high);
    split_range(loops, at + 1, inner_from, inner_until, prefix, out, words);
    prefix.pop_back();
  };
  const std::int64_t first = from / rest;
  const std::int64_t last = until / rest;
  if (first == last) {
    part(first, first + 1, from % rest, until % rest);
    return;
  }
  const std::int64_t whole = parts(from, rest);
  if (from % rest != 0) part(first, first + 1, from % rest, rest);
  part(whole, last, 0, rest);
  if (until % rest != 0) part(last, last + 1, 0, until % rest);
}

class Reader {
 public:
  Reader(const Evaluator& evaluator, const Mapping& mapping, int outer, int inner, std::size_t operand)
      : evaluator_(evaluator), mapping_(mapping), outer_(outer), inner_(inner), operand_(operand) {}

  Result<MappedTraffic> run() {
    const Verdict verdict = evaluator_.flatten_mapping(mapping_, nest_);
    if (!verdict.ok()) return evaluator_.explain(verdict);
    at_ = {inner_, nest_.first[static_cast<std::size_t>(outer_)], nest_.first[static_cast<std::size_t>(inner_)]};
    PL_TRY_STATUS(read_dimensions());
    const bool outputs = operand_ + 1 == evaluator_.einsum().operands.size();
    const bool latched = inner_ < evaluator_.levels();
    MappedTraffic made;
    made.moved = shaped(outputs ? Direction::outward : Direction::inward);
    made.returned = shaped(Direction::inward);
    if (latched) {
      sum_steps();
    } else {
      add({at_.end, -1}, {at_.end, -1}, false, 1);
    }
    PL_TRY_STATUS(check(made));
    PL_TRY_STATUS(unload(made.moved));
    if (outputs && latched) {
      // What comes back is all that moves but the first touch of every sum.
      add({at_.end, -1}, {0, -1}, false, -1);
      PL_TRY_STATUS(unload(made.returned));
    }
    if (!narrow_) return evaluator_.explain({Fault::too_many_loops, inner_, static_cast<int>(operand_)});
    return made;
  }

 private:
  Status read_dimensions() {
    const Projection& projection = evaluator_.projection(operand_);
    dims_.resize(static_cast<std::size_t>(nest_.rank));
    for (int d = 0; d < nest_.rank; ++d) {
      const auto at = static_cast<std::size_t>(d);
      dims_[at].used = ((projection.relevant >> d) & 1U) != 0;
      dims_[at].size = nest_.size[at];
      dims_[at].tile = nest_.extent[static_cast<std::size_t>(inner_)][at];
    }
    int grid = -1;
    int i = 0;  // the nest leaves out loops of one trip and keeps the order
    for (std::size_t l = 0; l < static_cast<std::size_t>(inner_); ++l) {
      for (const Loop& loop : mapping_.levels[l].loops) {
        if (loop.bound == 1) continue;
        Dimension& dim = dims_[static_cast<std::size_t>(loop.dim)];
        if (loop.kind == LoopKind::temporal) {
          (grid < 0 ? dim.outside : dim.inside).push_back(i);
          if (grid >= 0) dim.inner = times(dim.inner, loop.bound);
        } else if (static_cast<int>(l) < outer_ || (grid >= 0 && grid != static_cast<int>(l))) {
          return make_error("unsupported", {}, "a network between grids of more than one level");
        } else {
          grid = static_cast<int>(l);
          const bool along_x = loop.kind == LoopKind::spatial_x;
          place_loop(loop, along_x, dim);
        }
        ++i;
      }
    }
    PL_CHECK(i == at_.end);
    for (int w = 0; w < projection.windows; ++w) {
      const WindowAxis& axis = projection.axes[static_cast<std::size_t>(w)];
      const auto terms = std::span(axis.dims).first(static_cast<std::size_t>(axis.terms));
      // A window that lies in one instance is a factor; one spread over the grid is taken as if it were flat.
      if (std::any_of(terms.begin(), terms.end(), [&](int d) { return dims_[static_cast<std::size_t>(d)].spread > 1; }))
        continue;
      for (const int d : terms) dims_[static_cast<std::size_t>(d)].windowed = true;
      windows_.push_back(&axis);
    }
    return Done{};
  }

  /// Neighbouring loops of one dimension along one axis count as one digit, so that a ragged range of them is one
  /// range.
  void place_loop(const Loop& loop, bool along_x, Dimension& dim) {
    std::vector<Digit>& axis = along_x ? x_ : y_;
    dim.spread *= loop.bound;
    if (!dim.spatial.empty() && dim.spatial.back().along_x == along_x && dim.spatial.back().place + 1 == axis.size()) {
      dim.spatial.back().bound *= loop.bound;
      axis.back().bound *= loop.bound;
      axis.back().until = axis.back().bound;
      return;
    }
    dim.spatial.push_back({loop.bound, along_x, axis.size()});
    axis.push_back({loop.bound, !dim.used, 0, loop.bound});
  }

  [[nodiscard]] NetworkTraffic shaped(Direction direction) const {
    const auto shared = [](const std::vector<Digit>& digits) {
      return std::any_of(digits.begin(), digits.end(), [](const Digit& digit) { return digit.shared; });
    };
    NetworkTraffic traffic;
    traffic.direction = direction;
    traffic.share_x = shared(x_);
    traffic.share_y = shared(y_);
    return traffic;
  }

  [[nodiscard]] Values values(const std::vector<int>& loops, const Moments& when) const {
    Values found;
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      const std::int64_t bound = nest_.loops[static_cast<std::size_t>(*loop)].bound;
      if (*loop >= when.prefix) {
        found.step = times(found.step, bound);
      } else if (*loop == when.stepping) {
        found.skip = times(found.step, bound);
      }
    }
    return found;
  }

  /// Instances with a tile at the given moments.
  [[nodiscard]] std::vector<Spread> held(const Dimension& dim, const Moments& when) const {
    const Values outside = values(dim.outside, when);
    const Values inside = values(dim.inside, when);
    const std::int64_t last = dim.passes() - 1;
    std::vector<Spread> found;
    const auto add = [&](std::int64_t until, std::int64_t last_words, Wide count) {
      if (until > 0 && count > 0) found.push_back({0, until, dim.tile, last_words, count});
    };
    add(dim.spread, dim.tile, static_cast<Wide>(outside.below(last)) * inside.below(dim.inner));
    if (!outside.has(last)) return found;
    const Tail tail = tail_of(dim);
    add(tail.whole + 1, dim.tile, inside.below(tail.step));
    add(tail.whole + 1, tail.words, inside.has(tail.step) ? 1 : 0);
    if (tail.whole > 0) add(tail.whole, dim.tile, inside.below(dim.inner) - inside.below(tail.step + 1));
    return found;
  }

  /// Of these, the instances that have no later tile to fall back from: they hold it already.
  [[nodiscard]] std::vector<Spread> kept(const Dimension& dim, const Moments& when) const {
    const bool outside_resets =
        std::any_of(dim.outside.begin(), dim.outside.end(), [&](int i) { return i >= when.prefix; });
    const bool inside_resets =
        std::any_of(dim.inside.begin(), dim.inside.end(), [&](int i) { return i >= when.prefix; });
    if (!outside_resets && !inside_resets) return held(dim, when);
    const Values outside = values(dim.outside, when);
    const std::int64_t last = dim.passes() - 1;
    const Tail tail = tail_of(dim);
    std::vector<Spread> found;
    if (inside_resets) {
      if (outside.has(last) && values(dim.inside, when).has(tail.step)) {
        found.push_back({tail.whole, tail.whole + 1, dim.tile, tail.words, 1});
      }
      return found;
    }
    PL_CHECK(dim.inner == 1);  // loops within an instance stand inside those around the grid
    if (last > 0 && outside.has(last - 1) && tail.whole + 1 < dim.spread) {
      found.push_back({tail.whole + 1, dim.spread, dim.tile, dim.tile, 1});
    }
    if (outside.has(last)) found.push_back({0, tail.whole + 1, dim.tile, tail.words, 1});
    return found;
  }

  /// The last pass: its last index lies in instance `whole`, at value `step` of the loops within it, `words` deep.
  struct Tail {
    std::int64_t whole = 0;
    std::int64_t step = 0;
    std::int64_t words = 1;
  };
  [[nodiscard]] static Tail tail_of(const Dimension& dim) {
    const std::int64_t index = (dim.size - 1) % dim.pass();
    return {index / dim.step(), index % dim.step() / dim.tile, index % dim.tile + 1};
  }

  /// Words of the windows that lie in one instance.
  Wide window_words(const Moments& when, bool kept_words) {
    Wide words = 1;
    for (const WindowAxis* axis : windows_) {
      Moments own = when;
      const auto terms = std::span(axis->dims).first(static_cast<std::size_t>(axis->terms));
      if (own.stepping >= 0 &&
          std::find(terms.begin(), terms.end(), nest_.loops[static_cast<std::size_t>(own.stepping)].dim) == terms.end())
        own.stepping = -1;
      AxisSums sums;
      narrow_ = window_sums(nest_, at_, *axis, own, sums) && narrow_;
      words *= kept_words ? sums.kept : sums.held;
    }
    return words;
  }

  /// `sign` × the words that `used` moments of the operand's dimensions and `idle` moments of the others move.
  void add(const Moments& used, const Moments& idle, bool kept_words, int sign) {
    const Wide windows = window_words(used, kept_words);
    if (windows == 0 || !narrow_) return;
    spreads_.clear();
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const Dimension& dim = dims_[d];
      if (dim.windowed) {
        spreads_.emplace_back(1);
        continue;
      }
      Moments when = dim.used ? used : idle;
      if (when.stepping >= 0 && nest_.loops[static_cast<std::size_t>(when.stepping)].dim != static_cast<int>(d))
        when.stepping = -1;
      if (kept_words && dim.used && when.stepping >= 0) return;  // a used loop that steps keeps nothing
      spreads_.push_back(kept_words && dim.used ? kept(dim, when) : held(dim, when));
    }
    combine(0, windows * sign);
  }

  void sum_steps() {
    add({0, -1}, {0, -1}, false, 1);
    for (int i = 0; i < at_.end; ++i) {
      if (nest_.loops[static_cast<std::size_t>(i)].spatial) continue;
      add({i + 1, i}, {i + 1, i}, false, 1);
      add({i + 1, i}, {i + 1, i}, true, -1);
    }
  }

  /// Every combination of the dimensions' spreads, as digits along the axes.
  void combine(std::size_t d, Wide words) {
    if (d == dims_.size()) {
      std::vector<std::int64_t> key;
      for (const auto* digits : {&x_, &y_}) {
        for (const Digit& digit : *digits) key.insert(key.end(), {digit.from, digit.until});
      }
      bursts_[key] += words;
      return;
    }
    for (const Spread& spread : spreads_[d]) {
      const Dimension& dim = dims_[d];
      std::vector<Box> boxes;
      std::vector<std::pair<std::int64_t, std::int64_t>> prefix;
      const std::int64_t full = dim.used && !dim.windowed ? spread.full : 1;
      const std::int64_t last = dim.used && !dim.windowed ? spread.last : 1;
      const std::int64_t even = full == last ? spread.until : spread.until - 1;
      split_range(dim.spatial, 0, spread.from, even, prefix, boxes, full);
      if (even < spread.until) split_range(dim.spatial, 0, even, spread.until, prefix, boxes, last);
      for (const Box& box : boxes) {
        for (std::size_t i = 0; i < dim.spatial.size(); ++i) {
          Digit& digit = (dim.spatial[i].along_x ? x_ : y_)[dim.spatial[i].place];
          digit.from = box.ranges[i].first;
          digit.until = box.ranges[i].second;
        }
        combine(d + 1, words * spread.count * box.words);
      }
    }
  }

  /// Words and receivers against the counting engine.
  Status check(MappedTraffic& made) const {
    PL_TRY(const Transfer counted, evaluator_.transfer_between(mapping_, outer_, inner_, operand_));
    Wide groups = 0;
    Wide receivers = 0;
    for (const auto& [key, words] : bursts_) {
      Wide shared = 1;
      Wide apart = 1;
      std::size_t at = 0;
      for (const auto* digits : {&x_, &y_}) {
        for (const Digit& digit : *digits) {
          (digit.shared ? shared : apart) *= key[at + 1] - key[at];
          at += 2;
        }
      }
      groups += words * apart;
      receivers += words * apart * shared;
    }
    made.exact = groups == counted.merged && receivers == counted.delivered;
    return Done{};
  }

  /// The bursts as traffic; those that cancel are left out.
  Status unload(NetworkTraffic& traffic) {
    for (const auto& [key, words] : bursts_) {
      if (words == 0) continue;
      if (words > INT64_MAX || words < -Wide{INT64_MAX}) {
        return make_error("overflow", {}, "more than 2^63 - 1 words in a network");
      }
      Burst burst{x_, y_, static_cast<std::int64_t>(words)};
      std::size_t at = 0;
      for (auto* digits : {&burst.x, &burst.y}) {
        for (Digit& digit : *digits) {
          digit.from = key[at++];
          digit.until = key[at++];
        }
      }
      traffic.bursts.push_back(std::move(burst));
    }
    return Done{};
  }

  const Evaluator& evaluator_;
  const Mapping& mapping_;
  int outer_;
  int inner_;
  std::size_t operand_;
  Nest nest_;
  Boundary at_;
  bool narrow_ = true;  ///< every window could be counted
  std::vector<Dimension> dims_;
  std::vector<const WindowAxis*> windows_;
  std::vector<Digit> x_;  ///< digits of the column index, outermost first
  std::vector<Digit> y_;
  std::vector<std::vector<Spread>> spreads_;
  std::map<std::vector<std::int64_t>, Wide> bursts_;  ///< words per group, by the digits' ranges
};

}  // namespace

Result<MappedTraffic> find_network_traffic(const Evaluator& evaluator, const Mapping& mapping, int outer, int inner,
                                           std::size_t operand) {
  PL_CHECK(outer >= 0 && outer < inner && inner <= evaluator.levels() && operand < evaluator.einsum().operands.size());
  return Reader(evaluator, mapping, outer, inner, operand).run();
}

}  // namespace plumbline::schedule
