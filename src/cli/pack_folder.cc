#include "cli/pack_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cli/timing.h"
#include "ingest/files.h"

namespace plumbline::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxManifestBytes = 16U << 20U;
constexpr std::uint64_t kMaxEntries = 100'000;  ///< of an old pack; a real one holds some twenty
// Made first in OUT.partial and removed last: a folder that lacks it was not left behind by us.
constexpr const char* kMark = ".plumbline-partial";

Diagnostic unwritable(const std::string& path, const std::string& why) {
  return make_error("unwritable", {}, fmt::format("cannot write '{}': {}", path, why),
                    "choose another folder with -o, or mend its permissions");
}

Diagnostic not_ours(const std::string& path) {
  return make_error("not-ours", {}, fmt::format("'{}' exists and was not written by plumbline", path),
                    "choose another folder with -o, or remove it");
}

// What a pack's manifest lists, itself and the timing; nothing when the folder holds no manifest of ours.
std::optional<std::set<std::string>> listed_files(const fs::path& folder) {
  const auto text = ingest::read_file((folder / "manifest.json").string(), kMaxManifestBytes);
  if (!text.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("plumbline") || json.value("kind", nlohmann::json()) != "manifest")
    return std::nullopt;
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array()) return std::nullopt;
  std::set<std::string> out = {"manifest.json", kTimingFile};
  for (const auto& file : *files) {
    if (!file.is_object() || !file.contains("name") || !file["name"].is_string()) return std::nullopt;
    const fs::path name = file["name"].get<std::string>();
    // A name that leads out of the folder was not written by us.
    if (name.empty() || name.is_absolute() || name != name.lexically_normal() || *name.begin() == "..")
      return std::nullopt;
    out.insert(name.generic_string());
  }
  return out;
}

// The first entry (in the order of names) that the manifest does not list; folders on the way to a listed file are
// ours too. Links are entries, never followed.
Result<std::optional<std::string>> foreign_entry(const fs::path& folder, const std::set<std::string>& listed) {
  std::error_code error;
  std::optional<std::string> first;
  std::uint64_t entries = 0;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (++entries > kMaxEntries) return not_ours(folder.string());
    const std::string name = it->path().lexically_relative(folder).generic_string();
    if (listed.contains(name)) continue;
    const auto below = listed.lower_bound(name + "/");
    if (it->is_directory(error) && !it->is_symlink(error) && below != listed.end() && below->starts_with(name + "/"))
      continue;
    if (!first || name < *first) first = name;
  }
  if (error) return unwritable(folder.string(), error.message());
  return first;
}

/// Removes the files a manifest lists and the folders this empties; whatever else lies there stays.
void remove_listed(const fs::path& folder, const std::set<std::string>& listed) {
  std::error_code error;
  for (const auto& name : listed) {
    fs::remove(folder / name, error);
    for (fs::path parent = fs::path(name).parent_path(); !parent.empty(); parent = parent.parent_path())
      fs::remove(folder / parent, error);
  }
  fs::remove(folder, error);
}

// Nothing but what we may replace: no folder, an empty one, or a pack whose every file its manifest lists.
Status may_replace(const std::string& path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return Done{};
  if (!fs::is_directory(path, error)) return not_ours(path);
  if (fs::is_empty(path, error)) return Done{};
  const auto listed = listed_files(path);
  if (!listed) return not_ours(path);
  PL_TRY(const auto foreign, foreign_entry(path, *listed));
  if (!foreign) return Done{};
  return make_error("not-ours", {},
                    fmt::format("the pack '{}' also holds '{}', which its manifest does not list", path, *foreign),
                    "choose another folder with -o, or move that file elsewhere; nothing was touched");
}

}  // namespace

PackFolder::PackFolder(std::string path) : path_(std::move(path)), partial_(path_ + ".partial") {}

PackFolder::PackFolder(PackFolder&& other) noexcept
    : path_(std::move(other.path_)), partial_(std::move(other.partial_)), open_(other.open_) {
  other.open_ = false;
}

PackFolder::~PackFolder() {
  std::error_code error;
  if (open_) fs::remove_all(partial_, error);
}

Result<PackFolder> PackFolder::claim(const std::string& path) {
  std::error_code error;
  std::string clean = path;
  while (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  if (fs::is_symlink(clean, error)) {
    const fs::path target = fs::canonical(clean, error);
    if (error) return not_ours(clean);
    clean = target.string();
  }
  PL_TRY_STATUS(may_replace(clean));
  const std::string partial = clean + ".partial";
  if (fs::exists(fs::symlink_status(partial, error)) && !fs::exists(fs::path(partial) / kMark, error) &&
      !(fs::is_directory(partial, error) && fs::is_empty(partial, error))) {
    return not_ours(partial);
  }
  PackFolder folder(clean);
  fs::remove_all(folder.partial_, error);
  if (error) return unwritable(clean, error.message());
  fs::create_directories(folder.partial_, error);
  if (error) return unwritable(clean, error.message());
  std::ofstream mark(fs::path(folder.partial_) / kMark);
  mark << "a pack that plumbline is writing\n";
  mark.close();
  if (!mark) return unwritable(clean, "no file can be made in it");
  return folder;
}

Status PackFolder::commit(const std::map<std::string, std::string>& files) {
  std::error_code error;
  for (const auto& [name, bytes] : files) {
    const fs::path file = fs::path(partial_) / name;
    fs::create_directories(file.parent_path(), error);
    std::ofstream stream(file, std::ios::binary);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    stream.close();
    if (!stream) return unwritable(file.string(), "the disk is full or the folder was removed");
  }
  // The decision took a while: a file that came into OUT meanwhile is not ours either.
  PL_TRY_STATUS(may_replace(path_));
  const auto listed = listed_files(path_).value_or(std::set<std::string>{});
  // The old pack steps aside and comes back if the new one cannot take its place.
  std::string old = path_ + ".old";
  for (int i = 1; fs::exists(fs::symlink_status(old, error)); ++i) old = fmt::format("{}.old.{}", path_, i);
  const bool replaces = fs::exists(path_, error);
  if (replaces) {
    fs::rename(path_, old, error);
    if (error) return unwritable(path_, error.message());
  }
  fs::remove(fs::path(partial_) / kMark, error);
  fs::rename(partial_, path_, error);
  if (error) {
    const std::string why = error.message();
    if (replaces) fs::rename(old, path_, error);
    return unwritable(path_, why);
  }
  open_ = false;
  if (replaces) remove_listed(old, listed);
  return Done{};
}

std::string relative_path(const std::string& path) {
  const fs::path p(path);
  if (!p.is_absolute()) return path;
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (error) return path;
  const fs::path relative = p.lexically_relative(here);
  return relative.empty() ? path : relative.string();
}

}  // namespace plumbline::cli
