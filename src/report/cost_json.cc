// Artefacts of execution and serving.
#include "report/artefacts.h"
#include "report/json.h"

namespace plumbline::report {
namespace {

using execute::kCycleClasses;
using execute::kCycleClassNames;

// JSON numbers are read as doubles by many tools; femtojoules outgrow them, so they travel as decimal text.
std::string wide_text(__int128 value) {
  const bool negative = value < 0;
  unsigned __int128 rest = negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string out;
  do {
    out.insert(out.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
    rest /= 10;
  } while (rest != 0);
  return negative ? "-" + out : out;
}

Json movement_json(const execute::Movement& m) {
  return {{"off_array_weight", m.off_array_weight},         {"off_array_stationary", m.off_array_stationary},
          {"off_array_activation", m.off_array_activation}, {"psum", m.psum},
          {"off_chip_weight", m.off_chip_weight},           {"off_chip_activation", m.off_chip_activation}};
}

Json cycles_json(const execute::ClassCycles& cycles) {
  Json out = Json::object();
  for (std::size_t c = 0; c < kCycleClasses; ++c) out[std::string(kCycleClassNames[c])] = cycles[c];
  return out;
}

Json layer_json(const execute::ClassCost& layer) {
  Json energy = Json::object();
  for (std::size_t p = 0; p < execute::kEnergyPaths; ++p) {
    energy[std::string(execute::kEnergyPathNames[p])] = wide_text(layer.femtojoules[p]);
  }
  return {{"layer_class", layer.layer_class},
          {"macs", layer.macs},
          {"weight_macs", layer.weight_macs},
          {"unique_weight_bytes", layer.unique_weight_bytes},
          {"unique_weight_elements", layer.unique_weight_elements},
          {"weight_elements_in", layer.weight_elements_in},
          {"feeder_cycles", layer.feeder_cycles},
          {"cycles", cycles_json(layer.cycles)},
          {"bytes", movement_json(layer.movement)},
          {"pe_cycles",
           {{"useful", layer.pe.useful},
            {"padded", layer.pe.padded},
            {"unmapped", layer.pe.unmapped},
            {"idle", layer.pe.idle}}},
          {"femtojoules", std::move(energy)}};
}

Json entry_json(const execute::BatchCost& entry) {
  Json out = {{"model", entry.model},
              {"batch", entry.batch},
              {"sequence", entry.sequence},
              {"cycles", entry.cycles},
              {"duration_ns", entry.duration.raw()},
              {"femtojoules", wide_text(entry.femtojoules)},
              {"weight_bytes_unique", entry.weight_bytes_unique},
              {"weight_bytes_resident", entry.weight_bytes_resident},
              {"classes", cycles_json(entry.classes)},
              {"layers", Json::array()},
              {"kernels", Json::array()}};
  for (const auto& layer : entry.layers) out["layers"].push_back(layer_json(layer));
  for (const auto& kernel : entry.kernels) {
    out["kernels"].push_back({{"name", kernel.name},
                              {"layer_class", kernel.layer_class},
                              {"repeats", kernel.repeats},
                              {"cycles", kernel.cycles},
                              {"classes", cycles_json(kernel.classes)},
                              {"bytes", movement_json(kernel.movement)}});
  }
  return out;
}

Json headed(std::string_view kind, const study::Prepared& prepared) {
  Json out = json_document(kind);
  out["scenario"] = prepared.scenario->name;
  out["sha256"] = prepared.hash;
  return out;
}

void put_ns(Json& out, const std::string& key, std::int64_t ns) {
  if (ns < 0) {
    put_null(out, key, "no request was completed");
  } else {
    out[key] = ns;
  }
}

Json service_json(const validate::Service& service) {
  Json out = {{"offered", service.offered}, {"completed", service.completed}, {"lost", service.lost}};
  put_ns(out, "p50_ns", service.p50_ns);
  put_ns(out, "p95_ns", service.p95_ns);
  put_ns(out, "p99_ns", service.p99_ns);
  return out;
}

Json summary_json(const validate::Summary& summary) {
  __int128 dynamic = 0;
  for (const auto& slice : summary.slices) dynamic += slice.femtojoules;
  Json invariants = Json::array();
  for (const auto& row : summary.invariants)
    invariants.push_back({{"name", row.name}, {"holds", row.holds}, {"detail", row.detail}});
  return {{"service",
           {{"all", service_json(summary.all)},
            {"base", service_json(summary.by_phase[0])},
            {"burst", service_json(summary.by_phase[1])}}},
          {"batches", summary.batches},
          {"batch_counts", summary.batch_counts},
          {"padded_rows", summary.padded_rows},
          {"real_rows", summary.real_rows},
          {"busy_ns", summary.busy_ns},
          {"span_ns", summary.span_ns},
          {"max_queue", summary.max_queue},
          {"cycles", cycles_json(summary.cycles)},
          {"dynamic_femtojoules", wide_text(dynamic)},
          {"static_joules", summary.static_joules},
          {"invariants", std::move(invariants)}};
}

}  // namespace

std::string cost_table_json(const study::Prepared& prepared) {
  const auto& costs = *prepared.costs;
  Json out = headed("cost_table", prepared);
  out["clock_hz"] = costs.clock.frequency.raw();
  out["power_w"] = {{"idle", costs.idle.raw()}, {"active", costs.active.raw()}, {"host", costs.host.raw()}};
  out["layer_classes"] = costs.layer_classes;
  out["batch_buckets"] = costs.batch_buckets;
  out["sequence_buckets"] = costs.sequence_buckets;
  out["models"] = costs.models;
  out["entries"] = Json::array();
  for (const auto& entry : costs.entries) out["entries"].push_back(entry_json(entry));
  return json_dump(out);
}

std::string run_json(const study::Prepared& prepared, const validate::Summary& summary, std::uint64_t seed) {
  Json out = headed("run", prepared);
  out["seed"] = std::to_string(seed);
  out.update(summary_json(summary));
  return json_dump(out);
}

}  // namespace plumbline::report
