#pragma once
// What `plumbline matmul` found, and its two renderings.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "execute/numerics/counters.h"
#include "execute/numerics/error.h"
#include "execute/numerics/matmul.h"
#include "execute/numerics/matmul_integer.h"

namespace plumbline::cli {

/// An operand and how it became values of its format.
struct MatmulOperandReport {
  std::string description;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::string format;
  std::string policy;  ///< rounding and saturation, or scale and zero point
  numerics::Counters counters;
};

/// One accumulation model's results.
struct MatmulRunReport {
  std::string name;
  std::vector<std::string> rules;  ///< every register with its rounding and saturation
  std::string claim;
  std::string kernel;
  std::string result_format;
  std::optional<numerics::ResultCounters> results;    ///< floating-point models
  std::optional<numerics::IntegerCounters> integers;  ///< exact integers
  std::vector<numerics::RegisterTally> registers;
  std::optional<numerics::Format> accumulator;  ///< gives the histogram its regions
  std::optional<numerics::Counters> output;     ///< of a conversion that was asked for
  std::string output_policy;
  numerics::ErrorSummary accumulation_error;  ///< against the float64 product of the rounded operands
  numerics::ErrorSummary total_error;         ///< against that of the operands as given
};

struct MatmulReport {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::vector<MatmulOperandReport> operands;
  std::vector<MatmulRunReport> runs;
  std::vector<std::string> notes;
};

[[nodiscard]] std::string matmul_text(const MatmulReport& report);
[[nodiscard]] std::string matmul_json(const MatmulReport& report);

}  // namespace plumbline::cli
