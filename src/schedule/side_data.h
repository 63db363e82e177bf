#pragma once
// Data that travels with groups of elements: block scales and sparse metadata.
#include <cstdint>

#include "lower/einsum.h"

namespace plumbline::schedule {

/// The dimension along which an operand's groups run: the first it uses alone on an axis and the outputs do not use
/// (the reduction); −1 when it has no side data or no such dimension.
[[nodiscard]] int side_dimension(const lower::Einsum& einsum, std::size_t operand);

/// Side words that come with `moved` elements fetched in tiles of `extent` indices along the grouped dimension of
/// `size`: every fetched tile brings the word of each group it touches. Spread evenly over the positions of the tiles,
/// exact where all move equally often, else rounded up.
[[nodiscard]] std::int64_t side_words(std::int64_t moved, std::int64_t size, std::int64_t extent, std::int64_t group);

}  // namespace plumbline::schedule
