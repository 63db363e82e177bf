#pragma once
// A node of the search fixes the chains of all dimensions but two. What is left splits into costs of either remaining
// dimension alone: `y_owner` depends on y only, `z_owner` on z only, `x_owner` on neither.
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "schedule/search_costs.h"
#include "schedule/search_space.h"

namespace plumbline::schedule {

/// A block is the temporal loops of one level outside the last. Of each block a case says whose unused loops stand
/// innermost, and whether nothing else stands in it, so that the next block's innermost loops follow on.
struct OrderCase {
  std::array<std::uint8_t, kSearchLevels> owner{};  ///< by block: operand
  std::array<bool, kSearchLevels> through{};        ///< by block
  unsigned y_still = 0;                             ///< bit b: no loop over y in block b
  unsigned z_still = 0;
  int z_moves = -1;  ///< sliding kernels: bit b: a loop over z in block b; −1: not said
  [[nodiscard]] int reach(std::size_t operand, int level) const;
};

/// Constants of a node. Arrays by operand hold products over the enumerated dimensions.
struct Node {
  std::vector<int> chain;               ///< index into SearchDim::chains, per enumerated dimension
  std::int64_t copies = 1;              ///< product of the spatial factors, at least
  std::int64_t copies_x = 1;            ///< of them those that can stand along x only
  std::int64_t copies_y = 1;            ///< along y only
  bool single = true;                   ///< every chain is one, not a class
  double steps = 1;                     ///< of the first copy
  double used = 1;                      ///< copies that ever work
  std::array<unsigned, 3> still_for{};  ///< bit b: no loop in block b over a dimension the operand uses
  std::array<PerLevel, 3> visits;       ///< of the dimensions the operand does not use
  std::array<PerLevel, 3> delivered;
  std::array<double, 3> unused_steps{1, 1, 1};
  std::array<double, 3> most_delivered{1, 1, 1};
  std::array<PerLevel, 3> tile;  ///< words of a tile by level, y and z apart
  // The sliding operand only:
  double flat = 1;                    ///< product of its flat enumerated dimensions
  PerLevel flat_trips{1, 1, 1, 1};    ///< their trips by block
  PerLevel window_trips{1, 1, 1, 1};  ///< trips over its windows by block
  double points = 1;  ///< distinct words the MACs of one step read along its windows, flat dimensions included
  /// Its tiles of a level (from 1) under the innermost block outside that slides.
  struct Slide {
    int block = -1;  ///< −1: none slides
    const Sweeps* sweeps = nullptr;
  };
  std::array<Slide, kSearchLevels> slides;
};

/// Fixed parts of a search.
struct SearchContext {
  SearchSpace space;
  SearchMachine machine;
  std::array<Projection, 3> projections;  ///< of the merged operands
  std::array<double, 3> words{};          ///< distinct elements (of flat operands)
  double macs = 1;
  std::map<std::vector<std::int64_t>, Sweeps> sweeps;  ///< by trips, tiles and copies; shared among nodes

  /// Blocks of which an order case says whether z moves in them.
  [[nodiscard]] unsigned z_blocks() const {
    return machine.levels == 2 ? 1U : ((1U << (machine.levels - 1)) - 1U) & ~1U;
  }

  [[nodiscard]] const SearchDim* y() const {
    return space.y < 0 ? nullptr : &space.dims[static_cast<std::size_t>(space.y)];
  }
  [[nodiscard]] const SearchDim* z() const {
    return space.z < 0 ? nullptr : &space.dims[static_cast<std::size_t>(space.z)];
  }
};

/// The node of the given chains; false when its copies cannot be placed on the array.
bool make_node(SearchContext& context, std::vector<int> chain, Node& node);

/// All order cases a node can have.
std::vector<OrderCase> order_cases(const SearchContext& context, const Node& node);

/// Costs of one operand under an order case: exact for flat operands and perfect factors, a lower bound for the sliding
/// one.
Load x_load(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence);
Load y_load(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence,
            const Chain& y);
Load z_load(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence,
            const Chain& z);

/// Whether `copies` units can stand as a rectangle product on the mesh when every factor may be split.
bool placeable(std::int64_t copies, std::int64_t mesh_x, std::int64_t mesh_y);

}  // namespace plumbline::schedule
