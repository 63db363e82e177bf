#pragma once
// A mapping as a file that `map --mapping` and `matmul --mapping` read (map_kernel.h says how it is written).
#include <cstdint>
#include <string>

#include "core/result.h"
#include "execute/reduction_order.h"
#include "ingest/document.h"
#include "lower/einsum.h"
#include "schedule/hierarchy.h"
#include "schedule/mapping.h"

namespace plumbline::cli {

/// What read_mapping() reads back as `mapping`.
[[nodiscard]] std::string mapping_file_text(const schedule::Mapping& mapping, const lower::Einsum& einsum,
                                            const schedule::Hierarchy& hierarchy);

/// Faults of a whole mapping, at the place where `document` states it.
[[nodiscard]] Diagnostics at_the_mapping(Diagnostics faults, const ingest::Value& document);

/// The order in which the mapping of `path` on `accelerator` adds the products of an m x k by k x n matrix product.
/// Errors: those of reading both files, what is wrong with the mapping, and those of execute::reduction_order.
[[nodiscard]] Result<execute::ReductionOrder> read_reduction_order(const std::string& path,
                                                                   const std::string& accelerator, std::int64_t m,
                                                                   std::int64_t n, std::int64_t k);

}  // namespace plumbline::cli
