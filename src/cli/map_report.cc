#include "cli/map_report.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace plumbline::cli {
namespace {

using Json = nlohmann::ordered_json;
using namespace plumbline::schedule;

constexpr double kFemtojoulesPerPicojoule = 1e3;
constexpr double kFemtojoulesPerMicrojoule = 1e9;

/// 12345678 → "12 345 678".
std::string grouped(std::int64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(' ');
    text.push_back(digits[i]);
  }
  return text;
}

std::string kept_names(const MapReport& r, std::uint32_t keeps) {
  std::string names;
  for (std::size_t o = 0; o < r.kernel.einsum.operands.size(); ++o) {
    if (((keeps >> o) & 1U) != 0) names += (names.empty() ? "" : ", ") + r.kernel.einsum.operands[o].name;
  }
  return names.empty() ? "nothing" : names;
}

std::string nest_text(const MapReport& r) {
  std::string text;
  std::size_t depth = 0;
  for (std::size_t l = 0; l < r.result.mapping.levels.size(); ++l) {
    const LevelNest& level = r.result.mapping.levels[l];
    text += fmt::format("{:<14} keeps {}\n", r.model.hierarchy.levels[l].name, kept_names(r, level.keeps));
    std::string spread;
    for (const Loop& loop : level.loops) {
      const std::string& dim = r.kernel.einsum.dim_names[static_cast<std::size_t>(loop.dim)];
      if (loop.bound == 1) continue;
      if (loop.kind == LoopKind::temporal) {
        text += fmt::format("{:16}{:{}}for {} in {}\n", "", "", 2 * depth++, dim, loop.bound);
      } else {
        spread += fmt::format("{}{} in {} along {}", spread.empty() ? "" : ", ", dim, loop.bound,
                              loop.kind == LoopKind::spatial_x ? "x" : "y");
      }
    }
    if (!spread.empty()) text += fmt::format("{:16}{:{}}at once {}\n", "", "", 2 * depth++, spread);
  }
  return text;
}

double level_energy(const MapReport& r, std::size_t level, std::size_t operand) {
  const OperandCounts& c = r.result.counts.levels[level][operand];
  return static_cast<double>(c.read_bits) * r.model.rates.read[level] +
         static_cast<double>(c.write_bits) * r.model.rates.write[level];
}

std::string counts_text(const MapReport& r) {
  std::string text = fmt::format("{:<14} {:<10} {:>16} {:>18} {:>18} {:>18} {:>12}\n", "level", "operand", "tile",
                                 "reads", "fills", "updates", "energy");
  const double whole = r.result.energy;
  for (std::size_t l = 0; l < r.result.counts.levels.size(); ++l) {
    for (std::size_t o = 0; o < r.kernel.einsum.operands.size(); ++o) {
      const OperandCounts& c = r.result.counts.levels[l][o];
      if (!c.kept) continue;
      text += fmt::format("{:<14} {:<10} {:>16} {:>18} {:>18} {:>18} {:>10.2f} %\n", r.model.hierarchy.levels[l].name,
                          r.kernel.einsum.operands[o].name, grouped(c.tile), grouped(c.reads), grouped(c.fills),
                          grouped(c.updates), 100 * level_energy(r, l, o) / whole);
    }
  }
  text += fmt::format("{:<14} {:<10} {:>16} {:>18} {:>18} {:>18} {:>10.2f} %\n", "macs", "", "", "", "", "",
                      100 * static_cast<double>(r.result.counts.macs) * r.model.rates.mac / whole);
  return text;
}

/// Who sets the time: the array, or the busiest port.
std::string binding_text(const MapReport& r) {
  const AccessCounts& counts = r.result.counts;
  const std::int64_t compute = compute_cycles(r.model.hierarchy, counts.compute_steps);
  if (counts.cycles_overlapped <= compute) return "set by the array";
  double slowest = 0;
  std::string who;
  for (std::size_t l = 0; l < counts.levels.size(); ++l) {
    double read = 0;
    double written = 0;
    for (const OperandCounts& c : counts.levels[l]) {
      read += static_cast<double>(c.read_bits);
      written += static_cast<double>(c.write_bits);
    }
    const StorageLevel& level = r.model.hierarchy.levels[l];
    const double read_time = level.read_bits_per_cycle ? read / *level.read_bits_per_cycle : 0;
    const double write_time = level.write_bits_per_cycle ? written / *level.write_bits_per_cycle : 0;
    if (std::max(read_time, write_time) > slowest) {
      slowest = std::max(read_time, write_time);
      who = fmt::format("set by the {} port of '{}'", read_time >= write_time ? "read" : "write", level.name);
    }
  }
  return who + fmt::format("; the array alone would take {}", grouped(compute));
}

Json loops_json(const MapReport& r, const LevelNest& level) {
  Json loops = Json::array();
  for (const Loop& loop : level.loops) {
    const char* kind = loop.kind == LoopKind::temporal    ? "temporal"
                       : loop.kind == LoopKind::spatial_x ? "spatial_x"
                                                          : "spatial_y";
    loops.push_back({{"dim", r.kernel.einsum.dim_names[static_cast<std::size_t>(loop.dim)]},
                     {"bound", loop.bound},
                     {"kind", kind}});
  }
  return loops;
}

