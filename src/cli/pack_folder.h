#pragma once
// Writing an evidence pack: into OUT.partial, then swapped in; an existing OUT is replaced only if it holds our
// manifest and no file beside those the manifest lists. What plumbline did not write is never removed.
#include <map>
#include <string>

#include "core/result.h"

namespace plumbline::cli {

class PackFolder {
 public:
  /// Claims OUT: checks that it may be replaced and that OUT.partial can be written, before anything is computed.
  /// Errors: not-ours (names the foreign file), unwritable.
  static Result<PackFolder> claim(const std::string& path);
  PackFolder(PackFolder&& other) noexcept;
  PackFolder(const PackFolder&) = delete;
  PackFolder& operator=(const PackFolder&) = delete;
  PackFolder& operator=(PackFolder&&) = delete;
  /// Removes what was not committed.
  ~PackFolder();

  /// Writes every file and swaps the folder in; of an old pack, what its manifest lists is removed. Errors: unwritable,
  /// not-ours (a file came into OUT meanwhile).
  Status commit(const std::map<std::string, std::string>& files);

 private:
  explicit PackFolder(std::string path);
  std::string path_;
  std::string partial_;
  bool open_ = true;
};

/// A path as it is shown and stored: relative to where the user stands, so that no absolute path enters a pack.
[[nodiscard]] std::string relative_path(const std::string& path);

}  // namespace plumbline::cli
