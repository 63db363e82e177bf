#include "study/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/parallel.h"
#include "core/sha256.h"
#include "decide/evidence_matrix.h"
#include "execute/choose_chains.h"
#include "execute/cost.h"
#include "ingest/graph_counts.h"
#include "lower/kernel.h"
#include "study/fix_rules.h"

namespace plumbline::study {
namespace {

// Integer sums of int8 products stay exact below this many terms (2^31 / 2^14).
constexpr std::int64_t kExactTerms = 1 << 17;

std::string part(const ingest::Value& resolved, const char* path) {
  const ingest::Value* value = resolved.at_path(path);
  return value == nullptr ? "-" : ingest::canonical_text(*value);
}

// What of a document decides the bits of every output: without the keys that only name things.
ingest::Value without_labels(const ingest::Value& document) {
  static constexpr std::string_view kLabels[] = {"plumbline", "kind", "name", "family", "source"};
  ingest::Value out = document;
  std::erase_if(out.entries, [](const ingest::Entry& e) {
    return std::find(std::begin(kLabels), std::end(kLabels), e.key) != std::end(kLabels);
  });
  return out;
}

// Whether every initializer has its values in the file; what nodes compute or fill comes from the file too.
bool holds_its_values(const ingest::Graph& graph) {
  std::vector<bool> made(graph.tensors.size(), false);
  for (const auto& node : graph.nodes) {
    for (const TensorId id : node.outputs) {
      if (id.valid()) made[id.at()] = true;
    }
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (graph.tensors[i].parameter && !graph.tensors[i].has_data && !made[i]) return false;
  }
  return true;
}

// The models' operators, weights and bindings and the policy's formats; names, families and shares of the traffic are
// no arithmetic. An ONNX file counts by its bytes, and by its path too where these lack the weights (external data).
std::string arithmetic_text(const ingest::Scenario& scenario, const ingest::Library& library) {
  std::string out;
  const ingest::Value* models = scenario.resolved.find("models");
  for (std::size_t m = 0; m < scenario.models.size(); ++m) {
    const ingest::ModelUse& use = scenario.models[m];
    out += fmt::format("{}|{}", use.batch_symbol, use.sequence_symbol);
    for (const auto& [symbol, size] : use.bind) out += fmt::format("|{}={}", symbol, size);
    if (const ingest::Value* document = models->items[m].find("document")) {
      out += fmt::format("|{}", ingest::canonical_text(without_labels(*document)));
    } else if (const ingest::Value* onnx = models->items[m].find("onnx")) {
      const std::string file = ingest::model_path(*onnx);
      out += fmt::format("|{}|{}", library.digest(file), holds_its_values(*use.graph) ? "" : file);
    }
    out += "\n";
  }
  const ingest::Value* precision = scenario.resolved.find("precision");
  return out + (precision == nullptr ? "-" : ingest::canonical_text(without_labels(*precision)));
}

// First line of a diagnostic, as an arm's reason.
std::string reason(const Diagnostics& errors) {
  const auto& first = errors.front();
  const std::string where = first.span.where();
  return where.empty() ? first.message : fmt::format("{} ({})", first.message, where);
}

// Every parameter of every model must fit where everything starts: the outermost level.
Status fits_outermost(const std::vector<schedule::ModelSchedules>& models, const ingest::Accelerator& accelerator) {
  const auto& outermost = accelerator.levels.front();
  if (!outermost.capacity) return Done{};
  std::int64_t total = 0;
  for (const auto& model : models) {
    if (model.buckets.empty()) continue;
    std::map<std::int32_t, std::int64_t> stored;
    for (const auto& instance : model.buckets.front().graph->instances) {
      for (const auto& use : instance.parameters)
        stored[use.tensor.index] = std::max(stored[use.tensor.index], use.stored);
    }
    for (const auto& [tensor, bytes] : stored) total += bytes;
  }
  if (total <= outermost.capacity->raw()) return Done{};
  return make_error("does-not-fit", outermost.span,
                    fmt::format("the models' {} bytes of parameters do not fit the {} bytes of '{}'", total,
                                outermost.capacity->raw(), outermost.name));
}

std::int64_t longest_reduction(const lower::KernelGraph& graph) {
  std::int64_t longest = 0;
  for (const auto& kernel : graph.kernels) {
    if (kernel.kind != lower::KernelKind::matrix) continue;
    std::int64_t outputs = 1;
    std::vector<bool> free(kernel.einsum.dim_names.size(), false);
    for (const auto& axis : kernel.einsum.operands.back().axes) {
      for (const auto& term : axis) free[static_cast<std::size_t>(term.dim)] = true;
    }
    std::int64_t terms = 1;
    for (std::size_t d = 0; d < free.size(); ++d) (free[d] ? outputs : terms) *= kernel.einsum.dims[d];
    longest = std::max(longest, terms);
  }
  return longest;
}

// Loop nests in the order of kernels and shapes: what decides in which order sums are added.
std::string reduction_order(const std::vector<schedule::ModelSchedules>& models) {
  std::string text;
  for (const auto& model : models) {
    for (std::size_t b = 0; b < model.buckets.size(); ++b) {
      if (b > 0 && model.buckets[b].graph == model.buckets[b - 1].graph) continue;
      for (const auto& kernel : model.buckets[b].schedule->kernels) text += kernel.text + "\n";
    }
  }
  return text;
}

// Names that only the judging stages know: a misspelt one would leave a margin or a requirement without effect.
Status check_judged_names(const ingest::Scenario& scenario) {
  Diagnostics errors;
  const ingest::Value& document = scenario.resolved;
  const auto refuse = [&](const Span& at, std::string message, std::string help) {
    errors.push_back(make_error("unknown-name", at, std::move(message), std::move(help)));
  };
  std::vector<std::string> metrics;
  for (const auto& row : validate::metrics()) metrics.emplace_back(row.name);
  const auto* metric = validate::find_metric(scenario.metric.name);
  if (const ingest::Value* at = document.at_path("metric.name"); at != nullptr && metric == nullptr) {
    refuse(at->span, fmt::format("no metric '{}'", at->text), suggest(at->text, metrics));
  }
  if (const ingest::Value* at = document.at_path("metric.better");
      metric != nullptr && at != nullptr && metric->lower_is_better != scenario.metric.lower_is_better) {
    errors.push_back(
        make_error("bad-value", at->span,
                   fmt::format("'{}' is better when {}", metric->name, metric->lower_is_better ? "lower" : "higher")));
  }
  if (const ingest::Value* margins = document.at_path("gate.margins"); margins != nullptr) {
    for (const auto& entry : margins->entries) {
      if (entry.key == "default" || validate::find_metric(entry.key) != nullptr) continue;
      refuse(entry.span, fmt::format("a margin for '{}', which is no metric", entry.key), suggest(entry.key, metrics));
    }
  }
  const std::vector<std::string> kinds = decide::evidence_kinds();
  if (const ingest::Value* required = document.at_path("gate.required_evidence"); required != nullptr) {
    for (const auto& item : required->items) {
      if (std::find(kinds.begin(), kinds.end(), item.text) != kinds.end()) continue;
      refuse(item.span, fmt::format("no kind of evidence is called '{}'", item.text), suggest(item.text, kinds));
    }
  }
  const std::vector<std::string> rules = fix_rule_names();
  for (const auto& row : scenario.fixes) {
    if (std::find(rules.begin(), rules.end(), row.rule) != rules.end()) continue;
    refuse(row.span, fmt::format("the fix '{}' follows no rule '{}'", row.id, row.rule), suggest(row.rule, rules));
  }
  if (!errors.empty()) return errors;
  return Done{};
}

}  // namespace

Engine::Engine(ingest::Library& library, unsigned threads) : library_(library), threads_(threads) {}

Result<std::shared_ptr<const lower::KernelGraph>> Engine::lowered(const ingest::ModelUse& model,
                                                                  const std::string& model_key, std::int64_t batch,
                                                                  std::int64_t sequence,
                                                                  const ingest::Scenario& scenario,
                                                                  const ingest::Accelerator& accelerator) {
  const std::string key = fmt::format("{}|{}|{}", model_key, batch, sequence);
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = lowered_.find(key); it != lowered_.end()) return it->second;
  }
  ingest::Bindings bindings = model.bind;
  if (ingest::has_dimension(*model.graph, model.batch_symbol)) bindings[model.batch_symbol] = batch;
  if (sequence > 0 && ingest::has_dimension(*model.graph, model.sequence_symbol))
    bindings[model.sequence_symbol] = sequence;
  PL_TRY(const ingest::ShapedGraph shaped, ingest::infer_shapes(*model.graph, bindings));
  PL_TRY(lower::KernelGraph kernels, lower::lower(shaped, scenario.compile, scenario.precision, accelerator));
  auto shared = std::make_shared<const lower::KernelGraph>(std::move(kernels));
  const std::lock_guard lock(mutex_);
  return lowered_[key] = shared;
}

