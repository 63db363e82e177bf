#include "schedule/verify_timeloop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "schedule/evaluator.h"
#include "schedule/tally_counts.h"

namespace plumbline::schedule {
namespace {

using nlohmann::json;

/// One case, read.
struct Case {
  lower::Einsum einsum;
  std::vector<std::string> tensors;  ///< the file's names, in operand order
  Hierarchy hierarchy;
  Mapping mapping;
  std::int64_t word_bits = 8;
};

lower::Einsum read_kernel(const json& problem, std::vector<std::string>& tensors) {
  const json& dims = problem.at("dims");
  const auto size = [&](const char* name) { return dims.value(name, std::int64_t{1}); };
  if (problem.at("kind") == "gemm") {
    tensors = {"B", "A", "Z"};
    return lower::gemm_einsum(size("M"), size("N"), size("K"));
  }
  tensors = {"Weights", "Inputs", "Outputs"};
  lower::ConvShape shape;
  shape.batch = size("N");
  shape.groups = size("G");
  shape.k = size("K");
  shape.c = size("C");
  shape.p = size("P");
  shape.q = size("Q");
  shape.r = size("R");
  shape.s = size("S");
  if (problem.contains("stride")) shape.stride = problem.at("stride").get<std::array<std::int64_t, 2>>();
  if (problem.contains("dilation")) shape.dilation = problem.at("dilation").get<std::array<std::int64_t, 2>>();
  if (problem.at("kind") == "conv") return lower::conv_einsum(shape);
  if (problem.at("kind") == "dwconv") return lower::depthwise_einsum(shape);
  throw std::invalid_argument(fmt::format("unknown kind of problem '{}'", problem.at("kind").dump()));
}

std::optional<double> read_rate(const json& level, const char* key, std::int64_t word_bits) {
  if (!level.contains(key) || level.at(key).is_null()) return std::nullopt;
  return level.at(key).get<double>() * static_cast<double>(word_bits);
}

Hierarchy read_hierarchy(const json& arch, std::int64_t word_bits) {
  Hierarchy hierarchy;
  hierarchy.mac_units = arch.at("mac_units");
  hierarchy.mac_mesh_x = arch.at("mac_mesh_x");
  for (const json& from : arch.at("levels")) {
    StorageLevel level;
    level.name = from.at("name");
    level.instances = from.at("instances");
    level.mesh_x = from.at("mesh_x");
    if (!from.at("capacity_words").is_null())
      level.capacity_bits = from.at("capacity_words").get<std::int64_t>() * word_bits;
    level.read_bits_per_cycle = read_rate(from, "read_words_per_cycle", word_bits);
    level.write_bits_per_cycle = read_rate(from, "write_words_per_cycle", word_bits);
    level.off_chip = from.value("off_chip", false);
    hierarchy.levels.push_back(level);
  }
  return hierarchy;
}

Case read_case(const json& from) {
  Case result;
  result.einsum = read_kernel(from.at("problem"), result.tensors);
  result.word_bits = from.at("arch").value("word_bits", std::int64_t{8});
  for (lower::Operand& each : result.einsum.operands) each.bits = each.partial_bits = result.word_bits;
  result.hierarchy = read_hierarchy(from.at("arch"), result.word_bits);
  const std::map<std::string, LoopKind> kinds{
      {"temporal", LoopKind::temporal}, {"spatial_x", LoopKind::spatial_x}, {"spatial_y", LoopKind::spatial_y}};
  for (const json& level : from.at("mapping")) {
    LevelNest nest;
    for (const json& tensor : level.at("keeps")) {
      const auto at = std::find(result.tensors.begin(), result.tensors.end(), tensor.get<std::string>());
      if (at == result.tensors.end()) throw std::invalid_argument("unknown tensor " + tensor.dump());
      nest.keeps |= 1U << (at - result.tensors.begin());
    }
    for (const json& loop : level.at("loops")) {
      const int dim = result.einsum.dim(loop.at("dim"));
      if (dim < 0) throw std::invalid_argument("unknown dimension " + loop.at("dim").dump());
      nest.loops.push_back({dim, loop.at("bound"), kinds.at(loop.at("kind"))});
    }
    result.mapping.levels.push_back(nest);
  }
  return result;
}

/// The differences found so far in one case; the first few become its line.
class Judge {
 public:
  Judge(const json& expected, const json& recount) {
    if (expected.contains("levels")) {
      agrees_ = !recount.value("done", false) || recount.value("agrees", true);
    }
    if (agrees_ || !recount.contains("differences")) return;
    for (const json& each : recount.at("differences")) counted_[each.at("what")] = each.at("counted");
  }
  [[nodiscard]] bool agrees() const { return agrees_; }
  /// The recounted value where there is one.
  [[nodiscard]] std::int64_t reference(const std::string& what, const json& value) const {
    const auto at = counted_.find(what);
    return at == counted_.end() ? value.get<std::int64_t>() : at->second;
  }
  [[nodiscard]] bool recounted(const std::string& tensor) const {
    const std::string middle = "." + tensor + ".";
    return std::any_of(counted_.begin(), counted_.end(),
                       [&](const auto& each) { return each.first.find(middle) != std::string::npos; });
  }
  void exact(const std::string& what, std::int64_t ours, std::int64_t reference) {
    if (ours != reference) wrong_.push_back(fmt::format("{} is {}, expected {}", what, ours, reference));
  }
  void near(const std::string& what, double ours, double reference, double tolerance) {
    if (std::abs(ours - reference) > tolerance)
      wrong_.push_back(fmt::format("{} is {}, expected {}", what, ours, reference));
  }
  [[nodiscard]] const std::vector<std::string>& wrong() const { return wrong_; }

