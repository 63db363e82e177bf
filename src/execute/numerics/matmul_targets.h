#pragma once
// Instruction sets the matmul kernels are compiled for: AVX2 (with FMA and F16C), AVX-512, and plain C++ for everything
// else. SSSE3 and SSE4 have neither FMA nor F16C and gain nothing; Highway 1.0.3's Ice Lake target asks the compiler
// for VEX-coded VNNI, which Ice Lake lacks.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#ifndef HWY_COMPILE_ALL_ATTAINABLE
#define HWY_COMPILE_ALL_ATTAINABLE  // the plain C++ kernels too, so that tests can hold all of them equal
#endif
