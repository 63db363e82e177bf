#include <fmt/format.h>

#include <algorithm>

#include "lower/builder.h"
#include "lower/chains.h"
#include "lower/facts.h"
#include "lower/fusion.h"
#include "lower/kernel.h"
#include "lower/match.h"
#include "lower/matrix.h"

namespace plumbline::lower {
namespace {

/// Two copies of one group's scores: one is written while the other is read.
constexpr std::int64_t kStreamedCopies = 2;

class Walk {
 public:
  Walk(const ingest::ShapedGraph& shaped, const GraphFacts& facts, const FormatBits& bits,
       const ingest::CompileOptions& options, const ingest::Policy& policy)
      : shaped_(shaped),
        facts_(facts),
        bits_(bits),
        options_(options),
        policy_(policy),
        builder_(shaped, facts, bits, options.constraints),
        claimed_(shaped.graph.nodes.size(), false),
        pending_(shaped.graph.nodes.size(), -1) {}

  Result<KernelGraph> run() {
    const auto& nodes = shaped_.graph.nodes;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const OperatorRow& row = *facts_.rows[n];
      if (!facts_.folded(nodes[n]) && row.lowering != Lowering::view) {
        if (row.lowering == Lowering::fixed) {
          return make_error(
              "unsupported", nodes[n].span,
              fmt::format("the {} of node '{}' depends on the contents of a request", nodes[n].op, nodes[n].name));
        }
        if (row.matrix()) {
          PL_TRY_STATUS(matrix(n));
        } else if (!claimed_[n]) {
          PL_TRY_STATUS(vector(n));
        }
      }
      if (pending_[n] >= 0) builder_.emit(std::move(drafts_[static_cast<std::size_t>(pending_[n])]));
    }
    return builder_.take();
  }

 private:
  [[nodiscard]] std::string name_of(std::size_t n) const {
    const auto& node = shaped_.graph.nodes[n];
    return node.name.empty() ? fmt::format("{}_{}", node.op, n) : node.name;
  }

  /// Operations of one node, all elements together; `elements` receives what they are counted on.
  Result<std::int64_t> operations(std::size_t n, std::int64_t& elements) const {
    const auto& node = shaped_.graph.nodes[n];
    const OperatorRow& row = *facts_.rows[n];
    elements = facts_.elements[node.outputs[0].at()];
    std::int64_t each = row.operations;
    if (row.counted_on == CountedOn::inputs) elements = facts_.elements[node.inputs[0].at()];
    if (row.counted_on == CountedOn::addends) each *= std::max<std::int64_t>(1, std::ssize(node.inputs) - 1);
    if (row.counted_on == CountedOn::window) {
      std::int64_t taps = integer_attribute(node, "size", 1);
      for (const std::int64_t side : list_attribute(node, "kernel_shape")) taps *= side;
      each += taps;
    }
    if (row.lowering == Lowering::movement) {
      elements = 0;
      for (const TensorId id : node.outputs) elements += id.valid() ? facts_.elements[id.at()] : 0;
    }
    std::int64_t total = 0;
    if (__builtin_mul_overflow(elements, each, &total)) {
      return make_error("overflow", node.span, fmt::format("node '{}' has more than 2^63 operations", node.name));
    }
    return total;
  }

