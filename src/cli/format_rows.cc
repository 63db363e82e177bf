#include "cli/format_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "ingest/document.h"
#include "ingest/files.h"

namespace plumbline::cli {
namespace {

using numerics::Format;
using numerics::NanEncoding;

constexpr NanEncoding kEncodings[] = {NanEncoding::none, NanEncoding::ieee, NanEncoding::all_ones,
                                      NanEncoding::negative_zero};

std::optional<NanEncoding> read_encoding(const ingest::Value& value, Diagnostics& errors) {
  std::vector<std::string> names;
  for (const NanEncoding encoding : kEncodings) names.emplace_back(to_string(encoding));
  const auto name = read_choice(value, names, errors);
  if (!name) return std::nullopt;
  return kEncodings[std::find(names.begin(), names.end(), *name) - names.begin()];
}

/// Names read so far, rows in error included, and where.
struct NamedRow {
  std::string name;
  Span span;
};

/// Errors: a name that is built in or that an earlier row has.
void check_name(const std::string& name, const Span& span, std::vector<NamedRow>& names, Diagnostics& errors) {
  if (numerics::find_format(name).ok()) {
    errors.push_back(
        make_error("duplicate-id", span, fmt::format("a format '{}' is built in", name), "give the row another name"));
    return;
  }
  const auto first = std::find_if(names.begin(), names.end(), [&](const NamedRow& row) { return row.name == name; });
  if (first == names.end()) {
    names.push_back({name, span});
    return;
  }
  errors.push_back(make_error("duplicate-id", span, fmt::format("two formats are named '{}'", name),
                              fmt::format("the first is in line {}", first->span.line)));
}

/// One row; whatever is wrong is reported into `errors`.
void read_row(const ingest::Value& value, std::vector<NamedRow>& names, std::vector<Format>& formats,
              Diagnostics& errors) {
  const std::size_t before = errors.size();
  ingest::MapReader reader(value, "a format row", errors);
  numerics::FormatRow row;
  const ingest::Value* name = reader.require("name");
  if (name != nullptr) {
    row.name = read_text(*name, errors).value_or("");
    check_name(row.name, name->span, names, errors);
  }
  const auto integer = [&](const ingest::Value* number) {
    return number == nullptr ? 0 : static_cast<int>(read_integer(*number, -1000, 1000, errors).value_or(0));
  };
  row.exponent_bits = integer(reader.require("exponent"));
  row.fraction_bits = integer(reader.require("fraction"));
  if (const ingest::Value* bias = reader.find("bias")) row.bias = integer(bias);
  if (const ingest::Value* flag = reader.require("infinity"))
    row.has_infinity = read_flag(*flag, errors).value_or(false);
  if (const ingest::Value* nan = reader.require("nan"))
    row.nan = read_encoding(*nan, errors).value_or(NanEncoding::none);
  if (const ingest::Value* source = reader.find("source")) read_text(*source, errors);
  reader.finish();
  if (errors.size() != before) return;
  auto made = numerics::make_format(row, value.span);
  if (made.ok()) {
    formats.push_back(*made);
  } else {
    errors.insert(errors.end(), made.errors().begin(), made.errors().end());
  }
}

}  // namespace

Result<std::vector<Format>> read_format_rows(const std::string& path) {
  PL_TRY(const ingest::Value document, ingest::read_yaml_file(path, path));
  Diagnostics errors;
  std::vector<Format> formats;
  std::vector<NamedRow> names;
  ingest::MapReader reader(document, "the formats file", errors);
  if (const ingest::Value* version = reader.require("plumbline")) read_integer(*version, 1, 1, errors);
  const ingest::Value* rows = reader.require("formats");
  if (rows != nullptr && expect_list(*rows, "formats", errors)) {
    for (const ingest::Value& row : rows->items) read_row(row, names, formats, errors);
  }
  reader.finish();
  if (!errors.empty()) return errors;
  return formats;
}

Result<Format> find_format_in(const std::vector<Format>& rows, std::string_view name) {
  for (const Format& format : rows) {
    if (format.name == name) return format;
  }
  return numerics::find_format(name);
}

}  // namespace plumbline::cli
