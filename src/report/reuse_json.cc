// reuse.json and sensitivity.json.
#include "report/json.h"
#include "report/reuse_report.h"

namespace plumbline::report {
namespace {

using study::ReuseArm;
using study::ReuseRow;
using study::ReuseShape;

constexpr std::string_view kNoWeights = "no weights";
constexpr std::string_view kNoHops = "the accelerator describes no network there";
constexpr std::string_view kUnlimited = "the link is unlimited";

void put_optional(Json& out, const std::string& key, const std::optional<double>& value, std::string_view why) {
  if (value) {
    put_number(out, key, *value);
  } else {
    put_null(out, key, why);
  }
}

std::string_view tensor_name(lower::Role role) {
  switch (role) {
    case lower::Role::weights:
      return "weights";
    case lower::Role::stationary_activations:
      return "stationary_activations";
    case lower::Role::inputs:
      return "inputs";
    case lower::Role::outputs:
      return "outputs";
  }
  return "";
}

std::string level_name(const ReuseArm& arm, int level) {
  const auto l = static_cast<std::size_t>(level);
  return l < arm.levels.size() ? arm.levels[l] : "macs";
}

const study::PortLoad* port_at(const ReuseRow& row, int level) {
  for (const auto& port : row.ports) {
    if (port.level == level) return &port;
  }
  return nullptr;
}

/// Bytes per second over the row's busy time, and in percent of what the level can read.
void put_bandwidth(Json& out, const std::string& key, const ReuseArm& arm, const ReuseRow& row, std::int64_t bytes,
                   int level) {
  const double hertz = arm.clock.frequency.raw();
  const std::string percent_key = key + "_percent_of_link";
  if (row.cycles == 0) {
    put_null(out, key + "_bytes_per_s", "no busy cycle");
    put_null(out, percent_key, "no busy cycle");
    return;
  }
  const double rate = static_cast<double>(bytes) / static_cast<double>(row.cycles);  // bytes per cycle
  put_number(out, key + "_bytes_per_s", rate * hertz);
  const study::PortLoad* port = level < 0 ? nullptr : port_at(row, level);
  if (port == nullptr || !port->read_limit) {
    put_null(out, percent_key, level < 0 ? "nothing is off chip" : kUnlimited);
  } else {
    put_number(out, percent_key, 100 * rate / *port->read_limit);
  }
}

Json stranded_json(const execute::ClassCycles& stranded) {
  Json out = Json::object();
  for (std::size_t c = 0; c < execute::kCycleClasses; ++c) {
    if (stranded[c] > 0) out[std::string(execute::kCycleClassNames[c])] = stranded[c];
  }
  return out;
}

Json mix_json(const ReuseRow& row) {
  const auto& m = row.movement;
  Json out = {{"weight_bytes", m.off_array_weight},
              {"stationary_bytes", m.off_array_stationary},
              {"activation_bytes", m.off_array_activation},
              {"psum_bytes", m.psum}};
  const double all = static_cast<double>(row.off_array_bytes());
  const std::pair<const char*, std::int64_t> parts[] = {{"weight_share", m.off_array_weight},
                                                        {"stationary_share", m.off_array_stationary},
                                                        {"activation_share", m.off_array_activation},
                                                        {"psum_share", m.psum}};
  for (const auto& [key, bytes] : parts) {
    put_optional(out, key, all > 0 ? std::optional(static_cast<double>(bytes) / all) : std::nullopt, "nothing moved");
  }
  return out;
}

Json flows_json(const ReuseArm& arm, const ReuseRow& row) {
  Json links = Json::array();
  for (const auto& flow : row.links) {
    Json item = {{"from", level_name(arm, flow.outer)},   {"to", level_name(arm, flow.inner)},
                 {"tensor", tensor_name(flow.tensor)},    {"bytes", flow.bytes},
                 {"words_outer", flow.words_outer},       {"words_inner", flow.words_inner},
                 {"words_returned", flow.words_returned}, {"additions", flow.additions}};
    put_optional(item, "spatial_reuse", flow.spatial_reuse(), "nothing crosses");
    if (flow.byte_hops) {
      item["byte_hops"] = *flow.byte_hops;
    } else {
      put_null(item, "byte_hops", kNoHops);
    }
    links.push_back(std::move(item));
  }
  Json levels = Json::array();
  for (const auto& flow : row.levels) {
    Json item = {{"level", level_name(arm, flow.level)}, {"tensor", tensor_name(flow.tensor)},
                 {"words_served", flow.words_served},    {"words_arrived", flow.words_arrived},
                 {"read_bytes", flow.read_bytes},        {"write_bytes", flow.write_bytes}};
    put_optional(item, "temporal_reuse", flow.temporal_reuse(), "nothing arrives");
    levels.push_back(std::move(item));
  }
  Json ports = Json::array();
  for (const auto& port : row.ports) {
    Json item = {{"level", level_name(arm, port.level)},
                 {"read_bytes", port.read_bytes},
                 {"write_bytes", port.write_bytes},
                 {"weight_bytes", port.weight_bytes},
                 {"stationary_bytes", port.stationary_bytes},
                 {"activation_bytes", port.activation_bytes},
                 {"psum_bytes", port.psum_bytes}};
    const auto use = [&](std::int64_t bytes, const std::optional<double>& limit) -> std::optional<double> {
      if (!limit || row.cycles == 0) return std::nullopt;
      return 100 * static_cast<double>(bytes) / (*limit * static_cast<double>(row.cycles));
    };
    put_optional(item, "read_percent_of_limit", use(port.read_bytes, port.read_limit), kUnlimited);
    put_optional(item, "write_percent_of_limit", use(port.write_bytes, port.write_limit), kUnlimited);
    ports.push_back(std::move(item));
  }
  return {{"links", std::move(links)}, {"levels", std::move(levels)}, {"ports", std::move(ports)}};
}

Json row_json(const ReuseArm& arm, const ReuseShape& shape, const ReuseRow& row) {
  Json out;
  if (row.layer_class.empty()) {
    put_null(out, "layer_class", "all layers together");
  } else {
    out["layer_class"] = row.layer_class;
  }
  const double batch = static_cast<double>(shape.batch);
  put_number(out, "off_array_weight_bytes_per_inference", static_cast<double>(row.movement.off_array_weight) / batch);
  put_number(out, "off_chip_weight_bytes_per_inference", static_cast<double>(row.movement.off_chip_weight) / batch);
  put_number(out, "off_array_stationary_bytes_per_inference",
             static_cast<double>(row.movement.off_array_stationary) / batch);
  put_bandwidth(out, "off_array_weight", arm, row, row.movement.off_array_weight, arm.weight_link);
  put_bandwidth(out, "off_chip_weight", arm, row, row.movement.off_chip_weight, arm.off_chip);
  put_optional(out, "achieved_weight_reuse", row.achieved_reuse(), kNoWeights);
  put_optional(out, "ideal_weight_reuse", row.ideal_reuse(), kNoWeights);
  put_optional(out, "weight_reuse_efficiency", row.reuse_efficiency(), kNoWeights);
  put_optional(out, "weight_residency", row.residency(), kNoWeights);
  put_optional(out, "stranded_share_of_held", row.stranded_share(), "no weight is held");
  put_optional(out, "stationary_activation_residency", row.activation_residency(), "no activation is held");
  put_optional(out, "inter_inference_residency", row.inter_inference_residency(), kNoWeights);
  put_optional(out, "feeder_utilization", row.feeder_utilization(), "the array is not used");
  out["counts"] = {{"cycles", row.cycles},
                   {"array_cycles", row.array_cycles},
                   {"feeder_cycles", row.feeder_cycles},
                   {"pe_cycles", row.pe_cycles},
                   {"held_pe_cycles", row.held},
                   {"stranded_pe_cycles", row.stranded_total()},
                   {"held_activation_pe_cycles", row.held_activation},
                   {"macs", row.macs},
                   {"weight_macs", row.weight_macs},
                   {"weight_elements_in", row.weight_elements_in},
                   {"unique_weight_elements", row.unique_weight_elements},
                   {"unique_weight_bytes", row.unique_weight_bytes},
                   {"resident_weight_bytes", row.resident_weight_bytes},
                   {"off_array_weight_bytes", row.movement.off_array_weight},
                   {"off_chip_weight_bytes", row.movement.off_chip_weight},
                   {"off_chip_activation_bytes", row.movement.off_chip_activation}};
  out["stranded_by_cause"] = stranded_json(row.stranded);
  out["stranded_activation_by_cause"] = stranded_json(row.stranded_activation);
  out["dataflow_mix"] = mix_json(row);
  out.update(flows_json(arm, row));
  return out;
}

Json buffer_json(const ReuseArm& arm, const study::BufferPressure& buffer) {
  Json out = {{"level", level_name(arm, buffer.level)}};
  if (buffer.capacity) {
    out["capacity_bytes"] = *buffer.capacity;
  } else {
    put_null(out, "capacity_bytes", "unbounded");
  }
  out["peak_bytes"] = buffer.peak;
  put_number(out, "time_weighted_bytes", buffer.time_weighted);
  out["pinned_weight_bytes"] = buffer.pinned;
  out["spilled_bytes"] = buffer.spilled;
  out["occupancy_bytes"] = buffer.occupancy;
  return out;
}

Json shape_json(const ReuseArm& arm, const ReuseShape& shape) {
  Json out = {{"model", arm.models[shape.model]}, {"batch", shape.batch}};
  if (shape.sequence > 0) {
    out["sequence"] = shape.sequence;
  } else {
    put_null(out, "sequence", "the model has none");
  }
  out["duration_ns"] = shape.duration_ns;
  out["total"] = row_json(arm, shape, shape.total);
  out["classes"] = Json::array();
  for (const auto& row : shape.classes) out["classes"].push_back(row_json(arm, shape, row));
  out["buffers"] = Json::array();
  for (const auto& buffer : shape.buffers) out["buffers"].push_back(buffer_json(arm, buffer));
  return out;
}

Json bandwidth_json(const study::PointBandwidth& point, const std::optional<double>& limit) {
  Json out;
  put_number(out, "mean_busy_bytes_per_s", point.mean_busy);
  put_number(out, "mean_span_bytes_per_s", point.mean_span);
  put_number(out, "peak_bytes_per_s", point.peak);
  out["peak_window_ns"] = study::kPeakWindowNs;
  put_optional(out, "mean_busy_percent_of_link", limit ? std::optional(100 * point.mean_busy / *limit) : std::nullopt,
               kUnlimited);
  put_optional(out, "peak_percent_of_link", limit ? std::optional(100 * point.peak / *limit) : std::nullopt,
               kUnlimited);
  return out;
}

Json price_json(const study::ShapePrice& price, const std::string& objective, Clock clock) {
  Json out = {{"off_array_weight_bytes", price.off_array_weight},
              {"off_chip_weight_bytes", price.off_chip_weight},
              {"cycles", price.cycles},
              {"femtojoules", std::to_string(price.femtojoules)}};
  put_number(out, "objective", price.objective(objective, clock));
  return out;
}

Json stale_json(const ReuseArm& arm) {
  Json out = Json::object();
  if (!arm.stale) {
    put_null(out, "stale_mappings", arm.stale_why);
    return out;
  }
  const auto& stale = *arm.stale;
  Json rows = Json::array();
  for (const auto& row : stale.rows) {
    Json item = {{"model", arm.models[row.formed.model]},
                 {"size", row.formed.size},
                 {"sequence", row.formed.sequence},
                 {"bucket_batch", row.bucket_batch},
                 {"bucket_sequence", row.bucket_sequence},
                 {"batches", row.formed.batches},
                 {"padded", price_json(row.padded, stale.objective, arm.clock)}};
    if (row.stale) {
      item["same_mapping"] = price_json(*row.stale, stale.objective, arm.clock);
      put_number(item, "stale_mapping_cost", row.stale_cost(stale.objective, arm.clock).value());
      put_number(item, "padding_cost", row.padding_cost(stale.objective, arm.clock).value());
    } else {
      for (const char* key : {"same_mapping", "stale_mapping_cost", "padding_cost"}) {
        put_null(item, key, "the bucket's mappings do not cover this shape");
      }
    }
    item["best"] = price_json(row.best, stale.objective, arm.clock);
    rows.push_back(std::move(item));
  }
  out["stale_mappings"] = {
      {"objective", stale.objective}, {"unit", study::objective_unit(stale.objective)}, {"rows", std::move(rows)}};
  return out;
}

Json point_json(const ReuseArm& arm) {
  const auto& total = arm.shapes.front().total;
  const auto limit = [&](int level) -> std::optional<double> {
    const auto* port = level < 0 ? nullptr : port_at(total, level);
    if (port == nullptr || !port->read_limit) return std::nullopt;
    return *port->read_limit * arm.clock.frequency.raw();
  };
  Json out = {{"seeds", seeds_json(arm.point.seeds)}, {"busy_ns", arm.point.busy_ns}, {"span_ns", arm.point.span_ns}};
  out["off_array_weight"] = bandwidth_json(arm.point.off_array_weight, limit(arm.weight_link));
  out["off_chip_weight"] = bandwidth_json(arm.point.off_chip_weight, limit(arm.off_chip));
  out["formed_shapes"] = Json::array();
  for (const auto& formed : arm.point.formed) {
    out["formed_shapes"].push_back({{"model", arm.models[formed.model]},
                                    {"size", formed.size},
                                    {"sequence", formed.sequence},
                                    {"entry", formed.entry},
                                    {"batches", formed.batches}});
  }
  out["loads"] = Json::array();
  for (const auto& row : arm.loads) {
    Json item = {{"model", arm.models[row.model]}};
    if (row.layer_class.empty()) {
      put_null(item, "layer_class", "all layers together");
    } else {
      item["layer_class"] = row.layer_class;
    }
    item.update({{"load", row.load},
                 {"profile", row.profile},
                 {"completed", row.completed},
                 {"off_array_weight_bytes", row.off_array_weight},
                 {"off_chip_weight_bytes", row.off_chip_weight}});
    const double completed = static_cast<double>(row.completed);
    put_number(item, "off_array_weight_bytes_per_inference", static_cast<double>(row.off_array_weight) / completed);
    put_number(item, "off_chip_weight_bytes_per_inference", static_cast<double>(row.off_chip_weight) / completed);
    out["loads"].push_back(std::move(item));
  }
  out["reuse"] = Json::array();
  for (const auto& row : arm.reuse) {
    Json item = {{"model", arm.models[row.model]}};
    if (row.layer_class.empty()) {
      put_null(item, "layer_class", "all layers together");
    } else {
      item["layer_class"] = row.layer_class;
    }
    item.update({{"useful_weight_macs", row.useful_weight_macs},
                 {"padded_weight_macs", row.padded_weight_macs},
                 {"weight_elements_in", row.weight_elements_in}});
    put_optional(item, "achieved_weight_reuse", row.achieved_reuse(), kNoWeights);
    out["reuse"].push_back(std::move(item));
  }
  out.update(stale_json(arm));
  return out;
}

Json arm_json(const ReuseArm& arm) {
  Json out = {{"scenario", arm.name},
              {"sha256", arm.hash},
              {"clock_hz", arm.clock.frequency.raw()},
              {"levels", arm.levels},
              {"weight_link", level_name(arm, arm.weight_link)}};
  if (arm.off_chip < 0) {
    put_null(out, "off_chip_link", "nothing is off chip");
  } else {
    out["off_chip_link"] = level_name(arm, arm.off_chip);
  }
  out["shapes"] = Json::array();
  for (const auto& shape : arm.shapes) out["shapes"].push_back(shape_json(arm, shape));
  out["operating_point"] = point_json(arm);
  return out;
}

Json cell_json(const study::SensitivityCell& cell, std::string_view why) {
  Json out = {{"batch", cell.batch}, {"sequence", cell.sequence}};
  put_optional(out, "value", cell.value, why);
  return out;
}

Json cause_json(const study::CliffCause& cause) {
  Json out = {{"kind", cause.kind}, {"text", cause.text}};
  put_number(out, "from", cause.from);
  put_number(out, "to", cause.to);
  return out;
}

constexpr std::string_view kAxisNames[] = {"batch", "sequence"};
constexpr std::string_view kStepNames[] = {"batch", "sequence", "arm"};

}  // namespace

std::string reuse_json(const study::ReuseReport& report) {
  Json out = json_document("reuse");
  out["flags"] = Json::array();
  for (const auto& flag : report.flags) {
    Json item = {{"step", kStepNames[static_cast<std::size_t>(flag.step)]},
                 {"model", report.baseline.models[flag.model]}};
    if (flag.layer_class.empty()) {
      put_null(item, "layer_class", "all layers together");
    } else {
      item["layer_class"] = flag.layer_class;
    }
    item["from"] = {{"batch", flag.batch_from}, {"sequence", flag.sequence_from}};
    item["to"] = {{"batch", flag.batch_to}, {"sequence", flag.sequence_to}};
    put_number(item, "reuse_from", flag.reuse_from);
    put_number(item, "reuse_to", flag.reuse_to);
    put_number(item, "bytes_per_inference_from", flag.bytes_from);
    put_number(item, "bytes_per_inference_to", flag.bytes_to);
    out["flags"].push_back(std::move(item));
  }
  out["baseline"] = arm_json(report.baseline);
  if (report.candidate) {
    out["candidate"] = arm_json(*report.candidate);
  } else {
    put_null(out, "candidate", "one scenario was given");
  }
  return json_dump(out);
}

std::string sensitivity_json(const study::SensitivityReport& report) {
  constexpr std::string_view kNoValue = "the metric has no value at this shape";
  Json out = json_document("sensitivity");
  out["scenario"] = report.scenario;
  out["sha256"] = report.hash;
  out["metric"] = report.metric;
  out["unit"] = report.unit;
  out["better"] = report.lower_is_better ? "lower" : "higher";
  out["note"] = report.note;
  put_number(out, "threshold", report.threshold);
  out["batches"] = report.batches;
  out["sequences"] = report.sequences;
  out["models"] = Json::array();
  for (const auto& model : report.models) {
    Json item = {
        {"model", model.model}, {"cells", Json::array()}, {"elasticities", Json::array()}, {"cliffs", Json::array()}};
    for (const auto& cell : model.cells) item["cells"].push_back(cell_json(cell, kNoValue));
    for (const auto& row : model.elasticities) {
      Json step = {{"axis", kAxisNames[static_cast<std::size_t>(row.axis)]},
                   {"from", {{"batch", row.from.batch}, {"sequence", row.from.sequence}}},
                   {"to", {{"batch", row.to.batch}, {"sequence", row.to.sequence}}}};
      put_optional(step, "value", row.value, "a value is absent or not positive");
      item["elasticities"].push_back(std::move(step));
    }
    for (const auto& cliff : model.cliffs) {
      Json row = {{"axis", kAxisNames[static_cast<std::size_t>(cliff.axis)]},
                  {"from", cell_json(cliff.from, kNoValue)},
                  {"to", cell_json(cliff.to, kNoValue)}};
      put_number(row, "expected", cliff.expected);
      put_number(row, "jump_percent", 100 * cliff.jump);
      row["worse"] = cliff.worse;
      row["layer_class"] = cliff.layer_class;
      row["kernel"] = cliff.kernel;
      row["mapping_from"] = cliff.mapping_from;
      row["mapping_to"] = cliff.mapping_to;
      row["cause"] = cause_json(cliff.cause);
      row["beside"] = Json::array();
      for (const auto& cause : cliff.beside) row["beside"].push_back(cause_json(cause));
      item["cliffs"].push_back(std::move(row));
    }
    out["models"].push_back(std::move(item));
  }
  return json_dump(out);
}

}  // namespace plumbline::report
