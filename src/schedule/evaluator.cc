#include "schedule/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "schedule/side_data.h"
#include "schedule/transfer.h"

namespace plumbline::schedule {
namespace {

/// No count exceeds the number of MACs, so sums of two counts stay within 64 bits.
constexpr std::int64_t kMostMacs = std::int64_t{1} << 62;

using lower::Operand;
using lower::Role;

Diagnostic bad(std::string message, std::string help = {}) {
  return make_error("bad-value", Span{}, std::move(message), std::move(help));
}

/// Coefficients of a window, made small: their common divisor is dropped, and a stride beyond what the other dimension
/// can reach keeps tiles just as apart when it is as small as that.
void shrink(const lower::Einsum& einsum, WindowAxis& axis) {
  const std::int64_t common = std::gcd(axis.coefficients[0], axis.coefficients[1]);
  for (std::size_t t = 0; t < 2; ++t) axis.coefficients[t] /= common;
  for (std::size_t t = 0; t < 2; ++t) {
    const std::int64_t other = einsum.dims[static_cast<std::size_t>(axis.dims[1 - t])] - 1;
    std::int64_t apart = 0;
    if (__builtin_mul_overflow(axis.coefficients[1 - t], other, &apart)) continue;
    axis.coefficients[t] = std::min(axis.coefficients[t], std::max<std::int64_t>(apart, 0) + 1);
  }
}

/// Axes of one operand into a Projection.
Status project(const lower::Einsum& einsum, const Operand& operand, Projection& out) {
  out = {};
  for (const lower::Axis& axis : operand.axes) {
    if (axis.empty()) return bad(fmt::format("operand '{}' has an axis without dimensions", operand.name));
    WindowAxis window;
    for (const lower::AxisTerm& term : axis) {
      if (term.dim < 0 || term.dim >= einsum.rank() || term.coefficient < 1) {
        return bad(fmt::format("operand '{}' addresses dimension {} with coefficient {}", operand.name, term.dim,
                               term.coefficient),
                   "coefficients count from 1");
      }
      if (((out.relevant >> term.dim) & 1U) != 0) {
        return make_error("unsupported", Span{},
                          fmt::format("operand '{}' uses dimension '{}' twice", operand.name,
                                      einsum.dim_names[static_cast<std::size_t>(term.dim)]));
      }
      out.relevant |= 1U << term.dim;
      window.dims[static_cast<std::size_t>(window.terms)] = term.dim;
      window.coefficients[static_cast<std::size_t>(window.terms++)] = term.coefficient;
    }
    if (window.terms == 1) {
      out.flat |= 1U << axis[0].dim;
      out.flat_dims[static_cast<std::size_t>(out.flat_count++)] = axis[0].dim;
      out.words *= einsum.dims[static_cast<std::size_t>(axis[0].dim)];  // at most the checked number of MACs
      continue;
    }
    if (operand.role == Role::outputs) {
      return make_error("unsupported", Span{}, fmt::format("outputs '{}' slide along an axis", operand.name));
    }
    if (window.terms == 2) shrink(einsum, window);
    if (window.terms == 2) window.pair = make_window(window.coefficients[0], window.coefficients[1]);
    out.pairs_only = out.pairs_only && window.terms == 2;
    out.axes[static_cast<std::size_t>(out.windows++)] = window;
  }
  return Done{};
}

}  // namespace

Status Evaluator::prepare_projections() {
  const int rank = einsum_.rank();
  if (rank < 1 || rank > lower::kMaxDims) return bad(fmt::format("a kernel of {} dimensions", rank));
  macs_ = 1;
  for (int d = 0; d < rank; ++d) {
    const std::int64_t size = einsum_.dims[static_cast<std::size_t>(d)];
    const std::string& name = einsum_.dim_names[static_cast<std::size_t>(d)];
    if (size < 1) return bad(fmt::format("dimension '{}' has size {}", name, size));
    if (__builtin_mul_overflow(macs_, size, &macs_) || macs_ > kMostMacs) {
      return make_error("overflow", Span{}, fmt::format("more than 2^62 multiply-accumulates at dimension '{}'", name));
    }
  }
  const auto& operands = einsum_.operands;
  if (operands.empty() || operands.size() > kMaxOperands) {
    return make_error("unsupported", Span{}, fmt::format("a kernel of {} operands", operands.size()),
                      fmt::format("at most {}", kMaxOperands));
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool last = i + 1 == operands.size();
    if ((operands[i].role == Role::outputs) != last) return bad("the outputs are not the last operand");
    if (operands[i].bits < 1 || operands[i].partial_bits < 1)
      return bad(fmt::format("operand '{}' has no bits", operands[i].name));
    PL_TRY_STATUS(project(einsum_, operands[i], projections_[i]));
    if (operands[i].side_bits < 0 || operands[i].side_group < 0)
      return bad(fmt::format("operand '{}' has negative side data", operands[i].name));
    projections_[i].side_dim = side_dimension(einsum_, i);
    if (projections_[i].side_dim < 0 && operands[i].side_bits > 0 && operands[i].side_group > 0) {
      return make_error(
          "unsupported", Span{},
          fmt::format("operand '{}' has side data but no dimension of its own that is summed", operands[i].name));
    }
  }
  return Done{};
}

Status Evaluator::prepare_fan_out() {
  const auto& levels = hierarchy_.levels;
  if (levels.empty() || levels.size() > kMaxLevels) {
    return bad(fmt::format("a hierarchy of {} levels", levels.size()), fmt::format("1 to {} levels", kMaxLevels));
  }
  if (hierarchy_.macs_per_cycle < 1 || hierarchy_.cycles_per_step < 1) return bad("no multiply-accumulate in a cycle");
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const bool last = l + 1 == levels.size();
    const StorageLevel& outer = levels[l];
    const std::int64_t instances = last ? hierarchy_.mac_units : levels[l + 1].instances;
    const std::int64_t mesh_x = last ? hierarchy_.mac_mesh_x : levels[l + 1].mesh_x;
    const std::string inner = last ? "the MAC units" : fmt::format("level '{}'", levels[l + 1].name);
    if (outer.instances < 1 || outer.mesh_x < 1 || outer.instances % outer.mesh_x != 0) {
      return bad(
          fmt::format("level '{}' has {} instances on a mesh {} wide", outer.name, outer.instances, outer.mesh_x));
    }
    if (instances < 1 || mesh_x < 1 || instances % mesh_x != 0 || mesh_x % outer.mesh_x != 0 ||
        (instances / mesh_x) % (outer.instances / outer.mesh_x) != 0) {
      return bad(fmt::format("{} ({} on a mesh {} wide) do not divide among the instances of level '{}'", inner,
                             instances, mesh_x, outer.name));
    }
    fan_out_.x[l] = mesh_x / outer.mesh_x;
    fan_out_.y[l] = instances / mesh_x / (outer.instances / outer.mesh_x);
    for (const auto& rate : {outer.read_bits_per_cycle, outer.write_bits_per_cycle}) {
      if (rate && !(*rate > 0))
        return bad(fmt::format("level '{}' has a bandwidth of {} bits a cycle", outer.name, *rate));
      bandwidths_ = bandwidths_ || rate.has_value();
    }
    if (outer.capacity_bits && *outer.capacity_bits < 0)
      return bad(fmt::format("level '{}' has a negative capacity", outer.name));
  }
  return Done{};
}

