#pragma once
// User-defined number formats from a YAML file: rows of exponent and fraction widths.
#include <string>
#include <vector>

#include "core/result.h"
#include "execute/numerics/format.h"

namespace plumbline::cli {

/// Reads `formats:`, a list of {name, exponent, fraction, bias, infinity, nan, source}; see docs/numerics.md. Errors:
/// those of the YAML reader, `bad-value` for rows that mean nothing, `duplicate-id` for names used twice or built in.
[[nodiscard]] Result<std::vector<numerics::Format>> read_format_rows(const std::string& path);

/// A format of `rows`, or a built-in one.
[[nodiscard]] Result<numerics::Format> find_format_in(const std::vector<numerics::Format>& rows, std::string_view name);

}  // namespace plumbline::cli
