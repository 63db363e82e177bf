#include "cli/pack_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace plumbline::cli {
namespace {

namespace fs = std::filesystem;

Diagnostic unwritable(const std::string& path, const std::string& why) {
  return make_error("unwritable", {}, fmt::format("cannot write '{}': {}", path, why),
                    "choose another folder with -o, or mend its permissions");
}

bool is_pack(const fs::path& folder) {
  std::error_code error;
  std::ifstream manifest(folder / "manifest.json");
  std::string head(256, '\0');
  manifest.read(head.data(), static_cast<std::streamsize>(head.size()));
  return fs::is_directory(folder, error) && head.find("\"plumbline\"") != std::string::npos &&
         head.find("manifest") != std::string::npos;
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
  std::string clean = path;
  while (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  std::error_code error;
  if (fs::exists(clean, error) && !is_pack(clean) && !(fs::is_directory(clean, error) && fs::is_empty(clean, error))) {
    return make_error("not-ours", {}, fmt::format("'{}' exists and was not written by plumbline", clean),
                      "choose another folder with -o, or remove it");
  }
  PackFolder folder(clean);
  fs::remove_all(folder.partial_, error);
  if (error) return unwritable(clean, error.message());
  fs::create_directories(folder.partial_, error);
  if (error) return unwritable(clean, error.message());
  std::ofstream probe(folder.partial_ + "/manifest.json");
  probe << "x";
  probe.close();
  if (!probe) return unwritable(clean, "no file can be made in it");
  fs::remove(folder.partial_ + "/manifest.json", error);
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
  // The old pack steps aside and comes back if the new one cannot take its place.
  const std::string old = path_ + ".old";
  const bool replaces = fs::exists(path_, error);
  if (replaces) {
    fs::remove_all(old, error);
    fs::rename(path_, old, error);
    if (error) return unwritable(path_, error.message());
  }
  fs::rename(partial_, path_, error);
  if (error) {
    const std::string why = error.message();
    if (replaces) fs::rename(old, path_, error);
    return unwritable(path_, why);
  }
  open_ = false;
  if (replaces) fs::remove_all(old, error);
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
