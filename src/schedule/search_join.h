#pragma once
// Inside a node: the two remaining dimensions are joined from lists sorted by cost, and what the bounds cannot rule
// out is counted exactly, in every loop order where windows slide.
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "schedule/evaluator.h"
#include "schedule/search.h"
#include "schedule/search_node.h"
#include "schedule/search_score.h"

namespace plumbline::schedule {

class Joiner {
 public:
  Joiner(const SearchContext& context, const Evaluator& evaluator, const EnergyRates& rates,
         const SearchOptions& options);

  /// Residences an operand may take.
  void allow(std::size_t operand, std::vector<Residence> residences) { residences_[operand] = std::move(residences); }

  /// A bound on every mapping of the node, without looking at the chains of y and z.
  [[nodiscard]] Score quick_bound(const Node& node);
  /// A bound on every mapping there is: compulsory traffic.
  [[nodiscard]] Score root_bound() const;
  /// Whether a mapping with this bound could still be better than the best one found.
  [[nodiscard]] bool improves(const Score& bound) const;
  /// Finds the node's best mapping, if it is better than the best one found. `least` is the node's bound.
  void open(const Node& node, const Score& least);

  /// A mapping found elsewhere, and its score.
  void start_from(const Score& score, const Mapping& mapping) {
    found_ = true;
    best_ = score;
    mapping_ = mapping;
  }
  /// Mappings counted elsewhere, on this budget.
  void count_before(const Joiner& other) {
    evaluated_ += other.evaluated_;
    uncounted_ = other.uncounted_;
  }
  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] const Score& best() const { return best_; }
  [[nodiscard]] const Mapping& mapping() const { return mapping_; }
  [[nodiscard]] std::int64_t evaluated() const { return evaluated_; }
  /// Whether the budget of mappings or of work is used up.
  [[nodiscard]] bool exhausted() const {
    return evaluated_ >= options_.most_evaluations || work_ >= options_.most_work;
  }
  /// Least bound of what was passed over or cannot be settled: a class of chains of which one was tried.
  [[nodiscard]] const Score& unproved() const { return unproved_; }
  /// Nothing below `bound` was looked into.
  void leave_open(const Score& bound) { unproved_ = std::min(unproved_, bound); }
  /// The last mapping that could not be counted, and why.
  [[nodiscard]] const Verdict& uncounted() const { return uncounted_; }
  [[nodiscard]] std::int64_t work() const { return work_; }
  [[nodiscard]] const Scorer& scorer() const { return scorer_; }

 private:
  /// A chain of y or z with its cost.
  struct Item {
    const Chain* chain = nullptr;
    int index = 0;
    int group = 0;  ///< of z: place of its copies in z_copies_
    Load load;
  };
  /// The figure the lists are sorted by, and the other one.
  struct Price {
    double energy = 0;
    double weights = 0;
  };
  struct List {
    std::vector<Item> items;
    Price least;  ///< of any item
  };
  /// What of an order case the cost of one owner depends on has this many values; residences likewise.
  static constexpr std::size_t kVariants = 192;
  static constexpr std::size_t kResidences = 8;
  /// The lists of one dimension: by variant and residence, cheapest first.
  struct Lists {
    std::array<std::array<List, kResidences>, kVariants> of;
    std::array<std::array<bool, kResidences>, kVariants> made{};
  };
  /// A load below every item of the list, for the node at hand.
  struct Floors {
    std::array<std::array<Load, kResidences>, kVariants> of;
    std::array<std::array<bool, kResidences>, kVariants> made{};
  };
  struct Leaf {
    const Node* node;
    OrderCase order;
    std::array<Residence, 3> residence;
    const Item* y;
    const Item* z;
  };

