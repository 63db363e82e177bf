#pragma once
// Subcommands: each a function of its arguments and two streams, listed once in commands.cc.
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "ingest/library.h"
#include "schedule/mapping_cache.h"

namespace plumbline::cli {

/// Exit codes: 0 release or success, 1 the answer is no, 2 no answer could be given.
inline constexpr int kYes = 0;
inline constexpr int kNo = 1;
inline constexpr int kCannotSay = 2;

using Arguments = std::vector<std::string>;

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(const Arguments& arguments, std::ostream& out, std::ostream& err);
};
[[nodiscard]] const std::vector<Command>& commands();

int decide_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int ingest_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int lower_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int schedule_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int execute_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int serve_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int validate_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int why_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int reproduce_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int reuse_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int sensitivity_command(const Arguments& arguments, std::ostream& out, std::ostream& err);
int verify_command(const Arguments& arguments, std::ostream& out, std::ostream& err);

/// Prints diagnostics and gives exit code 2.
int report_errors(const Diagnostics& errors, std::ostream& err);

/// The folder of the catalogue: PLUMBLINE_CATALOG, else beside or above the program, else catalog/ here.
[[nodiscard]] std::string find_catalog();

/// Where certified searches remember their answers across runs: the folder PLUMBLINE_MAPPING_CACHE, else this run
/// alone.
[[nodiscard]] std::shared_ptr<schedule::MappingCache> find_mapping_cache();

/// The document of a scenario file, or of a candidate file (base with all its changes applied).
Result<ingest::Value> read_arm_document(const std::string& path, ingest::Library& library);

}  // namespace plumbline::cli
