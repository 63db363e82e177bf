#pragma once
// `plumbline map`: one kernel on one accelerator; the best mapping with proof, or the counts of a given one.
#include <ostream>
#include <string>
#include <vector>

namespace plumbline::cli {

/// Exit codes: 0 mapped; 1 no mapping fits; 2 bad input.
int map_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace plumbline::cli
