// Operators that fold one or several axes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "ingest/graph_text.h"
#include "ingest/infer_rules.h"
#include "ingest/shape_math.h"

namespace plumbline::ingest {

namespace {

// For each axis of input 0: is it folded? Axes are an attribute up to opset 12 or 17, an input later.
Result<std::vector<bool>> folded_axes(const Step& step) {
  const std::size_t rank = step.rank(0);
  std::vector<std::int64_t> written = step.integers("axes");
  bool stated = step.has("axes");
  if (step.has_input(1)) {
    PL_TRY(written, step.known_integers(1, "axes"));
    stated = !written.empty();
  }
  if (!stated) return std::vector<bool>(rank, step.integer("noop_with_empty_axes", 0) == 0);
  PL_TRY(const auto axes, step.axes(written, rank));
  std::vector<bool> folded(rank, false);
  for (const std::size_t axis : axes) folded[axis] = true;
  return folded;
}

Shape folded_shape(const Shape& in, const std::vector<bool>& folded, bool keep) {
  Shape out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!folded[i]) {
      out.push_back(in[i]);
    } else if (keep) {
      out.push_back(1);
    }
  }
  return out;
}

using Fold = bool (*)(std::int64_t& total, std::int64_t next);  // true on overflow

struct FoldRow {
  std::string_view op;
  bool has_start;
  std::int64_t start;
  Fold fold;
};

constexpr FoldRow kFolds[] = {
    {"ReduceProd", true, 1, [](std::int64_t& t, std::int64_t n) { return __builtin_mul_overflow(t, n, &t); }},
    {"ReduceSum", true, 0, [](std::int64_t& t, std::int64_t n) { return __builtin_add_overflow(t, n, &t); }},
    {"ReduceMax", false, 0, [](std::int64_t& t, std::int64_t n) { return t = std::max(t, n), false; }},
    {"ReduceMin", false, 0, [](std::int64_t& t, std::int64_t n) { return t = std::min(t, n), false; }},
};

}  // namespace

Status infer_reduce(Step& step) {
  PL_TRY(const auto folded, folded_axes(step));
  return step.give(0, folded_shape(step.shape(0), folded, step.integer("keepdims", 1) != 0), step.type(0));
}

// Only complete folds of integers are followed: the number of elements, or the largest side, of a shape.
Status value_reduce(Step& step) {
  const auto* in = std::get_if<std::vector<std::int64_t>>(step.contents(0));
  if (in == nullptr || element_count(step.output_shape(0)) != 1 || in->empty()) return Done{};
  for (const auto& row : kFolds) {
    if (row.op != step.node().op) continue;
    std::int64_t total = row.has_start ? row.start : in->front();
    for (const std::int64_t next : *in) {
      if (row.fold(total, next)) return step.wrong("its value does not fit 64 bits");
    }
    step.give_contents(0, std::vector<std::int64_t>{total});
  }
  return Done{};
}

Status infer_arg(Step& step) {
  PL_TRY(const std::size_t axis, step.axis(step.integer("axis", 0), step.rank(0)));
  std::vector<bool> folded(step.rank(0), false);
  folded[axis] = true;
  return step.give(0, folded_shape(step.shape(0), folded, step.integer("keepdims", 1) != 0), ElementType::int64);
}

Status infer_topk(Step& step) {
  PL_TRY(const std::size_t axis, step.axis(step.integer("axis", -1), step.rank(0)));
  std::vector<std::int64_t> k = {step.integer("k", -1)};
  if (step.has_input(1)) {
    PL_TRY(k, step.known_integers(1, "number of elements"));
  }
  if (k.size() != 1 || k[0] < 0 || k[0] > step.shape(0)[axis]) {
    return step.wrong(fmt::format("k {} of an axis of {} elements", shape_text(k), step.shape(0)[axis]));
  }
  Shape shape = step.shape(0);
  shape[axis] = k[0];
  PL_TRY_STATUS(step.give(1, shape, ElementType::int64));
  return step.give(0, std::move(shape), step.type(0));
}

}  // namespace plumbline::ingest
