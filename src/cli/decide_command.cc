#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/command.h"
#include "cli/decide_run.h"
#include "cli/pack_folder.h"
#include "cli/parse.h"
#include "cli/timing.h"

namespace plumbline::cli {
namespace {

struct DecideFlags {
  std::string baseline;
  std::string candidate;
  std::string output;
  std::string format = "text";
  std::string colour = "auto";
  unsigned threads = 0;
  std::int64_t pairs = 0;
};

bool use_colour(const std::string& flag) {
  if (flag != "auto") return flag == "always";
  return isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
}

int terminal_width() {
  constexpr int kDefault = 100;
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefault;
  return size.ws_col;
}

}  // namespace

int decide_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app(
      "Judges a candidate against its baseline: release, release with guardrails, hold or roll back.\n"
      "Exit code 0 means release, 1 hold or roll back, 2 that no decision could be made.",
      "decide");
  DecideFlags flags;
  app.add_option("baseline", flags.baseline, "scenario file, or the folder of a stored pack")->required();
  app.add_option("candidate", flags.candidate, "candidate file: base and changes")->required();
  app.add_option("-o,--output", flags.output,
                 "folder for the evidence pack; an older pack there is replaced, unless it holds other files too");
  app.add_option("--format", flags.format, "what is printed: text, json or md")
      ->check(CLI::IsMember({"text", "json", "md"}));
  app.add_option("--pairs", flags.pairs, "judging replications; 0 = as many as the gate asks")
      ->check(CLI::Range(0, 60));
  app.add_option("--threads", flags.threads,
                 "threads; 0 = as many as the machine has; the answer does not depend on it");
  app.add_option("--colour,--color", flags.colour, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  if (flags.pairs != 0 && flags.pairs < 4) {
    return report_errors({make_error("usage", {}, fmt::format("{} pairs cannot decide anything at 5 %", flags.pairs),
                                     "ask for 4 to 60, or leave --pairs out")},
                         err);
  }

  std::optional<PackFolder> folder;
  if (!flags.output.empty()) {
    auto claimed = PackFolder::claim(flags.output);
    if (!claimed.ok()) return report_errors(claimed.errors(), err);
    folder.emplace(std::move(claimed).value());
  }
  const Stopwatch stopwatch;
  auto made = run_decision({relative_path(flags.baseline), relative_path(flags.candidate), flags.pairs, flags.threads,
                            !flags.output.empty() || flags.format != "text"});
  if (!made.ok()) return report_errors(made.errors(), err);
  if (folder) {
    made->files[kTimingFile] = stopwatch.timing_json("decide");
    const auto written = folder->commit(made->files);
    if (!written.ok()) return report_errors(written.errors(), err);
    made->study.table.pack_path = flags.output;  // for the summary only: no stored byte depends on it
  }
  if (flags.format == "json") {
    out << made->files.at("decision.json");
  } else if (flags.format == "md") {
    out << made->files.at("decision.md");
  } else {
    out << report::decision_text(made->study, made->decision, use_colour(flags.colour), terminal_width());
  }
  const auto verdict = made->decision.verdict;
  return verdict == decide::Verdict::release || verdict == decide::Verdict::release_with_guardrails ? kYes : kNo;
}

}  // namespace plumbline::cli
