#include "cli/map_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include "lower/kernel.h"

namespace plumbline::cli {
namespace {

using ingest::Value;

/// Largest dimension: beyond it products overflow long before anything runs.
constexpr std::int64_t kMostSize = std::int64_t{1} << 40;

Result<std::int64_t> read_size(const std::string& text, const std::string& what, const Span& span = {}) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > kMostSize) {
    return make_error("bad-number", span, fmt::format("'{}' is no size for {}", text, what),
                      fmt::format("whole numbers from 1 to 2^40"));
  }
  return value;
}

/// "2" or "2x1": rows, then columns.
Result<std::array<std::int64_t, 2>> read_pair(const std::string& text, const std::string& what) {
  const std::size_t cross = text.find('x');
  PL_TRY(const std::int64_t rows, read_size(text.substr(0, cross), what));
  if (cross == std::string::npos) return std::array<std::int64_t, 2>{rows, rows};
  PL_TRY(const std::int64_t columns, read_size(text.substr(cross + 1), what));
  return std::array<std::int64_t, 2>{rows, columns};
}

using Fields = std::map<std::string, std::string>;

Result<Fields> read_fields(std::istringstream& words, const std::vector<std::string>& known) {
  Fields fields;
  std::string word;
  while (words >> word) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos)
      return make_error("bad-value", Span{}, fmt::format("'{}' in a kernel is no KEY=VALUE", word));
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return make_error("unknown-key", Span{}, fmt::format("a kernel has no '{}'", key), suggest(key, known));
    }
    if (!fields.emplace(key, word.substr(equals + 1)).second)
      return make_error("duplicate-key", Span{}, fmt::format("'{}' stands twice in a kernel", key));
  }
  return fields;
}

Result<lower::Einsum> make_gemm(const Fields& fields) {
  std::array<std::int64_t, 3> sizes{};
  const char* names[] = {"M", "N", "K"};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto at = fields.find(names[i]);
    if (at == fields.end())
      return make_error("missing-key", Span{}, fmt::format("a gemm needs '{}'", names[i]),
                        "M outputs rows, N columns, K summed");
    PL_TRY(sizes[i], read_size(at->second, names[i]));
  }
  return lower::gemm_einsum(sizes[0], sizes[1], sizes[2]);
}

Result<lower::Einsum> make_conv(const Fields& fields, bool depthwise) {
  lower::ConvShape shape;
  const std::pair<const char*, std::int64_t*> sizes[] = {{"N", &shape.batch}, {"G", &shape.groups}, {"K", &shape.k},
                                                         {"C", &shape.c},     {"P", &shape.p},      {"Q", &shape.q},
                                                         {"R", &shape.r},     {"S", &shape.s}};
  for (const auto& [name, size] : sizes) {
    const auto at = fields.find(name);
    if (at == fields.end()) continue;
    if (depthwise && (name[0] == 'G' || name[0] == 'K'))
      return make_error("bad-value", Span{}, fmt::format("a depthwise kernel has no '{}'", name),
                        "C counts its channels");
    PL_TRY(*size, read_size(at->second, name));
  }
  for (const auto& [name, pair] : {std::pair{"stride", &shape.stride}, std::pair{"dilation", &shape.dilation}}) {
    const auto at = fields.find(name);
    if (at == fields.end()) continue;
    PL_TRY(*pair, read_pair(at->second, name));
  }
  return depthwise ? lower::depthwise_einsum(shape) : lower::conv_einsum(shape);
}

}  // namespace

Result<KernelText> read_kernel(const std::string& text) {
  std::istringstream words(text);
  std::string operation;
  words >> operation;
  const std::vector<std::string> operations{"gemm", "conv", "depthwise"};
  if (std::find(operations.begin(), operations.end(), operation) == operations.end()) {
    return make_error("unknown-name", Span{}, fmt::format("no kernel is called '{}'", operation),
                      suggest(operation, operations));
  }
  std::vector<std::string> known{"in", "acc", "out"};
  for (const char* name : {"N", "K"}) known.emplace_back(name);
  if (operation == "gemm") {
    known.emplace_back("M");
  } else {
    for (const char* name : {"G", "C", "P", "Q", "R", "S", "stride", "dilation"}) known.emplace_back(name);
  }
  PL_TRY(const Fields fields, read_fields(words, known));
  KernelText kernel;
  kernel.operation = operation;
  if (operation == "gemm") {
    PL_TRY(kernel.einsum, make_gemm(fields));
  } else {
    PL_TRY(kernel.einsum, make_conv(fields, operation == "depthwise"));
  }
  if (fields.contains("in")) kernel.inputs = fields.at("in");
  if (fields.contains("acc")) kernel.accumulate = fields.at("acc");
  PL_TRY(const std::int64_t in_bits, lower::format_bits(kernel.inputs));
  PL_TRY(const std::int64_t sum_bits, lower::format_bits(kernel.accumulate));
  PL_TRY(const std::int64_t out_bits, lower::format_bits(fields.contains("out") ? fields.at("out") : kernel.inputs));
  for (lower::Operand& operand : kernel.einsum.operands) operand.bits = in_bits;
  kernel.einsum.operands.back().bits = out_bits;
  kernel.einsum.operands.back().partial_bits = sum_bits;
  return kernel;
}

