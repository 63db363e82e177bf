#include "cli/load_accelerator.h"

#include <fmt/format.h>

namespace plumbline::cli {

Result<ingest::Accelerator> load_accelerator(const std::string& name, ingest::Library& library) {
  // A scenario's way of naming one, without the scenario: the library puts the energy table in its place.
  ingest::Value request = ingest::make_map({{"accelerator", ingest::make_scalar(name)}});
  PL_TRY(const ingest::Value resolved, library.resolve(request));
  const ingest::Value* document = resolved.find("accelerator");
  if (document == nullptr) return make_error("missing-key", Span{}, "no accelerator");
  const ingest::Value* table = document->find("energy");
  if (table == nullptr)
    return make_error("missing-key", document->span, fmt::format("accelerator '{}' names no energy table", name));
  return ingest::read_accelerator(*document, *table);
}

}  // namespace plumbline::cli