Result<Evaluator> Evaluator::prepare(const lower::Einsum& einsum, const Hierarchy& hierarchy) {
  Evaluator evaluator;
  evaluator.einsum_ = einsum;
  evaluator.hierarchy_ = hierarchy;
  PL_TRY_STATUS(evaluator.prepare_projections());
  PL_TRY_STATUS(evaluator.prepare_fan_out());
  return evaluator;
}

std::int64_t Evaluator::tile_words(const Nest& nest, int level, std::size_t operand) const {
  const Projection& p = projections_[operand];
  const auto& extent = nest.extent[static_cast<std::size_t>(level)];
  std::int64_t words = 1;
  for (int k = 0; k < p.flat_count; ++k)
    words *= extent[static_cast<std::size_t>(p.flat_dims[static_cast<std::size_t>(k)])];
  for (int w = 0; w < p.windows; ++w) {
    const std::int64_t along = axis_elements(p.axes[static_cast<std::size_t>(w)], extent);
    if (along < 0) return -1;
    words *= along;
  }
  return words;
}

bool Evaluator::transfer(const Nest& nest, int outer, int inner, std::size_t operand, Transfer& out) const {
  const Boundary at{inner, nest.first[static_cast<std::size_t>(outer)], nest.first[static_cast<std::size_t>(inner)]};
  const bool latched = inner < nest.levels;
  const Projection& p = projections_[operand];
  if (nest.ragged == 0 && p.pairs_only && transfer_perfect(nest, at, p, latched, out)) return true;
  return transfer_any(nest, at, p, latched, out);
}

