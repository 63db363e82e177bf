#pragma once
// Values of the objectives in order of importance, compared as a dictionary compares words.
#include <array>
#include <limits>

#include "schedule/search.h"

namespace plumbline::schedule {

inline constexpr std::size_t kMostObjectives = 4;

struct Score {
  std::array<double, kMostObjectives> of{};
  int count = 2;
};

/// A score worse than any.
inline Score worst_score(int count) {
  Score s;
  s.of.fill(std::numeric_limits<double>::infinity());
  s.count = count;
  return s;
}

inline bool operator<(const Score& a, const Score& b) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.count); ++i) {
    if (a.of[i] != b.of[i]) return a.of[i] < b.of[i];
  }
  return false;
}

/// Whether `a` is below `b` by more than rounding: bounds and counts add the same terms in different orders.
inline bool clearly_below(const Score& a, const Score& b) {
  constexpr double kTolerance = 1e-12;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.count); ++i) {
    if (a.of[i] < b.of[i] * (1 - kTolerance)) return true;
    if (!(a.of[i] <= b.of[i] * (1 + kTolerance))) return false;
  }
  return false;
}

/// The score of a mapping; without a second objective ties are broken by less energy.
class Scorer {
 public:
  explicit Scorer(const std::vector<Objective>& objectives) {
    for (const Objective each : objectives) add(each);
    if (count_ == 1) add(Objective::energy);
  }

  [[nodiscard]] Score operator()(double energy, double weights, double cycles) const {
    Score s;
    s.count = count_;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count_); ++i) {
      switch (objectives_[i]) {
        case Objective::energy:
          s.of[i] = energy;
          break;
        case Objective::latency:
          s.of[i] = cycles;
          break;
        case Objective::energy_delay:
          s.of[i] = energy * cycles;
          break;
        case Objective::off_array_weight_bits:
          s.of[i] = weights;
          break;
      }
    }
    return s;
  }
  [[nodiscard]] int count() const { return count_; }
  /// Whether weight bits matter before energy does.
  [[nodiscard]] bool weights_first() const {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count_); ++i) {
      if (objectives_[i] == Objective::off_array_weight_bits) return true;
      if (objectives_[i] != Objective::latency) return false;
    }
    return false;
  }

 private:
  void add(Objective objective) {
    if (count_ < static_cast<int>(kMostObjectives)) objectives_[static_cast<std::size_t>(count_++)] = objective;
  }
  std::array<Objective, kMostObjectives> objectives_{};
  int count_ = 0;
};

}  // namespace plumbline::schedule
