#include "schedule/walk_boundary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace plumbline::schedule {

std::vector<WalkPoint> loop_positions(const std::vector<NestLoop>& loops, std::uint32_t dims) {
  std::vector<WalkPoint> result{WalkPoint{}};
  for (const NestLoop& loop : loops) {
    if (((dims >> loop.dim) & 1U) == 0) continue;
    std::vector<WalkPoint> next;
    for (const WalkPoint& point : result) {
      for (std::int64_t x = 0; x < loop.bound; ++x) {
        WalkPoint moved = point;
        moved[static_cast<std::size_t>(loop.dim)] += x * loop.stride;
        next.push_back(moved);
      }
    }
    result = std::move(next);
  }
  return result;
}

void walk_indices(const WalkScene& scene, const lower::Axis& axis, const WalkPoint& base,
                  std::vector<std::int64_t>& out) {
  out.assign(1, 0);
  for (const lower::AxisTerm& term : axis) {
    const auto d = static_cast<std::size_t>(term.dim);
    const std::int64_t end = std::min(base[d] + scene.tile[d], scene.size[d]);
    std::vector<std::int64_t> next;
    next.reserve(out.size() * static_cast<std::size_t>(end - base[d]));
    for (const std::int64_t from : out) {
      for (std::int64_t x = base[d]; x < end; ++x) next.push_back(from + term.coefficient * x);
    }
    out = std::move(next);
  }
  if (axis.size() > 1) {
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  }
}

namespace {

struct Moved {
  std::int64_t merged = 0, delivered = 0;          ///< words entering tiles
  std::int64_t refilled_merged = 0, refilled = 0;  ///< of these, the ones met before
  std::int64_t drained_merged = 0, drained = 0;    ///< words leaving tiles
  std::int64_t visits = 0;
};

WalkPoint sum(const WalkPoint& a, const WalkPoint& b) {
  WalkPoint c;
  for (std::size_t d = 0; d < c.size(); ++d) c[d] = a[d] + b[d];
  return c;
}

bool inside(const WalkScene& scene, const WalkPoint& at, std::uint32_t dims) {
  for (int d = 0; d < scene.rank; ++d) {
    if (((dims >> d) & 1U) != 0 && at[static_cast<std::size_t>(d)] >= scene.size[static_cast<std::size_t>(d)])
      return false;
  }
  return true;
}

std::vector<std::int64_t> tile_words(const WalkScene& scene, const WalkPoint& base) {
  std::vector<std::int64_t> words{0};
  std::vector<std::int64_t> indices;
  for (std::size_t a = 0; a < scene.operand->axes.size(); ++a) {
    walk_indices(scene, scene.operand->axes[a], base, indices);
    if (indices.size() == 1) {
      for (std::int64_t& word : words) word += indices[0] * scene.pitch[a];
      continue;
    }
    std::vector<std::int64_t> next;
    next.reserve(words.size() * indices.size());
    for (const std::int64_t word : words) {
      for (const std::int64_t index : indices) next.push_back(word + index * scene.pitch[a]);
    }
    words = std::move(next);
  }
  return words;  // ascending: pitches grow with the axis and indices ascend
}

/// Instances that differ only in dimensions the operand does not use, and that are active at the same times.
struct Twins {
  WalkPoint offset{};
  std::int64_t count = 1;
};
struct Parents {
  std::int64_t count = 1;
  WalkPoint offset{};
  std::vector<Twins> children;
};

/// How many digits of the temporal loops of each unused dimension leave an instance at `offset` inside the problem.
WalkPoint active_steps(const WalkScene& scene, const WalkPoint& offset) {
  WalkPoint steps{};
  for (int d = 0; d < scene.rank; ++d) {
    if (((scene.used >> d) & 1U) != 0) continue;
    for (const WalkPoint& at : loop_positions(scene.loops.temporal, 1U << d)) {
      if (inside(scene, sum(at, offset), 1U << d)) ++steps[static_cast<std::size_t>(d)];
    }
  }
  return steps;
}

bool ever_active(const WalkScene& scene, const WalkPoint& steps) {
  for (int d = 0; d < scene.rank; ++d) {
    if (((scene.used >> d) & 1U) == 0 && steps[static_cast<std::size_t>(d)] == 0) return false;
  }
  return true;
}

std::vector<Parents> unused_parents(const WalkScene& scene, bool fold) {
  std::vector<Parents> result;
  std::map<std::vector<std::pair<WalkPoint, std::int64_t>>, std::size_t> known;
  const std::uint32_t unused = ~scene.used;
  const std::vector<WalkPoint> inner = loop_positions(scene.loops.inner, unused);
  for (const WalkPoint& outer : loop_positions(scene.loops.outer, unused)) {
    Parents parents;
    parents.offset = outer;
    std::map<WalkPoint, std::size_t> kinds;
    std::vector<std::pair<WalkPoint, std::int64_t>> signature;
    for (const WalkPoint& offset : inner) {
      if (!fold) {
        if (inside(scene, sum(outer, offset), unused)) parents.children.push_back({offset, 1});
        continue;
      }
      const WalkPoint steps = active_steps(scene, sum(outer, offset));
      if (!ever_active(scene, steps)) continue;
      const auto [at, fresh] = kinds.try_emplace(steps, parents.children.size());
      if (fresh) parents.children.push_back({offset, 0}), signature.emplace_back(steps, 0);
      ++parents.children[at->second].count;
      ++signature[at->second].second;
    }
    if (parents.children.empty()) continue;
    if (fold) {
      const auto [at, fresh] = known.try_emplace(signature, result.size());
      if (!fresh) {
        ++result[at->second].count;
        continue;
      }
    }
    result.push_back(std::move(parents));
  }
  return result;
}

/// Steps through time; keeps each instance's tile until its next active step.
class TimeWalk {
 public:
  TimeWalk(const WalkScene& scene, bool fold, std::int64_t most_visits)
      : scene_(scene), most_visits_(most_visits), parents_(unused_parents(scene, fold)) {
    outer_ = loop_positions(scene.loops.outer, scene.used);
    inner_ = loop_positions(scene.loops.inner, scene.used);
    for (const Parents& each : parents_) slots_ += each.children.size();
    held_.assign(outer_.size() * inner_.size() * slots_, kNothing);
    bases_.resize(held_.size());
    entered_.assign(static_cast<std::size_t>(scene.words), -1);
    left_ = first_met_ = entered_;
    for (std::size_t a = 0; a < scene.operand->axes.size(); ++a) {
      for (const lower::AxisTerm& term : scene.operand->axes[a]) {
        const auto d = static_cast<std::size_t>(term.dim);
        weight_[d] += term.coefficient * scene.pitch[a];
        single_ = single_ && scene.tile[d] == 1;
      }
    }
  }

