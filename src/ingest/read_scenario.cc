#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ingest/graph_counts.h"
#include "ingest/library.h"
#include "ingest/read_compile.h"
#include "ingest/scenario.h"
#include "ingest/units.h"

namespace plumbline::ingest {

namespace {

constexpr double kLongestRun = 86400.0 * 7;  // s: a week of simulated time
constexpr double kMaxRate = 1e7;             // requests per second

Nanoseconds to_ns(double seconds) { return Nanoseconds(std::llround(seconds * 1e9)); }

std::optional<double> read_time(const Value* value, double low, Diagnostics& errors) {
  return value == nullptr ? std::nullopt : read_quantity(*value, kTime, "2 ms", low, kLongestRun, errors);
}

void read_models(const Value& value, Scenario& out, Library& library, Diagnostics& errors) {
  if (!expect_list(value, "models", errors)) return;
  if (value.items.empty()) errors.push_back(make_error("bad-value", value.span, "models names no model"));
  double total = 0;
  for (const auto& item : value.items) {
    ModelUse use;
    use.span = item.span;
    MapReader map(item, "a model", errors);
    if (const Value* v = map.require("name")) use.name = read_text(*v, errors).value_or("");
    for (const auto& other : out.models) {
      if (other.name == use.name)
        errors.push_back(make_error("duplicate-id", item.span, fmt::format("two models are named '{}'", use.name)));
    }
    if (const Value* v = map.find("family")) use.family = read_text(*v, errors).value_or("");
    if (const Value* v = map.find("share")) use.share = read_number(*v, 0, 1, errors).value_or(1);
    const bool sources = (map.find("document") != nullptr) + (map.find("onnx") != nullptr) == 1;
    if (!sources) {
      errors.push_back(make_error("missing-key", item.span, "a model needs exactly one of 'catalog' and 'onnx'"));
    }
    if (const Value* v = map.find("batch")) use.batch_symbol = read_text(*v, errors).value_or("batch");
    if (const Value* v = map.find("sequence"))
      use.sequence_symbol = v->text == "none" ? "" : read_text(*v, errors).value_or("sequence");
    if (const Value* v = map.find("bind"); v != nullptr && v->kind == ValueKind::map) {
      for (const auto& entry : v->entries) {
        if (const auto size = read_integer(entry.value, 1, std::int64_t{1} << 40, errors)) use.bind[entry.key] = *size;
      }
    }
    map.finish();
    total += use.share;
    if (sources) {
      auto graph = library.graph(item);
      if (!graph.ok()) {
        errors.insert(errors.end(), graph.errors().begin(), graph.errors().end());
      } else {
        use.graph = *graph;
        if (use.family.empty()) use.family = use.graph->family.empty() ? use.name : use.graph->family;
      }
    }
    out.models.push_back(std::move(use));
  }
  if (std::abs(total - 1) > 1e-6 && !out.models.empty()) {
    errors.push_back(
        make_error("bad-value", value.span, fmt::format("the shares of the models sum to {:g}, not 1", total)));
  }
}

Policy read_policy(const Value& value, Diagnostics& errors) {
  Policy out;
  MapReader map(value, "the precision policy", errors);
  for (const char* key : {"plumbline", "kind", "source"}) map.find(key);
  const auto text = [&](const char* key, Span* at = nullptr) {
    const Value* v = map.require(key);
    if (v == nullptr) return std::string();
    if (at != nullptr) *at = v->span;
    return read_text(*v, errors).value_or("");
  };
  out.name = text("name");
  out.inputs = text("inputs", &out.inputs_at);
  out.weights = text("weights", &out.weights_at);
  out.accumulate = text("accumulate", &out.accumulate_at);
  out.outputs = text("outputs", &out.outputs_at);
  if (const Value* v = map.require("exact")) out.exact = read_flag(*v, errors).value_or(false);
  map.finish();
  return out;
}

void read_arrivals(const Value& value, Arrivals& out, Diagnostics& errors) {
  MapReader map(value, "arrivals", errors);
  const auto rate = [&](const Value* v) {
    return v == nullptr ? 0.0 : read_quantity(*v, kFrequency, "200 /s", 1e-6, kMaxRate, errors).value_or(0);
  };
  int kinds = 0;
  if (const Value* v = map.find("poisson")) {
    ++kinds;
    out.kind = ArrivalKind::poisson;
    out.rate = rate(v);
  }
  if (const Value* v = map.find("constant")) {
    ++kinds;
    out.kind = ArrivalKind::constant;
    out.rate = rate(v);
  }
  if (const Value* v = map.find("burst")) {
    ++kinds;
    out.kind = ArrivalKind::burst;
    MapReader burst(*v, "burst", errors);
    out.rate = rate(burst.require("base"));
    out.peak = rate(burst.require("peak"));
    out.every = Seconds(read_time(burst.require("every"), 1e-6, errors).value_or(1));
    out.length = Seconds(read_time(burst.require("for"), 1e-9, errors).value_or(0.5));
    burst.finish();
    if (out.length >= out.every) {
      errors.push_back(
          make_error("bad-value", v->span, "a burst as long as its period", "make 'for' shorter than 'every'"));
    }
  }
  for (const char* key : {"trace", "closed", "load"}) {
    const Value* v = map.find(key);
    if (v == nullptr) continue;
    ++kinds;
    errors.push_back(make_error("unsupported", v->span, fmt::format("arrivals by '{}' are not modelled yet", key),
                                "describe them as poisson, constant or burst"));
  }
  map.finish();
  if (kinds != 1 && value.kind == ValueKind::map) {
    errors.push_back(
        make_error("missing-key", value.span, "arrivals needs exactly one of poisson, constant and burst"));
  }
}

void read_profiles(const Value& value, Traffic& out, Diagnostics& errors) {
  if (!expect_list(value, "profiles", errors)) return;
  if (value.items.empty() || value.items.size() > 64)
    errors.push_back(make_error("bad-value", value.span, "profiles needs 1 to 64 rows"));
  double total = 0;
  for (const auto& item : value.items) {
    Profile profile;
    MapReader map(item, "a profile", errors);
    if (const Value* v = map.find("sequence")) profile.sequence = read_integer(*v, 1, 1 << 20, errors).value_or(1);
    if (const Value* v = map.require("share")) profile.share = read_number(*v, 0, 1, errors).value_or(1);
    profile.name = profile.sequence > 0 ? std::to_string(profile.sequence) : "all";
    if (const Value* v = map.find("name")) profile.name = read_text(*v, errors).value_or(profile.name);
    map.finish();
    for (const auto& other : out.profiles) {
      if (other.name == profile.name)
        errors.push_back(
            make_error("duplicate-id", item.span, fmt::format("two profiles are named '{}'", profile.name)));
    }
    total += profile.share;
    out.profiles.push_back(std::move(profile));
  }
  if (std::abs(total - 1) > 1e-6 && !value.items.empty()) {
    errors.push_back(
        make_error("bad-value", value.span, fmt::format("the shares of the profiles sum to {:g}, not 1", total)));
  }
}

void read_traffic(const Value& value, Traffic& out, Diagnostics& errors) {
  MapReader map(value, "the traffic section", errors);
  if (const Value* v = map.require("profiles")) read_profiles(*v, out, errors);
  if (const Value* v = map.require("arrivals")) read_arrivals(*v, out.arrivals, errors);
  if (const Value* v = map.require("duration")) out.duration = Seconds(read_time(v, 1e-3, errors).value_or(1));
  if (const Value* v = map.find("source")) out.source = read_text(*v, errors).value_or("");
  map.finish();
  // Every period is a step of the simulation, requests or none.
  constexpr double kMaxPeriods = 1e6;
  if (out.arrivals.kind == ArrivalKind::burst && out.duration.raw() / out.arrivals.every.raw() > kMaxPeriods) {
    errors.push_back(make_error("too-large", value.span,
                                fmt::format("{:.0f} burst periods per replication; the limit is {:.0f}",
                                            out.duration.raw() / out.arrivals.every.raw(), kMaxPeriods)));
  }
  // A run of more requests than this would need gigabytes; say so before it starts.
  constexpr double kMaxRequests = 2e7;
  const double expected = std::max(out.arrivals.rate, out.arrivals.peak) * out.duration.raw();
  if (expected > kMaxRequests) {
    errors.push_back(
        make_error("too-large", value.span,
                   fmt::format("about {:.0f} requests per replication; the limit is {:.0f}", expected, kMaxRequests)));
  }
}

void read_serving(const Value& value, Serving& out, Diagnostics& errors) {
  MapReader map(value, "the serving section", errors);
  if (const Value* v = map.require("batch")) {
    MapReader batch(*v, "serving.batch", errors);
    if (const Value* x = batch.require("max")) out.batch_max = read_integer(*x, 1, 1 << 20, errors).value_or(1);
    if (const Value* x = batch.require("wait")) out.wait = to_ns(read_time(x, 0, errors).value_or(0));
    if (const Value* x = batch.find("group")) {
      out.group = read_choice(*x, {"mixed", "by_bucket"}, errors).value_or("mixed") == "by_bucket" ? Grouping::by_bucket
                                                                                                   : Grouping::mixed;
    }
    batch.finish();
  }
  if (const Value* v = map.require("admission")) {
    MapReader admission(*v, "serving.admission", errors);
    if (const Value* x = admission.require("queue")) out.queue = read_integer(*x, 1, 1 << 30, errors).value_or(1);
    admission.finish();
  }
  if (const Value* v = map.find("clock"); v != nullptr && v->text != "nominal") {
    if (const auto hertz = read_quantity(*v, kFrequency, "1 GHz", 1e3, 1e12, errors)) out.clock = Hertz(*hertz);
  }
  map.finish();
}

void read_targets(const Value& value, Targets& out, Diagnostics& errors) {
  MapReader map(value, "the targets section", errors);
  if (const Value* v = map.find("latency")) {
    MapReader latency(*v, "targets.latency", errors);
    if (const auto s = read_time(latency.find("p95"), 1e-9, errors)) out.p95 = to_ns(*s);
    if (const auto s = read_time(latency.find("p99"), 1e-9, errors)) out.p99 = to_ns(*s);
    latency.finish();
  }
  if (const Value* v = map.find("loss")) out.loss = read_percent(*v, 0, 1, errors);
  if (const Value* v = map.find("quality")) {
    MapReader quality(*v, "targets.quality", errors);
    if (const Value* x = quality.find("against_baseline"))
      out.quality_identical = read_choice(*x, {"identical"}, errors).has_value();
    if (const Value* x = quality.find("absolute")) out.quality_absolute = read_number(*x, -1e9, 1e9, errors);
    quality.finish();
  }
  map.finish();
}

Gate read_gate(const Value& value, Diagnostics& errors) {
  Gate out;
  MapReader map(value, "the gate", errors);
  for (const char* key : {"plumbline", "kind", "source"}) map.find(key);
  if (const Value* v = map.require("name")) out.name = read_text(*v, errors).value_or("");
  const auto count = [&](const char* key, std::int64_t low, std::int64_t high, std::int64_t& slot) {
    if (const Value* v = map.require(key)) slot = read_integer(*v, low, high, errors).value_or(low);
  };
  count("pairs", 4, 60, out.pairs);
  count("replay_pairs", 2, 60, out.replay_pairs);
  count("ranking_pairs", 2, 60, out.ranking_pairs);
  count("min_slice_requests", 1, 1 << 30, out.min_slice_requests);
  count("resamples", 100, 100000, out.resamples);
  std::int64_t seed = 1;
  count("seed", 0, std::int64_t{1} << 40, seed);
  out.seed = static_cast<std::uint64_t>(seed);
  if (const Value* v = map.require("alpha")) out.alpha = read_percent(*v, 0.0001, 0.5, errors).value_or(0.05);
  if (const Value* v = map.require("recovery")) out.recovery = read_percent(*v, 0, 1, errors).value_or(0.8);
  if (const Value* v = map.require("closure")) out.closure = read_percent(*v, 0, 1, errors).value_or(0.8);
  if (const Value* v = map.require("margins"); v != nullptr && v->kind == ValueKind::map) {
    for (const auto& entry : v->entries) {
      const auto margin = read_percent(entry.value, 0, 10, errors);
      if (!margin) continue;
      if (entry.key == "default") out.default_margin = *margin;
      out.margins[entry.key] = *margin;
    }
  }
  if (const Value* v = map.require("required_evidence"); v != nullptr && expect_list(*v, "required_evidence", errors)) {
    for (const auto& item : v->items) {
      if (const auto name = read_text(item, errors)) out.required_evidence.push_back(*name);
    }
  }
  map.finish();
  return out;
}

std::vector<FixRow> read_fixes(const Value& value, Diagnostics& errors) {
  std::vector<FixRow> out;
  MapReader map(value, "the fixes", errors);
  for (const char* key : {"plumbline", "kind", "name", "source"}) map.find(key);
  if (const Value* rows = map.require("rows"); rows != nullptr && expect_list(*rows, "rows", errors)) {
    for (const auto& item : rows->items) {
      FixRow row;
      row.span = item.span;
      MapReader fix(item, "a fix", errors);
      const auto text = [&](const char* key) {
        const Value* v = fix.require(key);
        return v == nullptr ? std::string() : read_text(*v, errors).value_or("");
      };
      row.id = text("id");
      row.kind = text("kind");
      row.title = text("title");
      row.hypothesis = text("hypothesis");
      row.set = text("set");
      row.rule = text("rule");
      if (const Value* v = fix.find("value")) row.value = *v;
      if (const Value* v = fix.find("times")) row.times = read_number(*v, 0.001, 1000, errors).value_or(1);
      fix.finish();
      out.push_back(std::move(row));
    }
  }
  map.finish();
  return out;
}

// Symbols of the model's inputs, in their order.
std::vector<std::string> input_symbols(const Graph& graph) {
  std::vector<std::string> out;
  for (const TensorId id : graph.inputs) {
    const auto& shape = graph.tensors[id.at()].shape;
    if (!shape) continue;
    for (const auto& dimension : *shape) {
      const bool known = std::find(out.begin(), out.end(), dimension.symbol) != out.end();
      if (!dimension.symbol.empty() && !known) out.push_back(dimension.symbol);
    }
  }
  return out;
}

// Whether the model is made for batches of exactly this size.
bool fixed_at(const Graph& graph, std::int64_t batch) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](TensorId id) {
    const auto& shape = graph.tensors[id.at()].shape;
    return shape && !shape->empty() && shape->front().value == batch;
  });
}

