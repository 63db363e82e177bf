#include "execute/numerics/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <thread>

#include "core/parallel.h"
#include "execute/numerics/matmul_counted_kernel.h"
#include "execute/numerics/matmul_plan.h"
#include "execute/numerics/matmul_products.h"

namespace plumbline::numerics {
namespace {

constexpr std::uint32_t kInfinityBits = 0x7F800000;

std::string shape(std::int64_t rows, std::int64_t columns) { return fmt::format("{} x {}", rows, columns); }

Status check_size(std::span<const float> values, std::int64_t rows, std::int64_t columns, std::string_view name) {
  if (values.size() == static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)) return Done{};
  return make_error("shape-mismatch", {},
                    fmt::format("{} is {} but holds {} elements", name, shape(rows, columns), values.size()));
}

Status check_shapes(const MatmulOperands& operands) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;  // keeps every element index and step number far from 64 bits
  for (const std::int64_t size : {operands.m, operands.n, operands.k}) {
    if (size >= 1 && size <= kLimit) continue;
    return make_error("shape-mismatch", {},
                      fmt::format("m, n and k are {}, {} and {}", operands.m, operands.n, operands.k),
                      "every dimension lies between 1 and 2^31");
  }
  PL_TRY_STATUS(check_size(operands.a, operands.m, operands.k, "a"));
  PL_TRY_STATUS(check_size(operands.b, operands.k, operands.n, "b"));
  if (!operands.c.empty()) PL_TRY_STATUS(check_size(operands.c, operands.m, operands.n, "c"));
  return Done{};
}

struct Scans {
  OperandScan a;
  OperandScan b;
};

Result<Scans> check_all(const MatmulOperands& operands, const Accumulation& accumulation, unsigned threads) {
  PL_TRY_STATUS(check_shapes(operands));
  PL_TRY_STATUS(check_accumulation(accumulation, operands.k, operands.a_format, operands.b_format));
  Scans scans;
  PL_TRY(scans.a, scan_operand(operands.a, operands.a_format, "a", operands.k, threads));
  PL_TRY(scans.b, scan_operand(operands.b, operands.b_format, "b", operands.n, threads));
  OperandScan c;
  if (!operands.c.empty()) {
    PL_TRY(c, scan_operand(operands.c, result_format(accumulation), "c", operands.n, threads));
  }
  bool all_have_nan = accumulation.accumulator.format.has_nan();
  for (const Blocking& blocking : accumulation.blockings) all_have_nan = all_have_nan && blocking.into.format.has_nan();
  if (!all_have_nan && (scans.a.has_special || scans.b.has_special || c.has_special)) {
    return make_error("bad-value", {}, "NaN or infinities into an accumulator without NaN",
                      "mend the operands or accumulate in a format with NaN");
  }
  return scans;
}

std::int64_t panels_of(std::int64_t count, std::int64_t width) { return (count + width - 1) / width; }

bool any_special(std::span<const float> values) {
  std::uint32_t most = 0;
  for (const float value : values) most = std::max(most, std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU);
  return most >= kInfinityBits;
}

/// The exponent the tensor-core rule compares, or a mark.
std::int16_t packed_exponent(float value, int min_normal_exponent) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF;
  if (magnitude == 0) return kZeroExponent;
  if (magnitude >= kInfinityBits) return kSpecialExponent;
  return static_cast<std::int16_t>(std::max(static_cast<int>(magnitude >> 23) - 127, min_normal_exponent));
}

/// One NaN only: the bfloat16 kernel's carry would turn the largest payloads into numbers.
void quiet_nans(std::span<float> values) {
  for (float& value : values) {
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  }
}

