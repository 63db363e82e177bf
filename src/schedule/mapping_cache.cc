#include "schedule/mapping_cache.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/sha256.h"

namespace plumbline::schedule {
namespace {

constexpr const char* kHeader = "plumbline mapping 1\n";

/// Far above any entry: a key and a mapping are a few kilobytes.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 20;

std::string entry_text(const std::string& key, const std::string& value) {
  return kHeader + std::to_string(key.size()) + "\n" + key + value + sha256(value) + "\n";
}

std::optional<std::string> read_whole(const std::string& path) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed || size > kMostBytes) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// The value of an entry whose key is `key` to the last byte; a hash in a file name is no proof.
std::optional<std::string> value_of(const std::string& text, const std::string& key) {
  const std::string head = kHeader + std::to_string(key.size()) + "\n" + key;
  constexpr std::size_t kDigest = 65;  // hexadecimal SHA-256 and a line feed
  if (!text.starts_with(head) || text.size() < head.size() + kDigest) return std::nullopt;
  std::string value = text.substr(head.size(), text.size() - head.size() - kDigest);
  if (sha256(value) + "\n" != text.substr(text.size() - kDigest)) return std::nullopt;
  return value;
}

}  // namespace

std::string MappingCache::path_of(const std::string& key) const { return folder_ + "/" + sha256(key) + ".mapping"; }

std::optional<std::string> MappingCache::find(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = known_.find(key); at != known_.end()) {
      ++hits_;
      return at->second;
    }
  }
  std::optional<std::string> value;
  if (!folder_.empty()) {
    if (const auto text = read_whole(path_of(key))) value = value_of(*text, key);
  }
  const std::lock_guard lock(mutex_);
  ++(value ? hits_ : misses_);
  if (value) known_.emplace(key, *value);
  return value;
}

void MappingCache::store(const std::string& key, const std::string& value) {
  {
    const std::lock_guard lock(mutex_);
    known_[key] = value;
  }
  if (folder_.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  if (failed) return;
  static std::atomic<unsigned> serial{0};
  const std::string path = path_of(key);
  const std::string part = path + "." + std::to_string(::getpid()) + "." + std::to_string(serial++) + ".part";
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << entry_text(key, value);
    file.flush();
    if (!file) {
      file.close();
      std::filesystem::remove(part, failed);
      return;
    }
  }
  std::filesystem::rename(part, path, failed);
  if (failed) std::filesystem::remove(part, failed);
}

std::int64_t MappingCache::hits() const {
  const std::lock_guard lock(mutex_);
  return hits_;
}

std::int64_t MappingCache::misses() const {
  const std::lock_guard lock(mutex_);
  return misses_;
}

}  // namespace plumbline::schedule
