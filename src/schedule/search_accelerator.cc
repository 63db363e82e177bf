#include "schedule/search_accelerator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plumbline::schedule {
namespace {

constexpr std::size_t kOperands = 3;

Result<double> energy_per(const ingest::Accelerator& accelerator, const std::string& action, const char* unit,
                          const Span& span) {
  const auto at = accelerator.energy.find(action);
  if (at == accelerator.energy.end() || at->second.per != unit) {
    return make_error("unknown-name", span,
                      fmt::format("no energy per {} is called '{}' in '{}'", unit, action, accelerator.energy_table));
  }
  return at->second.femtojoules;
}

/// A rate as a fraction with a small denominator.
constexpr std::int64_t kMostCyclesPerStep = 64;
bool set_rate(double macs_per_cycle, Hierarchy& hierarchy) {
  for (std::int64_t cycles = 1; cycles <= kMostCyclesPerStep; ++cycles) {
    const double macs = macs_per_cycle * static_cast<double>(cycles);
    if (macs < 1 || std::floor(macs) != macs) continue;
    hierarchy.macs_per_cycle = static_cast<std::int64_t>(macs);
    hierarchy.cycles_per_step = cycles;
    return true;
  }
  return false;
}

/// Bits of one element of an operand in the array.
std::int64_t element_bits(const lower::Operand& operand) {
  return operand.role == lower::Role::outputs ? std::max(operand.bits, operand.partial_bits) : operand.bits;
}

/// Bits of the widest operand the array may hold: what one element of it takes.
std::int64_t widest(const lower::Einsum& einsum, std::uint32_t held) {
  std::int64_t bits = 0;
  for (std::size_t o = 0; o < kOperands; ++o) {
    if (((held >> o) & 1U) == 0) continue;
    bits = std::max(bits, element_bits(einsum.operands[o]));
  }
  return bits;
}

/// Options with the hardware's demands, and `stationary` alone in the array.
SearchOptions demands(const AcceleratorModel& model, const lower::Einsum& einsum, const SearchOptions& options,
                      std::size_t stationary) {
  SearchOptions out = options;
  const std::size_t levels = model.hierarchy.levels.size();
  out.must_keep.resize(levels, 0);
  out.must_bypass.resize(levels, 0);
  for (std::size_t l = 0; l < levels; ++l) out.must_bypass[l] |= 7U & ~model.may_hold[l];
  out.must_keep[levels - 1] |= 1U << stationary;
  out.must_bypass[levels - 1] |= 7U & ~(1U << stationary);
  const auto& capacity = model.hierarchy.levels.back().capacity_bits;
  out.one_register = model.one_register || (capacity && *capacity < 2 * element_bits(einsum.operands[stationary]));
  return out;
}

}  // namespace

Result<AcceleratorModel> model_accelerator(const ingest::Accelerator& accelerator, const std::string& inputs,
                                           const std::string& accumulate, const lower::Einsum& einsum) {
  const auto format = std::find_if(
      accelerator.formats.begin(), accelerator.formats.end(),
      [&](const ingest::FormatSupport& each) { return each.inputs == inputs && each.accumulate == accumulate; });
  if (format == accelerator.formats.end()) {
    std::vector<std::string> pairs;
    for (const ingest::FormatSupport& each : accelerator.formats)
      pairs.push_back(each.inputs + " into " + each.accumulate);
    return make_error("unknown-name", Span{},
                      fmt::format("'{}' does not multiply {} into {}", accelerator.name, inputs, accumulate),
                      suggest(inputs + " into " + accumulate, pairs));
  }
  AcceleratorModel model;
  if (!set_rate(format->macs_per_pe, model.hierarchy)) {
    return make_error("unsupported", Span{},
                      fmt::format("mapping {} multiply-accumulates a cycle and PE", format->macs_per_pe),
                      fmt::format("a whole number of them in at most {} cycles", kMostCyclesPerStep));
  }
  PL_TRY(model.rates.mac, energy_per(accelerator, format->mac_action, "mac", Span{}));
  for (const ingest::AcceleratorLevel& from : accelerator.levels) {
    const std::uint32_t held =
        (from.keeps.weights ? 1U : 0U) | (from.keeps.inputs ? 2U : 0U) | (from.keeps.outputs ? 4U : 0U);
    StorageLevel level;
    level.name = from.name;
    level.off_chip = from.off_chip;
    level.array = from.array;
    level.instances = from.fanout_x * from.fanout_y;
    level.mesh_x = from.fanout_x;
    constexpr std::int64_t kByte = 8;
    if (from.capacity) level.capacity_bits = from.capacity->raw() * kByte / level.instances;
    if (from.array && !from.capacity) {
      level.capacity_bits = widest(einsum, held);
      model.one_register = true;
    }
    if (const auto rate = from.read.per_cycle(accelerator.nominal))
      level.read_bits_per_cycle = *rate * kByte / static_cast<double>(level.instances);
    if (const auto rate = from.write.per_cycle(accelerator.nominal))
      level.write_bits_per_cycle = *rate * kByte / static_cast<double>(level.instances);
    model.hierarchy.levels.push_back(level);
    PL_TRY(const double read, energy_per(accelerator, from.read_action, "bit", from.span));
    PL_TRY(const double write, energy_per(accelerator, from.write_action, "bit", from.span));
    model.rates.read.push_back(read);
    model.rates.write.push_back(write);
    model.may_hold.push_back(held);
  }
  const StorageLevel& array = model.hierarchy.levels.back();
  model.hierarchy.mac_units = array.instances;
  model.hierarchy.mac_mesh_x = array.mesh_x;
  return model;
}

Result<SearchResult> search_on(const AcceleratorModel& model, const lower::Einsum& einsum,
                               const SearchOptions& options) {
  Result<SearchResult> best = make_error("does-not-fit", Span{}, "the array holds no operand");
  Certificate total;
  bool first = true;
  for (std::size_t stationary = 0; stationary < kOperands; ++stationary) {
    if (((model.may_hold.back() >> stationary) & 1U) == 0) continue;
    auto found = search_mapping(einsum, model.hierarchy, model.rates, demands(model, einsum, options, stationary));
    if (!found.ok()) {
      if (first && !best.ok()) best = found.errors();
      continue;
    }
    const Certificate& c = found->certificate;
    if (first || clearly_better(c.lower_bounds, total.lower_bounds)) total.lower_bounds = c.lower_bounds;
    total.nodes += c.nodes;
    total.opened += c.opened;
    total.evaluated += c.evaluated;
    if (!best.ok() || clearly_better(c.bests, best->certificate.bests)) best = std::move(found);
    first = false;
  }
  if (!best.ok()) return best;
  Certificate& c = best->certificate;
  c.lower_bounds = total.lower_bounds;
  state_gap(c);
  c.nodes = total.nodes;
  c.opened = total.opened;
  c.evaluated = total.evaluated;
  c.covered += ", one operand in the array at a time";
  return best;
}

}  // namespace plumbline::schedule