void pack_a(MatmulPlan& plan, std::int64_t panel) {
  const MatmulOperands& operands = plan.operands;
  const std::int64_t* const order = plan.accumulation.order.empty() ? nullptr : plan.accumulation.order.data();
  const std::int64_t first = panel * kPanelRows;
  const std::int64_t rows = std::min<std::int64_t>(kPanelRows, operands.m - first);
  const std::span<float> out(plan.a_panels.data() + first * operands.k,
                             static_cast<std::size_t>(operands.k * kPanelRows));
  const float* const from = operands.a.data() + first * operands.k;
  for (std::int64_t k = 0; k < operands.k; ++k) {
    const float* const column = from + (order == nullptr ? k : order[k]);
    float* const to = out.data() + k * kPanelRows;
    for (std::int64_t r = 0; r < rows; ++r) to[r] = column[r * operands.k];
    for (std::int64_t r = rows; r < kPanelRows; ++r) to[r] = 0.0F;
  }
  if (!plan.row_special.empty()) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto row =
          operands.a.subspan(static_cast<std::size_t>((first + r) * operands.k), static_cast<std::size_t>(operands.k));
      plan.row_special[static_cast<std::size_t>(first + r)] = any_special(row) ? 1 : 0;
    }
    quiet_nans(out);
  }
  if (plan.kernel != InnerKernel::tensor_core) return;
  const int least = operands.a_format.min_normal_exponent();
  std::int32_t* const exponents = plan.a_exponents.data() + first * operands.k;
  for (std::int64_t i = 0; i < operands.k * kPanelRows; ++i) {
    const auto exponent = static_cast<std::uint16_t>(packed_exponent(out[static_cast<std::size_t>(i)], least));
    exponents[i] = static_cast<std::int32_t>(exponent * 0x10001U);
  }
}

void pack_b(MatmulPlan& plan, std::int64_t panel) {
  const MatmulOperands& operands = plan.operands;
  const std::vector<std::int64_t>& order = plan.accumulation.order;
  const std::int64_t first = panel * kPanelColumns;
  const std::int64_t columns = std::min<std::int64_t>(kPanelColumns, operands.n - first);
  const std::span<float> out(plan.b_panels.data() + first * operands.k,
                             static_cast<std::size_t>(operands.k * kPanelColumns));
  for (std::int64_t k = 0; k < operands.k; ++k) {
    const std::int64_t row = order.empty() ? k : order[static_cast<std::size_t>(k)];
    const float* const from = operands.b.data() + row * operands.n + first;
    float* const to = out.data() + k * kPanelColumns;
    std::copy(from, from + columns, to);
    std::fill(to + columns, to + kPanelColumns, 0.0F);
  }
  if (!plan.column_special.empty()) {
    std::array<std::uint32_t, kPanelColumns> most{};
    for (std::size_t i = 0; i < out.size(); i += kPanelColumns) {
      for (std::size_t c = 0; c < kPanelColumns; ++c) {
        most[c] = std::max(most[c], std::bit_cast<std::uint32_t>(out[i + c]) & 0x7FFFFFFFU);
      }
    }
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c) {
      plan.column_special[static_cast<std::size_t>(first) + c] = most[c] >= kInfinityBits ? 1 : 0;
    }
    quiet_nans(out);
  }
  if (plan.kernel != InnerKernel::tensor_core) return;
  const int least = operands.b_format.min_normal_exponent();
  std::int16_t* const exponents = plan.b_exponents.data() + first * operands.k;
  for (std::size_t i = 0; i < out.size(); ++i) exponents[i] = packed_exponent(out[i], least);
}

/// Nonzero values of a packed panel, by k.
template <int kLanes>
void count_nonzero(const Buffer<float>& panels, std::int64_t panel, std::int64_t depth, Buffer<std::int16_t>& counts) {
  if (counts.empty()) return;
  const float* from = panels.data() + panel * depth * kLanes;
  std::int16_t* const to = counts.data() + panel * depth;
  for (std::int64_t k = 0; k < depth; ++k, from += kLanes) {
    to[k] = static_cast<std::int16_t>(kLanes - std::count(from, from + kLanes, 0.0F));
  }
}

