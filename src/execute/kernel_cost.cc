#include "execute/kernel_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "schedule/array_time.h"
#include "schedule/network_time.h"
#include "schedule/traffic.h"

namespace plumbline::execute {
namespace {

using ingest::AcceleratorLevel;
using lower::Kernel;
using lower::KernelKind;
using schedule::OperandTraffic;

constexpr std::size_t kOutputs = 2;

std::size_t at(CycleClass c) { return static_cast<std::size_t>(c); }
std::size_t at(EnergyPath p) { return static_cast<std::size_t>(p); }

std::int64_t bytes_of(std::int64_t bits) { return (bits + 7) / 8; }

std::int64_t cycles_for(std::int64_t bytes, const std::optional<double>& bytes_per_cycle) {
  if (!bytes_per_cycle || bytes == 0) return 0;
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) / *bytes_per_cycle));
}

/// Bits at one kind of storage, by what they carry; energy and time are reckoned on these.
struct Port {
  std::int64_t read = 0;   ///< bits
  std::int64_t write = 0;  ///< bits
};

class KernelCosting {
 public:
  KernelCosting(const CostContext& context, const Kernel& kernel, const schedule::KernelSchedule& schedule,
                const lower::Instance& instance, const Situation& situation)
      : context_(context), kernel_(kernel), schedule_(schedule), instance_(instance), situation_(situation) {}

  Result<SituationCost> run() {
    if (kernel_.kind == KernelKind::matrix) {
      PL_TRY_STATUS(matrix_traffic());
    }
    vector_traffic();
    energy_[at(EnergyPath::vector_unit)] +=
        static_cast<double>(kernel_.vector_operations()) * context_.prices.operation;
    find_cycles();
    return finish();
  }

 private:
  [[nodiscard]] const AcceleratorLevel& level(int l) const {
    return context_.accelerator.levels[static_cast<std::size_t>(l)];
  }

  void spend(EnergyPath path, int l, std::int64_t read_bits, std::int64_t write_bits) {
    const auto index = static_cast<std::size_t>(l);
    energy_[at(path)] += static_cast<double>(read_bits) * context_.prices.level_read[index] +
                         static_cast<double>(write_bits) * context_.prices.level_write[index];
  }

  /// Is the operand already at its on-chip home before, or left there after, the kernel runs?
  [[nodiscard]] bool on_chip(int operand) const {
    for (std::size_t i = 0; i < instance_.reads.size(); ++i) {
      if (instance_.reads[i].operand == operand) return !situation_.reads_off_chip[i];
    }
    for (std::size_t i = 0; i < instance_.writes.size(); ++i) {
      if (instance_.writes[i].operand == operand) return !situation_.writes_off_chip[i];
    }
    for (std::size_t i = 0; i < instance_.parameters.size(); ++i) {
      if (instance_.parameters[i].operand == operand) return situation_.parameters_on_chip[i];
    }
    PL_CHECK(false);
    return false;
  }

