#include "study/fix_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ingest/units.h"

namespace plumbline::study {
namespace {

using ingest::Value;
using ingest::ValueKind;

struct Option {
  std::string suffix{};  ///< appended to the row's id when a rule has several
  Value value{};
  int tier = 0;
  std::string path{};  ///< when the rule chooses the key itself
};
using Options = std::vector<Option>;

bool same(const Value* a, const Value& b) {
  return a != nullptr && ingest::canonical_text(*a) == ingest::canonical_text(b);
}

// "2 ms" → 2 and " ms"; a plain number has an empty unit.
struct NumberText {
  double value = 0;
  std::string unit;
};

std::optional<NumberText> split_number(const Value* value) {
  if (value == nullptr || value->kind != ValueKind::scalar || value->quoted) return std::nullopt;
  const std::string& text = value->text;
  const std::size_t end = text.find_first_not_of("0123456789.-");
  const std::string digits = text.substr(0, end);
  if (digits.empty() || digits == "-") return std::nullopt;
  return NumberText{std::strtod(digits.c_str(), nullptr), end == std::string::npos ? "" : text.substr(end)};
}

Value number_value(double value, const std::string& unit) {
  return ingest::make_scalar(fmt::format("{:.12g}{}", value, unit));
}

Options fixed(const ingest::FixRow& row, const FixContext&) { return {{"", row.value}}; }

Options scaled(const ingest::FixRow& row, const FixContext& c) {
  const auto number = split_number(c.candidate->at_path(row.set));
  if (!number) return {};
  double value = number->value * row.times;
  if (number->unit.empty()) value = std::max(1.0, std::floor(value));
  return {{"", number_value(value, number->unit)}};
}

Options clock_at(Hertz hertz) { return {{"", ingest::make_scalar(fmt::format("{:.12g} MHz", hertz.raw() / 1e6))}}; }

Options clock_max(const ingest::FixRow&, const FixContext& c) {
  const auto& a = *c.scenario->accelerator;
  return c.scenario->serving.clock.value_or(a.nominal.frequency) < a.clock_max ? clock_at(a.clock_max) : Options{};
}

Options clock_min(const ingest::FixRow&, const FixContext& c) {
  const auto& a = *c.scenario->accelerator;
  return c.scenario->serving.clock.value_or(a.nominal.frequency) > a.clock_min ? clock_at(a.clock_min) : Options{};
}

Options bucket_below(const ingest::FixRow&, const FixContext& c) {
  std::int64_t below = 0;
  for (const std::int64_t b : c.scenario->compile.shapes.batch) {
    if (b < c.scenario->serving.batch_max) below = std::max(below, b);
  }
  return below > 0 ? Options{{"", number_value(static_cast<double>(below), "")}} : Options{};
}

Options largest_bucket(const ingest::FixRow&, const FixContext& c) {
  const auto& batch = c.scenario->compile.shapes.batch;
  return batch.empty() ? Options{} : Options{{"", number_value(static_cast<double>(batch.back()), "")}};
}

Options midpoints(const ingest::FixRow& row, const FixContext& c) {
  const Value* list = c.candidate->at_path(row.set);
  if (list == nullptr || list->kind != ValueKind::list || list->items.size() > 8) return {};
  std::vector<std::int64_t> sizes;
  for (const auto& item : list->items)
    sizes.push_back(static_cast<std::int64_t>(split_number(&item).value_or(NumberText{}).value));
  std::vector<Value> items;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t middle = i > 0 ? (sizes[i] + sizes[i - 1]) / 2 : 0;  // whole: a size
    if (i > 0 && sizes[i] - sizes[i - 1] >= 2) items.push_back(number_value(static_cast<double>(middle), ""));
    items.push_back(number_value(static_cast<double>(sizes[i]), ""));
  }
  return {{"", ingest::make_list(std::move(items))}};
}

// The harmed classes run another dataflow; the others keep what the candidate gives them.
Options dataflow_per_class(const ingest::FixRow&, const FixContext& c) {
  Options out;
  const auto& compile = c.scenario->compile;
  const auto flow_of = [&](const std::string& layer) {
    const auto own = compile.dataflow_by_class.find(layer);
    return own == compile.dataflow_by_class.end() ? compile.dataflow : own->second;
  };
  for (const auto& [name, flow] : c.scenario->dataflows) {
    std::map<std::string, std::string> by_class = compile.dataflow_by_class;
    bool changes = false;
    for (const auto& layer : c.harmed_classes) {
      changes = changes || flow_of(layer) != name;
      by_class[layer] = name;
    }
    if (!changes) continue;
    std::vector<std::pair<std::string, Value>> entries = {{"default", ingest::make_scalar(compile.dataflow)}};
    for (const auto& [layer, choice] : by_class) entries.emplace_back(layer, ingest::make_scalar(choice));
    out.push_back({"-" + name, ingest::make_map(std::move(entries))});
  }
  return out;
}

// Rows of the candidate's constraints that the baseline does not have, each kept only for the classes it does not harm.
Options narrow_guilty_constraint(const ingest::FixRow& row, const FixContext& c) {
  if (!c.guilty || (*c.changes)[*c.guilty].patch.at_path(row.set) == nullptr) return {};
  const Value* now = c.candidate->at_path(row.set);
  const Value* before = c.baseline->at_path(row.set);
  if (now == nullptr || now->kind != ValueKind::list || c.spared_classes.empty()) return {};
  std::vector<Value> kept;
  bool narrowed = false;
  for (const auto& item : now->items) {
    const bool old = before != nullptr && std::any_of(before->items.begin(), before->items.end(),
                                                      [&](const Value& b) { return same(&b, item); });
    const Value* kernels = item.find("kernels");
    if (old || (kernels != nullptr && kernels->text != "*")) {
      kept.push_back(item);
      continue;
    }
    for (const auto& layer : c.spared_classes)
      kept.push_back(ingest::merge_patch(item, ingest::make_map({{"kernels", ingest::make_scalar(layer)}})));
    narrowed = true;
  }
  return narrowed ? Options{{"", ingest::make_list(std::move(kept)), 1, ""}} : Options{};
}

// Numeric leaves of the guilty change, moved back towards the baseline by stated shares.
Options part_way(const ingest::FixRow&, const FixContext& c) {
  Options out;
  if (!c.guilty) return out;
  const auto leaves = ingest::patch_leaves((*c.changes)[*c.guilty].patch);
  if (leaves.size() != 1) return out;  // single-part patches only
  const auto from = split_number(c.baseline->at_path(leaves[0].path));
  const auto to = split_number(c.candidate->at_path(leaves[0].path));
  if (!from || !to || from->unit != to->unit) return out;
  for (const double share : {0.5, 0.75, 0.9}) {
    double value = to->value + share * (from->value - to->value);
    if (from->unit.empty()) value = std::round(value);
    if (value == from->value || value == to->value) continue;
    out.push_back({fmt::format("-{:.0f}", 100 * share), number_value(value, to->unit), 1, leaves[0].path});
  }
  return out;
}

using Rule = Options (*)(const ingest::FixRow&, const FixContext&);
struct RuleRow {
  std::string_view name;
  Rule rule;
};
constexpr RuleRow kRules[] = {
    {"value", fixed},
    {"scale", scaled},
    {"clock_max", clock_max},
    {"clock_min", clock_min},
    {"bucket_below", bucket_below},
    {"largest_bucket", largest_bucket},
    {"midpoints", midpoints},
    {"dataflow_per_class", dataflow_per_class},
    {"narrow_guilty_constraint", narrow_guilty_constraint},
    {"part_way", part_way},
};

bool touches_change(const std::string& path, const FixContext& c) {
  for (const auto& change : *c.changes) {
    for (const auto& leaf : ingest::patch_leaves(change.patch)) {
      if (leaf.path == path || leaf.path.starts_with(path + ".") || path.starts_with(leaf.path + ".")) return true;
    }
  }
  return false;
}

// Removals and additions that turn `from` into `to`, map by map.
void diff_into(const Value& from, const Value& to, Value& out) {
  for (const auto& entry : to.entries) {
    const Value* old = from.find(entry.key);
    if (old == nullptr || old->kind != ValueKind::map || entry.value.kind != ValueKind::map) {
      if (!same(old, entry.value)) out.entries.push_back({entry.key, {}, entry.value});
      continue;
    }
    Value inner = ingest::make_map({});
    diff_into(*old, entry.value, inner);
    if (!inner.entries.empty()) out.entries.push_back({entry.key, {}, std::move(inner)});
  }
  for (const auto& entry : from.entries) {
    if (to.find(entry.key) != nullptr) continue;
    Value removal;
    removal.remove = true;
    out.entries.push_back({entry.key, {}, std::move(removal)});
  }
}

}  // namespace

