#pragma once
// Matrix operators as einsums: which tensor is which operand, and the iteration space.
#include <string>
#include <vector>

#include "core/result.h"
#include "ingest/graph.h"
#include "lower/einsum.h"
#include "lower/facts.h"

namespace plumbline::lower {

struct MatrixProduct {
  Einsum einsum;                  ///< operands: stationary-side (weights or K, V), inputs, outputs
  TensorId weights;               ///< operand 0
  TensorId inputs;                ///< operand 1
  TensorId bias;                  ///< invalid when there is none
  bool weights_constant = false;  ///< operand 0 is a parameter of the model
  std::string layer_class;        ///< by rule, when the node states none
};

/// Dimensions: G, M, N, K for products of two activations; M, N, K with a parameter; conv_einsum's for convolutions,
/// whose MACs count the whole window, padding included. Errors: unsupported, shape-mismatch, overflow.
Result<MatrixProduct> make_product(const ingest::ShapedGraph& shaped, const GraphFacts& facts, std::size_t node,
                                   const FormatBits& bits);

}  // namespace plumbline::lower
