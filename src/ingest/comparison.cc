#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "ingest/files.h"
#include "ingest/library.h"
#include "ingest/scenario.h"

namespace plumbline::ingest {

namespace {

// Keys whose inside is free (their own readers check it): a patch may go below them.
bool open_below(std::string_view key) {
  return key == "accelerator" || key == "dataflows" || key == "compile.dataflow" || key == "precision";
}

const PatchableKey* patchable(std::string_view path) {
  for (const auto& key : patchable_keys()) {
    if (path == key.path) return &key;
    if (open_below(key.path) && path.starts_with(key.path) && path.size() > key.path.size() &&
        path[key.path.size()] == '.')
      return &key;
  }
  return nullptr;
}

std::vector<std::string> patchable_names() {
  std::vector<std::string> names;
  for (const auto& key : patchable_keys()) names.emplace_back(key.path);
  return names;
}

bool overlap(const std::string& a, const std::string& b) {
  const auto inside = [](const std::string& outer, const std::string& inner) {
    return inner == outer || (inner.starts_with(outer) && inner[outer.size()] == '.');
  };
  return inside(a, b) || inside(b, a);
}

void check_target(const PatchLeaf& leaf, Diagnostics& errors) {
  constexpr const char* kFixed[] = {"traffic", "targets", "gate", "metric", "name", "owners", "plumbline"};
  for (const char* fixed : kFixed) {
    if (leaf.path == fixed || leaf.path.starts_with(std::string(fixed) + ".")) {
      errors.push_back(make_error("patch-target", leaf.span, fmt::format("a change may not patch '{}'", leaf.path),
                                  "traffic, targets, metric and gate are what both sides are judged by"));
      return;
    }
  }
  if (patchable(leaf.path) == nullptr) {
    errors.push_back(make_error("patch-target", leaf.span,
                                fmt::format("the patch names '{}', a key that no scenario has", leaf.path),
                                suggest(leaf.path, patchable_names())));
  }
}

std::optional<Stage> stage_of(const std::vector<PatchLeaf>& leaves, const Span& at, Diagnostics& errors) {
  std::optional<Stage> stage;
  for (const auto& leaf : leaves) {
    const PatchableKey* key = patchable(leaf.path);
    if (key == nullptr) return std::nullopt;
    if (stage && *stage != key->stage) {
      errors.push_back(
          make_error("bad-value", at,
                     fmt::format("one change spans the stages {} and {}", stage_name(*stage), stage_name(key->stage)),
                     "split it: each change belongs to one stage"));
      return std::nullopt;
    }
    stage = key->stage;
  }
  return stage;
}

Change read_change(const Value& item, Diagnostics& errors) {
  Change change;
  change.span = item.span;
  MapReader map(item, "a change", errors);
  if (const Value* v = map.require("id")) {
    change.id = read_text(*v, errors).value_or("");
    change.span = v->span;
  }
  if (const Value* v = map.find("owner")) change.owner = read_text(*v, errors).value_or("");
  if (const Value* v = map.find("reason")) change.reason = read_text(*v, errors).value_or("");
  const Value* patch = map.require("patch");
  map.finish();
  if (patch == nullptr) return change;
  if (patch->kind != ValueKind::map || patch->entries.empty()) {
    errors.push_back(make_error("wrong-type", patch->span, "patch must be a map of the keys it changes"));
    return change;
  }
  change.patch = *patch;
  const auto leaves = patch_leaves(change.patch);
  constexpr std::size_t kMaxLeaves = 1000;
  if (leaves.size() > kMaxLeaves) {
    errors.push_back(make_error("too-large", patch->span,
                                fmt::format("one change sets {} keys; the limit is {}", leaves.size(), kMaxLeaves)));
    return change;
  }
  for (const auto& leaf : leaves) check_target(leaf, errors);
  if (const auto stage = stage_of(leaves, patch->span, errors)) change.stage = *stage;
  return change;
}

void check_changes(const std::vector<Change>& changes, Diagnostics& errors) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (changes[i].id == changes[j].id) {
        errors.push_back(make_error("duplicate-id", changes[i].span,
                                    fmt::format("the change id '{}' is used twice", changes[i].id),
                                    fmt::format("it was first used at line {}", changes[j].span.line)));
      }
      for (const auto& a : patch_leaves(changes[i].patch)) {
        for (const auto& b : patch_leaves(changes[j].patch)) {
          if (!overlap(a.path, b.path)) continue;
          errors.push_back(
              make_error("bad-value", a.span,
                         fmt::format("the changes '{}' and '{}' both patch '{}'", changes[j].id, changes[i].id, a.path),
                         "each key belongs to one change, or attribution has no meaning"));
        }
      }
    }
  }
}

