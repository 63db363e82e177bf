#include "schedule/compulsory_floor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ingest/topology.h"
#include "schedule/window.h"

namespace plumbline::schedule {
namespace {

constexpr std::size_t kOutputs = 2;

std::int64_t size_of(const lower::Einsum& einsum, int dim) { return einsum.dims[static_cast<std::size_t>(dim)]; }

/// Distinct elements of an operand: every mapping touches them all.
double unique_words(const lower::Einsum& einsum, std::size_t operand) {
  double words = 1;
  for (const lower::Axis& axis : einsum.operands[operand].axes) {
    if (axis.size() == 1) words *= static_cast<double>(size_of(einsum, axis[0].dim));
    if (axis.size() != 2) continue;
    const Window window = make_window(axis[0].coefficient, axis[1].coefficient);
    words *= static_cast<double>(window_size(window, {size_of(einsum, axis[0].dim), size_of(einsum, axis[1].dim)}));
  }
  return words;
}

/// The fewest passes over the dimensions from `at` on when `room` places are left along their axis of the array.
double fewest_passes(const std::vector<std::int64_t>& sizes, std::size_t at, std::int64_t room) {
  if (at == sizes.size()) return 1;
  double fewest = std::numeric_limits<double>::infinity();
  const std::int64_t widest = std::min(sizes[at], room);
  // Of all places that need the same number of passes the fewest leave most room for the others.
  for (std::int64_t places = widest; places >= 1;) {
    const std::int64_t passes = (sizes[at] + places - 1) / places;
    places = (sizes[at] + passes - 1) / passes;
    const double rest = fewest_passes(sizes, at + 1, room / places);
    fewest = std::min(fewest, static_cast<double>(passes) * rest);
    --places;
  }
  return fewest;
}

std::vector<std::int64_t> sizes_of(const lower::Einsum& einsum, std::uint32_t dims) {
  std::vector<std::int64_t> sizes;
  for (int d = 0; d < einsum.rank(); ++d) {
    if (((dims >> d) & 1U) != 0 && size_of(einsum, d) > 1) sizes.push_back(size_of(einsum, d));
  }
  return sizes;
}

double product_of(const std::vector<std::int64_t>& sizes) {
  double product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<double>(size);
  return product;
}

struct Bits {
  double read = 0;
  double written = 0;
};

/// What the operand moves at the least at a level that holds it. `feeds`: every step reads or writes it here.
Bits least_bits(const lower::Einsum& einsum, std::size_t operand, std::size_t stationary, bool outermost, bool array,
                bool feeds, const ArrayUse& use) {
  double macs = 1;
  for (int d = 0; d < einsum.rank(); ++d) macs *= static_cast<double>(size_of(einsum, d));
  const double words = unique_words(einsum, operand);
  const lower::Operand& moved = einsum.operands[operand];
  if (operand == kOutputs) {
    const double sums = std::max(words, array ? macs : feeds ? macs / use.rows : words);
    // Where sums are read back they are stored at accumulator width.
    const auto width = static_cast<double>(sums > words ? moved.partial_bits : moved.bits);
    return {width * (sums - words), width * sums};
  }
  const auto width = static_cast<double>(moved.bits);
  // Held outputs: inputs are shared along columns, weights along rows. Else the streaming one is along columns.
  const double shared = stationary == kOutputs && operand == 0 ? use.rows : use.columns;
  const double reads = array ? macs : feeds ? macs / shared : words;
  return {width * std::max(words, reads), outermost ? 0 : width * words};
}

/// One kernel on the networks into its array.
class NetworkFloor {
 public:
  NetworkFloor(const lower::Einsum& einsum, std::size_t stationary, const ArrayUse& use,
               const ingest::Accelerator& accelerator)
      : einsum_(einsum), stationary_(stationary), use_(use), accelerator_(accelerator) {
    for (int d = 0; d < einsum.rank(); ++d) macs_ *= static_cast<double>(size_of(einsum, d));
  }

  /// Cycles of the slowest limiting link; `compute`: cycles of the multiply-accumulates alone.
  [[nodiscard]] double cycles(double compute) const {
    const auto& networks = accelerator_.array().networks;
    if (!networks) return 0;
    const ingest::TensorNetwork* rows[] = {&networks->weights, &networks->inputs, &networks->outputs};
    double slowest = 0;
    double inward = 0;
    double outward = 0;
    for (std::size_t o = 0; o < std::size(rows); ++o) {
      const auto rate = rows[o]->link.per_cycle(accelerator_.nominal);
      if (!rate) continue;
      constexpr double kByte = 8;
      const double own = limiting_bits(*ingest::find_topology(rows[o]->topology), o, compute, *rate * kByte);
      slowest = std::max(slowest, own);
      (o == kOutputs ? outward : inward) += own;
    }
    if (!networks->shared) return slowest;
    const bool bus = ingest::find_topology(networks->outputs.topology)->shape == ingest::NetworkShape::bus;
    return bus ? inward + outward : std::max(inward, outward);
  }

