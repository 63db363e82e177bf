#include "cli/timing.h"

#include <nlohmann/json.hpp>

namespace plumbline::cli {

std::string Stopwatch::timing_json(const std::string& what) const {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
  const nlohmann::ordered_json document = {
      {"plumbline", 1}, {"kind", "timing"}, {"seconds", {{what, seconds.count()}}}};
  return document.dump(1) + "\n";
}

}  // namespace plumbline::cli
