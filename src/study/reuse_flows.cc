// Words and bytes between the levels, by tensor: what crosses each link, what each level is asked for, and the load of
// every port. Counts are the mapping's (schedule/counts.h); what is already on chip is not fetched again.
#include <algorithm>

#include "core/check.h"
#include "schedule/levels.h"
#include "schedule/network_time.h"
#include "schedule/roles.h"
#include "schedule/traffic.h"
#include "study/reuse_row.h"

namespace plumbline::study {
namespace {

using lower::Role;

constexpr std::size_t kOutputs = 2;

/// Is the operand's home copy on chip already (inputs), or does it stay there (outputs)?
bool stays_on_chip(const lower::Instance& instance, const schedule::Placement& placement,
                   const std::vector<bool>& pinned, int operand) {
  const auto on_chip = [&](const lower::BufferUse& use) {
    return !placement.buffers[static_cast<std::size_t>(use.buffer)].off_chip;
  };
  for (const auto& use : instance.reads) {
    if (use.operand == operand) return on_chip(use);
  }
  for (const auto& use : instance.writes) {
    if (use.operand == operand) return on_chip(use);
  }
  for (const auto& use : instance.parameters) {
    if (use.operand == operand) return schedule::on_chip_before(use, pinned);
  }
  PL_CHECK(false);  // every operand is a buffer or a parameter
  return false;
}

/// Bits are summed over instances and become bytes once, so that narrow formats do not round up kernel by kernel.
struct Bits {
  std::int64_t read = 0;
  std::int64_t write = 0;
};

struct PortBits {
  std::int64_t read = 0;
  std::int64_t write = 0;
  std::int64_t weight = 0;
  std::int64_t stationary = 0;
  std::int64_t activation = 0;
  std::int64_t psum = 0;
};

std::int64_t bytes_of(std::int64_t bits) { return (bits + 7) / 8; }

class Flows {
 public:
  Flows(const schedule::Bucket& bucket, const std::vector<bool>& pinned, const ingest::Accelerator& accelerator,
        const schedule::LevelRoles& levels, Clock clock)
      : bucket_(bucket), pinned_(pinned), accelerator_(accelerator), levels_(levels), clock_(clock) {
    ports_.resize(accelerator.levels.size());
  }

  void add(const execute::KernelCost& cost) {
    PL_CHECK(!cost.instances.empty());
    instance_ = &bucket_.graph->instances[static_cast<std::size_t>(cost.instances.front())];
    kernel_ = &bucket_.graph->kernels[cost.kernel];
    made_ = &bucket_.schedule->kernels[cost.kernel];
    times_ = cost.repeats;
    if (kernel_->kind == lower::KernelKind::matrix) add_matrix();
    add_vector_unit();
  }

  void finish(ReuseRow& row) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      links_[i].bytes = bytes_of(link_bits_[i]);
      row.links.push_back(links_[i]);
    }
    for (std::size_t i = 0; i < at_levels_.size(); ++i) {
      at_levels_[i].read_bytes = bytes_of(level_bits_[i].read);
      at_levels_[i].write_bytes = bytes_of(level_bits_[i].write);
      row.levels.push_back(at_levels_[i]);
    }
    for (std::size_t l = 0; l < ports_.size(); ++l) {
      const auto& level = accelerator_.levels[l];
      if (level.array) continue;
      const PortBits& bits = ports_[l];
      row.ports.push_back({static_cast<int>(l), bytes_of(bits.read), bytes_of(bits.write), bytes_of(bits.weight),
                           bytes_of(bits.stationary), bytes_of(bits.activation), bytes_of(bits.psum),
                           level.read.per_cycle(clock_), level.write.per_cycle(clock_)});
    }
  }

