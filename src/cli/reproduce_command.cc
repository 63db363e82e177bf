#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/decide_run.h"
#include "cli/parse.h"
#include "core/printable.h"
#include "core/sha256.h"
#include "ingest/files.h"

namespace plumbline::cli {
namespace {

constexpr std::uint64_t kMaxManifestBytes = 16U << 20U;
constexpr std::uint64_t kMaxPackFileBytes = 256U << 20U;

struct StoredFile {
  std::string name;
  std::string sha256;
};

struct Stored {
  std::string baseline;
  std::string candidate;
  std::string verdict;
  std::string instruction_set;
  std::int64_t pairs = 0;
  std::vector<StoredFile> files;
  std::string manifest;  ///< its own bytes: what it says of inputs and commands must come out again too
};

Result<Stored> read_manifest(const std::string& pack) {
  const std::string path = pack + "/manifest.json";
  PL_TRY(std::string text, ingest::read_file(path, kMaxManifestBytes));
  const auto source = std::make_shared<const Source>(Source{path, std::move(text)});
  const auto json = nlohmann::json::parse(source->text, nullptr, false);
  if (json.is_discarded()) return make_error("json-syntax", {source, 0, 0, 1}, "the manifest is not JSON");
  try {
    Stored out;
    out.baseline = json.at("baseline").at("path");
    out.candidate = json.at("candidate").at("path");
    out.verdict = json.at("verdict");
    out.instruction_set = json.at("instruction_set");
    const std::string command = json.at("command");
    const auto at = command.find(" --pairs ");
    if (at != std::string::npos) out.pairs = std::strtoll(command.c_str() + at + 9, nullptr, 10);
    out.manifest = source->text;
    for (const auto& file : json.at("files")) out.files.push_back({file.at("name"), file.at("sha256")});
    return out;
  } catch (const nlohmann::json::exception&) {
    return make_error("unknown-document", {source, 0, 0, 1}, "the manifest lacks what a pack's manifest holds");
  }
}

// Files of the pack whose bytes are no longer what the manifest says.
std::vector<std::string> damaged(const std::string& pack, const Stored& stored) {
  std::vector<std::string> out;
  for (const auto& file : stored.files) {
    const auto bytes = ingest::read_file(pack + "/" + file.name, kMaxPackFileBytes);
    if (!bytes.ok() || sha256(*bytes) != file.sha256) out.push_back(file.name);
  }
  return out;
}

}  // namespace

int reproduce_command(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app(
      "Makes a stored decision again from its inputs and compares every byte.\n"
      "Exit code 0 means the same, 1 that something differs.",
      "reproduce");
  std::string pack;
  unsigned threads = 0;
  app.add_option("pack", pack, "folder that decide -o wrote")->required();
  app.add_option("--threads", threads, "threads; 0 = as many as the machine has");
  if (const auto code = parse_arguments(app, arguments, out, err)) return *code;
  const auto stored = read_manifest(pack);
  if (!stored.ok()) return report_errors(stored.errors(), err);
  const auto broken = damaged(pack, *stored);
  for (const auto& name : broken) out << printable(fmt::format("changed since it was written: {}\n", name));
  const auto made = run_decision({stored->baseline, stored->candidate, stored->pairs, threads, true});
  if (!made.ok()) return report_errors(made.errors(), err);
  std::size_t equal = 0;
  std::vector<std::string> different;
  for (const auto& file : stored->files) {
    const auto it = made->files.find(file.name);
    if (it != made->files.end() && sha256(it->second) == file.sha256) {
      ++equal;
    } else {
      different.push_back(file.name);
    }
  }
  if (made->files.at("manifest.json") == stored->manifest) {
    ++equal;
  } else {
    different.emplace_back("manifest.json");
  }
  const std::string verdict = decide::verdict_name(made->decision.verdict);
  out << printable(fmt::format("verdict {} (stored: {}), {} of {} files equal byte for byte\n", verdict,
                               stored->verdict, equal, stored->files.size() + 1));
  for (const auto& name : different) out << printable(fmt::format("differs: {}\n", name));
  if (stored->instruction_set != instruction_set()) {
    out << printable(fmt::format("the pack was made on {}, this is {}: bytes may differ, the verdict may not\n",
                                 stored->instruction_set, instruction_set()));
    return verdict == stored->verdict && broken.empty() ? kYes : kNo;
  }
  return different.empty() && broken.empty() && verdict == stored->verdict ? kYes : kNo;
}

}  // namespace plumbline::cli
