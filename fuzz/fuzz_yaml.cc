// The YAML reader: any bytes give a tree or diagnostics; a tree survives being written and read again.
#include "core/check.h"
#include "fuzz_target.h"
#include "ingest/document.h"

const std::string_view kSeedEndings = ".yaml";

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace plumbline;
  using namespace plumbline::ingest;
  const auto read = parse_yaml(fuzz::as_source(bytes, size));
  if (!read.ok()) {
    PL_CHECK(!render(read.errors()).empty());
    return 0;
  }
  const std::string canonical = canonical_text(*read);
  // Patching a document with itself changes nothing but the removal of its nulls; twice is the same as once.
  const Value once = merge_patch(*read, *read);
  PL_CHECK(canonical_text(merge_patch(once, once)) == canonical_text(once));
  const std::string flow = flow_text(*read);
  if (flow.size() > kMaxYamlBytes) return 0;
  const auto again = parse_yaml(std::make_shared<const Source>(Source{"flow", flow}));
  PL_CHECK(again.ok());
  PL_CHECK(canonical_text(*again) == canonical);
  return 0;
}
