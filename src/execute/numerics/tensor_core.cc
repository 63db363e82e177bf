#include "execute/numerics/tensor_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace plumbline::numerics {
namespace {

/// |value| = significand * 2^lsb. `exponent` is the one the hardware compares: that of the leading bit for a normal
/// value, the format's minimum for a subnormal one.
struct Term {
  std::int64_t significand = 0;
  int lsb = 0;
  int exponent = 0;
  bool negative = false;
};

Term split(float value, const Format& format) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const int field = static_cast<int>((bits >> 23) & 0xFF);
  const std::uint32_t fraction = bits & 0x7FFFFF;
  Term term{.significand = static_cast<std::int64_t>(field == 0 ? fraction : fraction | 0x800000),
            .lsb = (field == 0 ? 1 : field) - 150,
            .negative = (bits >> 31) != 0};
  const int leading = term.lsb + 63 - std::countl_zero(static_cast<std::uint64_t>(term.significand | 1));
  term.exponent = std::max(leading, format.min_normal_exponent());
  return term;
}

Term product(const Term& x, const Term& y) {
  return {x.significand * y.significand, x.lsb + y.lsb, x.exponent + y.exponent, x.negative != y.negative};
}

/// The term cut toward zero to a multiple of 2^grid, in units of 2^grid.
std::int64_t align(const Term& term, int grid, BlockLoss& loss) {
  const int up = term.lsb - grid;
  std::int64_t magnitude = 0;
  if (up >= 0) {
    PL_CHECK(up < 62 && term.significand <= (std::numeric_limits<std::int64_t>::max() >> up));
    magnitude = term.significand << up;
  } else if (up > -63) {
    magnitude = term.significand >> -up;
  }
  const bool kept = up >= 0 || (up > -63 && (magnitude << -up) == term.significand);
  if (!kept) loss.terms_cut += 1;
  return term.negative ? -magnitude : magnitude;
}

/// sum * 2^grid with `bits` significant bits, then in the output format.
float finish(std::int64_t sum, int grid, const TensorCore& core, BlockLoss& loss) {
  if (sum == 0) return 0.0F;
  const Format& output = builtin_format(core.output);
  const bool negative = sum < 0;
  auto magnitude = static_cast<std::uint64_t>(negative ? -sum : sum);
  if (core.final_rounding == FinalRounding::truncate) {
    const int spare = (64 - std::countl_zero(magnitude)) - core.result_bits;
    if (spare > 0) {
      const std::uint64_t kept = magnitude >> spare << spare;
      loss.result_inexact = kept != magnitude;
      magnitude = kept;
    }
  } else {
    PL_CHECK(core.result_bits == output.fraction_bits + 1);
  }
  // |sum| < 2^53 by check_tensor_core, so the conversion is exact; ldexp is exact far from the ends of double.
  const double exact = std::ldexp(static_cast<double>(magnitude), grid) * (negative ? -1.0 : 1.0);
  if (std::fabs(exact) >= std::ldexp(1.0, output.max_exponent() + 1)) {
    loss.result_inexact = true;
    return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(exact));
  }
  const Rounding rounding = core.final_rounding == FinalRounding::truncate ? Rounding::rtz : Rounding::rne;
  const Encoded encoded = encode(exact, output, rounding, Saturation::off);
  if ((encoded.flags & kInexact) != 0) loss.result_inexact = true;
  return static_cast<float>(decode(encoded.code, output));
}

/// Sum of products (and c) with infinities or NaN among them.
float special_sum(std::span<const float> a, std::span<const float> b, float c) {
  double sum = c;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double term = double{a[i]} * double{b[i]};
    if (!std::isfinite(term)) sum += term;  // finite terms cannot change an infinity
  }
  return std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(sum);
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace

const std::vector<TensorCore>& tensor_core_rows() {
  static const std::vector<TensorCore> rows = {
#define PLUMBLINE_TENSOR_CORE(device, input, output, block, fraction, bits, rounding, addend, evidence, note) \
  {device, input, output, block, fraction, bits, FinalRounding::rounding, Addend::addend, CoreEvidence::evidence, note},
#include "execute/numerics/tensor_cores.inc"
#undef PLUMBLINE_TENSOR_CORE
  };
  return rows;
}

Result<TensorCore> find_tensor_core(std::string_view device, std::string_view input, std::string_view output,
                                    const Span& span) {
  std::vector<std::string> devices;
  std::string pairs;
  for (const TensorCore& row : tensor_core_rows()) {
    if (devices.empty() || devices.back() != row.device) devices.push_back(row.device);
    if (row.device != device) continue;
    if (row.input == input && row.output == output) {
      if (row.evidence != CoreEvidence::unresolved) return row;
      return make_error("unsupported", span, fmt::format("{} to {} on {} is unresolved", input, output, device),
                        "no model tried reproduces the published traces (63 % to 85 % agree), so none is bit-true; "
                        "accumulate in binary32 or state block, fraction bits and result bits yourself");
    }
    pairs += fmt::format("{}{} to {}", pairs.empty() ? "" : ", ", row.input, row.output);
  }
  if (pairs.empty()) {
    return make_error("unknown-name", span, fmt::format("no tensor core is called '{}'", device),
                      suggest(device, devices));
  }
  return make_error("unknown-name", span, fmt::format("{} has no row for {} to {}", device, input, output),
                    "it has " + pairs);
}

