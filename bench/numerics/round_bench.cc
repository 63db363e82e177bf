#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "execute/numerics/mx.h"
#include "execute/numerics/round.h"
#include "measure.h"
#include "rows.h"

namespace plumbline::bench {
namespace {

using namespace plumbline::numerics;

constexpr std::size_t kElements = std::size_t{16} << 20;  // 64 MiB of binary32: beyond every cache level here
constexpr int kRepeats = 21;                              // best of, each beside its own memcpy

/// A bell of unit deviation with one special in 512: Inf, NaN, zero, subnormal, huge, tiny.
std::vector<float> test_tensor() {
  constexpr float kSpecials[] = {std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN(),
                                 0.0F,
                                 -0.0F,
                                 1e-40F,
                                 3e38F,
                                 -1e30F,
                                 1e-20F};
  const RandomStream random(20240229, "round-bench");
  std::vector<float> tensor(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    const std::uint64_t draw = random.at(i);
    tensor[i] = static_cast<float>(bell(draw));
    if (const std::uint64_t pick = mix64(draw); pick % 512 == 0)
      tensor[i] = kSpecials[(pick >> 20U) % std::size(kSpecials)];
  }
  return tensor;
}

/// Best rates of `body`, which runs on this thread alone, over the tensor and of memcpy of the float32 operand (4 bytes
/// read and 4 written per element), taken in turn so that both see the same machine.
struct Rates {
  double body;
  double copy;
};
template <class Body>
Rates measure(const std::vector<float>& input, std::vector<float>& copy, const Body& body) {
  double best_body = kNever;
  double best_copy = kNever;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    best_copy = std::min(best_copy,
                         thread_seconds_of([&] { std::memcpy(copy.data(), input.data(), kElements * sizeof(float)); }));
    best_body = std::min(best_body, thread_seconds_of(body));
  }
  const double billions = static_cast<double>(kElements) * 1e-9;
  return {billions / best_body, billions / best_copy};
}

/// The two rows of a measurement, if either is wanted.
template <class Body>
void add_rates(const Filter& wanted, const std::string& key, const std::vector<float>& input, std::vector<float>& copy,
               const Body& body, Rows& rows) {
  if (!wanted(key + "_gelem_s") && !wanted(key + "_vs_memcpy_ratio")) return;
  const Rates rates = measure(input, copy, body);
  rows.push_back({key + "_gelem_s", rates.body});
  rows.push_back({key + "_vs_memcpy_ratio", rates.body / rates.copy});
}

/// Rate of two threads over that of one, beside the same ratio of memcpy: rounding is bound by memory where they agree.
template <class Body>
void add_speedup(const Filter& wanted, const std::string& key, const std::vector<float>& input,
                 std::vector<float>& copy, const Body& body, Rows& rows) {
  if (!wanted(key + "_2t_ratio") && !wanted(key + "_memcpy_2t_ratio")) return;
  ThreadPair kernel;
  ThreadPair memory;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    memory.measure([&](unsigned threads) { parallel_copy(input, copy, threads); });
    kernel.measure(body);
  }
  rows.push_back({key + "_2t_ratio", kernel.ratio()});
  rows.push_back({key + "_memcpy_2t_ratio", memory.ratio()});
}

/// Block quantization as a user calls it: scales, codes and counters into fresh buffers.
void block_rows(const Filter& wanted, const std::vector<float>& input, std::vector<float>& copy, Rows& rows) {
  constexpr std::size_t kColumns = 4096;
  for (const auto& [key, element] : {std::pair{"mx_quantize", "e4m3fn"}, std::pair{"mx_quantize_e2m1", "e2m1"}}) {
    const MxSpec spec{find_mx_element(element).value(), ScaleRule::floor};
    const auto quantize = [&, spec = spec](unsigned threads) {
      if (!quantize_mx(input, kElements / kColumns, kColumns, spec, false, threads).ok()) std::abort();
    };
    add_rates(
        wanted, key, input, copy, [&] { quantize(1); }, rows);
    add_speedup(wanted, key, input, copy, quantize, rows);
  }
  std::vector<float> tame(input);  // one huge value would send every block scale of NVFP4 to zero
  for (float& v : tame) v = std::fabs(v) < 100 || std::isinf(v) ? v : 100;
  add_rates(
      wanted, "nvfp4_quantize", input, copy,
      [&] {
        if (!quantize_nvfp4(tame, kElements / kColumns, kColumns, {}, false).ok()) std::abort();
      },
      rows);
}

}  // namespace

Rows round_rows(const Filter& wanted) {
  Rows rows;
  const std::pair<const char*, const char*> formats[] = {
      {"binary16", "binary16"}, {"bf16", "bfloat16"}, {"e4m3fn", "e4m3fn"}, {"e5m2", "e5m2"}, {"e2m1", "e2m1"}};
  const std::vector<float> input = test_tensor();
  std::vector<float> copy(kElements), output(kElements);
  for (const auto& [name, format] : formats) {
    for (const Rounding rounding : {Rounding::rne, Rounding::sr}) {
      const RoundSpec spec{builtin_format(format), rounding, Saturation::off, 8, {1, 2, 3, 0}};
      const std::string key = "round_" + std::string(name) + "_" + std::string(to_string(rounding));
      const auto to_codes = [&](unsigned threads) { round_to_codes(input, spec, output.data(), threads); };
      add_rates(
          wanted, key, input, copy, [&] { to_codes(1); }, rows);
      add_rates(
          wanted, key + "_values", input, copy, [&] { round_to_values(input, spec, output); }, rows);
      add_speedup(wanted, key, input, copy, to_codes, rows);
    }
  }
  block_rows(wanted, input, copy, rows);
  return rows;
}

}  // namespace plumbline::bench
