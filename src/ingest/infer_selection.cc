// Some elements of a tensor, or its elements repeated: slice, gather, expand, tile, pad, resize.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ingest/graph_limits.h"
#include "ingest/graph_text.h"
#include "ingest/infer_rules.h"
#include "ingest/shape_math.h"
#include "ingest/value_pick.h"

namespace plumbline::ingest {

namespace {

/// Per axis of the input: first element, step and number of elements.
struct Cut {
  std::vector<std::int64_t> start, step, count;
};

Status cut_axis(const Step& step, Cut& cut, std::size_t axis, std::int64_t start, std::int64_t end,
                std::int64_t stride) {
  if (stride == 0) return step.wrong("a step of 0");
  const std::int64_t extent = step.shape(0)[axis];
  // Counting from the end, then clamped (ONNX Slice); extent is below 2^41, so nothing overflows.
  const auto clamp = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
    return std::clamp(at < 0 ? at + extent : at, low, high);
  };
  start = stride > 0 ? clamp(start, 0, extent) : clamp(start, -1, extent - 1);
  end = stride > 0 ? clamp(end, 0, extent) : clamp(end, -1, extent - 1);
  cut.start[axis] = start;
  cut.step[axis] = stride;
  // Steps beyond the extent select one element; this also keeps -stride from overflowing.
  const std::int64_t pace = std::clamp(stride, -kMaxExtent, kMaxExtent);
  const std::int64_t span = pace > 0 ? end - start : start - end;
  cut.count[axis] = span <= 0 ? 0 : (span + std::abs(pace) - 1) / std::abs(pace);
  cut.step[axis] = pace;
  return Done{};
}

Result<Cut> resolve_cut(const Step& step) {
  const Shape& in = step.shape(0);
  Cut cut{std::vector<std::int64_t>(in.size(), 0), std::vector<std::int64_t>(in.size(), 1), in};
  auto starts = step.integers("starts");
  auto ends = step.integers("ends");
  auto axes = step.integers("axes");
  std::vector<std::int64_t> strides;
  if (step.has_input(1) && step.has_input(2)) {
    PL_TRY(starts, step.known_integers(1, "starts"));
    PL_TRY(ends, step.known_integers(2, "ends"));
  }
  if (step.has_input(3)) {
    PL_TRY(axes, step.known_integers(3, "axes"));
  }
  if (step.has_input(4)) {
    PL_TRY(strides, step.known_integers(4, "steps"));
  }
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (strides.empty()) strides.assign(starts.size(), 1);
  if (starts.empty() || ends.size() != starts.size() || axes.size() != starts.size() ||
      strides.size() != starts.size()) {
    return step.wrong(fmt::format("{} starts, {} ends, {} axes and {} steps", starts.size(), ends.size(), axes.size(),
                                  strides.size()));
  }
  PL_TRY(const auto front, step.axes(axes, in.size()));
  for (std::size_t i = 0; i < front.size(); ++i) {
    PL_TRY_STATUS(cut_axis(step, cut, front[i], starts[i], ends[i], strides[i]));
  }
  return cut;
}

}  // namespace

Status infer_slice(Step& step) {
  PL_TRY(const Cut cut, resolve_cut(step));
  return step.give(0, cut.count, step.type(0));
}

Status value_slice(Step& step) {
  PL_TRY(const Cut cut, resolve_cut(step));
  const Shape strides = strides_of(step.shape(0));
  std::vector<std::size_t> from;
  for_each_coordinate(cut.count, [&](const Shape& at) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < at.size(); ++i) offset += (cut.start[i] + at[i] * cut.step[i]) * strides[i];
    from.push_back(static_cast<std::size_t>(offset));
  });
  step.give_contents(0, pick(*step.contents(0), from));
  return Done{};
}

Status infer_gather(Step& step) {
  const Shape& in = step.shape(0);
  PL_TRY(const std::size_t axis, step.axis(step.integer("axis", 0), in.size()));
  Shape out(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(axis));
  out.insert(out.end(), step.shape(1).begin(), step.shape(1).end());
  out.insert(out.end(), in.begin() + static_cast<std::ptrdiff_t>(axis) + 1, in.end());
  return step.give(0, std::move(out), step.type(0));
}

Status value_gather(Step& step) {
  const Shape& in = step.shape(0);
  if (in.size() != 1) return Done{};  // shapes are vectors
  PL_TRY(const auto indices, step.known_integers(1, "indices"));
  std::vector<std::size_t> from;
  for (const std::int64_t index : indices) {
    if (index < -in[0] || index >= in[0])
      return step.wrong(fmt::format("index {} is outside {} elements", index, in[0]));
    from.push_back(static_cast<std::size_t>(index < 0 ? index + in[0] : index));
  }
  step.give_contents(0, pick(*step.contents(0), from));
  return Done{};
}

