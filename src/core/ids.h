#pragma once
// Wrapped indices: a KernelId is not a LevelId, though both are integers.
#include <compare>
#include <cstdint>

namespace plumbline {

template <class Tag>
struct Id {
  std::int32_t index = -1;
  constexpr Id() = default;
  constexpr explicit Id(std::int32_t i) : index(i) {}
  constexpr explicit Id(std::size_t i) : index(static_cast<std::int32_t>(i)) {}
  [[nodiscard]] constexpr std::size_t at() const { return static_cast<std::size_t>(index); }
  [[nodiscard]] constexpr bool valid() const { return index >= 0; }
  friend constexpr auto operator<=>(Id, Id) = default;  // NOLINT(modernize-use-nullptr): its 0
};

using TensorId = Id<struct TensorTag>;
using NodeId = Id<struct NodeTag>;
using KernelId = Id<struct KernelTag>;
using LevelId = Id<struct LevelTag>;

}  // namespace plumbline