 private:
  /// Of a line per row and column the first one is in use in every pass; buses, roots and ports carry every word.
  [[nodiscard]] double limiting_bits(const ingest::Topology& topology, std::size_t o, double compute,
                                     double link) const {
    const bool lines = topology.shape == ingest::NetworkShape::chain;
    const lower::Operand& operand = einsum_.operands[o];
    const auto narrow = static_cast<double>(operand.bits);
    if (o == stationary_) {
      const auto columns = static_cast<double>(accelerator_.array().fanout_x);
      return unique_words(einsum_, o) / (lines ? columns : 1) * narrow / link;
    }
    if (o != kOutputs) {
      const double shared = stationary_ == kOutputs && o == 0 ? use_.rows : use_.columns;
      const double words = topology.forks ? macs_ / shared : macs_;
      return words / (lines ? use_.columns * use_.rows / (topology.forks ? shared : 1) : 1) * narrow / link;
    }
    const double across = lines ? use_.columns : 1;
    const auto wide = static_cast<double>(operand.partial_bits);
    const double added = macs_ / (topology.joins ? use_.rows : 1) / across * wide / link;
    // Where no rows add up, results may leave narrow, but then a single row works.
    const double alone = std::max(macs_ / across * narrow / link, compute * use_.rows);
    return std::min(added, alone);
  }

  const lower::Einsum& einsum_;
  std::size_t stationary_;
  const ArrayUse& use_;
  const ingest::Accelerator& accelerator_;
  double macs_ = 1;
};

}  // namespace

ArrayUse best_array_use(const lower::Einsum& einsum, std::uint32_t across, std::uint32_t down, std::int64_t columns,
                        std::int64_t rows) {
  const std::vector<std::int64_t> over_columns = sizes_of(einsum, across);
  const std::vector<std::int64_t> over_rows = sizes_of(einsum, down);
  return {product_of(over_columns) / fewest_passes(over_columns, 0, columns),
          product_of(over_rows) / fewest_passes(over_rows, 0, rows)};
}

double with_shifts(double overlapped, double compute, double shift, std::size_t stationary,
                   const ingest::Accelerator& accelerator) {
  const bool beside = stationary == kOutputs ? accelerator.accumulator_double_buffered
                                             : accelerator.preload == ingest::Preload::double_buffered;
  return std::max(overlapped, beside ? shift : compute + shift);
}

KernelFront compulsory_floor(const lower::Einsum& einsum, const AcceleratorModel& model,
                             const std::vector<std::uint32_t>& keeps, std::size_t stationary, const ArrayUse& use,
                             const ingest::Accelerator& accelerator) {
  const std::size_t levels = model.hierarchy.levels.size();
  KernelFront floor;
  double macs = 1;
  for (int d = 0; d < einsum.rank(); ++d) macs *= static_cast<double>(size_of(einsum, d));
  floor.energy_floor = macs * model.rates.mac;
  // The quotient of whole numbers of passes: what rounding adds must not become a cycle.
  constexpr double kRounding = 1e-9;
  const auto whole_cycles = [](double cycles) { return std::ceil(cycles * (1 - kRounding)); };
  const double compute =
      whole_cycles(macs / (use.columns * use.rows) * static_cast<double>(model.hierarchy.cycles_per_step) /
                   static_cast<double>(model.hierarchy.macs_per_cycle));
  floor.cycles_floor = compute;
  for (std::size_t l = 0; l < levels; ++l) {
    const bool array = l + 1 == levels;
    Bits moved;
    for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
      const bool here = array ? o == stationary : ((keeps[l] >> o) & 1U) != 0;
      if (!here) continue;
      bool feeds = !array && o != stationary;
      for (std::size_t i = l + 1; i + 1 < levels; ++i) feeds = feeds && ((keeps[i] >> o) & 1U) == 0;
      const Bits bits = least_bits(einsum, o, stationary, l == 0, array, feeds, use);
      moved.read += bits.read;
      moved.written += bits.written;
    }
    floor.energy_floor += moved.read * model.rates.read[l] + moved.written * model.rates.write[l];
    const StorageLevel& level = model.hierarchy.levels[l];
    const auto instances = static_cast<double>(level.instances);
    if (level.read_bits_per_cycle)
      floor.cycles_floor = std::max(floor.cycles_floor, moved.read / (*level.read_bits_per_cycle * instances));
    if (level.write_bits_per_cycle)
      floor.cycles_floor = std::max(floor.cycles_floor, moved.written / (*level.write_bits_per_cycle * instances));
  }
  const std::int64_t edge = accelerator.preload_rows_per_cycle;
  // Tiles of a window share words, and yet each shifts in whole.
  const double held = product_of(sizes_of(einsum, dims_of(einsum.operands[stationary])));
  const double shift = edge <= 0 ? 0 : held / use.columns / static_cast<double>(edge);
  floor.cycles_floor = std::max(floor.cycles_floor, NetworkFloor(einsum, stationary, use, accelerator).cycles(compute));
  floor.cycles_floor = whole_cycles(with_shifts(floor.cycles_floor, compute, shift, stationary, accelerator));
  floor.product_floor = floor.energy_floor * floor.cycles_floor;
  const lower::Operand& weights = einsum.operands[0];
  if (weights.role == lower::Role::weights)
    floor.weight_bits_floor = unique_words(einsum, 0) * static_cast<double>(weights.bits);
  return floor;
}

}  // namespace plumbline::schedule
