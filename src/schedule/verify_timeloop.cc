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

// A case that lacks a field, or has it of another type or under a misspelt name, judges nothing: what follows throws
// with the field's path, and the case fails.

const json& required(const json& object, const std::string& key, const std::string& where) {
  if (!object.is_object()) throw std::invalid_argument(where + " is no object");
  const auto found = object.find(key);
  if (found == object.end()) throw std::invalid_argument(fmt::format("{} lacks '{}'", where, key));
  return *found;
}

const json& required_filled(const json& object, const std::string& key, const std::string& where) {
  const json& value = required(object, key, where);
  if (!value.is_structured() || value.empty())
    throw std::invalid_argument(fmt::format("{}.{} is empty or no list or object: nothing to judge", where, key));
  return value;
}

std::int64_t whole(const json& value, const std::string& what) {
  if (!value.is_number_integer()) throw std::invalid_argument(fmt::format("{} is no whole number", what));
  return value.get<std::int64_t>();
}

double number(const json& value, const std::string& what) {
  if (!value.is_number()) throw std::invalid_argument(fmt::format("{} is no number", what));
  return value.get<double>();
}

/// Notes under names of their own are welcome; a name close to one that is missing is a slip.
void refuse_misspelt(const json& object, const std::vector<std::string>& known, const std::string& where) {
  if (!object.is_object()) throw std::invalid_argument(where + " is no object");
  std::vector<std::string> missing;
  for (const auto& name : known) {
    if (!object.contains(name)) missing.push_back(name);
  }
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    const auto near = closest(item.key(), missing);
    if (!near.empty())
      throw std::invalid_argument(fmt::format("{} has '{}': did you mean '{}'?", where, item.key(), near.front()));
  }
}

/// One case, read.
struct Case {
  lower::Einsum einsum;
  std::vector<std::string> tensors;  ///< the file's names, in operand order
  Hierarchy hierarchy;
  Mapping mapping;
  std::int64_t word_bits = 8;
};

