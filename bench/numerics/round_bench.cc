#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "core/random.h"
#include "execute/numerics/mx.h"
#include "execute/numerics/round.h"
#include "rows.h"

namespace plumbline::bench {
namespace {

using namespace plumbline::numerics;

constexpr std::size_t kElements = std::size_t{16} << 20;  // 64 MiB of binary32: beyond every cache level here
constexpr int kRepeats = 9;                               // best of, each beside its own memcpy

/// A bell of unit deviation (sum of four uniforms), with one special in 512: Inf, NaN, zero, subnormal, huge, tiny.
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
    std::int32_t sum = 0;
    for (int k = 0; k < 4; ++k) sum += static_cast<std::int32_t>(draw >> (16 * k) & 0xFFFFU);
    tensor[i] = (static_cast<float>(sum) / 65536.0F - 2.0F) * 1.7320508F;
    if (const std::uint64_t pick = mix64(draw); pick % 512 == 0)
      tensor[i] = kSpecials[(pick >> 20U) % std::size(kSpecials)];
  }
  return tensor;
}

/// Best rates of `body` over the tensor and of memcpy of the float32 operand (4 bytes read and 4 written per element),
/// taken in turn so that both see the same machine.
struct Rates {
  double body;
  double copy;
};
template <class Body>
Rates measure(const std::vector<float>& input, std::vector<float>& copy, const Body& body) {
  double best_body = std::numeric_limits<double>::infinity();
  double best_copy = best_body;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    best_copy =
        std::min(best_copy, seconds_of([&] { std::memcpy(copy.data(), input.data(), kElements * sizeof(float)); }));
    best_body = std::min(best_body, seconds_of(body));
  }
  const double billions = static_cast<double>(kElements) * 1e-9;
  return {billions / best_body, billions / best_copy};
}

void add(Rows& rows, const std::string& key, Rates rates) {
  rows.push_back({key + "_gelem_s", rates.body});
  rows.push_back({key + "_vs_memcpy_ratio", rates.body / rates.copy});
}

/// MX quantization as a user calls it: scales, codes and counters into fresh buffers. The row named in the issue is the
/// slowest of the two usual element formats.
void mx_rows(const Filter& wanted, const std::vector<float>& input, std::vector<float>& copy, Rows& rows) {
  Rates slowest{std::numeric_limits<double>::infinity(), 1};
  for (const char* name : {"e4m3fn", "e2m1"}) {
    const std::string key = "mx_quantize_" + std::string(name);
    if (!wanted(key) && !wanted("mx_quantize_gelem_s")) continue;
    const MxSpec spec{find_mx_element(name).value(), ScaleRule::floor};
    const Rates rates = measure(input, copy, [&] {
      if (!quantize_mx(input, kElements / 4096, 4096, spec, false).ok()) std::abort();
    });
    if (rates.body < slowest.body) slowest = rates;
    add(rows, key, rates);
  }
  if (std::isfinite(slowest.body)) add(rows, "mx_quantize", slowest);
  if (!wanted("nvfp4_quantize")) return;
  std::vector<float> tame(input);  // one huge value would send every block scale to zero
  for (float& v : tame) v = std::fabs(v) < 100 || std::isinf(v) ? v : 100;
  add(rows, "nvfp4_quantize", measure(input, copy, [&] {
        if (!quantize_nvfp4(tame, kElements / 4096, 4096, {}, false).ok()) std::abort();
      }));
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
      for (const unsigned threads : {1U, 2U}) {
        const std::string suffix = threads == 1 ? "" : "_2t";
        const std::string key = "round_" + std::string(name) + "_" + std::string(to_string(rounding));
        if (wanted(key + suffix)) {
          add(rows, key + suffix, measure(input, copy, [&] { round_to_codes(input, spec, output.data(), threads); }));
        }
        if (wanted(key + "_values" + suffix)) {
          add(rows, key + "_values" + suffix,
              measure(input, copy, [&] { round_to_values(input, spec, output, threads); }));
        }
      }
    }
  }
  mx_rows(wanted, input, copy, rows);
  return rows;
}

}  // namespace plumbline::bench