 private:
  std::size_t link(int outer, int inner, Role tensor) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].outer == outer && links_[i].inner == inner && links_[i].tensor == tensor) return i;
    }
    LinkFlow made;
    made.outer = outer;
    made.inner = inner;
    made.tensor = tensor;
    links_.push_back(made);
    link_bits_.push_back(0);
    return links_.size() - 1;
  }

  std::size_t level_row(int level, Role tensor) {
    for (std::size_t i = 0; i < at_levels_.size(); ++i) {
      if (at_levels_[i].level == level && at_levels_[i].tensor == tensor) return i;
    }
    LevelFlow made;
    made.level = level;
    made.tensor = tensor;
    at_levels_.push_back(made);
    level_bits_.push_back({});
    return at_levels_.size() - 1;
  }

  void charge_port(int level, Role tensor, std::int64_t read, std::int64_t write, std::int64_t partial) {
    PortBits& port = ports_[static_cast<std::size_t>(level)];
    port.read += read;
    port.write += write;
    port.psum += partial;
    const std::int64_t whole = read + write - partial;
    (tensor == Role::weights                  ? port.weight
     : tensor == Role::stationary_activations ? port.stationary
                                              : port.activation) += whole;
  }

  void add_matrix() {
    const schedule::Traffic traffic =
        schedule::find_traffic(kernel_->einsum, made_->mapping, made_->counts, levels_.home);
    for (std::size_t o = 0; o < kernel_->einsum.operands.size(); ++o) {
      const Role role = kernel_->einsum.operands[o].role;
      const bool resident = stays_on_chip(*instance_, bucket_.schedule->placement, pinned_, static_cast<int>(o));
      const int home = role == Role::weights ? levels_.weights : levels_.home;
      add_levels(traffic, o, resident, home);
      add_links(o, resident, home);
    }
    add_hops();
  }

  /// Hops into the array's grid, where the accelerator describes its networks.
  void add_hops() {
    const auto network = schedule::find_array_network(kernel_->einsum, made_->mapping, accelerator_, levels_, clock_);
    PL_CHECK(network.ok());  // costing has loaded the same networks
    for (const auto& tensor : network->tensors) {
      LinkFlow& flow = links_[link(tensor.outer, tensor.inner, kernel_->einsum.operands[tensor.operand].role)];
      flow.byte_hops = flow.byte_hops.value_or(0) + tensor.byte_hops * times_;
    }
  }

  void add_levels(const schedule::Traffic& traffic, std::size_t o, bool resident, int home) {
    const lower::Operand& operand = kernel_->einsum.operands[o];
    int outer = -1;
    for (int l = 0; l < static_cast<int>(traffic.size()); ++l) {
      if (!made_->mapping.levels[static_cast<std::size_t>(l)].keeps_operand(o)) continue;
      const auto& counts = made_->counts.levels[static_cast<std::size_t>(l)][o];
      const std::size_t row = level_row(l, operand.role);
      // The outermost keeper holds the whole operand: each word "arrives" once, however many chunks a layer has.
      const bool known = instance_->again && operand.role == Role::weights;
      const std::int64_t arrived = o == kOutputs ? leaving(outer, o, counts.tile)
                                   : outer >= 0  ? counts.fills
                                   : known       ? 0
                                                 : counts.tile;
      at_levels_[row].words_served += (o == kOutputs ? counts.updates : counts.reads) * times_;
      at_levels_[row].words_arrived += arrived * times_;
      outer = l;
      if (resident && l < home) continue;
      schedule::OperandTraffic moved = traffic[static_cast<std::size_t>(l)][o];
      if (resident && l == home) {
        if (o == kOutputs) {
          moved.read_bits = moved.partial_read_bits;
        } else {
          moved.write_bits = 0;
        }
      }
      level_bits_[row].read += moved.read_bits * times_;
      level_bits_[row].write += moved.write_bits * times_;
      charge_port(l, operand.role, moved.read_bits * times_, moved.write_bits * times_,
                  (moved.partial_read_bits + moved.partial_write_bits) * times_);
    }
  }

  /// Words an output level hands outward: what its outer keeper receives before reduction in the network.
  [[nodiscard]] std::int64_t leaving(int outer, std::size_t o, std::int64_t tile) const {
    if (outer < 0) return tile;
    for (const auto& network : made_->counts.networks) {
      if (network.outer == outer && network.operand == o) return network.deliveries;
    }
    PL_CHECK(false);  // every keeper has a network inward
    return 0;
  }

  void add_links(std::size_t o, bool resident, int home) {
    const lower::Operand& operand = kernel_->einsum.operands[o];
    for (const auto& network : made_->counts.networks) {
      if (network.operand != o || (resident && network.outer < home)) continue;
      const std::size_t row = link(network.outer, network.inner, operand.role);
      LinkFlow& flow = links_[row];
      flow.words_outer += network.ingresses * times_;
      flow.words_inner += network.deliveries * times_;
      flow.additions += network.spatial_reductions * times_;
      std::int64_t bits = 0;
      if (o == kOutputs) {
        const auto& outer = made_->counts.levels[static_cast<std::size_t>(network.outer)][o];
        const std::int64_t words = schedule::output_words(kernel_->einsum, schedule::find_roles(kernel_->einsum));
        const std::int64_t finished = network.outer > levels_.home ? 0 : std::min(words, outer.updates);
        flow.words_returned += outer.reads * times_;
        bits =
            (outer.updates - finished + outer.reads) * operand.partial_bits + schedule::operand_bits(operand, finished);
      } else {
        bits = schedule::operand_bits(operand, network.ingresses);
      }
      link_bits_[row] += bits * times_;
    }
  }

  /// What the vector unit moves at the home level, and what of it comes from or goes off chip.
  void add_vector_unit() {
    const auto off_chip = [&](const lower::BufferUse& use) {
      return levels_.off_chip >= 0 &&
             bucket_.schedule->placement.buffers[static_cast<std::size_t>(use.buffer)].off_chip;
    };
    for (const auto& use : instance_->reads) {
      if (use.operand >= 0) continue;
      const std::int64_t bits = use.bytes * 8 * times_;
      charge_port(levels_.home, Role::inputs, bits, 0, 0);
      if (off_chip(use)) charge_port(levels_.off_chip, Role::inputs, bits, 0, 0);
    }
    for (const auto& use : instance_->writes) {
      if (use.operand >= 0) continue;
      const std::int64_t bits = use.bytes * 8 * times_;
      charge_port(levels_.home, Role::outputs, 0, bits, 0);
      if (off_chip(use)) charge_port(levels_.off_chip, Role::outputs, 0, bits, 0);
    }
    for (const auto& use : instance_->parameters) {
      if (use.operand >= 0) continue;
      const std::int64_t bits = use.bytes * 8 * times_;
      charge_port(levels_.weights, Role::weights, bits, 0, 0);
      const bool stays = schedule::on_chip_before(use, pinned_);
      if (!stays && levels_.off_chip >= 0) charge_port(levels_.off_chip, Role::weights, bits, 0, 0);
    }
  }

  const schedule::Bucket& bucket_;
  const std::vector<bool>& pinned_;
  const ingest::Accelerator& accelerator_;
  const schedule::LevelRoles& levels_;
  Clock clock_;
  const lower::Instance* instance_ = nullptr;
  const lower::Kernel* kernel_ = nullptr;
  const schedule::KernelSchedule* made_ = nullptr;
  std::int64_t times_ = 0;
  std::vector<LinkFlow> links_;
  std::vector<std::int64_t> link_bits_;
  std::vector<LevelFlow> at_levels_;
  std::vector<Bits> level_bits_;
  std::vector<PortBits> ports_;
};

}  // namespace

void add_flows(const schedule::Bucket& bucket, const execute::BatchCost& batch, const std::vector<bool>& pinned,
               const ingest::Accelerator& accelerator, Clock clock, std::vector<ReuseRow>& classes) {
  const auto levels = schedule::find_levels(accelerator);
  PL_CHECK(levels.ok());  // scheduling has asked the same
  for (ReuseRow& row : classes) {
    Flows flows(bucket, pinned, accelerator, *levels, clock);
    for (const execute::KernelCost& cost : batch.kernels) {
      if (cost.layer_class == row.layer_class) flows.add(cost);
    }
    flows.finish(row);
  }
}

}  // namespace plumbline::study
