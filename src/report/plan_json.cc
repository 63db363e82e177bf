// Artefacts of the stages up to the schedule.
#include <algorithm>

#include "core/sha256.h"
#include "report/artefacts.h"
#include "report/json.h"
#include "schedule/choice_reasons.h"

namespace plumbline::report {
namespace {

Json names_of(const std::vector<std::string>& dim_names, const lower::Axis& axis) {
  Json out = Json::array();
  for (const auto& term : axis) {
    out.push_back({{"dim", dim_names[static_cast<std::size_t>(term.dim)]}, {"coefficient", term.coefficient}});
  }
  return out;
}

const char* role_name(lower::Role role) {
  constexpr const char* kNames[] = {"weights", "inputs", "stationary_activations", "outputs"};
  return kNames[static_cast<int>(role)];
}

const char* kernel_kind_name(lower::KernelKind kind) {
  constexpr const char* kNames[] = {"matrix", "vector", "movement"};
  return kNames[static_cast<int>(kind)];
}

Json einsum_json(const lower::Einsum& einsum) {
  Json dims = Json::object();
  for (int d = 0; d < einsum.rank(); ++d)
    dims[einsum.dim_names[static_cast<std::size_t>(d)]] = einsum.dims[static_cast<std::size_t>(d)];
  Json operands = Json::array();
  for (const auto& operand : einsum.operands) {
    Json axes = Json::array();
    for (const auto& axis : operand.axes) axes.push_back(names_of(einsum.dim_names, axis));
    operands.push_back({{"name", operand.name},
                        {"role", role_name(operand.role)},
                        {"bits", operand.bits},
                        {"partial_bits", operand.partial_bits},
                        {"side_bits", operand.side_bits},
                        {"side_group", operand.side_group},
                        {"axes", std::move(axes)}});
  }
  return {{"dims", std::move(dims)}, {"operands", std::move(operands)}};
}

Json kernel_json(const lower::Kernel& kernel) {
  Json out = {{"name", kernel.name},
              {"kind", kernel_kind_name(kernel.kind)},
              {"layer_class", kernel.layer_class},
              {"repeats", kernel.repeats},
              {"macs", kernel.macs()},
              {"vector_operations", kernel.vector_operations()},
              {"unique_weight_bytes", kernel.unique_weight_bytes},
              {"unique_weight_elements", kernel.unique_weight_elements}};
  if (kernel.kind == lower::KernelKind::matrix) {
    out["formats"] = {{"inputs", kernel.inputs}, {"accumulate", kernel.accumulate}, {"outputs", kernel.outputs}};
    out["einsum"] = einsum_json(kernel.einsum);
  }
  out["steps"] = Json::array();
  for (const auto& step : kernel.steps) {
    out["steps"].push_back({{"op", step.op},
                            {"elements", step.elements},
                            {"operations", step.operations},
                            {"input_bytes", step.input_bytes},
                            {"output_bytes", step.output_bytes},
                            {"parameter_bytes", step.parameter_bytes}});
  }
  out["alternatives"] = Json::array();
  for (const auto& other : kernel.alternatives) {
    out["alternatives"].push_back({{"name", other.name}, {"chosen", other.chosen}, {"reason", other.reason}});
  }
  return out;
}

// [buffer, operand, bytes] each: a transformer has thousands of them.
Json uses_json(const std::vector<lower::BufferUse>& uses) {
  Json out = Json::array();
  for (const auto& use : uses) out.push_back(Json::array({use.buffer, use.operand, use.bytes}));
  return out;
}

Json instance_json(const lower::Instance& instance) {
  Json parameters = Json::array();
  for (const auto& use : instance.parameters) {
    parameters.push_back(Json::array({use.tensor.index, use.operand, use.bytes, use.stored}));
  }
  Json nodes = Json::array();
  for (const auto node : instance.nodes) nodes.push_back(node.index);
  return {{"kernel", instance.kernel.index},
          {"name", instance.name},
          {"nodes", std::move(nodes)},
          {"reads", uses_json(instance.reads)},
          {"writes", uses_json(instance.writes)},
          {"parameters", std::move(parameters)}};
}

Json graph_json(const lower::KernelGraph& graph) {
  Json out = {{"kernels", Json::array()}, {"instances", Json::array()}, {"buffers", Json::array()}};
  for (const auto& kernel : graph.kernels) out["kernels"].push_back(kernel_json(kernel));
  for (const auto& instance : graph.instances) out["instances"].push_back(instance_json(instance));
  Json columns = Json::object();
  for (const char* name : {"tensor", "bytes", "on_chip", "model_input", "model_output"}) columns[name] = Json::array();
  for (const auto& buffer : graph.buffers) {
    columns["tensor"].push_back(buffer.tensor.index);
    columns["bytes"].push_back(buffer.bytes);
    columns["on_chip"].push_back(buffer.on_chip);
    columns["model_input"].push_back(buffer.model_input);
    columns["model_output"].push_back(buffer.model_output);
  }
  out["buffers"] = std::move(columns);
  return out;
}

// Calls add(bucket, what) for every compiled shape once: a model without a sequence repeats its bucket.
template <class Add>
void for_buckets(const schedule::ModelSchedules& model, Add add) {
  const schedule::Bucket* last = nullptr;
  for (const auto& bucket : model.buckets) {
    if (last != nullptr && last->graph == bucket.graph) continue;
    add(bucket);
    last = &bucket;
  }
}

Json bucket_json(const schedule::Bucket& bucket) { return {{"batch", bucket.batch}, {"sequence", bucket.sequence}}; }

const char* loop_kind_name(schedule::LoopKind kind) {
  constexpr const char* kNames[] = {"temporal", "spatial_x", "spatial_y"};
  return kNames[static_cast<int>(kind)];
}

Json level_json(const schedule::KernelSchedule& made, const lower::Einsum& einsum, std::size_t level) {
  const auto& nest = made.mapping.levels[level];
  Json loops = Json::array();
  for (const auto& loop : nest.loops) {
    loops.push_back({{"dim", einsum.dim_names[static_cast<std::size_t>(loop.dim)]},
                     {"bound", loop.bound},
                     {"kind", loop_kind_name(loop.kind)}});
  }
  Json operands = Json::array();
  for (std::size_t i = 0; i < einsum.operands.size(); ++i) {
    Json row = {{"operand", einsum.operands[i].name}, {"kept", nest.keeps_operand(i)}};
    if (level < made.counts.levels.size() && i < made.counts.levels[level].size()) {
      const auto& counts = made.counts.levels[level][i];
      row["tile"] = counts.tile;
      row["reads"] = counts.reads;
      row["fills"] = counts.fills;
      row["updates"] = counts.updates;
      row["read_bits"] = counts.read_bits;
      row["write_bits"] = counts.write_bits;
    }
    operands.push_back(std::move(row));
  }
  return {{"level", made.hierarchy.levels[level].name}, {"loops", std::move(loops)}, {"operands", std::move(operands)}};
}

Json price_json(const schedule::MappingPrice& price) {
  return {{"off_array_weight_bytes", price.off_array_weight},
          {"off_array_activation_bytes", price.off_array_activation},
          {"psum_bytes", price.psum},
          {"off_chip_bytes", price.off_chip},
          {"cycles", price.cycles},
          {"energy_fj", price.femtojoules}};
}

Json proof_json(const schedule::Proof& proof) {
  return {{"best", proof.best},
          {"lower_bound", proof.lower_bound},
          {"gap", proof.gap},
          {"scope", proof.scope},
          {"objective", proof.objective},
          {"covered", proof.covered},
          {"certified_on", proof.certified_on},
          {"evaluated", proof.evaluated},
          {"bounded", proof.bounded},
          {"pruned", proof.pruned},
          {"candidates", proof.candidates}};
}

Json class_choice_json(const schedule::ClassChoice& choice) {
  Json rows = Json::array();
  for (const auto& row : choice.alternatives) {
    Json made = {{"dataflow", row.dataflow}, {"kernels_won", row.won}};
    if (row.failure.empty()) {
      made["price"] = price_json(row.total);
    } else {
      put_null(made, "price", row.failure);
    }
    rows.push_back(std::move(made));
  }
  return {{"layer_class", choice.layer_class},
          {"kernels", choice.kernels},
          {"chosen", price_json(choice.chosen)},
          {"alternatives", std::move(rows)}};
}

Json kernel_schedule_json(const lower::Kernel& kernel, const schedule::KernelSchedule& made) {
  Json out = {{"name", kernel.name},
              {"kind", kernel_kind_name(kernel.kind)},
              {"layer_class", kernel.layer_class},
              {"repeats", kernel.repeats}};
  if (kernel.kind != lower::KernelKind::matrix) return out;
  out["dataflow"] = made.dataflow;
  out["stationary"] = kernel.einsum.operands[made.stationary].name;
  out["evaluated"] = made.evaluated;
  out["price"] = price_json(made.price);
  out["choices"] = Json::array();
  for (const auto& tried : made.choices) {
    Json row = {{"dataflow", tried.dataflow}, {"chosen", tried.dataflow == made.dataflow}};
    if (tried.failure.empty()) {
      row["price"] = price_json(tried.price);
      row["objective"] = tried.value;
    } else {
      put_null(row, "price", tried.failure);
      put_null(row, "objective", tried.failure);
    }
    out["choices"].push_back(std::move(row));
  }
  if (made.proof) out["certificate"] = proof_json(*made.proof);
  Json nest = Json::array();
  for (std::size_t at = 0; at < made.text.size();) {
    const std::size_t end = std::min(made.text.find('\n', at), made.text.size());
    nest.push_back(made.text.substr(at, end - at));
    at = end + 1;
  }
  out["loop_nest"] = std::move(nest);
  out["macs"] = made.counts.macs;
  out["compute_steps"] = made.counts.compute_steps;
  out["cycles_overlapped"] = made.counts.cycles_overlapped;
  out["levels"] = Json::array();
  for (std::size_t level = 0; level < made.mapping.levels.size(); ++level)
    out["levels"].push_back(level_json(made, kernel.einsum, level));
  return out;
}

Json placement_json(const schedule::Placement& placement) {
  Json buffers = Json::array();
  for (const auto& buffer : placement.buffers) {
    buffers.push_back(
        {{"first", buffer.first}, {"last", buffer.last}, {"off_chip", buffer.off_chip}, {"spilled", buffer.spilled}});
    if (buffer.over >= 0) buffers.back()["over"] = buffer.over;
  }
  return {{"peak_bytes", placement.peak},
          {"spilled_bytes", placement.spilled},
          {"occupancy_bytes", placement.occupancy},
          {"in_place", placement.in_place},
          {"peak_bytes_apart", placement.peak_apart},
          {"spilled_bytes_apart", placement.spilled_apart},
          {"streamed_buffers", placement.streamed},
          {"peak_bytes_whole", placement.peak_whole},
          {"spilled_bytes_whole", placement.spilled_whole},
          {"buffers", std::move(buffers)}};
}

Json chain_json(const schedule::ChainChoice& choice) {
  Json ways = Json::array();
  for (const auto& way : choice.alternatives) {
    Json row = {{"chunks", way.chunks}, {"units", way.units}, {"keeps_parameters", way.keeps_parameters}};
    if (way.rows > 0) row["rows"] = way.rows;
    row["peak_bytes_saved"] = way.peak_saved;
    row["spilled_bytes_saved"] = way.spill_saved;
    if (way.failure.empty()) {
      row["objective"] = way.value;
      row["off_chip_bytes_saved"] = way.off_chip_saved;
      row["extra_weight_bytes"] = way.extra_weights;
      row["extra_off_array_weight_bytes"] = way.extra_weight_reads;
    } else {
      row["failure"] = way.failure;
    }
    ways.push_back(std::move(row));
  }
  Json out = {{"kind", choice.kind},
              {"unit", choice.unit},
              {"kernels", choice.kernels},
              {"repeats", choice.repeats},
              {"between_bytes", choice.between_bytes},
              {"taken", choice.taken},
              {"reason", choice.reason},
              {"objective_without", choice.value_without},
              {"alternatives", std::move(ways)}};
  if (!choice.alternatives.empty()) out["best"] = choice.best;
  return out;
}

Json residency_json(const study::Compiled& compiled) {
  Json out = {{"pinned_bytes", compiled.residency.pinned_bytes}};
  if (compiled.residency.available_bytes < 0) {
    put_null(out, "available_bytes", "the level is unbounded");
  } else {
    out["available_bytes"] = compiled.residency.available_bytes;
  }
  out["pinned_tensors"] = Json::array();
  for (std::size_t m = 0; m < compiled.residency.pinned.size(); ++m) {
    Json tensors = Json::array();
    for (std::size_t t = 0; t < compiled.residency.pinned[m].size(); ++t) {
      if (compiled.residency.pinned[m][t]) tensors.push_back(t);
    }
    out["pinned_tensors"].push_back({{"model", compiled.models[m].name}, {"tensors", std::move(tensors)}});
  }
  return out;
}

Json headed(std::string_view kind, const study::Prepared& prepared) {
  Json out = json_document(kind);
  out["scenario"] = prepared.scenario->name;
  out["sha256"] = prepared.hash;
  return out;
}

}  // namespace

std::string scenario_json(const ingest::Scenario& scenario) {
  Json out = json_document("scenario");
  out["scenario"] = scenario.name;
  out["sha256"] = sha256(ingest::canonical_text(scenario.resolved));
  out["models"] = Json::array();
  for (const auto& model : scenario.models) {
    out["models"].push_back({{"name", model.name},
                             {"family", model.family},
                             {"share", model.share},
                             {"nodes", model.graph->nodes.size()},
                             {"tensors", model.graph->tensors.size()},
                             {"has_weights", model.graph->has_weights}});
  }
  out["document"] = value_json(scenario.resolved);
  return json_dump(out);
}

std::string kernel_graph_json(const study::Prepared& prepared) {
  Json out = headed("kernel_graph", prepared);
  out["models"] = Json::array();
  for (const auto& model : prepared.compiled->models) {
    Json buckets = Json::array();
    for_buckets(model, [&](const schedule::Bucket& bucket) {
      Json row = bucket_json(bucket);
      row.update(graph_json(*bucket.graph));
      buckets.push_back(std::move(row));
    });
    out["models"].push_back({{"name", model.name}, {"buckets", std::move(buckets)}});
  }
  return json_dump(out);
}

std::string schedule_json(const study::Prepared& prepared) {
  Json out = headed("schedule", prepared);
  out["residency"] = residency_json(*prepared.compiled);
  out["models"] = Json::array();
  for (const auto& model : prepared.compiled->models) {
    Json buckets = Json::array();
    for_buckets(model, [&](const schedule::Bucket& bucket) {
      Json row = bucket_json(bucket);
      row["placement"] = placement_json(bucket.schedule->placement);
      if (!bucket.schedule->chains.empty()) {
        row["chains"] = Json::array();
        for (const auto& chain : bucket.schedule->chains) row["chains"].push_back(chain_json(chain));
      }
      row["dataflow_choices"] = Json::array();
      for (const auto& choice : schedule::explain_choices(*bucket.graph, *bucket.schedule))
        row["dataflow_choices"].push_back(class_choice_json(choice));
      if (bucket.schedule->proof) row["certificate"] = proof_json(*bucket.schedule->proof);
      row["kernels"] = Json::array();
      for (std::size_t k = 0; k < bucket.schedule->kernels.size(); ++k) {
        row["kernels"].push_back(kernel_schedule_json(bucket.graph->kernels[k], bucket.schedule->kernels[k]));
      }
      buckets.push_back(std::move(row));
    });
    out["models"].push_back({{"name", model.name}, {"buckets", std::move(buckets)}});
  }
  return json_dump(out);
}

}  // namespace plumbline::report
