#pragma once
// Files the numerics commands write.
#include <string>

#include "core/result.h"

namespace plumbline::cli {

/// Values and codes must not go to one file, whatever its spelling; an empty path is not written. Errors: `usage`.
[[nodiscard]] Status check_output_files(const std::string& values, const std::string& codes);

}  // namespace plumbline::cli