  /// False when there was more to visit than allowed.
  bool run(Moved& moved) {
    std::vector<std::int64_t> digits(scene_.loops.temporal.size(), 0);
    while (true) {
      WalkPoint now{};
      for (std::size_t k = 0; k < digits.size(); ++k) {
        now[static_cast<std::size_t>(scene_.loops.temporal[k].dim)] += digits[k] * scene_.loops.temporal[k].stride;
      }
      if (inside(scene_, now, ~0U)) {
        step(now, moved);
        ++clock_;
      }
      if (moved.visits > most_visits_) return false;
      std::size_t k = digits.size();
      while (k-- > 0) {
        if (++digits[k] < scene_.loops.temporal[k].bound) break;
        digits[k] = 0;
      }
      if (k == static_cast<std::size_t>(-1)) break;
    }
    if (scene_.latched) drain(moved);
    return true;
  }

 private:
  static constexpr std::int64_t kNothing = -1;

  template <class Visit>
  void each_group(Visit visit) {
    std::size_t slot = 0;
    for (std::size_t o = 0; o < outer_.size(); ++o) {
      for (const Parents& parents : parents_) {
        ++group_;
        for (const Twins& twins : parents.children) {
          for (const WalkPoint& inner : inner_) {
            visit(sum(outer_[o], inner), sum(parents.offset, twins.offset), parents.count, twins.count, slot);
            ++slot;
          }
        }
      }
    }
  }

  void step(const WalkPoint& now, Moved& moved) {
    each_group(
        [&](const WalkPoint& place, const WalkPoint& twin, std::int64_t parents, std::int64_t twins, std::size_t slot) {
          ++moved.visits;
          const WalkPoint base = sum(now, place);
          if (!inside(scene_, base, scene_.used) || !inside(scene_, sum(now, twin), ~scene_.used)) return;
          if (scene_.latched && held_[slot] != kNothing && same_tile(bases_[slot], base)) return;
          change(slot, base, parents, twins, moved);
        });
  }

  [[nodiscard]] bool same_tile(const WalkPoint& a, const WalkPoint& b) const {
    for (int d = 0; d < scene_.rank; ++d) {
      const auto at = static_cast<std::size_t>(d);
      if (((scene_.used >> d) & 1U) != 0 && a[at] != b[at]) return false;
    }
    return true;
  }

