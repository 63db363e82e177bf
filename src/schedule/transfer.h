#pragma once
// The sums behind one boundary of one operand. A tile changes only when a temporal loop outside it steps; per
// dimension the digits inside that loop fall back from their last values to zero. So the words moved by all steps of
// one loop are a product over the operand's axes of sums over that axis' own digits — ragged ones included.
#include <cstdint>

#include "schedule/evaluator.h"
#include "schedule/nest.h"

namespace plumbline::schedule {

/// A boundary: tiles of level `inner` move under the loops [0, end); spatial loops [0, split) tell parents apart,
/// [split, end) the children of one parent.
struct Boundary {
  int inner = 0;
  int split = 0;
  int end = 0;
};

/// Sums over the digits of some dimensions at the moments when one given loop steps (or at all moments).
struct AxisSums {
  std::int64_t held = 0;         ///< elements held by all active children
  std::int64_t kept = 0;         ///< of these, the ones held a step before
  std::int64_t held_merged = 0;  ///< as `held`, an element counted once per parent
  std::int64_t kept_merged = 0;  ///< elements of a parent's children of which no child has got a fresh copy
};

/// The moments: temporal digits of loops below `prefix` are free, those inside are zero (just after a step). With
/// `stepping` ≥ 0 that loop (the last free one) has just stepped, so its digit is at least one.
struct Moments {
  int prefix = 0;
  int stepping = -1;
};

/// One dimension that the operand uses alone on an axis.
AxisSums flat_sums(const Nest& nest, const Boundary& at, int dim, const Moments& when);
/// One dimension that the operand does not use: numbers of active children (held) and parents (held_merged).
AxisSums idle_sums(const Nest& nest, const Boundary& at, int dim, const Moments& when);
/// Elements a tile of the given extents (by dimension) touches along an axis; -1 beyond kWidestSpan.
std::int64_t axis_elements(const WindowAxis& axis, const std::array<std::int64_t, lower::kMaxDims>& extent_by_dim);
/// One axis of several dimensions, any factors; false when the window is wider than kWidestSpan.
bool window_sums(const Nest& nest, const Boundary& at, const WindowAxis& axis, const Moments& when, AxisSums& out);

/// All boundaries' engine: any operand, any factors.
bool transfer_any(const Nest& nest, const Boundary& at, const Projection& projection, bool latched, Transfer& out);
/// The same when every factor is perfect and no axis has more than two terms; false when `transfer_any` must try.
bool transfer_perfect(const Nest& nest, const Boundary& at, const Projection& projection, bool latched, Transfer& out);

}  // namespace plumbline::schedule
