#pragma once
// Judges the reference files format_vectors.json and mx_vectors.json against the scalar rules and the kernels.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace plumbline::numerics {

/// The outcome of one reference file.
struct FormatVerdict {
  std::int64_t passed = 0;
  std::int64_t failed = 0;
  std::int64_t skipped = 0;        ///< expectations that are null: left to policy
  std::vector<std::string> lines;  ///< one per failing or unreadable case
};

/// `formats.<f>.{inputs,off,on}`.
[[nodiscard]] bool is_format_vectors(const nlohmann::json& document);
/// One case per format, saturation, mode and input: the code must be equal, any NaN code where NaN is expected, by the
/// scalar rule and by the kernel this machine runs. One case per entry of `decode_to_f32`, by bits. Formats unknown
/// here are built from their `params`. What cannot be read fails with a line of its own.
[[nodiscard]] FormatVerdict verify_format_vectors(const nlohmann::json& document);

/// `blocks[].elem.<f>.{floor,rceil}`.
[[nodiscard]] bool is_mx_vectors(const nlohmann::json& document);
/// One case per block, element format and scale rule: the scale and every code must be equal, by the scalar rule and by
/// the kernel.
[[nodiscard]] FormatVerdict verify_mx_vectors(const nlohmann::json& document);

}  // namespace plumbline::numerics
