#include "execute/numerics/accumulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace plumbline::numerics {
namespace {

struct AccumulationRow {
  std::string_view name;
  Reduction reduction;
  std::string_view accumulator;
  std::string_view device;
  std::int64_t every;
  std::string_view into;
  std::string_view input;
  std::string_view claim;
};
constexpr AccumulationRow kRows[] = {
#define PLUMBLINE_ACCUMULATION(name, reduction, accumulator, device, every, into, input, claim) \
  {name, Reduction::reduction, accumulator, device, every, into, input, claim},
#include "execute/numerics/accumulations.inc"
#undef PLUMBLINE_ACCUMULATION
};

struct ReductionName {
  Reduction reduction;
  std::string_view name;
};
constexpr ReductionName kReductions[] = {{Reduction::sequential_fused, "sequential-fused"},
                                         {Reduction::sequential_rounded, "sequential-rounded"},
                                         {Reduction::pairwise, "pairwise"},
                                         {Reduction::tensor_core, "tensor-core"}};

Status check_register(const Register& reg, std::string_view role, const Span& span) {
  const Format& format = reg.format;
  if (format.bits() < 3 || !format.is_signed || !format.has_zero) {
    return make_error("bad-value", span, fmt::format("{} in the format '{}'", role, format.name),
                      "sums need a signed format with zero");
  }
  if (format.has_infinity && !format.has_nan() && reg.saturation == Saturation::off) {
    return make_error("unsupported", span, fmt::format("{} in '{}' without saturation", role, format.name),
                      "the difference of two infinities needs a NaN; turn saturation on");
  }
  if (reg.rounding == Rounding::sr && (reg.random_bits < 1 || reg.random_bits > 28)) {
    return make_error("bad-value", span, fmt::format("{} random bits for the {}", reg.random_bits, role),
                      "stochastic rounding of sums takes 1 to 28 bits");
  }
  return Done{};
}

Status check_blocking(const Blocking& blocking, std::int64_t depth, const Span& span) {
  if (blocking.every < 0 || (blocking.every > 0 && !blocking.splits.empty())) {
    return make_error("bad-value", span, "a blocking with both split points and a length, or a negative length",
                      "give either the points or the length");
  }
  std::int64_t before = 0;
  for (const std::int64_t split : blocking.splits) {
    if (split <= before || split >= depth) {
      return make_error("bad-value", span, fmt::format("split point {} after {} of {} products", split, before, depth),
                        "split points ascend strictly and lie inside the reduction");
    }
    before = split;
  }
  return check_register(blocking.into, "partial sums", span);
}

Status check_order(const std::vector<std::int64_t>& order, std::int64_t depth, const Span& span) {
  if (order.empty()) return Done{};
  std::vector<bool> seen(static_cast<std::size_t>(depth), false);
  const auto fresh = [&](std::int64_t k) {
    if (k < 0 || k >= depth || seen[static_cast<std::size_t>(k)]) return false;
    seen[static_cast<std::size_t>(k)] = true;
    return true;
  };
  if (order.size() != static_cast<std::size_t>(depth) || !std::all_of(order.begin(), order.end(), fresh)) {
    return make_error("bad-value", span, fmt::format("an order of {} entries for {} products", order.size(), depth),
                      "an order names every k exactly once");
  }
  return Done{};
}

std::string describe(const Register& reg) {
  std::string text =
      fmt::format("{}, {}, saturation {}", reg.format.name, to_string(reg.rounding), to_string(reg.saturation));
  if (reg.rounding == Rounding::sr) text += fmt::format(", {} random bits", reg.random_bits);
  return text;
}

}  // namespace

std::vector<std::string> accumulation_names() {
  std::vector<std::string> names;
  for (const AccumulationRow& row : kRows) names.emplace_back(row.name);
  return names;
}

Result<Accumulation> find_accumulation(std::string_view name, const Format& input, std::string_view accumulator,
                                       const Span& span) {
  const auto* const row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const auto& r) { return r.name == name; });
  if (row == std::end(kRows)) {
    return make_error("unknown-name", span, fmt::format("no accumulation is called '{}'", name),
                      suggest(name, accumulation_names()));
  }
  if (!row->input.empty() && row->input != input.name) {
    return make_error("bad-value", span, fmt::format("{} multiplies {}, not {}", name, row->input, input.name),
                      fmt::format("round the operands to {} first", row->input));
  }
  Accumulation made;
  made.name = name;
  made.reduction = row->reduction;
  made.claim = row->claim;
  const std::string_view format = accumulator.empty() ? row->accumulator : accumulator;
  PL_TRY(made.accumulator.format, find_format(format, span));
  if (row->reduction == Reduction::tensor_core) {
    PL_TRY(made.core, find_tensor_core(row->device, input.name, made.accumulator.format.name, span));
  }
  if (row->every > 0) {
    made.blockings.push_back({.splits = {}, .every = row->every, .into = {.format = builtin_format(row->into)}});
  }
  return made;
}