/// Whether an operand's last bits leave room for kZeroLastBit and every grid, see kLeastLastBit.
bool last_bits_fit(const OperandScan& scan) {
  return scan.min_last_bit >= kLeastLastBit / 2 && scan.max_exponent <= 30;
}

/// Exponent of the last bit of a normal binary32 value, or the mark of zero. Special values are nobody's concern.
std::int8_t last_bit(float value) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
  if (magnitude == 0) return kZeroLastBit;
  const int exponent = static_cast<int>(magnitude >> 23U) - 127;
  return static_cast<std::int8_t>(exponent - 23 + std::countr_zero(magnitude | 0x800000U));
}

/// Last bits of a packed panel, each `copies` times.
template <int kLanes>
void pack_last_bits(const Buffer<float>& panels, std::int64_t panel, std::int64_t depth, int copies,
                    Buffer<std::int8_t>& bits) {
  if (bits.empty()) return;
  const float* const from = panels.data() + panel * depth * kLanes;
  std::int8_t* to = bits.data() + panel * depth * kLanes * copies;
  for (std::int64_t i = 0; i < depth * kLanes; ++i) to = std::fill_n(to, copies, last_bit(from[i]));
}

/// The k at which a packed panel holds a special value.
template <int kLanes>
std::vector<std::int64_t> find_specials(const Buffer<float>& panels, std::int64_t panel, std::int64_t depth) {
  std::vector<std::int64_t> found;
  const float* const from = panels.data() + panel * depth * kLanes;
  for (std::int64_t k = 0; k < depth; ++k) {
    if (any_special({from + k * kLanes, kLanes})) found.push_back(k);
  }
  return found;
}

/// Packs both operands, each panel by one thread, and marks rows and columns that hold a special value.
void pack_all(MatmulPlan& plan, const Scans& scans, unsigned threads) {
  const MatmulOperands& operands = plan.operands;
  const std::int64_t row_panels = panels_of(operands.m, kPanelRows);
  const std::int64_t column_panels = panels_of(operands.n, kPanelColumns);
  plan.a_panels = Buffer<float>(static_cast<std::size_t>(row_panels * kPanelRows * operands.k));
  plan.b_panels = Buffer<float>(static_cast<std::size_t>(column_panels * kPanelColumns * operands.k));
  if (plan.kernel == InnerKernel::tensor_core) {
    plan.a_exponents = Buffer<std::int32_t>(plan.a_panels.size());
    plan.b_exponents = Buffer<std::int16_t>(plan.b_panels.size());
    if (plan.observe) {
      plan.a_nonzero = Buffer<std::int16_t>(static_cast<std::size_t>(row_panels * operands.k));
      plan.b_nonzero = Buffer<std::int16_t>(static_cast<std::size_t>(column_panels * operands.k));
    }
    if (plan.observe && last_bits_fit(scans.a) && last_bits_fit(scans.b)) {
      plan.a_last = Buffer<std::int8_t>(plan.a_panels.size());
      plan.b_last = Buffer<std::int8_t>(2 * plan.b_panels.size());
    }
  }
  if (plan.sums_apart && (scans.a.has_special || scans.b.has_special)) {
    plan.a_specials.resize(static_cast<std::size_t>(row_panels));
    plan.b_specials.resize(static_cast<std::size_t>(column_panels));
  }
  if (scans.a.has_special) plan.row_special.assign(static_cast<std::size_t>(operands.m), 0);
  if (scans.b.has_special) plan.column_special.assign(static_cast<std::size_t>(operands.n), 0);
  parallel_for(static_cast<std::size_t>(row_panels + column_panels), threads, [&](std::size_t job) {
    const auto panel = static_cast<std::int64_t>(job);
    if (panel < row_panels) {
      pack_a(plan, panel);
      pack_last_bits<kPanelRows>(plan.a_panels, panel, operands.k, 1, plan.a_last);
      count_nonzero<kPanelRows>(plan.a_panels, panel, operands.k, plan.a_nonzero);
      if (!plan.a_specials.empty()) plan.a_specials[job] = find_specials<kPanelRows>(plan.a_panels, panel, operands.k);
    } else {
      pack_b(plan, panel - row_panels);
      pack_last_bits<kPanelColumns>(plan.b_panels, panel - row_panels, operands.k, 2, plan.b_last);
      count_nonzero<kPanelColumns>(plan.b_panels, panel - row_panels, operands.k, plan.b_nonzero);
      if (!plan.b_specials.empty()) {
        plan.b_specials[static_cast<std::size_t>(panel - row_panels)] =
            find_specials<kPanelColumns>(plan.b_panels, panel - row_panels, operands.k);
      }
    }
  });
}