// A compiled batch or sequence that the model cannot take would be costed as whatever the model is fixed at.
void check_symbols(const ModelUse& model, const Buckets& shapes, Diagnostics& errors) {
  if (!model.graph) return;
  const auto symbols = input_symbols(*model.graph);
  const auto has = [&](const std::string& symbol) { return has_dimension(*model.graph, symbol); };
  const auto first = [&] { return model.graph->inputs.empty() ? TensorId{} : model.graph->inputs.front(); };
  const std::string help =
      !symbols.empty()
          ? fmt::format("its inputs name {}: say which it is with batch: or sequence:", fmt::join(symbols, ", "))
          : fmt::format(
                "every dimension of its inputs is fixed: export it with a named batch dimension, or say batch: "
                "{}.0 if the graph takes other sizes there",
                first().valid() ? model.graph->tensors[first().at()].name : "INPUT");
  if (!has(model.batch_symbol) && !(shapes.batch.size() == 1 && fixed_at(*model.graph, shapes.batch.front()))) {
    errors.push_back(make_error("unknown-name", model.span,
                                fmt::format("the model '{}' has no dimension '{}' to compile batches of {} into",
                                            model.name, model.batch_symbol, fmt::join(shapes.batch, ", ")),
                                help));
  }
  for (const auto& [name, size] : model.bind) {
    if (has(name)) continue;
    errors.push_back(make_error("unknown-name", model.span,
                                fmt::format("the model '{}' has no dimension '{}' to bind", model.name, name),
                                suggest(name, symbols)));
  }
  // The default name may be missing: an image model beside one of text has no sequence.
  if (!model.sequence_symbol.empty() && model.sequence_symbol != "sequence" && !has(model.sequence_symbol)) {
    errors.push_back(make_error("unknown-name", model.span,
                                fmt::format("the model '{}' has no dimension '{}'", model.name, model.sequence_symbol),
                                help));
  }
}

