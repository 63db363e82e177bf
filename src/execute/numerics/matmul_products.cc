#include "execute/numerics/matmul_products.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "core/parallel.h"

namespace plumbline::numerics {
namespace {

// A finite nonzero binary16 value is odd * 2^last, odd < 2^11. A product is a value of binary16 exactly where
// odd_a odd_b < 2^11, last_a + last_b >= -24, and it lies below 2^16 (no 11 bits make a value from 65520 to 2^16).
constexpr std::uint32_t kMostOdd = 2047;  // 2^11 - 1
constexpr int kLeastExponent = -24;       // of binary16's least value, and of every last bit
constexpr int kMostExponent = 15;         // of binary16's largest value
constexpr int kExponents = kMostExponent - kLeastExponent + 1;
constexpr std::uint32_t kMostKey = 45;  // of two odd factors beyond, the product is: 47 * 47 > 2047
constexpr int kKeys = (kMostKey + 1) / 2;
constexpr int kRowStride = 64;  // 2^6, at least kExponents

/// A finite nonzero magnitude of binary16: its exponent less kLeastExponent, then ten bits of fraction.
using Value = std::uint16_t;
constexpr std::uint32_t kValues = kExponents << 10U;

/// At least kValues where a binary32 image is zero, infinite or NaN.
std::uint32_t value_of(float image) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(image) & 0x7FFFFFFFU;
  return (magnitude >> 13U) - (static_cast<std::uint32_t>(127 + kLeastExponent) << 10U);
}
constexpr int exponent_of(Value value) { return (value >> 10U) + kLeastExponent; }
constexpr std::uint32_t significand_of(Value value) { return (value & 1023U) | 1024U; }
constexpr std::uint32_t odd_of(Value value) {
  return significand_of(value) >> static_cast<unsigned>(std::countr_zero(significand_of(value)));
}
constexpr int last_of(Value value) { return exponent_of(value) - 10 + std::countr_zero(significand_of(value)); }

/// Exact products of a value are those with partners whose odd part is one of the first `keys` odd numbers and whose
/// last bit is at least `least` steps above 2^-24, as far as those odd parts go: keys * kRowStride + least.
constexpr std::array<std::uint16_t, kValues> make_cells() {
  std::array<std::uint16_t, kValues> cells{};
  for (std::uint32_t i = 0; i < kValues; ++i) {
    const auto value = static_cast<Value>(i);
    const std::uint32_t keys = (std::min(kMostOdd / odd_of(value), kMostKey) + 1) / 2;
    cells[i] = static_cast<std::uint16_t>(keys * kRowStride + static_cast<std::uint32_t>(std::max(0, -last_of(value))));
  }
  return cells;
}
// Not constexpr: making it takes more steps than clang allows a constant.
const std::array<std::uint16_t, kValues> kCells = make_cells();
/// Whether a value's odd part is at most kMostKey: it may then be multiplied with all such.
constexpr bool has_key(std::uint16_t cell) { return cell >= kKeys * kRowStride; }

/// One operand's values at one k.
struct Side {
  std::vector<Value> values;  ///< the finite nonzero ones, then room
  std::size_t count = 0;
  std::array<std::int32_t, kExponents> exponents{};
  std::array<std::int32_t, kExponents> powers{};  ///< of those, powers of two
  /// [keys][least]: values whose odd part is one of the first `keys` odd numbers, their last bit at least `least` steps
  /// above 2^-24.
  std::array<std::int32_t, (kKeys + 1) * kRowStride> partners{};
  int least_exponent = 0;
  int most_exponent = 0;

