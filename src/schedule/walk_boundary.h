#pragma once
// One boundary of one operand, walked in time with explicit sets; the parts of walk_accesses.
#include <array>
#include <cstdint>
#include <vector>

#include "core/result.h"
#include "schedule/counts.h"
#include "schedule/evaluator.h"

namespace plumbline::schedule {

using WalkPoint = std::array<std::int64_t, lower::kMaxDims>;

struct WalkLoops {
  std::vector<NestLoop> temporal;      ///< outside the boundary, outermost first
  std::vector<NestLoop> outer, inner;  ///< spatial: telling parents apart, telling children apart
};

/// Everything about one boundary that does not change with time.
struct WalkScene {
  WalkPoint size{};
  WalkPoint tile{};  ///< extents below the boundary
  int rank = 0;
  std::uint32_t used = 0;
  const lower::Operand* operand = nullptr;
  bool latched = true;
  WalkLoops loops;
  std::vector<std::int64_t> pitch;  ///< of a word's number, per axis
  std::int64_t words = 1;
};

/// Every start that combinations of the loops over `dims` give.
[[nodiscard]] std::vector<WalkPoint> loop_positions(const std::vector<NestLoop>& loops, std::uint32_t dims);

/// The indices an operand axis takes over a tile at `base`, in order, each once.
void walk_indices(const WalkScene& scene, const lower::Axis& axis, const WalkPoint& base,
                  std::vector<std::int64_t>& out);

/// The boundary between two keepers of an operand; level `inner` may be the number of levels, for the MACs.
[[nodiscard]] WalkScene make_walk_scene(const lower::Einsum& einsum, const Nest& nest, std::size_t operand, int outer,
                                        int inner);

/// Words over the boundary as the evaluator reports them. Errors: too-large.
Result<Transfer> walk_boundary(WalkScene scene, const WalkLimits& limits);

}  // namespace plumbline::schedule
