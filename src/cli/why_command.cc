#include <fmt/format.h>

#include "cli/command.h"
#include "cli/parse.h"
#include "core/printable.h"
#include "ingest/files.h"
#include "report/why.h"

namespace plumbline::cli {
namespace {

// why.json of a large decision stays far below this.
constexpr std::uint64_t kMaxWhyBytes = 64U << 20U;

}  // namespace

int why_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app("Walks from a number of a stored decision down to kernel, loop nest and the line that was written.",
               "why");
  std::string pack;
  std::string finding;
  app.add_option("pack", pack, "folder that decide -o wrote")->required();
  app.add_option("finding", finding, "id of a finding; without it the ids are listed");
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  const std::string path = pack + "/why.json";
  auto text = ingest::read_file(path, kMaxWhyBytes);
  if (!text.ok()) {
    Diagnostics errors = text.errors();
    errors.back().help = "a pack is a folder that plumbline decide … -o FOLDER wrote";
    return report_errors(errors, err);
  }
  const auto findings = report::read_why(std::make_shared<const Source>(Source{path, std::move(text).value()}));
  if (!findings.ok()) return report_errors(findings.errors(), err);
  std::vector<std::string> ids;
  for (const auto& row : *findings) {
    if (row.id == finding) {
      out << printable(report::why_text(row));  // the file may have been edited since
      return kYes;
    }
    ids.push_back(row.id);
    if (finding.empty()) out << printable(fmt::format("{:<22} {}\n", row.id, row.what));
  }
  if (finding.empty()) return kYes;
  return report_errors(
      {make_error("unknown-name", {}, fmt::format("the pack has no finding '{}'", finding), suggest(finding, ids))},
      err);
}

}  // namespace plumbline::cli