Result<std::shared_ptr<const Compiled>> Engine::compile(const ingest::Scenario& scenario,
                                                        const ingest::Accelerator& accelerator,
                                                        const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = compiled_.find(key); it != compiled_.end()) return it->second;
  }
  auto out = std::make_shared<Compiled>();
  out->has_weights = true;
  const auto& resolved = scenario.resolved;
  const std::string lower_key = sha256(part(resolved, "models") + part(resolved, "compile.fusion") +
                                       part(resolved, "compile.sparsity") + part(resolved, "precision") +
                                       part(resolved, "accelerator.formats") + part(resolved, "compile.constraints"));
  const auto& shapes = scenario.compile.shapes;
  const std::vector<std::int64_t> sequences = shapes.sequence.empty() ? std::vector<std::int64_t>{0} : shapes.sequence;
  for (std::size_t m = 0; m < scenario.models.size(); ++m) {
    const auto& model = scenario.models[m];
    out->has_weights = out->has_weights && model.graph->has_weights;
    schedule::ModelSchedules schedules;
    schedules.name = model.name;
    const bool sequenced = ingest::has_dimension(*model.graph, model.sequence_symbol);
    for (const std::int64_t batch : shapes.batch) {
      for (const std::int64_t sequence : sequences) {
        if (!sequenced && !schedules.buckets.empty() && schedules.buckets.back().batch == batch) {
          schedules.buckets.push_back(schedules.buckets.back());  // no sequence: one shape serves every length
          continue;
        }
        schedule::Bucket bucket;
        bucket.batch = batch;
        bucket.sequence = sequenced ? sequence : 0;
        PL_TRY(bucket.graph,
               lowered(model, fmt::format("{}|{}", lower_key, m), batch, bucket.sequence, scenario, accelerator));
        PL_TRY(schedule::Schedule made,
               schedule::schedule(*bucket.graph, accelerator, scenario.compile, scenario.dataflows, mappings_.get()));
        out->longest_reduction = std::max(out->longest_reduction, longest_reduction(*bucket.graph));
        bucket.schedule = std::make_shared<const schedule::Schedule>(std::move(made));
        schedules.buckets.push_back(std::move(bucket));
      }
    }
    out->models.push_back(std::move(schedules));
  }
  PL_TRY_STATUS(fits_outermost(out->models, accelerator));
  PL_TRY(out->residency, schedule::plan_residency(out->models, accelerator, scenario.compile));
  if (scenario.compile.fuse_chains) {
    PL_TRY(execute::ChainedSchedules cut,
           execute::choose_chains({std::move(out->models), std::move(out->residency)}, accelerator, scenario.compile,
                                  scenario.dataflows, mappings_.get()));
    out->models = std::move(cut.models);
    out->residency = std::move(cut.residency);
  }
  out->reduction_order = reduction_order(out->models);
  const std::lock_guard lock(mutex_);
  return compiled_[key] = out;
}

