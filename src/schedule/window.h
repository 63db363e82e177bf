#pragma once
// Sets of the form {a·x + b·y : 0 ≤ x < n, 0 ≤ y < m}: what a tile touches along a sliding-window axis. Strides and
// dilations leave holes, so these are sets, never bounding boxes.
#include <cstdint>
#include <span>

namespace plumbline::schedule {

/// A two-term axis. `make_window` divides both coefficients by their common divisor `unit`; offsets are in that unit.
struct Window {
  std::int64_t a = 1;
  std::int64_t b = 1;
  std::int64_t unit = 1;
};
[[nodiscard]] Window make_window(std::int64_t a, std::int64_t b);

struct WindowTile {
  std::int64_t n = 1;
  std::int64_t m = 1;
  friend bool operator==(const WindowTile&, const WindowTile&) = default;
};

/// Number of elements of a tile.
[[nodiscard]] std::int64_t window_size(const Window& window, const WindowTile& tile);

/// Elements of `tile` that also lie in `other` when `other` starts `offset` after it.
[[nodiscard]] std::int64_t window_overlap(const Window& window, const WindowTile& tile, const WindowTile& other,
                                          std::int64_t offset);

/// `count` copies of a tile, `step` apart.
struct Progression {
  std::int64_t count;
  std::int64_t step;
};
inline constexpr std::size_t kMostProgressions = 8;
struct WindowUnion {
  std::int64_t all = 0;    ///< elements of any copy
  std::int64_t fresh = 0;  ///< elements that some copy holds and did not hold before the move
};
/// Union over copies in every combination of `copies`, each of which was at `before` (relative to itself) a step ago.
/// Spans beyond kWidestSpan and more than kMostProgressions return all = -1.
inline constexpr std::int64_t kWidestSpan = std::int64_t{1} << 26;
[[nodiscard]] WindowUnion window_union(const Window& window, const WindowTile& tile, std::int64_t before,
                                       std::span<const Progression> copies);

}  // namespace plumbline::schedule
