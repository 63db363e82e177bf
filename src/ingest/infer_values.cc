// Shapes as values, and the arithmetic exporters do on them. Only small tensors are followed (graph_limits.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/check.h"
#include "ingest/graph_limits.h"
#include "ingest/graph_text.h"
#include "ingest/infer_rules.h"
#include "ingest/shape_math.h"
#include "ingest/value_pick.h"

namespace plumbline::ingest {

using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

Status infer_shape(Step& step) {
  const Shape& in = step.shape(0);
  const auto rank = static_cast<std::int64_t>(in.size());
  const auto clamp = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? std::max(at, -rank) + rank : at, 0, rank);
  };
  const std::int64_t start = clamp(step.integer("start", 0));
  const std::int64_t end = std::max(start, clamp(step.integer("end", rank)));
  Integers part(in.begin() + start, in.begin() + end);
  PL_TRY_STATUS(step.give(0, {end - start}, ElementType::int64));
  step.give_contents(0, std::move(part));
  return Done{};
}

Status infer_size(Step& step) {
  const auto count = element_count(step.shape(0));
  PL_CHECK(count.has_value());
  PL_TRY_STATUS(step.give(0, {}, ElementType::int64));
  step.give_contents(0, Integers{*count});
  return Done{};
}

Status infer_constant_of_shape(Step& step) {
  PL_TRY(Shape shape, step.known_integers(0, "dimensions"));
  const auto type =
      static_cast<ElementType>(step.integer("value_type", static_cast<std::int64_t>(ElementType::float32)));
  PL_TRY_STATUS(step.give(0, shape, type));
  const auto count = element_count(shape);
  if (!count || *count > static_cast<std::int64_t>(kMaxFollowedElements)) return Done{};
  const auto size = static_cast<std::size_t>(*count);
  const Attribute* fill = step.attribute("value");
  if (is_integral(type)) {
    const auto* integer = fill == nullptr ? nullptr : std::get_if<std::int64_t>(fill);
    step.give_contents(0, Integers(size, integer == nullptr ? 0 : *integer));
  } else if (is_floating(type)) {
    const auto* real = fill == nullptr ? nullptr : std::get_if<double>(fill);
    step.give_contents(0, Reals(size, real == nullptr ? 0.0 : *real));
  }
  return Done{};
}

namespace {

// max(ceil((limit - start) / delta), 0), exactly for integers.
std::optional<std::int64_t> range_count(const Contents& start, const Contents& limit, const Contents& delta) {
  if (const auto* d = std::get_if<Integers>(&delta)) {
    const std::int64_t s = std::get<Integers>(start)[0];
    const std::int64_t l = std::get<Integers>(limit)[0];
    std::int64_t span = 0;
    if ((*d)[0] == 0 || (*d)[0] == INT64_MIN || __builtin_sub_overflow(l, s, &span) || span == INT64_MIN)
      return std::nullopt;
    if (span == 0 || (span > 0) != ((*d)[0] > 0)) return 0;
    return (std::abs(span) - 1) / std::abs((*d)[0]) + 1;
  }
  const double count = std::ceil((std::get<Reals>(limit)[0] - std::get<Reals>(start)[0]) / std::get<Reals>(delta)[0]);
  if (!(std::abs(count) <= static_cast<double>(kMaxExtent))) return std::nullopt;
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(count));
}

}  // namespace

Status infer_range(Step& step) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (step.contents(i) == nullptr) return step.known_integers(i, "bounds").errors();
    if (size_of(*step.contents(i)) != 1 || step.contents(i)->index() != step.contents(0)->index()) {
      return step.wrong("its bounds must be three numbers of one type");
    }
  }
  const auto count = range_count(*step.contents(0), *step.contents(1), *step.contents(2));
  if (!count) return step.wrong("its bounds give no finite range");
  PL_TRY_STATUS(step.give(0, {*count}, step.type(0)));
  if (*count > static_cast<std::int64_t>(kMaxFollowedElements)) return Done{};
  std::visit(
      [&](const auto& start) {
        const auto first = start[0];
        const auto delta = std::get<std::decay_t<decltype(start)>>(*step.contents(2))[0];
        std::decay_t<decltype(start)> out;
        // Each element lies between start and limit, so an integer product does not overflow.
        for (std::int64_t i = 0; i < *count; ++i)
          out.push_back(first + static_cast<std::decay_t<decltype(first)>>(i) * delta);
        step.give_contents(0, std::move(out));
      },
      *step.contents(0));
  return Done{};
}

