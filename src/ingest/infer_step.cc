#include "ingest/infer_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "ingest/graph_limits.h"
#include "ingest/graph_text.h"
#include "ingest/shape_math.h"

namespace plumbline::ingest {

std::size_t size_of(const Contents& contents) {
  return std::visit([](const auto& elements) { return elements.size(); }, contents);
}

Step::Step(Inference& inference, NodeId node)
    : inference_(&inference), node_(&inference.shaped->graph.nodes[node.at()]) {}

bool Step::has_input(std::size_t i) const { return i < node_->inputs.size() && node_->inputs[i].valid(); }

bool Step::has_output(std::size_t i) const { return i < node_->outputs.size() && node_->outputs[i].valid(); }

const Tensor& Step::tensor(std::size_t i) const {
  PL_CHECK(has_input(i));
  return inference_->shaped->graph.tensors[node_->inputs[i].at()];
}

const Shape& Step::shape(std::size_t i) const {
  PL_CHECK(has_input(i));
  const auto& shape = inference_->shaped->shapes[node_->inputs[i].at()];
  PL_CHECK(shape.has_value());
  return *shape;
}

ElementType Step::type(std::size_t i) const { return tensor(i).type; }

const Contents* Step::contents(std::size_t i) const {
  if (!has_input(i)) return nullptr;
  const auto& contents = inference_->contents[node_->inputs[i].at()];
  return contents ? &*contents : nullptr;
}

const Shape& Step::output_shape(std::size_t i) const {
  PL_CHECK(has_output(i));
  const auto& shape = inference_->shaped->shapes[node_->outputs[i].at()];
  PL_CHECK(shape.has_value());
  return *shape;
}

ElementType Step::output_type(std::size_t i) const {
  PL_CHECK(has_output(i));
  return inference_->shaped->graph.tensors[node_->outputs[i].at()].type;
}

Diagnostic Step::unknown_contents(std::size_t i, std::string_view what) const {
  return wrong(
      fmt::format("its {} come from {}, whose values are known only when the model runs", what, quoted(tensor(i).name)),
      "export the model with constants or with shapes of its inputs there");
}

Result<std::vector<std::int64_t>> Step::known_integers(std::size_t i, std::string_view what) const {
  const Contents* known = contents(i);
  if (known == nullptr) return unknown_contents(i, what);
  const auto* elements = std::get_if<std::vector<std::int64_t>>(known);
  if (elements == nullptr) {
    return wrong(
        fmt::format("its {} ({}) must be integers, not {}", what, quoted(tensor(i).name), element_type_name(type(i))));
  }
  return *elements;
}

Result<std::vector<double>> Step::known_reals(std::size_t i, std::string_view what) const {
  const Contents* known = contents(i);
  if (known == nullptr) return unknown_contents(i, what);
  if (const auto* reals = std::get_if<std::vector<double>>(known)) return *reals;
  const auto& elements = std::get<std::vector<std::int64_t>>(*known);
  return std::vector<double>(elements.begin(), elements.end());
}

const Attribute* Step::attribute(std::string_view name) const {
  const auto found = node_->attributes.find(std::string(name));
  return found == node_->attributes.end() ? nullptr : &found->second;
}

bool Step::has(std::string_view name) const { return attribute(name) != nullptr; }

std::int64_t Step::integer(std::string_view name, std::int64_t fallback) const {
  const Attribute* found = attribute(name);
  return found == nullptr ? fallback : std::get<std::int64_t>(*found);
}

std::string Step::text(std::string_view name, std::string_view fallback) const {
  const Attribute* found = attribute(name);
  return found == nullptr ? std::string(fallback) : std::get<std::string>(*found);
}

std::vector<std::int64_t> Step::integers(std::string_view name) const {
  const Attribute* found = attribute(name);
  return found == nullptr ? std::vector<std::int64_t>{} : std::get<std::vector<std::int64_t>>(*found);
}

std::vector<double> Step::reals(std::string_view name) const {
  const Attribute* found = attribute(name);
  return found == nullptr ? std::vector<double>{} : std::get<std::vector<double>>(*found);
}

Result<std::size_t> Step::axis(std::int64_t value, std::size_t rank_of_tensor) const {
  const auto found = front_axis(value, rank_of_tensor);
  if (!found) return wrong(fmt::format("axis {} is outside a tensor of rank {}", value, rank_of_tensor));
  return *found;
}

Result<std::vector<std::size_t>> Step::axes(const std::vector<std::int64_t>& values, std::size_t rank_of_tensor) const {
  std::vector<std::size_t> out;
  std::vector<bool> seen(rank_of_tensor, false);
  for (const std::int64_t value : values) {
    PL_TRY(const std::size_t found, axis(value, rank_of_tensor));
    if (seen[found]) return wrong(fmt::format("axis {} is named twice", value));
    seen[found] = true;
    out.push_back(found);
  }
  return out;
}

Status Step::expect_rank(std::size_t i, std::size_t wanted) const {
  if (rank(i) == wanted) return Done{};
  return wrong(fmt::format("input {} {} must have rank {}, but its shape is {}", i, quoted(tensor(i).name), wanted,
                           shape_text(shape(i))));
}

Status Step::expect_rank_at_least(std::size_t i, std::size_t wanted) const {
  if (rank(i) >= wanted) return Done{};
  return wrong(fmt::format("input {} {} must have rank {} or more, but its shape is {}", i, quoted(tensor(i).name),
                           wanted, shape_text(shape(i))));
}

Status Step::give(std::size_t output, Shape shape, ElementType type) {
  if (!has_output(output)) return Done{};
  Tensor& made = inference_->shaped->graph.tensors[node_->outputs[output].at()];
  if (shape.size() > kMaxRank) {
    return wrong(fmt::format("output {} would have {} axes; at most {} are accepted", quoted(made.name), shape.size(),
                             kMaxRank));
  }
  for (const std::int64_t extent : shape) {
    if (extent >= 0 && extent <= kMaxExtent) continue;
    return wrong(fmt::format("output {} would have the shape {}, with a {} dimension", quoted(made.name),
                             shape_text(shape), extent < 0 ? "negative" : "too large"));
  }
  if (!element_count(shape)) {
    return wrong(fmt::format("output {} would have the shape {}, more than 2^50 elements", quoted(made.name),
                             shape_text(shape)));
  }
  made.type = type;
  inference_->shaped->shapes[node_->outputs[output].at()] = std::move(shape);
  return Done{};
}

void Step::give_contents(std::size_t output, Contents contents) {
  if (!has_output(output)) return;
  const std::size_t size = size_of(contents);
  if (size > kMaxFollowedElements || inference_->followed + size > kMaxFollowedTotal) return;
  PL_CHECK(static_cast<std::int64_t>(size) == element_count(output_shape(output)));
  inference_->followed += size;
  inference_->contents[node_->outputs[output].at()] = std::move(contents);
}

Diagnostic Step::wrong(std::string_view message, std::string help) const {
  return make_error("onnx-shape", node_->span, fmt::format("{}: {}", node_text(*node_), message), std::move(help));
}

}  // namespace plumbline::ingest
