#pragma once
// The catalogue and the files beside a scenario, read once and remembered by content.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/result.h"
#include "ingest/document.h"
#include "ingest/graph.h"

namespace plumbline::ingest {

/// A file that was read, for the manifest.
struct InputFile {
  std::string path;  ///< as shown: relative to where the user stands, or catalog/…
  std::string sha256;
};

/// Looks names up in catalog/ and files beside the document that names them. Remembers what it read. Thread-safe.
class Library {
 public:
  /// `catalog_root`: the folder that holds accelerators/, models/, …
  explicit Library(std::string catalog_root);

  /// Parses a scenario, gate or other document at a path the user gave.
  Result<Value> read_document(const std::string& path, const Span& at = {});
  /// A catalogue entry, e.g. ("accelerators", "ws-256"); a name with '/' or ending in .yaml is a path beside `at`'s
  /// file.
  Result<Value> entry(const std::string& kind_folder, const std::string& name, const Span& at);
  /// Names in a catalogue folder, sorted.
  [[nodiscard]] std::vector<std::string> names(const std::string& kind_folder) const;

  /// The document with every catalogue name replaced by what it stands for: self-contained but for model bytes.
  Result<Value> resolve(const Value& document);

  /// The graph of a resolved model entry ({document: …} or {onnx: path}).
  Result<std::shared_ptr<const Graph>> graph(const Value& model);

  /// SHA-256 of a file read so far, by its shown path; empty when it was not read here.
  [[nodiscard]] std::string digest(const std::string& shown_path) const;
  /// Every file read so far, by path.
  [[nodiscard]] std::vector<InputFile> inputs() const;
  /// Bytes of an input by its shown path (for packing); empty when it was not read here.
  [[nodiscard]] std::string bytes_of(const std::string& shown_path) const;

 private:
  Result<std::string> remember(const std::string& path, const std::string& shown, std::uint64_t max_bytes,
                               const Span& at);
  Status inline_name(Value& document, const std::string& key, const std::string& folder);
  Status inline_accelerator(Value& document);
  Status inline_models(Value& document);
  Status inline_dataflows(Value& document);

  std::string root_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> files_;                    ///< shown path → bytes
  mutable std::map<std::string, std::string> digests_;          ///< shown path → SHA-256, once asked for
  std::map<std::string, Value> documents_;                      ///< shown path → parsed
  std::map<std::string, std::shared_ptr<const Graph>> graphs_;  ///< canonical text or content hash → graph
};

/// The file that a model's `onnx` value names: beside the document that says so.
[[nodiscard]] std::string model_path(const Value& onnx);

}  // namespace plumbline::ingest
