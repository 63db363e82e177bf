#pragma once
// What a mapping benchmark reports: keys and numbers.
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::bench {

struct Row {
  std::string key;
  double value = 0;
};
using Rows = std::vector<Row>;
using Filter = std::function<bool(std::string_view key)>;

template <class Body>
double seconds_of(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Rows evaluate_rows(const Filter& wanted);
Rows search_rows(const Filter& wanted);
Rows network_rows(const Filter& wanted);

}  // namespace plumbline::bench
