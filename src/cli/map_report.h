#pragma once
// What `plumbline map` prints.
#include <string>

#include "cli/map_kernel.h"
#include "schedule/search_accelerator.h"

namespace plumbline::cli {

struct MapReport {
  std::string kernel_text;
  std::string accelerator;
  KernelText kernel;
  schedule::AcceleratorModel model;
  schedule::SearchResult result;
  bool one_objective = true;  ///< ties fall to another one, which is not stated
  bool searched = true;       ///< false: the mapping was given, there is no certificate
};

/// The loop nest as people read it, what each level moves, time, energy and the proof.
[[nodiscard]] std::string map_text(const MapReport& report);
/// {"plumbline": 1, "kind": "map", …}; docs/schema/map.schema.json.
[[nodiscard]] std::string map_json(const MapReport& report);

}  // namespace plumbline::cli
