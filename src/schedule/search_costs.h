#pragma once
// Traffic of one operand at the three levels of the search (0 off chip, 1 buffer, 2 registers), as words of its own
// factors and order class, so that the search can add and compare operands apart.
#include <array>
#include <cstdint>
#include <vector>

#include "schedule/search_space.h"
#include "schedule/transfer.h"

namespace plumbline::schedule {

inline constexpr int kSearchLevels = 3;

/// Bits read and written per level by one operand (or several), and what they cost.
struct Load {
  std::array<double, kSearchLevels> read{};
  std::array<double, kSearchLevels> written{};
  double energy = 0;
  double weights = 0;  ///< bits of parameters read outside the array
};
Load operator+(const Load& a, const Load& b);

/// The hierarchy of the search; a missing buffer (two levels) is never kept in.
struct SearchMachine {
  bool buffered = true;
  std::int64_t mesh_x = 1, mesh_y = 1;
  std::array<double, kSearchLevels> read_energy{}, write_energy{};  ///< per bit
  double mac_energy = 0;
  std::array<double, kSearchLevels> capacity{};                 ///< bits per instance
  std::array<double, kSearchLevels> read_rate{}, write_rate{};  ///< bits per cycle and instance; 0 = unlimited
  std::int64_t macs_per_cycle = 1;
  int weights_read_at = -1;  ///< −1: at the keeper outside the registers; else at this level
};

/// Where an operand lives: bit 0 the buffer, bit 1 the registers.
using Residence = unsigned;

/// How often the words of an operand cross, before spatial copies.
struct Crossing {
  double buffer = 1;     ///< times every word enters the buffer
  double registers = 1;  ///< times every word enters the registers of one copy
  double copies = 1;     ///< registers that hold the same word at once
};

/// An operand without windows. `words`: distinct elements; `macs`: all multiply-accumulates.
Load flat_load(const SearchMachine& machine, const lower::Operand& operand, Residence residence, double words,
               double macs, const Crossing& crossing);

/// The sliding operand, whose words are counted by the caller.
struct SlidingWords {
  double into_buffer = 0;
  double merged = 0;     ///< leaving towards the registers
  double delivered = 0;  ///< entering registers
  double to_macs = 0;    ///< leaving towards the MACs when the registers are bypassed
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
/// Sweeps of the sliding operand over `loops` in any order; tiles of `extent` per dimension, `spatial` copies of each.
Sweeps window_sweeps(const SearchSpace& space, const Projection& projection, const std::vector<WindowLoop>& loops,
                     const std::array<std::int64_t, lower::kMaxDims>& extent,
                     const std::array<std::int64_t, lower::kMaxDims>& spatial);
/// Distinct words that the MACs of one step read together along the windows.
double window_points(const SearchSpace& space, const Projection& projection,
                     const std::array<std::int64_t, lower::kMaxDims>& registers,
                     const std::array<std::int64_t, lower::kMaxDims>& spatial);

}  // namespace plumbline::schedule
