#include "cli/output_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace plumbline::cli {

Status check_output_files(const std::string& values, const std::string& codes) {
  if (values.empty() || codes.empty()) return Done{};
  std::error_code ignored;  // a path that cannot be resolved is compared as written; writing it reports the rest
  const auto resolved = [&](const std::string& path) {
    const auto full = std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored);
    return ignored ? std::filesystem::path(path).lexically_normal() : full;
  };
  if (resolved(values) != resolved(codes)) return Done{};
  return make_error("usage", {}, fmt::format("--values and --codes both write '{}'", codes),
                    "the second would replace the first; give two names");
}

Status write_whole(const std::string& path, const std::string& bytes) {
  const std::string partial = fmt::format("{}.partial-{}", path, ::getpid());
  std::error_code failed;
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (file) std::filesystem::rename(partial, path, failed);
  if (file && !failed) return Done{};
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);
  return make_error("unwritable", {}, fmt::format("cannot write '{}'", path));
}

}  // namespace plumbline::cli
