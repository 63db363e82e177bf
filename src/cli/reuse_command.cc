// `plumbline reuse` and `plumbline sensitivity`: the reuse-and-bandwidth report and the shape grid.
#include <fmt/format.h>

#include <charconv>
#include <fstream>

#include "cli/command.h"
#include "cli/parse.h"
#include "report/reuse_report.h"

namespace plumbline::cli {
namespace {

struct OutputFlags {
  std::string format = "text";
  std::string file;
};

void add_output(CLI::App& app, OutputFlags& flags) {
  app.add_option("--format", flags.format, "text, json, md or html")
      ->check(CLI::IsMember({"text", "json", "md", "html"}));
  app.add_option("-o,--output", flags.file, "file to write instead of standard output");
}

/// Prints or writes; an existing file is replaced as any redirection would.
int deliver(const std::string& bytes, const OutputFlags& flags, std::ostream& out, std::ostream& err) {
  if (flags.file.empty()) {
    out << bytes;
    return kYes;
  }
  std::ofstream file(flags.file, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (!file) return report_errors({make_error("unwritable", {}, fmt::format("cannot write '{}'", flags.file))}, err);
  return kYes;
}

/// "1,2,4" as numbers.
Result<std::vector<std::int64_t>> read_sizes(const std::string& text, const char* flag) {
  std::vector<std::int64_t> out;
  if (text.empty()) return out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || stop == at || (stop != end && *stop != ',')) {
      return make_error("usage", {}, fmt::format("{} '{}' is not a list of whole numbers", flag, text),
                        "separate them by commas: 1,2,4");
    }
    out.push_back(value);
    if (stop == end) return out;
    at = stop + 1;
  }
}

Result<study::Prepared> prepare(study::Engine& engine, const std::string& name, const std::string& path) {
  PL_TRY(const ingest::Value document, read_arm_document(path, engine.library()));
  return engine.prepare(name, document);
}

}  // namespace

int reuse_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app("Where weights move and where they stay: reuse, residency and bandwidth by layer class and shape.",
               "reuse");
  std::string scenario;
  std::string candidate;
  OutputFlags output;
  unsigned threads = 0;
  study::ReuseOptions options;
  bool no_stale = false;
  app.add_option("scenario", scenario, "scenario file, or a candidate file")->required();
  app.add_option("candidate", candidate, "a second one, to compare with");
  add_output(app, output);
  app.add_option("--pairs", options.pairs, "replications at the operating point; 0 = as many as the gate judges")
      ->check(CLI::Range(0, 60));
  app.add_option("--threads", threads, "threads; 0 = as many as the machine has");
  app.add_flag("--no-stale", no_stale, "leave out the stale-mapping costs, which compile every formed shape");
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  options.stale = !no_stale;
  ingest::Library library(find_catalog());
  study::Engine engine(library, threads);
  engine.remember_mappings(find_mapping_cache());
  const auto first = prepare(engine, "baseline", scenario);
  if (!first.ok()) return report_errors(first.errors(), err);
  std::optional<study::ReuseArm> second;
  if (!candidate.empty()) {
    const auto other = prepare(engine, "candidate", candidate);
    if (!other.ok()) return report_errors(other.errors(), err);
    second = study::study_reuse(engine, *other, options);
  }
  const auto report = study::reuse_report(study::study_reuse(engine, *first, options), std::move(second));
  const std::string bytes = output.format == "json"   ? report::reuse_json(report)
                            : output.format == "md"   ? report::reuse_markdown(report)
                            : output.format == "html" ? report::reuse_html(report)
                                                      : report::reuse_text(report);
  return deliver(bytes, output, out, err);
}

int sensitivity_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  std::string names;
  for (const auto& row : study::shape_metrics()) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  CLI::App app("A metric over batch × sequence, its elasticities, and every cliff with its cause.", "sensitivity");
  std::string scenario;
  std::string batches;
  std::string sequences;
  OutputFlags output;
  unsigned threads = 0;
  study::SensitivityOptions options;
  double threshold_percent = 100 * options.threshold;
  app.add_option("scenario", scenario, "scenario file, or a candidate file")->required();
  app.add_option("--batch", batches, "batch sizes, e.g. 1,2,4; default: powers of two up to the largest bucket");
  app.add_option("--sequence", sequences, "sequences, e.g. 128,256; default likewise");
  app.add_option("--metric", options.metric, "default: the scenario's. One of " + names);
  app.add_option("--threshold", threshold_percent, "percent off the trend that make a cliff");
  add_output(app, output);
  app.add_option("--threads", threads, "threads; 0 = as many as the machine has");
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  options.threshold = threshold_percent / 100;
  auto sizes = read_sizes(batches, "--batch");
  if (!sizes.ok()) return report_errors(sizes.errors(), err);
  auto lengths = read_sizes(sequences, "--sequence");
  if (!lengths.ok()) return report_errors(lengths.errors(), err);
  options.batches = *sizes;
  options.sequences = *lengths;
  ingest::Library library(find_catalog());
  study::Engine engine(library, threads);
  engine.remember_mappings(find_mapping_cache());
  const auto prepared = prepare(engine, "scenario", scenario);
  if (!prepared.ok()) return report_errors(prepared.errors(), err);
  const auto report = study::study_sensitivity(engine, *prepared, options);
  if (!report.ok()) return report_errors(report.errors(), err);
  const std::string bytes = output.format == "json"   ? report::sensitivity_json(*report)
                            : output.format == "md"   ? report::sensitivity_markdown(*report)
                            : output.format == "html" ? report::sensitivity_html(*report)
                                                      : report::sensitivity_text(*report);
  return deliver(bytes, output, out, err);
}

}  // namespace plumbline::cli