Verdict Evaluator::count_operand(const Nest& nest, const Mapping& mapping, std::size_t operand, Tally& tally) const {
  const bool outputs = operand + 1 == einsum_.operands.size();
  int keeper = -1;
  for (int l = 0; l <= nest.levels; ++l) {
    if (l < nest.levels && !mapping.levels[static_cast<std::size_t>(l)].keeps_operand(operand)) continue;
    Transfer moved;
    if (keeper >= 0) {
      if (!transfer(nest, keeper, l, operand, moved)) return {Fault::too_many_loops, l, static_cast<int>(operand)};
      OperandTally& up = tally.levels[static_cast<std::size_t>(keeper)][operand];
      up.inner = l;
      up.down = moved;
      up.updates = outputs ? moved.merged : 0;
      up.reads = outputs ? moved.merged - moved.first_merged : moved.merged;
    }
    if (l == nest.levels) break;
    OperandTally& here = tally.levels[static_cast<std::size_t>(l)][operand];
    here.fills = keeper < 0 ? 0 : outputs ? moved.delivered - moved.first_delivered : moved.delivered;
    here.tile = tile_words(nest, l, operand);
    if (here.tile < 0) return {Fault::too_many_loops, l, static_cast<int>(operand)};
    keeper = l;
  }
  return {};
}

namespace {

/// Where the loops outside one level leave an operand.
struct Passage {
  std::int64_t moving = 1;    ///< repeats by temporal loops outside some used loop
  std::int64_t standing = 1;  ///< repeats by the temporal loops inside every used one, where the tile stands still
  std::int64_t copies = 1;    ///< repeats by spatial loops
};

/// Branch-free: random nests defeat the predictor.
void pass(const NestLoop& loop, std::uint32_t relevant, Passage& p) {
  const bool used = ((relevant >> loop.dim) & 1U) != 0;
  const bool temporal = !loop.spatial;
  p.moving *= (used & temporal) ? p.standing : 1;
  p.standing = temporal ? (used ? 1 : p.standing * loop.bound) : p.standing;
  p.copies *= (!used & !temporal) ? loop.bound : 1;
}

using Passages = std::array<std::array<Passage, kMaxOperands>, kMaxLevels + 1>;

/// One pass over the nest for N operands at once; N is fixed so that their state stays in registers.
template <std::size_t N>
void pass_levels(const Nest& nest, const std::array<Projection, kMaxOperands>& projections, Passages& out) {
  std::array<Passage, N> now;
  std::array<std::uint32_t, N> relevant;
  for (std::size_t o = 0; o < N; ++o) relevant[o] = projections[o].relevant;
  int i = 0;
  for (int l = 0; l <= nest.levels; ++l) {
    for (; i < nest.first[static_cast<std::size_t>(l)]; ++i) {
      for (std::size_t o = 0; o < N; ++o) pass(nest.loops[static_cast<std::size_t>(i)], relevant[o], now[o]);
    }
    for (std::size_t o = 0; o < N; ++o) out[static_cast<std::size_t>(l)][o] = now[o];
  }
}

}  // namespace

