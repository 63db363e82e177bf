// The same elements in another shape or order: reshape, transpose, concatenate, split.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ingest/graph_limits.h"
#include "ingest/graph_text.h"
#include "ingest/infer_rules.h"
#include "ingest/shape_math.h"
#include "ingest/value_pick.h"

namespace plumbline::ingest {

Status infer_reshape(Step& step) {
  PL_TRY_STATUS(step.expect_rank(1, 1));
  PL_TRY(Shape shape, step.known_integers(1, "target dimensions"));
  const Shape& in = step.shape(0);
  const bool zero_copies = step.integer("allowzero", 0) == 0;
  std::ptrdiff_t open = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && zero_copies) {
      if (i >= in.size())
        return step.wrong(fmt::format("dimension {} is copied from a tensor of shape {}", i, shape_text(in)));
      shape[i] = in[i];
    } else if (shape[i] == -1) {
      if (open >= 0) return step.wrong("two target dimensions are -1");
      open = static_cast<std::ptrdiff_t>(i);
    } else if (shape[i] < -1) {
      return step.wrong(fmt::format("a target dimension is {}", shape[i]));
    }
  }
  const Shape written = shape;
  if (open >= 0) shape[static_cast<std::size_t>(open)] = 1;
  const auto have = element_count(in);
  const auto rest = element_count(shape);
  if (open >= 0 && rest && *rest > 0 && have) shape[static_cast<std::size_t>(open)] = *have / *rest;
  if (!have || !rest || element_count(shape) != have) {
    return step.wrong(fmt::format("a tensor of shape {} cannot take the shape {}", shape_text(in), shape_text(written)),
                      "does the file fix a dimension, such as the batch, that was bound to another size?");
  }
  return step.give(0, std::move(shape), step.type(0));
}

Status infer_flatten(Step& step) {
  const Shape& in = step.shape(0);
  const std::int64_t written = step.integer("axis", 1);
  const auto rank = static_cast<std::int64_t>(in.size());
  if (written < -rank || written > rank)
    return step.wrong(fmt::format("axis {} is outside a tensor of rank {}", written, rank));
  const auto split = in.begin() + (written < 0 ? written + rank : written);
  const auto rows = element_count(Shape(in.begin(), split));
  const auto columns = element_count(Shape(split, in.end()));
  if (!rows || !columns) return step.wrong("too many elements");
  return step.give(0, {*rows, *columns}, step.type(0));
}

namespace {

// Axes from the attribute (up to opset 12) or from input 1.
Result<std::vector<std::int64_t>> written_axes(const Step& step) {
  if (step.has_input(1)) return step.known_integers(1, "axes");
  return step.integers("axes");
}

}  // namespace

Status infer_squeeze(Step& step) {
  const Shape& in = step.shape(0);
  PL_TRY(const auto written, written_axes(step));
  PL_TRY(const auto axes, step.axes(written, in.size()));
  const bool all = !step.has_input(1) && !step.has("axes");
  Shape out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool named = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (named && in[i] != 1) return step.wrong(fmt::format("axis {} of shape {} is not 1", i, shape_text(in)));
    if (!named && !(all && in[i] == 1)) out.push_back(in[i]);
  }
  return step.give(0, std::move(out), step.type(0));
}

Status infer_unsqueeze(Step& step) {
  const Shape& in = step.shape(0);
  PL_TRY(const auto written, written_axes(step));
  if (!step.has_input(1) && !step.has("axes")) return step.wrong("its axes are missing");
  if (in.size() + written.size() > kMaxRank) return step.wrong("too many axes");
  PL_TRY(const auto axes, step.axes(written, in.size() + written.size()));
  Shape out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < in.size() + axes.size(); ++i) {
    out.push_back(std::find(axes.begin(), axes.end(), i) != axes.end() ? 1 : in[next++]);
  }
  return step.give(0, std::move(out), step.type(0));
}

namespace {

// Without an attribute the axes are reversed.
Result<std::vector<std::size_t>> permutation(const Step& step) {
  const std::size_t rank = step.rank(0);
  if (!step.has("perm")) {
    std::vector<std::size_t> reversed(rank);
    for (std::size_t i = 0; i < rank; ++i) reversed[i] = rank - 1 - i;
    return reversed;
  }
  PL_TRY(auto axes, step.axes(step.integers("perm"), rank));
  if (axes.size() != rank) {
    return step.wrong(fmt::format("attribute 'perm' orders {} axes of a tensor of rank {}", axes.size(), rank));
  }
  return axes;
}

}  // namespace

Status infer_transpose(Step& step) {
  PL_TRY(const auto order, permutation(step));
  Shape out;
  for (const std::size_t axis : order) out.push_back(step.shape(0)[axis]);
  return step.give(0, std::move(out), step.type(0));
}

Status value_transpose(Step& step) {
  PL_TRY(const auto order, permutation(step));
  const Shape strides = strides_of(step.shape(0));
  std::vector<std::size_t> from;
  for_each_coordinate(step.output_shape(0), [&](const Shape& at) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * strides[order[i]];
    from.push_back(static_cast<std::size_t>(offset));
  });
  step.give_contents(0, pick(*step.contents(0), from));
  return Done{};
}

