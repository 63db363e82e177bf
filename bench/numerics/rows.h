#pragma once
// Benchmark rows: each topic's file offers one function that measures and returns its rows.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::bench {

/// One measured number; the key ends in its unit (gelem_s: 10^9 elements per second; ratio: of two rates).
struct Row {
  std::string key;
  double value;
};
using Rows = std::vector<Row>;

/// Whether a topic should be measured; rows whose keys do not contain the filter may be skipped.
using Filter = std::function<bool(std::string_view key)>;

/// round_* and mx_* rows: rounding and block quantization of float32 tensors, with memcpy measured in the same loop.
Rows round_rows(const Filter& wanted);

/// matmul_* rows: products of 2048 x 2048 operands with specials among them, result counters on, each beside oneDNN's
/// float32 matmul on one thread; observed_time_ratio: time with per-accumulation counters over time without.
Rows matmul_rows(const Filter& wanted);

}  // namespace plumbline::bench
