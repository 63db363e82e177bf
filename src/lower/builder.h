#pragma once
// Collects kernels, instances and buffers while the graph is walked in order.
#include <cstdint>
#include <vector>

#include "ingest/graph.h"
#include "lower/facts.h"
#include "lower/kernel.h"

namespace plumbline::lower {

/// A kernel with its instance, before it is known whether the kernel is new.
struct Draft {
  Kernel kernel;
  Instance instance;
};

class Builder {
 public:
  Builder(const ingest::ShapedGraph& shaped, const GraphFacts& facts, const FormatBits& bits,
          const std::vector<ingest::ConstraintRow>& rows);

  /// The buffer of a root tensor, made on first use.
  std::int32_t buffer(std::int32_t root);
  /// A nameless buffer between the parts of one operator, e.g. sums before they are requantized.
  std::int32_t raw_buffer(std::int32_t root, std::int64_t element_bits);
  [[nodiscard]] Buffer& at(std::int32_t buffer) { return out_.buffers[static_cast<std::size_t>(buffer)]; }

  /// Bytes of a root tensor as stored.
  [[nodiscard]] std::int64_t bytes(std::int32_t root) const;
  [[nodiscard]] std::int64_t tensor_bytes(TensorId id) const;

  /// Adds the reads of `step` beyond the roots in `inside`: activations to the instance, parameters likewise.
  void read_operands(const ingest::Node& node, const OperatorRow& row, const std::vector<std::int32_t>& inside,
                     VectorStep& step, Draft& draft);

  /// Appends an instance in execution order; identical kernels are merged.
  void emit(Draft draft);

  [[nodiscard]] KernelGraph take() { return std::move(out_); }

 private:
  const ingest::ShapedGraph& shaped_;
  const GraphFacts& facts_;
  FormatBits bits_;
  const std::vector<ingest::ConstraintRow>& rows_;
  std::vector<std::int32_t> buffer_of_;
  KernelGraph out_;
};

}  // namespace plumbline::lower
