#include "schedule/price_mapping.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "schedule/array_time.h"
#include "schedule/network_time.h"

namespace plumbline::schedule {
namespace {

constexpr std::size_t kOutputs = 2;

struct Moved {
  std::int64_t read_bits = 0;
  std::int64_t write_bits = 0;
};

Moved moved_at(const Traffic& traffic, std::size_t level) {
  Moved moved;
  for (const OperandTraffic& operand : traffic[level]) {
    moved.read_bits += operand.read_bits;
    moved.write_bits += operand.write_bits;
  }
  return moved;
}

double energy_of_traffic(const Traffic& traffic, const AccessCounts& counts, const ingest::Accelerator& accelerator,
                         const ingest::FormatSupport& format) {
  double sum = static_cast<double>(counts.macs) * action_femtojoules(accelerator, format.mac_action);
  for (std::size_t l = 0; l < traffic.size(); ++l) {
    const ingest::AcceleratorLevel& level = accelerator.levels[l];
    const Moved moved = moved_at(traffic, l);
    sum += static_cast<double>(moved.read_bits) * action_femtojoules(accelerator, level.read_action) +
           static_cast<double>(moved.write_bits) * action_femtojoules(accelerator, level.write_action);
  }
  return sum;
}

std::int64_t cycles_with_link(std::int64_t array_cycles, const Traffic& traffic,
                              const ingest::Accelerator& accelerator) {
  double slowest = static_cast<double>(array_cycles);
  for (std::size_t l = 0; l < traffic.size(); ++l) {
    const ingest::AcceleratorLevel& level = accelerator.levels[l];
    if (!level.off_chip) continue;
    const Moved moved = moved_at(traffic, l);
    if (const auto rate = level.read.per_cycle(accelerator.nominal)) {
      slowest = std::max(slowest, static_cast<double>(moved.read_bits) / 8 / *rate);
    }
    if (const auto rate = level.write.per_cycle(accelerator.nominal)) {
      slowest = std::max(slowest, static_cast<double>(moved.write_bits) / 8 / *rate);
    }
  }
  return static_cast<std::int64_t>(slowest);
}

/// Bits of an input operand that its innermost keeper outside the array reads.
std::int64_t bits_into_array(const Mapping& mapping, const Traffic& traffic, const LevelRoles& levels,
                             std::size_t operand) {
  for (int l = levels.array - 1; l >= 0; --l) {
    const auto at = static_cast<std::size_t>(l);
    if (mapping.levels[at].keeps_operand(operand)) return traffic[at][operand].read_bits;
  }
  return 0;
}

std::int64_t whole_bytes(std::int64_t bits) { return (bits + 7) / 8; }

}  // namespace

const ingest::FormatSupport& format_of(const lower::Kernel& kernel, const ingest::Accelerator& accelerator) {
  const auto at = std::find_if(accelerator.formats.begin(), accelerator.formats.end(), [&](const auto& format) {
    return format.inputs == kernel.inputs && format.accumulate == kernel.accumulate;
  });
  PL_CHECK(at != accelerator.formats.end());
  return *at;
}

double action_femtojoules(const ingest::Accelerator& accelerator, const std::string& action) {
  const auto at = accelerator.energy.find(action);
  return at == accelerator.energy.end() ? 0.0 : at->second.femtojoules;
}

MappingPrice price_mapping(const lower::Kernel& kernel, const ingest::Accelerator& accelerator,
                           const LevelRoles& levels, std::size_t stationary, const Mapping& mapping,
                           const AccessCounts& counts) {
  const Traffic traffic = find_traffic(kernel.einsum, mapping, counts, levels.home);
  const ingest::FormatSupport& format = format_of(kernel, accelerator);
  MappingPrice price;
  price.off_array_weight = whole_bytes(bits_into_array(mapping, traffic, levels, 0));
  const OperandTraffic& home = traffic[static_cast<std::size_t>(levels.home)][kOutputs];
  price.off_array_activation =
      whole_bytes(bits_into_array(mapping, traffic, levels, 1) + home.write_bits - home.partial_write_bits);
  std::int64_t psum_bits = 0;
  std::int64_t off_chip_bits = 0;
  for (std::size_t l = 0; l < traffic.size(); ++l) {
    const ingest::AcceleratorLevel& level = accelerator.levels[l];
    const Moved moved = moved_at(traffic, l);
    if (level.off_chip) {
      off_chip_bits += moved.read_bits + moved.write_bits;
    } else if (!level.array) {
      psum_bits += traffic[l][kOutputs].partial_read_bits + traffic[l][kOutputs].partial_write_bits;
    }
  }
  price.psum = whole_bytes(psum_bits);
  price.off_chip = whole_bytes(off_chip_bits);
  price.femtojoules = energy_of_traffic(traffic, counts, accelerator, format);
  const ArrayTime time =
      array_time(kernel.einsum, mapping, stationary, format.macs_per_pe, accelerator, accelerator.nominal);
  const auto network = find_array_network(kernel.einsum, mapping, accelerator, levels, accelerator.nominal);
  // What cannot be counted is never the best; execute() says why if nothing else is left.
  price.cycles = network.ok() ? std::max(cycles_with_link(time.total(), traffic, accelerator), network->cycles)
                              : std::numeric_limits<std::int64_t>::max();
  return price;
}

double objective_of(const MappingPrice& price, const std::string& objective) {
  if (objective == "off_array_weight_bytes") return static_cast<double>(price.off_array_weight);
  if (objective == "energy") return price.femtojoules;
  if (objective == "latency") return static_cast<double>(price.cycles);
  return static_cast<double>(price.cycles) * price.femtojoules;
}

}  // namespace plumbline::schedule
