#pragma once
// Remembers texts by exact content, in memory and, given a folder, across runs. One process may use it from many
// threads, and many processes one folder: entries are written apart and renamed into place.
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace plumbline::schedule {

class MappingCache {
 public:
  /// Entries are kept in `folder` too, which is made when first written to; empty = in memory only.
  explicit MappingCache(std::string folder = {}) : folder_(std::move(folder)) {}

  /// The value stored under exactly `key`; nothing when there is none or its file is damaged.
  std::optional<std::string> find(const std::string& key);

  /// Remembers a value. A folder that cannot be written to loses only the memory across runs.
  void store(const std::string& key, const std::string& value);

  [[nodiscard]] std::int64_t hits() const;
  [[nodiscard]] std::int64_t misses() const;

 private:
  [[nodiscard]] std::string path_of(const std::string& key) const;

  std::string folder_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> known_;
  std::int64_t hits_ = 0;
  std::int64_t misses_ = 0;
};

}  // namespace plumbline::schedule
