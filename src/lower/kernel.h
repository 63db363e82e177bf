#pragma once
// The model as kernels: what the array and the vector unit run, with the choices made and why.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "ingest/accelerator.h"
#include "ingest/graph.h"
#include "ingest/scenario.h"
#include "lower/einsum.h"

namespace plumbline::lower {

/// matrix runs on the array; vector and movement run on the vector unit (movement computes nothing, it copies).
enum class KernelKind : std::uint8_t { matrix, vector, movement };

/// A way a kernel could have been made, and why it was or was not taken.
struct Alternative {
  std::string name;  ///< e.g. "fused epilogue: Add", "sparse"
  bool chosen = false;
  std::string reason;
  friend bool operator==(const Alternative&, const Alternative&) = default;
};

/// Work of the vector unit: a kernel of its own, or one step of a matrix kernel's epilogue.
struct VectorStep {
  std::string op;                    ///< operator of the graph, or "requantize"
  std::int64_t elements = 0;         ///< elements the operations are counted on
  std::int64_t operations = 0;       ///< element operations, all elements together
  std::int64_t input_bytes = 0;      ///< activations read beside the producing kernel's own result
  std::int64_t output_bytes = 0;     ///< activations written; 0 in an epilogue (the matrix kernel writes)
  std::int64_t parameter_bytes = 0;  ///< model parameters read (bias, scale, gathered embedding rows)
  friend bool operator==(const VectorStep&, const VectorStep&) = default;
};

/// What is computed, without names: identical layers of a model share one kernel.
struct Kernel {
  KernelKind kind = KernelKind::vector;
  std::string name;         ///< of the first instance
  std::string layer_class;  ///< "projection", "ffn", "attention", "conv", "embedding", "vector", …
  Einsum einsum;            ///< matrix kernels only
  std::string inputs;       ///< element formats by name ("int8"); matrix kernels only
  std::string accumulate;
  std::string outputs;
  std::vector<VectorStep> steps;            ///< matrix: the fused epilogue in order; else exactly one step
  std::int64_t unique_weight_bytes = 0;     ///< model parameters the kernel uses, each once
  std::int64_t unique_weight_elements = 0;  ///< of its matrix operand only
  std::int64_t repeats = 0;                 ///< instances of it in the graph
  std::uint64_t constraint_rows = 0;        ///< bit r: row r of compile.constraints matches by class or name
  std::vector<Alternative> alternatives;    ///< of the first instance

  [[nodiscard]] std::int64_t macs() const;  ///< product of the iteration space; 0 unless matrix
  [[nodiscard]] std::int64_t vector_operations() const;
  /// Index of the einsum's operand with model parameters; -1 when there is none.
  [[nodiscard]] int weight_operand() const;
};

/// A buffer of activations between kernels.
struct Buffer {
  TensorId tensor;            ///< views share the buffer of what they view
  std::int64_t bytes = 0;     ///< as stored
  std::int64_t on_chip = 0;   ///< bytes that must exist at once: less than `bytes` when streamed between fused kernels
  bool model_input = false;   ///< arrives off chip
  bool model_output = false;  ///< leaves off chip
};

/// One access of an instance to a buffer.
struct BufferUse {
  std::int32_t buffer = -1;  ///< index into KernelGraph::buffers
  int operand = -1;          ///< operand of the einsum; -1 when the vector unit reads or writes it
  std::int64_t bytes = 0;
  /// Read, and the result may be written over it: as many elements at the same width, each read before its place is
  /// written. Whether the buffer dies here is for the placement to see.
  bool replaceable = false;
};

/// A parameter tensor an instance needs.
struct ParameterUse {
  TensorId tensor;
  int operand = -1;         ///< operand of the einsum; -1 when the vector unit reads it
  std::int64_t bytes = 0;   ///< read at least once per execution
  std::int64_t stored = 0;  ///< bytes of the whole tensor as stored
  bool gathered = false;    ///< only the rows a request names are read, so the tensor is never pinned whole
  bool kept = false;        ///< an earlier chunk of the chain has fetched it, and it is on chip still
};

/// One occurrence of a kernel in the graph, in execution order.
struct Instance {
  KernelId kernel;
  std::string name;
  std::vector<NodeId> nodes;  ///< graph nodes it computes, for `why`
  std::vector<BufferUse> reads;
  std::vector<BufferUse> writes;
  std::vector<ParameterUse> parameters;
  bool again = false;           ///< a later chunk of a layer that an earlier instance has begun
  std::int64_t kept_bytes = 0;  ///< parameters of its whole chain that stay on chip while the chain runs
};

/// A kernel of a chain, and how it follows the chunks.
struct ChainMember {
  std::int32_t instance = -1;
  int unit_dim = -1;  ///< dimension that runs over the units; -1 in a vector kernel, whose elements are cut evenly
  int row_dim = -1;   ///< output rows of a convolution; -1 = not cut
  std::vector<bool> reads_cut;  ///< by read: a chunk takes its share; otherwise all of it every time
};

/// Kernels whose results between them nobody else reads: they may run chunk by chunk, so that only a chunk of what is
/// between must exist. The first and the last are matrix kernels.
struct Chain {
  std::string kind;  ///< mlp | attention | conv
  std::vector<ChainMember> members;
  std::vector<std::int32_t> between;  ///< buffers
  std::string unit;                   ///< rows | groups | images
  std::int64_t units = 1;             ///< rows of tokens, groups or images: independent of each other in every member
  std::int64_t rows = 0;              ///< convolutions: output rows of the last one, which may be cut too; 0 = not
  std::int64_t middle_rows = 0;       ///< rows between
  std::int64_t stride = 1;            ///< the last one's window down the rows between: step,
  std::int64_t reach = 1;             ///< extent,
  std::int64_t padding = 0;           ///< rows above the first
};

struct KernelGraph {
  std::string model;
  std::vector<Kernel> kernels;      ///< distinct, in order of first use
  std::vector<Instance> instances;  ///< in execution order
  std::vector<Buffer> buffers;
  std::vector<Chain> chains;  ///< `chains` fusion: those that could be cut, in order of their first kernel
};

/// Equal but for name, repeats and alternatives.
[[nodiscard]] bool same_content(const Kernel& a, const Kernel& b);

/// Appends an instance in execution order, of `kernel` or of an equal one that is there already.
void append(KernelGraph& graph, Kernel kernel, Instance instance);

/// Turns a shaped graph into kernels under the fusion options and precision policy.
/// Errors: unknown-operator (no row in operators.inc), unsupported (format pair, sparsity, operator variant),
/// shape-mismatch, overflow, unknown-name (format).
Result<KernelGraph> lower(const ingest::ShapedGraph& graph, const ingest::CompileOptions& options,
                          const ingest::Policy& policy, const ingest::Accelerator& accelerator);

/// Bits of one stored element of a format ("int8" → 8). Errors: unknown-name.
Result<std::int64_t> format_bits(const std::string& format, const Span& span = {});

}  // namespace plumbline::lower