  void change(std::size_t slot, const WalkPoint& base, std::int64_t parents, std::int64_t twins, Moved& moved) {
    if (single_) return change_word(slot, base, parents, twins, moved);
    const std::vector<std::int64_t> next = tile_words(scene_, base);
    std::vector<std::int64_t> before;
    if (scene_.latched && held_[slot] != kNothing) before = tile_words(scene_, bases_[slot]);
    moved.visits += static_cast<std::int64_t>(next.size() + before.size());
    auto old = before.begin();
    for (const std::int64_t word : next) {
      while (old != before.end() && *old < word) leave(*old++, parents, twins, moved);
      if (old != before.end() && *old == word) {
        ++old;
        continue;
      }
      enter(word, parents, twins, moved);
    }
    while (old != before.end()) leave(*old++, parents, twins, moved);
    held_[slot] = 1;
    bases_[slot] = base;
  }

  /// The same for tiles of one word.
  void change_word(std::size_t slot, const WalkPoint& base, std::int64_t parents, std::int64_t twins, Moved& moved) {
    const bool had = scene_.latched && held_[slot] != kNothing;
    const std::int64_t next = word_at(base);
    const std::int64_t before = had ? word_at(bases_[slot]) : kNothing;
    moved.visits += had ? 2 : 1;
    if (before != next) {
      enter(next, parents, twins, moved);
      if (had) leave(before, parents, twins, moved);
    }
    held_[slot] = 1;
    bases_[slot] = base;
  }

  [[nodiscard]] std::int64_t word_at(const WalkPoint& base) const {
    std::int64_t word = 0;
    for (int d = 0; d < scene_.rank; ++d)
      word += base[static_cast<std::size_t>(d)] * weight_[static_cast<std::size_t>(d)];
    return word;
  }

  void enter(std::int64_t word, std::int64_t parents, std::int64_t twins, Moved& moved) {
    const auto w = static_cast<std::size_t>(word);
    const bool merged = entered_[w] != group_;
    entered_[w] = group_;
    moved.delivered += parents * twins;
    moved.merged += merged ? parents : 0;
    if (first_met_[w] < 0) first_met_[w] = clock_;
    if (first_met_[w] == clock_) return;
    moved.refilled += parents * twins;
    moved.refilled_merged += merged ? parents : 0;
  }

  void leave(std::int64_t word, std::int64_t parents, std::int64_t twins, Moved& moved) {
    const auto w = static_cast<std::size_t>(word);
    moved.drained += parents * twins;
    moved.drained_merged += left_[w] != group_ ? parents : 0;
    left_[w] = group_;
  }

  void drain(Moved& moved) {
    each_group([&](const WalkPoint&, const WalkPoint&, std::int64_t parents, std::int64_t twins, std::size_t slot) {
      if (held_[slot] == kNothing) return;
      for (const std::int64_t word : tile_words(scene_, bases_[slot])) leave(word, parents, twins, moved);
    });
  }

  const WalkScene& scene_;
  std::int64_t most_visits_;
  std::vector<Parents> parents_;
  std::vector<WalkPoint> outer_, inner_;
  std::size_t slots_ = 0;
  std::vector<std::int8_t> held_;
  std::vector<WalkPoint> bases_;  ///< by slot: start of the tile held
  std::vector<std::int64_t> entered_, left_, first_met_;
  WalkPoint weight_{};      ///< what a step of each dimension adds to a word's number
  bool single_ = true;      ///< tiles hold one word
  std::int64_t group_ = 0;  ///< one number per parent and step
  std::int64_t clock_ = 0;
};

double steps_of(const std::vector<NestLoop>& loops) {
  return std::accumulate(loops.begin(), loops.end(), 1.0,
                         [](double n, const NestLoop& l) { return n * static_cast<double>(l.bound); });
}

/// Factors by which a folded walk repeats: unused dimensions of an unlatched boundary, where every step is alike.
struct Repeats {
  std::int64_t parents = 1;  ///< active parents summed over the folded steps
  std::int64_t children = 1;
  std::int64_t parents_once = 1;  ///< parents that are ever active
};

Repeats fold_unlatched(WalkScene& scene) {
  Repeats total;
  for (int d = 0; d < scene.rank; ++d) {
    if (((scene.used >> d) & 1U) != 0) continue;
    const std::vector<WalkPoint> times = loop_positions(scene.loops.temporal, 1U << d);
    std::int64_t parents = 0, children = 0, once = 0;
    for (const WalkPoint& outer : loop_positions(scene.loops.outer, 1U << d)) {
      once += inside(scene, outer, 1U << d) ? 1 : 0;
      const std::vector<WalkPoint> inner = loop_positions(scene.loops.inner, 1U << d);
      for (const WalkPoint& time : times) {
        const WalkPoint at = sum(outer, time);
        parents += inside(scene, at, 1U << d) ? 1 : 0;
        for (const WalkPoint& each : inner) children += inside(scene, sum(at, each), 1U << d) ? 1 : 0;
      }
    }
    total.parents *= parents;
    total.children *= children;
    total.parents_once *= once;
  }
  const auto drop = [&](std::vector<NestLoop>& loops) {
    std::erase_if(loops, [&](const NestLoop& loop) { return ((scene.used >> loop.dim) & 1U) == 0; });
  };
  drop(scene.loops.temporal);
  drop(scene.loops.outer);
  drop(scene.loops.inner);
  return total;
}

}  // namespace

