#pragma once
// The boundary between the matmul driver and the tensor-core kernel.
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
[[nodiscard]] CoreParameters make_core_parameters(const TensorCore& core, const Format& a, const Format& b);

/// What the block operations of a tile lost; padded rows and columns have no nonzero term and count nothing but blocks.
struct BlockTally {
  std::uint64_t blocks = 0;           ///< block operations observed, padding included
  std::uint64_t terms_kept_zero = 0;  ///< products that were or became zero
  std::uint64_t terms_cut = 0;        ///< terms, c included, that lost bits when aligned; dropped ones included
  std::uint64_t results_inexact = 0;  ///< final roundings that lost bits
  std::uint64_t scalar_blocks = 0;    ///< block operations left to the scalar rule (special or extreme values)
};

/// Chains the blocks of k in [first, last) into tile[kPanelRows][kPanelColumns]; the last block may be short. Blocks
/// whose index from `first` is a multiple of `stride` are observed when `tally` is given.
void tile_tensor_core(const Panels& panels, const CoreParameters& parameters, std::int64_t first, std::int64_t last,
                      float* tile, BlockTally* tally, std::int64_t stride);

}  // namespace plumbline::numerics
