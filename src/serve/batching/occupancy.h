#pragma once
// How many requests are somewhere, integrated over time as it passes: one side of Little's law, counted apart from the
// sojourns that form the other.
#include <algorithm>
#include <cstdint>

namespace plumbline::serve {

class Occupancy {
 public:
  /// Changes the count at `now`, which never goes back.
  void add(std::int64_t now, std::int64_t change) {
    if (now > last_ns_) {
      integral_ += static_cast<__int128>(count_) * (now - last_ns_);
      most_ = std::max(most_, count_);
      last_ns_ = now;
    }
    count_ += change;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// Largest count that lasted: one that is passed through within an instant is none.
  [[nodiscard]] std::int64_t most() const { return most_; }
  /// Request-nanoseconds up to the last change.
  [[nodiscard]] __int128 integral() const { return integral_; }

 private:
  std::int64_t last_ns_ = 0;
  std::int64_t count_ = 0;
  std::int64_t most_ = 0;
  __int128 integral_ = 0;
};

}  // namespace plumbline::serve
