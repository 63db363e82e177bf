#pragma once
// Kernels and mappings as a user writes them for `plumbline map`.
#include <string>

#include "core/result.h"
#include "ingest/document.h"
#include "lower/einsum.h"
#include "schedule/hierarchy.h"
#include "schedule/mapping.h"

namespace plumbline::cli {

struct KernelText {
  std::string operation;  ///< gemm, conv or depthwise
  lower::Einsum einsum;
  std::string inputs = "int8";
  std::string accumulate = "int32";
};

/// "gemm M=512 N=768 K=768 in=int8 acc=int32 out=int8"; also "conv N= G= K= C= P= Q= R= S= stride=2 dilation=1x2" and
/// "depthwise". Dimensions left out are 1 (all of M, N and K are asked for); out is as in when left out. Errors:
/// bad-value, bad-number, unknown-key, unknown-name, duplicate-key, missing-key.
Result<KernelText> read_kernel(const std::string& text);

/// A mapping file: `mapping:` is a list with a row per level, {level: sram, keep: [weights, outputs], loops: [M 4, K 3,
/// N 128 x]}; loops stand outermost first, `x` and `y` spread over the array. Levels without a row do nothing. Errors:
/// with spans for every bad key.
Result<schedule::Mapping> read_mapping(const ingest::Value& document, const lower::Einsum& einsum,
                                       const schedule::Hierarchy& hierarchy);

}  // namespace plumbline::cli