  Status vector(std::size_t n) {
    const auto& node = shaped_.graph.nodes[n];
    const OperatorRow& row = *facts_.rows[n];
    Draft draft;
    const bool table = row.lowering == Lowering::gather && facts_.constant[node.inputs[0].at()];
    const bool moves = row.lowering == Lowering::movement || (row.lowering == Lowering::gather && !table);
    draft.kernel.kind = moves ? KernelKind::movement : KernelKind::vector;
    draft.kernel.layer_class = !node.layer_class.empty() ? node.layer_class : table ? "embedding" : "vector";
    draft.instance.name = name_of(n);
    draft.instance.nodes = {NodeId(n)};
    VectorStep step;
    step.op = node.op;
    PL_TRY(step.operations, operations(n, step.elements));
    builder_.read_operands(node, row, {}, step, draft);
    for (const TensorId id : node.outputs) {
      if (!id.valid()) continue;
      const std::int32_t root = facts_.root[id.at()];
      if (facts_.consumers(root).empty() && !facts_.leaves[static_cast<std::size_t>(root)] && id != node.outputs[0]) {
        continue;
      }
      step.output_bytes += builder_.bytes(root);
      draft.instance.writes.push_back({builder_.buffer(root), -1, builder_.bytes(root)});
    }
    // A movement reads no more than it keeps (Slice, Gather) and no more than there is (Expand, Tile).
    if (moves) {
      step.input_bytes = std::min(step.input_bytes, step.output_bytes);
      for (BufferUse& use : draft.instance.reads) use.bytes = std::min(use.bytes, step.output_bytes);
    }
    if (row.in_place != InPlace::never) mark_replaceable(draft);
    draft.kernel.steps.push_back(std::move(step));
    builder_.emit(std::move(draft));
    return Done{};
  }

  /// Operands of the vector unit that are as large, in elements and in bytes, as the one result.
  void mark_replaceable(Draft& draft) {
    if (draft.instance.writes.size() != 1) return;
    const BufferUse& written = draft.instance.writes.front();
    const auto elements = [&](const BufferUse& use) { return facts_.elements[builder_.at(use.buffer).tensor.at()]; };
    for (BufferUse& use : draft.instance.reads) {
      const bool alike = use.bytes == written.bytes && elements(use) == elements(written);
      const bool streamed =
          builder_.at(use.buffer).on_chip < use.bytes || builder_.at(written.buffer).on_chip < use.bytes;
      // The array reads its operands again and again while results leave it.
      const bool multiplied =
          std::any_of(draft.instance.reads.begin(), draft.instance.reads.end(),
                      [&](const BufferUse& other) { return other.operand >= 0 && other.buffer == use.buffer; });
      use.replaceable = use.operand < 0 && alike && !streamed && !multiplied;
    }
  }

  /// Narrowing of the accumulator's format to the stored one.
  [[nodiscard]] VectorStep narrowing(std::int64_t elements) const {
    const bool integer = policy_.accumulate.find("int") != std::string::npos;
    VectorStep step;
    step.op = "requantize";
    step.elements = elements;
    step.operations = elements * find_operator("", integer ? "QuantizeLinear" : "Cast")->operations;
    return step;
  }

  VectorStep bias_step(const MatrixProduct& product, const ingest::Node& node, Draft& draft) {
    VectorStep step;
    step.op = "bias";
    step.elements = facts_.elements[node.outputs[0].at()];
    step.operations = step.elements;
    if (facts_.constant[product.bias.at()]) {
      step.parameter_bytes = stored_bytes(facts_.elements[product.bias.at()], bits_.accumulate);
      draft.kernel.unique_weight_bytes += step.parameter_bytes;
      draft.instance.parameters.push_back({product.bias, -1, step.parameter_bytes, step.parameter_bytes, false});
    } else {
      const std::int32_t root = facts_.root[product.bias.at()];
      step.input_bytes = builder_.bytes(root);
      draft.instance.reads.push_back({builder_.buffer(root), -1, step.input_bytes});
    }
    return step;
  }

  Draft product_draft(const MatrixProduct& product, std::size_t n) {
    const auto& node = shaped_.graph.nodes[n];
    Draft draft;
    Kernel& kernel = draft.kernel;
    kernel.kind = KernelKind::matrix;
    kernel.layer_class = node.layer_class.empty() ? product.layer_class : node.layer_class;
    kernel.einsum = product.einsum;
    kernel.inputs = policy_.inputs;
    kernel.accumulate = policy_.accumulate;
    kernel.outputs = policy_.outputs;
    draft.instance.name = name_of(n);
    draft.instance.nodes = {NodeId(n)};
    if (product.weights_constant) {
      kernel.unique_weight_elements = facts_.elements[product.weights.at()];
      const std::int64_t bytes = stored_bytes(kernel.unique_weight_elements, bits_.weights);
      kernel.unique_weight_bytes = bytes;
      draft.instance.parameters.push_back({product.weights, 0, bytes, bytes, false});
    } else {
      const std::int32_t root = facts_.root[product.weights.at()];
      draft.instance.reads.push_back({builder_.buffer(root), 0, builder_.bytes(root)});
    }
    const std::int32_t root = facts_.root[product.inputs.at()];
    draft.instance.reads.push_back({builder_.buffer(root), 1, builder_.bytes(root)});
    kernel.alternatives.push_back({fmt::format("{} to {}", policy_.inputs, policy_.accumulate), true,
                                   "the policy's formats, supported by the array"});
    kernel.alternatives.push_back({"sparse", false, "sparsity is off"});
    return draft;
  }

