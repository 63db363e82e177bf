#include "schedule/certify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/check.h"
#include "schedule/array_time.h"
#include "schedule/compulsory_floor.h"
#include "schedule/evaluator.h"
#include "schedule/network_time.h"
#include "schedule/roles.h"
#include "schedule/rules.h"
#include "schedule/search_accelerator.h"
#include "schedule/search_memo.h"
#include "schedule/search_space.h"
#include "schedule/tally_counts.h"

namespace plumbline::schedule {
namespace {

/// What the searches of one kernel may count in full; beyond it the gap is stated as it stands.
constexpr std::int64_t kMostEvaluations = 200'000;

/// The searches a network objective needs: the product of sums needs the whole front.
std::vector<Objective> searches_for(Objective objective) {
  if (objective == Objective::energy_delay) return {Objective::energy_delay, Objective::energy, Objective::latency};
  return {objective};
}

std::uint32_t bit(int d) { return 1U << d; }

/// One operand in the array: its dataflows, their rows, and what the search may do.
struct Held {
  std::size_t stationary = 0;
  const ingest::Dataflow* dataflow = nullptr;  ///< the first allowed one that holds it
  Rules rules;
};

class Certifier {
 public:
  Certifier(const MappingRequest& request, AcceleratorModel model, MappingCache& cache)
      : request_(request),
        einsum_(request.kernel.einsum),
        model_(std::move(model)),
        cache_(cache),
        roles_(find_roles(einsum_)),
        macs_per_pe_(format_of(request.kernel, request.accelerator).macs_per_pe),
        objective_(search_objective(request.options.objective)) {}

  Result<CertifiedKernel> run(const KernelSchedule& simple) {
    const Hierarchy plain = make_hierarchy(request_.accelerator, macs_per_pe_);
    PL_TRY(const Evaluator counter, Evaluator::prepare(einsum_, plain));
    PL_TRY(const std::vector<Held> held, operands_held(simple));
    out_.front.repeats = request_.kernel.repeats;
    out_.front.energy_floor = out_.front.cycles_floor = kHuge;
    out_.front.product_floor = out_.front.weight_bits_floor = kHuge;
    ragged_ = out_.front;
    out_.proof.scope = "kernel";
    add_point(simple.dataflow, simple.stationary, simple.mapping, counter);
    simple_value_ = objective_of(out_.points.front().price, request_.options.objective);
    for (const Held& each : held) PL_TRY_STATUS(search(each, counter));
    finish();
    return std::move(out_);
  }

 private:
  static constexpr double kHuge = std::numeric_limits<double>::infinity();

  Result<std::vector<Held>> operands_held(const KernelSchedule& simple) const {
    std::vector<Held> held;
    for (const DataflowChoice& choice : simple.choices) {
      const ingest::Dataflow& dataflow = request_.dataflows.at(choice.dataflow);
      const std::size_t stationary = operand_index(dataflow.stationary);
      if (std::any_of(held.begin(), held.end(), [&](const Held& h) { return h.stationary == stationary; })) continue;
      PL_TRY(Rules rules, resolve_rules(request_.kernel, dataflow, request_.options.constraints, request_.accelerator));
      held.push_back({stationary, &dataflow, std::move(rules)});
    }
    return held;
  }

  /// Masks of the hardware and the rows: what a level can hold it holds, as the placement of activations expects.
  void demand(const Held& held, SearchOptions& options) const {
    const std::size_t levels = model_.hierarchy.levels.size();
    options.must_keep.assign(levels, 0);
    options.must_bypass.assign(levels, 0);
    for (std::size_t l = 1; l + 1 < levels; ++l) {
      options.must_keep[l] = model_.may_hold[l] & ~held.rules.bypass[l];
      options.must_bypass[l] = 7U & ~options.must_keep[l];
    }
    options.must_keep[levels - 1] = bit(static_cast<int>(held.stationary));
    options.must_bypass[levels - 1] = 7U & ~options.must_keep[levels - 1];
    options.one_register = !request_.accelerator.levels.back().capacity;
    options.most_evaluations = kMostEvaluations;
  }