  Status matrix_traffic() {
    const auto& accelerator = context_.accelerator;
    const auto& operands = kernel_.einsum.operands;
    const auto format = std::find_if(accelerator.formats.begin(), accelerator.formats.end(), [&](const auto& f) {
      return f.inputs == kernel_.inputs && f.accumulate == kernel_.accumulate;
    });
    PL_CHECK(format != accelerator.formats.end());  // lower() has checked the pair
    const auto mac = accelerator.energy.find(format->mac_action);
    if (mac == accelerator.energy.end()) {
      return make_error("unknown-name", {},
                        fmt::format("no energy of a MAC in {} is known ('{}')", kernel_.inputs, format->mac_action));
    }
    energy_[at(EnergyPath::mac)] += static_cast<double>(schedule_.counts.macs) * mac->second.femtojoules;
    time_ = schedule::array_time(kernel_.einsum, schedule_.mapping, schedule_.stationary, format->macs_per_pe,
                                 accelerator, context_.clock);
    PL_TRY(
        const schedule::ArrayNetwork network,
        schedule::find_array_network(kernel_.einsum, schedule_.mapping, accelerator, context_.levels, context_.clock));
    network_cycles_ = network.cycles;
    const schedule::Traffic traffic =
        find_traffic(kernel_.einsum, schedule_.mapping, schedule_.counts, context_.levels.home);
    for (std::size_t o = 0; o < operands.size(); ++o) {
      const bool weights = operands[o].role == lower::Role::weights;
      const int home = weights ? context_.levels.weights : context_.levels.home;
      const bool resident = on_chip(static_cast<int>(o));
      for (int l = 0; l < static_cast<int>(traffic.size()); ++l) {
        OperandTraffic moved = traffic[static_cast<std::size_t>(l)][o];
        if (resident && l < home) continue;
        if (resident && l == home) {
          // Already here: nothing is filled, and finished outputs are not drained further.
          if (o == kOutputs) {
            moved.read_bits = moved.partial_read_bits;
          } else {
            moved.write_bits = 0;
          }
        }
        account(l, operands[o].role, moved);
      }
      find_off_array(traffic, o);
    }
    return Done{};
  }

  void account(int l, lower::Role role, const OperandTraffic& moved) {
    const AcceleratorLevel& storage = level(l);
    if (storage.array) {
      spend(EnergyPath::array_registers, l, moved.read_bits, moved.write_bits);
      return;
    }
    if (storage.off_chip) {
      spend(EnergyPath::off_chip, l, moved.read_bits, moved.write_bits);
      off_chip_.read += moved.read_bits;
      off_chip_.write += moved.write_bits;
      (role == lower::Role::weights ? off_chip_weight_bits_ : off_chip_activation_bits_) +=
          moved.read_bits + moved.write_bits;
      return;
    }
    spend(EnergyPath::psums, l, moved.partial_read_bits, moved.partial_write_bits);
    psum_bits_ += moved.partial_read_bits + moved.partial_write_bits;
    spend(role == lower::Role::weights ? EnergyPath::weights_sram : EnergyPath::activations_sram, l,
          moved.read_bits - moved.partial_read_bits, moved.write_bits - moved.partial_write_bits);
  }

  /// What crosses the array's boundary: reads of the innermost keeper outside the array, finished outputs written home.
  void find_off_array(const schedule::Traffic& traffic, std::size_t o) {
    const lower::Operand& operand = kernel_.einsum.operands[o];
    if (o == kOutputs) {
      const OperandTraffic& home = traffic[static_cast<std::size_t>(context_.levels.home)][o];
      activation_bits_ += home.write_bits - home.partial_write_bits;
      return;
    }
    int keeper = context_.levels.array - 1;
    while (keeper > 0 && !schedule_.mapping.levels[static_cast<std::size_t>(keeper)].keeps_operand(o)) --keeper;
    const std::int64_t bits = traffic[static_cast<std::size_t>(keeper)][o].read_bits;
    if (operand.role == lower::Role::weights) {
      weight_bits_ += bits;
      weight_elements_ += schedule_.counts.levels[static_cast<std::size_t>(keeper)][o].reads;
    } else if (operand.role == lower::Role::stationary_activations) {
      stationary_bits_ += bits;
    } else {
      activation_bits_ += bits;
    }
  }

