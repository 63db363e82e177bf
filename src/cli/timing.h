#pragma once
// Wall-clock seconds of a command. They go into a document of their own, outside of everything that is compared.
#include <chrono>
#include <string>

namespace plumbline::cli {

/// Started when it is made.
class Stopwatch {
 public:
  /// {"plumbline": 1, "kind": "timing", "seconds": {WHAT: seconds so far}}
  [[nodiscard]] std::string timing_json(const std::string& what) const;

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Name of the document in a pack. The manifest does not list it.
inline constexpr const char* kTimingFile = "timing.json";

}  // namespace plumbline::cli