Result<Prepared> Engine::prepare(const std::string& name, const ingest::Value& document, const AcceleratorEdit& edit) {
  Prepared out;
  out.name = name;
  PL_TRY(ingest::Value resolved, library_.resolve(document));
  out.hash = sha256(ingest::canonical_text(resolved));
  std::shared_ptr<const ingest::Scenario> scenario;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = scenarios_.find(out.hash); it != scenarios_.end()) scenario = it->second;
  }
  if (!scenario) {
    PL_TRY(ingest::Scenario read, ingest::read_scenario(resolved, library_));
    PL_TRY_STATUS(check_judged_names(read));
    scenario = std::make_shared<const ingest::Scenario>(std::move(read));
    const std::lock_guard lock(mutex_);
    scenarios_[out.hash] = scenario;
  }
  out.scenario = scenario;

  ingest::Accelerator edited = *scenario->accelerator;
  if (edit.apply) edit.apply(edited);
  const std::string compile_key =
      sha256(part(resolved, "models") + "|" + part(resolved, "compile") + "|" + part(resolved, "precision") + "|" +
             part(resolved, "accelerator") + "|" + part(resolved, "dataflows") + "|" + (edit.remap ? edit.name : ""));
  PL_TRY(out.compiled, compile(*scenario, edit.remap ? edited : *scenario->accelerator, compile_key));
  const Clock clock{scenario->serving.clock.value_or(edited.nominal.frequency)};
  out.cost_key = fmt::format("{}|{}|{:.17g}", compile_key, edit.name, clock.frequency.raw());
  out.serve_key = part(resolved, "serving.batch") + part(resolved, "serving.admission") + part(resolved, "environment");
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = costs_.find(out.cost_key); it != costs_.end()) out.costs = it->second;
  }
  if (!out.costs) {
    PL_TRY(execute::CostTable table, execute::build_cost_table(out.compiled->models, scenario->compile.shapes,
                                                               out.compiled->residency, edited, clock));
    out.costs = std::make_shared<const execute::CostTable>(std::move(table));
    const std::lock_guard lock(mutex_);
    costs_[out.cost_key] = out.costs;
  }
  return out;
}

