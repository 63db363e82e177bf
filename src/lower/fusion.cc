#include "lower/fusion.h"

#include <algorithm>

namespace plumbline::lower {
namespace {

/// Growth is bounded so that a long elementwise tail cannot make lowering quadratic.
constexpr std::size_t kMostSteps = 32;

struct Member {
  std::int32_t root = -1;
  std::size_t outside = 0;  ///< consumers that have not joined
};

class Growth {
 public:
  Growth(const ingest::ShapedGraph& shaped, const GraphFacts& facts, const std::vector<bool>& claimed)
      : shaped_(shaped), facts_(facts), claimed_(claimed) {}

  void admit(std::int32_t root) {
    members_.push_back({root, facts_.consumers(root).size()});
    for (const std::int32_t node : facts_.consumers(root)) {
      if (std::find(waiting_.begin(), waiting_.end(), node) == waiting_.end()) waiting_.push_back(node);
    }
    std::sort(waiting_.begin(), waiting_.end(), std::greater<>());
  }

  /// The earliest node that reads a member and has not been looked at; -1 when there is none.
  std::int32_t next() {
    if (waiting_.empty()) return -1;
    const std::int32_t node = waiting_.back();
    waiting_.pop_back();
    return node;
  }

  [[nodiscard]] bool same_size(std::int32_t node) const {
    const auto& outputs = shaped_.graph.nodes[static_cast<std::size_t>(node)].outputs;
    return outputs.size() == 1 &&
           facts_.elements[outputs[0].at()] == facts_.elements[static_cast<std::size_t>(members_.front().root)];
  }
  [[nodiscard]] bool taken(std::int32_t node) const { return claimed_[static_cast<std::size_t>(node)]; }

  /// The node joins: its member inputs have one reader less outside.
  void join(std::int32_t node) {
    const ingest::Node& made = shaped_.graph.nodes[static_cast<std::size_t>(node)];
    for (Member& member : members_) {
      const bool reads = std::any_of(made.inputs.begin(), made.inputs.end(),
                                     [&](TensorId id) { return id.valid() && facts_.root[id.at()] == member.root; });
      if (reads) --member.outside;
    }
    admit(facts_.root[made.outputs[0].at()]);
  }

  /// The one member read from outside, -1 when there are several.
  [[nodiscard]] std::int32_t only_result() const {
    std::int32_t result = -1;
    for (const Member& member : members_) {
      if (member.outside == 0 && !facts_.leaves[static_cast<std::size_t>(member.root)]) continue;
      if (result >= 0) return -1;
      result = member.root;
    }
    return result;
  }

 private:
  const ingest::ShapedGraph& shaped_;
  const GraphFacts& facts_;
  const std::vector<bool>& claimed_;
  std::vector<Member> members_;
  std::vector<std::int32_t> waiting_;
};

bool along_last_axis(const ingest::ShapedGraph& shaped, const ingest::Node& node) {
  const auto rank = static_cast<std::int64_t>(shaped.shape(node.inputs[0]).size());
  const std::int64_t axis = integer_attribute(node, "axis", -1);
  return axis == -1 || axis == rank - 1;
}

/// A softmax whose every reader is a product of two activations.
bool feeds_context(const ingest::ShapedGraph& shaped, const GraphFacts& facts, const ingest::Node& node) {
  const auto readers = facts.consumers(facts.root[node.outputs[0].at()]);
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](std::int32_t reader) {
    if (facts.rows[static_cast<std::size_t>(reader)]->lowering != Lowering::matmul) return false;
    const auto& inputs = shaped.graph.nodes[static_cast<std::size_t>(reader)].inputs;
    return std::none_of(inputs.begin(), inputs.end(), [&](TensorId id) { return facts.constant[id.at()]; });
  });
}

}  // namespace

Epilogue grow_epilogue(const ingest::ShapedGraph& shaped, const GraphFacts& facts, std::int32_t product,
                       const FusionOptions& options, const std::vector<bool>& claimed) {
  Epilogue best;
  best.result = product;
  Growth growth(shaped, facts, claimed);
  growth.admit(product);
  std::vector<std::int32_t> joined;
  const auto refuse = [&](const ingest::Node& node, const char* reason) {
    best.considered.push_back({"fused " + node.op, false, reason});
  };
  while (joined.size() < kMostSteps) {
    const std::int32_t n = growth.next();
    if (n < 0) break;
    const ingest::Node& node = shaped.graph.nodes[static_cast<std::size_t>(n)];
    const Fusion fusion = facts.rows[static_cast<std::size_t>(n)]->fusion;
    if (growth.taken(n)) {
      refuse(node, "already part of another kernel");
      continue;
    }
    // That a product ends an epilogue needs no saying.
    if (facts.rows[static_cast<std::size_t>(n)]->matrix()) continue;
    if (fusion == Fusion::none) {
      refuse(node, "not an operation on single elements");
      continue;
    }
    if (!growth.same_size(n)) {
      refuse(node, "changes the number of elements");
      continue;
    }
    const bool softmax = fusion == Fusion::softmax;
    if (softmax && !options.softmax) {
      refuse(node, "attention fusion is off, or the scores are no product of two activations");
      continue;
    }
    if (softmax && !(along_last_axis(shaped, node) && feeds_context(shaped, facts, node))) {
      refuse(node, "not a softmax between two products of activations");
      continue;
    }
    growth.join(n);
    joined.push_back(n);
    const std::int32_t result = growth.only_result();
    if (result >= 0 && (softmax || options.elementwise)) {
      best.nodes = joined;
      best.result = result;
      best.softmax = softmax;
    }
    if (softmax) break;
  }
  for (const std::int32_t n : joined) {
    const bool chosen = std::find(best.nodes.begin(), best.nodes.end(), n) != best.nodes.end();
    best.considered.push_back({"fused " + shaped.graph.nodes[static_cast<std::size_t>(n)].op, chosen,
                               chosen ? "applied while the result drains; nothing else reads what is between"
                               : options.elementwise ? "a value between is read elsewhere"
                                                     : "epilogue fusion is off"});
  }
  return best;
}

}  // namespace plumbline::lower
