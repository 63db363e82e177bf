#include "cli/command.h"
#include "cli/map_command.h"
#include "cli/matmul_command.h"
#include "cli/round_command.h"

namespace plumbline::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {"decide", "baseline and candidate in, a release decision with proof out", decide_command},
      {"run", "one scenario through every stage", run_command},
      {"ingest", "what was understood of a scenario and all it names", ingest_command},
      {"lower", "the model as kernels, with alternatives and reasons", lower_command},
      {"schedule", "a loop nest for every kernel, and what stays on chip", schedule_command},
      {"execute", "cycles by class, bytes and energy of every compiled shape", execute_command},
      {"serve", "one replication of the traffic: latency, batches, loss", serve_command},
      {"validate", "every metric per slice, the limits and the invariants", validate_command},
      {"why", "from a number of a stored decision down to the line that caused it", why_command},
      {"reproduce", "make a stored decision again and compare every byte", reproduce_command},
      {"reuse", "where weights move and where they stay, by layer class and shape", reuse_command},
      {"sensitivity", "a metric over batch and sequence, with its cliffs and their causes", sensitivity_command},
      {"verify", "reference answers against Plumbline's own", verify_command},
      {"map", "one kernel on one accelerator: the best loop nest with proof", map_command},
      {"round", "a tensor through a number format, with everything that happened to it", round_command},
      {"matmul", "a matrix product as an accumulator really sums it, and what was lost", matmul_command},
  };
  return table;
}

}  // namespace plumbline::cli
