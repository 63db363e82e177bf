#pragma once
// A mapping flattened for counting: loops in one fixed array, outermost first, with strides and the digits of the last
// index. No allocation; a Nest is refilled for every mapping.
#include <array>
#include <cstdint>

#include "lower/einsum.h"
#include "schedule/hierarchy.h"
#include "schedule/mapping.h"

namespace plumbline::schedule {

inline constexpr int kMaxLevels = 8;
inline constexpr int kMaxOperands = 4;
inline constexpr int kMaxLoops = 64;  ///< loops of more than one trip, all levels together

struct NestLoop {  // no defaults: the array is not worth clearing for every mapping
  std::int32_t dim;
  std::int32_t level;
  bool spatial;
  std::int64_t bound;
  std::int64_t stride;  ///< how far one step moves the index; saturates at the problem size
  std::int64_t digit;   ///< this loop's digit of the last index, size − 1
  std::int64_t before;  ///< trips of all temporal loops outside this one; meaningful when nothing is ragged
};

/// What is wrong with a mapping, without words: the caller of the fast path may not want them.
enum class Fault : std::uint8_t {
  none,
  malformed,    ///< a dimension, bound, loop order or level count out of range
  no_home,      ///< an operand kept nowhere
  not_covered,  ///< the bounds of a dimension multiply to less than its size
  beyond_mesh,  ///< spatial loops beyond the fan-out
  beyond_tile,  ///< tiles beyond the capacity
  too_many_loops,
  overflow,  ///< bits or cycles beyond 64 bits
};
struct Verdict {
  Fault fault = Fault::none;
  int level = 0;    ///< where it shows, when it belongs to a level
  int subject = 0;  ///< dimension or operand
  std::int64_t wanted = 0;
  std::int64_t limit = 0;
  [[nodiscard]] bool ok() const { return fault == Fault::none; }
};

struct Nest {
  int levels = 0;
  int rank = 0;
  int count = 0;
  std::uint64_t steps = 1;  ///< temporal trips of all loops, modulo 2^64: exact when nothing is ragged
  std::array<NestLoop, kMaxLoops> loops;
  std::array<int, kMaxLevels + 1> first{};  ///< loops outside level l are [0, first[l]); first[levels] = count
  std::array<std::int64_t, lower::kMaxDims> size{};
  std::array<std::int64_t, kMaxLevels + 1> copies{};  ///< product of the spatial bounds outside level l
  std::uint32_t ragged = 0;                           ///< bit d: the factors of dimension d are imperfect
  /// extent[l][d]: the largest index range of dimension d in a tile of level l; the level below the last has 1.
  std::array<std::array<std::int64_t, lower::kMaxDims>, kMaxLevels + 1> extent;
};

/// The mesh between each level and the next in; the MACs stand behind the last level.
struct FanOut {
  std::array<std::int64_t, kMaxLevels> x{};
  std::array<std::int64_t, kMaxLevels> y{};
};

/// Fills `nest`. Checks the loops, the coverage and the fan-out; not the capacities.
Verdict flatten(const lower::Einsum& einsum, const FanOut& fan_out, const Mapping& mapping, Nest& nest);

}  // namespace plumbline::schedule