  Status matrix(std::size_t n) {
    PL_TRY(const MatrixProduct product, make_product(shaped_, facts_, n, bits_));
    const auto& node = shaped_.graph.nodes[n];
    const std::int32_t root = facts_.root[node.outputs[0].at()];
    Draft draft = product_draft(product, n);
    const FusionOptions fusion{options_.fuse_epilogue, options_.fuse_attention && !product.weights_constant};
    Epilogue epilogue;
    epilogue.result = root;
    if (fusion.elementwise || fusion.softmax) epilogue = grow_epilogue(shaped_, facts_, root, fusion, claimed_);
    for (Alternative& considered : epilogue.considered) draft.kernel.alternatives.push_back(std::move(considered));
    if (!options_.fuse_epilogue && !epilogue.softmax) return unfused(product, n, std::move(draft));
    return fused(product, n, epilogue, std::move(draft));
  }

  Status fused(const MatrixProduct& product, std::size_t n, const Epilogue& epilogue, Draft draft) {
    const auto& node = shaped_.graph.nodes[n];
    if (product.bias.valid()) {
      VectorStep step = bias_step(product, node, draft);
      draft.kernel.steps.push_back(std::move(step));
    }
    std::vector<std::int32_t> inside{facts_.root[node.outputs[0].at()]};
    for (const std::int32_t member : epilogue.nodes) {
      const auto at = static_cast<std::size_t>(member);
      const auto& joined = shaped_.graph.nodes[at];
      VectorStep step;
      step.op = joined.op;
      PL_TRY(step.operations, operations(at, step.elements));
      builder_.read_operands(joined, *facts_.rows[at], inside, step, draft);
      inside.push_back(facts_.root[joined.outputs[0].at()]);
      draft.instance.nodes.push_back(NodeId(member));
      draft.kernel.steps.push_back(std::move(step));
      claimed_[at] = true;
    }
    const auto result = static_cast<std::size_t>(epilogue.result);
    if (policy_.accumulate != policy_.outputs) draft.kernel.steps.push_back(narrowing(facts_.elements[result]));
    const std::int32_t buffer = builder_.buffer(epilogue.result);
    Buffer& written = builder_.at(buffer);
    const int groups = draft.kernel.einsum.dim("G");
    if (epilogue.softmax && groups >= 0) {
      const std::int64_t count = draft.kernel.einsum.dims[static_cast<std::size_t>(groups)];
      written.on_chip = std::min(written.bytes, kStreamedCopies * ((written.bytes + count - 1) / count));
    }
    draft.instance.writes.push_back({buffer, 2, written.bytes});
    if (options_.fuse_in_place && !epilogue.softmax) mark_replaceable(draft);
    if (epilogue.nodes.empty()) {
      builder_.emit(std::move(draft));
    } else {
      // Runs where its last node stands: only there are all other operands of the epilogue made.
      pending_[static_cast<std::size_t>(epilogue.nodes.back())] = static_cast<std::int32_t>(drafts_.size());
      drafts_.push_back(std::move(draft));
    }
    return Done{};
  }

