#pragma once
// Reading files, with limits; the one place in ingest/ that touches the file system.
#include <cstdint>
#include <string>

#include "core/result.h"
#include "ingest/document.h"

namespace plumbline::ingest {

/// The bytes of a file. `at` is where the path was written (for the diagnostic). Errors: missing-file, too-large.
Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes, const Span& at = {});

/// Reads and parses a YAML file; diagnostics name it as `shown`.
Result<Value> read_yaml_file(const std::string& path, const std::string& shown, const Span& at = {});

/// `path` relative to the folder of `base_file`, unless absolute.
[[nodiscard]] std::string beside(const std::string& base_file, const std::string& path);

}  // namespace plumbline::ingest