namespace {

/// "N 128 x"
std::optional<schedule::Loop> read_loop(const Value& value, const lower::Einsum& einsum, Diagnostics& errors) {
  const auto text = ingest::read_text(value, errors);
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  std::string dim, trips, axis, rest;
  words >> dim >> trips >> axis >> rest;
  schedule::Loop loop;
  loop.dim = einsum.dim(dim);
  if (loop.dim < 0) {
    errors.push_back(make_error("unknown-name", value.span, fmt::format("the kernel has no dimension '{}'", dim),
                                suggest(dim, einsum.dim_names)));
    return std::nullopt;
  }
  const auto bound = read_size(trips, fmt::format("the trips over {}", dim), value.span);
  if (!bound.ok()) {
    errors.insert(errors.end(), bound.errors().begin(), bound.errors().end());
    return std::nullopt;
  }
  loop.bound = *bound;
  if (!rest.empty() || (!axis.empty() && axis != "x" && axis != "y")) {
    errors.push_back(make_error("bad-value", value.span, fmt::format("'{}' is no loop", *text),
                                "a dimension, its trips and, over the array, x or y"));
    return std::nullopt;
  }
  if (!axis.empty()) loop.kind = axis == "x" ? schedule::LoopKind::spatial_x : schedule::LoopKind::spatial_y;
  return loop;
}

void read_level(const Value& row, const lower::Einsum& einsum, const schedule::Hierarchy& hierarchy,
                schedule::Mapping& mapping, Diagnostics& errors) {
  ingest::MapReader reader(row, "a level of the mapping", errors);
  std::vector<std::string> names;
  for (const schedule::StorageLevel& level : hierarchy.levels) names.push_back(level.name);
  std::vector<std::string> operands;
  for (const lower::Operand& operand : einsum.operands) operands.push_back(operand.name);
  const Value* level = reader.require("level");
  const Value* keep = reader.find("keep");
  const Value* loops = reader.find("loops");
  reader.finish();
  if (level == nullptr) return;
  const auto name = ingest::read_choice(*level, names, errors);
  if (!name) return;
  schedule::LevelNest& nest =
      mapping.levels[static_cast<std::size_t>(std::find(names.begin(), names.end(), *name) - names.begin())];
  if (!nest.loops.empty() || nest.keeps != 0) {
    errors.push_back(make_error("duplicate-id", level->span, fmt::format("level '{}' stands twice", *name)));
    return;
  }
  if (keep != nullptr && ingest::expect_list(*keep, "keep", errors)) {
    for (const Value& item : keep->items) {
      const auto operand = ingest::read_choice(item, operands, errors);
      if (operand) nest.keeps |= 1U << (std::find(operands.begin(), operands.end(), *operand) - operands.begin());
    }
  }
  if (loops != nullptr && ingest::expect_list(*loops, "loops", errors)) {
    for (const Value& item : loops->items) {
      if (const auto loop = read_loop(item, einsum, errors)) nest.loops.push_back(*loop);
    }
  }
}

}  // namespace

Result<schedule::Mapping> read_mapping(const Value& document, const lower::Einsum& einsum,
                                       const schedule::Hierarchy& hierarchy) {
  Diagnostics errors;
  ingest::MapReader reader(document, "a mapping file", errors);
  const Value* rows = reader.require("mapping");
  reader.finish();
  schedule::Mapping mapping;
  mapping.levels.resize(hierarchy.levels.size());
  if (rows != nullptr && ingest::expect_list(*rows, "mapping", errors)) {
    for (const Value& row : rows->items) read_level(row, einsum, hierarchy, mapping, errors);
  }
  if (!errors.empty()) return errors;
  return mapping;
}

}  // namespace plumbline::cli