Status check_accumulation(const Accumulation& accumulation, std::int64_t depth, const Format& a, const Format& b,
                          const Span& span) {
  if (depth < 1) {
    return make_error("shape-mismatch", span, fmt::format("a reduction of {} products", depth),
                      "K is at least 1; an empty sum has no accumulator to speak of");
  }
  PL_TRY_STATUS(check_register(accumulation.accumulator, "accumulator", span));
  PL_TRY_STATUS(check_order(accumulation.order, depth, span));
  for (const Blocking& blocking : accumulation.blockings) PL_TRY_STATUS(check_blocking(blocking, depth, span));
  if (accumulation.reduction != Reduction::tensor_core) return Done{};
  PL_TRY_STATUS(check_tensor_core(accumulation.core, a, b, span));
  const Register& reg = accumulation.accumulator;
  if (reg.format != builtin_format(accumulation.core.output) || reg.rounding != Rounding::rne ||
      reg.saturation != Saturation::off) {
    return make_error("unsupported", span, fmt::format("a tensor core accumulating in {}", describe(reg)),
                      fmt::format("its results are {} and its own rule rounds them", accumulation.core.output));
  }
  return Done{};
}

const Format& result_format(const Accumulation& accumulation) {
  return accumulation.blockings.empty() ? accumulation.accumulator.format : accumulation.blockings.back().into.format;
}

std::vector<std::int64_t> cuts(const Blocking& blocking, std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> found;
  for (const std::int64_t split : blocking.splits) {
    if (split > first && split < last) found.push_back(split);
  }
  if (blocking.every > 0) {
    for (std::int64_t at = first + blocking.every; at < last; at += blocking.every) found.push_back(at);
  }
  return found;
}

std::int64_t tree_split(std::int64_t n) {
  PL_CHECK(n >= 2);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n - 1)));
}

std::string claim_of(const Accumulation& accumulation, std::int64_t depth, bool nonzero_c) {
  if (accumulation.reduction != Reduction::tensor_core) {
    return accumulation.claim.empty() ? "stated by the user" : accumulation.claim;
  }
  std::int64_t longest = depth;
  if (!accumulation.blockings.empty()) {
    longest = 0;
    std::int64_t before = 0;
    for (const std::int64_t cut : cuts(accumulation.blockings.front(), 0, depth)) {
      longest = std::max(longest, cut - before);
      before = cut;
    }
    longest = std::max(longest, depth - before);
    nonzero_c = false;  // every piece starts from zero
  }
  return claim(accumulation.core, longest, nonzero_c);
}

std::vector<std::string> describe(const Accumulation& accumulation) {
  std::vector<std::string> lines;
  if (accumulation.reduction == Reduction::tensor_core) {
    const TensorCore& core = accumulation.core;
    lines.push_back(
        fmt::format("tensor core{}{}: blocks of {} products, {} fraction bits, {} result bits ({}) in {}, "
                    "addend {}, overflow to infinity",
                    core.device.empty() ? "" : " ", core.device, core.block, core.fraction_bits, core.result_bits,
                    to_string(core.final_rounding), core.output, to_string(core.addend)));
  } else {
    lines.push_back(fmt::format("{}: {}", to_string(accumulation.reduction), describe(accumulation.accumulator)));
  }
  for (const Blocking& blocking : accumulation.blockings) {
    const std::string cut = blocking.every > 0 ? fmt::format("every {} products", blocking.every)
                                               : fmt::format("{} pieces", blocking.splits.size() + 1);
    lines.push_back(fmt::format("{}, joined {} in {}", cut, to_string(blocking.join), describe(blocking.into)));
  }
  if (!accumulation.order.empty()) lines.emplace_back("products in a stated order");
  return lines;
}

std::string_view to_string(Reduction reduction) { return kReductions[static_cast<int>(reduction)].name; }

std::string_view to_string(Join join) { return join == Join::sequential ? "sequentially" : "pairwise"; }

Result<Reduction> find_reduction(std::string_view name, const Span& span) {
  std::vector<std::string> names;
  for (const auto& row : kReductions) {
    if (row.name == name) return row.reduction;
    names.emplace_back(row.name);
  }
  return make_error("unknown-name", span, fmt::format("no reduction is called '{}'", name), suggest(name, names));
}

}  // namespace plumbline::numerics
