#include "core/elementary.h"

#include <bit>
#include <cstdint>
#include <limits>

namespace plumbline {
namespace {

// ln 2 split so that n * kLn2High is exact for |n| < 2^20 (fdlibm's split, a mathematical constant).
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kInvLn2 = 1.44269504088896338700;

double power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52U); }

}  // namespace

double exact_log(double x) {
  if (!(x > 0)) return x == 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (x > std::numeric_limits<double>::max()) return x;
  int exponent = 0;
  if (x < std::numeric_limits<double>::min()) {  // subnormal: scale into the normal range first
    x *= 0x1.0p54;
    exponent = -54;
  }
  auto bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52U) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL;
  double m = std::bit_cast<double>(bits);
  if (m > 1.41421356237309504880) {  // keep m in (sqrt(1/2), sqrt(2)] so that the series converges fast
    m *= 0.5;
    ++exponent;
  }
  // log m = 2 atanh(s), s = (m-1)/(m+1), |s| <= 0.1716: 11 odd terms leave a remainder below 2^-58.
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double series = 0.0;
  for (int k = 23; k >= 3; k -= 2) series = series * z + 1.0 / k;
  const double n = exponent;
  // 2s = f - s f exactly in real arithmetic; this form keeps the rounding error of s out of the leading term.
  const double tail = s * (2.0 * z * series - f) + n * kLn2Low;
  return n * kLn2High + (f + tail);
}

double exact_exp(double x) {
  if (x != x) return x;
  if (x > 709.782712893383973096) return std::numeric_limits<double>::infinity();
  if (x < -745.133219101941108420) return 0.0;
  const double scaled = x * kInvLn2;
  const int n = static_cast<int>(scaled + (scaled < 0 ? -0.5 : 0.5));
  const double high = x - n * kLn2High;
  const double low = n * kLn2Low;
  const double r = high - low;  // |r| <= 0.347
  // exp r by its Taylor series to r^14: remainder below 2^-60.
  double series = 0.0;
  for (int k = 14; k >= 2; --k) series = (series + 1.0) * (r / k);
  const double correction = (high - r) - low;
  const double value = 1.0 + (r + (series * r + correction));
  if (n > 1023) return value * 0x1.0p1023 * power_of_two(n - 1023);
  if (n >= -1022) return value * power_of_two(n);
  return value * power_of_two(n + 64) * 0x1.0p-64;
}

}  // namespace plumbline
