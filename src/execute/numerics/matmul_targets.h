#pragma once
// Instruction sets the matmul kernels are compiled for: AVX2 (with FMA and F16C), AVX-512, AVX-512 with VNNI, and plain
// C++ for everything else. SSSE3 and SSE4 have neither FMA nor F16C and gain nothing.
#define HWY_WANT_AVX3_DL
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