  /// Along which axes the array can lay a merged dimension: its parts are alike, so what one part may all may.
  void lay_axes(const Held& held, const SearchSpace& space, SearchOptions& options) const {
    options.along_x = options.along_y = 0;
    for (std::size_t m = 0; m < space.dims.size(); ++m) {
      for (const int part : space.dims[m].parts) {
        if (across(held, part)) options.along_x |= bit(static_cast<int>(m));
        if (down(held, part)) options.along_y |= bit(static_cast<int>(m));
      }
    }
  }

  [[nodiscard]] bool across(const Held& held, int d) const {
    if (held.rules.spatial_row != nullptr && held.rules.spatial_x >= 0 && d != held.rules.spatial_x) return false;
    return (roles_.across_columns(held.stationary) & bit(d)) != 0;
  }
  [[nodiscard]] bool down(const Held& held, int d) const {
    if (held.rules.spatial_row != nullptr && held.rules.spatial_y >= 0 && d != held.rules.spatial_y) return false;
    return (roles_.down_rows(held.stationary) & bit(d)) != 0;
  }

  /// The array without the columns and rows that no layout of this kernel can use: the search, which may run a
  /// dimension along both axes, would otherwise count on them.
  [[nodiscard]] Hierarchy usable(const Held& held) const {
    std::int64_t columns = 1;
    std::int64_t rows = 1;
    StorageLevel array = model_.hierarchy.levels.back();
    const std::int64_t most_rows = array.instances / array.mesh_x;
    for (int d = 0; d < einsum_.rank(); ++d) {
      const std::int64_t size = einsum_.dims[static_cast<std::size_t>(d)];
      if (across(held, d)) columns = size > array.mesh_x / columns ? array.mesh_x : columns * size;
      if (down(held, d)) rows = size > most_rows / rows ? most_rows : rows * size;
    }
    Hierarchy narrowed = model_.hierarchy;
    narrowed.levels.back().mesh_x = narrowed.mac_mesh_x = columns;
    narrowed.levels.back().instances = narrowed.mac_units = columns * rows;
    return narrowed;
  }

  [[nodiscard]] ArrayUse array_use(const Held& held) const {
    std::uint32_t columns = 0;
    std::uint32_t rows = 0;
    for (int d = 0; d < einsum_.rank(); ++d) {
      if (across(held, d)) columns |= bit(d);
      if (down(held, d)) rows |= bit(d);
    }
    const ingest::AcceleratorLevel& array = request_.accelerator.levels.back();
    return best_array_use(einsum_, columns, rows, array.fanout_x, array.fanout_y);
  }

  Status search(const Held& held, const Evaluator& counter) {
    SearchOptions options;
    demand(held, options);
    const int levels = static_cast<int>(model_.hierarchy.levels.size());
    // Merging first, without limits on what the array can lay where, keeps the dimensions few.
    SearchOptions merging = options;
    merging.factors = factor_bounds(held.rules, einsum_, model_.hierarchy.levels.size());
    merging.orders.assign(held.rules.order.begin(), held.rules.order.end());
    std::vector<std::uint32_t> keeps = options.must_keep;
    keeps.front() = 7U;
    const Hierarchy hierarchy = usable(held);
    KernelFront floor =
        compulsory_floor(einsum_, model_, keeps, held.stationary, array_use(held), request_.accelerator);
    lower_to(floor, ragged_);
    auto space = make_search_space(einsum_, merging, levels, hierarchy.mac_units);
    bool all = space.ok();
    if (space.ok()) {
      for (const FactorBound& bound : merging.factors) {
        for (std::size_t m = 0; m < space->dims.size(); ++m) {
          if (space->dims[m].parts.front() != bound.dim) continue;
          options.factors.push_back(bound);
          options.factors.back().dim = static_cast<int>(m);
        }
      }
      options.orders = space->orders;
      lay_axes(held, *space, options);
      for (const Objective objective : searches_for(objective_)) {
        options.objectives = {objective};
        if (objective == objective_ && !request_.options.objective_then.empty()) {
          options.objectives = search_objectives(request_.options);
        } else if (objective == Objective::off_array_weight_bits || objective == Objective::latency) {
          options.objectives.push_back(Objective::energy);
        }
        auto found = search_once(space->einsum, hierarchy, model_.rates, options, cache_);
        if (!found.ok() && found.errors().front().kind == "does-not-fit") return Done{};  // nothing perfect holds it so
        if (!found.ok()) {
          all = false;
          continue;
        }
        raise(floor, objective, found->certificate);
        offer(held, unmerge(*space, einsum_, found->mapping), counter);
      }
    }
    if (!all) ++declined_;
    lower_to(floor, out_.front);
    return Done{};
  }

