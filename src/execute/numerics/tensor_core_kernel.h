#pragma once
// The boundary between the matmul driver and the tensor-core kernel.
#include <array>
#include <cstdint>

#include "execute/numerics/matmul_kernels.h"
#include "execute/numerics/tensor_core.h"

namespace plumbline::numerics {

/// A core in the kernel's terms, with the core itself for the lanes the kernel leaves to the scalar rule.
struct CoreParameters {
  const TensorCore* core = nullptr;
  const Format* a_format = nullptr;
  const Format* b_format = nullptr;
  int least_addend_exponent = -126;  ///< of the output format's normals
  int chunk = 16;                    ///< products whose aligned sum is below 2^31 whatever their values
  bool may_wrap = true;              ///< whether a block's sum can exceed 31 bits at all
};
/// Blocks whose E lies below are counted by the operands' last bits.
inline constexpr int kCalmExponent = 64;
[[nodiscard]] CoreParameters make_core_parameters(const TensorCore& core, const Format& a, const Format& b);

/// What the observed block operations of a tile lost. Padded rows and columns count nowhere. The products cut to zero
/// are those of nonzero operands but for terms_nonzero and pairs_void.
struct BlockTally {
  std::uint64_t terms_nonzero = 0;             ///< products of which something was left when aligned
  std::uint64_t pairs_void = 0;                ///< of nonzero operands, in blocks of infinite or NaN results
  std::uint64_t terms_cut = 0;                 ///< terms, c included, that lost bits when aligned, all of them included
  std::uint64_t results_inexact = 0;           ///< final roundings that lost bits
  std::array<std::uint64_t, 256> exponents{};  ///< results by binary32 exponent field
};

/// Chains the blocks of k in [first, last) into tile[kPanelRows][kPanelColumns]; the last block may be short. With
/// `tally`, blocks are counted whose number (first k / block) observed.every divides, exponents where histogram_every
/// does too.
void tile_tensor_core(const Panels& panels, const CoreParameters& parameters, std::int64_t first, std::int64_t last,
                      float* tile, BlockTally* tally, const ObservedSteps& observed);

}  // namespace plumbline::numerics