// Models of a pack's document are named from where its baseline lay (the manifest says where); here from the pack.
Status locate_models(const std::filesystem::path& pack, Value& document, Library& library) {
  Value* models = document.find("models");
  if (models == nullptr || models->kind != ValueKind::list) return Done{};
  for (auto& model : models->items) {
    Value* onnx = model.find("onnx");
    if (onnx == nullptr || std::filesystem::path(onnx->text).is_absolute()) continue;
    PL_TRY(const Value manifest, library.read_document((pack / "manifest.json").lexically_normal().string()));
    const Value* from = manifest.at_path("baseline.path");
    if (from == nullptr || from->kind != ValueKind::scalar) {
      return make_error("unknown-document", manifest.span, "the manifest does not say where the baseline lay");
    }
    const std::filesystem::path origin(from->text);
    const auto folder = std::filesystem::is_directory(origin) ? origin : origin.parent_path();
    const auto file = std::filesystem::absolute(folder / onnx->text).lexically_normal();
    onnx->text = file.lexically_relative(std::filesystem::absolute(pack).lexically_normal()).string();
  }
  return Done{};
}

// A stored pack stands for the resolved document it was made from.
Result<Value> read_side(const std::string& path, Library& library) {
  if (!std::filesystem::is_directory(path)) return library.read_document(path);
  const std::filesystem::path pack = std::filesystem::path(path) / "";
  PL_TRY(Value document, library.read_document((pack / "baseline.resolved.yaml").lexically_normal().string()));
  PL_TRY_STATUS(locate_models(pack, document, library));
  return document;
}

// A name patched by a map keeps its entry as the base: accelerator: ws-256 with {levels: …} is ws-256 with that
// changed.
void open_name(Value& document, const Value& patch, std::string_view path, const char* name_key) {
  const Value* over = patch.at_path(path);
  const Value* old = document.at_path(path);
  if (over == nullptr || old == nullptr || over->kind != ValueKind::map || old->kind != ValueKind::scalar) return;
  if (over->find("base") != nullptr || over->find("default") != nullptr) return;
  Value named = make_map({{name_key, *old}});
  named.span = old->span;
  document = merge_patch(document, make_at_path(path, std::move(named)));
}

// A removal inside a named base must stay written down: what it removes stands in the catalogue, not in the document.
void keep_removals(Value& target, const Value& patch) {
  for (const auto& entry : patch.entries) {
    Value* inner = target.find(entry.key);
    if (entry.value.kind == ValueKind::null) {
      if (inner == nullptr) target.entries.push_back(entry);
    } else if (entry.value.kind == ValueKind::map && inner != nullptr && inner->kind == ValueKind::map) {
      keep_removals(*inner, entry.value);
    }
  }
}

// The same for every map with a base, however deep: an energy table by name inside an accelerator that is written out.
void keep_named_removals(Value& target, const Value& patch) {
  if (target.kind != ValueKind::map || patch.kind != ValueKind::map) return;
  if (target.find("base") != nullptr) return keep_removals(target, patch);
  for (const auto& entry : patch.entries) {
    if (Value* inner = target.find(entry.key)) keep_named_removals(*inner, entry.value);
  }
}

