#pragma once
// Random bits for stochastic rounding: a function of (seed, tensor, step, element), never of thread or vector width.
#include <cstdint>
#include <string_view>

#include "core/random.h"
#include "execute/numerics/format.h"

namespace plumbline::numerics {

/// Names the random bits of one rounding of one tensor; `first_element` is the index of a slice's first element.
struct StochasticKey {
  std::uint64_t seed = 0;
  std::uint64_t tensor = 0;  ///< hash_name() of the tensor's name, or an id
  std::uint64_t step = 0;
  std::uint64_t first_element = 0;
};

/// Elements that share one pair of 32-bit keys: 2^16.
inline constexpr int kKeyBlockBits = 16;

/// The two 32-bit keys of the block that holds an element.
struct BlockKey {
  std::uint32_t add;
  std::uint32_t exclusive_or;
};
[[nodiscard]] constexpr BlockKey block_key(const StochasticKey& key, std::uint64_t block) {
  const std::uint64_t stream = mix64(mix64(mix64(key.seed) ^ key.tensor) + key.step);
  const std::uint64_t mixed = mix64(stream ^ mix64(block));
  return {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32U)};
}

// A bijection on 32 bits: multiply-xorshift with the "lowbias32" constants (C. Wellons, "Prospecting for hash
// functions", 2018, public domain) after a golden-ratio step (2^32 / phi, odd); the second key enters between rounds.
inline constexpr std::uint32_t kHashStep = 0x9E3779B9U;
inline constexpr std::uint32_t kHashFirst = 0x7FEB352DU;
inline constexpr std::uint32_t kHashSecond = 0x846CA68BU;

/// 32 random bits of the element at `offset` in its block.
[[nodiscard]] constexpr std::uint32_t hash_element(BlockKey key, std::uint32_t offset) {
  std::uint32_t x = offset * kHashStep + key.add;
  x = (x ^ (x >> 16U)) * kHashFirst;
  x ^= key.exclusive_or;
  x = (x ^ (x >> 15U)) * kHashSecond;
  return x ^ (x >> 16U);
}

/// The `count` (1 to 31) random bits of element `index`, counted from key.first_element.
[[nodiscard]] constexpr RandomBits random_bits(const StochasticKey& key, std::uint64_t index, int count) {
  const std::uint64_t element = key.first_element + index;
  const BlockKey keys = block_key(key, element >> kKeyBlockBits);
  const std::uint32_t hash = hash_element(keys, static_cast<std::uint32_t>(element & ((1U << kKeyBlockBits) - 1)));
  return {hash >> (32 - count), count};
}

}  // namespace plumbline::numerics