  /// Activations and parameters that the vector unit reads and writes at the home level, epilogues included.
  void vector_traffic() {
    const int home = context_.levels.home;
    for (std::size_t i = 0; i < instance_.reads.size(); ++i) {
      const lower::BufferUse& use = instance_.reads[i];
      if (use.operand >= 0) continue;
      const std::int64_t bits = use.bytes * 8;
      vector_.read += bits;
      activation_bits_ += bits;
      spend(EnergyPath::activations_sram, home, bits, situation_.reads_off_chip[i] ? bits : 0);
      if (situation_.reads_off_chip[i]) fetch(bits, off_chip_activation_bits_);
    }
    for (std::size_t i = 0; i < instance_.writes.size(); ++i) {
      const lower::BufferUse& use = instance_.writes[i];
      if (use.operand >= 0) continue;
      const std::int64_t bits = use.bytes * 8;
      vector_.write += bits;
      activation_bits_ += bits;
      spend(EnergyPath::activations_sram, home, situation_.writes_off_chip[i] ? bits : 0, bits);
      if (!situation_.writes_off_chip[i] || context_.levels.off_chip < 0) continue;
      off_chip_.write += bits;
      off_chip_activation_bits_ += bits;
      spend(EnergyPath::off_chip, context_.levels.off_chip, 0, bits);
    }
    for (std::size_t i = 0; i < instance_.parameters.size(); ++i) {
      const lower::ParameterUse& use = instance_.parameters[i];
      if (use.operand >= 0) continue;
      const std::int64_t bits = use.bytes * 8;
      vector_.read += bits;
      weight_bits_ += bits;
      const bool on_chip = situation_.parameters_on_chip[i];
      spend(EnergyPath::weights_sram, context_.levels.weights, bits, on_chip ? 0 : bits);
      if (!on_chip) fetch(bits, off_chip_weight_bits_);
    }
  }

  void fetch(std::int64_t bits, std::int64_t& account_bits) {
    if (context_.levels.off_chip < 0) return;
    off_chip_.read += bits;
    account_bits += bits;
    spend(EnergyPath::off_chip, context_.levels.off_chip, bits, 0);
  }

  void find_cycles() {
    auto& classes = cost_.classes;
    classes[at(CycleClass::useful)] = time_.useful;
    classes[at(CycleClass::preload_exposed)] = time_.preload_exposed;
    classes[at(CycleClass::weight_wait)] = time_.weight_wait;
    classes[at(CycleClass::feeder)] = time_.feeder;
    classes[at(CycleClass::sram)] = time_.sram;
    classes[at(CycleClass::psum_drain)] = time_.psum_drain;
    classes[at(CycleClass::barrier)] = time_.barrier;
    const bool matrix = kernel_.kind == KernelKind::matrix;
    const AcceleratorLevel& home = level(context_.levels.home);
    const std::int64_t port = std::max(cycles_for(bytes_of(vector_.read), home.read.per_cycle(context_.clock)),
                                       cycles_for(bytes_of(vector_.write), home.write.per_cycle(context_.clock)));
    const auto computing = static_cast<std::int64_t>(std::ceil(static_cast<double>(kernel_.vector_operations()) /
                                                               context_.accelerator.vector_unit.operations_per_cycle));
    std::int64_t covered = time_.total();
    if (!matrix) {
      classes[at(CycleClass::vector_unit)] = computing;
      covered = computing;
    }
    // The outermost late resource owns a cycle in which several are late.
    const auto late = [&](std::int64_t until, CycleClass owner) {
      if (until <= covered) return;
      classes[at(owner)] += until - covered;
      covered = until;
    };
    if (context_.levels.off_chip >= 0) {
      const AcceleratorLevel& memory = level(context_.levels.off_chip);
      late(std::max(cycles_for(bytes_of(off_chip_.read), memory.read.per_cycle(context_.clock)),
                    cycles_for(bytes_of(off_chip_.write), memory.write.per_cycle(context_.clock))),
           CycleClass::dram);
    }
    late(network_cycles_, CycleClass::noc);
    if (matrix) {
      late(std::max(computing, port), CycleClass::vector_unit);
    } else {
      late(port, CycleClass::sram);
    }
    late(host_cycles(context_.accelerator.host.launch_per_kernel, context_.clock), CycleClass::host);
    cost_.feeder_cycles = time_.useful;
    const AcceleratorLevel& array = context_.accelerator.levels.back();
    cost_.pe = {time_.pe_useful, time_.pe_padded, time_.pe_unmapped, 0};
    cost_.pe.idle = array.fanout_x * array.fanout_y * covered - time_.pe_useful - time_.pe_padded - time_.pe_unmapped;
  }