Status infer_non_zero(Step& step) {
  PL_TRY(const Reals elements, step.known_reals(0, "number of elements that are not zero"));
  const Shape& in = step.shape(0);
  std::vector<Integers> found(in.size());
  std::int64_t count = 0;
  std::size_t next = 0;
  for_each_coordinate(in, [&](const Shape& at) {
    if (elements[next++] == 0) return;
    ++count;
    for (std::size_t i = 0; i < at.size(); ++i) found[i].push_back(at[i]);
  });
  PL_TRY_STATUS(step.give(0, {static_cast<std::int64_t>(in.size()), count}, ElementType::int64));
  Integers out;
  for (const auto& row : found) out.insert(out.end(), row.begin(), row.end());
  step.give_contents(0, std::move(out));
  return Done{};
}

namespace {

struct UnaryRow {
  std::string_view op;
  bool (*integers)(std::int64_t& x);  // true on overflow; nullptr: not followed
  double (*reals)(double x);
};

constexpr UnaryRow kUnary[] = {
    {"Abs", [](std::int64_t& x) { return x < 0 && __builtin_sub_overflow(0, x, &x); },
     [](double x) { return std::abs(x); }},
    {"Neg", [](std::int64_t& x) { return __builtin_sub_overflow(0, x, &x); }, [](double x) { return -x; }},
    {"Relu", [](std::int64_t& x) { return x = std::max<std::int64_t>(x, 0), false; },
     [](double x) { return std::max(x, 0.0); }},
    {"Not", [](std::int64_t& x) { return x = x == 0 ? 1 : 0, false; }, nullptr},
    {"Floor", nullptr, [](double x) { return std::floor(x); }},
    {"Ceil", nullptr, [](double x) { return std::ceil(x); }},
    {"Round", nullptr, [](double x) { return std::nearbyint(x); }},  // halves to even, as ONNX Round
    {"Sqrt", nullptr, [](double x) { return std::sqrt(x); }},
};

}  // namespace

Status value_unary(Step& step) {
  for (const auto& row : kUnary) {
    if (row.op != step.node().op) continue;
    Contents out = *step.contents(0);
    if (auto* integers = std::get_if<Integers>(&out)) {
      if (row.integers == nullptr) return Done{};
      for (auto& x : *integers) {
        if (row.integers(x)) return step.wrong("its value does not fit 64 bits");
      }
    } else {
      if (row.reals == nullptr) return Done{};
      for (auto& x : std::get<Reals>(out)) x = row.reals(x);
    }
    step.give_contents(0, std::move(out));
    return Done{};
  }
  PL_CHECK(false);
  return Done{};
}

