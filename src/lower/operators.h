#pragma once
// How operators lower: the rows of operators.inc.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::lower {

enum class Lowering : std::uint8_t { matmul, gemm, conv, vector, gather, movement, view, fixed };
enum class CountedOn : std::uint8_t { outputs, inputs, addends, window };
enum class Fusion : std::uint8_t { none, elementwise, softmax };
enum class InPlace : std::uint8_t { never, row, element };

/// One row of operators.inc; its head explains the columns.
struct OperatorRow {
  std::string_view domain;
  std::string_view name;
  Lowering lowering;
  std::int64_t operations;
  CountedOn counted_on;
  Fusion fusion;
  InPlace in_place;
  int data;
  int weight;
  int bias;
  [[nodiscard]] bool matrix() const {
    return lowering == Lowering::matmul || lowering == Lowering::gemm || lowering == Lowering::conv;
  }
};

/// nullptr when the operator has no row. The domain "ai.onnx" is the standard one.
[[nodiscard]] const OperatorRow* find_operator(std::string_view domain, std::string_view name);
/// Every operator name, for suggestions.
[[nodiscard]] std::vector<std::string> operator_names();

}  // namespace plumbline::lower
