// The scalar accumulation models against MPFR, an independent implementation of correctly rounded arithmetic: each step
// is one MPFR operation with the accumulator's precision and subnormal range.
#include <gtest/gtest.h>
#include <mpfr.h>

#include <bit>
#include <cmath>

#include "core/random.h"
#include "execute/numerics/matmul.h"

namespace plumbline::numerics {
namespace {

struct Mode {
  Rounding rounding;
  mpfr_rnd_t mpfr;
};
constexpr Mode kModes[] = {
    {Rounding::rne, MPFR_RNDN}, {Rounding::rtz, MPFR_RNDZ}, {Rounding::ru, MPFR_RNDU}, {Rounding::rd, MPFR_RNDD}};

/// An MPFR number with a format's precision and exponent range. Operations run in MPFR's full range, for operands may
/// lie outside the format's; then the result is brought into it.
class Accumulator {
 public:
  Accumulator(const Format& format, mpfr_rnd_t rounding) : format_(format), rounding_(rounding) {
    mpfr_init2(value_, format.fraction_bits + 1);
    mpfr_set_zero(value_, 1);
  }
  ~Accumulator() { mpfr_clear(value_); }
  Accumulator(const Accumulator&) = delete;
  Accumulator& operator=(const Accumulator&) = delete;

  void fused(double a, double b) {
    Exact x(a);
    Exact y(b);
    fit(value_, mpfr_fma(value_, x.value, y.value, value_, rounding_));
  }
  void rounded(double a, double b) {
    Exact x(a);
    Exact y(b);
    mpfr_t product;
    mpfr_init2(product, mpfr_get_prec(value_));
    fit(product, mpfr_mul(product, x.value, y.value, rounding_));
    fit(value_, mpfr_add(value_, value_, product, rounding_));
    mpfr_clear(product);
  }
  [[nodiscard]] double get() const { return mpfr_get_d(value_, MPFR_RNDN); }

 private:
  struct Exact {
    explicit Exact(double x) {
      mpfr_init2(value, 53);
      mpfr_set_d(value, x, MPFR_RNDN);
    }
    ~Exact() { mpfr_clear(value); }
    Exact(const Exact&) = delete;
    Exact& operator=(const Exact&) = delete;
    mpfr_t value;
  };
  void fit(mpfr_t value, int ternary) const {
    const mpfr_exp_t least = mpfr_get_emin();
    const mpfr_exp_t most = mpfr_get_emax();
    mpfr_set_emin(format_.min_positive_exponent() + 1);  // MPFR's significands lie in [1/2, 1)
    mpfr_set_emax(format_.max_exponent() + 1);
    ternary = mpfr_check_range(value, ternary, rounding_);
    mpfr_subnormalize(value, ternary, rounding_);
    mpfr_set_emin(least);
    mpfr_set_emax(most);
  }

  const Format& format_;
  mpfr_rnd_t rounding_;
  mpfr_t value_;
};

float draw(RandomStream& random, const Format& format, int spread) {
  const double x =
      (random.next_unit() * 2 - 1) * std::ldexp(1.0, static_cast<int>(random.next_below(spread)) - spread / 2);
  return static_cast<float>(decode(encode(x, format, Rounding::rne, Saturation::on).code, format));
}

TEST(MatmulAgainstMpfr, SequentialSumsAgreeInEveryFormatAndMode) {
  RandomStream random(23, "matmul-mpfr");
  std::int64_t compared = 0;
  for (const char* name : {"binary32", "binary16", "bfloat16", "tf32", "e5m2"}) {
    const Format& format = builtin_format(name);
    for (const Mode& mode : kModes) {
      for (const bool fused : {true, false}) {
        for (int trial = 0; trial < 400; ++trial) {
          const Format& input = builtin_format(trial % 3 == 0 ? "bfloat16" : trial % 3 == 1 ? "binary16" : "e4m3fn");
          const auto k = static_cast<std::int64_t>(1 + random.next_below(24));
          // Near the format's least values, so that subnormal results are among them, or around one.
          const int spread = trial % 2 == 0 ? 8 : std::min(100, format.bias * 2);
          std::vector<float> a;
          std::vector<float> b;
          for (std::int64_t i = 0; i < k; ++i) {
            a.push_back(draw(random, input, spread));
            b.push_back(draw(random, input, spread));
          }
          Accumulator want(format, mode.mpfr);
          bool zero_sum = false;
          for (std::size_t i = 0; i < a.size(); ++i) {
            if (fused) {
              want.fused(a[i], b[i]);
            } else {
              want.rounded(a[i], b[i]);
            }
            zero_sum = zero_sum || want.get() == 0;
          }
          Accumulation accumulation;
          accumulation.reduction = fused ? Reduction::sequential_fused : Reduction::sequential_rounded;
          accumulation.accumulator = {.format = format, .rounding = mode.rounding};
          const MatmulOperands operands{1, 1, k, a, b, {}, input, input};
          const auto scalar = matmul_scalar(operands, accumulation);
          const auto kernel = matmul(operands, accumulation);
          ASSERT_TRUE(scalar.ok() && kernel.ok());
          ASSERT_EQ(std::bit_cast<std::uint32_t>(scalar->values[0]), std::bit_cast<std::uint32_t>(kernel->values[0]));
          if (std::isnan(want.get())) {
            ASSERT_TRUE(std::isnan(scalar->values[0]));
            continue;
          }
          ASSERT_EQ(double{scalar->values[0]}, want.get()) << name << " mode " << to_string(mode.rounding);
          // Our exact zero sums are +0 in every mode; IEEE 754 and MPFR give -0 when rounding down.
          if (!zero_sum) {
            ASSERT_EQ(std::signbit(scalar->values[0]), std::signbit(want.get()));
          }
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 5 * 4 * 2 * 400 * 9 / 10);
}

}  // namespace
}  // namespace plumbline::numerics
