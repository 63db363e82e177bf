#include "ingest/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/sha256.h"
#include "ingest/files.h"
#include "ingest/read_model.h"

namespace plumbline::ingest {
namespace {

// An ONNX file carries its weights; 2 GiB is the wire format's own limit.
constexpr std::uint64_t kMaxOnnxBytes = 2ULL << 30U;

bool is_path(const std::string& name) { return name.find('/') != std::string::npos || name.ends_with(".yaml"); }

// What an entry of a catalogue folder is called.
struct FolderName {
  std::string_view folder;
  std::string_view entry;
};
constexpr FolderName kFolders[] = {
    {"accelerators", "accelerator"}, {"dataflows", "dataflow"}, {"energy", "energy table"},
    {"fixes", "set of fixes"},       {"gates", "gate"},         {"models", "model"},
    {"policies", "precision policy"}};

std::string_view entry_word(const std::string& folder) {
  for (const auto& row : kFolders) {
    if (row.folder == folder) return row.entry;
  }
  return folder;
}

}  // namespace

Library::Library(std::string catalog_root) : root_(std::move(catalog_root)) {}

Result<std::string> Library::remember(const std::string& path, const std::string& shown, std::uint64_t max_bytes,
                                      const Span& at) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = files_.find(shown); it != files_.end()) return it->second;
  }
  PL_TRY(std::string bytes, read_file(path, max_bytes, at));
  const std::lock_guard lock(mutex_);
  files_[shown] = bytes;
  return bytes;
}

Result<Value> Library::read_document(const std::string& path, const Span& at) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = documents_.find(path); it != documents_.end()) return it->second;
  }
  PL_TRY(std::string text, remember(path, path, kMaxYamlBytes, at));
  PL_TRY(Value value, parse_yaml(std::make_shared<const Source>(Source{path, std::move(text)})));
  const std::lock_guard lock(mutex_);
  documents_[path] = value;
  return value;
}

std::vector<std::string> Library::names(const std::string& kind_folder) const {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(root_ + "/" + kind_folder, error)) {
    if (item.path().extension() == ".yaml") out.push_back(item.path().stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<Value> Library::entry(const std::string& kind_folder, const std::string& name, const Span& at) {
  if (is_path(name)) {
    return read_document(at.source ? beside(at.source->name, name) : name, at);
  }
  const auto known = names(kind_folder);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string folder = fmt::format("{}/{}", root_, kind_folder);
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error)) {
      return make_error("missing-file", at,
                        fmt::format("the {} '{}' is looked for in the catalogue, but there is no folder '{}'",
                                    entry_word(kind_folder), name, folder),
                        "set PLUMBLINE_CATALOG to the folder that holds accelerators/, models/, policies/ …");
    }
    return make_error(
        "unknown-name", at, fmt::format("no {} '{}' in the catalogue", entry_word(kind_folder), name),
        known.empty() ? fmt::format("the folder '{}' holds no .yaml file", folder) : suggest(name, known));
  }
  const std::string shown = fmt::format("catalog/{}/{}.yaml", kind_folder, name);
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = documents_.find(shown); it != documents_.end()) return it->second;
  }
  PL_TRY(std::string text, remember(fmt::format("{}/{}/{}.yaml", root_, kind_folder, name), shown, kMaxYamlBytes, at));
  PL_TRY(Value value, parse_yaml(std::make_shared<const Source>(Source{shown, std::move(text)})));
  const std::lock_guard lock(mutex_);
  documents_[shown] = value;
  return value;
}

Status Library::inline_name(Value& document, const std::string& key, const std::string& folder) {
  Value* value = document.find(key);
  if (value == nullptr) return Done{};
  if (value->kind == ValueKind::scalar) {
    PL_TRY(*value, entry(folder, value->text, value->span));
  }
  // {base: ws-256, …}: the named entry with the other keys merged over it.
  for (int depth = 0; value->kind == ValueKind::map && value->find("base") != nullptr; ++depth) {
    const Value base_name = *value->find("base");
    if (base_name.kind != ValueKind::scalar || depth > 8) {
      return make_error("bad-value", base_name.span, "base must be a name of the catalogue or a path, at most 8 deep");
    }
    PL_TRY(Value base, entry(folder, base_name.text, base_name.span));
    Value over = *value;
    std::erase_if(over.entries, [](const Entry& e) { return e.key == "base"; });
    *value = merge_patch(base, over);
    // A named energy table inside: a map over its name changes entries of that table, a removal among them too.
    const Value* below = over.find("energy");
    const Value* named = base.find("energy");
    if (folder != "accelerators" || below == nullptr || below->kind != ValueKind::map) continue;
    Value energy = *below;
    const bool over_a_name = named != nullptr && named->kind == ValueKind::scalar;
    if (energy.find("base") == nullptr && over_a_name) energy.entries.push_back({"base", named->span, *named});
    // Removals stay written down until the table they remove from stands there.
    if (named == nullptr || over_a_name || energy.find("base") != nullptr) *value->find("energy") = std::move(energy);
  }
  return Done{};
}