  void raise(KernelFront& floor, Objective objective, const Certificate& c) {
    out_.proof.bounded += c.nodes;
    out_.proof.pruned += c.nodes - c.opened;
    out_.proof.evaluated += c.evaluated;
    covered_ = c.covered;
    certified_on_ = c.certified_on;
    double& figure = objective == Objective::energy         ? floor.energy_floor
                     : objective == Objective::latency      ? floor.cycles_floor
                     : objective == Objective::energy_delay ? floor.product_floor
                                                            : floor.weight_bits_floor;
    figure = std::max(figure, c.lower_bound);
  }

  /// The kernel may hold any of its operands, so its floor is the least of theirs.
  static void lower_to(const KernelFront& floor, KernelFront& front) {
    front.energy_floor = std::min(front.energy_floor, floor.energy_floor);
    front.cycles_floor = std::min(front.cycles_floor, floor.cycles_floor);
    front.product_floor =
        std::min(front.product_floor, std::max(floor.product_floor, floor.energy_floor * floor.cycles_floor));
    front.weight_bits_floor = std::min(front.weight_bits_floor, floor.weight_bits_floor);
  }

  /// Lays every spatial factor along the axis its dimension may take; false when they do not fit so.
  bool lay_out(const Held& held, Mapping& mapping) const {
    const ingest::AcceleratorLevel& array = request_.accelerator.levels.back();
    std::int64_t columns = 1;
    std::int64_t rows = 1;
    for (LevelNest& level : mapping.levels) {
      std::vector<Loop> laid;
      for (Loop loop : level.loops) {
        if (loop.kind != LoopKind::temporal) {
          if (across(held, loop.dim)) {
            loop.kind = LoopKind::spatial_x;
            columns *= loop.bound;
          } else if (down(held, loop.dim)) {
            loop.kind = LoopKind::spatial_y;
            rows *= loop.bound;
          } else {
            return false;
          }
          const auto same = std::find_if(laid.begin(), laid.end(), [&](const Loop& other) {
            return other.kind == loop.kind && other.dim == loop.dim;
          });
          if (same != laid.end()) {
            same->bound *= loop.bound;
            continue;
          }
        }
        laid.push_back(loop);
      }
      std::stable_sort(laid.begin(), laid.end(), [](const Loop& a, const Loop& b) { return a.kind < b.kind; });
      level.loops = std::move(laid);
    }
    return columns <= array.fanout_x && rows <= array.fanout_y;
  }

  void offer(const Held& held, Mapping mapping, const Evaluator& counter) {
    if (!lay_out(held, mapping)) return;
    if (!add_point(held.dataflow->name, held.stationary, mapping, counter)) return;
    const double value = objective_of(out_.points.back().price, request_.options.objective);
    if (value <= simple_value_) return;
    out_.points.pop_back();
    out_.front.points.pop_back();
  }

  bool add_point(const std::string& dataflow, std::size_t stationary, const Mapping& mapping,
                 const Evaluator& counter) {
    Tally tally;
    if (!counter.evaluate(mapping, tally).ok()) return false;
    CertifiedPoint point{dataflow, stationary, mapping, counts_of(einsum_, mapping, tally), {}};
    point.price =
        price_mapping(request_.kernel, request_.accelerator, request_.levels, stationary, mapping, point.counts);
    Hierarchy unbounded = model_.hierarchy;  // the tiling keeps within capacities by its own rules
    for (StorageLevel& level : unbounded.levels) level.capacity_bits.reset();
    const auto counted = count_accesses(einsum_, unbounded, mapping);
    if (!counted.ok()) return false;
    const ArrayTime time =
        array_time(einsum_, mapping, stationary, macs_per_pe_, request_.accelerator, request_.accelerator.nominal);
    const auto network =
        find_array_network(einsum_, mapping, request_.accelerator, request_.levels, request_.accelerator.nominal);
    if (!network.ok()) return false;
    FrontPoint cost{energy_of(*counted, model_.rates),
                    with_shifts(static_cast<double>(counted->cycles_overlapped), static_cast<double>(time.useful),
                                static_cast<double>(time.shift), stationary, request_.accelerator),
                    0};
    cost.cycles = std::max(cost.cycles, static_cast<double>(network->cycles));
    if (einsum_.operands[0].role == lower::Role::weights) {
      int keeper = request_.levels.array - 1;
      while (keeper > 0 && !mapping.levels[static_cast<std::size_t>(keeper)].keeps_operand(0)) --keeper;
      cost.weight_bits = static_cast<double>(counted->levels[static_cast<std::size_t>(keeper)][0].read_bits);
    }
    out_.points.push_back(std::move(point));
    out_.front.points.push_back(cost);
    return true;
  }

