#include <cstdio>
#include <string>
#include <string_view>

#include "rows.h"

int main(int argc, char** argv) {
  using namespace plumbline::bench;
  const std::string_view filter = argc > 1 ? argv[1] : "";
  const Filter wanted = [&](std::string_view key) { return key.find(filter) != std::string_view::npos; };
  constexpr Rows (*kTopics[])(const Filter&) = {evaluate_rows, search_rows, network_rows};
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
