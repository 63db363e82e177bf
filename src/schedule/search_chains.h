#pragma once
// The ways to factor one dimension over registers, array, buffers and off-chip memory. Where they are too many to list,
// neighbours form a class: the search bounds the class and tries one member of it.
#include <array>
#include <cstdint>
#include <vector>

#include "lower/einsum.h"
#include "schedule/search.h"

namespace plumbline::schedule {

inline constexpr int kSearchLevels = 4;
using PerLevel = std::array<double, kSearchLevels>;

/// Factors of one dimension. The level before the last fans out, so the registers of all copies together hold `array`
/// indices at a time. `extent`, `array` and `laid` are of one member; the other figures hold for every member: figures
/// that cost are the least, `most_delivered` is the most.
struct Chain {
  std::array<std::int64_t, kSearchLevels> extent{1, 1, 1, 1};  ///< of a tile, by level; of the last, of one copy
  std::int64_t laid = 1;                                       ///< spatial factor
  std::int64_t array = 1;                                      ///< laid × registers
  std::int64_t copies = 1;                                     ///< least spatial factor
  PerLevel visits{1, 1, 1, 1};     ///< tiles of a level met in one pass over the dimension; of the last, array tiles
  PerLevel delivered{1, 1, 1, 1};  ///< register tiles met when copies refill only where a tile of this level begins
  PerLevel held{1, 1, 1, 1};       ///< extents within the dimension
  double steps = 1;                ///< of the first copy
  double most_delivered = 1;       ///< copies that ever work
  std::uint8_t moves = 0;          ///< bit b: a loop in block b (the same for every member)
  bool single = true;              ///< the class has one member
  /// Trips of the temporal loop of a block (the last block stands above the spatial loops).
  [[nodiscard]] std::int64_t trips(int block, int levels) const;
};

/// Classes of one dimension.
inline constexpr std::size_t kMostClasses = 40'000;

/// What the chains of a dimension must be.
struct ChainRules {
  int levels = 3;
  std::int64_t units = 1;           ///< of the array
  std::vector<FactorBound> limits;  ///< on this dimension
  bool imperfect = false;
  bool one_register = false;
  bool apart = false;  ///< every operand uses the dimension: its loops stand outermost, only copies are inside
};

enum class ChainList : std::uint8_t { complete, classes, sample };

/// Chains of a dimension of `size` (the product of `parts`), at most `most` of them. All of them where they are few
/// (`complete`). Else `classes` that hold all, or with `classes_allowed` false a `sample`. Empty when no factors meet
/// the limits.
ChainList make_chains(const std::vector<std::int64_t>& parts, const ChainRules& rules, std::size_t most,
                      bool classes_allowed, std::vector<Chain>& chains);

/// Some good chains, at most `most`: members of classes, or for imperfect factors those of a rounder number above.
void sample_chains(const std::vector<std::int64_t>& parts, const ChainRules& rules, std::size_t most,
                   std::vector<Chain>& chains);

}  // namespace plumbline::schedule
