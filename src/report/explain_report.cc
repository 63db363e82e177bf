#include "report/explain_report.h"

#include <fmt/format.h>

#include "report/json.h"
#include "report/words.h"

namespace plumbline::report {
namespace {

using schedule::KernelExplanation;
using schedule::LoopMove;
using schedule::MappingPrice;
using schedule::ResourceTime;

std::string shape_words(const ExplainedKernel& each) {
  return each.sequence > 0 ? fmt::format("batch {}, sequence {}", each.batch, each.sequence)
                           : fmt::format("batch {}", each.batch);
}

std::string parts_text(const KernelExplanation& made) {
  std::string text;
  for (const auto& part : made.parts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", count(part.cycles), part.cause);
  }
  return text;
}

std::string width_text(const ResourceTime& row) {
  if (row.resource == "array") return "";
  return row.bytes_per_cycle ? fmt::format("{:.6g} B/cycle", *row.bytes_per_cycle) : "unlimited";
}

std::string resources_text(const KernelExplanation& made) {
  std::string out =
      fmt::format("  {:<32} {:<10} {:<18} {:>10} {:>14} {:>13} {:>12}\n", "busy, if nothing else held it up", "mostly",
                  "limiting link", "bytes", "width", "cycles", "byte hops");
  bool bounded = true;
  for (std::size_t i = 0; i < made.resources.size(); ++i) {
    const ResourceTime& row = made.resources[i];
    const std::string bytes = row.resource == "array" ? "" : quantity(static_cast<double>(row.bytes), "B");
    const std::string hops = row.byte_hops == 0 ? "" : quantity(static_cast<double>(row.byte_hops), "B");
    bounded = bounded && row.exact;
    std::string line = fmt::format("{} {:<32} {:<10} {:<18} {:>10} {:>14} {:>13} {:>12}{}",
                                   i == made.binding ? '>' : ' ', row.resource, row.tensor, row.link, bytes,
                                   width_text(row), count(row.cycles), hops, row.exact ? "" : " at most");
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  if (!bounded) out += "  at most: neighbours share words there that are counted once for each of them\n";
  return out;
}

std::string signed_count(std::int64_t n) { return (n > 0 ? "+" : "") + count(n); }

std::string moves_text(const KernelExplanation& made) {
  if (made.moves.empty()) return {};
  std::string out = fmt::format("  {:<26} {:<28} {:>13} {:>12} {:>14}\n", "if this loop moved", "", "cycles", "energy",
                                "off-array w.");
  for (const LoopMove& move : made.moves) {
    if (!move.refused.empty()) {
      out += fmt::format("  {:<26} {:<28} not valid: {}\n", move.loop, move.move, move.refused);
      continue;
    }
    out += fmt::format(
        "  {:<26} {:<28} {:>13} {:>12} {:>14}\n", move.loop, move.move,
        signed_count(move.price.cycles - made.price.cycles),
        signed_quantity((move.price.femtojoules - made.price.femtojoules) * 1e-15, "J"),
        signed_quantity(static_cast<double>(move.price.off_array_weight - made.price.off_array_weight), "B"));
  }
  return out;
}

Json price_json(const MappingPrice& price) {
  Json out = {{"cycles", price.cycles}, {"off_array_weight_bytes", price.off_array_weight}};
  put_number(out, "femtojoules", price.femtojoules);
  return out;
}

Json resource_json(const ResourceTime& row) {
  Json out = {{"resource", row.resource}, {"link", row.link},           {"tensor", row.tensor}, {"bytes", row.bytes},
              {"cycles", row.cycles},     {"byte_hops", row.byte_hops}, {"exact", row.exact}};
  if (row.bytes_per_cycle) {
    put_number(out, "bytes_per_cycle", *row.bytes_per_cycle);
  } else {
    put_null(out, "bytes_per_cycle", row.resource == "array" ? "it computes" : "the link is unlimited");
  }
  return out;
}

Json move_json(const LoopMove& move, const MappingPrice& from) {
  Json out = {{"loop", move.loop}, {"move", move.move}};
  if (!move.refused.empty()) {
    put_null(out, "change", move.refused);
    return out;
  }
  Json change = {{"cycles", move.price.cycles - from.cycles},
                 {"off_array_weight_bytes", move.price.off_array_weight - from.off_array_weight}};
  put_number(change, "femtojoules", move.price.femtojoules - from.femtojoules);
  out["change"] = std::move(change);
  return out;
}

}  // namespace

std::string explain_text(const study::Prepared& prepared, const std::vector<ExplainedKernel>& kernels) {
  std::string out =
      fmt::format("each kernel alone on {} at {:.4g} GHz, nothing on chip before it begins\n",
                  prepared.scenario->accelerator->name, prepared.scenario->accelerator->nominal.frequency.raw() * 1e-9);
  for (const ExplainedKernel& each : kernels) {
    const ResourceTime& binding = each.made.resources[each.made.binding];
    out += fmt::format("\n{} of {} at {} ({})\n{}\n", each.kernel->name, each.model, shape_words(each),
                       each.schedule->dataflow, each.schedule->text);
    out += fmt::format("{} cycles = {}\n", count(each.made.price.cycles), parts_text(each.made));
    out += fmt::format("binding: {}{}{}\n", binding.resource,
                       binding.tensor.empty() ? "" : fmt::format(", mostly {}", binding.tensor),
                       binding.link.empty() ? "" : fmt::format(", at its {}", binding.link));
    out += resources_text(each.made) + moves_text(each.made);
  }
  return out;
}

std::string explain_json(const study::Prepared& prepared, const std::vector<ExplainedKernel>& kernels) {
  Json out = json_document("explanation");
  out["scenario"] = prepared.scenario->name;
  out["sha256"] = prepared.hash;
  out["accelerator"] = prepared.scenario->accelerator->name;
  out["kernels"] = Json::array();
  for (const ExplainedKernel& each : kernels) {
    Json row = {{"kernel", each.kernel->name},
                {"model", each.model},
                {"batch", each.batch},
                {"sequence", each.sequence},
                {"dataflow", each.schedule->dataflow},
                {"loop_nest", each.schedule->text},
                {"price", price_json(each.made.price)}};
    row["parts"] = Json::array();
    for (const auto& part : each.made.parts) row["parts"].push_back({{"cause", part.cause}, {"cycles", part.cycles}});
    row["resources"] = Json::array();
    for (const auto& resource : each.made.resources) row["resources"].push_back(resource_json(resource));
    row["binding"] = each.made.binding;
    row["moves"] = Json::array();
    for (const auto& move : each.made.moves) row["moves"].push_back(move_json(move, each.made.price));
    out["kernels"].push_back(std::move(row));
  }
  return json_dump(out);
}

}  // namespace plumbline::report
