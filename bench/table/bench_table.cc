// Runs the benchmark binaries, prints each key beside its floor from keys.yaml, and writes the flat JSON.
// Exit: 0 when every key was measured, above its floor or not (the table says which); 2 when a binary failed, a key is
// not listed or a file cannot be read or written.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ingest/files.h"
#include "ingest/units.h"

namespace {

using namespace plumbline;

struct Key {
  std::string name;
  std::string unit;
  bool lower_is_better = false;
  std::optional<double> floor;  ///< absent: measured for comparison, not judged
  std::string reference;
};

struct Arguments {
  std::string keys;
  std::string folder;
  std::string json;
  std::string only;
};

Result<std::vector<Key>> read_keys(const std::string& path) {
  PL_TRY(const ingest::Value document, ingest::read_yaml_file(path, path, {}));
  Diagnostics errors;
  std::vector<Key> keys;
  for (const auto& entry : document.entries) {
    Key key;
    key.name = entry.key;
    ingest::MapReader map(entry.value, fmt::format("the key '{}'", entry.key), errors);
    if (const auto* v = map.require("unit")) key.unit = ingest::read_text(*v, errors).value_or("");
    if (const auto* v = map.require("better")) {
      key.lower_is_better = ingest::read_choice(*v, {"lower", "higher"}, errors).value_or("higher") == "lower";
    }
    if (const auto* v = map.find("floor")) key.floor = ingest::read_number(*v, 0, 1e12, errors);
    if (const auto* v = map.require("reference")) key.reference = ingest::read_text(*v, errors).value_or("");
    map.finish();
    keys.push_back(std::move(key));
  }
  if (!errors.empty()) return errors;
  return keys;
}

// The standard output of `command`, or nothing when it failed.
std::optional<std::string> output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  char block[4096];
  for (std::size_t n = 0; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, n);
  if (pclose(pipe) != 0) return std::nullopt;
  return text;
}

// Rows of every *_bench in the folder, or nothing when one failed.
std::optional<std::map<std::string, double>> measure(const Arguments& arguments) {
  std::vector<std::string> binaries;
  for (const auto& item : std::filesystem::directory_iterator(arguments.folder)) {
    if (item.path().filename().string().ends_with("_bench")) binaries.push_back(item.path().string());
  }
  std::sort(binaries.begin(), binaries.end());
  std::map<std::string, double> rows;
  for (const auto& binary : binaries) {
    fmt::print(stderr, "running {}\n", std::filesystem::path(binary).filename().string());
    const auto text = output_of(fmt::format("'{}' '{}'", binary, arguments.only));
    const auto json = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
    if (!json.is_object()) {
      fmt::print(stderr, "bench_table: {} failed or printed no JSON object\n", binary);
      return std::nullopt;
    }
    for (const auto& [key, value] : json.items()) {
      if (value.is_number()) rows[key] = value.get<double>();
    }
  }
  return rows;
}

std::string verdict(const Key& key, double value) {
  if (!key.floor) return "-";
  return (key.lower_is_better ? value <= *key.floor : value >= *key.floor) ? "ok" : "below";
}

// Number of judged rows that miss their floor.
int print_table(const std::vector<Key>& keys, const std::map<std::string, double>& rows, const std::string& only) {
  int below = 0;
  fmt::print("{:<42} {:>12} {:>12}  {:<10} {}\n", "key", "value", "floor", "unit", "");
  for (const auto& key : keys) {
    if (key.name.find(only) == std::string::npos) continue;
    const auto row = rows.find(key.name);
    const std::string bound =
        key.floor ? fmt::format("{} {:g}", key.lower_is_better ? "<=" : ">=", *key.floor) : std::string("-");
    const std::string value = row == rows.end() ? "-" : fmt::format("{:.4g}", row->second);
    const std::string word = row == rows.end() ? "not measured" : verdict(key, row->second);
    below += word == "below" ? 1 : 0;
    fmt::print("{:<42} {:>12} {:>12}  {:<10} {}\n", key.name, value, bound, key.unit, word);
  }
  return below;
}

std::optional<Arguments> read_arguments(int argc, char** argv) {
  if (argc < 3) return std::nullopt;
  Arguments out{argv[1], argv[2], {}, {}};
  for (int i = 3; i < argc; ++i) {
    const std::string flag = argv[i];
    if ((flag != "--json" && flag != "--only") || i + 1 >= argc) return std::nullopt;
    (flag == "--json" ? out.json : out.only) = argv[++i];
  }
  // The filter reaches a shell; keys hold nothing else anyway.
  if (out.only.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos) return std::nullopt;
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = read_arguments(argc, argv);
  if (!arguments) {
    fmt::print(stderr, "usage: bench_table KEYS FOLDER [--json FILE] [--only TEXT]\n");
    return 2;
  }
  const auto keys = read_keys(arguments->keys);
  if (!keys.ok()) {
    fmt::print(stderr, "{}", render(keys.errors()));
    return 2;
  }
  const auto rows = measure(*arguments);
  if (!rows) return 2;
  const int below = print_table(*keys, *rows, arguments->only);
  int unlisted = 0;
  for (const auto& [name, value] : *rows) {
    if (std::any_of(keys->begin(), keys->end(), [&](const Key& k) { return k.name == name; })) continue;
    fmt::print(stderr, "bench_table: '{}' = {:.4g} is not listed in {}\n", name, value, arguments->keys);
    ++unlisted;
  }
  if (!arguments->json.empty()) {
    std::ofstream file(arguments->json);
    file << nlohmann::json(*rows).dump(2) << '\n';
    if (!file.flush()) {
      fmt::print(stderr, "bench_table: cannot write {}\n", arguments->json);
      return 2;
    }
  }
  fmt::print("{} rows measured, {} below their floor\n", rows->size(), below);
  return unlisted == 0 ? 0 : 2;
}
