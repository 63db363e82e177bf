#pragma once
// The compile section: shapes, constraints, dataflows.
#include "ingest/scenario.h"

namespace plumbline::ingest {

[[nodiscard]] CompileOptions read_compile(const Value& value, Diagnostics& errors);
[[nodiscard]] ConstraintRow read_constraint(const Value& value, Diagnostics& errors);
[[nodiscard]] Dataflow read_dataflow(const Value& value, Diagnostics& errors);

}  // namespace plumbline::ingest
