#include "ingest/read_compile.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumbline::ingest {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;

std::vector<std::string> read_names(const Value& value, std::string_view what, Diagnostics& errors) {
  std::vector<std::string> out;
  if (!expect_list(value, what, errors)) return out;
  for (const auto& item : value.items) {
    if (const auto name = read_text(item, errors)) out.push_back(*name);
  }
  return out;
}

std::vector<std::int64_t> read_buckets(const Value& value, std::string_view what, Diagnostics& errors) {
  std::vector<std::int64_t> out;
  if (!expect_list(value, what, errors)) return out;
  if (value.items.empty() || value.items.size() > 64) {
    errors.push_back(make_error("bad-value", value.span, fmt::format("{} needs 1 to 64 sizes", what)));
    return out;
  }
  for (const auto& item : value.items) {
    const auto size = read_integer(item, 1, 1 << 20, errors);
    if (!size) continue;
    if (!out.empty() && *size <= out.back()) {
      errors.push_back(
          make_error("bad-value", item.span, fmt::format("{} must ascend; {} follows {}", what, *size, out.back())));
    }
    out.push_back(*size);
  }
  return out;
}

Buckets read_shapes(const Value& value, Diagnostics& errors) {
  Buckets out;
  MapReader map(value, "the shapes section", errors);
  if (const Value* v = map.require("batch")) out.batch = read_buckets(*v, "shapes.batch", errors);
  if (const Value* v = map.find("sequence")) out.sequence = read_buckets(*v, "shapes.sequence", errors);
  if (const Value* v = map.find("pad")) read_choice(*v, {"up"}, errors);
  map.finish();
  return out;
}

void read_dataflow_choice(const Value& value, CompileOptions& out, Diagnostics& errors) {
  if (value.kind != ValueKind::map) {
    out.dataflow = read_text(value, errors).value_or("auto");
    return;
  }
  for (const auto& entry : value.entries) {
    const auto name = read_text(entry.value, errors);
    if (!name) continue;
    if (entry.key == "default") {
      out.dataflow = *name;
    } else {
      out.dataflow_by_class[entry.key] = *name;
      out.dataflow_class_at[entry.key] = entry.span;
    }
  }
}

/// One objective, or a list in order of importance.
void read_objective(const Value& value, CompileOptions& out, Diagnostics& errors) {
  const std::vector<std::string> known{"edp", "energy", "latency", "off_array_weight_bytes"};
  if (value.kind != ValueKind::list) {
    out.objective = read_choice(value, known, errors).value_or("edp");
    return;
  }
  if (value.items.empty()) errors.push_back(make_error("bad-value", value.span, "a list of no objectives"));
  std::vector<std::string> names;
  for (const auto& item : value.items) {
    const auto name = read_choice(item, known, errors);
    if (!name) continue;
    if (std::find(names.begin(), names.end(), *name) != names.end())
      errors.push_back(make_error("bad-value", item.span, fmt::format("the objective '{}' stands twice", *name)));
    names.push_back(*name);
  }
  if (names.empty()) return;
  out.objective = names.front();
  out.objective_then.assign(names.begin() + 1, names.end());
}

}  // namespace