 private:
  bool agrees_ = true;
  std::map<std::string, std::int64_t> counted_;
  std::vector<std::string> wrong_;
};

bool is_dilated(const lower::Einsum& einsum, std::size_t operand) {
  // Timeloop keeps the bounding box where a tile has holes; only a sliding window can have them.
  return std::any_of(einsum.operands[operand].axes.begin(), einsum.operands[operand].axes.end(),
                     [](const lower::Axis& axis) { return axis.size() > 1 && axis[1].coefficient > 1; });
}

void judge_levels(const Case& subject, const json& expected, const Tally& tally, Judge& judge) {
  for (const auto& [name, level] : expected.at("levels").items()) {
    const auto& levels = subject.hierarchy.levels;
    const auto at =
        std::find_if(levels.begin(), levels.end(), [&](const StorageLevel& each) { return each.name == name; });
    if (at == levels.end()) throw std::invalid_argument("unknown level " + name);
    const auto l = static_cast<std::size_t>(at - levels.begin());
    for (const auto& [tensor, numbers] : level.at("tensors").items()) {
      const auto o = static_cast<std::size_t>(std::find(subject.tensors.begin(), subject.tensors.end(), tensor) -
                                              subject.tensors.begin());
      if (o == subject.tensors.size() || !subject.mapping.levels[l].keeps_operand(o)) {
        judge.exact(name + "." + tensor + " kept", 0, 1);
        continue;
      }
      const OperandTally& ours = tally.levels[l][o];
      const std::int64_t used = tally.used[l];
      const auto field = [&](const std::string& key, std::int64_t value) {
        const std::string what = name + "." + tensor + "." + key + "_total";
        if (numbers.contains(key + "_total"))
          judge.exact(what, value, judge.reference(what, numbers.at(key + "_total")));
        if (judge.agrees() && numbers.contains(key + "_per_instance") && value % used == 0) {
          judge.exact(name + "." + tensor + "." + key + "_per_instance", value / used,
                      numbers.at(key + "_per_instance"));
        }
      };
      field("reads", ours.reads);
      field("fills", ours.fills);
      field("updates", ours.updates);
      const std::string tile = name + "." + tensor + ".tile_words";
      if (judge.agrees() || !is_dilated(subject.einsum, o))
        judge.exact(tile, ours.tile, judge.reference(tile, numbers.at("tile_words")));
      if (judge.agrees() && numbers.contains("utilised_instances")) {
        judge.exact(name + "." + tensor + ".utilised_instances", used, numbers.at("utilised_instances"));
      }
    }
  }
}

/// The slowest of compute and every level's throttled totals, from the reference's own words.
std::int64_t reference_cycles(const Case& subject, const json& expected, const json& recount, const Tally& tally,
                              const Judge& judge) {
  std::int64_t slowest = recount.at("compute_cycles");
  for (std::size_t l = 0; l < subject.hierarchy.levels.size(); ++l) {
    const StorageLevel& level = subject.hierarchy.levels[l];
    if (!expected.at("levels").contains(level.name)) continue;
    double read = 0;
    double written = 0;
    for (const auto& [tensor, numbers] : expected.at("levels").at(level.name).at("tensors").items()) {
      const auto words = [&](const char* key) {
        return static_cast<double>(judge.reference(level.name + "." + tensor + "." + key, numbers.at(key)));
      };
      read += words("reads_total");
      written += words("fills_total") + words("updates_total");
    }
    const auto throttled = [&](double words, const std::optional<double>& rate) {
      if (!rate) return std::int64_t{0};
      const double used = static_cast<double>(tally.used[l]);
      return static_cast<std::int64_t>(std::ceil(words * static_cast<double>(subject.word_bits) / (*rate * used)));
    };
    slowest =
        std::max({slowest, throttled(read, level.read_bits_per_cycle), throttled(written, level.write_bits_per_cycle)});
  }
  return slowest;
}

void judge_totals(const Case& subject, const json& problem, const json& expected, const json& recount,
                  const Tally& tally, Judge& judge) {
  if (!judge.agrees()) {
    // Timeloop loses work in ragged spatial passes; the problem says how much there is.
    judge.exact("macs_issued", tally.macs, problem.at("macs"));
    judge.exact("compute_cycles", tally.compute_steps, recount.at("compute_cycles"));
    judge.exact("cycles", tally.cycles_overlapped, reference_cycles(subject, expected, recount, tally, judge));
    return;
  }
  judge.exact("macs_issued", tally.macs, expected.at("macs_issued"));
  judge.exact("cycles", tally.cycles_overlapped, expected.at("cycles"));
  if (recount.value("done", false) && recount.contains("compute_cycles")) {
    judge.exact("compute_cycles", tally.compute_steps, recount.at("compute_cycles"));
  }
  if (expected.contains("utilisation")) {  // printed with four digits
    const double ideal = static_cast<double>(tally.macs) / static_cast<double>(subject.hierarchy.mac_units);
    judge.near("utilisation", ideal / static_cast<double>(tally.cycles_overlapped), expected.at("utilisation"), 1e-4);
  }
}

void judge_hop(const Case& subject, const Evaluator& evaluator, const Tally& tally, const std::string& between,
               int outer, std::size_t o, const json& numbers, Judge& judge) {
  int inner = outer + 1;
  while (inner < evaluator.levels() && !subject.mapping.levels[static_cast<std::size_t>(inner)].keeps_operand(o))
    ++inner;
  const auto moved = evaluator.transfer_between(subject.mapping, outer, inner, o);
  if (!moved.ok()) throw std::invalid_argument(render(moved.errors()));
  const std::int64_t used = tally.used[static_cast<std::size_t>(outer)];
  if (!judge.agrees() && used > 1) return;  // ingresses are per instance in use, which Timeloop averages
  const std::string what = between + "." + subject.tensors[o];
  // On a link between two storage levels without fan-out Timeloop adds the partial sums that are read back; on a link
  // that fans out it does not.
  const bool outputs = o + 1 == subject.tensors.size();
  const bool both_ways = outputs && outer + 1 < evaluator.levels() && numbers.value("fanout", 1) == 1;
  const std::int64_t entering = moved->merged + (both_ways ? moved->merged - moved->first_merged : 0);
  judge.near(what + ".ingresses", static_cast<double>(entering) / static_cast<double>(used), numbers.at("ingresses"),
             1e-6);
  const bool slides = std::any_of(subject.einsum.operands[o].axes.begin(), subject.einsum.operands[o].axes.end(),
                                  [](const lower::Axis& axis) { return axis.size() > 1; });
  if (slides && inner != outer + 1) return;  // the pile of tiles in the middle of a bypass is not reported by us
  const std::int64_t receivers = most_receivers(subject.einsum, subject.mapping, outer, outer + 1, o);
  judge.exact(what + ".multicast_factor", receivers, numbers.at("multicast_factor"));
  if (outputs) {
    // Additions of this link alone: what arrives from every copy below it, less what leaves merged.
    std::int64_t arriving = moved->delivered;
    if (inner != outer + 1) {
      const auto below = evaluator.transfer_between(subject.mapping, outer + 1, inner, o);
      if (!below.ok()) throw std::invalid_argument(render(below.errors()));
      arriving = below->merged;
    }
    judge.near(what + ".spatial_reductions", static_cast<double>(arriving - moved->merged) / static_cast<double>(used),
               numbers.at("spatial_reductions"), 1e-6);
  } else {
    judge.near(what + ".spatial_reductions", 0, numbers.at("spatial_reductions"), 0);
  }
}

void judge_networks(const Case& subject, const json& expected, const Evaluator& evaluator, const Tally& tally,
                    Judge& judge) {
  if (!expected.contains("networks")) return;
  const auto& levels = subject.hierarchy.levels;
  for (const json& network : expected.at("networks")) {
    const std::string between = network.at("between");
    const std::string outer_name = between.substr(0, between.find('|'));
    const auto at =
        std::find_if(levels.begin(), levels.end(), [&](const StorageLevel& each) { return each.name == outer_name; });
    if (at == levels.end()) throw std::invalid_argument("unknown level " + outer_name);
    const int outer = static_cast<int>(at - levels.begin());
    for (const auto& [tensor, numbers] : network.at("tensors").items()) {
      if (judge.recounted(tensor)) continue;  // the networks of a recounted tensor were not recounted
      const auto o = static_cast<std::size_t>(std::find(subject.tensors.begin(), subject.tensors.end(), tensor) -
                                              subject.tensors.begin());
      if (o == subject.tensors.size()) throw std::invalid_argument("unknown tensor " + tensor);
      judge_hop(subject, evaluator, tally, between, outer, o, numbers, judge);
    }
  }
}

/// What is wrong with one case; empty when it passes.
std::vector<std::string> judge_case(const json& from) {
  const Case subject = read_case(from);
  const bool unlinked = from.contains("expected_no_neighbour_links");
  const json& expected = from.at(unlinked ? "expected_no_neighbour_links" : "expected");
  const json recount = from.value("recount", json::object());
  Judge judge(expected, unlinked ? json::object() : recount);
  const auto evaluator = Evaluator::prepare(subject.einsum, subject.hierarchy);
  if (!evaluator.ok()) return {evaluator.errors()[0].message};
  Tally tally;
  const Verdict verdict = evaluator->evaluate(subject.mapping, tally);
  if (!verdict.ok()) return {evaluator->explain(verdict).message};
  judge_totals(subject, from.at("problem"), expected, recount, tally, judge);
  judge_levels(subject, expected, tally, judge);
  judge_networks(subject, expected, *evaluator, tally, judge);
  return judge.wrong();
}

}  // namespace

bool is_timeloop_cases(const json& document) {
  if (!document.is_object() || !document.contains("readme") || !document.contains("cases")) return false;
  const json& cases = document.at("cases");
  return cases.is_array() && std::all_of(cases.begin(), cases.end(),
                                         [](const json& each) { return each.is_object() && each.contains("mapping"); });
}

Result<VerifyOutcome> verify_timeloop(const json& document) {
  if (!is_timeloop_cases(document)) {
    return make_error("unknown-document", Span{}, "not a file of Timeloop cases",
                      "it has 'readme' and 'cases' with a 'mapping' each");
  }
  VerifyOutcome outcome;
  int index = 0;
  for (const json& each : document.at("cases")) {
    const std::string name = each.contains("id") && each.at("id").is_string() ? each.at("id").get<std::string>()
                                                                              : fmt::format("case {}", index);
    ++index;
    std::vector<std::string> wrong;
    try {  // the JSON library reports missing keys and wrong types by exception
      wrong = judge_case(each);
    } catch (const std::exception& error) {
      wrong = {fmt::format("malformed case: {}", error.what())};
    }
    if (wrong.empty()) {
      ++outcome.passed;
      continue;
    }
    ++outcome.failed;
    std::string line = fmt::format("{}: {}", name, wrong[0]);
    constexpr std::size_t kShown = 3;
    for (std::size_t i = 1; i < std::min(kShown, wrong.size()); ++i) line += "; " + wrong[i];
    if (wrong.size() > kShown) line += fmt::format("; and {} more", wrong.size() - kShown);
    outcome.lines.push_back(line);
  }
  return outcome;
}

}  // namespace plumbline::schedule
