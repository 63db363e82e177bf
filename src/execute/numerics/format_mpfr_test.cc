// The scalar rule against MPFR, an independent implementation of correctly rounded arithmetic.
#include <gtest/gtest.h>
#include <mpfr.h>

#include <bit>
#include <cmath>

#include "core/random.h"
#include "execute/numerics/format.h"

namespace plumbline::numerics {
namespace {

struct Mode {
  Rounding rounding;
  mpfr_rnd_t mpfr;
};
constexpr Mode kModes[] = {
    {Rounding::rne, MPFR_RNDN}, {Rounding::rtz, MPFR_RNDZ}, {Rounding::ru, MPFR_RNDU}, {Rounding::rd, MPFR_RNDD}};

/// `value` rounded to the format's precision and subnormal grid with an exponent unbounded above.
double rounded_by_mpfr(double value, const Format& format, mpfr_rnd_t rounding) {
  mpfr_t x;
  mpfr_init2(x, format.fraction_bits + 1);
  // MPFR's exponents are of significands in [1/2, 1): one more than ours.
  mpfr_set_emin(format.min_positive_exponent() + 1);
  mpfr_set_emax(2000);
  const int ternary = mpfr_set_d(x, value, rounding);
  mpfr_subnormalize(x, ternary, rounding);
  const double result = mpfr_get_d(x, MPFR_RNDN);
  mpfr_clear(x);
  return result;
}

TEST(FormatAgainstMpfr, EveryModeRoundsRandomDoublesAlike) {
  const RandomStream random(17, "mpfr-test");
  std::uint64_t draw = 0;
  for (const Format& format : builtin_formats()) {
    if (!format.has_zero || format.fraction_bits == 0) continue;  // MPFR has no format without zero
    const int span = format.max_exponent() - format.min_positive_exponent() + 8;
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t bits = random.at(draw++);
      const double significand = 1 + static_cast<double>(bits >> 12U) * 0x1p-52;
      const int exponent =
          format.min_positive_exponent() - 4 + static_cast<int>(random.at(draw++) % static_cast<unsigned>(span));
      double value = std::ldexp(bits % 2 == 0 ? significand : -significand, exponent);
      if (bits % 5 == 0) value = static_cast<float>(value);
      if (bits % 7 == 0)
        value = std::ldexp(std::round(std::ldexp(value, -exponent + format.fraction_bits + 1)),
                           exponent - format.fraction_bits - 1);  // ties
      if (!std::isfinite(value)) continue;
      for (const Mode& mode : kModes) {
        const double want = rounded_by_mpfr(value, format, mode.mpfr);
        const Encoded got = encode(value, format, mode.rounding, Saturation::on);
        if (std::fabs(want) > format.max_value()) {
          ASSERT_EQ(got.code & format.magnitude_mask(), format.max_code()) << format.name;
          ASSERT_NE(got.flags & kOverflow, 0);
          continue;
        }
        ASSERT_EQ(decode(got.code, format), want)
            << format.name << " " << to_string(mode.rounding) << " " << std::hexfloat << value;
        ASSERT_EQ((got.flags & kInexact) != 0, want != value);
        ASSERT_EQ((got.flags & kUnderflowToZero) != 0, want == 0 && value != 0);
      }
    }
  }
}

}  // namespace
}  // namespace plumbline::numerics