Status Library::inline_accelerator(Value& document) {
  PL_TRY_STATUS(inline_name(document, "accelerator", "accelerators"));
  Value* accelerator = document.find("accelerator");
  if (accelerator == nullptr || accelerator->kind != ValueKind::map) return Done{};
  return inline_name(*accelerator, "energy", "energy");
}

Status Library::inline_models(Value& document) {
  Value* models = document.find("models");
  if (models == nullptr || models->kind != ValueKind::list) return Done{};
  for (auto& model : models->items) {
    if (model.kind != ValueKind::map) continue;
    Value* name = model.find("catalog");
    if (name == nullptr || name->kind != ValueKind::scalar) continue;
    PL_TRY(Value graph_document, entry("models", name->text, name->span));
    Entry* slot = nullptr;
    for (auto& e : model.entries) {
      if (e.key == "catalog") slot = &e;
    }
    slot->key = "document";
    slot->value = std::move(graph_document);
  }
  return Done{};
}

Status Library::inline_dataflows(Value& document) {
  Value all = make_map({});
  for (const auto& name : names("dataflows")) {
    PL_TRY(Value flow, entry("dataflows", name, {}));
    all.entries.push_back({name, flow.span, std::move(flow)});
  }
  // A scenario's own dataflows stand beside the catalogue's and win by name.
  if (Value* own = document.find("dataflows"); own != nullptr && own->kind == ValueKind::map) {
    for (auto& item : own->entries) {
      if (item.value.kind != ValueKind::scalar) continue;
      PL_TRY(item.value, entry("dataflows", item.value.text, item.value.span));
    }
    *own = merge_patch(all, *own);
  } else if (own == nullptr) {
    document.entries.push_back({"dataflows", {}, std::move(all)});
  }
  return Done{};
}

Result<Value> Library::resolve(const Value& document) {
  Value out = document;
  PL_TRY_STATUS(inline_accelerator(out));
  PL_TRY_STATUS(inline_models(out));
  PL_TRY_STATUS(inline_dataflows(out));
  PL_TRY_STATUS(inline_name(out, "precision", "policies"));
  if (out.find("gate") == nullptr) out.entries.push_back({"gate", out.span, make_scalar("default")});
  PL_TRY_STATUS(inline_name(out, "gate", "gates"));
  if (out.find("fixes") == nullptr) out.entries.push_back({"fixes", out.span, make_scalar("default")});
  PL_TRY_STATUS(inline_name(out, "fixes", "fixes"));
  return out;
}

Result<std::shared_ptr<const Graph>> Library::graph(const Value& model) {
  if (const Value* document = model.find("document")) {
    const std::string key = canonical_text(*document);
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = graphs_.find(key); it != graphs_.end()) return it->second;
    }
    PL_TRY(Graph graph, read_model_yaml(*document));
    auto shared = std::make_shared<const Graph>(std::move(graph));
    const std::lock_guard lock(mutex_);
    return graphs_[key] = shared;
  }
  const Value* path = model.find("onnx");
  if (path == nullptr || path->kind != ValueKind::scalar) {
    return make_error("missing-key", model.span, "a model needs 'catalog' or 'onnx'");
  }
  const std::string file = model_path(*path);
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = graphs_.find(file); it != graphs_.end()) return it->second;
  }
  PL_TRY(std::string bytes, remember(file, file, kMaxOnnxBytes, path->span));
  PL_TRY(Graph graph, read_onnx(file, bytes));
  auto shared = std::make_shared<const Graph>(std::move(graph));
  const std::lock_guard lock(mutex_);
  return graphs_[file] = shared;
}

std::string model_path(const Value& onnx) {
  return onnx.span.source ? beside(onnx.span.source->name, onnx.text) : onnx.text;
}

std::string Library::digest(const std::string& shown_path) const {
  const std::lock_guard lock(mutex_);
  if (const auto it = digests_.find(shown_path); it != digests_.end()) return it->second;
  const auto it = files_.find(shown_path);
  return it == files_.end() ? std::string() : digests_[shown_path] = sha256(it->second);
}

std::vector<InputFile> Library::inputs() const {
  std::vector<std::string> paths;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, bytes] : files_) paths.push_back(path);
  }
  std::vector<InputFile> out;
  for (auto& path : paths) out.push_back({path, digest(path)});
  return out;
}

std::string Library::bytes_of(const std::string& shown_path) const {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(shown_path);
  return it == files_.end() ? std::string() : it->second;
}

}  // namespace plumbline::ingest