Json certificate_json(const MapReport& r) {
  const Certificate& c = r.result.certificate;
  Json json;
  json["best"] = r.one_objective ? Json(c.best) : Json(c.bests);
  json["lower_bound"] = r.one_objective ? Json(c.lower_bound) : Json(c.lower_bounds);
  json["gap"] = c.gap;
  json["scope"] = "kernel";
  json["objective"] = r.one_objective ? Json(c.objective) : Json(c.objectives);
  json["covered"] = c.covered;
  json["certified_on"] = c.certified_on;
  json["evaluated"] = c.evaluated;
  json["pruned"] = c.nodes - c.opened;
  return json;
}

/// What the figures of an objective are counted in.
const char* objective_unit(const std::string& objective) {
  static const std::map<std::string, const char*> kUnits = {{"energy-delay product", "fJ cycles"},
                                                            {"energy", "fJ"},
                                                            {"latency", "cycles"},
                                                            {"off-array weight bits", "bits"}};
  return kUnits.at(objective);
}

/// A line per objective, in order of importance; what only breaks the ties of a single one is not spoken of.
std::string proof_lines(const MapReport& r) {
  const Certificate& c = r.result.certificate;
  const std::size_t shown = r.one_objective ? 1 : c.objectives.size();
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const double best = r.one_objective ? c.best : c.bests[i];
    const double bound = r.one_objective ? c.lower_bound : c.lower_bounds[i];
    text += fmt::format("{}{} {:.9g} {}, lower bound {:.9g}", i == 0 ? "proof   " : "\n        then ", c.objectives[i],
                        best, objective_unit(c.objectives[i]), bound);
  }
  return text + fmt::format(", gap {:.4g} %\n", 100 * c.gap);
}

}  // namespace

std::string map_text(const MapReport& r) {
  const AccessCounts& counts = r.result.counts;
  std::string text =
      fmt::format("{} on {}: {} multiply-accumulates\n\n", r.kernel_text, r.accelerator, grouped(counts.macs));
  text += nest_text(r) + "\n" + counts_text(r) + "\n";
  const double peak = static_cast<double>(counts.macs) /
                      static_cast<double>(r.model.hierarchy.mac_units * r.model.hierarchy.macs_per_cycle) *
                      static_cast<double>(r.model.hierarchy.cycles_per_step);
  text +=
      fmt::format("time    {} cycles overlapped, {}; the array is {:.2f} % used\n", grouped(counts.cycles_overlapped),
                  binding_text(r), 100 * peak / static_cast<double>(counts.cycles_overlapped));
  text +=
      fmt::format("energy  {:.6g} uJ, {:.4g} pJ a multiply-accumulate\n", r.result.energy / kFemtojoulesPerMicrojoule,
                  r.result.energy / kFemtojoulesPerPicojoule / static_cast<double>(counts.macs));
  if (!r.searched) return text;
  const Certificate& c = r.result.certificate;
  text += proof_lines(r);
  text += fmt::format("        covers {}; on {}\n", c.covered, c.certified_on);
  text += fmt::format("        {} parts of the space bounded, {} looked into, {} mappings counted\n", grouped(c.nodes),
                      grouped(c.opened), grouped(c.evaluated));
  return text;
}

std::string map_json(const MapReport& r) {
  const AccessCounts& counts = r.result.counts;
  Json document{{"plumbline", 1}, {"kind", "map"}, {"kernel", r.kernel_text}, {"accelerator", r.accelerator}};
  document["mapping"] = Json::array();
  for (std::size_t l = 0; l < r.result.mapping.levels.size(); ++l) {
    Json keeps = Json::array();
    for (std::size_t o = 0; o < r.kernel.einsum.operands.size(); ++o) {
      if (r.result.mapping.levels[l].keeps_operand(o)) keeps.push_back(r.kernel.einsum.operands[o].name);
    }
    document["mapping"].push_back({{"level", r.model.hierarchy.levels[l].name},
                                   {"keeps", keeps},
                                   {"loops", loops_json(r, r.result.mapping.levels[l])}});
  }
  document["counts"] = Json::array();
  for (std::size_t l = 0; l < counts.levels.size(); ++l) {
    for (std::size_t o = 0; o < r.kernel.einsum.operands.size(); ++o) {
      const OperandCounts& c = counts.levels[l][o];
      if (!c.kept) continue;
      document["counts"].push_back({{"level", r.model.hierarchy.levels[l].name},
                                    {"operand", r.kernel.einsum.operands[o].name},
                                    {"tile", c.tile},
                                    {"reads", c.reads},
                                    {"fills", c.fills},
                                    {"updates", c.updates},
                                    {"read_bits", c.read_bits},
                                    {"write_bits", c.write_bits},
                                    {"energy_fj", level_energy(r, l, o)}});
    }
  }
  document["macs"] = counts.macs;
  document["compute_steps"] = counts.compute_steps;
  document["cycles_overlapped"] = counts.cycles_overlapped;
  document["energy_fj"] = r.result.energy;
  document["certificate"] = r.searched ? certificate_json(r) : Json(nullptr);
  return document.dump(1) + "\n";
}

}  // namespace plumbline::cli
