#include "study/network_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "lower/einsum.h"
#include "schedule/array_time.h"
#include "schedule/network_time.h"

namespace plumbline::study {
namespace {

using schedule::LoopKind;
using schedule::Mapping;

constexpr std::int64_t kSides[] = {16, 32, 64, 128, 256};

/// A line of neighbours has a wire per row and column: one int8 operand or one int32 sum wide, as a systolic array's.
constexpr double kLineOperand = 1;
constexpr double kLineSum = 4;
/// Everything that enters or leaves through one port: 512-bit links, assumed; the table says what would keep up.
constexpr double kPort = 64;

struct Networks {
  const char* inward;
  const char* outward;
};
constexpr Networks kNetworks[] = {{"systolic", "systolic"},
                                  {"mesh_xy_edge", "mesh_xy_edge"},
                                  {"bus", "bus"},
                                  {"multicast_tree", "multicast_tree"},
                                  {"reduction_tree", "reduction_tree"},
                                  {"multicast_tree", "reduction_tree"},
                                  {"mesh_xy", "mesh_xy"}};

ingest::TensorNetwork network_row(const char* topology, double line_width) {
  ingest::TensorNetwork row;
  row.topology = topology;
  const bool line = ingest::find_topology(topology)->shape == ingest::NetworkShape::chain;
  row.link.bytes_per_cycle = line ? line_width : kPort;
  return row;
}

/// Memory, buffer, accumulators and an array whose ports never wait: only the networks can.
ingest::Accelerator machine(std::int64_t side, const Networks& networks) {
  ingest::Accelerator made;
  made.levels.resize(4);
  const char* names[] = {"memory", "buffer", "accumulator", "array"};
  for (std::size_t l = 0; l < 4; ++l) {
    made.levels[l].name = names[l];
    made.levels[l].keeps = {l != 2, l < 2, l < 3};
  }
  made.levels[0].off_chip = true;
  ingest::AcceleratorLevel& array = made.levels[3];
  array.array = true;
  array.fanout_x = array.fanout_y = side;
  array.networks = ingest::ArrayNetworks{};
  array.networks->weights = network_row(networks.inward, kLineOperand);
  array.networks->inputs = network_row(networks.inward, kLineOperand);
  array.networks->outputs = network_row(networks.outward, kLineSum);
  made.nominal = Clock{Hertz(1e9)};
  return made;
}

struct Workload {
  std::string name;
  lower::Einsum einsum;
  std::vector<const char*> outer;   ///< loops outside the array's tile, outermost first: what is left of each
  std::vector<const char*> stream;  ///< past the tile, whole
  const char* columns;
  const char* rows;
};

std::vector<Workload> workloads() {
  std::vector<Workload> made;
  made.push_back({"GEMM M=512 N=768 K=768", lower::gemm_einsum(512, 768, 768), {"N", "K"}, {"M"}, "N", "K"});
  lower::ConvShape conv;  // the 3 x 3 layers of ResNet-50's fourth stage (He et al., CVPR 2016, Table 1)
  conv.k = conv.c = 256;
  conv.p = conv.q = 14;
  conv.r = conv.s = 3;
  made.push_back({"3x3 convolution, 256 to 256 channels, 14 x 14",
                  lower::conv_einsum(conv),
                  {"K", "C", "R", "S"},
                  {"P", "Q"},
                  "K",
                  "C"});
  for (Workload& each : made) {
    each.einsum.operands.back().bits = 8;
    each.einsum.operands.back().partial_bits = 32;
  }
  return made;
}

/// Weight stationary: reductions innermost outside, so that sums stay in the accumulators.
Mapping weight_stationary(const Workload& workload, std::int64_t side) {
  const lower::Einsum& einsum = workload.einsum;
  const auto size = [&](int d) { return einsum.dims[static_cast<std::size_t>(d)]; };
  Mapping mapping;
  mapping.levels.resize(4);
  for (const char* name : workload.outer) {
    const int d = einsum.dim(name);
    const bool spread = name == std::string(workload.columns) || name == std::string(workload.rows);
    mapping.levels[1].loops.push_back({d, spread ? (size(d) + side - 1) / side : size(d)});
  }
  for (const char* name : workload.stream) {
    mapping.levels[2].loops.push_back({einsum.dim(name), size(einsum.dim(name))});
  }
  const int columns = einsum.dim(workload.columns);
  const int rows = einsum.dim(workload.rows);
  mapping.levels[2].loops.push_back({columns, std::min(side, size(columns)), LoopKind::spatial_x});
  mapping.levels[2].loops.push_back({rows, std::min(side, size(rows)), LoopKind::spatial_y});
  mapping.levels[0].keeps = mapping.levels[1].keeps = 7;
  mapping.levels[2].keeps = 4;
  mapping.levels[3].keeps = 1;
  return mapping;
}

std::string limit_of(const NetworkPoint& point) {
  const std::int64_t most = std::max({point.compute, point.weights, point.activations, point.sums});
  if (most == point.compute) return "compute";
  if (most == point.weights) return "weights";
  return most == point.activations ? "activations" : "psums";
}

double width(const schedule::TensorLoad& load, std::int64_t cycles) {
  return static_cast<double>(load.limiting_bits) / 8 / static_cast<double>(cycles);
}

Result<NetworkPoint> measure(const Workload& workload, std::int64_t side, const Networks& networks) {
  const ingest::Accelerator accelerator = machine(side, networks);
  const Mapping mapping = weight_stationary(workload, side);
  PL_TRY(const schedule::LevelRoles levels, schedule::find_levels(accelerator));
  PL_TRY(const schedule::ArrayNetwork network,
         schedule::find_array_network(workload.einsum, mapping, accelerator, levels, accelerator.nominal));
  NetworkPoint point;
  point.inward = networks.inward;
  point.outward = networks.outward;
  point.side = side;
  point.compute = schedule::array_time(workload.einsum, mapping, 0, 1, accelerator, accelerator.nominal).total();
  point.weights = network.tensors[0].cycles;
  point.activations = network.tensors[1].cycles;
  point.sums = network.tensors[2].cycles;
  point.limit = limit_of(point);
  point.activation_width = width(network.tensors[1], point.compute);
  point.sum_width = width(network.tensors[2], point.compute);
  double macs = 1;
  for (int d = 0; d < workload.einsum.rank(); ++d) {
    macs *= static_cast<double>(workload.einsum.dims[static_cast<std::size_t>(d)]);
  }
  for (const schedule::TensorLoad& load : network.tensors) {
    point.byte_hops_per_mac += static_cast<double>(load.byte_hops) / macs;
  }
  return point;
}

std::string networks_name(const NetworkPoint& point) {
  return point.inward == point.outward ? point.inward : point.inward + " in, " + point.outward + " out";
}

/// "64 x 64", the first side at which the part takes longer than the array; "-" when it never does.
std::string exceeds_from(const NetworkPoint* first, const NetworkPoint* last, std::int64_t NetworkPoint::*part) {
  const NetworkPoint* at = std::find_if(first, last, [&](const NetworkPoint& p) { return p.*part > p.compute; });
  return at == last ? "-" : fmt::format("{0} x {0}", at->side);
}

/// "compute up to 64 x 64, then psums".
std::string verdict(const NetworkPoint* first, const NetworkPoint* last) {
  std::string text;
  for (const NetworkPoint* at = first; at != last;) {
    const NetworkPoint* next = std::find_if(at, last, [&](const NetworkPoint& p) { return p.limit != at->limit; });
    text += fmt::format("{}{}", text.empty() ? "" : ", then ", at->limit);
    if (next != last) text += fmt::format(" up to {0} x {0}", (next - 1)->side);
    if (next == last && at == first) text += " at every size";
    at = next;
  }
  return text;
}

std::string width_text(double width) {
  return width < 10 ? fmt::format("{:.2f} B/cycle", width) : fmt::format("{:.0f} B/cycle", width);
}

}  // namespace

Result<std::vector<NetworkCase>> study_networks() {
  std::vector<NetworkCase> cases;
  for (const Workload& workload : workloads()) {
    NetworkCase made;
    made.name = workload.name;
    for (const Networks& networks : kNetworks) {
      for (const std::int64_t side : kSides) {
        PL_TRY(NetworkPoint point, measure(workload, side, networks));
        made.points.push_back(std::move(point));
      }
    }
    cases.push_back(std::move(made));
  }
  return cases;
}

std::string network_markdown(const std::vector<NetworkCase>& cases) {
  constexpr std::size_t kColumns = std::size(kSides);
  std::string out;
  for (const NetworkCase& each : cases) {
    out += fmt::format("### {}\n\n", each.name);
    out += "| network | weights exceed compute from | activations from | psums from | the limit |\n";
    out += "| --- | --- | --- | --- | --- |\n";
    for (std::size_t i = 0; i < each.points.size(); i += kColumns) {
      const NetworkPoint* first = &each.points[i];
      const NetworkPoint* last = first + kColumns;
      out += fmt::format("| {} | {} | {} | {} | {} |\n", networks_name(*first),
                         exceeds_from(first, last, &NetworkPoint::weights),
                         exceeds_from(first, last, &NetworkPoint::activations),
                         exceeds_from(first, last, &NetworkPoint::sums), verdict(first, last));
    }
    out +=
        "\n| network | side | compute | weights | activations | psums | limit | activations keep up at | psums keep "
        "up at | byte hops per MAC |\n";
    out += "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |\n";
    for (const NetworkPoint& point : each.points) {
      out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1f} |\n", networks_name(point), point.side,
                         point.compute, point.weights, point.activations, point.sums, point.limit,
                         width_text(point.activation_width), width_text(point.sum_width), point.byte_hops_per_mac);
    }
    out += "\n";
  }
  return out;
}

}  // namespace plumbline::study
