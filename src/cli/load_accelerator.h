#pragma once
// An accelerator by itself, for the workbench commands.
#include <string>

#include "core/result.h"
#include "ingest/accelerator.h"
#include "ingest/library.h"

namespace plumbline::cli {

/// `name` is a catalogue name, or the path of an accelerator file. Errors: those of the library and of
/// read_accelerator.
[[nodiscard]] Result<ingest::Accelerator> load_accelerator(const std::string& name, ingest::Library& library);

}  // namespace plumbline::cli
