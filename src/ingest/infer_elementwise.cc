// Operators that work element by element or along one axis: their result has the shape of their input, or of several
// inputs stretched together.
#include <fmt/format.h>

#include "ingest/graph_text.h"
#include "ingest/infer_rules.h"
#include "ingest/shape_math.h"

namespace plumbline::ingest {

namespace {

// The shape of all inputs in [first, count) stretched together.
Result<Shape> stretched(const Step& step, std::size_t first, std::size_t count) {
  Shape out = step.shape(first);
  for (std::size_t i = first + 1; i < count; ++i) {
    auto joined = broadcast(out, step.shape(i));
    if (!joined) {
      return step.wrong(
          fmt::format("shapes {} and {} cannot be stretched together", shape_text(out), shape_text(step.shape(i))),
          "aligned at their last axes, dimensions must be equal or 1");
    }
    out = std::move(*joined);
  }
  return out;
}

Result<ElementType> type_attribute(const Step& step, std::string_view name, ElementType fallback) {
  const std::int64_t number = step.integer(name, static_cast<std::int64_t>(fallback));
  const auto type = static_cast<ElementType>(number);
  if (number < 0 || number > INT32_MAX || (element_bits(type) == 0 && type != ElementType::string)) {
    return step.wrong(fmt::format("attribute '{}' names element type {}, which is not known", name, number));
  }
  return type;
}

// A vector of one value per channel (axis 1 of input 0).
Status expect_per_channel(const Step& step, std::size_t i) {
  PL_TRY_STATUS(step.expect_rank(i, 1));
  if (step.shape(i)[0] == step.shape(0)[1]) return Done{};
  return step.wrong(fmt::format("input {} holds {} values for {} channels", i, step.shape(i)[0], step.shape(0)[1]));
}

}  // namespace

Status infer_same(Step& step) { return step.give(0, step.shape(0), step.type(0)); }

Status infer_same_boolean(Step& step) { return step.give(0, step.shape(0), ElementType::boolean); }

Status infer_along_axis(Step& step) {
  if (step.has("axis")) {
    // Softmax of opset 7 to 12 flattens at the axis, which may also be the rank itself.
    const std::int64_t axis = step.integer("axis", 0);
    if (axis != static_cast<std::int64_t>(step.rank(0))) {
      PL_TRY([[maybe_unused]] const std::size_t front, step.axis(axis, step.rank(0)));
    }
  }
  return infer_same(step);
}

Status infer_channels(Step& step) {
  PL_TRY_STATUS(step.expect_rank_at_least(0, 2));
  return infer_same(step);
}

Status infer_dropout(Step& step) {
  PL_TRY_STATUS(step.give(1, step.shape(0), ElementType::boolean));
  return infer_same(step);
}

Status infer_eye_like(Step& step) {
  PL_TRY_STATUS(step.expect_rank(0, 2));
  PL_TRY(const ElementType type, type_attribute(step, "dtype", step.type(0)));
  return step.give(0, step.shape(0), type);
}

Status infer_cast(Step& step) {
  if (!step.has("to")) return step.wrong("attribute 'to' is missing");
  PL_TRY(const ElementType type, type_attribute(step, "to", ElementType::undefined));
  return step.give(0, step.shape(0), type);
}

Status infer_cast_like(Step& step) { return step.give(0, step.shape(0), step.type(1)); }

Status infer_one_way(Step& step) {
  const auto joined = broadcast(step.shape(0), step.shape(1));
  if (joined != step.shape(0)) {
    return step.wrong(
        fmt::format("shape {} cannot be stretched to {}", shape_text(step.shape(1)), shape_text(step.shape(0))));
  }
  return infer_same(step);
}

Status infer_broadcast(Step& step) {
  PL_TRY(Shape shape, stretched(step, 0, step.input_count()));
  return step.give(0, std::move(shape), step.type(0));
}

Status infer_broadcast_boolean(Step& step) {
  PL_TRY(Shape shape, stretched(step, 0, step.input_count()));
  return step.give(0, std::move(shape), ElementType::boolean);
}

Status infer_where(Step& step) {
  PL_TRY(Shape shape, stretched(step, 0, 3));
  return step.give(0, std::move(shape), step.type(1));
}

Status infer_quantize(Step& step) {
  const ElementType fallback = step.has_input(2) ? step.type(2) : ElementType::uint8;
  // output_dtype 0 means "as the zero point".
  if (step.integer("output_dtype", 0) == 0) return step.give(0, step.shape(0), fallback);
  PL_TRY(const ElementType type, type_attribute(step, "output_dtype", fallback));
  return step.give(0, step.shape(0), type);
}

Status infer_dequantize(Step& step) { return step.give(0, step.shape(0), step.type(1)); }

Status infer_dynamic_quantize(Step& step) {
  PL_TRY_STATUS(step.give(1, {}, ElementType::float32));
  PL_TRY_STATUS(step.give(2, {}, ElementType::uint8));
  return step.give(0, step.shape(0), ElementType::uint8);
}

Status infer_qlinear_add(Step& step) {
  // A, A_scale, A_zero_point, B, B_scale, B_zero_point, C_scale, C_zero_point
  if (!step.has_input(3)) return step.wrong("input 3 (the second operand) is missing");
  auto joined = broadcast(step.shape(0), step.shape(3));
  if (!joined) {
    return step.wrong(fmt::format("shapes {} and {} cannot be stretched together", shape_text(step.shape(0)),
                                  shape_text(step.shape(3))));
  }
  return step.give(0, std::move(*joined), step.type(0));
}

Status infer_batch_normalization(Step& step) {
  PL_TRY_STATUS(step.expect_rank_at_least(0, 2));
  for (std::size_t i = 1; i < 5; ++i) PL_TRY_STATUS(expect_per_channel(step, i));
  for (std::size_t i = 1; i < step.output_count(); ++i) PL_TRY_STATUS(step.give(i, step.shape(3), step.type(3)));
  return infer_same(step);
}

Status infer_instance_normalization(Step& step) {
  PL_TRY_STATUS(step.expect_rank_at_least(0, 2));
  for (std::size_t i = 1; i < 3; ++i) PL_TRY_STATUS(expect_per_channel(step, i));
  return infer_same(step);
}

Status infer_layer_normalization(Step& step) {
  PL_TRY(const std::size_t axis, step.axis(step.integer("axis", -1), step.rank(0)));
  for (std::size_t i = 1; i < step.input_count(); ++i) {
    if (!step.has_input(i)) continue;
    const Shape normalised(step.shape(0).begin() + static_cast<std::ptrdiff_t>(axis), step.shape(0).end());
    if (broadcast(normalised, step.shape(i)) == normalised) continue;
    return step.wrong(fmt::format("input {} of shape {} does not fit the normalised axes {}", i,
                                  shape_text(step.shape(i)), shape_text(normalised)));
  }
  Shape statistics = step.shape(0);
  for (std::size_t i = axis; i < statistics.size(); ++i) statistics[i] = 1;
  PL_TRY_STATUS(step.give(1, statistics, ElementType::float32));
  PL_TRY_STATUS(step.give(2, statistics, ElementType::float32));
  return infer_same(step);
}

Status infer_skip_layer_normalization(Step& step) {
  PL_TRY_STATUS(step.expect_rank_at_least(0, 1));
  Shape statistics = step.shape(0);
  statistics.back() = 1;
  PL_TRY_STATUS(step.give(1, statistics, ElementType::float32));
  PL_TRY_STATUS(step.give(2, statistics, ElementType::float32));
  PL_TRY_STATUS(step.give(3, step.shape(0), step.type(0)));
  return infer_same(step);
}

}  // namespace plumbline::ingest
