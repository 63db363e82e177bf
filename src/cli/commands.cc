#include "cli/command.h"

namespace plumbline::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {"decide", "baseline and candidate in, a release decision with proof out", decide_command},
  };
  return table;
}

}  // namespace plumbline::cli
