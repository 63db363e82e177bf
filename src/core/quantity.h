#pragma once
// Quantities with units in their types. A Dim holds integer exponents; bit and byte are kept apart on purpose
// (4-bit and block formats make a silent bit-to-byte mix-up the likeliest wrong number in this tool).
#include <compare>
#include <cstdint>

namespace plumbline {

struct Dim {
  int bit = 0;
  int byte = 0;
  int cycle = 0;
  int second = 0;
  int joule = 0;
  int mac = 0;
  int kelvin = 0;
  friend constexpr bool operator==(const Dim&, const Dim&) = default;
};

constexpr Dim operator-(Dim a, Dim b) {
  return {a.bit - b.bit,     a.byte - b.byte, a.cycle - b.cycle,  a.second - b.second,
          a.joule - b.joule, a.mac - b.mac,   a.kelvin - b.kelvin};
}

/// A value of dimension D held in Rep. Construction is explicit; `raw()` is the one greppable way out.
template <Dim D, class Rep>
class Quantity {
 public:
  using rep = Rep;
  static constexpr Dim dim = D;

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}

  [[nodiscard]] constexpr Rep raw() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, Rep s) { return Quantity(a.value_ * s); }
  friend constexpr Quantity operator*(Rep s, Quantity a) { return Quantity(a.value_ * s); }
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;  // NOLINT(modernize-use-nullptr): its 0
  friend constexpr bool operator==(Quantity a, Quantity b) = default;

 private:
  Rep value_{};
};

/// Quotient of two quantities: a plain double when the dimensions cancel, else a double-valued quantity.
template <Dim A, class RA, Dim B, class RB>
constexpr auto operator/(Quantity<A, RA> a, Quantity<B, RB> b) {
  const double ratio = static_cast<double>(a.raw()) / static_cast<double>(b.raw());
  if constexpr (A == B) {
    return ratio;
  } else {
    return Quantity<A - B, double>(ratio);
  }
}

using Bits = Quantity<Dim{.bit = 1}, std::int64_t>;
using Bytes = Quantity<Dim{.byte = 1}, std::int64_t>;
using Cycles = Quantity<Dim{.cycle = 1}, std::int64_t>;
using Macs = Quantity<Dim{.mac = 1}, std::int64_t>;
using Seconds = Quantity<Dim{.second = 1}, double>;
using Joules = Quantity<Dim{.joule = 1}, double>;
using Watts = Quantity<Dim{.second = -1, .joule = 1}, double>;
using Hertz = Quantity<Dim{.second = -1}, double>;
using Kelvins = Quantity<Dim{.kelvin = 1}, double>;
using BytesPerSecond = Quantity<Dim{.byte = 1, .second = -1}, double>;
using BytesPerCycle = Quantity<Dim{.byte = 1, .cycle = -1}, double>;

/// Simulated time in whole nanoseconds: integers, so that runs are exact and comparable.
struct Nanoseconds {
  std::int64_t value = 0;
  constexpr Nanoseconds() = default;
  constexpr explicit Nanoseconds(std::int64_t ns) : value(ns) {}
  [[nodiscard]] constexpr std::int64_t raw() const { return value; }
  friend constexpr Nanoseconds operator+(Nanoseconds a, Nanoseconds b) { return Nanoseconds(a.value + b.value); }
  friend constexpr Nanoseconds operator-(Nanoseconds a, Nanoseconds b) { return Nanoseconds(a.value - b.value); }
  friend constexpr auto operator<=>(Nanoseconds a, Nanoseconds b) = default;  // NOLINT(modernize-use-nullptr): its 0
};

/// Energy in femtojoules, 128 bits wide, so that attributed parts sum to the whole bit for bit.
struct Femtojoules {
  __int128 value = 0;
  constexpr Femtojoules() = default;
  constexpr explicit Femtojoules(__int128 fj) : value(fj) {}
  [[nodiscard]] constexpr __int128 raw() const { return value; }
  [[nodiscard]] constexpr Joules joules() const { return Joules(static_cast<double>(value) * 1e-15); }
  constexpr Femtojoules& operator+=(Femtojoules other) {
    value += other.value;
    return *this;
  }
  friend constexpr Femtojoules operator+(Femtojoules a, Femtojoules b) { return Femtojoules(a.value + b.value); }
  friend constexpr Femtojoules operator-(Femtojoules a, Femtojoules b) { return Femtojoules(a.value - b.value); }
  friend constexpr bool operator==(Femtojoules a, Femtojoules b) = default;
};

/// The only way from bits to bytes: rounds up.
constexpr Bytes ceil_bytes(Bits bits) { return Bytes((bits.raw() + 7) / 8); }

/// A named clock turns cycles into time; nothing else does.
struct Clock {
  Hertz frequency{1e9};
  [[nodiscard]] constexpr Seconds duration(Cycles cycles) const {
    return Seconds(static_cast<double>(cycles.raw()) / frequency.raw());
  }
  /// Whole nanoseconds, rounded up: a batch is never finished early.
  [[nodiscard]] Nanoseconds duration_ns(Cycles cycles) const;
};

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n)); }
constexpr Bytes operator""_kB(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n) * 1000); }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n) * 1024); }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n) * 1024 * 1024); }
}  // namespace literals

}  // namespace plumbline
