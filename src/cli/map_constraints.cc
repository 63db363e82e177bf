#include "cli/map_constraints.h"

#include <fmt/format.h>

#include <algorithm>

#include "ingest/read_compile.h"
#include "lower/match.h"
#include "schedule/rules.h"

namespace plumbline::cli {
namespace {

using ingest::ConstraintRow;
using schedule::SearchOptions;

/// A kernel that constraint rows can be matched with.
lower::Kernel kernel_of(const KernelText& text, std::size_t rows) {
  lower::Kernel kernel;
  kernel.kind = lower::KernelKind::matrix;
  kernel.name = kernel.layer_class = text.operation;
  kernel.einsum = text.einsum;
  for (std::size_t r = 0; r < rows; ++r) kernel.constraint_rows |= std::uint64_t{1} << r;
  return kernel;
}

/// Rows as limits of the search.
Result<SearchOptions> limits_of(const std::vector<ConstraintRow>& rows, const KernelText& text,
                                const ingest::Accelerator& accelerator, const SearchOptions& options) {
  const lower::Kernel kernel = kernel_of(text, rows.size());
  PL_TRY(const schedule::Rules rules, schedule::resolve_rules(kernel, {}, rows, accelerator));
  SearchOptions out = options;
  const std::size_t levels = accelerator.levels.size();
  const auto end = static_cast<std::ptrdiff_t>(levels);
  out.must_keep.assign(rules.keep.begin(), rules.keep.begin() + end);
  out.must_bypass.assign(rules.bypass.begin(), rules.bypass.begin() + end);
  out.orders.assign(rules.order.begin(), rules.order.begin() + end);
  out.factors = schedule::factor_bounds(rules, text.einsum, levels);
  if (rules.spatial_x >= 0) out.along_x = 1U << rules.spatial_x;
  if (rules.spatial_y >= 0) out.along_y = 1U << rules.spatial_y;
  return out;
}

Result<schedule::SearchResult> search_with(const std::vector<ConstraintRow>& rows, const KernelText& kernel,
                                           const ingest::Accelerator& accelerator,
                                           const schedule::AcceleratorModel& model, const SearchOptions& options) {
  PL_TRY(const SearchOptions limits, limits_of(rows, kernel, accelerator, options));
  return schedule::search_on(model, kernel.einsum, limits);
}

/// Rows without which a mapping exists, one at a time: what stands in the way.
void blame(const std::vector<ConstraintRow>& rows, const KernelText& kernel, const ingest::Accelerator& accelerator,
           const schedule::AcceleratorModel& model, SearchOptions options, Diagnostic& none) {
  options.most_work /= 100;  // any mapping will do
  std::vector<const ConstraintRow*> guilty;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::vector<ConstraintRow> others = rows;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(r));
    if (search_with(others, kernel, accelerator, model, options).ok()) guilty.push_back(&rows[r]);
  }
  if (guilty.empty()) return;
  none.span = guilty[0]->span;
  if (guilty.size() == 1) {
    none.help = "without this row a mapping exists";
    return;
  }
  none.help = "without either row a mapping exists";
  none.other = guilty[1]->span;
  none.note = fmt::format("the row {}", guilty[1]->text);
}

}  // namespace

Result<std::vector<ConstraintRow>> read_constraints(const ingest::Value& document) {
  Diagnostics errors;
  std::vector<ConstraintRow> rows;
  ingest::MapReader reader(document, "a constraints file", errors);
  const ingest::Value* list = reader.require("constraints");
  reader.finish();
  if (list != nullptr && ingest::expect_list(*list, "constraints", errors)) {
    if (list->items.size() > lower::kMostConstraintRows) {
      errors.push_back(
          make_error("too-large", list->span, fmt::format("more than {} constraint rows", lower::kMostConstraintRows)));
    }
    for (const ingest::Value& row : list->items) rows.push_back(ingest::read_constraint(row, errors));
  }
  if (!errors.empty()) return errors;
  return rows;
}

Result<schedule::SearchResult> search_under(const std::vector<ConstraintRow>& rows, const KernelText& kernel,
                                            const ingest::Accelerator& accelerator,
                                            const schedule::AcceleratorModel& model, const SearchOptions& options) {
  const lower::Kernel matched = kernel_of(kernel, rows.size());
  for (const ConstraintRow& row : rows) {
    if (lower::matches(row, matched.layer_class, matched.name) && lower::has_dimensions(matched, row)) continue;
    return make_error(
        "bad-value", row.span, fmt::format("the row {} does not speak of this kernel", row.text),
        fmt::format("a {} with the dimensions {}", kernel.operation, fmt::join(kernel.einsum.dim_names, ", ")));
  }
  auto found = search_with(rows, kernel, accelerator, model, options);
  if (found.ok() || rows.empty()) return found;
  Diagnostic none = found.errors().front();
  if (none.kind == "does-not-fit" && !none.span.source) blame(rows, kernel, accelerator, model, options, none);
  return none;
}

}  // namespace plumbline::cli
