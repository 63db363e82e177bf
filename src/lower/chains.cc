#include "lower/chains.h"

namespace plumbline::lower {
namespace {

/// Vector kernels between two products; more would be another model than any in the catalogue.
constexpr std::size_t kMostBetween = 8;

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

class Finder {
 public:
  Finder(const ingest::ShapedGraph& shaped, const GraphFacts& facts, const KernelGraph& graph)
      : shaped_(shaped), facts_(facts), graph_(graph), readers_(graph.buffers.size()) {
    for (std::size_t i = 0; i < graph.instances.size(); ++i) {
      for (const BufferUse& use : graph.instances[i].reads) readers_[static_cast<std::size_t>(use.buffer)].push_back(i);
    }
  }

  std::vector<Chain> run() {
    std::vector<Chain> chains;
    for (std::size_t i = 0; i < graph_.instances.size(); ++i) {
      if (kernel(i).kind != KernelKind::matrix) continue;
      Chain chain;
      if (follow(i, chain)) chains.push_back(std::move(chain));
    }
    return chains;
  }

 private:
  [[nodiscard]] const Kernel& kernel(std::size_t i) const { return graph_.kernels[graph_.instances[i].kernel.at()]; }
  [[nodiscard]] const Instance& instance(std::size_t i) const { return graph_.instances[i]; }
  [[nodiscard]] const Buffer& buffer(const BufferUse& use) const {
    return graph_.buffers[static_cast<std::size_t>(use.buffer)];
  }
  [[nodiscard]] std::int64_t elements(const BufferUse& use) const { return facts_.elements[buffer(use).tensor.at()]; }
  /// The node a kernel is named after.
  [[nodiscard]] const ingest::Node& node(std::size_t i) const {
    return shaped_.graph.nodes[instance(i).nodes.front().at()];
  }
  [[nodiscard]] const OperatorRow& row(std::size_t i) const { return *facts_.rows[instance(i).nodes.front().at()]; }

  /// The one instance that reads what `i` writes; kNone when it leaves the chain otherwise.
  [[nodiscard]] std::size_t only_reader(std::size_t i) const {
    if (instance(i).writes.size() != 1) return kNone;
    const BufferUse& written = instance(i).writes.front();
    const Buffer& made = buffer(written);
    const auto& readers = readers_[static_cast<std::size_t>(written.buffer)];
    // A buffer that is streamed already has nothing left to save.
    if (made.model_output || made.on_chip < made.bytes || readers.size() != 1) return kNone;
    return readers.front();
  }

  bool follow(std::size_t first, Chain& chain) const {
    std::vector<std::size_t> path{first};
    while (path.size() < kMostBetween + 2) {
      const std::size_t next = only_reader(path.back());
      if (next == kNone) return false;
      path.push_back(next);
      if (kernel(next).kind == KernelKind::matrix) return join(path, chain);
      if (kernel(next).kind != KernelKind::vector || reach(next) == InPlace::never) return false;
    }
    return false;
  }

  [[nodiscard]] InPlace reach(std::size_t i) const {
    // Parts of a product that stand alone when nothing is fused: one element each.
    if (row(i).matrix()) return InPlace::element;
    return row(i).in_place;
  }

  /// Elements that a kernel between needs together.
  [[nodiscard]] std::int64_t needed_together(std::size_t i) const {
    if (reach(i) == InPlace::element) return 1;
    const ingest::Shape& shape = shaped_.shape(node(i).inputs[0]);
    const auto rank = static_cast<std::int64_t>(shape.size());
    const std::int64_t axis = integer_attribute(node(i), "axis", -1);
    const bool last = rank > 0 && (axis == -1 || axis == rank - 1);
    return last ? shape.back() : elements(instance(i).writes.front());
  }

  bool join(const std::vector<std::size_t>& path, Chain& chain) const {
    const Einsum& from = kernel(path.front()).einsum;
    const Einsum& to = kernel(path.back()).einsum;
    const std::int32_t between = instance(path[path.size() - 2]).writes.front().buffer;
    int operand = -1;
    for (const BufferUse& use : instance(path.back()).reads) {
      if (use.buffer == between) operand = use.operand;
    }
    if (operand < 0) return false;
    const bool windows[] = {from.dim("P") >= 0, to.dim("P") >= 0};
    const bool convolutions = windows[0] && windows[1];
    const bool groups = !windows[0] && !windows[1] && from.dim("G") >= 0 && to.dim("G") >= 0;
    if (convolutions ? operand != 1 || !cut_rows(path, chain) : !groups && !same_rows(path, operand)) return false;
    const std::string unit(1, convolutions ? 'N' : groups ? 'G' : 'M');
    const bool attends = groups || to.operands[0].role != Role::weights;
    chain.kind = std::string(convolutions ? "conv" : attends ? "attention" : "mlp");
    chain.unit = std::string(convolutions ? "images" : groups ? "groups" : "rows");
    chain.units = size(from, unit);
    if (chain.units != size(to, unit) || (chain.units < 2 && chain.rows < 2)) return false;
    for (std::size_t m = 0; m < path.size(); ++m) {
      if (!add_member(path[m], unit, m + 1 == path.size(), chain)) return false;
      if (m + 1 < path.size()) chain.between.push_back(instance(path[m]).writes.front().buffer);
    }
    return true;
  }

