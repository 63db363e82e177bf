#pragma once
// What rounding the products of a reduction to binary16 loses. It depends on the two factors alone, so for every k it
// follows from classes of the column of a and of the row of b: M + N steps instead of M N.
#include <cstdint>

#include "execute/numerics/matmul_plan.h"

namespace plumbline::numerics {

/// Of all products of finite operands.
struct ProductCounts {
  std::int64_t rounded_nonzero = 0;  ///< whose rounded value is not zero (infinite included)
  std::int64_t to_zero = 0;          ///< nonzero, rounded to zero
  std::int64_t inexact = 0;          ///< not equal to their rounded value
};

/// Whether every finite value of both operands is one of binary16.
[[nodiscard]] bool operands_fit_binary16(const MatmulOperands& operands, const OperandScan& a, const OperandScan& b);

/// Of the packed operands of a plan that fit.
[[nodiscard]] ProductCounts count_product_losses(const MatmulPlan& plan, unsigned threads);

}  // namespace plumbline::numerics
