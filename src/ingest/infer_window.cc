// Operators that slide a window over the spatial axes: convolution and pooling.
#include <fmt/format.h>

#include <algorithm>

#include "ingest/graph_limits.h"
#include "ingest/graph_text.h"
#include "ingest/infer_rules.h"
#include "ingest/shape_math.h"

namespace plumbline::ingest {

namespace {

enum class AutoPad { none, valid, same };

struct Window {
  std::vector<std::int64_t> kernel, strides, dilations, pads;
  AutoPad auto_pad = AutoPad::none;
};

Result<std::vector<std::int64_t>> window_list(const Step& step, std::string_view name, std::size_t length,
                                              std::int64_t fallback, std::int64_t low) {
  if (!step.has(name)) return std::vector<std::int64_t>(length, fallback);
  auto list = step.integers(name);
  if (list.size() != length) {
    return step.wrong(fmt::format("attribute '{}' has {} values, {} are needed", name, list.size(), length));
  }
  for (const std::int64_t value : list) {
    if (value >= low && value <= kMaxWindow) continue;
    return step.wrong(fmt::format("attribute '{}' holds {}, outside {} to {}", name, value, low, kMaxWindow));
  }
  return list;
}

// `kernel` is the window known from the weights; empty when the attribute must say it.
Result<Window> read_window(const Step& step, std::size_t spatial, const Shape& kernel) {
  Window window;
  if (kernel.empty() && !step.has("kernel_shape")) return step.wrong("attribute 'kernel_shape' is missing");
  PL_TRY(window.kernel, window_list(step, "kernel_shape", spatial, 1, 1));
  if (!kernel.empty()) {
    if (step.has("kernel_shape") && window.kernel != kernel) {
      return step.wrong(fmt::format("attribute 'kernel_shape' is {}, but the weights' window is {}",
                                    shape_text(window.kernel), shape_text(kernel)));
    }
    window.kernel = kernel;
    for (const std::int64_t extent : kernel) {
      if (extent < 1 || extent > kMaxWindow) {
        return step.wrong(fmt::format("a window of {} is outside 1 to {}", shape_text(kernel), kMaxWindow));
      }
    }
  }
  PL_TRY(window.strides, window_list(step, "strides", spatial, 1, 1));
  PL_TRY(window.dilations, window_list(step, "dilations", spatial, 1, 1));
  PL_TRY(window.pads, window_list(step, "pads", 2 * spatial, 0, 0));
  const std::string auto_pad = step.text("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    window.auto_pad = AutoPad::same;
  } else if (auto_pad == "VALID") {
    window.auto_pad = AutoPad::valid;
  } else if (auto_pad != "NOTSET" && !auto_pad.empty()) {
    return step.wrong(fmt::format("attribute 'auto_pad' is {}", quoted(auto_pad)),
                      "one of: NOTSET, SAME_UPPER, SAME_LOWER, VALID");
  }
  return window;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Positions of the window along each spatial axis of `in` (without batch and channels).
Result<Shape> positions(const Step& step, const Window& window, const Shape& in, bool ceil) {
  Shape out;
  const std::size_t spatial = in.size();
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t stride = window.strides[i];
    if (window.auto_pad == AutoPad::same) {
      out.push_back(ceil_div(in[i], stride));
      continue;
    }
    const bool padded = window.auto_pad == AutoPad::none;
    const std::int64_t before = padded ? window.pads[i] : 0;
    const std::int64_t after = padded ? window.pads[i + spatial] : 0;
    const std::int64_t reach = window.dilations[i] * (window.kernel[i] - 1) + 1;
    const std::int64_t slack = in[i] + before + after - reach;
    if (slack < 0) {
      return step.wrong(fmt::format("a window of {} elements does not fit spatial axis {} of {} with {} of padding",
                                    reach, i, in[i], before + after));
    }
    std::int64_t count = (ceil ? ceil_div(slack, stride) : slack / stride) + 1;
    // With ceil_mode a last window that would start in the padding behind the input is dropped (ONNX, AveragePool).
    if (ceil && (count - 1) * stride >= in[i] + before) --count;
    out.push_back(count);
  }
  return out;
}

Shape spatial_part(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

// Output shape of a convolution of input x with weights w [M, C/group, window…].
Result<Shape> convolved(const Step& step, std::size_t x_input, std::size_t w_input) {
  PL_TRY_STATUS(step.expect_rank_at_least(x_input, 3));
  PL_TRY_STATUS(step.expect_rank(w_input, step.rank(x_input)));
  const Shape& x = step.shape(x_input);
  const Shape& w = step.shape(w_input);
  const std::int64_t group = step.integer("group", 1);
  if (group < 1 || group > kMaxExtent) return step.wrong(fmt::format("attribute 'group' is {}", group));
  if (x[1] % group != 0 || x[1] / group != w[1] || w[0] % group != 0) {
    return step.wrong(fmt::format("an input of {} channels in {} groups does not fit weights of shape {}", x[1], group,
                                  shape_text(w)));
  }
  PL_TRY(const Window window, read_window(step, x.size() - 2, spatial_part(w)));
  PL_TRY(const Shape out, positions(step, window, spatial_part(x), false));
  Shape shape = {x[0], w[0]};
  shape.insert(shape.end(), out.begin(), out.end());
  return shape;
}

Status expect_bias(const Step& step, std::size_t i, std::int64_t channels) {
  if (!step.has_input(i)) return Done{};
  PL_TRY_STATUS(step.expect_rank(i, 1));
  if (step.shape(i)[0] == channels) return Done{};
  return step.wrong(fmt::format("a bias of {} values for {} output channels", step.shape(i)[0], channels));
}

}  // namespace

Status infer_conv(Step& step) {
  PL_TRY(Shape shape, convolved(step, 0, 1));
  PL_TRY_STATUS(expect_bias(step, 2, shape[1]));
  return step.give(0, std::move(shape), step.type(0));
}

Status infer_conv_integer(Step& step) {
  PL_TRY(Shape shape, convolved(step, 0, 1));
  return step.give(0, std::move(shape), ElementType::int32);
}

Status infer_qlinear_conv(Step& step) {
  // x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, bias
  PL_TRY(Shape shape, convolved(step, 0, 3));
  PL_TRY_STATUS(expect_bias(step, 8, shape[1]));
  return step.give(0, std::move(shape), step.type(7));
}

Status infer_conv_transpose(Step& step) {
  PL_TRY_STATUS(step.expect_rank_at_least(0, 3));
  PL_TRY_STATUS(step.expect_rank(1, step.rank(0)));
  const Shape& x = step.shape(0);
  const Shape& w = step.shape(1);  // [C, M/group, window…]
  const std::size_t spatial = x.size() - 2;
  const std::int64_t group = step.integer("group", 1);
  if (group < 1 || group > kMaxWindow || x[1] != w[0] || x[1] % group != 0) {
    return step.wrong(fmt::format("an input of {} channels in {} groups does not fit weights of shape {}", x[1], group,
                                  shape_text(w)));
  }
  PL_TRY(const Window window, read_window(step, spatial, spatial_part(w)));
  PL_TRY(const auto extra, window_list(step, "output_padding", spatial, 0, 0));
  PL_TRY(auto wanted, window_list(step, "output_shape", spatial, 0, 0));
  if (w[1] > kMaxExtent / group) return step.wrong("too many output channels");
  Shape shape = {x[0], w[1] * group};
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t reach = window.dilations[i] * (window.kernel[i] - 1) + 1;
    std::int64_t extent = window.strides[i] * (x[i + 2] - 1) + extra[i] + reach;
    if (window.auto_pad == AutoPad::none) extent -= window.pads[i] + window.pads[i + spatial];
    if (window.auto_pad == AutoPad::same) extent = x[i + 2] * window.strides[i];
    if (step.has("output_shape")) extent = wanted[i];
    shape.push_back(extent);
  }
  PL_TRY_STATUS(expect_bias(step, 2, shape[1]));
  return step.give(0, std::move(shape), step.type(0));
}

Status infer_pool(Step& step) {
  PL_TRY_STATUS(step.expect_rank_at_least(0, 3));
  const Shape& x = step.shape(0);
  PL_TRY(const Window window, read_window(step, x.size() - 2, {}));
  PL_TRY(const Shape out, positions(step, window, spatial_part(x), step.integer("ceil_mode", 0) != 0));
  Shape shape = {x[0], x[1]};
  shape.insert(shape.end(), out.begin(), out.end());
  PL_TRY_STATUS(step.give(1, shape, ElementType::int64));
  return step.give(0, std::move(shape), step.type(0));
}

Status infer_global_pool(Step& step) {
  PL_TRY_STATUS(step.expect_rank_at_least(0, 3));
  Shape shape = step.shape(0);
  std::fill(shape.begin() + 2, shape.end(), 1);
  return step.give(0, std::move(shape), step.type(0));
}

}  // namespace plumbline::ingest
