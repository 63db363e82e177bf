#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "ingest/scenario.h"

namespace plumbline::cli {

int report_errors(const Diagnostics& errors, std::ostream& err) {
  err << render(errors);
  return kCannotSay;
}

std::string find_catalog() {
  if (const char* given = std::getenv("PLUMBLINE_CATALOG")) return given;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    // build/release/plumbline lies two folders below the source tree; an installed program beside share/plumbline.
    for (auto folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
      for (const char* below : {"catalog", "share/plumbline/catalog"}) {
        if (std::filesystem::is_directory(folder / below / "accelerators", error)) return (folder / below).string();
      }
    }
  }
  return "catalog";
}

std::shared_ptr<schedule::MappingCache> find_mapping_cache() {
  const char* given = std::getenv("PLUMBLINE_MAPPING_CACHE");
  return std::make_shared<schedule::MappingCache>(given == nullptr ? "" : given);
}

Result<ingest::Value> read_arm_document(const std::string& path, ingest::Library& library) {
  PL_TRY(const ingest::Value document, library.read_document(path));
  const ingest::Value* base = document.find("base");
  if (base == nullptr) return document;
  if (base->kind != ingest::ValueKind::scalar)
    return make_error("wrong-type", base->span, "base must be the path of the baseline's scenario");
  const std::string base_path = (std::filesystem::path(path).parent_path() / base->text).lexically_normal().string();
  PL_TRY(const ingest::Comparison comparison, ingest::read_comparison(base_path, path, library));
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < comparison.changes.size(); ++i) all.push_back(i);
  return ingest::apply_changes(comparison.baseline, comparison.changes, all, {});
}

}  // namespace plumbline::cli