  [[nodiscard]] Score score(const Load& load, double steps, double used) const;
  [[nodiscard]] double steps_to_cycles(double steps) const;
  [[nodiscard]] double cycles(const Load& load, double steps, double used) const;
  [[nodiscard]] double least_steps(const Node& node) const;
  [[nodiscard]] std::size_t variant(const OrderCase& order, std::size_t owner) const;
  const List& list(const Node& node, const OrderCase& order, Residence residence, bool for_y);
  const Load& floor(const Node& node, const OrderCase& order, Residence residence, bool for_y);
  /// `wide`: levels where sums are known to stand at accumulator width.
  [[nodiscard]] bool fits(const Node& node, const std::array<Residence, 3>& residence, const Chain& y, const Chain& z,
                          unsigned wide) const;
  bool gather(const Node& node, const OrderCase& order, const std::array<Residence, 3>& residence, const Load& x,
              const Price& least_y, const List& zs, double least);
  [[nodiscard]] Score bound(const Load& x, const Price& y, const Price& z, double time) const;
  /// A price below that of the item and of all after it.
  [[nodiscard]] Price from(const Price& least, const Load& item) const {
    return by_weights_ ? Price{least.energy, item.weights} : Price{item.energy, least.weights};
  }
  [[nodiscard]] std::size_t first_fit(const Node& node, const std::array<Residence, 3>& residence, const Chain& y,
                                      unsigned wide, std::size_t group) const;
  void join(const Node& node, const OrderCase& order, const std::array<Residence, 3>& residence, const Load& x);
  void count(const Leaf& leaf, const Score& bound);
  void count_mapping(const Mapping& mapping, const Score& bound);
  void count_orders(Mapping& mapping, const std::vector<Loop>& spatial, int block, const Score& bound);
  /// Whether more copies than an axis has must stand along it.
  [[nodiscard]] bool beyond_axes(const Node& node, std::int64_t copies_y, std::int64_t copies_z) const;
  void spread_sums(const Node& node, std::size_t owner, std::int64_t copies, Load& load) const;
  [[nodiscard]] std::ptrdiff_t place_of(std::size_t level, const Loop& loop) const;
  bool lay_out(const std::vector<const Chain*>& chains, LevelNest& level) const;
  /// Nothing when no member of a class is at hand, or the array has no place for it.
  [[nodiscard]] std::optional<Mapping> build(const Leaf& leaf) const;

  const SearchContext& context_;
  const Evaluator& evaluator_;
  EnergyRates rates_;
  SearchOptions options_;
  std::array<std::vector<Residence>, 3> residences_;
  bool by_weights_ = false;  ///< lists are sorted by weight bits before energy
  bool found_ = false;
  Score best_;
  Mapping mapping_;
  Tally tally_;
  Lists y_lists_, z_lists_;  ///< of the node at hand, or of all nodes where they do not depend on it
  Floors y_floors_, z_floors_;
  bool y_shared_ = false, z_shared_ = false;
  void begin(const Node& node);
  void make_room();
  /// Chains of z that fit, by their number of copies: within a group the time hardly differs.
  struct Group {
    double least_steps = 0;
    std::vector<const Item*> items;
    Price least;
    /// By level: of all items that hold no more than `held`, the first is at `at`; both descend.
    struct Stair {
      double held;
      std::size_t at;
    };
    std::array<std::vector<Stair>, kSearchLevels> stairs;
  };
  void join_group(const Leaf& leaf, const Load& x, std::size_t group, double least);
  Price least_z_;
  std::vector<std::int64_t> z_copies_;  ///< ascending; parallel to z_groups_
  std::vector<Group> z_groups_;
  struct Ranked {
    double first, second;
    int index;
  };
  std::vector<Ranked> ranks_;
  std::vector<Item> unsorted_;
  std::size_t remembered_ = 0;  ///< items of all lists
  std::int64_t evaluated_ = 0;
  std::int64_t work_ = 0;   ///< costs and pairs looked at
  std::int64_t tries_ = 0;  ///< mappings of classes that could no longer raise the bound
  Score unproved_;
  Verdict uncounted_;
  Scorer scorer_;
  std::set<std::vector<int>> seen_;  ///< leaves of the node already counted in every order
};

}  // namespace plumbline::schedule
