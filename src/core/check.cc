#include "core/check.h"

#include <stdexcept>
#include <string>

namespace plumbline {

// Thrown, not aborted: cli/ turns it into exit code 2 with a request to report the bug, and nothing half-written stays.
void check_failed(const char* expression, const char* file, int line) {
  throw std::logic_error(std::string("internal check failed: ") + expression + " at " + file + ":" +
                         std::to_string(line));
}

}  // namespace plumbline