/// Observed steps by kernel, so that the whole stays within 40 % (bench/numerics measures it): all of them where a
/// kernel counts while it computes; else primes, so that no power-of-two structure along k hides from them.
struct AutomaticStride {
  InnerKernel kernel;
  std::int64_t every;
  std::int64_t histogram;  ///< a multiple of every
};
constexpr AutomaticStride kStrides[] = {
    {InnerKernel::binary32_fused, 997, 997},
    {InnerKernel::binary32_rounded, 997, 997},
    {InnerKernel::binary16_rounded, 127, 381},
    {InnerKernel::bfloat16_rounded, 127, 381},
    {InnerKernel::wide, 41, 123},
    {InnerKernel::pairwise, 97, 97},
    {InnerKernel::tensor_core, 1, 97},
};
/// Tensor cores whose operands are too wide to be counted by their last bits.
constexpr AutomaticStride kWideOperands = {InnerKernel::tensor_core, 7, 91};
/// Binary16 sums that are counted in passing, beside products counted once for the matrix. That takes M + N steps a k,
/// so the results must outnumber them.
constexpr AutomaticStride kSumsApart = {InnerKernel::binary16_rounded, 1, 1999};
constexpr std::int64_t kResultsPerLine = 200;  // M N / (M + N): 400 x 400
constexpr std::int64_t kAutomaticJoins = 11;

/// Blocks small enough that every thread has several: a matter of speed, never of bits.
BlockShape choose_block(const MatmulOperands& operands, unsigned threads) {
  BlockShape shape;
  const std::int64_t wanted =
      4 * std::int64_t{threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : threads};
  if (threads == 1) return shape;
  const auto jobs = [&] { return panels_of(operands.m, shape.rows) * panels_of(operands.n, shape.columns); };
  while (jobs() < wanted && shape.columns > kPanelColumns) shape.columns /= 2;
  while (jobs() < wanted && shape.rows > kPanelRows) shape.rows /= 2;
  return shape;
}

const AutomaticStride& choose_stride(const Scans& scans, bool sums_apart, const MatmulPlan& plan) {
  if (plan.kernel == InnerKernel::tensor_core && !(last_bits_fit(scans.a) && last_bits_fit(scans.b))) {
    return kWideOperands;
  }
  const std::int64_t m = plan.operands.m;
  const std::int64_t n = plan.operands.n;
  if (sums_apart && m * n / (m + n) >= kResultsPerLine) return kSumsApart;
  return kStrides[static_cast<int>(plan.kernel)];
}