  void finish() {
    // A ragged tiling may do better than every perfect one: the floor that holds for it too is compulsory traffic.
    KernelFront least;
    least.energy_floor = least.cycles_floor = least.product_floor = least.weight_bits_floor = kHuge;
    for (const FrontPoint& p : out_.front.points) {
      least.energy_floor = std::min(least.energy_floor, p.energy);
      least.cycles_floor = std::min(least.cycles_floor, p.cycles);
      least.product_floor = std::min(least.product_floor, p.energy * p.cycles);
      least.weight_bits_floor = std::min(least.weight_bits_floor, p.weight_bits);
    }
    constexpr double kRounding = 1e-9;  // sums of the same terms in another order
    PL_CHECK(ragged_.energy_floor <= least.energy_floor * (1 + kRounding));
    PL_CHECK(ragged_.cycles_floor <= least.cycles_floor * (1 + kRounding));
    const bool beaten = out_.front.energy_floor > least.energy_floor * (1 + kRounding) ||
                        out_.front.cycles_floor > least.cycles_floor * (1 + kRounding) ||
                        out_.front.product_floor > least.product_floor * (1 + kRounding);
    if (beaten || out_.front.energy_floor == kHuge) {
      out_.front.energy_floor = ragged_.energy_floor;
      out_.front.cycles_floor = ragged_.cycles_floor;
      out_.front.product_floor = ragged_.product_floor;
      out_.front.weight_bits_floor = ragged_.weight_bits_floor;
      out_.proof.covered = "any mapping, factors that do not divide included: compulsory traffic";
      out_.proof.certified_on = "unique elements";
    } else if (declined_ > 0) {
      out_.proof.covered = covered_.empty() ? "any mapping: compulsory traffic"
                                            : covered_ + "; where the search declined, compulsory traffic";
      out_.proof.certified_on = covered_.empty() ? "unique elements" : certified_on_;
    } else {
      out_.proof.covered = covered_ + ", what a level can hold it holds, layouts the array can have";
      out_.proof.certified_on = certified_on_;
    }
  }

  const MappingRequest& request_;
  const lower::Einsum& einsum_;
  AcceleratorModel model_;
  MappingCache& cache_;
  DimRoles roles_;
  double macs_per_pe_;
  Objective objective_;
  CertifiedKernel out_;
  double simple_value_ = 0;
  KernelFront ragged_;  ///< floors that hold for every mapping, perfect or not
  int declined_ = 0;
  std::string covered_;
  std::string certified_on_;
};

}  // namespace

Objective search_objective(const std::string& name) {
  if (name == "energy") return Objective::energy;
  if (name == "latency") return Objective::latency;
  if (name == "off_array_weight_bytes") return Objective::off_array_weight_bits;
  return Objective::energy_delay;
}

std::vector<Objective> search_objectives(const ingest::CompileOptions& options) {
  std::vector<Objective> objectives{search_objective(options.objective)};
  for (const std::string& each : options.objective_then) objectives.push_back(search_objective(each));
  return objectives;
}

Result<CertifiedKernel> certify_kernel(const MappingRequest& request, const KernelSchedule& simple,
                                       MappingCache& cache) {
  PL_TRY(AcceleratorModel model, model_accelerator(request.accelerator, request.kernel.inputs,
                                                   request.kernel.accumulate, request.kernel.einsum));
  return Certifier(request, std::move(model), cache).run(simple);
}

}  // namespace plumbline::schedule