Value difference(const Value& from, const Value& to) {
  Value out = ingest::make_map({});
  diff_into(from, to, out);
  return out;
}

std::vector<std::string> fix_rule_names() {
  std::vector<std::string> names = {"undo"};
  for (const auto& rule : kRules) names.emplace_back(rule.name);
  return names;
}

std::vector<FixProposal> propose(const ingest::FixRow& row, const FixContext& context) {
  std::vector<FixProposal> out;
  const auto add = [&](const Option& option, const std::string& path, Value patch) {
    out.push_back({row.id + option.suffix, row.kind, row.title, row.hypothesis, path, std::move(patch), option.tier});
  };
  if (row.rule == "undo") {
    if (!context.guilty) return out;
    const auto& change = (*context.changes)[*context.guilty];
    const Value without = difference(*context.candidate, [&] {
      std::vector<std::size_t> others;
      for (std::size_t i = 0; i < context.changes->size(); ++i) {
        if (i != *context.guilty) others.push_back(i);
      }
      return ingest::apply_changes(*context.baseline, *context.changes, others, {});
    }());
    const auto leaves = ingest::patch_leaves(change.patch);
    add({.suffix = "", .value = {}, .tier = 2, .path = ""}, leaves.empty() ? "" : leaves[0].path, without);
    return out;
  }
  for (const auto& rule : kRules) {
    if (rule.name != row.rule) continue;
    for (const auto& option : rule.rule(row, context)) {
      const std::string path = option.path.empty() ? row.set : option.path;
      if (same(context.candidate->at_path(path), option.value)) continue;
      // A fix that sets a changed key back to its baseline value is the undo, whatever its row says.
      if (touches_change(path, context) && same(context.baseline->at_path(path), option.value)) continue;
      Option placed = option;
      if (touches_change(path, context)) placed.tier = std::max(placed.tier, 1);
      add(placed, path, ingest::make_at_path(path, option.value));
    }
  }
  return out;
}

}  // namespace plumbline::study