  static std::int64_t size(const Einsum& einsum, const std::string& dim) {
    return einsum.dims[static_cast<std::size_t>(einsum.dim(dim))];
  }

  /// Two products without groups: the rows of the first result are the rows of the second input.
  [[nodiscard]] bool same_rows(const std::vector<std::size_t>& path, int operand) const {
    const Einsum& from = kernel(path.front()).einsum;
    const Einsum& to = kernel(path.back()).einsum;
    if (from.rank() != 3 || to.rank() != 3 || operand != 1) return false;
    for (const std::size_t i : {path.front(), path.back()}) {
      const auto& inputs = node(i).inputs;
      const TensorId a = inputs[static_cast<std::size_t>(row(i).data)];
      const TensorId b = inputs[static_cast<std::size_t>(row(i).weight)];
      if (facts_.constant[a.at()] && !facts_.constant[b.at()]) return false;  // computed transposed
    }
    if (integer_attribute(node(path.back()), "transA", 0) != 0) return false;
    return size(from, "M") == size(to, "M") && size(from, "N") == size(to, "K");
  }

  /// Where the window of the second convolution stands among the rows between.
  bool cut_rows(const std::vector<std::size_t>& path, Chain& chain) const {
    for (std::size_t m = 1; m + 1 < path.size(); ++m) {
      if (reach(path[m]) != InPlace::element) return false;
    }
    const Einsum& from = kernel(path.front()).einsum;
    const Einsum& to = kernel(path.back()).einsum;
    const ingest::Node& last = node(path.back());
    const ingest::Shape& x = shaped_.shape(last.inputs[static_cast<std::size_t>(row(path.back()).data)]);
    if (x.size() != 4) return true;  // one axis: images only
    chain.middle_rows = size(from, "P");
    if (x[2] != chain.middle_rows) return false;
    const auto strides = list_attribute(last, "strides");
    const auto dilations = list_attribute(last, "dilations");
    const auto pads = list_attribute(last, "pads");
    chain.stride = strides.empty() ? 1 : strides[0];
    chain.reach = (size(to, "R") - 1) * (dilations.empty() ? 1 : dilations[0]) + 1;
    chain.rows = size(to, "P");
    const auto automatic = last.attributes.find("auto_pad");
    const std::int64_t missing = (chain.rows - 1) * chain.stride + chain.reach - chain.middle_rows;
    if (!pads.empty()) {
      chain.padding = pads[0];
    } else if (automatic != last.attributes.end() && missing > 0) {
      const auto* text = std::get_if<std::string>(&automatic->second);
      chain.padding = text != nullptr && *text == "SAME_LOWER" ? (missing + 1) / 2 : missing / 2;
    }
    return true;
  }

  bool add_member(std::size_t i, const std::string& unit, bool last, Chain& chain) const {
    const Kernel& made = kernel(i);
    const bool matrix = made.kind == KernelKind::matrix;
    ChainMember member;
    member.instance = static_cast<std::int32_t>(i);
    if (matrix) {
      member.unit_dim = made.einsum.dim(unit);
      if (chain.kind == "conv") member.row_dim = made.einsum.dim("P");
    }
    const BufferUse& written = instance(i).writes.front();
    const std::int64_t whole = elements(written);
    if (whole % chain.units != 0 || (whole / chain.units) % (matrix ? 1 : needed_together(i)) != 0) return false;
    // A chunk's share must be whole bytes, or bytes would not add up.
    std::int64_t shares = chain.units;
    if (chain.rows > 0) shares *= last ? chain.rows : chain.middle_rows;
    if (written.bytes % shares != 0) return false;
    for (const VectorStep& step : made.steps) {
      if (step.elements % shares != 0 || step.operations % shares != 0) return false;
    }
    for (const BufferUse& use : instance(i).reads) {
      bool cut = false;
      if (use.operand >= 0) {
        cut = ((dims_of(made.einsum.operands[static_cast<std::size_t>(use.operand)]) >> member.unit_dim) & 1U) != 0;
      } else {
        cut = elements(use) == whole;
        if (cut && use.bytes % shares != 0) return false;
      }
      member.reads_cut.push_back(cut);
    }
    for (const ParameterUse& use : instance(i).parameters) {
      if (use.gathered) return false;
    }
    chain.members.push_back(std::move(member));
    return true;
  }

  const ingest::ShapedGraph& shaped_;
  const GraphFacts& facts_;
  const KernelGraph& graph_;
  std::vector<std::vector<std::size_t>> readers_;  ///< by buffer: instances, once per use
};

}  // namespace

std::vector<Chain> find_chains(const ingest::ShapedGraph& shaped, const GraphFacts& facts, const KernelGraph& graph) {
  return Finder(shaped, facts, graph).run();
}

}  // namespace plumbline::lower