Status infer_gather_elements(Step& step) {
  PL_TRY_STATUS(step.expect_rank(1, step.rank(0)));
  return step.give(0, step.shape(1), step.type(0));
}

Status infer_gather_nd(Step& step) {
  PL_TRY_STATUS(step.expect_rank_at_least(0, 1));
  PL_TRY_STATUS(step.expect_rank_at_least(1, 1));
  const Shape& in = step.shape(0);
  const Shape& indices = step.shape(1);
  const std::int64_t batch = step.integer("batch_dims", 0);
  const auto rank = static_cast<std::int64_t>(in.size());
  if (batch < 0 || batch >= static_cast<std::int64_t>(indices.size()) || batch >= rank || indices.back() < 1 ||
      indices.back() > rank - batch) {
    return step.wrong(
        fmt::format("indices of shape {} into {} with {} batch axes", shape_text(indices), shape_text(in), batch));
  }
  Shape out(indices.begin(), indices.end() - 1);
  out.insert(out.end(), in.begin() + batch + indices.back(), in.end());
  return step.give(0, std::move(out), step.type(0));
}

// Followed only where it replaces elements of a vector, as exporters do when they build a shape by assignment.
Status value_scatter_nd(Step& step) {
  if (step.rank(0) != 1 || step.text("reduction", "none") != "none") return Done{};
  const auto* indices = std::get_if<std::vector<std::int64_t>>(step.contents(1));
  Contents out = *step.contents(0);
  if (indices == nullptr || size_of(*step.contents(2)) != indices->size() || step.contents(2)->index() != out.index()) {
    return Done{};
  }
  const auto extent = static_cast<std::int64_t>(size_of(out));
  for (const std::int64_t index : *indices) {
    if (index < -extent || index >= extent)
      return step.wrong(fmt::format("index {} is outside {} elements", index, extent));
  }
  std::visit(
      [&](auto& elements) {
        const auto& updates = std::get<std::decay_t<decltype(elements)>>(*step.contents(2));
        for (std::size_t i = 0; i < indices->size(); ++i) {
          const std::int64_t index = (*indices)[i];
          elements[static_cast<std::size_t>(index < 0 ? index + extent : index)] = updates[i];
        }
      },
      out);
  step.give_contents(0, std::move(out));
  return Done{};
}

Status infer_expand(Step& step) {
  PL_TRY_STATUS(step.expect_rank(1, 1));
  PL_TRY(const Shape wanted, step.known_integers(1, "target dimensions"));
  for (const std::int64_t extent : wanted) {
    if (extent < 0) return step.wrong(fmt::format("a target dimension is {}", extent));
  }
  auto out = broadcast(step.shape(0), wanted);
  if (!out)
    return step.wrong(fmt::format("shape {} cannot be stretched to {}", shape_text(step.shape(0)), shape_text(wanted)));
  return step.give(0, std::move(*out), step.type(0));
}

Status value_expand(Step& step) {
  const Shape& out = step.output_shape(0);
  if (element_count(out).value_or(kMaxElements) > static_cast<std::int64_t>(kMaxFollowedElements)) return Done{};
  std::vector<std::size_t> from;
  for_each_coordinate(
      out, [&](const Shape& at) { from.push_back(static_cast<std::size_t>(broadcast_offset(step.shape(0), at))); });
  step.give_contents(0, pick(*step.contents(0), from));
  return Done{};
}

Status infer_tile(Step& step) {
  PL_TRY(const auto repeats, step.known_integers(1, "repeats"));
  if (repeats.size() != step.rank(0)) {
    return step.wrong(fmt::format("{} repeats for a tensor of rank {}", repeats.size(), step.rank(0)));
  }
  Shape out = step.shape(0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (repeats[i] < 0 || repeats[i] > kMaxExtent || (out[i] > 0 && repeats[i] > kMaxExtent / out[i])) {
      return step.wrong(fmt::format("{} repeats of {} elements", repeats[i], out[i]));
    }
    out[i] *= repeats[i];
  }
  return step.give(0, std::move(out), step.type(0));
}

Status value_tile(Step& step) {
  const Shape& out = step.output_shape(0);
  if (element_count(out).value_or(kMaxElements) > static_cast<std::int64_t>(kMaxFollowedElements)) return Done{};
  const Shape& in = step.shape(0);
  std::vector<std::size_t> from;
  for_each_coordinate(out, [&](const Shape& at) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < in.size(); ++i) offset = offset * in[i] + at[i] % in[i];
    from.push_back(static_cast<std::size_t>(offset));
  });
  step.give_contents(0, pick(*step.contents(0), from));
  return Done{};
}

