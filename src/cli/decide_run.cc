#include "cli/decide_run.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/version.h"
#include "core/printable.h"
#include "report/pack.h"

namespace plumbline::cli {

std::string instruction_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return "x86-64 avx512";
  if (__builtin_cpu_supports("avx2")) return "x86-64 avx2";
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

Result<MadeDecision> run_decision(const DecideRequest& request) {
  ingest::Library library(find_catalog());
  PL_TRY(const ingest::Comparison comparison, ingest::read_comparison(request.baseline, request.candidate, library));
  study::Engine engine(library, request.threads);
  engine.remember_mappings(find_mapping_cache());
  study::StudyOptions options;
  options.pairs = request.pairs;
  options.commands = report::pack_commands(request.baseline, request.candidate, request.pairs);
  MadeDecision out;
  PL_TRY(out.study, study::study_decision(comparison, engine, options));
  out.decision = decide::decide(out.study.table);
  study::keep_fixed_document(out.study, out.decision);
  if (!request.files) return out;
  report::Manifest manifest;
  manifest.version = kVersion;
  manifest.instruction_set = instruction_set();
  manifest.reproduce.command =
      fmt::format("plumbline decide {} {}{}", shell_word(request.baseline), shell_word(request.candidate),
                  request.pairs > 0 ? fmt::format(" --pairs {}", request.pairs) : "");
  manifest.reproduce.seed = out.decision.seed;
  manifest.reproduce.inputs = library.inputs();
  out.files = report::pack_files(out.study, out.decision, manifest, request.threads);
  return out;
}

}  // namespace plumbline::cli
