#include "lower/match.h"

#include <algorithm>

namespace plumbline::lower {

bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool matches(const ingest::ConstraintRow& row, std::string_view layer_class, std::string_view name) {
  return glob_matches(row.kernels, layer_class) || glob_matches(row.kernels, name);
}

bool has_dimensions(const Kernel& kernel, const ingest::ConstraintRow& row) {
  if (kernel.kind != KernelKind::matrix) return false;
  const Einsum& einsum = kernel.einsum;
  if (row.operation == "gemm" && einsum.dim("M") < 0) return false;
  if (row.operation == "conv" && einsum.dim("R") < 0) return false;
  const auto has = [&](const std::string& name) { return einsum.dim(name) >= 0; };
  return (!row.dim || has(*row.dim)) && (!row.spatial_x || has(*row.spatial_x)) &&
         (!row.spatial_y || has(*row.spatial_y)) && std::all_of(row.order.begin(), row.order.end(), has);
}

}  // namespace plumbline::lower