void set_observation(const Observation& observe, const Scans& scans, MatmulPlan& plan) {
  plan.observe = observe.every != 0;
  constexpr int kLeastBinary32 = -149;  // exponent of its last bit: above, products are exact in it
  if (scans.a.min_last_bit + scans.b.min_last_bit >= kLeastBinary32) {
    if (plan.kernel == InnerKernel::binary16_rounded) plan.counted = NarrowRegister::binary16;
    if (plan.kernel == InnerKernel::bfloat16_rounded) plan.counted = NarrowRegister::bfloat16;
  }
  const bool sums_apart = plan.counted == NarrowRegister::binary16 && counts_binary16_sums() &&
                          operands_fit_binary16(plan.operands, scans.a, scans.b);
  const AutomaticStride& stride = choose_stride(scans, sums_apart, plan);
  PL_CHECK(stride.kernel == plan.kernel);
  plan.observed.every = observe.every == kAutomatic ? stride.every : std::max<std::int64_t>(1, observe.every);
  plan.observed_joins = observe.every == kAutomatic ? kAutomaticJoins : plan.observed.every;
  plan.observed.histogram_every = observe.histogram_every != kAutomatic
                                      ? std::max<std::int64_t>(1, observe.histogram_every)
                                  : observe.every == kAutomatic ? stride.histogram
                                                                : plan.observed.every;
  plan.sums_apart = plan.observe && sums_apart && plan.observed.every == 1;
  // Significands below 2 each: products below 2^(e_a + e_b + 2), infinite from 65520 on.
  plan.products_end = scans.a.max_exponent + scans.b.max_exponent + 2 > 15;
}

}  // namespace

ResultCounters& ResultCounters::operator+=(const ResultCounters& other) {
  results += other.results;
  nan += other.nan;
  infinite += other.infinite;
  overflow += other.overflow;
  zero += other.zero;
  subnormal += other.subnormal;
  at_largest += other.at_largest;
  return *this;
}

namespace {

/// What one branch-free pass over an operand finds, as binary32 magnitudes.
struct Magnitudes {
  std::int32_t off_grid = 0;  ///< not zero: some value has bits its format lacks
  std::int32_t most = 0;
  std::int32_t infinite = 0;  ///< not zero: some value is infinite
  std::int32_t most_finite = 0;
  std::int32_t least_nonzero = std::numeric_limits<std::int32_t>::max();
};

/// Normal values keep the format's fraction bits. Subnormal ones are whole multiples of its least value: `steps` times
/// the value is an integer. Formats with binary32's own exponents need no second rule.
template <bool kOwnSubnormals>
Magnitudes find_magnitudes(std::span<const float> values, std::int32_t low_bits, std::int32_t normal, float steps) {
  Magnitudes found;
  for (const float value : values) {
    const std::int32_t magnitude = std::bit_cast<std::int32_t>(value) & 0x7FFFFFFF;
    const bool below = kOwnSubnormals && magnitude < normal;
    const float scaled = below ? value * steps : 0.0F;
    const std::int32_t cut = static_cast<float>(static_cast<std::int32_t>(scaled)) != scaled ? 1 : 0;
    const std::int32_t finite = magnitude < static_cast<std::int32_t>(kInfinityBits) ? magnitude : 0;
    found.off_grid |= below ? cut : finite & low_bits;
    found.most = std::max(found.most, magnitude);
    found.infinite |= magnitude == static_cast<std::int32_t>(kInfinityBits) ? 1 : 0;
    found.most_finite = std::max(found.most_finite, finite);
    found.least_nonzero =
        std::min(found.least_nonzero, magnitude == 0 ? std::numeric_limits<std::int32_t>::max() : magnitude);
  }
  return found;
}

/// Values of an operand that one thread scans at a time.
constexpr std::size_t kScanChunk = std::size_t{1} << 16U;

/// Error at the first value that is none of the format's, by the rule itself.
Status find_foreign(std::span<const float> values, const Format& format, std::string_view name, std::int64_t columns,
                    unsigned threads) {
  std::vector<std::size_t> first((values.size() + kScanChunk - 1) / kScanChunk, values.size());
  parallel_for(first.size(), threads, [&](std::size_t chunk) {
    const std::size_t end = std::min(values.size(), (chunk + 1) * kScanChunk);
    for (std::size_t i = chunk * kScanChunk; i < end && first[chunk] == values.size(); ++i) {
      const Encoded encoded = encode(values[i], format, Rounding::rne, Saturation::off);
      const bool lost = std::isinf(values[i]) && !format.has_infinity;
      if (lost || (encoded.flags & (kInexact | kOverflow | kNanLost | kOutOfDomain)) != 0) first[chunk] = i;
    }
  });
  const std::size_t at = *std::min_element(first.begin(), first.end());
  if (at == values.size()) return Done{};
  return make_error("bad-value", {},
                    fmt::format("{}[{}][{}] is {}, no value of {}", name, at / static_cast<std::size_t>(columns),
                                at % static_cast<std::size_t>(columns), values[at], format.name),
                    "round the operand to its format first");
}

}  // namespace