/// Operands without windows under perfect factors. Of the loops outside a level only those over unused dimensions
/// repeat a word, and of these not the ones inside every used loop, where the tile stands still.
void Evaluator::count_flat(const Nest& nest, const Mapping& mapping, Tally& tally) const {
  Passages passages;
  const std::size_t operands = einsum_.operands.size();
  if (operands == 3) {
    pass_levels<3>(nest, projections_, passages);
  } else {
    pass_levels<kMaxOperands>(nest, projections_, passages);
  }
  for (std::size_t o = 0; o < operands; ++o) {
    const Projection& p = projections_[o];
    if (p.windows > 0) continue;
    const bool outputs = o + 1 == operands;
    // Branch-free in what is kept: every level is taken for the next keeper until a later one overwrites it.
    OperandTally unhomed;
    OperandTally* up = &unhomed;
    std::int64_t copies_above = 1;
    std::int64_t homed = 0;
    for (int l = 0; l <= nest.levels; ++l) {
      const Passage& at = passages[static_cast<std::size_t>(l)][o];
      const std::int64_t moved = p.words * at.moving * (l == nest.levels ? at.standing : 1);
      up->inner = l;
      up->down = {moved * copies_above, moved * at.copies, p.words * copies_above, p.words * at.copies};
      up->updates = outputs ? up->down.merged : 0;
      up->reads = up->down.merged - (outputs ? up->down.first_merged : 0);
      if (l == nest.levels) break;
      const bool kept = mapping.levels[static_cast<std::size_t>(l)].keeps_operand(o);
      OperandTally& here = tally.levels[static_cast<std::size_t>(l)][o];
      here.tile = tile_words(nest, l, o);
      here.fills = homed * (moved - (outputs ? p.words : 0)) * at.copies;
      up = kept ? &here : up;
      copies_above = kept ? at.copies : copies_above;
      homed = kept ? 1 : homed;
    }
  }
}

/// Bits of one stored element. Outputs are narrow only where nothing but finished sums arrives.
std::int64_t Evaluator::stored_bits(const Tally& tally, const Nest& nest, int level, std::size_t operand) const {
  const Operand& what = einsum_.operands[operand];
  if (operand + 1 != einsum_.operands.size()) return what.bits;
  const OperandTally& here = tally.levels[static_cast<std::size_t>(level)][operand];
  bool partial = here.fills > 0 || here.reads > 0;
  const int outside = nest.first[static_cast<std::size_t>(level)];
  for (int i = 0; i < outside && !partial; ++i) {  // another instance holds another part of the sum
    const NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    partial = loop.spatial && ((projections_[operand].relevant >> loop.dim) & 1U) == 0;
  }
  return partial ? std::max(what.bits, what.partial_bits) : what.bits;
}

/// Bits of scales or metadata beside the elements. MACs take those of a group once for the group.
bool Evaluator::add_side_data(const Nest& nest, int level, std::size_t operand, OperandTally& here,
                              __int128& stored) const {
  const Operand& what = einsum_.operands[operand];
  const auto d = static_cast<std::size_t>(projections_[operand].side_dim);
  const std::int64_t size = nest.size[d];
  const std::int64_t own = nest.extent[static_cast<std::size_t>(level)][d];
  const std::int64_t below = here.inner == nest.levels ? std::min(what.side_group, size)
                                                       : nest.extent[static_cast<std::size_t>(here.inner)][d];
  const auto add = [&](std::int64_t words, std::int64_t& bits) {
    std::int64_t side = 0;
    return !__builtin_mul_overflow(words, what.side_bits, &side) && !__builtin_add_overflow(bits, side, &bits);
  };
  // A tile that begins inside a group holds one word more than its length in groups.
  const bool cut = own < size && own % what.side_group != 0 && what.side_group % own != 0;
  const std::int64_t held = (own + what.side_group - 1) / what.side_group + (cut ? 1 : 0);
  stored += static_cast<__int128>(here.tile / own) * held * what.side_bits;
  return add(side_words(here.reads, size, below, what.side_group), here.read_bits) &&
         add(side_words(here.fills + here.updates, size, own, what.side_group), here.write_bits);
}