Value patched(Value document, const Value& patch) {
  open_name(document, patch, "accelerator", "base");
  open_name(document, patch, "accelerator.energy", "base");
  open_name(document, patch, "precision", "base");
  open_name(document, patch, "compile.dataflow", "default");
  Value out = merge_patch(document, patch);
  for (const char* name : {"accelerator", "precision"}) {
    Value* target = out.find(name);
    const Value* over = patch.find(name);
    if (target != nullptr && over != nullptr) keep_named_removals(*target, *over);
  }
  return out;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

}  // namespace

Value apply_changes(const Value& baseline, const std::vector<Change>& changes, const std::vector<std::size_t>& chosen,
                    const std::vector<Value>& patches) {
  Value out = baseline;
  for (const std::size_t i : chosen) out = patched(out, changes[i].patch);
  for (const auto& patch : patches) out = patched(out, patch);
  return out;
}

namespace {

// The files in each other's place: one sentence instead of an error for each of their keys.
Status check_roles(const Comparison& sides, const Value& candidate) {
  const auto is_candidate = [](const Value& v) { return v.find("changes") != nullptr && v.find("models") == nullptr; };
  if (is_candidate(sides.baseline)) {
    return make_error("bad-value", sides.baseline.span,
                      fmt::format("'{}' is a candidate, but stands where the baseline is named", sides.baseline_path),
                      "name the baseline first, then the candidate");
  }
  if (candidate.find("models") != nullptr && candidate.find("changes") == nullptr) {
    return make_error("bad-value", candidate.span,
                      fmt::format("'{}' is a scenario, but stands where the candidate is named", sides.candidate_path),
                      "a candidate has base: and changes:; name the baseline first, then the candidate");
  }
  return Done{};
}

}  // namespace

Result<Comparison> read_comparison(const std::string& baseline_path, const std::string& candidate_path,
                                   Library& library) {
  constexpr std::size_t kMaxChanges = 10;  // 2^10 subsets of 24 runs: some seconds
  Comparison out;
  out.baseline_path = baseline_path;
  out.candidate_path = candidate_path;
  PL_TRY(out.baseline, read_side(baseline_path, library));
  PL_TRY(const Value candidate, library.read_document(candidate_path));
  PL_TRY_STATUS(check_roles(out, candidate));
  Diagnostics errors;
  MapReader map(candidate, "the candidate", errors);
  if (const Value* v = map.require("plumbline")) read_integer(*v, 1, 1, errors);
  if (const Value* v = map.find("name")) out.candidate_name = read_text(*v, errors).value_or("");
  if (const Value* v = map.find("state"))
    out.live = read_choice(*v, {"candidate", "live"}, errors).value_or("candidate") == "live";
  const Value* base = map.require("base");
  if (base != nullptr) {
    const auto text = read_text(*base, errors);
    const bool pack = std::filesystem::is_directory(baseline_path);
    if (text && !pack && !same_file(beside(candidate_path, *text), baseline_path)) {
      errors.push_back(
          make_error("bad-value", base->span,
                     fmt::format("the candidate's base is '{}', but it is compared with '{}'", *text, baseline_path),
                     "give the base as the baseline, or correct base:"));
    }
  }
  if (const Value* v = map.require("changes"); v != nullptr && expect_list(*v, "changes", errors)) {
    if (v->items.size() > kMaxChanges) {
      errors.push_back(
          make_error("too-large", v->span,
                     fmt::format("{} changes; attribution is exact up to {}", v->items.size(), kMaxChanges)));
    }
    for (const auto& item : v->items) out.changes.push_back(read_change(item, errors));
    if (errors.empty()) check_changes(out.changes, errors);
  }
  map.finish();
  if (!errors.empty()) return errors;
  return out;
}

}  // namespace plumbline::ingest