  Result<SituationCost> finish() {
    cost_.movement.off_array_weight = bytes_of(weight_bits_);
    cost_.movement.off_array_stationary = bytes_of(stationary_bits_);
    cost_.movement.off_array_activation = bytes_of(activation_bits_);
    cost_.movement.psum = bytes_of(psum_bits_);
    cost_.movement.off_chip_weight = bytes_of(off_chip_weight_bits_);
    cost_.movement.off_chip_activation = bytes_of(off_chip_activation_bits_);
    cost_.weight_elements_in = weight_elements_;
    constexpr double kMost = 9e18;  // below 2^63
    for (std::size_t p = 0; p < kEnergyPaths; ++p) {
      if (!(energy_[p] < kMost)) {
        return make_error("overflow", {}, fmt::format("kernel '{}' takes more than 2^63 femtojoules", kernel_.name));
      }
      cost_.femtojoules[p] = std::llround(energy_[p]);
    }
    return cost_;
  }

  const CostContext& context_;
  const Kernel& kernel_;
  const schedule::KernelSchedule& schedule_;
  const lower::Instance& instance_;
  const Situation& situation_;
  SituationCost cost_;
  schedule::ArrayTime time_;
  std::int64_t network_cycles_ = 0;  ///< of the limiting link; 0 when the networks are ideal
  std::array<double, kEnergyPaths> energy_{};
  Port off_chip_;
  Port vector_;
  std::int64_t weight_bits_ = 0;
  std::int64_t weight_elements_ = 0;
  std::int64_t stationary_bits_ = 0;
  std::int64_t activation_bits_ = 0;
  std::int64_t psum_bits_ = 0;
  std::int64_t off_chip_weight_bits_ = 0;
  std::int64_t off_chip_activation_bits_ = 0;
};

}  // namespace

std::int64_t SituationCost::cycles() const { return std::accumulate(classes.begin(), classes.end(), std::int64_t{0}); }

std::int64_t host_cycles(Seconds time, Clock clock) {
  return static_cast<std::int64_t>(std::ceil(time.raw() * clock.frequency.raw()));
}

Result<Prices> find_prices(const ingest::Accelerator& accelerator) {
  Prices prices;
  std::vector<std::string> known;
  for (const auto& [name, action] : accelerator.energy) known.push_back(name);
  Diagnostics errors;
  const auto price = [&](const std::string& action, const std::string& of, const Span& span) {
    const auto found = accelerator.energy.find(action);
    if (found != accelerator.energy.end()) return found->second.femtojoules;
    if (action.empty()) {
      errors.push_back(make_error("missing-key", span, fmt::format("{} names no energy action", of),
                                  "an access without an energy would count as free"));
    } else {
      errors.push_back(make_error("unknown-name", span,
                                  fmt::format("{} names the unknown energy action '{}'", of, action),
                                  suggest(action, known)));
    }
    return 0.0;
  };
  for (const AcceleratorLevel& level : accelerator.levels) {
    prices.level_read.push_back(
        price(level.read_action, fmt::format("reading the level '{}'", level.name), level.span));
    prices.level_write.push_back(
        price(level.write_action, fmt::format("writing the level '{}'", level.name), level.span));
  }
  prices.operation = price(accelerator.vector_unit.action, "the vector unit", {});
  if (!(accelerator.vector_unit.operations_per_cycle > 0)) {
    errors.push_back(make_error("bad-value", {}, "the vector unit makes no operation per cycle"));
  }
  if (!errors.empty()) return errors;
  return prices;
}

Result<SituationCost> cost_kernel(const CostContext& context, const Kernel& kernel,
                                  const schedule::KernelSchedule& schedule, const lower::Instance& instance,
                                  const Situation& situation) {
  return KernelCosting(context, kernel, schedule, instance, situation).run();
}

}  // namespace plumbline::execute