Status infer_depth_to_space(Step& step) {
  PL_TRY_STATUS(step.expect_rank(0, 4));
  const Shape& in = step.shape(0);
  const std::int64_t block = step.integer("blocksize", 0);
  if (block < 1 || block > kMaxWindow || in[1] % (block * block) != 0) {
    return step.wrong(fmt::format("{} channels do not divide into blocks of size {}", in[1], block));
  }
  return step.give(0, {in[0], in[1] / (block * block), in[2] * block, in[3] * block}, step.type(0));
}

Status infer_space_to_depth(Step& step) {
  PL_TRY_STATUS(step.expect_rank(0, 4));
  const Shape& in = step.shape(0);
  const std::int64_t block = step.integer("blocksize", 0);
  if (block < 1 || block > kMaxWindow || in[2] % block != 0 || in[3] % block != 0 ||
      in[1] > kMaxExtent / (block * block)) {
    return step.wrong(fmt::format("shape {} does not divide into blocks of size {}", shape_text(in), block));
  }
  return step.give(0, {in[0], in[1] * block * block, in[2] / block, in[3] / block}, step.type(0));
}

Status infer_concat(Step& step) {
  PL_TRY_STATUS(step.expect_rank_at_least(0, 1));
  Shape out = step.shape(0);
  if (!step.has("axis")) return step.wrong("attribute 'axis' is missing");
  PL_TRY(const std::size_t axis, step.axis(step.integer("axis", 0), out.size()));
  for (std::size_t i = 1; i < step.input_count(); ++i) {
    PL_TRY_STATUS(step.expect_rank(i, out.size()));
    Shape other = step.shape(i);
    if (other[axis] > kMaxExtent - out[axis]) return step.wrong("the joined axis is too long");
    out[axis] += other[axis];
    other[axis] = out[axis];
    if (other != out) {
      return step.wrong(fmt::format("shapes {} and {} cannot be joined along axis {}", shape_text(step.shape(0)),
                                    shape_text(step.shape(i)), axis));
    }
  }
  return step.give(0, std::move(out), step.type(0));
}

Status value_concat(Step& step) {
  if (step.rank(0) != 1) return Done{};  // shapes are vectors
  Contents joined = *step.contents(0);
  for (std::size_t i = 1; i < step.input_count(); ++i) {
    if (step.contents(i)->index() != joined.index()) return Done{};
    std::visit(
        [&](auto& out) {
          const auto& more = std::get<std::decay_t<decltype(out)>>(*step.contents(i));
          out.insert(out.end(), more.begin(), more.end());
        },
        joined);
    if (size_of(joined) > kMaxFollowedElements) return Done{};
  }
  step.give_contents(0, std::move(joined));
  return Done{};
}

namespace {

struct Pieces {
  std::size_t axis = 0;
  std::vector<std::int64_t> sizes;
};

Result<Pieces> split_pieces(const Step& step) {
  Pieces pieces;
  PL_TRY(pieces.axis, step.axis(step.integer("axis", 0), step.rank(0)));
  const std::int64_t whole = step.shape(0)[pieces.axis];
  const auto count = static_cast<std::int64_t>(step.output_count());
  if (step.has_input(1)) {
    PL_TRY(pieces.sizes, step.known_integers(1, "piece sizes"));
  } else {
    pieces.sizes = step.integers("split");
  }
  if (!step.has_input(1) && !step.has("split")) {
    if (step.integer("num_outputs", count) != count)
      return step.wrong("attribute 'num_outputs' differs from the outputs");
    // Opset 18: equal pieces, the last one smaller when they do not divide evenly.
    const std::int64_t piece = (whole + count - 1) / count;
    pieces.sizes.assign(step.output_count(), piece);
    pieces.sizes.back() = whole - piece * (count - 1);
  }
  std::int64_t sum = 0;
  for (const std::int64_t size : pieces.sizes) {
    if (size < 0 || size > whole || sum > whole)
      return step.wrong(fmt::format("pieces of {} for an axis of {}", shape_text(pieces.sizes), whole));
    sum += size;
  }
  if (sum != whole || pieces.sizes.size() != step.output_count()) {
    return step.wrong(fmt::format("pieces of {} for {} outputs and an axis of {}", shape_text(pieces.sizes),
                                  step.output_count(), whole));
  }
  return pieces;
}

}  // namespace

Status infer_split(Step& step) {
  PL_TRY(const Pieces pieces, split_pieces(step));
  for (std::size_t i = 0; i < pieces.sizes.size(); ++i) {
    Shape shape = step.shape(0);
    shape[pieces.axis] = pieces.sizes[i];
    PL_TRY_STATUS(step.give(i, std::move(shape), step.type(0)));
  }
  return Done{};
}

Status value_split(Step& step) {
  if (step.rank(0) != 1) return Done{};
  PL_TRY(const Pieces pieces, split_pieces(step));
  std::size_t start = 0;
  for (std::size_t i = 0; i < pieces.sizes.size(); ++i) {
    std::vector<std::size_t> from(static_cast<std::size_t>(pieces.sizes[i]));
    std::iota(from.begin(), from.end(), start);
    start += from.size();
    step.give_contents(i, pick(*step.contents(0), from));
  }
  return Done{};
}

Status value_copy(Step& step) {
  step.give_contents(0, *step.contents(0));
  return Done{};
}

}  // namespace plumbline::ingest
