#pragma once
// Which nodes after a matrix product join its epilogue.
#include <cstdint>
#include <vector>

#include "ingest/graph.h"
#include "lower/facts.h"
#include "lower/kernel.h"

namespace plumbline::lower {

struct Epilogue {
  std::vector<std::int32_t> nodes;  ///< ascending node indices
  std::int32_t result = -1;         ///< root tensor the fused kernel writes
  bool softmax = false;             ///< the last node is a softmax, so scores need not be stored whole
  std::vector<Alternative> considered;
};

struct FusionOptions {
  bool elementwise = false;  ///< `epilogue`
  bool softmax = false;      ///< `attention`, and the product is one of two activations
};

/// Grows from the root tensor `product`: elementwise nodes of the same size join while only one result of them all is
/// read from outside, so nothing intermediate needs a buffer.
[[nodiscard]] Epilogue grow_epilogue(const ingest::ShapedGraph& shaped, const GraphFacts& facts, std::int32_t product,
                                     const FusionOptions& options, const std::vector<bool>& claimed);

}  // namespace plumbline::lower