Prepared Engine::prepare_or_fail(const std::string& name, const ingest::Value& document, const AcceleratorEdit& edit) {
  auto prepared = prepare(name, document, edit);
  if (prepared.ok()) return std::move(prepared).value();
  Prepared failed;
  failed.name = name;
  failed.failure = reason(prepared.errors());
  return failed;
}

std::shared_ptr<const serve::ArrivalTrace> Engine::arrivals(const ingest::Scenario& scenario, std::uint64_t seed) {
  std::vector<double> shares;
  std::string key = part(scenario.resolved, "traffic") + fmt::format("|{}", seed);
  for (const auto& model : scenario.models) {
    shares.push_back(model.share);
    key += fmt::format("|{:.17g}", model.share);
  }
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = arrivals_.find(key); it != arrivals_.end()) return it->second;
  }
  auto trace = std::make_shared<const serve::ArrivalTrace>(serve::make_arrivals(scenario.traffic, shares, seed));
  const std::lock_guard lock(mutex_);
  return arrivals_[key] = trace;
}

decide::Arm Engine::empty_arm(const Prepared& prepared) const {
  decide::Arm arm;
  arm.name = prepared.name;
  arm.hash = prepared.hash;
  arm.scenario = prepared.scenario;
  arm.costs = prepared.costs;
  arm.failure = prepared.failure;
  if (!prepared.ok()) return arm;
  const auto& compiled = *prepared.compiled;
  arm.longest_reduction = compiled.longest_reduction;
  arm.exact = prepared.scenario->precision.exact && compiled.longest_reduction < kExactTerms;
  arm.has_weights = compiled.has_weights;
  arm.numerics_hash = sha256(
      fmt::format("{}|{}", arithmetic_text(*prepared.scenario, library_), arm.exact ? "" : compiled.reduction_order));
  return arm;
}

std::vector<decide::Arm> Engine::run(const std::vector<Job>& jobs) {
  std::vector<decide::Arm> arms;
  struct Item {
    std::size_t job;
    std::size_t seed;
  };
  std::vector<Item> items;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    arms.push_back(empty_arm(*jobs[j].prepared));
    if (!jobs[j].prepared->ok()) continue;
    arms.back().runs.resize(jobs[j].seeds.size());
    for (std::size_t s = 0; s < jobs[j].seeds.size(); ++s) items.push_back({j, s});
  }
  std::vector<std::int64_t> requests(items.size(), 0);
  parallel_for(items.size(), threads_, [&](std::size_t i) {
    const Job& job = jobs[items[i].job];
    const auto& scenario = *job.prepared->scenario;
    const auto trace = arrivals(scenario, job.seeds[items[i].seed]);
    thread_local serve::Run run;
    if (job.replay.kind == Replay::Kind::frozen) {
      run =
          serve::replay(*job.prepared->costs, scenario.traffic.profiles, *trace, (*job.replay.batches)[items[i].seed]);
    } else {
      serve::serve_into(run, *job.prepared->costs, scenario.serving, scenario.traffic.profiles, *trace);
    }
    arms[items[i].job].runs[items[i].seed] =
        validate::summarize(*job.prepared->costs, scenario.traffic.profiles, *trace, run);
    requests[i] = static_cast<std::int64_t>(trace->arrivals.size());
  });
  for (const std::int64_t r : requests) requests_ += r;
  return arms;
}

std::vector<serve::FrozenBatches> Engine::record(const Prepared& prepared, const std::vector<std::uint64_t>& seeds) {
  std::vector<serve::FrozenBatches> out(seeds.size());
  parallel_for(seeds.size(), threads_, [&](std::size_t s) {
    const auto& scenario = *prepared.scenario;
    const auto trace = arrivals(scenario, seeds[s]);
    out[s] = serve::freeze(serve::serve(*prepared.costs, scenario.serving, scenario.traffic.profiles, *trace));
  });
  return out;
}

}  // namespace plumbline::study
