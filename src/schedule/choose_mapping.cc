#include "schedule/choose_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "schedule/evaluator.h"
#include "schedule/price_mapping.h"
#include "schedule/roles.h"
#include "schedule/rules.h"
#include "schedule/tally_counts.h"
#include "schedule/tiling.h"

namespace plumbline::schedule {
namespace {

/// The largest stream tile that fits, and its half and quarter.
constexpr std::int64_t kStreamDivisors[] = {1, 2, 4};

/// Where smaller streams in the better order did not make room, only streams in the outermost loops can.
constexpr std::int64_t kMostShrinkInAnyOrder = 2;

/// The best mapping of one dataflow.
struct Candidate {
  std::size_t stationary = 0;
  int stated = 0;  ///< axes of the array along which the mapping spreads what the dataflow prefers
  Mapping mapping;
  AccessCounts counts;
  MappingPrice price;
  double value = std::numeric_limits<double>::infinity();
  std::vector<double> then;  ///< what decides among equals
};

class Chooser {
 public:
  explicit Chooser(const MappingRequest& request)
      : request_(request),
        roles_(find_roles(request.kernel.einsum)),
        format_(format_of(request.kernel, request.accelerator)) {}

  Result<KernelSchedule> run() {
    PL_TRY(const auto dataflows, allowed());
    const Hierarchy bounded = make_hierarchy(request_.accelerator, format_.macs_per_pe);
    PL_TRY(const Evaluator evaluator, Evaluator::prepare(request_.kernel.einsum, bounded));
    Diagnostics failures;
    KernelSchedule chosen;
    Candidate best;
    for (const ingest::Dataflow* dataflow : dataflows) {
      auto tried = try_dataflow(*dataflow, evaluator);
      if (!tried.ok()) {
        chosen.choices.push_back({dataflow->name, tried.errors().front().message, {}, 0});
        failures.insert(failures.end(), tried.errors().begin(), tried.errors().end());
        continue;
      }
      Candidate& candidate = *tried;
      chosen.choices.push_back({dataflow->name, {}, candidate.price, candidate.value});
      const bool better = precedes(candidate, best);
      // Of equals, the dataflow whose layout the mapping shows more of has the better claim to its name.
      if (!better && !(!precedes(best, candidate) && candidate.stated > best.stated)) continue;
      chosen.dataflow = dataflow->name;
      best = std::move(candidate);
    }
    if (best.value == std::numeric_limits<double>::infinity()) {
      PL_CHECK(!failures.empty());
      return Diagnostics{failures.front()};
    }
    chosen.stationary = best.stationary;
    chosen.mapping = std::move(best.mapping);
    chosen.counts = std::move(best.counts);
    chosen.price = best.price;
    chosen.hierarchy = bounded;
    chosen.evaluated = evaluated_;
    return chosen;
  }

 private:
  [[nodiscard]] bool holds(const ingest::Dataflow& dataflow) const {
    const std::uint32_t held = held_operands(request_.accelerator.levels.back());
    return ((held >> operand_index(dataflow.stationary)) & 1U) != 0;
  }

  Result<std::vector<const ingest::Dataflow*>> allowed() const {
    const auto& by_class = request_.options.dataflow_by_class;
    const auto own = by_class.find(request_.kernel.layer_class);
    const std::string& wanted = own == by_class.end() ? request_.options.dataflow : own->second;
    std::vector<const ingest::Dataflow*> result;
    std::vector<std::string> names;
    for (const auto& [name, dataflow] : request_.dataflows) {
      names.push_back(name);
      if (wanted == "auto" ? holds(dataflow) : wanted == name) result.push_back(&dataflow);
    }
    if (wanted != "auto" && result.empty()) {
      return make_error("unknown-name", {}, fmt::format("no dataflow is called '{}'", wanted), suggest(wanted, names));
    }
    if (result.empty() || !holds(*result.front())) {
      return make_error("does-not-fit", request_.accelerator.levels.back().span,
                        fmt::format("the array of '{}' cannot hold what the dataflow '{}' keeps in it",
                                    request_.accelerator.name, wanted),
                        result.empty()
                            ? std::string("no dataflow keeps what this array holds")
                            : fmt::format("'{}' keeps {} there: add it to the array's 'holds', or take another", wanted,
                                          result.front()->stationary));
    }
    return result;
  }

  Result<Candidate> try_dataflow(const ingest::Dataflow& dataflow, const Evaluator& evaluator) {
    PL_TRY(const Rules rules,
           resolve_rules(request_.kernel, dataflow, request_.options.constraints, request_.accelerator));
    const TilingProblem problem{request_.kernel, request_.accelerator, request_.levels, roles_, rules};
    Candidate best;
    std::vector<Mapping> tried;
    for (const bool outputs_first : {false, true}) {
      // With other outputs outermost an input is visited whole again and again, however short its streams.
      if (outputs_first && request_.shrink > kMostShrinkInAnyOrder) continue;
      for (const std::int64_t divisor : kStreamDivisors) {
        const TilingChoice choice{operand_index(dataflow.stationary), divisor * request_.shrink, outputs_first};
        PL_TRY(Mapping mapping, make_tiling(problem, choice));
        if (std::find(tried.begin(), tried.end(), mapping) != tried.end()) continue;
        Tally tally;
        const Verdict verdict = evaluator.evaluate(mapping, tally);
        if (!verdict.ok()) return evaluator.explain(verdict);
        ++evaluated_;
        consider(choice.stationary, mapping, counts_of(request_.kernel.einsum, mapping, tally), best);
        tried.push_back(std::move(mapping));
      }
    }
    best.stated = stated_axes(rules, best.mapping);
    return best;
  }

  static bool precedes(const Candidate& a, const Candidate& b) {
    return a.value != b.value ? a.value < b.value : a.then < b.then;
  }

  void consider(std::size_t stationary, const Mapping& mapping, AccessCounts counts, Candidate& best) {
    const MappingPrice price =
        price_mapping(request_.kernel, request_.accelerator, request_.levels, stationary, mapping, counts);
    Candidate made;
    made.value = objective_of(price, request_.options.objective);
    for (const std::string& each : request_.options.objective_then) made.then.push_back(objective_of(price, each));
    if (!precedes(made, best)) return;
    made.stationary = stationary;
    made.price = price;
    made.mapping = mapping;
    made.counts = std::move(counts);
    best = std::move(made);
  }

  static int stated_axes(const Rules& rules, const Mapping& mapping) {
    bool x = false;
    bool y = false;
    for (const LevelNest& level : mapping.levels) {
      for (const Loop& loop : level.loops) {
        x = x || (loop.kind == LoopKind::spatial_x && loop.dim == rules.spatial_x);
        y = y || (loop.kind == LoopKind::spatial_y && loop.dim == rules.spatial_y);
      }
    }
    return (x ? 1 : 0) + (y ? 1 : 0);
  }

  const MappingRequest& request_;
  DimRoles roles_;
  const ingest::FormatSupport& format_;
  std::int64_t evaluated_ = 0;
};

}  // namespace

Result<KernelSchedule> choose_mapping(const MappingRequest& request) { return Chooser(request).run(); }

}  // namespace plumbline::schedule
