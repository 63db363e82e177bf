#pragma once
// `plumbline round`: a tensor through a number format, with everything that happened to it.
#include <ostream>
#include <string>
#include <vector>

namespace plumbline::cli {

/// Exit codes: 0 done; 1 some elements had no meaning in the format (NaN lost, out of domain); 2 bad input.
int round_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace plumbline::cli
