// The byte kernel. Highway 1.0.3 has no VPDPBUSD, so this file names the instruction itself and is reached only where
// the machine has it.
#include "core/check.h"
#include "execute/numerics/matmul_integer_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace plumbline::numerics {

bool machine_has_vnni() { return __builtin_cpu_supports("avx512vnni") != 0 && __builtin_cpu_supports("avx512f") != 0; }

__attribute__((target("avx512f,avx512vnni"))) void integer_tile_bytes(const IntegerPanels& panels, std::int64_t first,
                                                                      std::int64_t last, std::int32_t* tile) {
  constexpr int kVectors = kIntegerColumns / 16;  // 16 sums of 32 bits per vector
  __m512i sum[kIntegerRows][kVectors];
  for (int r = 0; r < kIntegerRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_loadu_si512(tile + r * kIntegerColumns + v * 16);
  }
  const std::uint32_t* __restrict a = panels.a + first * kIntegerRows;
  const std::uint32_t* __restrict b = panels.b + first * kIntegerColumns;
  for (std::int64_t g = first; g < last; ++g, a += kIntegerRows, b += kIntegerColumns) {
    __m512i bv[kVectors];
    for (int v = 0; v < kVectors; ++v) bv[v] = _mm512_loadu_si512(b + v * 16);
    for (int r = 0; r < kIntegerRows; ++r) {
      const __m512i av = _mm512_set1_epi32(static_cast<int>(a[r]));
      for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], bv[v], av);
    }
  }
  for (int r = 0; r < kIntegerRows; ++r) {
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_si512(tile + r * kIntegerColumns + v * 16, sum[r][v]);
  }
}

}  // namespace plumbline::numerics

#else

namespace plumbline::numerics {
bool machine_has_vnni() { return false; }
void integer_tile_bytes(const IntegerPanels&, std::int64_t, std::int64_t, std::int32_t*) { PL_CHECK(false); }
}  // namespace plumbline::numerics

#endif
