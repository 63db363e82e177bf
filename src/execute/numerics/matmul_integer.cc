#include "execute/numerics/matmul_integer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/parallel.h"
#include "execute/numerics/matmul_integer_kernel.h"

namespace plumbline::numerics {
namespace {

constexpr std::int64_t kTileSize = std::int64_t{kIntegerRows} * kIntegerColumns;
constexpr std::int64_t kInt32Max = 0x7FFFFFFF;

std::int64_t value_of(const IntegerMatrix& matrix, std::int64_t index) {
  const std::int8_t code = matrix.codes[static_cast<std::size_t>(index)];
  return (matrix.is_unsigned ? std::int64_t{static_cast<std::uint8_t>(code)} : std::int64_t{code}) - matrix.zero_point;
}

Status check_matrix(const IntegerMatrix& matrix, std::string_view name) {
  if (matrix.rows < 1 || matrix.columns < 1) {
    return make_error("shape-mismatch", {}, fmt::format("{} is {} x {}", name, matrix.rows, matrix.columns),
                      "every dimension of a product is at least 1");
  }
  if (matrix.codes.size() != static_cast<std::size_t>(matrix.rows) * static_cast<std::size_t>(matrix.columns)) {
    return make_error(
        "shape-mismatch", {},
        fmt::format("{} is {} x {} but holds {} elements", name, matrix.rows, matrix.columns, matrix.codes.size()));
  }
  const int low = matrix.is_unsigned ? 0 : -128;
  if (matrix.zero_point < low || matrix.zero_point > low + 255) {
    return make_error("bad-value", {}, fmt::format("{} has the zero point {}", name, matrix.zero_point),
                      fmt::format("a zero point is one of its codes, {} to {}", low, low + 255));
  }
  return Done{};
}

Status check_operands(const IntegerMatrix& a, const IntegerMatrix& b, std::span<const std::int32_t> c) {
  PL_TRY_STATUS(check_matrix(a, "a"));
  PL_TRY_STATUS(check_matrix(b, "b"));
  if (a.columns != b.rows) {
    return make_error("shape-mismatch", {},
                      fmt::format("a is {} x {} and b is {} x {}", a.rows, a.columns, b.rows, b.columns),
                      "the columns of a are the rows of b");
  }
  if (!c.empty() && c.size() != static_cast<std::size_t>(a.rows) * static_cast<std::size_t>(b.columns)) {
    return make_error("shape-mismatch", {},
                      fmt::format("c holds {} elements, the product {} x {}", c.size(), a.rows, b.columns));
  }
  return Done{};
}

/// How the codes enter the kernel: stored = code - shift, value = stored + offset.
struct Stored {
  const IntegerMatrix* matrix;
  int shift = 0;
  std::int64_t offset = 0;
  std::int64_t largest = 0;  ///< largest magnitude of a value
};

template <class Code>
int largest_magnitude(std::span<const std::int8_t> codes, int zero_point) {
  auto least = static_cast<Code>(codes.front());
  auto most = least;
  for (const std::int8_t code : codes) {
    least = std::min(least, static_cast<Code>(code));
    most = std::max(most, static_cast<Code>(code));
  }
  return std::max(zero_point - int{least}, int{most} - zero_point);
}

/// Over all values of a matrix.
std::int64_t largest_magnitude(const IntegerMatrix& matrix, unsigned threads) {
  constexpr std::size_t kChunk = std::size_t{1} << 18U;
  std::vector<int> parts((matrix.codes.size() + kChunk - 1) / kChunk);
  parallel_for(parts.size(), threads, [&](std::size_t i) {
    const auto part = matrix.codes.subspan(i * kChunk, std::min(kChunk, matrix.codes.size() - i * kChunk));
    parts[i] = matrix.is_unsigned ? largest_magnitude<std::uint8_t>(part, matrix.zero_point)
                                  : largest_magnitude<std::int8_t>(part, matrix.zero_point);
  });
  return *std::max_element(parts.begin(), parts.end());
}

/// Pairs store values themselves. Bytes are moved into the signed range for a, the unsigned one for b.
Stored stored(const IntegerMatrix& matrix, bool bytes, bool as_unsigned, unsigned threads) {
  const int low = matrix.is_unsigned ? 0 : -128;
  const int shift = bytes ? low - (as_unsigned ? 0 : -128) : matrix.zero_point;
  return {&matrix, shift, shift - matrix.zero_point, largest_magnitude(matrix, threads)};
}

/// One panel: kLanes rows of a (kTransposed) or columns of b, `width` of them real; padding is zero. Adds each lane's
/// stored codes to sums.
template <class Code, int kPerGroup, int kLanes, bool kTransposed>
void pack_panel(const Stored& source, std::int64_t first, std::int64_t width, std::uint32_t* out, std::int32_t* sums) {
  constexpr int kBits = 32 / kPerGroup;
  constexpr std::uint32_t kMask = kPerGroup == 4 ? 0xFFU : 0xFFFFU;
  const std::int64_t stride = source.matrix->columns;
  const std::int64_t depth = kTransposed ? stride : source.matrix->rows;
  const int shift = source.shift;
  const auto* const codes = reinterpret_cast<const Code*>(source.matrix->codes.data());
  const std::int64_t groups = (depth + kPerGroup - 1) / kPerGroup;
  std::fill(out, out + groups * kLanes, 0U);
  for (std::int64_t g = 0; g < groups; ++g) {
    std::uint32_t* const to = out + g * kLanes;
    const int present = static_cast<int>(std::min<std::int64_t>(kPerGroup, depth - g * kPerGroup));
    for (int j = 0; j < present; ++j) {
      const std::int64_t k = g * kPerGroup + j;
      const Code* const from = codes + (kTransposed ? first * stride + k : k * stride + first);
      const std::int64_t step = kTransposed ? stride : 1;
      for (std::int64_t i = 0; i < width; ++i) {
        const int value = int{from[i * step]} - shift;
        to[i] |= (static_cast<std::uint32_t>(value) & kMask) << (kBits * j);
        sums[i] += value;
      }
    }
  }
}

/// Everything the tiles share.
struct Plan {
  const IntegerMatrix& a;
  const IntegerMatrix& b;
  std::span<const std::int32_t> c;
  bool bytes;
  Stored a_stored;
  Stored b_stored;
  int per_group;
  std::int64_t groups;
  std::int64_t safe_groups;  ///< groups whose exact sum of stored products stays within 31 bits, c aside
  bool fits;                 ///< no result, c included, can leave 32 bits
  Buffer<std::uint32_t> a_panels;
  Buffer<std::uint32_t> b_panels;
  std::vector<std::int32_t> a_sums;  ///< of stored codes, by row
  std::vector<std::int32_t> b_sums;  ///< by column
};

std::int64_t panels_of(std::int64_t count, std::int64_t width) { return (count + width - 1) / width; }

template <int kLanes, bool kTransposed>
void pack_one(const Stored& source, bool bytes, std::int64_t count, std::int64_t panel, std::int64_t groups,
              Buffer<std::uint32_t>& panels, std::vector<std::int32_t>& sums) {
  const std::int64_t first = panel * kLanes;
  const std::int64_t width = std::min<std::int64_t>(kLanes, count - first);
  std::uint32_t* const out = panels.data() + panel * groups * kLanes;
  std::int32_t* const lane_sums = sums.data() + first;
  if (source.matrix->is_unsigned) {
    (bytes ? pack_panel<std::uint8_t, 4, kLanes, kTransposed>
           : pack_panel<std::uint8_t, 2, kLanes, kTransposed>)(source, first, width, out, lane_sums);
  } else {
    (bytes ? pack_panel<std::int8_t, 4, kLanes, kTransposed>
           : pack_panel<std::int8_t, 2, kLanes, kTransposed>)(source, first, width, out, lane_sums);
  }
}

void pack_all(Plan& plan, unsigned threads) {
  const auto row_panels = static_cast<std::size_t>(panels_of(plan.a.rows, kIntegerRows));
  const auto column_panels = static_cast<std::size_t>(panels_of(plan.b.columns, kIntegerColumns));
  plan.a_panels = Buffer<std::uint32_t>(row_panels * static_cast<std::size_t>(plan.groups * kIntegerRows));
  plan.b_panels = Buffer<std::uint32_t>(column_panels * static_cast<std::size_t>(plan.groups * kIntegerColumns));
  plan.a_sums.resize(row_panels * kIntegerRows);
  plan.b_sums.resize(column_panels * kIntegerColumns);
  parallel_for(row_panels + column_panels, threads, [&](std::size_t job) {
    if (job < row_panels) {
      pack_one<kIntegerRows, true>(plan.a_stored, plan.bytes, plan.a.rows, static_cast<std::int64_t>(job), plan.groups,
                                   plan.a_panels, plan.a_sums);
    } else {
      pack_one<kIntegerColumns, false>(plan.b_stored, plan.bytes, plan.b.columns,
                                       static_cast<std::int64_t>(job - row_panels), plan.groups, plan.b_panels,
                                       plan.b_sums);
    }
  });
}

struct Tile {
  std::int64_t row;
  std::int64_t column;
  std::int64_t rows;
  std::int64_t columns;
  IntegerPanels panels;
};

std::int32_t wrap(std::int64_t sum) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(sum)); }