Result<Transfer> walk_boundary(WalkScene scene, const WalkLimits& limits) {
  const bool outputs = scene.operand->role == lower::Role::outputs;
  const double everything = steps_of(scene.loops.temporal) * steps_of(scene.loops.outer) * steps_of(scene.loops.inner);
  const bool fold = everything > static_cast<double>(limits.explicit_visits);
  Repeats repeats;
  if (fold && !scene.latched) repeats = fold_unlatched(scene);
  if (fold && scene.latched) {
    // The innermost loops over unused dimensions repeat the same tiles.
    while (!scene.loops.temporal.empty() && ((scene.used >> scene.loops.temporal.back().dim) & 1U) == 0)
      scene.loops.temporal.pop_back();
  }
  const auto too_large = [&](double visits) {
    return make_error("too-large", Span{},
                      fmt::format("operand '{}' would take {:.3g} visits to walk", scene.operand->name, visits),
                      fmt::format("the limit is {}", limits.most_visits));
  };
  const double folded = steps_of(scene.loops.temporal) * steps_of(scene.loops.outer) * steps_of(scene.loops.inner);
  if (!fold && folded > static_cast<double>(limits.most_visits)) return too_large(folded);
  constexpr std::int64_t kMostWords = std::int64_t{1} << 28;  // three stamps of 8 bytes each
  if (scene.words > kMostWords) return too_large(static_cast<double>(scene.words));
  TimeWalk walk(scene, fold, limits.most_visits);
  Moved moved;
  if (!walk.run(moved)) return too_large(folded);
  Transfer out;
  out.delivered = moved.delivered * repeats.children;
  out.merged = (outputs && scene.latched ? moved.drained_merged : moved.merged) * repeats.parents;
  PL_CHECK(!scene.latched || moved.drained == moved.delivered);
  if (fold && !scene.latched) {
    out.first_merged = (moved.merged - moved.refilled_merged) * repeats.parents_once;
  } else {
    out.first_merged = out.merged - moved.refilled_merged;
    out.first_delivered = moved.delivered - moved.refilled;
  }
  return out;
}

WalkScene make_walk_scene(const lower::Einsum& einsum, const Nest& nest, std::size_t operand, int outer, int inner) {
  WalkScene scene;
  scene.rank = einsum.rank();
  scene.size = einsum.dims;
  scene.operand = &einsum.operands[operand];
  scene.latched = inner < nest.levels;
  scene.tile.fill(1);
  for (int i = nest.count - 1; i >= 0; --i) {
    const NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    const auto d = static_cast<std::size_t>(loop.dim);
    if (loop.level >= inner) {
      scene.tile[d] = std::min(scene.tile[d] * loop.bound, scene.size[d]);
    } else {
      (!loop.spatial        ? scene.loops.temporal
       : loop.level < outer ? scene.loops.outer
                            : scene.loops.inner)
          .push_back(loop);
    }
  }
  std::reverse(scene.loops.temporal.begin(), scene.loops.temporal.end());
  const auto& axes = scene.operand->axes;
  scene.pitch.resize(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    scene.pitch[a] = scene.words;
    std::int64_t reach = 1;
    for (const lower::AxisTerm& term : axes[a]) {
      scene.used |= 1U << term.dim;
      reach += term.coefficient * (scene.size[static_cast<std::size_t>(term.dim)] - 1);
    }
    if (__builtin_mul_overflow(scene.words, reach, &scene.words)) scene.words = INT64_MAX;
  }
  return scene;
}

}  // namespace plumbline::schedule
