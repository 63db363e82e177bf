#pragma once
// Judges the tensor-core reference vectors (tc_vectors.json) against the scalar block rule and the fast kernel.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace plumbline::numerics {

/// The outcome of one reference file.
struct TensorCoreVerdict {
  std::int64_t passed = 0;
  std::int64_t failed = 0;
  std::int64_t skipped = 0;
  std::vector<std::string> lines;  ///< one per failing or unreadable case, with its set and index
};

/// `sets[].vectors` and `fraction_bits`.
[[nodiscard]] bool is_tensor_core_vectors(const nlohmann::json& document);

/// One case per vector: the result's bits must be equal (any NaN for NaN) by the scalar rule and by the kernel this
/// machine runs. The numbers of a set are its own; `model`, when it names a device we have a row for, must agree with
/// that row. Operands longer than `block` are chained; fp16 results are binary32 bits. What cannot be read fails with a
/// line of its own.
[[nodiscard]] TensorCoreVerdict verify_tensor_core(const nlohmann::json& document);

}  // namespace plumbline::numerics
