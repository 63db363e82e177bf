// The stage verbs: each runs the pipeline up to its stage and prints what that stage made.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "cli/command.h"
#include "cli/parse.h"
#include "report/artefacts.h"
#include "report/explain_report.h"
#include "report/stage_text.h"
#include "schedule/levels.h"
#include "study/decision_study.h"

namespace plumbline::cli {
namespace {

struct StageOptions {
  std::string scenario;
  std::string format = "text";
  std::string explain;  ///< schedule: the kernel to explain; empty = none
  unsigned threads = 0;
  std::uint64_t seed = 0;  ///< 0: the gate's first judging seed
  std::int64_t pairs = 0;
};

/// What a verb prints, from a prepared scenario.
using Printer = std::function<Result<std::string>(study::Engine&, const study::Prepared&, const StageOptions&)>;

int run_stage(const char* name, const char* description, const Arguments& arguments, std::ostream& out,
              std::ostream& err, const Printer& print) {
  CLI::App app(description, name);
  StageOptions options;
  app.add_option("scenario", options.scenario,
                 "scenario file, or a candidate file (its base with every change applied)")
      ->required();
  app.add_option("--format", options.format, "text or json")->check(CLI::IsMember({"text", "json"}));
  app.add_option("--threads", options.threads, "threads; 0 = as many as the machine has");
  app.add_option("--seed", options.seed, "seed of the one replication that serve and run show; 0 = the gate's first");
  app.add_option("--pairs", options.pairs, "replications that validate and run make; 0 = as many as the gate asks")
      ->check(CLI::Range(0, 60));
  if (app.get_name() == "schedule")
    app.add_option("--explain", options.explain,
                   "kernel whose time is explained by level and link, and with its loops moved");
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  ingest::Library library(find_catalog());
  auto document = read_arm_document(options.scenario, library);
  if (!document.ok()) return report_errors(document.errors(), err);
  study::Engine engine(library, options.threads);
  engine.remember_mappings(find_mapping_cache());
  auto prepared = engine.prepare("scenario", *document);
  if (!prepared.ok()) return report_errors(prepared.errors(), err);
  const auto text = print(engine, *prepared, options);
  if (!text.ok()) return report_errors(text.errors(), err);
  out << *text;
  return kYes;
}

decide::Arm replicate(study::Engine& engine, const study::Prepared& prepared, const StageOptions& options) {
  const auto& gate = prepared.scenario->gate;
  return engine.run({{&prepared, {}, study::judging_seeds(gate, options.pairs > 0 ? options.pairs : gate.pairs)}})
      .front();
}

std::uint64_t seed_of(const study::Prepared& prepared, const StageOptions& options) {
  return options.seed != 0 ? options.seed : study::judging_seeds(prepared.scenario->gate, 1).front();
}

/// One kernel in every compiled shape that has it.
Result<std::string> explain(const study::Prepared& prepared, const StageOptions& options) {
  const ingest::Accelerator& accelerator = *prepared.scenario->accelerator;
  PL_TRY(const schedule::LevelRoles levels, schedule::find_levels(accelerator));
  std::vector<report::ExplainedKernel> explained;
  std::vector<std::string> names;
  for (const auto& model : prepared.compiled->models) {
    const lower::KernelGraph* last = nullptr;
    for (const auto& bucket : model.buckets) {
      if (bucket.graph.get() == last) continue;
      last = bucket.graph.get();
      for (std::size_t k = 0; k < bucket.graph->kernels.size(); ++k) {
        const lower::Kernel& kernel = bucket.graph->kernels[k];
        if (kernel.kind != lower::KernelKind::matrix) continue;
        if (std::find(names.begin(), names.end(), kernel.name) == names.end()) names.push_back(kernel.name);
        if (kernel.name != options.explain) continue;
        PL_TRY(auto made, schedule::explain_kernel(kernel, accelerator, levels, bucket.schedule->kernels[k]));
        explained.push_back(
            {model.name, bucket.batch, bucket.sequence, &kernel, &bucket.schedule->kernels[k], std::move(made)});
      }
    }
  }
  if (explained.empty()) {
    return make_error("unknown-name", {}, fmt::format("no kernel of the array is called '{}'", options.explain),
                      suggest(options.explain, names));
  }
  return options.format == "json" ? report::explain_json(prepared, explained)
                                  : report::explain_text(prepared, explained);
}

}  // namespace

int ingest_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  return run_stage("ingest", "Reads a scenario with everything it names and shows what was understood.", arguments, out,
                   err, [](study::Engine&, const study::Prepared& p, const StageOptions& o) {
                     return o.format == "json" ? report::scenario_json(*p.scenario) : report::ingest_text(*p.scenario);
                   });
}

int lower_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  return run_stage("lower", "Turns the model into kernels and shows each with its alternatives and reasons.", arguments,
                   out, err, [](study::Engine&, const study::Prepared& p, const StageOptions& o) {
                     return o.format == "json" ? report::kernel_graph_json(p) : report::lower_text(p);
                   });
}

int schedule_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  return run_stage("schedule", "Chooses a loop nest for every kernel and shows it, with what stays on chip.", arguments,
                   out, err,
                   [](study::Engine&, const study::Prepared& p, const StageOptions& o) -> Result<std::string> {
                     if (!o.explain.empty()) return explain(p, o);
                     return o.format == "json" ? report::schedule_json(p) : report::schedule_text(p);
                   });
}

int execute_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  return run_stage("execute", "Costs every compiled shape: cycles by class, bytes, energy.", arguments, out, err,
                   [](study::Engine&, const study::Prepared& p, const StageOptions& o) {
                     return o.format == "json" ? report::cost_table_json(p) : report::execute_text(p);
                   });
}

int serve_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  return run_stage("serve", "Simulates one replication of the traffic and shows latency, batches and loss.", arguments,
                   out, err, [](study::Engine& engine, const study::Prepared& p, const StageOptions& o) {
                     const std::uint64_t seed = seed_of(p, o);
                     const auto arm = engine.run({{&p, {}, {seed}}}).front();
                     return o.format == "json" ? report::run_json(p, arm.runs.front(), seed)
                                               : report::serve_text(p, arm.runs.front(), seed);
                   });
}

int validate_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  return run_stage("validate", "Replicates the run and shows every metric per slice, the limits and the invariants.",
                   arguments, out, err, [](study::Engine& engine, const study::Prepared& p, const StageOptions& o) {
                     const auto arm = replicate(engine, p, o);
                     return o.format == "json" ? report::evidence_json(arm)
                                               : report::validate_text(arm, study::pre_flight(p, arm));
                   });
}

int run_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  return run_stage("run", "Runs one scenario through every stage.", arguments, out, err,
                   [](study::Engine& engine, const study::Prepared& p, const StageOptions& o) {
                     const auto arm = replicate(engine, p, o);
                     if (o.format == "json") return report::evidence_json(arm);
                     return report::ingest_text(*p.scenario) + "\n" + report::execute_text(p) + "\n" +
                            report::serve_text(p, arm.runs.front(), seed_of(p, o)) + "\n" +
                            report::validate_text(arm, study::pre_flight(p, arm));
                   });
}

}  // namespace plumbline::cli
