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
#include "schedule/search_chains.h"

namespace plumbline::schedule {

struct SearchDim {
  std::int64_t size = 1;
  std::uint32_t relevant = 0;  ///< bit o: operand o uses it
  bool window = false;         ///< shares an axis of the sliding operand
  std::vector<int> parts;      ///< dimensions of the kernel merged into this one
  std::vector<Chain> chains;
  ChainList list = ChainList::complete;
};

struct SearchSpace {
  lower::Einsum einsum;                               ///< over the merged dimensions
  std::vector<SearchDim> dims;                        ///< parallel to einsum's
  std::vector<int> enumerated;                        ///< dimensions whose chains make the nodes of the search
  int y = -1;                                         ///< the dimension only `y_owner` does not use (-1: none)
  int z = -1;                                         ///< likewise for `z_owner`
  std::size_t y_owner = 0, z_owner = 0, x_owner = 0;  ///< the three operands
  bool slides = false;                                ///< y_owner slides along a window
  std::vector<std::vector<int>> orders;        ///< SearchOptions::orders over the merged dimensions, one list per level
  bool ordered_by_case = false;                ///< every order of the lists can be told by the order cases
  std::uint32_t along_x = ~0U, along_y = ~0U;  ///< likewise
  bool sampled = false;  ///< the chains of some dimension are a sample: no bound follows from the nodes
  bool perfect = true;   ///< chains divide
  /// Whether dimension `d` may spread along one axis of the mesh but not along the other one.
  [[nodiscard]] static bool only_along(std::uint32_t here, std::uint32_t other, int d) {
    return d >= 0 && (((here & ~other) >> d) & 1U) != 0;
  }
  /// Places in `enumerated` that can trade their chains for each other's all at once without changing anything: the
  /// two window axes of a square kernel on a square image.
  std::vector<std::pair<std::size_t, std::size_t>> mirror;
};

/// With `sample`, some good chains of each dimension instead of all. Errors: unsupported, does-not-fit (limits that no
/// factors meet).
Result<SearchSpace> make_search_space(const lower::Einsum& einsum, const SearchOptions& options, int levels,
                                      std::int64_t units, bool sample = false);

/// A mapping of the merged kernel as one of the original: every merged factor is split among its parts.
Mapping unmerge(const SearchSpace& space, const lower::Einsum& einsum, const Mapping& merged);

}  // namespace plumbline::schedule
