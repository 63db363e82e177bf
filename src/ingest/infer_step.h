#pragma once
// One node under shape inference: what is known of its inputs, and where its rule puts what it finds.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/result.h"
#include "ingest/graph.h"

namespace plumbline::ingest {

/// The elements of a small tensor in row-major order: integers and booleans, or reals.
using Contents = std::variant<std::vector<std::int64_t>, std::vector<double>>;

[[nodiscard]] std::size_t size_of(const Contents& contents);

/// What inference knows so far, by TensorId. Shapes, element types and integer contents end up in the ShapedGraph.
struct Inference {
  ShapedGraph* shaped = nullptr;
  std::vector<std::optional<Contents>> contents;
  std::size_t followed = 0;  ///< elements held in `contents`
};

class Step {
 public:
  Step(Inference& inference, NodeId node);

  [[nodiscard]] const Node& node() const { return *node_; }
  [[nodiscard]] std::size_t input_count() const { return node_->inputs.size(); }
  [[nodiscard]] std::size_t output_count() const { return node_->outputs.size(); }
  [[nodiscard]] bool has_input(std::size_t i) const;
  [[nodiscard]] bool has_output(std::size_t i) const;
  /// Shape and element type of input i, which must be present.
  [[nodiscard]] const Shape& shape(std::size_t i) const;
  [[nodiscard]] std::size_t rank(std::size_t i) const { return shape(i).size(); }
  [[nodiscard]] ElementType type(std::size_t i) const;
  /// Contents of input i; nullptr when absent or not followed.
  [[nodiscard]] const Contents* contents(std::size_t i) const;
  /// Shape and contents of output i once they were given; nullptr before.
  [[nodiscard]] const Shape& output_shape(std::size_t i) const;
  [[nodiscard]] ElementType output_type(std::size_t i) const;

  /// Contents of input i as integers or reals (integers convert), or a diagnostic that the `what` of the node
  /// depends on values that are known only at run time.
  [[nodiscard]] Result<std::vector<std::int64_t>> known_integers(std::size_t i, std::string_view what) const;
  [[nodiscard]] Result<std::vector<double>> known_reals(std::size_t i, std::string_view what) const;

  // Attributes. link_graph() has checked names and kinds against the operator's row.
  [[nodiscard]] bool has(std::string_view attribute) const;
  [[nodiscard]] std::int64_t integer(std::string_view attribute, std::int64_t fallback) const;
  [[nodiscard]] std::string text(std::string_view attribute, std::string_view fallback) const;
  /// Empty when absent.
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view attribute) const;
  [[nodiscard]] std::vector<double> reals(std::string_view attribute) const;
  [[nodiscard]] const Attribute* attribute(std::string_view name) const;

  /// `axis` counted from the front, or a diagnostic; `rank` is that of the tensor it indexes.
  [[nodiscard]] Result<std::size_t> axis(std::int64_t value, std::size_t rank_of_tensor) const;
  /// The same for a list without repetition.
  [[nodiscard]] Result<std::vector<std::size_t>> axes(const std::vector<std::int64_t>& values,
                                                      std::size_t rank_of_tensor) const;

  /// Diagnostic unless input i has exactly, or at least, this rank.
  [[nodiscard]] Status expect_rank(std::size_t i, std::size_t wanted) const;
  [[nodiscard]] Status expect_rank_at_least(std::size_t i, std::size_t wanted) const;

  /// Records an output (nothing happens when the node omits it). Errors: a negative, overflowing or too long shape.
  [[nodiscard]] Status give(std::size_t output, Shape shape, ElementType type);
  /// Records contents of an output; ignored beyond the limits. They must match the shape given before.
  void give_contents(std::size_t output, Contents contents);

  /// "node 'name' (Op): message", kind onnx-shape.
  [[nodiscard]] Diagnostic wrong(std::string_view message, std::string help = {}) const;

 private:
  [[nodiscard]] const Tensor& tensor(std::size_t i) const;
  [[nodiscard]] Diagnostic unknown_contents(std::size_t i, std::string_view what) const;

  Inference* inference_;
  const Node* node_;
};

}  // namespace plumbline::ingest
