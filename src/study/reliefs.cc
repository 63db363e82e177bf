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

// Links of the network between the array and the levels outside it, by the tensor they carry. Rows of a table, as the
// links differ only in that.
struct LinkRow {
  const char* tensor;
  const char* bottleneck;
  ingest::TensorNetwork ingest::ArrayNetworks::*network;
};

constexpr LinkRow kLinks[] = {
    {"weight", "weight_movement", &ingest::ArrayNetworks::weights},
    {"input", "activation_movement", &ingest::ArrayNetworks::inputs},
    {"sum", "psum_movement", &ingest::ArrayNetworks::outputs},
};

ResourceRelief link_rate(std::size_t index, const std::string& resource, std::vector<const LinkRow*> links) {
  ResourceRelief out;
  out.resource = resource;
  if (links.size() == 1) out.bottleneck = links.front()->bottleneck;
  out.edit.name = "rate:" + resource;
  out.edit.apply = [index, links = std::move(links)](ingest::Accelerator& a) {
    for (const LinkRow* row : links) ((*a.levels[index].networks).*(row->network)).link = {};
  };
  return out;
}

// Shared wires have one rate: they are relieved together, and what they then carried most of is told from the run.
void add_links(std::size_t index, const ingest::AcceleratorLevel& level, std::vector<ResourceRelief>& out) {
  if (!level.networks) return;
  std::vector<const LinkRow*> limited;
  for (const auto& row : kLinks) {
    const ingest::Rate& link = ((*level.networks).*(row.network)).link;
    if (link.bytes_per_cycle || link.bytes_per_second) limited.push_back(&row);
  }
  if (level.networks->shared && limited.size() > 1) {
    out.push_back(link_rate(index, fmt::format("{} link rate", level.name), limited));
    return;
  }
  for (const LinkRow* row : limited)
    out.push_back(link_rate(index, fmt::format("{} {} link rate", level.name, row->tensor), {row}));
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
    add_links(i, level, out);
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
