#pragma once
// Inside a node: the two remaining dimensions are joined from lists sorted by cost, and what the bounds cannot rule
// out is counted exactly, in every loop order where windows slide.
#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "schedule/evaluator.h"
#include "schedule/search.h"
#include "schedule/search_node.h"

namespace plumbline::schedule {

/// Values of the first and the second objective, compared in that order.
struct Score {
  double first = 0;
  double second = 0;
};

class Joiner {
 public:
  Joiner(const SearchContext& context, const Evaluator& evaluator, const EnergyRates& rates,
         const SearchOptions& options);

  /// Residences an operand may take.
  void allow(std::size_t operand, std::vector<Residence> residences) { residences_[operand] = std::move(residences); }

  /// A bound on every mapping of the node, without looking at the chains of y and z.
  [[nodiscard]] Score quick_bound(const Node& node);
  /// Whether a mapping with this bound could still be better than the best one found.
  [[nodiscard]] bool improves(const Score& bound) const;
  /// Finds the node's best mapping, if it is better than the best one found.
  void open(const Node& node);

  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] const Score& best() const { return best_; }
  [[nodiscard]] const Mapping& mapping() const { return mapping_; }
  [[nodiscard]] std::int64_t evaluated() const { return evaluated_; }
  [[nodiscard]] bool exhausted() const { return evaluated_ >= options_.most_evaluations; }
  /// Least bound of what was passed over because the budget ran out.
  [[nodiscard]] double unproved() const { return unproved_; }

 private:
  /// A chain of y or z with its cost.
  struct Item {
    const Chain* chain = nullptr;
    int index = 0;
    int group = 0;  ///< of z: place of its copies in z_copies_
    Load load;
  };
  using List = std::vector<Item>;
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
  [[nodiscard]] Score score(double energy, double weights, double cycles) const;
  [[nodiscard]] double cycles(const Load& load, double steps, double used) const;
  [[nodiscard]] double least_steps(const Node& node) const;
  [[nodiscard]] std::size_t variant(const OrderCase& order, std::size_t owner) const;
  const List& list(const Node& node, const OrderCase& order, Residence residence, bool for_y);
  const Load& floor(const Node& node, const OrderCase& order, Residence residence, bool for_y);
  [[nodiscard]] bool fits(const Node& node, const std::array<Residence, 3>& residence, const Chain& y,
                          const Chain& z) const;
  bool gather(const Node& node, const OrderCase& order, const std::array<Residence, 3>& residence, const Load& x,
              const Item& best_y, const List& zs, double least);
  [[nodiscard]] Score bound(const Load& x, const Load& y, const Load& z, double time) const;
  void join(const Node& node, const OrderCase& order, const std::array<Residence, 3>& residence, const Load& x);
  void count(const Leaf& leaf, const Score& bound);
  void count_mapping(const Mapping& mapping);
  void count_orders(Mapping& mapping, const std::vector<Loop>& spatial, int block, const Score& bound);
  void spread_sums(const Node& node, std::size_t owner, std::int64_t copies, Load& load) const;
  [[nodiscard]] Mapping build(const Leaf& leaf) const;

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
  /// Chains of z that fit, by their number of copies: within a group the time hardly differs.
  struct Group {
    double least_steps = 0;
    std::vector<const Item*> items;
  };
  std::vector<std::int64_t> z_copies_;  ///< ascending; parallel to z_groups_
  std::vector<Group> z_groups_;
  struct Ranked {
    double first, second;
    int index;
  };
  std::vector<Ranked> ranks_;
  List unsorted_;
  std::int64_t evaluated_ = 0;
  double unproved_;
  std::set<std::vector<int>> seen_;  ///< leaves of the node already counted in every order
};

}  // namespace plumbline::schedule
