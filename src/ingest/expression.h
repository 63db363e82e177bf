#pragma once
// Whole-number expressions over named dimensions, as catalogue models write them: "hidden / heads", "4 * hidden".
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/result.h"

namespace plumbline::ingest {

using Names = std::map<std::string, std::int64_t, std::less<>>;

/// expression = term {("+" | "-") term}; term = factor {("*" | "/") factor};
/// factor = digits | name | "-" factor | "(" expression ")". Division must leave no remainder.
/// Errors at `span`: bad-value (syntax, remainder), unknown-name, overflow.
Result<std::int64_t> evaluate(std::string_view text, const Names& names, const Span& span);

/// Letters, digits and underscores, starting with a letter.
[[nodiscard]] bool is_name(std::string_view text);

}  // namespace plumbline::ingest
