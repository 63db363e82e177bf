#pragma once
#include <ostream>
#include <string>
#include <vector>

namespace plumbline::cli {

/// `plumbline matmul A B`: one product through one or more accumulation models, every loss counted. Exit codes as in
/// command.h: 1 when a NaN was lost or an operand has no meaning in its format.
int matmul_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace plumbline::cli