Result<OperandScan> scan_operand(std::span<const float> values, const Format& format, std::string_view name,
                                 std::int64_t columns, unsigned threads) {
  const std::int32_t low_bits = (1 << (23 - format.fraction_bits)) - 1;
  const auto normal = std::bit_cast<std::int32_t>(std::ldexp(1.0F, format.min_normal_exponent()));
  const auto largest = std::bit_cast<std::int32_t>(static_cast<float>(format.max_value()));
  const bool own_subnormals = format.min_normal_exponent() > -126;
  const float steps = std::ldexp(1.0F, std::min(126, -format.min_positive_exponent()));
  std::vector<Magnitudes> parts((values.size() + kScanChunk - 1) / kScanChunk);
  parallel_for(parts.size(), threads, [&](std::size_t i) {
    const auto part = values.subspan(i * kScanChunk, std::min(kScanChunk, values.size() - i * kScanChunk));
    parts[i] = own_subnormals ? find_magnitudes<true>(part, low_bits, normal, steps)
                              : find_magnitudes<false>(part, low_bits, normal, steps);
  });
  Magnitudes found;
  for (const Magnitudes& part : parts) {
    found.off_grid |= part.off_grid;
    found.most = std::max(found.most, part.most);
    found.infinite |= part.infinite;
    found.most_finite = std::max(found.most_finite, part.most_finite);
    found.least_nonzero = std::min(found.least_nonzero, part.least_nonzero);
  }
  OperandScan scan;
  scan.has_special = found.most >= static_cast<std::int32_t>(kInfinityBits);
  const bool has_nan = found.most > static_cast<std::int32_t>(kInfinityBits);
  const bool steps_fit = -format.min_positive_exponent() <= 126;
  if (found.off_grid != 0 || found.most_finite > largest || (found.infinite != 0 && !format.has_infinity) ||
      (has_nan && !format.has_nan()) || (own_subnormals && !steps_fit)) {  // something needs a closer look
    PL_TRY_STATUS(find_foreign(values, format, name, columns, threads));
  }
  if (found.most_finite > 0) {
    scan.max_exponent = (found.most_finite >> 23) - 127;
    scan.min_last_bit =
        std::max((found.least_nonzero >> 23) - 127, format.min_normal_exponent()) - format.fraction_bits;
  }
  return scan;
}

RoundingGrid make_grid(const Register& reg) {
  const Format& format = reg.format;
  const double max = format.max_value();
  const double special = format.has_infinity ? std::numeric_limits<double>::infinity()
                         : format.has_nan()  ? std::numeric_limits<double>::quiet_NaN()
                                             : max;
  const double beyond = reg.saturation == Saturation::on ? max : special;
  const Rounding mode = reg.rounding;
  RoundingGrid grid{.precision = format.fraction_bits + 1, .min_exponent = format.min_normal_exponent(), .max = max};
  grid.overflow[0] = mode == Rounding::rtz || mode == Rounding::rd ? max : beyond;
  grid.overflow[1] = mode == Rounding::rtz || mode == Rounding::ru ? max : beyond;
  grid.infinity = beyond;
  grid.negative_zero = format.has_negative_zero();
  grid.rounding = mode;
  grid.random_bits = reg.random_bits;
  return grid;
}

