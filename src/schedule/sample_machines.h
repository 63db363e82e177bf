#pragma once
// Accelerators and dataflows for tests: the catalogue's own files.
#include <map>
#include <string>

#include "ingest/accelerator.h"
#include "ingest/scenario.h"

namespace plumbline::schedule {

/// catalog/accelerators/NAME.yaml with its energy table; a file that does not read is a failed check.
[[nodiscard]] ingest::Accelerator catalog_accelerator(const std::string& name);

/// Weight, input and output stationary, as in catalog/dataflows.
[[nodiscard]] std::map<std::string, ingest::Dataflow> sample_dataflows();

/// The default story's options: weight stationary, edp, both fusions, residency auto.
[[nodiscard]] ingest::CompileOptions sample_options();
[[nodiscard]] ingest::Policy int8_policy();

}  // namespace plumbline::schedule
