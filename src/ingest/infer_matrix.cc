// Matrix products and recurrent layers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "ingest/graph_text.h"
#include "ingest/infer_rules.h"
#include "ingest/shape_math.h"

namespace plumbline::ingest {

namespace {

// numpy.matmul: a vector on the left is a row, on the right a column, and that axis is dropped from the result.
Result<Shape> product(const Step& step, Shape a, Shape b) {
  if (a.empty() || b.empty()) return step.wrong("a matrix product needs operands of rank 1 or more");
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  const Shape a_written = a;
  const Shape b_written = b;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a.back() != b[b.size() - 2]) {
    return step.wrong(fmt::format("shapes {} and {} cannot be multiplied: {} columns meet {} rows",
                                  shape_text(a_written), shape_text(b_written), a.back(), b[b.size() - 2]));
  }
  auto out = broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!out) {
    return step.wrong(fmt::format("the leading axes of {} and {} cannot be stretched together", shape_text(a_written),
                                  shape_text(b_written)));
  }
  if (!row) out->push_back(a[a.size() - 2]);
  if (!column) out->push_back(b.back());
  return *std::move(out);
}

void swap_last(Shape& shape) {
  if (shape.size() >= 2) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
}

}  // namespace

Status infer_matmul(Step& step) {
  PL_TRY(Shape shape, product(step, step.shape(0), step.shape(1)));
  return step.give(0, std::move(shape), step.type(0));
}

Status infer_matmul_integer(Step& step) {
  PL_TRY(Shape shape, product(step, step.shape(0), step.shape(1)));
  return step.give(0, std::move(shape), ElementType::int32);
}

Status infer_matmul_fused(Step& step) {
  if (step.integer("transBatchA", 0) != 0 || step.integer("transBatchB", 0) != 0) {
    return step.wrong("attributes 'transBatchA' and 'transBatchB' are not modelled");
  }
  Shape a = step.shape(0);
  Shape b = step.shape(1);
  if (step.integer("transA", 0) != 0) swap_last(a);
  if (step.integer("transB", 0) != 0) swap_last(b);
  PL_TRY(Shape shape, product(step, std::move(a), std::move(b)));
  return step.give(0, std::move(shape), step.type(0));
}

Status infer_qlinear_matmul(Step& step) {
  // a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point
  PL_TRY(Shape shape, product(step, step.shape(0), step.shape(3)));
  return step.give(0, std::move(shape), step.type(7));
}

Status infer_gemm(Step& step) {
  PL_TRY_STATUS(step.expect_rank(0, 2));
  PL_TRY_STATUS(step.expect_rank(1, 2));
  Shape a = step.shape(0);
  Shape b = step.shape(1);
  if (step.integer("transA", 0) != 0) swap_last(a);
  if (step.integer("transB", 0) != 0) swap_last(b);
  PL_TRY(Shape shape, product(step, std::move(a), std::move(b)));
  if (step.has_input(2) && broadcast(step.shape(2), shape) != shape) {
    return step.wrong(
        fmt::format("input 2 of shape {} cannot be stretched to {}", shape_text(step.shape(2)), shape_text(shape)));
  }
  return step.give(0, std::move(shape), step.type(0));
}

namespace {

// Einsum subscripts of one term: letters, and where the ellipsis stands (-1: none).
struct Term {
  std::string letters;
  std::ptrdiff_t ellipsis = -1;
};

std::optional<Term> parse_term(std::string_view text) {
  Term term;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (text.substr(i, 3) == "..." && term.ellipsis < 0) {
      term.ellipsis = static_cast<std::ptrdiff_t>(term.letters.size());
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      term.letters.push_back(c);
    } else {
      return std::nullopt;
    }
  }
  return term;
}

struct Subscripts {
  std::map<char, std::int64_t> extents;
  std::map<char, int> uses;
  Shape ellipsis;
};