// Contradictions between sections, once each section is readable.
void check_scenario(const Scenario& s, const Value& resolved, Diagnostics& errors) {
  const auto at = [&](const char* path) {
    const Value* v = resolved.at_path(path);
    return v == nullptr ? resolved.span : v->span;
  };
  const auto& shapes = s.compile.shapes;
  if (!shapes.batch.empty() && s.serving.batch_max > shapes.batch.back()) {
    errors.push_back(make_error("bad-value", at("serving.batch.max"),
                                fmt::format("batches of up to {} requests, but the largest compiled batch is {}",
                                            s.serving.batch_max, shapes.batch.back()),
                                "raise compile.shapes.batch or lower serving.batch.max"));
  }
  for (const auto& model : s.models) check_symbols(model, shapes, errors);
  // Each pair of a batch and a sequence size is compiled for every model.
  constexpr std::size_t kMaxShapes = 512;
  const std::size_t compiled = shapes.batch.size() * std::max<std::size_t>(1, shapes.sequence.size()) * s.models.size();
  if (compiled > kMaxShapes) {
    errors.push_back(make_error("too-large", at("compile.shapes"),
                                fmt::format("{} compiled shapes; the limit is {}", compiled, kMaxShapes),
                                "compile fewer batch or sequence sizes"));
  }
  const auto takes_sequence = [](const ModelUse& m) { return m.graph && has_dimension(*m.graph, m.sequence_symbol); };
  const bool takes = std::any_of(s.models.begin(), s.models.end(), takes_sequence);
  for (const auto& profile : s.traffic.profiles) {
    if (takes && profile.sequence == 0) {
      errors.push_back(make_error("missing-key", at("traffic.profiles"),
                                  fmt::format("the profile '{}' lacks 'sequence', which a model needs", profile.name)));
    }
  }
  const bool sequences =
      std::any_of(s.models.begin(), s.models.end(), [](const ModelUse& m) { return !m.sequence_symbol.empty(); });
  for (const auto& profile : s.traffic.profiles) {
    if (sequences && !shapes.sequence.empty() && profile.sequence > shapes.sequence.back()) {
      errors.push_back(make_error("bad-value", at("traffic.profiles"),
                                  fmt::format("a profile of sequence {}, but the longest compiled sequence is {}",
                                              profile.sequence, shapes.sequence.back()),
                                  "add a longer compile.shapes.sequence"));
    }
  }
  if (s.accelerator && s.serving.clock &&
      (*s.serving.clock < s.accelerator->clock_min || *s.serving.clock > s.accelerator->clock_max)) {
    errors.push_back(make_error("bad-value", at("serving.clock"),
                                fmt::format("a clock of {:.3g} GHz outside the accelerator's {:.3g} to {:.3g} GHz",
                                            s.serving.clock->raw() / 1e9, s.accelerator->clock_min.raw() / 1e9,
                                            s.accelerator->clock_max.raw() / 1e9)));
  }
  std::vector<std::string> flows = {"auto"};
  for (const auto& [name, flow] : s.dataflows) flows.push_back(name);
  // A map from layer classes: each name is wrong at its own place. Classes themselves are known once kernels are.
  const Value* written = resolved.at_path("compile.dataflow");
  const auto check_flow = [&](const std::string& name, const std::string& layer_class) {
    if (std::find(flows.begin(), flows.end(), name) != flows.end()) return;
    const Value* own = written == nullptr ? nullptr : written->find(layer_class);
    errors.push_back(make_error("unknown-name", own != nullptr ? own->span : at("compile.dataflow"),
                                fmt::format("no dataflow '{}'", name), suggest(name, flows)));
  };
  check_flow(s.compile.dataflow, "default");
  for (const auto& [layer_class, name] : s.compile.dataflow_by_class) check_flow(name, layer_class);
  if (!s.accelerator) return;
  std::vector<std::string> levels;
  for (const auto& level : s.accelerator->levels) levels.push_back(level.name);
  for (const auto& row : s.compile.constraints) {
    if (s.accelerator->level(row.level) == nullptr) {
      errors.push_back(make_error("unknown-name", row.span,
                                  fmt::format("the accelerator '{}' has no level '{}'", s.accelerator->name, row.level),
                                  suggest(row.level, levels)));
    }
  }
}

}  // namespace

