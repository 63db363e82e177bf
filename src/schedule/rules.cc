#include "schedule/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "lower/match.h"
#include "schedule/levels.h"
#include "schedule/roles.h"

namespace plumbline::schedule {
namespace {

using ingest::ConstraintRow;

Diagnostic contradiction(const ConstraintRow& row, const ConstraintRow& other, const std::string& what) {
  Diagnostic d = make_error("does-not-fit", row.span,
                            fmt::format("the row {} contradicts the row {}: {}", row.text, other.text, what),
                            "drop one of the two");
  d.other = other.span;
  d.note = fmt::format("the row {}", other.text);
  return d;
}

Result<int> level_index(const ConstraintRow& row, const ingest::Accelerator& accelerator) {
  std::vector<std::string> names;
  for (std::size_t l = 0; l < accelerator.levels.size(); ++l) {
    const auto& level = accelerator.levels[l];
    // Dataflows are written for any accelerator, so "array" always means the array.
    if (level.name == row.level || (level.array && row.level == "array")) return static_cast<int>(l);
    names.push_back(level.name);
  }
  return make_error("bad-value", row.span,
                    fmt::format("the accelerator '{}' has no level '{}'", accelerator.name, row.level),
                    suggest(row.level, names));
}

/// Operand masks by name; "weights" also stands for activations held in their place.
Result<std::uint32_t> operand_mask(const ConstraintRow& row, const std::vector<std::string>& names) {
  std::uint32_t mask = 0;
  for (const std::string& name : names) {
    if (name != "weights" && name != "inputs" && name != "outputs") {
      return make_error("bad-value", row.span, fmt::format("'{}' is no operand", name),
                        suggest(name, {"weights", "inputs", "outputs"}));
    }
    mask |= 1U << operand_index(name);
  }
  return mask;
}

class Resolver {
 public:
  Resolver(const lower::Kernel& kernel, const ingest::Accelerator& accelerator)
      : kernel_(kernel), accelerator_(accelerator) {}

  Status apply(const ConstraintRow& row, bool binding) {
    if (!lower::has_dimensions(kernel_, row)) return Done{};
    PL_TRY(const int at, level_index(row, accelerator_));
    const auto level = static_cast<std::size_t>(at);
    if (row.dim) PL_TRY_STATUS(limit(row, level));
    if (!row.order.empty()) PL_TRY_STATUS(order(row, level));
    if (row.spatial_x || row.spatial_y) PL_TRY_STATUS(spatial(row, binding));
    return keeps(row, level);
  }

  Rules take() { return std::move(rules_); }

 private:
  Status limit(const ConstraintRow& row, std::size_t level) {
    FactorLimit& limit = rules_.limits[level][static_cast<std::size_t>(kernel_.einsum.dim(*row.dim))];
    if (row.factor_min && *row.factor_min > limit.min) {
      limit.min = *row.factor_min;
      limit.min_row = &row;
    }
    if (row.factor_max && *row.factor_max < limit.max) {
      limit.max = *row.factor_max;
      limit.max_row = &row;
    }
    if (limit.min > limit.max) {
      const ConstraintRow* other = limit.min_row == &row ? limit.max_row : limit.min_row;
      return contradiction(row, *other, fmt::format("at least {} and at most {}", limit.min, limit.max));
    }
    return Done{};
  }

  Status order(const ConstraintRow& row, std::size_t level) {
    std::vector<int> dims;
    for (const std::string& name : row.order) {
      const int dim = kernel_.einsum.dim(name);
      if (std::find(dims.begin(), dims.end(), dim) != dims.end()) {
        return make_error("bad-value", row.span, fmt::format("the order names '{}' twice", name));
      }
      dims.push_back(dim);
    }
    auto& known = rules_.order[level];
    if (!known.empty() && known != dims) {
      return contradiction(row, *rules_.order_row[level], "two orders of one level");
    }
    known = std::move(dims);
    rules_.order_row[level] = &row;
    return Done{};
  }