/// Bits read and written; the tiles against the capacity.
Verdict Evaluator::count_bits(const Nest& nest, const Mapping& mapping, Tally& tally) const {
  for (int l = 0; l < nest.levels; ++l) {
    const auto& capacity = hierarchy_.levels[static_cast<std::size_t>(l)].capacity_bits;
    __int128 stored = 0;
    for (std::size_t o = 0; o < einsum_.operands.size(); ++o) {
      if (!mapping.levels[static_cast<std::size_t>(l)].keeps_operand(o)) continue;
      OperandTally& here = tally.levels[static_cast<std::size_t>(l)][o];
      const std::int64_t width = stored_bits(tally, nest, l, o);
      if (capacity) stored += static_cast<__int128>(here.tile) * width;
      // Reads, fills and updates are at most the number of MACs each.
      if (__builtin_mul_overflow(here.reads, width, &here.read_bits) ||
          __builtin_mul_overflow(here.fills + here.updates, width, &here.write_bits)) {
        return {Fault::overflow, l, static_cast<int>(o)};
      }
      if (projections_[o].side_dim >= 0 && !add_side_data(nest, l, o, here, stored))
        return {Fault::overflow, l, static_cast<int>(o)};
    }
    if (capacity && stored > *capacity) {
      return {Fault::beyond_tile, l, 0, static_cast<std::int64_t>(std::min<__int128>(stored, INT64_MAX)), *capacity};
    }
  }
  return {};
}

/// Bits moved and the largest throttled time.
void Evaluator::find_time(const Mapping& mapping, const Nest& nest, Tally& tally) const {
  tally.cycles_overlapped = compute_cycles(hierarchy_, tally.compute_steps);
  tally.binding_level = -1;
  if (!bandwidths_) return;
  for (int l = 0; l < nest.levels; ++l) {
    const StorageLevel& level = hierarchy_.levels[static_cast<std::size_t>(l)];
    if (!level.read_bits_per_cycle && !level.write_bits_per_cycle) continue;
    double read = 0;
    double written = 0;
    for (std::size_t o = 0; o < einsum_.operands.size(); ++o) {
      if (!mapping.levels[static_cast<std::size_t>(l)].keeps_operand(o)) continue;
      read += static_cast<double>(tally.levels[static_cast<std::size_t>(l)][o].read_bits);
      written += static_cast<double>(tally.levels[static_cast<std::size_t>(l)][o].write_bits);
    }
    const auto used = static_cast<double>(tally.used[static_cast<std::size_t>(l)]);
    const double cycles =
        std::ceil(std::max(level.read_bits_per_cycle ? read / (*level.read_bits_per_cycle * used) : 0.0,
                           level.write_bits_per_cycle ? written / (*level.write_bits_per_cycle * used) : 0.0));
    if (cycles > static_cast<double>(tally.cycles_overlapped)) {
      tally.cycles_overlapped = cycles < 0x1p63 ? static_cast<std::int64_t>(cycles) : INT64_MAX;
      tally.binding_level = l;
    }
  }
}

Verdict Evaluator::flatten_mapping(const Mapping& mapping, Nest& nest) const {
  nest.levels = levels();
  Verdict verdict = flatten(einsum_, fan_out_, mapping, nest);
  if (!verdict.ok()) return verdict;
  std::uint32_t homes = 0;
  for (const LevelNest& level : mapping.levels) homes |= level.keeps;
  for (std::size_t o = 0; o < einsum_.operands.size(); ++o) {
    if (((homes >> o) & 1U) == 0) return {Fault::no_home, 0, static_cast<int>(o)};
  }
  return verdict;
}

