#pragma once
// The kernel as the search sees it: dimensions that every operand treats alike merged into one, and each with its
// chains of perfect factors over registers, array, buffer and off-chip memory.
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/result.h"
#include "lower/einsum.h"
#include "schedule/nest.h"
#include "schedule/search.h"

namespace plumbline::schedule {

inline constexpr int kSearchLevels = 4;
using PerLevel = std::array<double, kSearchLevels>;

/// Factors of one dimension. The level before the last fans out, so the registers of all copies together hold `array`
/// indices at a time.
struct Chain {
  std::array<std::int64_t, kSearchLevels> extent{1, 1, 1, 1};  ///< of a tile, by level; of the last, of one copy
  std::int64_t copies = 1;                                     ///< spatial
  std::int64_t array = 1;                                      ///< copies × registers
  PerLevel visits{1, 1, 1, 1};     ///< tiles of a level met in one pass over the dimension; of the last, array tiles
  PerLevel delivered{1, 1, 1, 1};  ///< register tiles met when copies refill only where a tile of this level begins
  PerLevel held{1, 1, 1, 1};       ///< extents within the dimension
  double steps = 1;                ///< of the first copy
  /// Trips of the temporal loop of a block (the last block stands above the spatial loops).
  [[nodiscard]] std::int64_t trips(int block, int levels) const;
};

struct SearchDim {
  std::int64_t size = 1;
  std::uint32_t relevant = 0;  ///< bit o: operand o uses it
  bool window = false;         ///< shares an axis of the sliding operand
  std::vector<int> parts;      ///< dimensions of the kernel merged into this one
  std::vector<Chain> chains;
};

struct SearchSpace {
  lower::Einsum einsum;                               ///< over the merged dimensions
  std::vector<SearchDim> dims;                        ///< parallel to einsum's
  std::vector<int> enumerated;                        ///< dimensions whose chains make the nodes of the search
  int y = -1;                                         ///< the dimension only `y_owner` does not use (-1: none)
  int z = -1;                                         ///< likewise for `z_owner`
  std::size_t y_owner = 0, z_owner = 0, x_owner = 0;  ///< the three operands
  bool slides = false;                                ///< y_owner slides along a window
  /// Places in `enumerated` that can trade their chains for each other's all at once without changing anything: the
  /// two window axes of a square kernel on a square image.
  std::vector<std::pair<std::size_t, std::size_t>> mirror;
};

/// Errors: unsupported.
Result<SearchSpace> make_search_space(const lower::Einsum& einsum, const SearchOptions& options, int levels,
                                      std::int64_t units);

/// A mapping of the merged kernel as one of the original: every merged factor is split among its parts.
Mapping unmerge(const SearchSpace& space, const lower::Einsum& einsum, const Mapping& merged);

}  // namespace plumbline::schedule