  Status spatial(const ConstraintRow& row, bool binding) {
    const int x = row.spatial_x ? kernel_.einsum.dim(*row.spatial_x) : -1;
    const int y = row.spatial_y ? kernel_.einsum.dim(*row.spatial_y) : -1;
    if (binding && rules_.spatial_row != nullptr &&
        ((x >= 0 && rules_.spatial_x >= 0 && x != rules_.spatial_x) ||
         (y >= 0 && rules_.spatial_y >= 0 && y != rules_.spatial_y))) {
      return contradiction(row, *rules_.spatial_row, "two dimensions along one axis of the array");
    }
    if (x >= 0) rules_.spatial_x = x;
    if (y >= 0) rules_.spatial_y = y;
    if (binding) rules_.spatial_row = &row;
    return Done{};
  }

  Status keeps(const ConstraintRow& row, std::size_t level) {
    PL_TRY(const std::uint32_t keep, operand_mask(row, row.keep));
    PL_TRY(const std::uint32_t bypass, operand_mask(row, row.bypass));
    const ingest::AcceleratorLevel& hardware = accelerator_.levels[level];
    // A row that could not be kept would be a restriction in name only.
    if (bypass != 0 && (level == 0 || (hardware.array && (bypass & held_operands(hardware)) != 0))) {
      return make_error("does-not-fit", row.span,
                        fmt::format("nothing can bypass '{}' of '{}': {}", hardware.name, accelerator_.name,
                                    level == 0 ? "everything starts there" : "the dataflow says what the array holds"));
    }
    if ((keep & ~held_operands(hardware)) != 0) {
      return make_error("does-not-fit", row.span,
                        fmt::format("the level '{}' of '{}' cannot hold what the row {} keeps there", hardware.name,
                                    accelerator_.name, row.text));
    }
    for (std::size_t o = 0; o < 3; ++o) {
      const std::uint32_t bit = 1U << o;
      if (((keep | bypass) & bit) == 0) continue;
      const bool clash = ((rules_.keep[level] | keep) & (rules_.bypass[level] | bypass) & bit) != 0;
      if (clash && (keep & bypass & bit) != 0) {
        return make_error("does-not-fit", row.span,
                          fmt::format("the row keeps and bypasses {} at the level '{}'",
                                      kernel_.einsum.operands[o].name, hardware.name));
      }
      if (clash) {
        return contradiction(
            row, *rules_.holding_row[level][o],
            fmt::format("{} kept and passed by at the level '{}'", kernel_.einsum.operands[o].name, hardware.name));
      }
      rules_.holding_row[level][o] = &row;
    }
    rules_.keep[level] |= keep;
    rules_.bypass[level] |= bypass;
    return Done{};
  }

  const lower::Kernel& kernel_;
  const ingest::Accelerator& accelerator_;
  Rules rules_;
};

}  // namespace

Result<Rules> resolve_rules(const lower::Kernel& kernel, const ingest::Dataflow& dataflow,
                            const std::vector<ConstraintRow>& rows, const ingest::Accelerator& accelerator) {
  Resolver resolver(kernel, accelerator);
  for (const ConstraintRow& row : dataflow.constraints) {
    if (lower::matches(row, kernel.layer_class, kernel.name)) PL_TRY_STATUS(resolver.apply(row, false));
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (((kernel.constraint_rows >> r) & 1U) != 0) PL_TRY_STATUS(resolver.apply(rows[r], true));
  }
  return resolver.take();
}

std::vector<FactorBound> factor_bounds(const Rules& rules, const lower::Einsum& einsum, std::size_t levels) {
  std::vector<FactorBound> bounds;
  for (std::size_t l = 0; l < levels; ++l) {
    for (int d = 0; d < einsum.rank(); ++d) {
      const FactorLimit& limit = rules.limits[l][static_cast<std::size_t>(d)];
      if (limit.min_row == nullptr && limit.max_row == nullptr) continue;
      const bool array = l + 1 == levels;
      bounds.push_back({static_cast<int>(array ? l - 1 : l), d, array, limit.min, limit.max});
    }
  }
  return bounds;
}

}  // namespace plumbline::schedule