namespace {

enum class Trouble { none, overflow, zero_divisor };

using IntegerPair = Trouble (*)(std::int64_t a, std::int64_t b, std::int64_t& out);
using RealPair = double (*)(double a, double b);

Trouble overflow_if(bool overflow) { return overflow ? Trouble::overflow : Trouble::none; }

Trouble divide(std::int64_t a, std::int64_t b, std::int64_t& out) {
  if (b == 0) return Trouble::zero_divisor;
  if (b == -1) return overflow_if(__builtin_sub_overflow(0, a, &out));
  out = a / b;  // toward zero, as ONNX Div
  return Trouble::none;
}

Trouble modulo(std::int64_t a, std::int64_t b, std::int64_t& out) {
  if (b == 0) return Trouble::zero_divisor;
  out = b == -1 ? 0 : a % b;
  if (out != 0 && (out < 0) != (b < 0)) out += b;  // the sign of the divisor, as ONNX Mod with fmod = 0
  return Trouble::none;
}

Trouble power(std::int64_t a, std::int64_t b, std::int64_t& out) {
  if (b < 0 || b > 64) return Trouble::overflow;
  out = 1;
  for (std::int64_t i = 0; i < b; ++i) {
    if (__builtin_mul_overflow(out, a, &out)) return Trouble::overflow;
  }
  return Trouble::none;
}

template <class Compare>
Trouble compared(std::int64_t a, std::int64_t b, std::int64_t& out) {
  out = Compare{}(a, b) ? 1 : 0;
  return Trouble::none;
}

template <class Compare>
double compared_real(double a, double b) {
  return Compare{}(a, b) ? 1 : 0;
}

struct BinaryRow {
  std::string_view op;
  IntegerPair integers;
  RealPair reals;  // nullptr: reals are not followed
};

constexpr BinaryRow kBinary[] = {
    {"Add",
     [](std::int64_t a, std::int64_t b, std::int64_t& out) { return overflow_if(__builtin_add_overflow(a, b, &out)); },
     [](double a, double b) { return a + b; }},
    {"Sum",
     [](std::int64_t a, std::int64_t b, std::int64_t& out) { return overflow_if(__builtin_add_overflow(a, b, &out)); },
     [](double a, double b) { return a + b; }},
    {"Sub",
     [](std::int64_t a, std::int64_t b, std::int64_t& out) { return overflow_if(__builtin_sub_overflow(a, b, &out)); },
     [](double a, double b) { return a - b; }},
    {"Mul",
     [](std::int64_t a, std::int64_t b, std::int64_t& out) { return overflow_if(__builtin_mul_overflow(a, b, &out)); },
     [](double a, double b) { return a * b; }},
    {"Div", divide, [](double a, double b) { return a / b; }},
    {"Mod", modulo, nullptr},
    {"Pow", power, nullptr},
    {"Min", [](std::int64_t a, std::int64_t b, std::int64_t& out) { return out = std::min(a, b), Trouble::none; },
     [](double a, double b) { return std::min(a, b); }},
    {"Max", [](std::int64_t a, std::int64_t b, std::int64_t& out) { return out = std::max(a, b), Trouble::none; },
     [](double a, double b) { return std::max(a, b); }},
    {"And", compared<std::logical_and<>>, nullptr},
    {"Or", compared<std::logical_or<>>, nullptr},
    {"Xor", compared<std::not_equal_to<>>, nullptr},
    {"Equal", compared<std::equal_to<>>, compared_real<std::equal_to<>>},
    {"Greater", compared<std::greater<>>, compared_real<std::greater<>>},
    {"GreaterOrEqual", compared<std::greater_equal<>>, compared_real<std::greater_equal<>>},
    {"Less", compared<std::less<>>, compared_real<std::less<>>},
    {"LessOrEqual", compared<std::less_equal<>>, compared_real<std::less_equal<>>},
};

Status apply_integers(Step& step, const BinaryRow& row) {
  Integers total;
  for (std::size_t i = 0; i < step.input_count(); ++i) {
    const auto& next = std::get<Integers>(*step.contents(i));
    std::size_t slot = 0;
    Trouble trouble = Trouble::none;
    for_each_coordinate(step.output_shape(0), [&](const Shape& at) {
      const std::int64_t x = next[static_cast<std::size_t>(broadcast_offset(step.shape(i), at))];
      std::int64_t out = x;
      if (i > 0 && trouble == Trouble::none) trouble = row.integers(total[slot], x, out);
      if (i == 0) {
        total.push_back(out);
      } else {
        total[slot++] = out;
      }
    });
    if (trouble == Trouble::overflow) return step.wrong("its value does not fit 64 bits");
    if (trouble == Trouble::zero_divisor) return step.wrong("it divides by 0");
  }
  step.give_contents(0, std::move(total));
  return Done{};
}

Status apply_reals(Step& step, const BinaryRow& row) {
  Reals total;
  for (std::size_t i = 0; i < step.input_count(); ++i) {
    PL_TRY(const Reals next, step.known_reals(i, "operands"));
    std::size_t slot = 0;
    for_each_coordinate(step.output_shape(0), [&](const Shape& at) {
      const double x = next[static_cast<std::size_t>(broadcast_offset(step.shape(i), at))];
      if (i == 0) {
        total.push_back(x);
      } else {
        total[slot] = row.reals(total[slot], x);
        ++slot;
      }
    });
  }
  if (step.output_type(0) == ElementType::boolean) {
    step.give_contents(0, Integers(total.begin(), total.end()));
  } else {
    step.give_contents(0, std::move(total));
  }
  return Done{};
}

bool small_output(const Step& step) {
  return element_count(step.output_shape(0)).value_or(kMaxElements) <= static_cast<std::int64_t>(kMaxFollowedElements);
}

}  // namespace

