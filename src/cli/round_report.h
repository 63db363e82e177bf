#pragma once
// What `plumbline round` found, and its two renderings.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "execute/numerics/counters.h"
#include "execute/numerics/error.h"
#include "execute/numerics/format.h"
#include "execute/numerics/round.h"

namespace plumbline::cli {

struct RoundReport {
  std::string operand;
  std::vector<std::size_t> shape;
  std::string target;
  std::vector<std::pair<std::string, std::string>> policy;  ///< every choice that shaped the result, in reading order
  std::optional<numerics::Format> format;  ///< of elements rounded one by one: gives the histogram its regions
  double bits_per_element = 0;
  numerics::Counters counters;
  std::vector<numerics::Counters> channels;  ///< on request
  std::uint64_t nan_blocks = 0;
  numerics::ErrorSummary error;
  std::uint64_t codes_used = 0;
  std::uint64_t codes_possible = 0;
  double least_result = 0;  ///< of the finite results
  double greatest_result = 0;
  numerics::ExponentHistogram histogram{};
  std::vector<std::string> notes;
};

[[nodiscard]] std::string round_text(const RoundReport& report);
[[nodiscard]] std::string round_json(const RoundReport& report);

}  // namespace plumbline::cli
