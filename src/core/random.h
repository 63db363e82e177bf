#pragma once
// Counter-based random numbers: a value is a function of (seed, stream, index), never of call order or thread.
#include <cstdint>
#include <string_view>

namespace plumbline {

/// Finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection on 64 bits with full avalanche.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

/// FNV-1a, for naming streams by a fixed text.
constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t h = 0xCBF29CE484222325ULL;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return h;
}

/// A named stream of a seeded run; `at(i)` is random access, `next()` walks it.
class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, std::string_view name, std::uint64_t index = 0)
      : key_(mix64(mix64(seed ^ hash_name(name)) + index)) {}

  [[nodiscard]] constexpr std::uint64_t at(std::uint64_t i) const { return mix64(key_ ^ mix64(i)); }
  constexpr std::uint64_t next() { return at(counter_++); }
  /// Uniform in [0, 1) with 53 bits.
  constexpr double next_unit() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }
  /// Uniform in [0, n), unbiased enough for n << 2^32 (multiply-shift, Lemire 2019).
  constexpr std::uint64_t next_below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64U);
  }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace plumbline
