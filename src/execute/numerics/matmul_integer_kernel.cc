// Integer products without saturation. AVX2 has a byte multiply-add too (PMADDUBSW), but it saturates each pair of
// products to 16 bits: 255*127 + 255*127 becomes 32767. So bytes are widened to 16 bits, whose pair sums fit 32 bits,
// or go through VPDPBUSD, which adds all four products into 32 bits.
#include "execute/numerics/matmul_integer_kernel.h"

// The targets are chosen before Highway is seen.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execute/numerics/matmul_integer_kernel.cc"
#include "execute/numerics/matmul_targets.h"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "execute/numerics/matmul_vector-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace plumbline::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<std::int32_t> d;
using V = hn::Vec<hn::ScalableTag<std::int32_t>>;

/// sum + a0*b0 + a1*b1, modulo 2^32. |a|, |b| <= 511, so the pair itself fits.
HWY_INLINE V add_pairs(V sum, V a, V b) {
#if HWY_TARGET == HWY_AVX3
  return hn::Add(sum, V{_mm512_madd_epi16(a.raw, b.raw)});
#elif HWY_TARGET == HWY_AVX2
  return hn::Add(sum, V{_mm256_madd_epi16(a.raw, b.raw)});
#else
  const auto x = static_cast<std::uint32_t>(hn::GetLane(a));
  const auto y = static_cast<std::uint32_t>(hn::GetLane(b));
  const auto half = [](std::uint32_t v) { return std::int32_t{static_cast<std::int16_t>(v)}; };
  const std::int32_t pair = half(x) * half(y) + half(x >> 16) * half(y >> 16);
  return hn::Set(
      d, static_cast<std::int32_t>(static_cast<std::uint32_t>(hn::GetLane(sum)) + static_cast<std::uint32_t>(pair)));
#endif
}

void IntegerTilePairs(const IntegerPanels& panels, std::int64_t first, std::int64_t last,
                      std::int32_t* HWY_RESTRICT tile) {
  constexpr int kRows = HWY_TARGET == HWY_AVX2 ? 6 : 12;  // 16 or 32 vector registers
  constexpr int kVectors = HWY_TARGET == HWY_SCALAR ? 1 : 2;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int column = 0; column < kIntegerColumns; column += kVectors * lanes) {
    for (int row = 0; row < kIntegerRows; row += kRows) {
      V sum[kRows][kVectors];
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          sum[r][v] = hn::LoadU(d, tile + (row + r) * kIntegerColumns + column + v * lanes);
        }
      }
      const auto* HWY_RESTRICT a = reinterpret_cast<const std::int32_t*>(panels.a) + first * kIntegerRows + row;
      const auto* HWY_RESTRICT b = reinterpret_cast<const std::int32_t*>(panels.b) + first * kIntegerColumns + column;
      for (std::int64_t g = first; g < last; ++g, a += kIntegerRows, b += kIntegerColumns) {
        V bv[kVectors];
        for (int v = 0; v < kVectors; ++v) bv[v] = hn::LoadU(d, b + v * lanes);
        for (int r = 0; r < kRows; ++r) {
          const V av = hn::Set(d, a[r]);
          for (int v = 0; v < kVectors; ++v) sum[r][v] = add_pairs(sum[r][v], av, bv[v]);
        }
      }
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          hn::StoreU(sum[r][v], d, tile + (row + r) * kIntegerColumns + column + v * lanes);
        }
      }
    }
  }
}

bool IsAvx512() { return HWY_TARGET == HWY_AVX3; }

}  // namespace HWY_NAMESPACE
}  // namespace plumbline::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumbline::numerics {

HWY_EXPORT(IntegerTilePairs);
HWY_EXPORT(IsAvx512);

void integer_tile_pairs(const IntegerPanels& panels, std::int64_t first, std::int64_t last, std::int32_t* tile) {
  HWY_DYNAMIC_DISPATCH(IntegerTilePairs)(panels, first, last, tile);
}
bool integer_bytes_supported() { return HWY_DYNAMIC_DISPATCH(IsAvx512)() && machine_has_vnni(); }

}  // namespace plumbline::numerics
#endif