Result<Scenario> read_scenario(const Value& resolved, Library& library) {
  Diagnostics errors;
  Scenario out;
  out.resolved = resolved;
  if (const Value* kind = resolved.find("kind"); kind != nullptr && resolved.find("models") == nullptr)
    return make_error("unknown-document", kind->span,
                      fmt::format("the file is of kind '{}', not a scenario", kind->text),
                      "a scenario names such a file; docs/scenario.md lists its keys");
  MapReader map(resolved, "the scenario", errors);
  if (const Value* v = map.require("plumbline")) read_integer(*v, 1, 1, errors);
  if (const Value* v = map.require("name")) out.name = read_text(*v, errors).value_or("");
  if (const Value* v = map.require("models")) read_models(*v, out, library, errors);
  if (const Value* v = map.require("accelerator")) {
    const Value* energy = v->find("energy");
    if (v->kind != ValueKind::map || energy == nullptr || energy->kind != ValueKind::map) {
      errors.push_back(make_error("missing-key", v->span, "the accelerator lacks the key 'energy'",
                                  "name a table of catalog/energy"));
    } else {
      auto accelerator = read_accelerator(*v, *energy);
      if (accelerator.ok()) {
        out.accelerator = std::make_shared<const Accelerator>(std::move(accelerator).value());
      } else {
        errors.insert(errors.end(), accelerator.errors().begin(), accelerator.errors().end());
      }
    }
  }
  if (const Value* v = map.find("dataflows"); v != nullptr && v->kind == ValueKind::map) {
    for (const auto& entry : v->entries) out.dataflows[entry.key] = read_dataflow(entry.value, errors);
  }
  if (const Value* v = map.require("compile")) out.compile = read_compile(*v, errors);
  if (const Value* v = map.require("precision")) out.precision = read_policy(*v, errors);
  if (const Value* v = map.require("traffic")) read_traffic(*v, out.traffic, errors);
  if (const Value* v = map.require("serving")) read_serving(*v, out.serving, errors);
  if (const Value* v = map.find("environment")) {
    MapReader environment(*v, "the environment section", errors);
    if (const Value* x = environment.require("ambient")) out.ambient_celsius = read_celsius(*x, errors).value_or(25);
    environment.finish();
  }
  if (const Value* v = map.require("targets")) read_targets(*v, out.targets, errors);
  if (const Value* v = map.require("metric")) {
    MapReader metric(*v, "the metric section", errors);
    if (const Value* x = metric.require("name")) out.metric.name = read_text(*x, errors).value_or("");
    if (const Value* x = metric.require("better"))
      out.metric.lower_is_better = read_choice(*x, {"lower", "higher"}, errors).value_or("lower") == "lower";
    metric.finish();
  }
  if (const Value* v = map.find("owners"); v != nullptr && v->kind != ValueKind::map) {
    errors.push_back(make_error("wrong-type", v->span, "owners must be a map from stage to team"));
  }
  if (const Value* v = map.find("owners"); v != nullptr && v->kind == ValueKind::map) {
    for (const auto& entry : v->entries) {
      bool known = false;
      for (int i = 0; i < kStageCount; ++i) known |= entry.key == stage_name(static_cast<Stage>(i));
      if (!known)
        errors.push_back(make_error("unknown-key", entry.span, fmt::format("unknown stage '{}' in owners", entry.key),
                                    suggest(entry.key, {"ingest", "lower", "schedule", "execute", "serve"})));
      out.owners[entry.key] = read_text(entry.value, errors).value_or("");
    }
  }
  if (const Value* v = map.find("fixes")) out.fixes = read_fixes(*v, errors);
  if (const Value* v = map.require("gate")) out.gate = read_gate(*v, errors);
  map.finish();
  if (errors.empty()) check_scenario(out, resolved, errors);
  if (!errors.empty()) return errors;
  return out;
}

}  // namespace plumbline::ingest