  [[nodiscard]] std::span<const Value> all() const { return {values.data(), count}; }
  void summarize();
};

void Side::summarize() {
  std::array<std::array<std::int32_t, kExponents>, 4> quarters{};  // so that equal neighbours do not wait
  partners.fill(0);
  for (std::size_t i = 0; i < count; ++i) {
    ++quarters[i % 4][values[i] >> 10U];
    if (!has_key(kCells[values[i]])) continue;
    ++partners[(odd_of(values[i]) + 1) / 2 * kRowStride +
               static_cast<std::uint32_t>(last_of(values[i]) - kLeastExponent)];
  }
  const auto first = partners.begin() + kRowStride;
  std::copy(first, first + kExponents, powers.begin());  // the odd part 1: last bit and leading bit are one
  for (std::size_t key = 1; key <= kKeys; ++key) {
    std::int32_t* const row = partners.data() + key * kRowStride;
    for (std::size_t i = kExponents - 1; i > 0; --i) row[i - 1] += row[i];
    for (std::size_t i = 0; i < kExponents; ++i) row[i] += row[static_cast<std::ptrdiff_t>(i) - kRowStride];
  }
  least_exponent = kMostExponent;
  most_exponent = kLeastExponent;
  for (int e = kLeastExponent; e <= kMostExponent; ++e) {
    const auto at = static_cast<std::size_t>(e - kLeastExponent);
    exponents[at] = quarters[0][at] + quarters[1][at] + quarters[2][at] + quarters[3][at];
    if (exponents[at] == 0) continue;
    least_exponent = std::min(least_exponent, e);
    most_exponent = e;
  }
}

std::int64_t count_exact(const Side& a, const Side& b) {
  std::int64_t exact = 0;
  for (const Value value : a.all()) exact += b.partners[kCells[value]];
  for (const Value value : b.all()) {
    const std::uint16_t cell = kCells[value];
    exact += has_key(cell) ? 0 : a.partners[cell];  // pairs with two keys were counted above
  }
  if (a.most_exponent + b.most_exponent < kMostExponent) return exact;
  // Exact but for their size: from 2^16 on, that is with exponents whose sum is 15 at least.
  std::vector<Value> large;
  for (const Value value : b.all()) {
    if (exponent_of(value) + a.most_exponent >= kMostExponent) large.push_back(value);
  }
  for (const Value value : a.all()) {
    if (exponent_of(value) + b.most_exponent < kMostExponent) continue;
    for (const Value other : large) {
      const std::uint32_t product = odd_of(value) * odd_of(other);
      const int last = last_of(value) + last_of(other);
      const int exponent = std::bit_width(product) - 1 + last;
      exact -= product <= kMostOdd && last >= kLeastExponent && exponent > kMostExponent ? 1 : 0;
    }
  }
  return exact;
}

/// Significands in [1024, 2048) of the values of one exponent that are no powers of two, ascending.
std::vector<std::uint32_t> significands(const Side& side, int exponent) {
  std::vector<std::uint32_t> found;
  for (const Value value : side.all()) {
    if (exponent_of(value) == exponent && (value & 1023U) != 0) found.push_back(significand_of(value));
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Products of at most 2^-25, half of binary16's least value. Of significands s in [1, 2): all where the exponents' sum
/// is below -26, where s_a s_b <= 2 at -26, and where both are powers of two at -25.
std::int64_t count_to_zero(const Side& a, const Side& b) {
  constexpr int kHalfExponent = kLeastExponent - 1;
  if (a.least_exponent + b.least_exponent > kHalfExponent) return 0;
  std::int64_t count = 0;
  std::int64_t below = 0;  // values of b with exponents below -26 - e
  int summed = kLeastExponent;
  const auto at = [](const auto& counts, int e) {
    return e < kLeastExponent || e > kMostExponent ? std::int64_t{0}
                                                   : std::int64_t{counts[static_cast<std::size_t>(e - kLeastExponent)]};
  };
  for (int e = kMostExponent; e >= kLeastExponent; --e) {
    const int edge = kHalfExponent - 1 - e;
    for (; summed < edge && summed <= kMostExponent; ++summed) below += at(b.exponents, summed);
    if (at(a.exponents, e) == 0) continue;
    count += at(a.exponents, e) * below + at(a.powers, e) * at(b.powers, edge + 1);
    const std::int64_t others_a = at(a.exponents, e) - at(a.powers, e);
    const std::int64_t others_b = at(b.exponents, edge) - at(b.powers, edge);
    count += at(a.powers, e) * at(b.exponents, edge) + others_a * at(b.powers, edge);
    if (others_a == 0 || others_b == 0) continue;
    const std::vector<std::uint32_t> low = significands(a, e);
    const std::vector<std::uint32_t> high = significands(b, edge);
    std::size_t fit = high.size();
    for (const std::uint32_t s : low) {  // ascending: fewer and fewer fit
      while (fit > 0 && s * high[fit - 1] > (1U << 21U)) --fit;
      count += static_cast<std::int64_t>(fit);
    }
  }
  return count;
}

/// The finite nonzero values of k in [first, first + sides.size()).
template <int kLanes>
void gather(const Buffer<float>& panels, std::int64_t depth, std::int64_t first, std::vector<Side>& sides) {
  const auto stride = static_cast<std::size_t>(depth * kLanes);
  for (Side& side : sides) side.values.resize(panels.size() / static_cast<std::size_t>(depth) + 1);
  for (std::size_t panel = 0; panel < panels.size(); panel += stride) {
    const float* from = panels.data() + panel + static_cast<std::size_t>(first) * kLanes;
    for (Side& side : sides) {
      Value* const to = side.values.data();
      std::size_t count = side.count;
      for (int i = 0; i < kLanes; ++i) {
        const std::uint32_t value = value_of(*from++);
        to[count] = static_cast<Value>(value);
        count += value < kValues ? 1 : 0;
      }
      side.count = count;
    }
  }
}

/// Values of k that are counted together: enough that every line of the packed operands is read once.
constexpr std::int64_t kDepth = 32;

}  // namespace

bool operands_fit_binary16(const MatmulOperands& operands, const OperandScan& a, const OperandScan& b) {
  return operands.a_format.fraction_bits <= 10 && operands.b_format.fraction_bits <= 10 &&
         std::min(a.min_last_bit, b.min_last_bit) >= kLeastExponent &&
         std::max(a.max_exponent, b.max_exponent) <= kMostExponent;
}

ProductCounts count_product_losses(const MatmulPlan& plan, unsigned threads) {
  const std::int64_t depth = plan.operands.k;
  std::vector<ProductCounts> parts(static_cast<std::size_t>((depth + kDepth - 1) / kDepth));
  parallel_for(parts.size(), threads, [&](std::size_t job) {
    const std::int64_t first = static_cast<std::int64_t>(job) * kDepth;
    const auto steps = static_cast<std::size_t>(std::min(kDepth, depth - first));
    std::vector<Side> a(steps);
    std::vector<Side> b(steps);
    gather<kPanelRows>(plan.a_panels, depth, first, a);
    gather<kPanelColumns>(plan.b_panels, depth, first, b);
    for (std::size_t k = 0; k < steps; ++k) {
      a[k].summarize();
      b[k].summarize();
      const auto pairs = static_cast<std::int64_t>(a[k].count) * static_cast<std::int64_t>(b[k].count);
      const std::int64_t to_zero = count_to_zero(a[k], b[k]);
      parts[job].to_zero += to_zero;
      parts[job].rounded_nonzero += pairs - to_zero;
      parts[job].inexact += pairs - count_exact(a[k], b[k]);
    }
  });
  ProductCounts total;
  for (const ProductCounts& part : parts) {
    total.to_zero += part.to_zero;
    total.rounded_nonzero += part.rounded_nonzero;
    total.inexact += part.inexact;
  }
  return total;
}

}  // namespace plumbline::numerics
