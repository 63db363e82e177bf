// Prints the tables of docs/networks.md for tools/update_network_study.
#include <cstdio>

#include "study/network_study.h"

int main() {
  const auto cases = plumbline::study::study_networks();
  if (!cases.ok()) {
    std::fputs(plumbline::render(cases.errors()).c_str(), stderr);
    return 2;
  }
  std::fputs(plumbline::study::network_markdown(*cases).c_str(), stdout);
  return 0;
}
