#include "ingest/files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace plumbline::ingest {

Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes, const Span& at) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error || !std::filesystem::exists(status)) {
    return make_error("missing-file", at, fmt::format("cannot open '{}': no such file", path));
  }
  if (!std::filesystem::is_regular_file(status)) {
    return make_error("missing-file", at, fmt::format("cannot open '{}': not a regular file", path));
  }
  const auto size = std::filesystem::file_size(path, error);
  if (error) return make_error("missing-file", at, fmt::format("cannot read '{}': {}", path, error.message()));
  if (size > max_bytes) {
    return make_error("too-large", at, fmt::format("'{}' has {} bytes; the limit is {}", path, size, max_bytes));
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return make_error("missing-file", at, fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  std::string bytes(size, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (stream.gcount() != static_cast<std::streamsize>(size)) {
    return make_error("missing-file", at, fmt::format("cannot read '{}' to its end", path));
  }
  return bytes;
}

Result<Value> read_yaml_file(const std::string& path, const std::string& shown, const Span& at) {
  PL_TRY(std::string text, read_file(path, kMaxYamlBytes, at));
  return parse_yaml(std::make_shared<const Source>(Source{shown, std::move(text)}));
}

std::string beside(const std::string& base_file, const std::string& path) {
  const std::filesystem::path p(path);
  if (p.is_absolute()) return path;
  return (std::filesystem::path(base_file).parent_path() / p).lexically_normal().string();
}

}  // namespace plumbline::ingest
