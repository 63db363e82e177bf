// A whole scenario: any YAML document is resolved against the catalogue and read, or refused with diagnostics.
#include "core/check.h"
#include "fuzz_target.h"
#include "ingest/library.h"
#include "ingest/scenario.h"

const std::string_view kSeedEndings = "scenario.yaml baseline.yaml";

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace plumbline;
  using namespace plumbline::ingest;
  static Library library(PLUMBLINE_SOURCE_DIR "/catalog");
  const auto document = parse_yaml(fuzz::as_source(bytes, size));
  if (!document.ok()) return 0;
  const auto resolved = library.resolve(*document);
  if (!resolved.ok()) return 0;
  const auto scenario = read_scenario(*resolved, library);
  if (!scenario.ok()) {
    PL_CHECK(!render(scenario.errors()).empty());
    return 0;
  }
  PL_CHECK(scenario->accelerator != nullptr);
  PL_CHECK(!scenario->models.empty());
  return 0;
}
