#pragma once
// Traffic of one operand over the levels of the search, from its own factors and order class alone, so that the search
// can add and compare operands apart.
#include <array>
#include <cstdint>
#include <vector>

#include "schedule/search_space.h"
#include "schedule/transfer.h"

namespace plumbline::schedule {

/// Bits read and written per level by one operand (or several), and what they cost.
struct Load {
  PerLevel read{};
  PerLevel written{};
  double energy = 0;
  double weights = 0;     ///< bits of parameters read outside the array
  std::uint8_t wide = 0;  ///< bit l: sums certainly stand at accumulator width in level l
};
Load operator+(const Load& a, const Load& b);

struct SearchMachine {
  int levels = 3;
  std::int64_t mesh_x = 1, mesh_y = 1;     ///< of the last level; the others have one instance
  PerLevel read_energy{}, write_energy{};  ///< per bit
  double mac_energy = 0;
  PerLevel capacity{};                 ///< bits per instance
  PerLevel read_rate{}, write_rate{};  ///< bits per cycle and instance; 0 = unlimited
  std::int64_t macs_per_cycle = 1;
  std::int64_t cycles_per_step = 1;  ///< a unit takes this many cycles for macs_per_cycle
  int array = 3;                     ///< the level that is the array; weights are counted at their keeper outside it
  [[nodiscard]] std::int64_t units() const { return mesh_x * mesh_y; }
};

/// Where an operand lives besides the outermost level: bit l for level l.
using Residence = unsigned;

/// How often the words of an operand cross into each level.
struct Crossing {
  PerLevel into{1, 1, 1, 1};  ///< times every word enters a level; of the last, with copies merged
  double delivered = 1;       ///< times every word enters registers, every copy counted
  double copies = 1;          ///< registers that ever hold the same word, at most
  bool spread = false;        ///< certainly more than one register holds the same word
  double steps = 1;           ///< times every word is taken by the MACs of one step, together
};

/// An operand without windows. `words`: distinct elements; `macs`: all multiply-accumulates.
Load flat_load(const SearchMachine& machine, const lower::Operand& operand, Residence residence, double words,
               double macs, const Crossing& crossing);

/// The sliding operand, whose words are counted by the caller.
struct SlidingWords {
  PerLevel into{};       ///< words entering each level; of the last, merged
  double delivered = 0;  ///< entering registers, every copy counted
  double to_macs = 0;    ///< taken by the MACs when the registers are bypassed
};
Load sliding_load(const SearchMachine& machine, const lower::Operand& operand, Residence residence, double macs,
                  const SlidingWords& words);

/// Words of one sweep over window loops in one order. With a loop of n trips over the unused dimension inside the
/// sweep, `merged + (n − 1)·merged_again` words leave and likewise arrive.
struct Sweep {
  double merged = 0, delivered = 0;
  double merged_again = 0, delivered_again = 0;
};
struct Sweeps {
  Sweep still;               ///< no loop at all: one tile
  std::vector<Sweep> alone;  ///< best orders without the unused dimension (or with it innermost)
  std::vector<Sweep> mixed;  ///< best orders with it anywhere but innermost
};

struct WindowLoop {
  int dim = 0;
  std::int64_t trips = 1;
};
using Sizes = std::array<std::int64_t, lower::kMaxDims>;
/// Sweeps of the sliding operand over `loops` in any order; tiles of `extent` per dimension, `spatial` copies of each.
Sweeps window_sweeps(const SearchSpace& space, const Projection& projection, const std::vector<WindowLoop>& loops,
                     const Sizes& extent, const Sizes& spatial);
/// Distinct words that the MACs of one step read together along the windows.
double window_points(const SearchSpace& space, const Projection& projection, const Sizes& registers,
                     const Sizes& spatial);

}  // namespace plumbline::schedule
