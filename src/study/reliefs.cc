#include "study/reliefs.h"

#include <fmt/format.h>

namespace plumbline::study {
namespace {

ResourceRelief level_rate(std::size_t index, const ingest::AcceleratorLevel& level, bool read) {
  ResourceRelief out;
  out.resource = fmt::format("{} {} rate", level.name, read ? "read" : "write");
  out.bottleneck = level.off_chip                              ? "off_chip_bandwidth"
                   : level.keeps.weights || level.keeps.inputs ? "activation_movement"
                                                               : "psum_movement";
  out.edit.name = "rate:" + out.resource;
  out.edit.apply = [index, read](ingest::Accelerator& a) {
    (read ? a.levels[index].read : a.levels[index].write) = {};
  };
  return out;
}

ResourceRelief level_capacity(std::size_t index, const ingest::AcceleratorLevel& level, bool weight_metric) {
  ResourceRelief out;
  out.resource = level.name + " capacity";
  out.kind = decide::ReliefKind::capacity;
  const bool sums_only = level.keeps.outputs && !level.keeps.weights && !level.keeps.inputs;
  out.bottleneck = sums_only ? (weight_metric ? "weight_movement" : "psum_movement") : "off_chip_bandwidth";
  out.edit.name = "capacity:" + out.resource;
  out.edit.remap = true;
  out.edit.apply = [index](ingest::Accelerator& a) { a.levels[index].capacity.reset(); };
  return out;
}

// Rates that are no level's. A relieved rate is this many times its own: far beyond any other limit here.
constexpr double kRelieved = 1e6;

struct UnitRow {
  const char* resource;
  const char* bottleneck;
  void (*apply)(ingest::Accelerator&);
};

constexpr UnitRow kUnits[] = {
    {"weight preload", "exposed_latency",
     [](ingest::Accelerator& a) {
       a.preload = ingest::Preload::double_buffered;
       a.preload_rows_per_cycle *= static_cast<std::int64_t>(kRelieved);
     }},
    {"array rate", "compute",
     [](ingest::Accelerator& a) {
       // Twice, not without bound: an array of no time at all leaves nothing to compare.
       for (auto& format : a.formats) format.macs_per_pe *= 2;
     }},
    {"vector unit rate", "compute", [](ingest::Accelerator& a) { a.vector_unit.operations_per_cycle *= kRelieved; }},
    {"host launch", "launch_host",
     [](ingest::Accelerator& a) {
       a.host.launch_per_batch = Seconds(0);
       a.host.launch_per_kernel = Seconds(0);
     }},
};

}  // namespace

std::vector<ResourceRelief> resource_reliefs(const ingest::Accelerator& accelerator, bool weight_metric) {
  std::vector<ResourceRelief> out;
  for (std::size_t i = 0; i < accelerator.levels.size(); ++i) {
    const auto& level = accelerator.levels[i];
    if (level.read.bytes_per_cycle || level.read.bytes_per_second) out.push_back(level_rate(i, level, true));
    if (level.write.bytes_per_cycle || level.write.bytes_per_second) out.push_back(level_rate(i, level, false));
  }
  for (const auto& unit : kUnits) {
    ResourceRelief row;
    row.resource = unit.resource;
    row.bottleneck = unit.bottleneck;
    row.edit.name = std::string("rate:") + unit.resource;
    row.edit.apply = unit.apply;
    out.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < accelerator.levels.size(); ++i) {
    const auto& level = accelerator.levels[i];
    if (level.capacity && !level.off_chip && !level.array) out.push_back(level_capacity(i, level, weight_metric));
  }
  return out;
}

}  // namespace plumbline::study
