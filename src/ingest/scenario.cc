#include "ingest/scenario.h"

namespace plumbline::ingest {

double Gate::margin(const std::string& metric) const {
  const auto it = margins.find(metric);
  return it == margins.end() ? default_margin : it->second;
}

std::string stage_name(Stage stage) {
  constexpr const char* kNames[] = {"ingest", "lower", "schedule", "execute", "serve"};
  return kNames[static_cast<int>(stage)];
}

const std::vector<PatchableKey>& patchable_keys() {
  static const std::vector<PatchableKey> keys = {
      {"models", Stage::ingest},
      {"compile.shapes", Stage::lower},
      {"compile.shapes.batch", Stage::lower},
      {"compile.shapes.sequence", Stage::lower},
      {"compile.shapes.pad", Stage::lower},
      {"compile.fusion", Stage::lower},
      {"compile.sparsity", Stage::lower},
      {"precision", Stage::lower},
      {"compile.dataflow", Stage::schedule},
      {"compile.objective", Stage::schedule},
      {"compile.search", Stage::schedule},
      {"compile.constraints", Stage::schedule},
      {"compile.residency", Stage::schedule},
      {"dataflows", Stage::schedule},
      {"accelerator", Stage::execute},
      {"serving.batch.max", Stage::serve},
      {"serving.batch.wait", Stage::serve},
      {"serving.batch.group", Stage::serve},
      {"serving.admission.queue", Stage::serve},
      {"serving.clock", Stage::serve},
      {"environment.ambient", Stage::serve},
  };
  return keys;
}

}  // namespace plumbline::ingest
