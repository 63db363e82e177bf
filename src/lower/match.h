#pragma once
// Which kernels a constraint row speaks of.
#include <string>
#include <string_view>

#include "ingest/scenario.h"
#include "lower/kernel.h"

namespace plumbline::lower {

/// Constraint rows a scenario may have: a kernel remembers its rows in one word.
inline constexpr std::size_t kMostConstraintRows = 64;

/// `*` matches any run of characters, `?` one.
[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view text);

/// The row's glob matches the layer class or the name of an instance.
[[nodiscard]] bool matches(const ingest::ConstraintRow& row, std::string_view layer_class, std::string_view name);

/// The kernel is of the row's operation and has every dimension the row names.
[[nodiscard]] bool has_dimensions(const Kernel& kernel, const ingest::ConstraintRow& row);

}  // namespace plumbline::lower
