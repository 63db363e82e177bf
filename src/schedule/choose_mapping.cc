#include "schedule/choose_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "schedule/array_time.h"
#include "schedule/evaluator.h"
#include "schedule/roles.h"
#include "schedule/rules.h"
#include "schedule/tally_counts.h"
#include "schedule/tiling.h"
#include "schedule/traffic.h"

namespace plumbline::schedule {
namespace {

/// The largest stream tile that fits, and its half and quarter.
constexpr std::int64_t kStreamDivisors[] = {1, 2, 4};

const ingest::FormatSupport& format_of(const lower::Kernel& kernel, const ingest::Accelerator& accelerator) {
  const auto at = std::find_if(accelerator.formats.begin(), accelerator.formats.end(), [&](const auto& format) {
    return format.inputs == kernel.inputs && format.accumulate == kernel.accumulate;
  });
  PL_CHECK(at != accelerator.formats.end());  // lower() has checked the pair
  return *at;
}

/// Femtojoules of one execution; levels without an action cost nothing here (their action covers them).
double energy_of(const Traffic& traffic, const AccessCounts& counts, const ingest::Accelerator& accelerator,
                 const ingest::FormatSupport& format) {
  const auto price = [&](const std::string& action) {
    const auto at = accelerator.energy.find(action);
    return at == accelerator.energy.end() ? 0.0 : at->second.femtojoules;
  };
  double sum = static_cast<double>(counts.macs) * price(format.mac_action);
  for (std::size_t l = 0; l < traffic.size(); ++l) {
    const ingest::AcceleratorLevel& level = accelerator.levels[l];
    std::int64_t read = 0;
    std::int64_t written = 0;
    for (const OperandTraffic& operand : traffic[l]) {
      read += operand.read_bits;
      written += operand.write_bits;
    }
    sum +=
        static_cast<double>(read) * price(level.read_action) + static_cast<double>(written) * price(level.write_action);
  }
  return sum;
}

/// Cycles of the array, or of the off-chip link when that is slower.
std::int64_t latency_of(const ArrayTime& time, const Traffic& traffic, const ingest::Accelerator& accelerator) {
  double slowest = static_cast<double>(time.total());
  for (std::size_t l = 0; l < traffic.size(); ++l) {
    const ingest::AcceleratorLevel& level = accelerator.levels[l];
    if (!level.off_chip) continue;
    std::int64_t read = 0;
    std::int64_t written = 0;
    for (const OperandTraffic& operand : traffic[l]) {
      read += operand.read_bits;
      written += operand.write_bits;
    }
    if (const auto rate = level.read.per_cycle(accelerator.nominal)) {
      slowest = std::max(slowest, static_cast<double>(read) / 8 / *rate);
    }
    if (const auto rate = level.write.per_cycle(accelerator.nominal)) {
      slowest = std::max(slowest, static_cast<double>(written) / 8 / *rate);
    }
  }
  return static_cast<std::int64_t>(slowest);
}

struct Candidate {
  KernelSchedule schedule;
  double value = std::numeric_limits<double>::infinity();
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
    for (const ingest::Dataflow* dataflow : dataflows) {
      const Status tried = try_dataflow(*dataflow, evaluator);
      if (!tried.ok()) failures.insert(failures.end(), tried.errors().begin(), tried.errors().end());
    }
    if (best_.value == std::numeric_limits<double>::infinity()) {
      PL_CHECK(!failures.empty());
      return Diagnostics{failures.front()};
    }
    best_.schedule.hierarchy = bounded;
    best_.schedule.evaluated = evaluated_;
    return std::move(best_.schedule);
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
                                    request_.accelerator.name, wanted));
    }
    return result;
  }

  Status try_dataflow(const ingest::Dataflow& dataflow, const Evaluator& evaluator) {
    PL_TRY(const Rules rules,
           resolve_rules(request_.kernel, dataflow, request_.options.constraints, request_.accelerator));
    const TilingProblem problem{request_.kernel, request_.accelerator, request_.levels, roles_, rules};
    std::vector<Mapping> tried;
    for (const bool outputs_first : {false, true}) {
      for (const std::int64_t divisor : kStreamDivisors) {
        const TilingChoice choice{operand_index(dataflow.stationary), divisor * request_.shrink, outputs_first};
        PL_TRY(Mapping mapping, make_tiling(problem, choice));
        if (std::find(tried.begin(), tried.end(), mapping) != tried.end()) continue;
        Tally tally;
        const Verdict verdict = evaluator.evaluate(mapping, tally);
        if (!verdict.ok()) return evaluator.explain(verdict);
        ++evaluated_;
        consider(dataflow, choice.stationary, mapping, counts_of(request_.kernel.einsum, mapping, tally));
        tried.push_back(std::move(mapping));
      }
    }
    return Done{};
  }

  void consider(const ingest::Dataflow& dataflow, std::size_t stationary, const Mapping& mapping, AccessCounts counts) {
    const Traffic traffic = find_traffic(request_.kernel.einsum, mapping, counts, request_.levels.home);
    const double value = objective(stationary, mapping, counts, traffic);
    if (!(value < best_.value)) return;
    best_.value = value;
    best_.schedule.dataflow = dataflow.name;
    best_.schedule.stationary = stationary;
    best_.schedule.mapping = mapping;
    best_.schedule.counts = std::move(counts);
  }

  [[nodiscard]] double objective(std::size_t stationary, const Mapping& mapping, const AccessCounts& counts,
                                 const Traffic& traffic) const {
    const std::string& name = request_.options.objective;
    if (name == "off_array_weight_bytes") return static_cast<double>(weight_bits(mapping, traffic));
    const double energy = energy_of(traffic, counts, request_.accelerator, format_);
    if (name == "energy") return energy;
    const ArrayTime time = array_time(request_.kernel.einsum, mapping, stationary, format_.macs_per_pe,
                                      request_.accelerator, request_.accelerator.nominal);
    const auto cycles = static_cast<double>(latency_of(time, traffic, request_.accelerator));
    return name == "latency" ? cycles : cycles * energy;
  }

  /// Operand 0 read just outside the array.
  [[nodiscard]] std::int64_t weight_bits(const Mapping& mapping, const Traffic& traffic) const {
    for (int l = request_.levels.stream; l >= 0; --l) {
      const auto at = static_cast<std::size_t>(l);
      if (mapping.levels[at].keeps_operand(0)) return traffic[at][0].read_bits;
    }
    return 0;
  }

  const MappingRequest& request_;
  DimRoles roles_;
  const ingest::FormatSupport& format_;
  Candidate best_;
  std::int64_t evaluated_ = 0;
};

}  // namespace

Result<KernelSchedule> choose_mapping(const MappingRequest& request) { return Chooser(request).run(); }

}  // namespace plumbline::schedule