Status check_tensor_core(const TensorCore& core, const Format& a, const Format& b, const Span& span) {
  const auto wrong = [&](std::string message, std::string help) -> Status {
    return make_error("bad-value", span, std::move(message), std::move(help));
  };
  if (core.block < 1 || core.block > 1024) {
    return wrong(fmt::format("a block of {} products", core.block), "blocks hold 1 to 1024 products");
  }
  if (core.fraction_bits < 4 || core.fraction_bits > 29) {
    return wrong(fmt::format("{} fraction bits", core.fraction_bits), "alignment keeps 4 to 29 fraction bits");
  }
  if (core.output != "binary32" && core.output != "binary16") {
    return wrong(fmt::format("a tensor core with results in {}", core.output), "results are binary32 or binary16");
  }
  const int width = builtin_format(core.output).fraction_bits + 1;
  const bool nearest = core.final_rounding == FinalRounding::nearest_even;
  if (core.result_bits < 2 || core.result_bits > width || (nearest && core.result_bits != width)) {
    return wrong(fmt::format("{} result bits in {}", core.result_bits, core.output),
                 fmt::format("2 to {} bits; nearest-even results have all {}", width, width));
  }
  if (core.addend == Addend::after_rne && core.output != "binary32") {
    return wrong("an addend after the block sum with binary16 results", "it is defined for binary32 results");
  }
  for (const Format* format : {&a, &b}) {
    if (!format->is_signed || format->fraction_bits > 11) {
      return wrong(fmt::format("{} operands in a tensor core", format->name),
                   "operands are signed and have at most 12 significant bits");
    }
  }
  return Done{};
}

float block_multiply_add(const TensorCore& core, const Format& a_format, const Format& b_format,
                         std::span<const float> a, std::span<const float> b, float c, BlockLoss* loss) {
  PL_CHECK(a.size() == b.size() && a.size() <= static_cast<std::size_t>(core.block));
  BlockLoss unused;
  BlockLoss& counted = loss != nullptr ? *loss : unused;
  counted = {};
  if (!std::isfinite(c) || !all_finite(a) || !all_finite(b)) {
    for (std::size_t i = 0; i < a.size(); ++i) counted.products_zero += a[i] == 0 || b[i] == 0 ? 1 : 0;
    return special_sum(a, b, c);
  }
  counted.products_zero = static_cast<std::int64_t>(a.size());
  const bool inside = core.addend == Addend::in_block;
  constexpr int kNothing = std::numeric_limits<int>::min();
  int top = kNothing;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 0 || b[i] == 0) continue;
    top = std::max(top, split(a[i], a_format).exponent + split(b[i], b_format).exponent);
  }
  const Term addend = split(c, builtin_format(core.output));
  if (inside && c != 0) top = std::max(top, addend.exponent);
  std::int64_t sum = 0;
  if (top != kNothing) {
    const int grid = top - core.fraction_bits;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] == 0 || b[i] == 0) continue;
      const std::int64_t term = align(product(split(a[i], a_format), split(b[i], b_format)), grid, counted);
      if (term != 0) counted.products_zero -= 1;
      sum += term;
    }
    if (inside && c != 0) sum += align(addend, grid, counted);
    const float block = finish(sum, grid, core, counted);
    if (inside) return block;
    if (c == 0) return block;
    const float total = block + c;     // binary32 nearest-even, as the default environment rounds
    const float seen = total - block;  // 2Sum: the error is zero exactly when both parts are recovered
    const float error = (block - (total - seen)) + (c - seen);
    if (error != 0) counted.result_inexact = true;
    return total == 0 ? 0.0F : total;
  }
  return c == 0 ? 0.0F : c;
}

float chain_multiply_add(const TensorCore& core, const Format& a_format, const Format& b_format,
                         std::span<const float> a, std::span<const float> b, float c) {
  PL_CHECK(a.size() == b.size());
  const auto block = static_cast<std::size_t>(core.block);
  for (std::size_t first = 0; first < a.size(); first += block) {
    const std::size_t count = std::min(block, a.size() - first);
    c = block_multiply_add(core, a_format, b_format, a.subspan(first, count), b.subspan(first, count), c);
  }
  return c;
}

std::string_view to_string(FinalRounding rounding) {
  return rounding == FinalRounding::truncate ? "truncate" : "nearest-even";
}

std::string_view to_string(Addend addend) {
  return addend == Addend::in_block ? "in the block" : "after the block, binary32 nearest-even";
}

std::string claim(const TensorCore& core, std::int64_t depth, bool nonzero_c) {
  switch (core.evidence) {
    case CoreEvidence::traces:
      return "verified against published hardware traces";
    case CoreEvidence::zero_addend:
      if (depth <= core.block && !nonzero_c) return "verified against published hardware traces";
      return "assumed: the published traces confirm one block with c = 0, not the chaining of blocks";
    case CoreEvidence::unresolved:
      return "unresolved: not bit-true";
    case CoreEvidence::stated:
      return "stated by the user";
  }
  PL_CHECK(false);
}

}  // namespace plumbline::numerics