Status value_binary(Step& step) {
  if (!small_output(step) || step.integer("fmod", 0) != 0) return Done{};  // fmod 1: the sign of the dividend, rare
  bool reals = false;
  for (std::size_t i = 0; i < step.input_count(); ++i)
    reals = reals || std::holds_alternative<Reals>(*step.contents(i));
  for (const auto& row : kBinary) {
    if (row.op != step.node().op) continue;
    if (!reals) return apply_integers(step, row);
    return row.reals == nullptr ? Status(Done{}) : apply_reals(step, row);
  }
  PL_CHECK(false);
  return Done{};
}

Status value_clip(Step& step) {
  const auto* in = std::get_if<Integers>(step.contents(0));
  if (in == nullptr) return Done{};
  Integers out = *in;
  for (std::size_t i = 1; i < 3; ++i) {
    if (!step.has_input(i)) continue;
    PL_TRY(const Integers bound, step.known_integers(i, "bounds"));
    if (bound.size() != 1) return step.wrong("a bound must be one number");
    for (auto& x : out) x = i == 1 ? std::max(x, bound[0]) : std::min(x, bound[0]);
  }
  step.give_contents(0, std::move(out));
  return Done{};
}

Status value_cast(Step& step) {
  const Contents& in = *step.contents(0);
  const ElementType to = step.output_type(0);
  if (is_floating(to)) {
    PL_TRY(Reals reals, step.known_reals(0, "elements"));
    step.give_contents(0, std::move(reals));
    return Done{};
  }
  if (!is_integral(to)) return Done{};
  Integers out;
  if (const auto* integers = std::get_if<Integers>(&in)) {
    out = *integers;
  } else {
    constexpr double kLargest = 9.0e18;  // below 2^63; outside, the conversion is undefined and nothing is followed
    for (const double x : std::get<Reals>(in)) {
      if (!(std::abs(x) < kLargest)) return Done{};
      out.push_back(to == ElementType::boolean ? (x != 0 ? 1 : 0) : static_cast<std::int64_t>(x));  // toward zero
    }
  }
  if (to == ElementType::boolean) {
    for (auto& x : out) x = x != 0 ? 1 : 0;
  }
  step.give_contents(0, std::move(out));
  return Done{};
}

Status value_where(Step& step) {
  if (!small_output(step) || step.contents(1)->index() != step.contents(2)->index()) return Done{};
  PL_TRY(const Integers condition, step.known_integers(0, "condition"));
  std::visit(
      [&](const auto& yes) {
        const auto& no = std::get<std::decay_t<decltype(yes)>>(*step.contents(2));
        std::decay_t<decltype(yes)> out;
        for_each_coordinate(step.output_shape(0), [&](const Shape& at) {
          const bool chosen = condition[static_cast<std::size_t>(broadcast_offset(step.shape(0), at))] != 0;
          out.push_back(chosen ? yes[static_cast<std::size_t>(broadcast_offset(step.shape(1), at))]
                               : no[static_cast<std::size_t>(broadcast_offset(step.shape(2), at))]);
        });
        step.give_contents(0, std::move(out));
      },
      *step.contents(1));
  return Done{};
}

}  // namespace plumbline::ingest
