#pragma once
// What the topics share: test values, clocks, and the comparison of one thread with two.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "core/parallel.h"
#include "core/random.h"

namespace plumbline::bench {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// A bell of unit deviation (the sum of four uniforms) from one 64-bit draw.
inline double bell(std::uint64_t draw) {
  std::int32_t sum = 0;
  for (int k = 0; k < 4; ++k) sum += static_cast<std::int32_t>(draw >> (16 * k) & 0xFFFFU);
  return (static_cast<double>(sum) / 65536 - 2) * 1.7320508;
}

/// Wall seconds of one call.
template <class Body>
double seconds_of(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Seconds of this thread's own time: equal to wall time where the machine is idle, and steady where it is not.
template <class Body>
double thread_seconds_of(const Body& body) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  body();
  return now() - start;
}

/// Best wall times of one and of two threads, taken in turn so that both see the same machine.
struct ThreadPair {
  double one = kNever;
  double two = kNever;
  template <class Body>  // body(threads)
  void measure(const Body& body) {
    one = std::min(one, seconds_of([&] { body(1U); }));
    two = std::min(two, seconds_of([&] { body(2U); }));
  }
  [[nodiscard]] double ratio() const { return one / two; }
};

/// Two halves of a fixed amount of arithmetic without memory: what a second thread brings on this machine at this
/// moment. Rows of two threads can be believed where this row is near 2.
inline void pure_arithmetic(unsigned threads) {
  constexpr int kParts = 64;
  constexpr int kSteps = 200000;
  std::vector<double> results(kParts);
  parallel_for(kParts, threads, [&](std::size_t part) {
    double x = static_cast<double>(part);
    for (int i = 0; i < kSteps; ++i) x = x * 0.999 + 0.5;
    results[part] = x;
  });
  volatile double kept = results[kParts - 1];
  (void)kept;
}

/// memcpy by as many threads, in the pieces the kernels take.
inline void parallel_copy(const std::vector<float>& from, std::vector<float>& to, unsigned threads) {
  constexpr std::size_t kPiece = std::size_t{1} << 16U;
  parallel_for(from.size() / kPiece, threads, [&](std::size_t piece) {
    std::memcpy(to.data() + piece * kPiece, from.data() + piece * kPiece, kPiece * sizeof(float));
  });
}

}  // namespace plumbline::bench