void count_result(std::int64_t sum, IntegerCounters& counters) {
  counters.results += 1;
  counters.wrapped += wrap(sum) != sum ? 1 : 0;
  counters.largest = std::max(counters.largest, std::abs(sum));
}

void multiply(const Plan& plan, const Tile& tile, std::int64_t first, std::int64_t last, std::int32_t* sums) {
  if (plan.bytes) {
    integer_tile_bytes(tile.panels, first, last, sums);
  } else {
    integer_tile_pairs(tile.panels, first, last, sums);
  }
}

/// What turns a sum of stored products into one of values: sum (a'+oa)(b'+ob) = sum a'b' + oa sum b' + ob sum a' + K oa
/// ob.
std::int64_t row_correction(const Plan& plan, std::int64_t row) {
  return plan.b_stored.offset * (plan.a_sums[static_cast<std::size_t>(row)] + plan.a.columns * plan.a_stored.offset);
}

/// Modulo 2^32, which is exact because no result can leave 32 bits.
void run_tile_fitting(const Plan& plan, const Tile& tile, IntegerProduct& product, IntegerCounters& counters) {
  std::array<std::int32_t, kTileSize> sums{};
  multiply(plan, tile, 0, plan.groups, sums.data());
  const auto oa = static_cast<std::uint32_t>(plan.a_stored.offset);
  std::int32_t least = 0;
  std::int32_t most = 0;
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const auto row_part = static_cast<std::uint32_t>(row_correction(plan, tile.row + r));
    const std::int32_t* const from = sums.data() + r * kIntegerColumns;
    const std::int32_t* const b_sums = plan.b_sums.data() + tile.column;
    const std::int64_t at = (tile.row + r) * plan.b.columns + tile.column;
    std::int32_t* const to = product.values.data() + at;
    const std::int32_t* const c = plan.c.empty() ? nullptr : plan.c.data() + at;
    for (std::int64_t i = 0; i < tile.columns; ++i) {
      const std::uint32_t sum =
          static_cast<std::uint32_t>(from[i]) + row_part + oa * static_cast<std::uint32_t>(b_sums[i]);
      to[i] = static_cast<std::int32_t>(sum + (c != nullptr ? static_cast<std::uint32_t>(c[i]) : 0U));
      least = std::min(least, to[i]);
      most = std::max(most, to[i]);
    }
  }
  counters.results += tile.rows * tile.columns;
  counters.largest = std::max({counters.largest, -std::int64_t{least}, std::int64_t{most}});
}

