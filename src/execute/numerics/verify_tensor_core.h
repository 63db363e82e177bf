#pragma once
// Judges the tensor-core reference vectors (test/oracle/tc_vectors.json) against the block rule and the fast kernels.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plumbline::numerics {

/// The outcome of one reference file.
struct TensorCoreVerdict {
  std::int64_t passed = 0;
  std::int64_t failed = 0;
  std::int64_t skipped = 0;
  std::vector<std::string> lines;  ///< one line per failing or unreadable case, with set and index
};

/// Whether `document` carries the signature of this kind: `sets[].vectors` and `fraction_bits`.
[[nodiscard]] bool is_tensor_core_vectors(const nlohmann::json& document);

/// One case per vector: result bits must be equal both by the integer rule and by the kernel this machine runs (any NaN
/// for NaN). Operands longer than `block` are chained; results in fp16 are written as binary32 bits. A malformed vector
/// or a set that cannot be read fails with a line of its own.
[[nodiscard]] TensorCoreVerdict verify_tensor_core(const nlohmann::json& document);

}  // namespace plumbline::numerics