bool needs_odd(const Register& reg, const MatmulOperands& operands) {
  const int product_bits = operands.a_format.fraction_bits + operands.b_format.fraction_bits + 2;
  const int bits = reg.format.fraction_bits + 1;
  return reg.rounding != Rounding::rne || bits + product_bits >= 50 ||
         reg.format.max_exponent() + 2 - reg.format.min_positive_exponent() > 53;
}

bool is_plain(const Register& reg, std::string_view name) {
  return reg.format == builtin_format(name) && reg.rounding == Rounding::rne && reg.saturation == Saturation::off;
}

/// Whether a product rounded to binary32 first rounds to the register as the exact product does. Enough bits; and where
/// it underflows in binary32, the register must be as sure of zero (binary16, whose least value is 2^-24) or the
/// product must be exact all the same (bfloat16). Beyond binary32 both overflow.
bool products_pass_binary32(const Register& reg, const MatmulOperands& operands, const OperandScan& a,
                            const OperandScan& b) {
  const bool few_bits = operands.a_format.fraction_bits + operands.b_format.fraction_bits + 2 <= 24;
  return few_bits && (reg.format.min_positive_exponent() > -100 || a.min_last_bit + b.min_last_bit >= -149);
}

InnerKernel choose_kernel(const Accumulation& accumulation, const MatmulOperands& operands, const OperandScan& a,
                          const OperandScan& b) {
  if (accumulation.reduction == Reduction::tensor_core) return InnerKernel::tensor_core;
  if (accumulation.reduction == Reduction::pairwise) return InnerKernel::pairwise;
  const Register& reg = accumulation.accumulator;
  const bool fused = accumulation.reduction == Reduction::sequential_fused;
  if (is_plain(reg, "binary32")) return fused ? InnerKernel::binary32_fused : InnerKernel::binary32_rounded;
  if (fused || !products_pass_binary32(reg, operands, a, b)) return InnerKernel::wide;
  if (is_plain(reg, "binary16")) return InnerKernel::binary16_rounded;
  if (is_plain(reg, "bfloat16")) return InnerKernel::bfloat16_rounded;
  return InnerKernel::wide;
}

NarrowRegister narrow_register(const Accumulation& accumulation, const MatmulOperands& operands, const OperandScan& a,
                               const OperandScan& b) {
  const Register& reg = accumulation.accumulator;
  if (is_plain(reg, "binary32")) return NarrowRegister::binary32;
  if (!products_pass_binary32(reg, operands, a, b)) return NarrowRegister::none;
  if (is_plain(reg, "binary16")) return NarrowRegister::binary16;
  return is_plain(reg, "bfloat16") ? NarrowRegister::bfloat16 : NarrowRegister::none;
}

std::string_view to_string(InnerKernel kernel) {
  constexpr std::string_view kNames[] = {"binary32-fused", "binary32-rounded", "binary16-rounded", "bfloat16-rounded",
                                         "wide",           "pairwise",         "tensor-core"};
  return kNames[static_cast<int>(kernel)];
}

StochasticKey random_key(const Accumulation& accumulation) {
  return {.seed = accumulation.seed, .tensor = hash_name("matmul.accumulator"), .step = 0, .first_element = 0};
}

std::vector<RegisterTally> make_registers(const Accumulation& accumulation) {
  std::vector<RegisterTally> registers(1 + accumulation.blockings.size());
  registers[0].name = accumulation.reduction == Reduction::tensor_core ? "tensor core" : "accumulator";
  for (std::size_t i = 1; i < registers.size(); ++i) registers[i].name = fmt::format("join {}", i);
  return registers;
}

