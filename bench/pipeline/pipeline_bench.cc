// Whole runs of the program as a user starts them: wall time and peak memory of the child process, best of a few.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/files.h"
#include "ingest/graph.h"

namespace {

using namespace plumbline;
using Clock = std::chrono::steady_clock;

struct Row {
  std::string key;
  double value;
};

struct Execution {
  double seconds = 0;
  double peak_mb = 0;  // MB = 10^6 bytes
  int exit_code = -1;
};

// Starts the program with its output thrown away.
Execution execute(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const int sink = open("/dev/null", O_WRONLY);
    dup2(sink, 1);
    dup2(sink, 2);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child) return {};
  Execution out;
  out.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  out.peak_mb = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;  // ru_maxrss counts KiB on Linux
  out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

// The fastest of `repeats` runs; the peak is the largest seen. An exit code above `worst_exit` is a failed benchmark.
Execution best_of(int repeats, const std::vector<std::string>& arguments, int worst_exit) {
  Execution best;
  best.seconds = 1e300;
  for (int i = 0; i < repeats; ++i) {
    const Execution one = execute(arguments);
    if (one.exit_code < 0 || one.exit_code > worst_exit) {
      fmt::print(stderr, "pipeline_bench: '{}' exited with {}\n", fmt::join(arguments, " "), one.exit_code);
      std::exit(2);
    }
    best.seconds = std::min(best.seconds, one.seconds);
    best.peak_mb = std::max(best.peak_mb, one.peak_mb);
  }
  return best;
}

std::vector<std::string> decide(const std::string& scenario, const std::string& candidate) {
  const std::string catalog = PLUMBLINE_SOURCE_DIR "/catalog/scenarios/";
  const std::string out = (std::filesystem::temp_directory_path() / "plumbline-bench" / scenario).string();
  std::filesystem::create_directories(std::filesystem::path(out).parent_path());
  return {PLUMBLINE_BINARY, "decide", catalog + "burst/baseline.yaml", catalog + candidate, "-o", out};
}

// Median of many readings of the file, in memory, with every shape inferred: what ingest costs, not the disk.
double read_onnx_ms(const std::string& path, const std::string& bytes) {
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    const auto start = Clock::now();
    const auto graph = ingest::read_onnx(path, bytes);
    if (!graph.ok()) {
      fmt::print(stderr, "{}", render(graph.errors()));
      std::exit(2);
    }
    const auto shaped = ingest::infer_shapes(*graph, {});
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count() * 1e3);
    if (!shaped.ok()) {
      fmt::print(stderr, "{}", render(shaped.errors()));
      std::exit(2);
    }
  }
  std::nth_element(times.begin(), times.begin() + 10, times.end());
  return times[10];
}

void add_resnet50(std::vector<Row>& rows) {
  const char* folder = std::getenv("PLUMBLINE_DATA");
  const std::string path = std::string(folder != nullptr ? folder : PLUMBLINE_SOURCE_DIR "/../shared/data") +
                           "/models/onnx_topology/light_resnet50.onnx";
  const auto bytes = ingest::read_file(path, 1U << 30U, {});
  if (!bytes.ok()) {
    fmt::print(stderr, "pipeline_bench: ingest_resnet50_ms is not measured: {}", render(bytes.errors()));
    return;
  }
  rows.push_back({"ingest_resnet50_ms", read_onnx_ms(path, *bytes)});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view filter = argc > 1 ? argv[1] : "";
  const auto wanted = [&](std::string_view key) { return key.find(filter) != std::string_view::npos; };
  std::vector<Row> rows;
  if (wanted("startup_ms"))
    rows.push_back({"startup_ms", best_of(20, {PLUMBLINE_BINARY, "--version"}, 0).seconds * 1e3});
  if (wanted("ingest_resnet50_ms")) add_resnet50(rows);
  if (wanted("decide_default_s") || wanted("decide_default_rss_mb")) {
    const Execution run = best_of(3, decide("burst", "burst/candidate.yaml"), 1);
    rows.push_back({"decide_default_s", run.seconds});
    rows.push_back({"decide_default_rss_mb", run.peak_mb});
  }
  if (wanted("decide_six_changes_s")) {
    rows.push_back(
        {"decide_six_changes_s", best_of(2, decide("six-changes", "six-changes/candidate.yaml"), 1).seconds});
  }
  std::string separator = "{\n";
  for (const auto& row : rows) {
    fmt::print("{}  \"{}\": {:.6g}", separator, row.key, row.value);
    separator = ",\n";
  }
  fmt::print("{}}}\n", rows.empty() ? "{" : "\n");
  return 0;
}
