#pragma once
// The block multiply-add of NVIDIA tensor cores as an exact integer rule, and the rows that give it each device's
// numbers.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "execute/numerics/format.h"

namespace plumbline::numerics {

enum class FinalRounding : std::uint8_t { truncate, nearest_even };
/// Where the addend c enters: as one more term of the block, or added to the block sum in binary32 with nearest-even.
enum class Addend : std::uint8_t { in_block, after_rne };
/// What stands behind a row; see tensor_cores.inc. `stated`: numbers given by the user.
enum class CoreEvidence : std::uint8_t { traces, zero_addend, unresolved, stated };

struct TensorCore {
  std::string device;
  std::string input;       ///< format name of both operands
  std::string output;      ///< "binary32" or "binary16": format of c and of the result
  int block = 16;          ///< products per block operation, 1 to 1024
  int fraction_bits = 25;  ///< F, 4 to 29
  int result_bits = 24;    ///< significant bits of the result, at most those of `output`
  FinalRounding final_rounding = FinalRounding::truncate;
  Addend addend = Addend::in_block;
  CoreEvidence evidence = CoreEvidence::stated;
  std::string note;
  friend bool operator==(const TensorCore&, const TensorCore&) = default;
};

/// Every row, unresolved ones too.
[[nodiscard]] const std::vector<TensorCore>& tensor_core_rows();

/// The row of a device for an input and an output format. Errors: `unknown-name` for the device or for a pair of
/// formats the device has no row for; `unsupported` for a row nobody has reproduced, which may not be called bit-true.
[[nodiscard]] Result<TensorCore> find_tensor_core(std::string_view device, std::string_view input,
                                                  std::string_view output, const Span& span = {});

/// Checks numbers a user stated. Errors: `bad-value`.
[[nodiscard]] Status check_tensor_core(const TensorCore& core, const Format& a, const Format& b, const Span& span = {});

/// What one block operation lost. With special values among the operands only zero operands are.
struct BlockLoss {
  std::int64_t products_zero = 0;  ///< products that were zero or were cut to zero
  std::int64_t terms_cut = 0;      ///< terms, c included, that lost bits when aligned; those cut to zero included
  bool result_inexact = false;     ///< the final rounding lost bits
};

/// One block operation, exactly: at most core.block products a[i]*b[i] of finite or special values of formats
/// `a_format` and `b_format`, and c, a value of core.output. Shorter blocks behave as if padded with zeros. Values
/// whose product significand has more than 2*24 bits do not exist here. An exact zero is +0. A result beyond the output
/// format is infinite (assumed: no trace overflows).
[[nodiscard]] float block_multiply_add(const TensorCore& core, const Format& a_format, const Format& b_format,
                                       std::span<const float> a, std::span<const float> b, float c,
                                       BlockLoss* loss = nullptr);

/// Longer operands: blocks in ascending order, each result the next block's c.
[[nodiscard]] float chain_multiply_add(const TensorCore& core, const Format& a_format, const Format& b_format,
                                       std::span<const float> a, std::span<const float> b, float c);

[[nodiscard]] std::string_view to_string(FinalRounding rounding);
[[nodiscard]] std::string_view to_string(Addend addend);
/// What may be claimed of `core` for sums of `depth` products with or without a nonzero initial c: "verified against
/// published hardware traces", "assumed: …", or "stated by the user".
[[nodiscard]] std::string claim(const TensorCore& core, std::int64_t depth, bool nonzero_c);

}  // namespace plumbline::numerics
