#pragma once
// The boundary between the integer driver and its kernels.
#include <cstdint>

namespace plumbline::numerics {

inline constexpr int kIntegerRows = 12;
inline constexpr int kIntegerColumns = 32;

/// Panels of groups along k: pairs of 16-bit integers, or four bytes (signed in a, unsigned in b), 4 bytes a group.
/// a[group][row], b[group][column].
struct IntegerPanels {
  const std::uint32_t* a = nullptr;
  const std::uint32_t* b = nullptr;
};

/// tile[kIntegerRows][kIntegerColumns] += the products of groups [first, last), modulo 2^32.
void integer_tile_pairs(const IntegerPanels& panels, std::int64_t first, std::int64_t last, std::int32_t* tile);
/// The same for groups of four bytes; only where integer_bytes_supported().
void integer_tile_bytes(const IntegerPanels& panels, std::int64_t first, std::int64_t last, std::int32_t* tile);
/// Whether the kernels in use multiply unsigned by signed bytes into 32 bits without saturating pairs.
[[nodiscard]] bool integer_bytes_supported();
/// Whether this machine has AVX-512 VNNI.
[[nodiscard]] bool machine_has_vnni();

}  // namespace plumbline::numerics
