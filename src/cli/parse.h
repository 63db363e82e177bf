#pragma once
// Command-line parsing of one subcommand: CLI11 with our exit codes and suggestions.
#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "cli/command.h"

namespace plumbline::cli {

/// Parses; returns an exit code when the command ends here (help, or a wrong command line).
std::optional<int> parse_arguments(CLI::App& app, const Arguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace plumbline::cli