/// Exact sums in 64 bits from runs of k that stay within 32.
void run_tile_wide(const Plan& plan, const Tile& tile, IntegerProduct& product, IntegerCounters& counters) {
  std::array<std::int64_t, kTileSize> exact{};
  for (std::int64_t first = 0; first < plan.groups; first += plan.safe_groups) {
    std::array<std::int32_t, kTileSize> sums{};
    multiply(plan, tile, first, std::min(plan.groups, first + plan.safe_groups), sums.data());
    for (std::size_t i = 0; i < sums.size(); ++i) exact[i] += sums[i];
  }
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const std::int64_t row_part = row_correction(plan, tile.row + r);
    for (std::int64_t i = 0; i < tile.columns; ++i) {
      const auto at = static_cast<std::size_t>((tile.row + r) * plan.b.columns + tile.column + i);
      const std::int64_t b_sum = plan.b_sums[static_cast<std::size_t>(tile.column + i)];
      std::int64_t sum = exact[static_cast<std::size_t>(r * kIntegerColumns + i)] + row_part;
      sum += plan.a_stored.offset * b_sum + (plan.c.empty() ? 0 : plan.c[at]);
      product.values[at] = wrap(sum);
      count_result(sum, counters);
    }
  }
}

}  // namespace

Result<IntegerProduct> matmul_integer(const IntegerMatrix& a, const IntegerMatrix& b, std::span<const std::int32_t> c,
                                      unsigned threads) {
  PL_TRY_STATUS(check_operands(a, b, c));
  const bool bytes = integer_bytes_supported();
  const int per_group = bytes ? 4 : 2;
  Plan plan{.a = a,
            .b = b,
            .c = c,
            .bytes = bytes,
            .a_stored = stored(a, bytes, false, threads),
            .b_stored = stored(b, bytes, true, threads),
            .per_group = per_group,
            .groups = (a.columns + per_group - 1) / per_group,
            .safe_groups = 1,
            .fits = false,
            .a_panels = {},
            .b_panels = {},
            .a_sums = {},
            .b_sums = {}};
  const std::int64_t value_bound = plan.a_stored.largest * plan.b_stored.largest;
  const std::int64_t stored_bound = std::max<std::int64_t>(1, bytes ? std::int64_t{128} * 255 : value_bound);
  plan.safe_groups = std::max<std::int64_t>(1, kInt32Max / stored_bound / per_group);
  std::int64_t c_bound = 0;
  for (const std::int32_t value : c) c_bound = std::max(c_bound, std::abs(std::int64_t{value}));
  plan.fits = value_bound <= kInt32Max / a.columns && value_bound * a.columns + c_bound <= kInt32Max;
  pack_all(plan, threads);
  const std::int64_t row_panels = panels_of(a.rows, kIntegerRows);
  const std::int64_t column_panels = panels_of(b.columns, kIntegerColumns);
  IntegerProduct product;
  product.values = Buffer<std::int32_t>(static_cast<std::size_t>(a.rows * b.columns));
  // A column panel is packed once and stays in the cache while the rows pass.
  std::vector<IntegerCounters> parts(static_cast<std::size_t>(column_panels));
  parallel_for(static_cast<std::size_t>(column_panels), threads, [&](std::size_t panel) {
    const std::int64_t column = static_cast<std::int64_t>(panel) * kIntegerColumns;
    for (std::int64_t i = 0; i < row_panels; ++i) {
      const std::int64_t row = i * kIntegerRows;
      const Tile tile{row,
                      column,
                      std::min<std::int64_t>(kIntegerRows, a.rows - row),
                      std::min<std::int64_t>(kIntegerColumns, b.columns - column),
                      {plan.a_panels.data() + row * plan.groups, plan.b_panels.data() + column * plan.groups}};
      (plan.fits ? run_tile_fitting : run_tile_wide)(plan, tile, product, parts[panel]);
    }
  });
  for (const IntegerCounters& part : parts) {
    product.counters.results += part.results;
    product.counters.wrapped += part.wrapped;
    product.counters.largest = std::max(product.counters.largest, part.largest);
  }
  return product;
}

Result<IntegerProduct> matmul_integer_scalar(const IntegerMatrix& a, const IntegerMatrix& b,
                                             std::span<const std::int32_t> c) {
  PL_TRY_STATUS(check_operands(a, b, c));
  IntegerProduct product;
  product.values = Buffer<std::int32_t>(static_cast<std::size_t>(a.rows * b.columns));
  for (std::int64_t m = 0; m < a.rows; ++m) {
    for (std::int64_t n = 0; n < b.columns; ++n) {
      std::int64_t sum = c.empty() ? 0 : c[static_cast<std::size_t>(m * b.columns + n)];
      for (std::int64_t k = 0; k < a.columns; ++k)
        sum += value_of(a, m * a.columns + k) * value_of(b, k * b.columns + n);
      product.values[static_cast<std::size_t>(m * b.columns + n)] = wrap(sum);
      count_result(sum, product.counters);
    }
  }
  return product;
}

}  // namespace plumbline::numerics