lower::Einsum read_kernel(const json& problem, std::vector<std::string>& tensors) {
  const json& dims = required_filled(problem, "dims", "problem");
  const std::vector<std::string> names = problem.at("kind") == "gemm"
                                             ? std::vector<std::string>{"M", "N", "K"}
                                             : std::vector<std::string>{"N", "G", "K", "C", "P", "Q", "R", "S"};
  for (const auto& item : dims.items()) {
    if (std::find(names.begin(), names.end(), item.key()) == names.end())
      throw std::invalid_argument(fmt::format("problem.dims has no '{}'", item.key()));
    whole(item.value(), "problem.dims." + item.key());
  }
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
  refuse_misspelt(from, {"problem", "arch", "mapping", "expected", "expected_no_neighbour_links", "recount"},
                  "the case");
  refuse_misspelt(from.at("problem"), {"kind", "dims", "macs", "stride", "dilation"}, "problem");
  refuse_misspelt(from.at("arch"), {"levels", "mac_mesh_x", "mac_units", "word_bits"}, "arch");
  for (const json& level : from.at("arch").at("levels")) {
    refuse_misspelt(
        level,
        {"name", "instances", "mesh_x", "capacity_words", "off_chip", "read_words_per_cycle", "write_words_per_cycle"},
        "arch.levels[]");
  }
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
    for (const json& each : recount.at("differences"))
      counted_[each.at("what")] = whole(each.at("counted"), "recount.differences[].counted");
  }
  [[nodiscard]] bool agrees() const { return agrees_; }
  /// The recounted value where there is one.
  [[nodiscard]] std::int64_t reference(const std::string& what, const json& value) const {
    const std::int64_t stated = whole(value, what);
    const auto at = counted_.find(what);
    return at == counted_.end() ? stated : at->second;
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

/// One tensor at one level: `numbers` of the reference against our tally.
void judge_tensor(const Case& subject, std::size_t level, std::size_t o, const json& numbers, const Tally& tally,
                  Judge& judge) {
  const std::string path = subject.hierarchy.levels[level].name + "." + subject.tensors[o];
  refuse_misspelt(numbers,
                  {"reads_total", "fills_total", "updates_total", "tile_words", "reads_per_instance",
                   "fills_per_instance", "updates_per_instance", "utilised_instances"},
                  path);
  const OperandTally& ours = tally.levels[level][o];
  const std::int64_t used = tally.used[level];
  const auto field = [&](const std::string& key, std::int64_t value) {
    const std::string what = path + "." + key + "_total";
    judge.exact(what, value, judge.reference(what, required(numbers, key + "_total", path)));
    const std::string each = key + "_per_instance";
    if (judge.agrees() && numbers.contains(each) && value % used == 0) {
      judge.exact(path + "." + each, value / used, whole(numbers.at(each), path + "." + each));
    }
  };
  field("reads", ours.reads);
  field("fills", ours.fills);
  field("updates", ours.updates);
  const std::string tile = path + ".tile_words";
  const std::int64_t words = judge.reference(tile, required(numbers, "tile_words", path));
  if (judge.agrees() || !is_dilated(subject.einsum, o)) judge.exact(tile, ours.tile, words);
  if (judge.agrees() && numbers.contains("utilised_instances")) {
    const std::string what = path + ".utilised_instances";
    judge.exact(what, used, whole(numbers.at("utilised_instances"), what));
  }
}

/// Every level, and every tensor that the mapping keeps there, must be in the reference, and nothing else.
void judge_levels(const Case& subject, const json& expected, const Tally& tally, Judge& judge) {
  const json& stated = required_filled(expected, "levels", "expected");
  const auto& levels = subject.hierarchy.levels;
  for (const auto& item : stated.items()) {
    const bool known = std::any_of(levels.begin(), levels.end(), [&](const auto& l) { return l.name == item.key(); });
    if (!known) throw std::invalid_argument("unknown level " + item.key());
  }
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const std::string where = "expected.levels." + levels[l].name;
    const json& tensors = required(required(stated, levels[l].name, "expected.levels"), "tensors", where);
    for (const auto& item : tensors.items()) {
      if (std::find(subject.tensors.begin(), subject.tensors.end(), item.key()) == subject.tensors.end())
        throw std::invalid_argument(fmt::format("{} has the unknown tensor '{}'", where, item.key()));
    }
    for (std::size_t o = 0; o < subject.tensors.size(); ++o) {
      const bool kept = subject.mapping.levels[l].keeps_operand(o);
      if (!kept && tensors.contains(subject.tensors[o])) {
        judge.exact(levels[l].name + "." + subject.tensors[o] + " kept", 0, 1);
      } else if (kept) {
        judge_tensor(subject, l, o, required(tensors, subject.tensors[o], where + ".tensors"), tally, judge);
      }
    }
  }
}