  /// Sums leave the array in the accumulator's format; bias and narrowing are kernels of their own.
  Status unfused(const MatrixProduct& product, std::size_t n, Draft draft) {
    const auto& node = shaped_.graph.nodes[n];
    const std::int32_t root = facts_.root[node.outputs[0].at()];
    const bool narrow = policy_.accumulate != policy_.outputs;
    std::vector<VectorStep> steps;
    Draft biased;
    if (product.bias.valid()) steps.push_back(bias_step(product, node, biased));
    if (narrow) steps.push_back(narrowing(facts_.elements[static_cast<std::size_t>(root)]));
    std::int32_t last = steps.empty() ? builder_.buffer(root) : builder_.raw_buffer(root, bits_.accumulate);
    if (!steps.empty()) draft.kernel.einsum.operands[2].bits = bits_.accumulate;
    draft.instance.writes.push_back({last, 2, builder_.at(last).bytes});
    const std::string layer_class = draft.kernel.layer_class;
    builder_.emit(std::move(draft));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Draft own;
      if (steps[i].op == "bias") std::swap(own, biased);
      const bool final = i + 1 == steps.size();
      const std::int32_t next = final ? builder_.buffer(root) : builder_.raw_buffer(root, bits_.accumulate);
      own.kernel.kind = KernelKind::vector;
      own.kernel.layer_class = layer_class;
      own.instance.name = name_of(n) + "/" + steps[i].op;
      own.instance.nodes = {NodeId(n)};
      steps[i].input_bytes += builder_.at(last).bytes;
      steps[i].output_bytes = builder_.at(next).bytes;
      own.instance.reads.push_back({last, -1, builder_.at(last).bytes});
      own.instance.writes.push_back({next, -1, builder_.at(next).bytes});
      mark_replaceable(own);
      own.kernel.alternatives = {{"fused " + steps[i].op, false, "epilogue fusion is off"}};
      own.kernel.steps = {std::move(steps[i])};
      builder_.emit(std::move(own));
      last = next;
    }
    return Done{};
  }

  const ingest::ShapedGraph& shaped_;
  const GraphFacts& facts_;
  FormatBits bits_;
  const ingest::CompileOptions& options_;
  const ingest::Policy& policy_;
  Builder builder_;
  std::vector<bool> claimed_;
  std::vector<std::int32_t> pending_;  ///< by node: the draft that runs there
  std::vector<Draft> drafts_;
};

Status check_formats(const ingest::Policy& policy, const FormatBits& bits, const ingest::Accelerator& accelerator) {
  const bool found = std::any_of(accelerator.formats.begin(), accelerator.formats.end(), [&](const auto& format) {
    return format.inputs == policy.inputs && format.accumulate == policy.accumulate;
  });
  if (!found) {
    std::string supported;
    for (const auto& format : accelerator.formats) {
      supported += fmt::format("{}{} to {}", supported.empty() ? "" : ", ", format.inputs, format.accumulate);
    }
    return make_error("unsupported", policy.inputs_at,
                      fmt::format("the array of '{}' does not multiply {} into {} (policy '{}')", accelerator.name,
                                  policy.inputs, policy.accumulate, policy.name),
                      "it supports: " + supported);
  }
  if (bits.weights > bits.inputs) {
    return make_error(
        "unsupported", policy.weights_at,
        fmt::format("weights in {} are wider than the {} operands of the array", policy.weights, policy.inputs));
  }
  return Done{};
}

}  // namespace

Result<KernelGraph> lower(const ingest::ShapedGraph& graph, const ingest::CompileOptions& options,
                          const ingest::Policy& policy, const ingest::Accelerator& accelerator) {
  if (options.sparsity != "off") {
    return make_error("unsupported", {}, "sparse execution is not modelled", "write sparsity: off");
  }
  if (options.constraints.size() > kMostConstraintRows) {
    return make_error("too-large", options.constraints[kMostConstraintRows].span,
                      fmt::format("more than {} constraint rows", kMostConstraintRows));
  }
  PL_TRY(const FormatBits bits, policy_bits(policy));
  PL_TRY_STATUS(check_formats(policy, bits, accelerator));
  PL_TRY(const GraphFacts facts, inspect(graph));
  PL_TRY(KernelGraph made, Walk(graph, facts, bits, options, policy).run());
  if (options.fuse_chains) made.chains = find_chains(graph, facts, made);
  return made;
}

}  // namespace plumbline::lower
