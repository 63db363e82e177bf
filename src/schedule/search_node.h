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

/// Which operand's unused loops stand innermost off chip and in the buffer, and what else the case assumes.
struct OrderCase {
  std::size_t off_chip = 0;  ///< operand
  std::size_t buffer = 0;    ///< operand
  bool through = false;      ///< the buffer's block holds nothing else, so the off-chip class reaches the registers
  bool y_still = false;      ///< no buffer loop over y
  int z_still = -1;          ///< 1: no buffer loop over z; 0: there is one; −1: either
};

/// Constants of a node.
struct Node {
  std::vector<int> chain;                           ///< index into SearchDim::chains, per enumerated dimension
  std::int64_t copies = 1;                          ///< product of the spatial factors
  bool still = true;                                ///< no buffer loop over any enumerated dimension
  std::array<bool, 3> still_for{true, true, true};  ///< nor over one the operand uses
  std::array<double, 3> size{1, 1, 1};              ///< per operand: product of enumerated dimensions it does not use,
  std::array<double, 3> tile{1, 1, 1};              ///< their extent in a buffer tile,
  std::array<double, 3> array{1, 1, 1};             ///< in all registers together,
  std::array<double, 3> spread{1, 1, 1};            ///< and over the array alone
  std::array<double, 3> buffer_words{1, 1, 1};      ///< per operand: words of a buffer tile, y and z apart
  std::array<double, 3> register_words{1, 1, 1};
  // The sliding operand only:
  double flat = 1;           ///< product of its flat enumerated dimensions
  double flat_outer = 1;     ///< their off-chip trips
  double flat_inner = 1;     ///< their buffer trips
  double windows_outer = 1;  ///< off-chip trips over its windows
  double windows_inner = 1;  ///< buffer trips over its windows
  double points = 1;         ///< distinct words the MACs of one step read along its windows, flat dimensions included
  const Sweeps* off_chip = nullptr;  ///< buffer tiles under the off-chip loops
  Sweeps buffer;                     ///< register tiles under the buffer loops
  Sweeps direct;                     ///< register tiles under the off-chip loops, when there are no buffer loops
};

/// Fixed parts of a search.
struct SearchContext {
  SearchSpace space;
  SearchMachine machine;
  std::array<Projection, 3> projections;  ///< of the merged operands
  std::array<double, 3> words{};          ///< distinct elements (of flat operands)
  double macs = 1;
  std::map<std::vector<std::int64_t>, Sweeps> buffer_sweeps;  ///< by tile, shared among nodes

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

/// Costs of one operand under an order case: exact for flat operands, a lower bound for the sliding one.
Load x_load(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence);
Load y_load(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence,
            const Chain& y);
Load z_load(const SearchContext& context, const Node& node, const OrderCase& order, Residence residence,
            const Chain& z);

/// Whether `copies` units can stand as a rectangle product on the mesh.
bool placeable(std::int64_t copies, std::int64_t mesh_x, std::int64_t mesh_y);

}  // namespace plumbline::schedule
