#pragma once
// What lowering needs to know of a graph before it makes kernels: rows, constants, views, consumers and sizes.
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "ingest/graph.h"
#include "ingest/scenario.h"
#include "lower/operators.h"

namespace plumbline::lower {

/// Bits of one element under the precision policy.
struct FormatBits {
  std::int64_t inputs = 8;
  std::int64_t weights = 8;
  std::int64_t accumulate = 32;
  std::int64_t outputs = 8;
};
Result<FormatBits> policy_bits(const ingest::Policy& policy);

struct GraphFacts {
  std::vector<const OperatorRow*> rows;  ///< by node
  std::vector<bool> constant;      ///< by tensor: the same for every request (parameters and what follows from them)
  std::vector<std::int32_t> root;  ///< by tensor: the tensor whose bytes it is (views), itself otherwise
  std::vector<std::int64_t> elements;  ///< by tensor; 0 when the shape is unknown
  std::vector<std::int32_t> producer;  ///< by tensor: node index, -1 for graph inputs and parameters
  std::vector<bool> leaves;            ///< by root tensor: it, or a view of it, is a graph output
  std::vector<bool> enters;            ///< by root tensor: a graph input

  /// Nodes that read a root tensor or a view of it, ascending; views and folded nodes are not listed.
  [[nodiscard]] std::span<const std::int32_t> consumers(std::int32_t root_tensor) const {
    const auto at = static_cast<std::size_t>(root_tensor);
    return {consumer_list.data() + consumer_start[at], consumer_list.data() + consumer_start[at + 1]};
  }
  /// A node whose outputs are all constant runs at compile time, never on the accelerator.
  [[nodiscard]] bool folded(const ingest::Node& node) const;

  std::vector<std::int32_t> consumer_start;
  std::vector<std::int32_t> consumer_list;
};

/// Errors: unknown-operator, onnx-shape (a shape that stayed unknown), overflow.
Result<GraphFacts> inspect(const ingest::ShapedGraph& shaped);

/// Stored bits of one activation element: the policy's format for floating tensors, their own for integers.
[[nodiscard]] std::int64_t activation_bits(ingest::ElementType type, const FormatBits& bits);

/// Integer attribute of a node, or `otherwise`.
[[nodiscard]] std::int64_t integer_attribute(const ingest::Node& node, const char* name, std::int64_t otherwise);
/// Integer list attribute, or an empty one.
[[nodiscard]] std::vector<std::int64_t> list_attribute(const ingest::Node& node, const char* name);

/// ⌈elements × bits / 8⌉.
[[nodiscard]] constexpr std::int64_t stored_bytes(std::int64_t elements, std::int64_t bits) {
  return (elements * bits + 7) / 8;
}

}  // namespace plumbline::lower
