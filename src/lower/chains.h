#pragma once
// Chains of kernels that may run chunk by chunk, so that what is between them never exists whole.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ingest/graph.h"
#include "lower/facts.h"
#include "lower/kernel.h"

namespace plumbline::lower {

/// Every pair of matrix kernels, with the vector kernels between them, that could be cut: what is between has one
/// reader, is no output of the model, and each unit (row of tokens, group, image) depends on its own unit alone.
[[nodiscard]] std::vector<Chain> find_chains(const ingest::ShapedGraph& shaped, const GraphFacts& facts,
                                             const KernelGraph& graph);

/// How a chain is cut.
struct ChainCut {
  std::size_t chain = 0;          ///< index into KernelGraph::chains
  std::int64_t units = 1;         ///< of a chunk; the last may have fewer
  std::int64_t rows = 0;          ///< output rows of a chunk, then of one unit; 0 = all of them
  bool keeps_parameters = false;  ///< fetched by the first chunk and kept until the last has run
  friend bool operator==(const ChainCut&, const ChainCut&) = default;
};

/// Chunks of the cut.
[[nodiscard]] std::int64_t chunks_of(const Chain& chain, const ChainCut& cut);

/// The graph with the chains cut. A chunk of a kernel is an instance of its own: of the first member, of those
/// between, of the last, then the next chunk, all where the chain's last member stood. Rows of a convolution's input
/// that two chunks need are computed once and stay on chip between them. Vector parameters are read by every chunk.
/// The cuts share no kernel. The result has no chains.
[[nodiscard]] KernelGraph cut_chains(const KernelGraph& graph, const std::vector<ChainCut>& cuts);

}  // namespace plumbline::lower