void add_tallies(std::vector<RegisterTally>& to, const std::vector<RegisterTally>& from) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i].total += from[i].total;
    to[i].observed += from[i].observed;
    to[i].inexact += from[i].inexact;
    to[i].absorbed += from[i].absorbed;
    to[i].swamped += from[i].swamped;
    to[i].beyond += from[i].beyond;
    to[i].products += from[i].products;
    to[i].products_inexact += from[i].products_inexact;
    to[i].products_to_zero += from[i].products_to_zero;
    for (std::size_t e = 0; e < to[i].exponents.size(); ++e) to[i].exponents[e] += from[i].exponents[e];
  }
}

Status check_matmul(const MatmulOperands& operands, const Accumulation& accumulation) {
  PL_TRY([[maybe_unused]] const Scans scans, check_all(operands, accumulation, 1));
  return Done{};
}

Result<MatmulProduct> matmul(const MatmulOperands& operands, const Accumulation& accumulation,
                             const MatmulOptions& options) {
  PL_TRY(const Scans scans, check_all(operands, accumulation, options.threads));
  MatmulPlan plan{.operands = operands,
                  .accumulation = accumulation,
                  .kernel = choose_kernel(accumulation, operands, scans.a, scans.b),
                  .observed = {},
                  .a_specials = {},
                  .b_specials = {},
                  .inner = {.grid = make_grid(accumulation.accumulator),
                            .fused = accumulation.reduction == Reduction::sequential_fused,
                            .to_odd = needs_odd(accumulation.accumulator, operands),
                            .random = {}},
                  .leaves = narrow_register(accumulation, operands, scans.a, scans.b),
                  .joins = {},
                  .narrow_joins = {},
                  .core = {},
                  .a_panels = {},
                  .b_panels = {},
                  .a_exponents = {},
                  .b_exponents = {},
                  .a_nonzero = {},
                  .b_nonzero = {},
                  .a_last = {},
                  .b_last = {},
                  .row_special = {},
                  .column_special = {}};
  for (const Blocking& blocking : accumulation.blockings) {
    plan.joins.push_back({.grid = make_grid(blocking.into), .fused = true, .to_odd = true, .random = {}});
    plan.narrow_joins.push_back(is_plain(blocking.into, "binary32") ? NarrowRegister::binary32 : NarrowRegister::none);
  }
  if (plan.kernel == InnerKernel::tensor_core) {
    plan.core = make_core_parameters(accumulation.core, operands.a_format, operands.b_format);
  }
  set_observation(options.observe, scans, plan);
  pack_all(plan, scans, options.threads);

  MatmulProduct product;
  product.format = result_format(accumulation);
  product.kernel = to_string(plan.kernel);
  product.values = Buffer<float>(static_cast<std::size_t>(operands.m * operands.n));
  const BlockShape shape = choose_block(operands, options.threads);
  const std::int64_t row_blocks = panels_of(operands.m, shape.rows);
  const auto jobs = static_cast<std::size_t>(row_blocks * panels_of(operands.n, shape.columns));
  std::vector<ResultCounters> counters(jobs);
  std::vector<std::vector<RegisterTally>> tallies(plan.observe ? jobs : 0);
  parallel_for(jobs, options.threads, [&](std::size_t index) {
    const auto job = static_cast<std::int64_t>(index);
    if (plan.observe) tallies[index] = make_registers(accumulation);
    run_matmul_block(plan, shape, job % row_blocks * shape.rows, job / row_blocks * shape.columns, product.values,
                     counters[index], plan.observe ? &tallies[index] : nullptr);
  });
  for (const ResultCounters& part : counters) product.counters += part;
  if (plan.observe) product.registers = make_registers(accumulation);
  for (const auto& part : tallies) add_tallies(product.registers, part);
  if (plan.sums_apart) {
    const ProductCounts counts = count_product_losses(plan, options.threads);
    RegisterTally& reg = product.registers[0];
    reg.inexact += counts.rounded_nonzero;
    reg.absorbed += counts.rounded_nonzero;
    reg.products_inexact += counts.inexact;
    reg.products_to_zero += counts.to_zero;
  }
  return product;
}

}  // namespace plumbline::numerics