Status infer_pad(Step& step) {
  auto pads = step.integers("pads");
  if (step.has_input(1)) {
    PL_TRY(pads, step.known_integers(1, "pads"));
  }
  Shape out = step.shape(0);
  std::vector<std::size_t> axes(out.size());
  std::iota(axes.begin(), axes.end(), 0U);
  if (step.has_input(3)) {
    PL_TRY(const auto written, step.known_integers(3, "axes"));
    PL_TRY(axes, step.axes(written, out.size()));
  }
  if (pads.size() != 2 * axes.size()) {
    return step.wrong(fmt::format("{} pads for {} axes", pads.size(), axes.size()));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (const std::int64_t pad : {pads[i], pads[i + axes.size()]}) {
      if (pad < -kMaxExtent || pad > kMaxExtent) return step.wrong(fmt::format("a pad of {}", pad));
      out[axes[i]] += pad;
    }
  }
  return step.give(0, std::move(out), step.type(0));
}

Status infer_one_hot(Step& step) {
  PL_TRY(const auto depth, step.known_reals(1, "depth"));  // any numeric type is legal
  if (depth.size() != 1 || !(depth[0] >= 0) || depth[0] > static_cast<double>(kMaxExtent)) {
    return step.wrong("its depth must be one number, not negative");
  }
  Shape out = step.shape(0);
  PL_TRY(const std::size_t axis, step.axis(step.integer("axis", -1), out.size() + 1));
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<std::int64_t>(depth[0]));
  return step.give(0, std::move(out), step.type(2));
}

namespace {

// floor(extent × scale) per axis (ONNX Resize).
Result<Shape> scaled(const Step& step, const std::vector<double>& scales, const std::vector<std::size_t>& axes) {
  Shape out = step.shape(0);
  if (scales.size() != axes.size()) return step.wrong(fmt::format("{} scales for {} axes", scales.size(), axes.size()));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const double extent = std::floor(static_cast<double>(out[axes[i]]) * scales[i]);
    if (!(scales[i] > 0) || !(extent <= static_cast<double>(kMaxExtent))) {
      return step.wrong(fmt::format("a scale of {} of {} elements", scales[i], out[axes[i]]));
    }
    out[axes[i]] = static_cast<std::int64_t>(extent);
  }
  return out;
}

// sizes under keep_aspect_ratio_policy not_larger or not_smaller: one common scale, rounded to nearest, halves up.
Result<Shape> proportional(const Step& step, const std::vector<std::int64_t>& sizes,
                           const std::vector<std::size_t>& axes, bool larger) {
  Shape out = step.shape(0);
  double scale = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (out[axes[i]] < 1 || sizes[i] < 1)
      return step.wrong(fmt::format("a size of {} for {} elements", sizes[i], out[axes[i]]));
    const double ratio = static_cast<double>(sizes[i]) / static_cast<double>(out[axes[i]]);
    if (i == 0 || (larger ? ratio > scale : ratio < scale)) scale = ratio;
  }
  for (const std::size_t axis : axes) {
    const double extent = std::floor(scale * static_cast<double>(out[axis]) + 0.5);
    if (!(extent <= static_cast<double>(kMaxExtent))) return step.wrong("too large a size");
    out[axis] = static_cast<std::int64_t>(extent);
  }
  return out;
}

}  // namespace

Status infer_resize(Step& step) {
  // Opset 10: X, scales; later: X, roi, scales, sizes, of which one of the last two is present and not empty.
  std::vector<std::size_t> axes(step.rank(0));
  std::iota(axes.begin(), axes.end(), 0U);
  if (step.has("axes")) {
    PL_TRY(axes, step.axes(step.integers("axes"), step.rank(0)));
  }
  if (step.has_input(3)) {
    PL_TRY(const auto sizes, step.known_integers(3, "sizes"));
    if (sizes.size() != axes.size()) return step.wrong(fmt::format("{} sizes for {} axes", sizes.size(), axes.size()));
    const std::string policy = step.text("keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch") {
      PL_TRY(Shape out, proportional(step, sizes, axes, policy == "not_smaller"));
      return step.give(0, std::move(out), step.type(0));
    }
    Shape out = step.shape(0);
    for (std::size_t i = 0; i < axes.size(); ++i) out[axes[i]] = sizes[i];
    return step.give(0, std::move(out), step.type(0));
  }
  const std::size_t scales_input = step.input_count() == 2 ? 1 : 2;
  if (!step.has_input(scales_input)) return step.wrong("neither scales nor sizes are given");
  PL_TRY(const auto scales, step.known_reals(scales_input, "scales"));
  PL_TRY(Shape out, scaled(step, scales, axes));
  return step.give(0, std::move(out), step.type(0));
}

Status infer_upsample(Step& step) {
  auto scales = step.reals("scales");
  if (step.has_input(1)) {
    PL_TRY(scales, step.known_reals(1, "scales"));
  }
  std::vector<std::size_t> axes(step.rank(0));
  std::iota(axes.begin(), axes.end(), 0U);
  PL_TRY(Shape out, scaled(step, scales, axes));
  return step.give(0, std::move(out), step.type(0));
}

}  // namespace plumbline::ingest
