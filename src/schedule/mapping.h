#pragma once
// A mapping is a loop nest over the storage hierarchy. Weight-, output- or input-stationary are shapes of this nest,
// stated as constraints in YAML, never classes.
#include <cstdint>
#include <vector>

#include "lower/einsum.h"

namespace plumbline::schedule {

enum class LoopKind : std::uint8_t { temporal, spatial_x, spatial_y };

/// A loop of `bound` trips over `dim`. Factors may be imperfect: index = outer·bound + inner, clipped at the problem
/// size, so the last pass may be ragged.
struct Loop {
  int dim = 0;
  std::int64_t bound = 1;
  LoopKind kind = LoopKind::temporal;
  friend bool operator==(const Loop&, const Loop&) = default;
};

/// Loops of one level, outermost first: temporal ones, then the spatial ones that fan out to the next level in.
struct LevelNest {
  std::vector<Loop> loops;
  std::uint32_t keeps = 0;  ///< bit i set: operand i is stored at this level
  [[nodiscard]] bool keeps_operand(std::size_t i) const { return ((keeps >> i) & 1U) != 0; }
  friend bool operator==(const LevelNest&, const LevelNest&) = default;
};

struct Mapping {
  std::vector<LevelNest> levels;  ///< outermost first, one per storage level
  friend bool operator==(const Mapping&, const Mapping&) = default;
};

}  // namespace plumbline::schedule
