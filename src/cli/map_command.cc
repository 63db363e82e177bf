#include "cli/map_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cli/command.h"
#include "cli/load_accelerator.h"
#include "cli/map_constraints.h"
#include "cli/map_kernel.h"
#include "cli/map_report.h"
#include "cli/mapping_file.h"
#include "cli/output_files.h"
#include "cli/parse.h"
#include "cli/timing.h"
#include "ingest/library.h"
#include "schedule/search_accelerator.h"

namespace plumbline::cli {
namespace {

struct MapOptions {
  std::string accelerator;
  std::string kernel;
  std::string mapping;
  std::string save;
  std::string timing;
  std::string constraints;
  std::string objective = "edp";
  std::string output = "text";
  bool imperfect = false;
  std::int64_t budget = INT64_MAX;
  std::int64_t work = schedule::SearchOptions{}.most_work;
};

using schedule::Objective;

struct NamedObjective {
  const char* name;
  Objective objective;
  Objective then;  ///< where it stands alone, ties fall to this one
};

/// Every objective the command line knows.
constexpr NamedObjective kObjectives[] = {
    {"energy", Objective::energy, Objective::latency},
    {"latency", Objective::latency, Objective::energy},
    {"edp", Objective::energy_delay, Objective::energy},
    {"off_array_weight_bytes", Objective::off_array_weight_bits, Objective::energy},
};

/// "latency,energy" in order of importance.
Result<std::vector<Objective>> read_objectives(const std::string& text, bool& alone) {
  std::vector<Objective> objectives;
  std::istringstream words(text);
  std::string word;
  Objective then = Objective::energy;
  if (text.ends_with(',')) words.str(text + ",");  // the empty word behind it is one too
  while (std::getline(words, word, ',')) {
    const auto* at = std::find_if(std::begin(kObjectives), std::end(kObjectives),
                                  [&](const NamedObjective& each) { return each.name == word; });
    if (at == std::end(kObjectives)) {
      std::vector<std::string> names;
      for (const NamedObjective& each : kObjectives) names.emplace_back(each.name);
      return make_error("unknown-name", Span{}, fmt::format("no objective is called '{}'", word), suggest(word, names));
    }
    if (std::find(objectives.begin(), objectives.end(), at->objective) != objectives.end())
      return make_error("bad-value", Span{}, fmt::format("the objective '{}' stands twice", word));
    objectives.push_back(at->objective);
    then = at->then;
  }
  if (objectives.empty()) return make_error("bad-value", Span{}, "no objective");
  alone = objectives.size() == 1;
  if (alone) objectives.push_back(then);
  return objectives;
}

void declare(CLI::App& app, MapOptions& o) {
  app.add_option("--accelerator", o.accelerator, "catalogue name, or path of an accelerator file")->required();
  app.add_option(
         "--kernel", o.kernel,
         "\"gemm M=512 N=768 K=768 in=int8 acc=int32 out=int8\", \"conv K=64 C=64 P=56 Q=56 R=3 S=3 stride=2\" or "
         "\"depthwise C=64 P=56 Q=56 R=3 S=3\"; in is int8, acc int32 and out as in unless said")
      ->required();
  // What only a search obeys must not be passed over in silence beside a given mapping.
  auto* const given = app.add_option("--mapping", o.mapping, "count the mapping of this file instead of searching one");
  app.add_option("--save", o.save, "write the mapping to this file, for --mapping here and in matmul");
  app.add_option("--constraints", o.constraints,
                 "search under the rows of this file, which are those of compile.constraints")
      ->excludes(given);
  app.add_option("--objective", o.objective,
                 "energy, latency, edp (unless said) or off_array_weight_bytes, or several in order of importance: "
                 "latency,energy")
      ->excludes(given);
  app.add_flag("--imperfect", o.imperfect, "factors need not divide the dimensions")->excludes(given);
  app.add_option("--budget", o.budget, "mappings counted at most; beyond it the gap is stated as it stands")
      ->excludes(given);
  app.add_option("--work", o.work, "costs and pairs of factors looked at, at most; the default is some seconds")
      ->excludes(given);
  app.add_option("--timing", o.timing, "write the seconds it took to this file");
  app.add_option("--format", o.output, "text or json")->check(CLI::IsMember({"text", "json"}));
}

Result<MapReport> make_report(const MapOptions& o) {
  for (const auto& [name, value] : {std::pair{"--budget", o.budget}, std::pair{"--work", o.work}}) {
    if (value < 1)
      return make_error("bad-value", Span{}, fmt::format("{} {} allows no search", name, value), "1 or more");
  }
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
    auto counts = schedule::count_accesses(report.kernel.einsum, report.model.hierarchy, report.result.mapping);
    if (!counts.ok()) return at_the_mapping(counts.errors(), document);
    report.result.counts = std::move(*counts);
    report.result.energy = schedule::energy_of(report.result.counts, report.model.rates);
    report.searched = false;
    return report;
  }
  schedule::SearchOptions options;
  PL_TRY(options.objectives, read_objectives(o.objective, report.one_objective));
  options.imperfect = o.imperfect;
  options.most_evaluations = o.budget;
  options.most_work = o.work;
  std::vector<ingest::ConstraintRow> rows;
  if (!o.constraints.empty()) {
    PL_TRY(const ingest::Value document, library.read_document(o.constraints));
    PL_TRY(rows, read_constraints(document));
  }
  PL_TRY(report.result, search_under(rows, report.kernel, accelerator, report.model, options));
  return report;
}

Status write_files(const MapOptions& o, const MapReport& report, const Stopwatch& stopwatch) {
  if (!o.timing.empty()) PL_TRY_STATUS(write_whole(o.timing, stopwatch.timing_json("map")));
  if (o.save.empty()) return Done{};
  return write_whole(o.save, mapping_file_text(report.result.mapping, report.kernel.einsum, report.model.hierarchy));
}

}  // namespace

int map_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app("The best loop nest of one kernel on one accelerator, with proof, or the exact counts of a given one.",
               "map");
  MapOptions options;
  declare(app, options);
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  const Stopwatch stopwatch;
  const auto report = make_report(options);
  if (!report.ok()) {
    err << render(report.errors());
    const bool none_fits = std::all_of(report.errors().begin(), report.errors().end(),
                                       [](const Diagnostic& each) { return each.kind == "does-not-fit"; });
    return none_fits ? kNo : kCannotSay;
  }
  const auto written = write_files(options, *report, stopwatch);
  if (!written.ok()) {
    err << render(written.errors());
    return kCannotSay;
  }
  out << (options.output == "json" ? map_json(*report) : map_text(*report));
  return kYes;
}

}  // namespace plumbline::cli
