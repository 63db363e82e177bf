// The definition, one result at a time: exact sums rounded by encode(). Slow and plain on purpose.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "execute/numerics/matmul_plan.h"

namespace plumbline::numerics {
namespace {

double round_once(double exact, const Register& reg, RandomBits random, std::uint16_t& flags) {
  const Encoded encoded = encode(exact, reg.format, reg.rounding, reg.saturation, random);
  flags = encoded.flags;
  return decode(encoded.code, reg.format);
}

/// a + b rounded to odd in binary64: exact for every later rounding to at most 51 bits (see matmul_wide_kernel.cc).
double add_to_odd(double a, double b, bool& inexact) {
  const double sum = a + b;
  inexact = false;
  if (!std::isfinite(sum)) return sum;
  const double seen = sum - a;
  const double error = (a - (sum - seen)) + (b - seen);
  if (error == 0) return sum;
  inexact = true;
  const double truncated = std::signbit(error) == std::signbit(sum) ? sum : std::nextafter(sum, 0.0);
  const auto bits = std::bit_cast<std::uint64_t>(truncated) | 1U;
  return std::bit_cast<double>(bits);
}

/// One result.
class ScalarRun {
 public:
  ScalarRun(const MatmulOperands& operands, const Accumulation& accumulation, std::int64_t row, std::int64_t column,
            const ObservedSteps* observed, std::vector<RegisterTally>& registers)
      : operands_(operands),
        accumulation_(accumulation),
        element_(static_cast<std::uint64_t>(row * operands.n + column)),
        observed_(observed),
        registers_(registers) {
    for (std::int64_t i = 0; i < operands.k; ++i) {
      const std::int64_t k = accumulation.order.empty() ? i : accumulation.order[static_cast<std::size_t>(i)];
      a_.push_back(operands.a[static_cast<std::size_t>(row * operands.k + k)]);
      b_.push_back(operands.b[static_cast<std::size_t>(k * operands.n + column)]);
    }
  }

  float run(double start, bool from_zero) {
    return static_cast<float>(reduce(accumulation_.blockings.size(), 0, operands_.k, start, from_zero));
  }

 private:
  double reduce(std::size_t level, std::int64_t first, std::int64_t last, double start, bool from_zero) {
    if (level == 0) return reduce_inner(first, last, start, from_zero);
    const Blocking& blocking = accumulation_.blockings[level - 1];
    std::vector<std::int64_t> edges = cuts(blocking, first, last);
    edges.insert(edges.begin(), first);
    edges.push_back(last);
    if (blocking.join == Join::sequential) {
      for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
        const double piece = reduce(level - 1, edges[i], edges[i + 1], 0.0, true);
        start = join(level, join_step(level, edges[i]), i, start, piece);
      }
      return start;
    }
    const double total = join_tree(level, edges, 0, edges.size() - 1);
    if (from_zero) return total + 0.0;
    return join(level, join_step(level + 128, first), 0, start, total);
  }

  double join_tree(std::size_t level, const std::vector<std::int64_t>& edges, std::size_t begin, std::size_t end) {
    if (end - begin == 1) {
      const double piece = reduce(level - 1, edges[begin], edges[end], 0.0, true);
      return join(level, join_step(level, edges[begin]), begin, 0.0, piece);
    }
    const std::size_t middle = begin + static_cast<std::size_t>(tree_split(static_cast<std::int64_t>(end - begin)));
    const double left = join_tree(level, edges, begin, middle);
    const double right = join_tree(level, edges, middle, end);
    return join(level, join_step(level + 64, edges[middle]), middle, left, right);
  }

  double join(std::size_t level, std::uint64_t step, std::size_t ordinal, double left, double right) {
    const Register& reg = accumulation_.blockings[level - 1].into;
    RegisterTally* const tally = observed_ != nullptr ? &registers_[level] : nullptr;
    const bool observe = tally != nullptr && static_cast<std::int64_t>(ordinal) % observed_->every == 0;
    if (tally != nullptr && !observe) tally->total += 1;
    const double sum = add(reg, step, left, right, observe ? tally : nullptr);
    if (observe) count_exponent(sum, *tally);
    return sum;
  }

  double reduce_inner(std::int64_t first, std::int64_t last, double start, bool from_zero) {
    switch (accumulation_.reduction) {
      case Reduction::tensor_core:
        return reduce_blocks(first, last, static_cast<float>(start));
      case Reduction::pairwise: {
        const double total = product_tree(first, last);
        if (from_zero) return total + 0.0;
        return add_observed(0, join_step(128, first), start, total);
      }
      case Reduction::sequential_fused:
      case Reduction::sequential_rounded:
        break;
    }
    for (std::int64_t k = first; k < last; ++k) {
      double product = exact_product(k);
      if (accumulation_.reduction == Reduction::sequential_rounded) product = rounded_product(k);
      start = add_observed(k, 2 * static_cast<std::uint64_t>(k) + 1, start, product);
      if (observes(k) && k % observed_->histogram_every == 0) count_exponent(start, registers_[0]);
    }
    return start;
  }

  double product_tree(std::int64_t first, std::int64_t last) {
    if (last - first == 1) return rounded_product(first);
    const std::int64_t middle = first + tree_split(last - first);
    const double left = product_tree(first, middle);
    const double right = product_tree(middle, last);
    return add_observed(middle, join_step(0, middle), left, right);
  }

