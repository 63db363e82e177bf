#include "cli/map_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/map_kernel.h"
#include "cli/map_report.h"
#include "cli/parse.h"
#include "ingest/library.h"
#include "schedule/search_accelerator.h"

namespace plumbline::cli {
namespace {

struct MapOptions {
  std::string accelerator;
  std::string kernel;
  std::string mapping;
  std::string objective = "edp";
  std::string output = "text";
  bool imperfect = false;
  std::int64_t budget = INT64_MAX;
};

using schedule::Objective;

struct NamedObjective {
  const char* name;
  std::vector<Objective> objectives;
};

/// Every objective the command line knows; ties of the first kind fall to the second.
const std::vector<NamedObjective>& objectives() {
  static const std::vector<NamedObjective> table = {
      {"energy", {Objective::energy, Objective::latency}},
      {"latency", {Objective::latency, Objective::energy}},
      {"edp", {Objective::energy_delay, Objective::energy}},
      {"off_array_weight_bytes", {Objective::off_array_weight_bits, Objective::energy}},
  };
  return table;
}

void declare(CLI::App& app, MapOptions& o) {
  std::vector<std::string> names;
  for (const NamedObjective& each : objectives()) names.emplace_back(each.name);
  app.add_option("--accelerator", o.accelerator, "catalogue name, or path of an accelerator file")->required();
  app.add_option("--kernel", o.kernel,
                 "\"gemm M=512 N=768 K=768 in=int8 acc=int32\", \"conv K=64 C=64 P=56 Q=56 R=3 S=3\", \"depthwise …\"")
      ->required();
  app.add_option("--mapping", o.mapping, "count the mapping of this file instead of searching one");
  app.add_option("--objective", o.objective, "energy, latency, edp or off_array_weight_bytes")
      ->check(CLI::IsMember(names));
  app.add_flag("--imperfect", o.imperfect, "factors need not divide the dimensions");
  app.add_option("--budget", o.budget, "mappings counted at most; beyond it the gap is stated as it stands")
      ->check(CLI::PositiveNumber);
  app.add_option("--format", o.output, "text or json")->check(CLI::IsMember({"text", "json"}));
}

Result<ingest::Accelerator> load_accelerator(const std::string& name, ingest::Library& library) {
  // A scenario's way of naming one, without the scenario: the library puts the energy table in its place.
  ingest::Value request = ingest::make_map({{"accelerator", ingest::make_scalar(name)}});
  PL_TRY(const ingest::Value resolved, library.resolve(request));
  const ingest::Value* document = resolved.find("accelerator");
  if (document == nullptr) return make_error("missing-key", Span{}, "no accelerator");
  const ingest::Value* table = document->find("energy");
  if (table == nullptr)
    return make_error("missing-key", document->span, fmt::format("accelerator '{}' names no energy table", name));
  return ingest::read_accelerator(*document, *table);
}

Result<MapReport> make_report(const MapOptions& o) {
  MapReport report;
  report.kernel_text = o.kernel;
  PL_TRY(report.kernel, read_kernel(o.kernel));
  ingest::Library library(find_catalog());
  PL_TRY(const ingest::Accelerator accelerator, load_accelerator(o.accelerator, library));
  report.accelerator = accelerator.name;
  PL_TRY(report.model, schedule::model_accelerator(accelerator, report.kernel.inputs, report.kernel.accumulate,
                                                   report.kernel.einsum));
  if (!o.mapping.empty()) {
    PL_TRY(const ingest::Value document, library.read_document(o.mapping));
    PL_TRY(report.result.mapping, read_mapping(document, report.kernel.einsum, report.model.hierarchy));
    PL_TRY(report.result.counts,
           schedule::count_accesses(report.kernel.einsum, report.model.hierarchy, report.result.mapping));
    report.result.energy = schedule::energy_of(report.result.counts, report.model.rates);
    report.searched = false;
    return report;
  }
  schedule::SearchOptions options;
  options.objectives = std::find_if(objectives().begin(), objectives().end(), [&](const NamedObjective& each) {
                         return each.name == o.objective;
                       })->objectives;
  options.imperfect = o.imperfect;
  options.most_evaluations = o.budget;
  PL_TRY(report.result, schedule::search_on(report.model, report.kernel.einsum, options));
  return report;
}

}  // namespace

int map_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app("The best loop nest of one kernel on one accelerator, with proof, or the exact counts of a given one.",
               "map");
  MapOptions options;
  declare(app, options);
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  const auto report = make_report(options);
  if (!report.ok()) {
    err << render(report.errors());
    const bool none_fits = std::all_of(report.errors().begin(), report.errors().end(),
                                       [](const Diagnostic& each) { return each.kind == "does-not-fit"; });
    return none_fits ? kNo : kCannotSay;
  }
  out << (options.output == "json" ? map_json(*report) : map_text(*report));
  return kYes;
}

}  // namespace plumbline::cli
