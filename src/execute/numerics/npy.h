#pragma once
// NumPy .npy arrays: little-endian, C order, plain number types; everything else is refused with the way out.
// Source: NumPy Enhancement Proposal 1 and numpy.lib.format (versions 1.0, 2.0, 3.0).
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace plumbline::numerics {

enum class NpyType : std::uint8_t { f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, u8 };
[[nodiscard]] std::string_view to_string(NpyType type);  ///< "f4": NumPy's letter and bytes
[[nodiscard]] std::size_t bytes_of(NpyType type);

struct NpyArray {
  NpyType type = NpyType::f4;
  std::vector<std::size_t> shape;  ///< empty: one element
  std::vector<std::byte> bytes;    ///< elements in C order, little-endian
  [[nodiscard]] std::size_t elements() const { return bytes.size() / bytes_of(type); }
};

inline constexpr std::size_t kNpyMaxHeaderBytes = std::size_t{64} << 10;  ///< NumPy writes a few hundred
inline constexpr std::size_t kNpyMaxRank = 32;                            ///< NumPy's own limit before 2.0
inline constexpr std::uint64_t kNpyMaxBytes = std::uint64_t{4} << 30;     ///< of elements

/// Parses a whole file. Errors `npy-syntax` (magic, version, header, big-endian, Fortran order, structured or other
/// types, truncated, trailing bytes), `too-large`.
[[nodiscard]] Result<NpyArray> parse_npy(std::span<const std::byte> file, const SourceRef& source = nullptr);
/// Reads and parses; also `missing-file`.
[[nodiscard]] Result<NpyArray> load_npy(const std::string& path);

/// Elements as binary32. float64 and wide integers are rounded to nearest even; `inexact` counts the elements that
/// changed, so that nothing is rounded twice unseen.
struct NpyFloats {
  std::vector<float> values;
  std::uint64_t inexact = 0;
};
[[nodiscard]] NpyFloats to_float32(const NpyArray& array);

/// The bytes of a version 1.0 file. The bytes must fill the shape.
[[nodiscard]] std::string format_npy(const NpyArray& array);
/// Writes it; error `unwritable`.
[[nodiscard]] Status save_npy(const std::string& path, const NpyArray& array);
[[nodiscard]] NpyArray make_npy(std::span<const float> values, std::vector<std::size_t> shape);

}  // namespace plumbline::numerics