  double reduce_blocks(std::int64_t first, std::int64_t last, float start) {
    const TensorCore& core = accumulation_.core;
    for (std::int64_t k = first; k < last; k += core.block) {
      const std::int64_t index = k / core.block;
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(core.block, last - k));
      const std::span<const float> a(a_.data() + k, count);
      const std::span<const float> b(b_.data() + k, count);
      BlockLoss loss;
      start = block_multiply_add(core, operands_.a_format, operands_.b_format, a, b, start, &loss);
      if (observed_ == nullptr) continue;
      RegisterTally& reg = registers_[0];
      reg.total += 1;
      if (index % observed_->every != 0) continue;
      reg.observed += 1;
      reg.inexact += loss.result_inexact ? 1 : 0;
      reg.products += static_cast<std::int64_t>(count);
      reg.products_inexact += loss.terms_cut;
      reg.products_to_zero += loss.products_zero;
      for (std::size_t i = 0; i < count; ++i) reg.products_to_zero -= a[i] == 0 || b[i] == 0 ? 1 : 0;
      if (index % observed_->histogram_every == 0) count_exponent(start, reg);
    }
    return start;
  }

  [[nodiscard]] bool observes(std::int64_t position) const {
    return observed_ != nullptr && position % observed_->every == 0;
  }

  [[nodiscard]] double exact_product(std::int64_t k) const {
    return double{a_[static_cast<std::size_t>(k)]} * double{b_[static_cast<std::size_t>(k)]};
  }

  double rounded_product(std::int64_t k) {
    const double exact = exact_product(k);
    std::uint16_t flags = 0;
    const double product = round_once(exact, accumulation_.accumulator,
                                      draw(accumulation_.accumulator, 2 * static_cast<std::uint64_t>(k)), flags);
    if (observes(k)) {
      registers_[0].products += 1;
      registers_[0].products_inexact += (flags & kInexact) != 0 ? 1 : 0;
      registers_[0].products_to_zero += (flags & kUnderflowToZero) != 0 ? 1 : 0;
    }
    return product;
  }

  double add_observed(std::int64_t position, std::uint64_t step, double c, double addend) {
    if (observed_ != nullptr && !observes(position)) registers_[0].total += 1;
    return add(accumulation_.accumulator, step, c, addend, observes(position) ? &registers_[0] : nullptr);
  }

  double add(const Register& reg, std::uint64_t step, double c, double addend, RegisterTally* tally) {
    bool lost = false;
    const double sum = add_to_odd(c, addend, lost);
    std::uint16_t flags = 0;
    const double result = round_once(sum, reg, draw(reg, step), flags);
    if (tally != nullptr) {
      tally->total += 1;
      tally->observed += 1;
      tally->inexact += lost || (flags & kInexact) != 0 ? 1 : 0;
      tally->absorbed += std::isfinite(c) && result == c && addend != 0 ? 1 : 0;
      tally->swamped += result == addend && c != 0 ? 1 : 0;
      tally->beyond += (flags & kOverflow) != 0 ? 1 : 0;
    }
    return result;
  }

  [[nodiscard]] RandomBits draw(const Register& reg, std::uint64_t step) const {
    if (reg.rounding != Rounding::sr) return {};
    StochasticKey key = random_key(accumulation_);
    key.step = step;
    return random_bits(key, element_, reg.random_bits);
  }

  static void count_exponent(double value, RegisterTally& reg) {
    ++reg.exponents[(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 23) & 0xFF];
  }

  const MatmulOperands& operands_;
  const Accumulation& accumulation_;
  std::uint64_t element_;
  const ObservedSteps* observed_;
  std::vector<RegisterTally>& registers_;
  std::vector<float> a_;
  std::vector<float> b_;
};

void count_result(float value, bool finite_operands, const Format& format, ResultCounters& counters) {
  counters.results += 1;
  counters.nan += std::isnan(value) ? 1 : 0;
  counters.infinite += std::isinf(value) ? 1 : 0;
  counters.overflow += !std::isfinite(value) && finite_operands ? 1 : 0;
  counters.zero += value == 0 ? 1 : 0;
  const double magnitude = std::fabs(double{value});
  counters.subnormal += value != 0 && magnitude < std::ldexp(1.0, format.min_normal_exponent()) ? 1 : 0;
  counters.at_largest += magnitude == format.max_value() ? 1 : 0;
}

}  // namespace

Result<MatmulProduct> matmul_scalar(const MatmulOperands& operands, const Accumulation& accumulation,
                                    const MatmulOptions& options) {
  PL_TRY_STATUS(check_matmul(operands, accumulation));
  const std::int64_t every = options.observe.every == kAutomatic ? 1 : options.observe.every;
  const std::int64_t histogram =
      options.observe.histogram_every == kAutomatic ? every : options.observe.histogram_every;
  const ObservedSteps observed{std::max<std::int64_t>(1, every), std::max<std::int64_t>(1, histogram)};
  MatmulProduct product;
  product.format = result_format(accumulation);
  product.kernel = "scalar";
  product.registers = make_registers(accumulation);
  product.values = Buffer<float>(static_cast<std::size_t>(operands.m * operands.n));
  for (std::int64_t m = 0; m < operands.m; ++m) {
    for (std::int64_t n = 0; n < operands.n; ++n) {
      const auto at = static_cast<std::size_t>(m * operands.n + n);
      const double c = operands.c.empty() ? 0.0 : operands.c[at];
      ScalarRun run(operands, accumulation, m, n, every != 0 ? &observed : nullptr, product.registers);
      float value = run.run(c, operands.c.empty());
      if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
      bool finite = std::isfinite(c);
      for (std::int64_t k = 0; k < operands.k; ++k) {
        finite = finite && std::isfinite(operands.a[static_cast<std::size_t>(m * operands.k + k)]) &&
                 std::isfinite(operands.b[static_cast<std::size_t>(k * operands.n + n)]);
      }
      count_result(value, finite, product.format, product.counters);
      product.values[at] = value;
    }
  }
  if (every == 0) product.registers.clear();
  return product;
}

}  // namespace plumbline::numerics