/// The slowest of compute and every level's throttled totals, from the reference's own words.
std::int64_t reference_cycles(const Case& subject, const json& expected, const json& recount, const Tally& tally,
                              const Judge& judge) {
  std::int64_t slowest = whole(required(recount, "compute_cycles", "recount"), "recount.compute_cycles");
  for (std::size_t l = 0; l < subject.hierarchy.levels.size(); ++l) {
    const StorageLevel& level = subject.hierarchy.levels[l];
    if (!expected.at("levels").contains(level.name)) continue;
    double read = 0;
    double written = 0;
    for (const auto& item : expected.at("levels").at(level.name).at("tensors").items()) {
      const auto words = [&](const char* key) {
        const std::string path = level.name + "." + item.key();
        return static_cast<double>(judge.reference(path + "." + key, required(item.value(), key, path)));
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
    judge.exact("macs_issued", tally.macs, whole(required(problem, "macs", "problem"), "problem.macs"));
    judge.exact("compute_cycles", tally.compute_steps,
                whole(required(recount, "compute_cycles", "recount"), "recount.compute_cycles"));
    judge.exact("cycles", tally.cycles_overlapped, reference_cycles(subject, expected, recount, tally, judge));
    return;
  }
  const auto stated = [&](const char* key) {
    return whole(required(expected, key, "expected"), std::string("expected.") + key);
  };
  judge.exact("macs_issued", tally.macs, stated("macs_issued"));
  judge.exact("cycles", tally.cycles_overlapped, stated("cycles"));
  if (recount.value("done", false) && recount.contains("compute_cycles")) {
    judge.exact("compute_cycles", tally.compute_steps, whole(recount.at("compute_cycles"), "recount.compute_cycles"));
  }
  if (expected.contains("utilisation")) {  // printed with four digits
    const double ideal = static_cast<double>(tally.macs) / static_cast<double>(subject.hierarchy.mac_units);
    judge.near("utilisation", ideal / static_cast<double>(tally.cycles_overlapped),
               number(expected.at("utilisation"), "expected.utilisation"), 1e-4);
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
  refuse_misspelt(numbers, {"ingresses", "multicast_factor", "spatial_reductions", "fanout"}, what);
  const auto stated = [&](const char* key) { return number(required(numbers, key, what), what + "." + key); };
  // On a link between two storage levels without fan-out Timeloop adds the partial sums that are read back; on a link
  // that fans out it does not.
  const bool outputs = o + 1 == subject.tensors.size();
  const bool both_ways = outputs && outer + 1 < evaluator.levels() && numbers.value("fanout", 1) == 1;
  const std::int64_t entering = moved->merged + (both_ways ? moved->merged - moved->first_merged : 0);
  judge.near(what + ".ingresses", static_cast<double>(entering) / static_cast<double>(used), stated("ingresses"), 1e-6);
  const bool slides = std::any_of(subject.einsum.operands[o].axes.begin(), subject.einsum.operands[o].axes.end(),
                                  [](const lower::Axis& axis) { return axis.size() > 1; });
  if (slides && inner != outer + 1) return;  // the pile of tiles in the middle of a bypass is not reported by us
  const std::int64_t receivers = most_receivers(subject.einsum, subject.mapping, outer, outer + 1, o);
  judge.near(what + ".multicast_factor", static_cast<double>(receivers), stated("multicast_factor"), 0);
  if (outputs) {
    // Additions of this link alone: what arrives from every copy below it, less what leaves merged.
    std::int64_t arriving = moved->delivered;
    if (inner != outer + 1) {
      const auto below = evaluator.transfer_between(subject.mapping, outer + 1, inner, o);
      if (!below.ok()) throw std::invalid_argument(render(below.errors()));
      arriving = below->merged;
    }
    judge.near(what + ".spatial_reductions", static_cast<double>(arriving - moved->merged) / static_cast<double>(used),
               stated("spatial_reductions"), 1e-6);
  } else {
    judge.near(what + ".spatial_reductions", 0, stated("spatial_reductions"), 0);
  }
}

void judge_networks(const Case& subject, const json& expected, const Evaluator& evaluator, const Tally& tally,
                    Judge& judge) {
  const auto& levels = subject.hierarchy.levels;
  for (const json& network : required_filled(expected, "networks", "expected")) {
    const json& link = required(network, "between", "expected.networks[]");
    if (!link.is_string()) throw std::invalid_argument("expected.networks[].between is no text");
    const std::string between = link.get<std::string>();
    const std::string outer_name = between.substr(0, between.find('|'));
    const auto at =
        std::find_if(levels.begin(), levels.end(), [&](const StorageLevel& each) { return each.name == outer_name; });
    if (at == levels.end()) throw std::invalid_argument("unknown level " + outer_name);
    const int outer = static_cast<int>(at - levels.begin());
    for (const auto& [tensor, numbers] : required_filled(network, "tensors", between).items()) {
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
  refuse_misspelt(expected, {"macs_issued", "cycles", "levels", "networks", "utilisation"}, "expected");
  refuse_misspelt(recount, {"done", "agrees", "differences", "compute_cycles"}, "recount");
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
  // One case with a mapping tells the kind; another that lacks it is a failing case, not another kind.
  return cases.is_array() && (cases.empty() || std::any_of(cases.begin(), cases.end(), [](const json& each) {
                                return each.is_object() && each.contains("mapping");
                              }));
}

Result<VerifyOutcome> verify_timeloop(const json& document) {
  if (!is_timeloop_cases(document)) {
    return make_error("unknown-document", Span{}, "not a file of Timeloop cases",
                      "it has 'readme' and 'cases' with a 'mapping' each");
  }
  VerifyOutcome outcome;
  int index = 0;
  for (const json& each : document.at("cases")) {
    const std::string name = each.is_object() && each.contains("id") && each.at("id").is_string()
                                 ? each.at("id").get<std::string>()
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