Status bind_term(const Step& step, std::size_t input, const Term& term, Subscripts& all) {
  const Shape& shape = step.shape(input);
  const std::size_t named = term.letters.size();
  if (shape.size() < named || (term.ellipsis < 0 && shape.size() != named)) {
    return step.wrong(
        fmt::format("the equation gives input {} {} axes, but its shape is {}", input, named, shape_text(shape)));
  }
  const std::size_t hidden = shape.size() - named;
  for (std::size_t i = 0; i < named; ++i) {
    const bool after = term.ellipsis >= 0 && static_cast<std::ptrdiff_t>(i) >= term.ellipsis;
    const std::int64_t extent = shape[i + (after ? hidden : 0)];
    std::int64_t& known = all.extents.try_emplace(term.letters[i], extent).first->second;
    ++all.uses[term.letters[i]];
    if (known != extent && known != 1 && extent != 1) {
      return step.wrong(fmt::format("the letter '{}' stands for {} and for {}", term.letters[i], known, extent));
    }
    known = std::max(known, extent);
  }
  if (term.ellipsis < 0) return Done{};
  auto joined = broadcast(all.ellipsis, Shape(shape.begin() + term.ellipsis,
                                              shape.begin() + term.ellipsis + static_cast<std::ptrdiff_t>(hidden)));
  if (!joined) return step.wrong("the axes under '...' cannot be stretched together");
  all.ellipsis = std::move(*joined);
  return Done{};
}

}  // namespace

Status infer_einsum(Step& step) {
  const std::string equation = step.text("equation", "");
  const auto arrow = equation.find("->");
  std::string_view left = std::string_view(equation).substr(0, arrow);
  Subscripts all;
  for (std::size_t i = 0; i < step.input_count(); ++i) {
    const auto comma = left.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == step.input_count())) {
      return step.wrong(fmt::format("the equation {} does not have {} terms", quoted(equation), step.input_count()));
    }
    const auto term = parse_term(left.substr(0, comma));
    if (!term) return step.wrong(fmt::format("the equation {} cannot be read", quoted(equation)));
    PL_TRY_STATUS(bind_term(step, i, *term, all));
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
  }
  Term result;
  if (arrow == std::string::npos) {  // implicit form: letters used once, in alphabetical order
    result.ellipsis = 0;
    for (const auto& [letter, uses] : all.uses) {
      if (uses == 1) result.letters.push_back(letter);
    }
  } else {
    const auto term = parse_term(std::string_view(equation).substr(arrow + 2));
    if (!term) return step.wrong(fmt::format("the equation {} cannot be read", quoted(equation)));
    result = *term;
  }
  Shape shape;
  for (std::size_t i = 0; i <= result.letters.size(); ++i) {
    if (static_cast<std::ptrdiff_t>(i) == result.ellipsis)
      shape.insert(shape.end(), all.ellipsis.begin(), all.ellipsis.end());
    if (i == result.letters.size()) break;
    const auto found = all.extents.find(result.letters[i]);
    if (found == all.extents.end()) {
      return step.wrong(fmt::format("the letter '{}' of the result is in no input", result.letters[i]));
    }
    shape.push_back(found->second);
  }
  return step.give(0, std::move(shape), step.type(0));
}

namespace {

// X [sequence, batch, input], W [directions, gates·hidden, input], R [directions, gates·hidden, hidden];
// layout 1 puts the batch first.
Status infer_recurrent(Step& step, std::int64_t gates) {
  for (std::size_t i = 0; i < 3; ++i) PL_TRY_STATUS(step.expect_rank(i, 3));
  const bool batch_first = step.integer("layout", 0) != 0;
  const Shape& x = step.shape(0);
  const Shape& w = step.shape(1);
  const Shape& r = step.shape(2);
  const std::int64_t directions = step.text("direction", "forward") == "bidirectional" ? 2 : 1;
  const std::int64_t hidden = r[2];
  if (w[0] != directions || r[0] != directions) {
    return step.wrong(
        fmt::format("{} directions, but the weights have shapes {} and {}", directions, shape_text(w), shape_text(r)));
  }
  if (w[1] % gates != 0 || w[1] / gates != hidden || r[1] != w[1] || w[2] != x[2] ||
      step.integer("hidden_size", hidden) != hidden) {
    return step.wrong(fmt::format("weights of shapes {} and {} do not fit the input {} and {} gates", shape_text(w),
                                  shape_text(r), shape_text(x), gates));
  }
  const std::int64_t sequence = x[batch_first ? 1 : 0];
  const std::int64_t batch = x[batch_first ? 0 : 1];
  const Shape all =
      batch_first ? Shape{batch, sequence, directions, hidden} : Shape{sequence, directions, batch, hidden};
  const Shape last = batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  PL_TRY_STATUS(step.give(0, all, step.type(0)));
  PL_TRY_STATUS(step.give(1, last, step.type(0)));
  return step.give(2, last, step.type(0));
}

}  // namespace

Status infer_lstm(Step& step) { return infer_recurrent(step, 4); }
Status infer_gru(Step& step) { return infer_recurrent(step, 3); }
Status infer_rnn(Step& step) { return infer_recurrent(step, 1); }

}  // namespace plumbline::ingest
