#pragma once
// Catalogue models: a graph of ONNX operators without weights, written as YAML with blocks and repetition.
#include "core/result.h"
#include "ingest/document.h"
#include "ingest/graph.h"

namespace plumbline::ingest {

/// Interprets a document of kind "model" (docs/ingest.md, "Models in YAML"). Its weights have shapes but no values.
/// Errors: unknown-key, missing-key, wrong-type, unknown-name, bad-value, overflow, too-large, and those of link_graph.
Result<Graph> read_model_yaml(const Value& document);

}  // namespace plumbline::ingest
