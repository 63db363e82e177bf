#include "lower/builder.h"

#include <algorithm>

#include "lower/match.h"

namespace plumbline::lower {
namespace {

bool same_operand(const Operand& a, const Operand& b) {
  return a.role == b.role && a.bits == b.bits && a.partial_bits == b.partial_bits && a.side_bits == b.side_bits &&
         a.side_group == b.side_group && a.axes == b.axes;
}

bool real(ingest::ElementType type) {
  switch (type) {
    case ingest::ElementType::undefined:
    case ingest::ElementType::float32:
    case ingest::ElementType::float16:
    case ingest::ElementType::float64:
    case ingest::ElementType::bfloat16:
      return true;
    default:
      return false;
  }
}

/// More than one axis: rows of values, such as position embeddings, not one value per channel.
bool is_table(const ingest::Shape& shape) {
  return std::count_if(shape.begin(), shape.end(), [](std::int64_t size) { return size > 1; }) > 1;
}

}  // namespace

bool same_content(const Kernel& a, const Kernel& b) {
  return a.kind == b.kind && a.constraint_rows == b.constraint_rows && a.einsum.dims == b.einsum.dims &&
         a.unique_weight_bytes == b.unique_weight_bytes && a.steps == b.steps && a.layer_class == b.layer_class &&
         a.einsum.dim_names == b.einsum.dim_names && a.inputs == b.inputs && a.accumulate == b.accumulate &&
         a.outputs == b.outputs &&
         std::equal(a.einsum.operands.begin(), a.einsum.operands.end(), b.einsum.operands.begin(),
                    b.einsum.operands.end(), same_operand);
}

void append(KernelGraph& graph, Kernel kernel, Instance instance) {
  const auto found = std::find_if(graph.kernels.begin(), graph.kernels.end(),
                                  [&](const Kernel& other) { return same_content(other, kernel); });
  instance.kernel = KernelId(static_cast<std::size_t>(found - graph.kernels.begin()));
  if (found == graph.kernels.end()) {
    kernel.name = instance.name;
    kernel.repeats = 1;
    graph.kernels.push_back(std::move(kernel));
  } else {
    ++found->repeats;
  }
  graph.instances.push_back(std::move(instance));
}

std::int64_t Kernel::macs() const {
  if (kind != KernelKind::matrix) return 0;
  std::int64_t product = 1;
  for (int d = 0; d < einsum.rank(); ++d) product *= einsum.dims[static_cast<std::size_t>(d)];
  return product;
}

std::int64_t Kernel::vector_operations() const {
  std::int64_t sum = 0;
  for (const VectorStep& step : steps) sum += step.operations;
  return sum;
}

int Kernel::weight_operand() const {
  for (std::size_t i = 0; i < einsum.operands.size(); ++i) {
    if (einsum.operands[i].role == Role::weights) return static_cast<int>(i);
  }
  return -1;
}

Builder::Builder(const ingest::ShapedGraph& shaped, const GraphFacts& facts, const FormatBits& bits,
                 const std::vector<ingest::ConstraintRow>& rows)
    : shaped_(shaped), facts_(facts), bits_(bits), rows_(rows), buffer_of_(shaped.graph.tensors.size(), -1) {
  out_.model = shaped.graph.name;
}

std::int64_t Builder::tensor_bytes(TensorId id) const {
  return stored_bytes(facts_.elements[id.at()], activation_bits(shaped_.graph.tensors[id.at()].type, bits_));
}

std::int64_t Builder::bytes(std::int32_t root) const { return tensor_bytes(TensorId(root)); }

std::int32_t Builder::buffer(std::int32_t root) {
  std::int32_t& slot = buffer_of_[static_cast<std::size_t>(root)];
  if (slot >= 0) return slot;
  Buffer made;
  made.tensor = TensorId(root);
  made.bytes = bytes(root);
  made.on_chip = made.bytes;
  made.model_input = facts_.enters[static_cast<std::size_t>(root)];
  made.model_output = facts_.leaves[static_cast<std::size_t>(root)];
  slot = static_cast<std::int32_t>(out_.buffers.size());
  out_.buffers.push_back(made);
  return slot;
}

std::int32_t Builder::raw_buffer(std::int32_t root, std::int64_t element_bits) {
  Buffer made;
  made.tensor = TensorId(root);
  made.bytes = stored_bytes(facts_.elements[static_cast<std::size_t>(root)], element_bits);
  made.on_chip = made.bytes;
  out_.buffers.push_back(made);
  return static_cast<std::int32_t>(out_.buffers.size()) - 1;
}

void Builder::read_operands(const ingest::Node& node, const OperatorRow& row, const std::vector<std::int32_t>& inside,
                            VectorStep& step, Draft& draft) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorId id = node.inputs[i];
    if (!id.valid()) continue;
    const std::int32_t root = facts_.root[id.at()];
    if (facts_.constant[id.at()]) {
      const bool table = row.lowering == Lowering::gather && static_cast<int>(i) == row.data;
      // Indices, axes and sizes are part of the program, not data the vector unit reads.
      if (!table && !real(shaped_.graph.tensors[id.at()].type)) continue;
      // One value per channel keeps the accumulator's width (an int8 bias would not do); tables keep the weights'.
      const std::int64_t element_bits = table || is_table(shaped_.shape(id)) ? bits_.weights
                                        : row.lowering == Lowering::movement ? bits_.outputs
                                                                             : bits_.accumulate;
      const std::int64_t stored = stored_bytes(facts_.elements[id.at()], element_bits);
      const std::int64_t read = table ? stored_bytes(facts_.elements[node.outputs[0].at()], element_bits) : stored;
      step.parameter_bytes += read;
      draft.kernel.unique_weight_bytes += std::min(read, stored);
      draft.instance.parameters.push_back({id, -1, read, stored, table});
      continue;
    }
    if (std::find(inside.begin(), inside.end(), root) != inside.end()) continue;
    const std::int32_t at = buffer(root);
    const auto& reads = draft.instance.reads;
    const bool repeated = std::any_of(reads.begin(), reads.end(),
                                      [&](const BufferUse& use) { return use.buffer == at && use.operand < 0; });
    if (repeated) continue;
    step.input_bytes += bytes(root);
    draft.instance.reads.push_back({at, -1, bytes(root)});
  }
}

void Builder::emit(Draft draft) {
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    // Rows by name part kernels that are otherwise the same.
    if (matches(rows_[r], draft.kernel.layer_class, draft.instance.name)) {
      draft.kernel.constraint_rows |= std::uint64_t{1} << r;
    }
  }
  append(out_, std::move(draft.kernel), std::move(draft.instance));
}

}  // namespace plumbline::lower
