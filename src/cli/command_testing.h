#pragma once
// How tests run a command: in this process, with its streams caught.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace plumbline::cli {

using CommandFunction = int(const std::vector<std::string>&, std::ostream& out, std::ostream& err);

struct Ran {
  int code;
  std::string out, err;
};

inline Ran run_command(CommandFunction* command, const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const int code = command(arguments, out, err);
  return {code, out.str(), err.str()};
}

/// What a command that must succeed prints with --format json.
inline nlohmann::json run_command_json(CommandFunction* command, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const Ran ran = run_command(command, arguments);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return nlohmann::json::parse(ran.out);
}

/// A path of this process alone: the tests of two checkouts may run at once.
inline std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_" + name)).string();
}

}  // namespace plumbline::cli
