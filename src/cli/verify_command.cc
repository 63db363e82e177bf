#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/parse.h"
#include "core/printable.h"
#include "execute/numerics/verify_formats.h"
#include "execute/numerics/verify_tensor_core.h"
#include "ingest/files.h"
#include "schedule/verify_timeloop.h"

namespace plumbline::cli {
namespace {

using Json = nlohmann::json;

// Reference files are tens of megabytes at most.
constexpr std::uint64_t kMaxReferenceBytes = 1ULL << 30U;

struct Tally {
  std::int64_t passed = 0;
  std::int64_t failed = 0;
  std::int64_t skipped = 0;
  std::vector<std::string> lines;
};

template <class Outcome>
Tally tally(const Outcome& outcome) {
  return {outcome.passed, outcome.failed, outcome.skipped, outcome.lines};
}

Tally not_built(std::int64_t cases, const char* engine) {
  return {0, 0, cases, {fmt::format("skipped: not built: {} cases wait for {}", cases, engine)}};
}

bool is_scalesim(const Json& d) {
  return d.contains("README") && d.contains("cases") && d["cases"].is_array() && !d["cases"].empty() &&
         d["cases"][0].is_object() && d["cases"][0].contains("dataflow") && d["cases"][0].contains("rows");
}

std::int64_t count_in(const Json& d, const char* key) {
  const auto it = d.find(key);
  return it != d.end() && (it->is_array() || it->is_object()) ? static_cast<std::int64_t>(it->size()) : 0;
}

// One row per kind of reference file: how it is recognized, and who judges it.
struct Kind {
  const char* name;
  bool (*recognizes)(const Json& document);
  Result<Tally> (*judge)(const Json& document);
};

constexpr Kind kKinds[] = {
    {"timeloop cases", schedule::is_timeloop_cases,
     [](const Json& d) -> Result<Tally> {
       PL_TRY(const auto outcome, schedule::verify_timeloop(d));
       return tally(outcome);
     }},
    {"format vectors", numerics::is_format_vectors,
     [](const Json& d) -> Result<Tally> { return tally(numerics::verify_format_vectors(d)); }},
    {"MX vectors", numerics::is_mx_vectors,
     [](const Json& d) -> Result<Tally> { return tally(numerics::verify_mx_vectors(d)); }},
    {"tensor-core vectors", numerics::is_tensor_core_vectors,
     [](const Json& d) -> Result<Tally> { return tally(numerics::verify_tensor_core(d)); }},
    {"SCALE-Sim cases", is_scalesim,
     [](const Json& d) -> Result<Tally> {
       return not_built(count_in(d, "cases") + count_in(d, "network_layers"), "the cycle-level array model");
     }},
    {"closed forms", [](const Json& d) { return d.contains("kind") && d["kind"] == "closed_forms"; },
     [](const Json& d) -> Result<Tally> {
       return not_built(std::max<std::int64_t>(1, count_in(d, "cases")), "the power and queueing models");
     }},
    {"published points",
     [](const Json& d) {
       return d.contains("points") && d["points"].is_array() && !d["points"].empty() && d["points"][0].is_object() &&
              d["points"][0].contains("status");
     },
     [](const Json& d) -> Result<Tally> { return not_built(count_in(d, "points"), "validation scenarios"); }},
    {"energy tables",
     [](const Json& d) {
       return d.contains("entries") && d.contains("sources") && d["entries"].is_array() && !d["entries"].empty() &&
              d["entries"][0].is_object() && d["entries"][0].contains("op");
     },
     [](const Json& d) -> Result<Tally> {
       return Tally{
           0, 0, count_in(d, "entries"), {"skipped: an energy table is a source for catalog/energy, not a test"}};
     }},
};

}  // namespace

int verify_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app(
      "Judges a file of reference answers, recognized by its content, against Plumbline's own.\n"
      "Exit code 0 means every judged case passed, 1 that one failed or none was judged, 2 an unreadable file.",
      "verify");
  std::string path;
  app.add_option("file", path, "reference file (.json)")->required();
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  auto text = ingest::read_file(path, kMaxReferenceBytes);
  if (!text.ok()) return report_errors(text.errors(), err);
  const auto source = std::make_shared<const Source>(Source{path, {}});
  const Span whole{source, 0, 0, 1};
  const auto document = Json::parse(*text, nullptr, false);
  if (document.is_discarded()) return report_errors({make_error("json-syntax", whole, "the file is not JSON")}, err);
  for (const auto& kind : kKinds) {
    if (!document.is_object() || !kind.recognizes(document)) continue;
    const auto judged = kind.judge(document);
    if (!judged.ok()) return report_errors(judged.errors(), err);
    for (const auto& line : judged->lines) out << printable(line) << "\n";
    out << fmt::format("{} passed, {} failed, {} skipped\n", judged->passed, judged->failed, judged->skipped);
    return judged->failed == 0 && judged->passed > 0 ? kYes : kNo;
  }
  return report_errors({make_error("unknown-document", whole, "a document of no kind of reference answers",
                                   "docs/verify.md lists how each kind is recognized")},
                       err);
}

}  // namespace plumbline::cli
