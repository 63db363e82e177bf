#include "core/quantity.h"

#include <cmath>

namespace plumbline {

Nanoseconds Clock::duration_ns(Cycles cycles) const {
  const double ns = static_cast<double>(cycles.raw()) * 1e9 / frequency.raw();
  return Nanoseconds(static_cast<std::int64_t>(std::ceil(ns)));
}

}  // namespace plumbline
