#pragma once
// What rounding did to a tensor, always counted.
#include <cstdint>

#include "execute/numerics/format.h"

namespace plumbline::numerics {

/// Elements by what happened to them; an element may count in several fields. Meanings as in Flag.
struct Counters {
  std::uint64_t elements = 0;
  std::uint64_t nan_in = 0;
  std::uint64_t infinity_in = 0;
  std::uint64_t overflow = 0;
  std::uint64_t underflow_to_zero = 0;
  std::uint64_t subnormal = 0;
  std::uint64_t saturated = 0;
  std::uint64_t inexact = 0;
  std::uint64_t nan_lost = 0;       ///< an error: NaN into a format without NaN
  std::uint64_t out_of_domain = 0;  ///< an error: a value that the format has no code near

  void add(std::uint16_t flags) {
    ++elements;
    nan_in += (flags & kNanIn) != 0;
    infinity_in += (flags & kInfinityIn) != 0;
    overflow += (flags & kOverflow) != 0;
    underflow_to_zero += (flags & kUnderflowToZero) != 0;
    subnormal += (flags & kSubnormal) != 0;
    saturated += (flags & kSaturated) != 0;
    inexact += (flags & kInexact) != 0;
    nan_lost += (flags & kNanLost) != 0;
    out_of_domain += (flags & kOutOfDomain) != 0;
  }
  Counters& operator+=(const Counters& other) {
    elements += other.elements;
    nan_in += other.nan_in;
    infinity_in += other.infinity_in;
    overflow += other.overflow;
    underflow_to_zero += other.underflow_to_zero;
    subnormal += other.subnormal;
    saturated += other.saturated;
    inexact += other.inexact;
    nan_lost += other.nan_lost;
    out_of_domain += other.out_of_domain;
    return *this;
  }
  /// Elements that had no meaning in the format: a caller must not pass over them silently.
  [[nodiscard]] std::uint64_t errors() const { return nan_lost + out_of_domain; }
  friend bool operator==(const Counters&, const Counters&) = default;
};

}  // namespace plumbline::numerics
