#pragma once
// How large a model is.
#include <cstdint>

#include "ingest/graph.h"

namespace plumbline::ingest {

/// Elements of the tensors that hold the model's weights: those the file states, or fills, that a node reads, with at
/// least one axis and a type other than int64 and boolean (dimensions, indices, masks). What is computed from weights
/// is not counted again.
/// Batch normalisation's running mean and variance count, as ONNX passes them like weights.
[[nodiscard]] std::int64_t parameter_elements(const ShapedGraph& shaped);

}  // namespace plumbline::ingest
