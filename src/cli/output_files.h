#pragma once
// Files the workbench commands write.
#include <string>

#include "core/result.h"

namespace plumbline::cli {

/// Values and codes must not go to one file, whatever its spelling; an empty path is not written. Errors: `usage`.
[[nodiscard]] Status check_output_files(const std::string& values, const std::string& codes);

/// Writes a file whole or not at all. Errors: `unwritable`.
[[nodiscard]] Status write_whole(const std::string& path, const std::string& bytes);

}  // namespace plumbline::cli
