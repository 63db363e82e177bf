#pragma once
// Block formats: OCP MX (32 elements, one power-of-two scale) and NVFP4 (16 elements, an E4M3 scale, a float32 per
// tensor).
#include <cstdint>
#include <span>
#include <vector>

#include "execute/numerics/buffer.h"
#include "execute/numerics/counters.h"
#include "execute/numerics/format.h"
#include "execute/numerics/stochastic.h"

namespace plumbline::numerics {

/// Elements of an MX block: OCP Microscaling Formats 1.0, section 5.
inline constexpr std::size_t kMxBlock = 32;
/// Elements of an NVFP4 block: NVIDIA, "Introducing NVFP4", 2025.
inline constexpr std::size_t kNvfp4Block = 16;

/// How the E8M0 scale of a block follows from its largest magnitude. floor: OCP MX 1.0 section 6.3,
/// 2^(floor(log2 max) - emax). rceil: the smallest power of two with max / scale <= largest element (NVIDIA UE8M0).
enum class ScaleRule : std::uint8_t { floor, rceil };
[[nodiscard]] std::string_view to_string(ScaleRule rule);
[[nodiscard]] Result<ScaleRule> find_scale_rule(std::string_view name, const Span& span = {});

/// An element type of MX: a floating-point format, or MXINT8, two's complement with an implied factor 2^-6 whose code
/// -128 is never written (OCP MX 1.0 section 5.3.6 permits that).
/// Its `format` is the sign-magnitude image, a row without exponent bits: every value k 2^-6 lies on one grid.
struct MxElement {
  Format format;
  bool is_integer = false;  ///< codes are two's complement
};
/// e4m3fn, e5m2, e3m2, e2m3, e2m1, int8, or any signed format of at most 8 bits; else `unsupported`.
[[nodiscard]] Result<MxElement> find_mx_element(std::string_view name, const Span& span = {});
[[nodiscard]] Result<MxElement> make_mx_element(const Format& format, const Span& span = {});

/// Elements always saturate, as the specification demands. A block with NaN or Inf gets the scale 0xFF (NaN) and
/// element codes 0: the specification leaves it open, common practice makes the scale NaN.
struct MxSpec {
  MxElement element;
  ScaleRule rule = ScaleRule::floor;
  Rounding rounding = Rounding::rne;
  int random_bits = 16;
  StochasticKey key{};
};

/// A tensor [rows, columns] quantized along its rows; every row has ceil(columns / 32) blocks, codes padded with zeros.
struct MxTensor {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t padded_columns = 0;
  std::vector<std::uint8_t> scales;  ///< E8M0, rows * padded_columns / 32
  ByteBuffer codes;                  ///< rows * padded_columns
  Counters counters;                 ///< of real elements only, not of padding
  std::uint64_t nan_blocks = 0;      ///< blocks whose scale is NaN
};

/// Scale byte of a block from the largest magnitude, given as binary32 bits without sign. All zero: 0; Inf or NaN:
/// 0xFF.
[[nodiscard]] std::uint8_t mx_scale(std::uint32_t largest_bits, const MxElement& element, ScaleRule rule);

/// The scalar rule: one block of at most 32 elements; `first_index` counts elements for stochastic rounding.
std::uint8_t quantize_mx_block(std::span<const float> block, const MxSpec& spec, std::uint64_t first_index,
                               std::uint8_t* codes, Counters& counters);

/// Quantizes [rows, columns]. Errors: `shape-mismatch` when the size is not rows * columns, `bad-value` when 32 does
/// not divide columns and `pad` is false, `unsupported` for an element type without kernel.
[[nodiscard]] Result<MxTensor> quantize_mx(std::span<const float> values, std::size_t rows, std::size_t columns,
                                           const MxSpec& spec, bool pad, unsigned threads = 1);
/// Values scale * element as binary32 (exact, but for results beyond it), rows * columns of them.
[[nodiscard]] std::vector<float> decode_mx(const MxTensor& tensor, const MxElement& element);

/// NVFP4. Per tensor: s = max finite |v| / 2688 (448 * 6), 1 when that is zero. Per block: the E4M3 code (RNE,
/// saturating) of max |v| / (6 s), 1.0 for an all-zero block. Elements: E2M1 of v / (scale * s), saturating; zero where
/// the scale became zero. Every division and product is binary32, rounded to nearest even, in the order NVIDIA ModelOpt
/// takes (nvfp4_tensor.py, 2025). Elements are rounded with `rounding`; counters are of the quotients, a nonzero input
/// that ends as zero counts as underflow. A block with NaN or Inf gets scale 0x7F (NaN) and codes 0.
struct Nvfp4Spec {
  Rounding rounding = Rounding::rne;
  int random_bits = 16;
  StochasticKey key{};
};
struct Nvfp4Tensor {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t padded_columns = 0;
  float tensor_scale = 1;
  std::vector<std::uint8_t> scales;  ///< E4M3FN, rows * padded_columns / 16
  ByteBuffer codes;                  ///< E2M1, one per byte
  Counters counters;
  std::uint64_t nan_blocks = 0;
};
[[nodiscard]] Result<Nvfp4Tensor> quantize_nvfp4(std::span<const float> values, std::size_t rows, std::size_t columns,
                                                 const Nvfp4Spec& spec, bool pad, unsigned threads = 1);
[[nodiscard]] std::vector<float> decode_nvfp4(const Nvfp4Tensor& tensor);

/// Bits per element in storage, scales included (padding not): 8.25 for MX of 8-bit elements, 4.5 for NVFP4 without its
/// per-tensor scale.
[[nodiscard]] double mx_bits_per_element(const MxElement& element);
inline constexpr double kNvfp4BitsPerElement = 4 + 8.0 / kNvfp4Block;

}  // namespace plumbline::numerics
