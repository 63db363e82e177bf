#include "schedule/window.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

namespace plumbline::schedule {
namespace {

std::int64_t span_of(const Window& w, const WindowTile& t) { return w.a * (t.n - 1) + w.b * (t.m - 1) + 1; }

/// The part of row y that no earlier row holds: rows a apart share a residue modulo a and move b/1 elements on.
struct Row {
  std::int64_t start = 0;
  std::int64_t length = 0;
};
Row fresh_row(const Window& w, const WindowTile& t, std::int64_t y) {
  const std::int64_t skipped = y < w.a ? 0 : std::max<std::int64_t>(0, t.n - w.b);
  return {w.b * y + w.a * skipped, t.n - skipped};
}

std::int64_t overlap_by_rows(const Window& w, const WindowTile& tile, const WindowTile& other, std::int64_t offset) {
  std::int64_t total = 0;
  for (std::int64_t y = 0; y < tile.m; ++y) {
    const Row row = fresh_row(w, tile, y);
    for (std::int64_t z = 0; z < other.m; ++z) {
      Row against = fresh_row(w, other, z);
      against.start += offset;
      const std::int64_t apart = against.start - row.start;
      if (apart % w.a != 0) continue;
      const std::int64_t shift = apart / w.a;
      const std::int64_t low = std::max<std::int64_t>(0, shift);
      const std::int64_t high = std::min(row.length, shift + against.length);
      total += std::max<std::int64_t>(0, high - low);
    }
  }
  return total;
}

/// Length of the union of copies of an interval, -1 when it cannot be told without looking at positions.
std::int64_t union_of_intervals(std::int64_t length, std::span<const Progression> copies) {
  std::int64_t solid = length;  // the union so far is `solid` elements in a span of `span`
  std::int64_t span = length;
  for (const Progression& each : copies) {  // ascending steps
    if (solid == span && each.step <= span) {
      span += (each.count - 1) * each.step;
      solid = span;
    } else if (each.step >= span) {
      solid *= each.count;
      span += (each.count - 1) * each.step;
    } else {
      return -1;
    }
  }
  return solid;
}

using Word = std::uint64_t;
constexpr std::int64_t kWordBits = 64;

/// target |= source << offset
void merge(std::span<Word> target, std::span<const Word> source, std::int64_t offset) {
  const auto whole = static_cast<std::size_t>(offset / kWordBits);
  const auto part = static_cast<unsigned>(offset % kWordBits);
  for (std::size_t i = 0; i < source.size(); ++i) {
    target[i + whole] |= source[i] << part;
    if (part != 0 && i + whole + 1 < target.size()) target[i + whole + 1] |= source[i] >> (kWordBits - part);
  }
}

/// Copies of `bits` in place, one progression at a time: the union over a grid is a union of unions.
void spread(std::span<Word> bits, std::span<Word> scratch, std::int64_t used, std::span<const Progression> copies) {
  for (const Progression& each : copies) {
    const auto words = static_cast<std::size_t>((used + kWordBits - 1) / kWordBits);
    std::copy_n(bits.begin(), words, scratch.begin());
    for (std::int64_t i = 1; i < each.count; ++i) merge(bits, scratch.first(words), i * each.step);
    used += (each.count - 1) * each.step;
  }
}

std::int64_t ones(std::span<const Word> bits) {
  std::int64_t total = 0;
  for (const Word word : bits) total += std::popcount(word);
  return total;
}

WindowUnion union_by_bits(const Window& w, const WindowTile& tile, std::int64_t before,
                          std::span<const Progression> copies, std::span<Word> space, std::int64_t span) {
  const std::size_t words = space.size() / 3;
  const std::span<Word> all = space.first(words);
  const std::span<Word> fresh = space.subspan(words, words);
  const std::span<Word> scratch = space.last(words);
  for (std::int64_t y = 0; y < tile.m; ++y) {
    for (std::int64_t x = 0; x < tile.n; ++x) {
      const std::int64_t at = w.a * x + w.b * y;
      all[static_cast<std::size_t>(at / kWordBits)] |= Word{1} << static_cast<unsigned>(at % kWordBits);
    }
  }
  for (std::int64_t at = 0; at < span; ++at) {
    const auto set = [&](std::int64_t i) {
      return i >= 0 && i < span && ((all[static_cast<std::size_t>(i / kWordBits)] >> (i % kWordBits)) & 1U) != 0;
    };
    if (set(at) && !set(at - before)) {
      fresh[static_cast<std::size_t>(at / kWordBits)] |= Word{1} << static_cast<unsigned>(at % kWordBits);
    }
  }
  spread(all, scratch, span, copies);
  spread(fresh, scratch, span, copies);
  return {ones(all), ones(fresh)};
}

}  // namespace

Window make_window(std::int64_t a, std::int64_t b) {
  const std::int64_t unit = std::gcd(a, b);
  return {a / unit, b / unit, unit};
}

std::int64_t window_size(const Window& w, const WindowTile& t) {
  return std::min(t.m, w.a) * t.n + std::max<std::int64_t>(0, t.m - w.a) * std::min(t.n, w.b);
}

std::int64_t window_overlap(const Window& w, const WindowTile& tile, const WindowTile& other, std::int64_t offset) {
  const std::int64_t span = span_of(w, tile);
  const std::int64_t other_span = span_of(w, other);
  if (offset >= span || -offset >= other_span) return 0;
  if (offset == 0 && tile == other) return window_size(w, tile);
  if (window_size(w, tile) == span && window_size(w, other) == other_span) {
    return std::min(span, offset + other_span) - std::max<std::int64_t>(0, offset);
  }
  const auto swapped = [](const WindowTile& t) { return WindowTile{t.m, t.n}; };
  if (tile.m * other.m <= tile.n * other.n) return overlap_by_rows(w, tile, other, offset);
  return overlap_by_rows({w.b, w.a, w.unit}, swapped(tile), swapped(other), offset);
}

WindowUnion window_union(const Window& w, const WindowTile& tile, std::int64_t before,
                         std::span<const Progression> copies) {
  std::array<Progression, kMostProgressions> kept;
  std::size_t count = 0;
  std::int64_t total_span = span_of(w, tile);
  for (const Progression& each : copies) {
    total_span += (each.count - 1) * each.step;
    if (count == kept.size()) return {-1, -1};
    std::size_t at = count++;  // insertion keeps the steps ascending
    for (; at > 0 && kept[at - 1].step > each.step; --at) kept[at] = kept[at - 1];
    kept[at] = each;
  }
  if (total_span > kWidestSpan) return {-1, -1};
  const std::span<const Progression> sorted(kept.data(), count);
  const std::int64_t span = span_of(w, tile);
  if (window_size(w, tile) == span) {
    const std::int64_t fresh = before == 0 ? 0 : std::min(before < 0 ? -before : before, span);
    const WindowUnion result{union_of_intervals(span, sorted), fresh == 0 ? 0 : union_of_intervals(fresh, sorted)};
    if (result.all >= 0 && result.fresh >= 0) return result;
  }
  const auto words = static_cast<std::size_t>(total_span / kWordBits + 1);
  std::array<Word, 3 * 16> small;
  if (3 * words <= small.size()) {
    std::fill_n(small.begin(), 3 * words, 0);
    return union_by_bits(w, tile, before, sorted, std::span(small).first(3 * words), span);
  }
  std::vector<Word> large(3 * words, 0);
  return union_by_bits(w, tile, before, sorted, large, span);
}

}  // namespace plumbline::schedule