Verdict Evaluator::evaluate(const Mapping& mapping, Tally& tally) const {
  Nest nest;
  Verdict verdict = flatten_mapping(mapping, nest);
  if (!verdict.ok()) return verdict;
  tally.macs = macs_;
  tally.compute_steps = 1;
  tally.used.fill(1);
  if (nest.ragged == 0) {
    tally.compute_steps = macs_ / nest.copies[static_cast<std::size_t>(nest.levels)];
    for (int l = 0; l < nest.levels; ++l)
      tally.used[static_cast<std::size_t>(l)] = nest.copies[static_cast<std::size_t>(l)];
  } else {
    for (int d = 0; d < nest.rank; ++d) {
      // Steps: all temporal digits of the first instance. Instances in use: all spatial digits at the first step.
      tally.compute_steps *= idle_sums(nest, {nest.levels, 0, nest.count}, d, {nest.count, -1}).held_merged;
      for (int l = 0; l < nest.levels; ++l) {
        const int end = nest.first[static_cast<std::size_t>(l)];
        tally.used[static_cast<std::size_t>(l)] *= idle_sums(nest, {l, end, end}, d, {0, -1}).held;
      }
    }
  }
  if (nest.ragged == 0) count_flat(nest, mapping, tally);
  for (std::size_t o = 0; o < einsum_.operands.size(); ++o) {
    if (nest.ragged == 0 && projections_[o].windows == 0) continue;
    verdict = count_operand(nest, mapping, o, tally);
    if (!verdict.ok()) return verdict;
  }
  verdict = count_bits(nest, mapping, tally);
  if (!verdict.ok()) return verdict;
  find_time(mapping, nest, tally);
  return {};
}

Result<Transfer> Evaluator::transfer_between(const Mapping& mapping, int outer, int inner, std::size_t operand) const {
  PL_CHECK(outer >= 0 && outer < inner && inner <= levels() && operand < einsum_.operands.size());
  Nest nest;
  const Verdict verdict = flatten_mapping(mapping, nest);
  if (!verdict.ok()) return explain(verdict);
  Transfer moved;
  if (!transfer(nest, outer, inner, operand, moved))
    return explain({Fault::too_many_loops, inner, static_cast<int>(operand)});
  return moved;
}

Diagnostic Evaluator::explain(const Verdict& v) const {
  const auto level_name = [&](int l) {
    return l >= 0 && l < levels() ? hierarchy_.levels[static_cast<std::size_t>(l)].name : std::string("the MACs");
  };
  const auto dim_name = [&](int d) {
    return d >= 0 && d < einsum_.rank() ? einsum_.dim_names[static_cast<std::size_t>(d)] : fmt::format("#{}", d);
  };
  switch (v.fault) {
    case Fault::none:
      break;
    case Fault::malformed:
      return bad(fmt::format("the loop over '{}' of {} trips at level '{}' is malformed", dim_name(v.subject), v.wanted,
                             level_name(v.level)),
                 "one nest per level; trips count from 1; temporal loops stand before spatial ones");
    case Fault::no_home:
      return bad(
          fmt::format("operand '{}' is kept nowhere", einsum_.operands[static_cast<std::size_t>(v.subject)].name));
    case Fault::not_covered:
      return bad(fmt::format("the loops over '{}' cover {} of {}", dim_name(v.subject), v.wanted, v.limit));
    case Fault::beyond_mesh:
      return make_error("does-not-fit", Span{},
                        fmt::format("{} copies along {} below level '{}', where the mesh has {}", v.wanted,
                                    v.subject == 0 ? "x" : "y", level_name(v.level), v.limit));
    case Fault::beyond_tile:
      return make_error(
          "does-not-fit", Span{},
          fmt::format("tiles of {} bits at level '{}', which holds {}", v.wanted, level_name(v.level), v.limit));
    case Fault::too_many_loops:
      return make_error(
          "too-large", Span{},
          fmt::format("more loops or a wider window than can be counted at level '{}'", level_name(v.level)),
          fmt::format("at most {} loops of more than one trip", kMaxLoops));
    case Fault::overflow:
      return make_error("overflow", Span{},
                        fmt::format("more than 2^63 - 1 bits or cycles at level '{}'", level_name(v.level)));
  }
  PL_CHECK(false);
  return bad("");
}

}  // namespace plumbline::schedule
