#include <cstdio>
#include <string>
#include <string_view>

#include "execute/numerics/round_kernel.h"
#include "rows.h"

int main(int argc, char** argv) {
  using namespace plumbline::bench;
  const std::string_view filter = argc > 1 ? argv[1] : "";
  for (const std::int64_t target : plumbline::numerics::kernel_targets()) {  // a second argument: one instruction set
    if (argc > 2 && plumbline::numerics::kernel_target_name(target) == argv[2]) {
      plumbline::numerics::limit_kernels_to(target);
    }
  }
  const Filter wanted = [&](std::string_view key) { return key.find(filter) != std::string_view::npos; };
  constexpr Rows (*kTopics[])(const Filter&) = {round_rows, matmul_rows};
  std::string separator = "{\n";
  for (const auto& topic : kTopics) {
    for (const Row& row : topic(wanted)) {
      std::printf("%s  \"%s\": %.6g", separator.c_str(), row.key.c_str(), row.value);
      separator = ",\n";
    }
  }
  std::printf("%s}\n", separator == "{\n" ? "{" : "\n");
  return 0;
}
