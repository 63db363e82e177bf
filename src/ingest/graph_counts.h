#pragma once
// How large a model is, and which sizes it leaves open.
#include <cstdint>
#include <string>

#include "ingest/graph.h"

namespace plumbline::ingest {

/// Elements of the tensors that hold the model's weights: those the file states, or fills, that a node reads, with at
/// least one axis and a type other than int64 and boolean (dimensions, indices, masks). What is computed from weights
/// is not counted again.
/// Batch normalisation's running mean and variance count, as ONNX passes them like weights.
[[nodiscard]] std::int64_t parameter_elements(const ShapedGraph& shaped);

/// Whether an input has a dimension of this name: its symbol, or "input.axis" (a fixed size too can be bound so).
[[nodiscard]] bool has_dimension(const Graph& graph, const std::string& name);

}  // namespace plumbline::ingest