ConstraintRow read_constraint(const Value& value, Diagnostics& errors) {
  ConstraintRow row;
  row.span = value.span;
  row.text = flow_text(value);
  MapReader map(value, "a constraint row", errors);
  if (const Value* v = map.find("kernels")) row.kernels = read_text(*v, errors).value_or("*");
  if (const Value* v = map.find("operation")) row.operation = read_choice(*v, {"gemm", "conv"}, errors).value_or("");
  if (const Value* v = map.require("level")) row.level = read_text(*v, errors).value_or("");
  const Value* dim = map.find("dim");
  const Value* factor = map.find("factor");
  if (dim != nullptr) row.dim = read_text(*dim, errors);
  if (factor != nullptr) {
    MapReader limits(*factor, "factor", errors);
    if (const Value* v = limits.find("min")) row.factor_min = read_integer(*v, 1, kMaxSize, errors);
    if (const Value* v = limits.find("max")) row.factor_max = read_integer(*v, 1, kMaxSize, errors);
    limits.finish();
    if (row.factor_min && row.factor_max && *row.factor_min > *row.factor_max) {
      errors.push_back(make_error("bad-value", factor->span,
                                  fmt::format("factor min {} is above max {}", *row.factor_min, *row.factor_max)));
    }
  }
  if ((dim == nullptr) != (factor == nullptr)) {
    errors.push_back(make_error("missing-key", value.span, "a row with 'dim' needs 'factor', and the other way round"));
  }
  if (const Value* v = map.find("order")) row.order = read_names(*v, "order", errors);
  if (const Value* v = map.find("spatial")) {
    MapReader spatial(*v, "spatial", errors);
    if (const Value* x = spatial.find("x")) row.spatial_x = read_text(*x, errors);
    if (const Value* y = spatial.find("y")) row.spatial_y = read_text(*y, errors);
    spatial.finish();
  }
  if (const Value* v = map.find("keep")) row.keep = read_names(*v, "keep", errors);
  if (const Value* v = map.find("bypass")) row.bypass = read_names(*v, "bypass", errors);
  map.finish();
  if (factor == nullptr && row.order.empty() && !row.spatial_x && !row.spatial_y && row.keep.empty() &&
      row.bypass.empty()) {
    errors.push_back(make_error("missing-key", value.span, "a constraint row that restricts nothing",
                                "give it dim and factor, order, spatial, keep or bypass"));
  }
  return row;
}

Dataflow read_dataflow(const Value& value, Diagnostics& errors) {
  Dataflow out;
  MapReader map(value, "the dataflow", errors);
  map.find("plumbline");
  map.find("kind");
  map.find("source");
  if (const Value* v = map.require("name")) out.name = read_text(*v, errors).value_or("");
  if (const Value* v = map.find("title")) out.title = read_text(*v, errors).value_or("");
  if (const Value* v = map.require("stationary"))
    out.stationary = read_choice(*v, {"weights", "inputs", "outputs"}, errors).value_or("weights");
  if (const Value* v = map.require("constraints"); v != nullptr && expect_list(*v, "constraints", errors)) {
    for (const auto& row : v->items) out.constraints.push_back(read_constraint(row, errors));
  }
  map.finish();
  return out;
}

CompileOptions read_compile(const Value& value, Diagnostics& errors) {
  CompileOptions out;
  MapReader map(value, "the compile section", errors);
  if (const Value* v = map.require("shapes")) out.shapes = read_shapes(*v, errors);
  if (const Value* v = map.find("dataflow")) read_dataflow_choice(*v, out, errors);
  if (const Value* v = map.find("objective")) read_objective(*v, out, errors);
  if (const Value* v = map.find("search"))
    out.search = read_choice(*v, {"simple", "certified"}, errors).value_or("simple");
  if (const Value* v = map.find("constraints"); v != nullptr && expect_list(*v, "constraints", errors)) {
    for (const auto& row : v->items) out.constraints.push_back(read_constraint(row, errors));
  }
  if (const Value* v = map.find("fusion"); v != nullptr && expect_list(*v, "fusion", errors)) {
    for (const auto& item : v->items) {
      const auto name = read_choice(item, {"epilogue", "attention", "in_place", "chains"}, errors);
      out.fuse_epilogue |= name && *name == "epilogue";
      out.fuse_attention |= name && *name == "attention";
      out.fuse_in_place |= name && *name == "in_place";
      out.fuse_chains |= name && *name == "chains";
    }
  }
  if (const Value* v = map.find("residency"))
    out.residency = read_choice(*v, {"auto", "none"}, errors).value_or("auto");
  if (const Value* v = map.find("sparsity")) {
    out.sparsity = read_choice(*v, {"off", "2:4"}, errors).value_or("off");
    if (out.sparsity != "off") {
      errors.push_back(
          make_error("unsupported", v->span, "sparse execution is not modelled yet", "write sparsity: off"));
    }
  }
  map.finish();
  return out;
}

}  // namespace plumbline::ingest
