#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "execute/numerics/matmul.h"
#include "execute/numerics/matmul_integer.h"
#include "measure.h"
#include "rows.h"

namespace plumbline::bench {
namespace {

using namespace plumbline::numerics;

constexpr std::int64_t kSize = 2048;  // three binary32 matrices of 16 MiB
constexpr double kBillionMacs = static_cast<double>(kSize) * kSize * kSize * 1e-9;
// Best of, the reference measured beside each: slow topics stop early.
constexpr int kMostRepeats = 25;
constexpr int kLeastRepeats = 3;
constexpr double kEnoughSeconds = 8;

/// A bell of unit deviation in a format. A row or column in 256 holds an infinity or NaN; zeros and the format's
/// smallest values are strewn in.
std::vector<float> operand(const Format& format, std::uint64_t seed, bool special_rows) {
  const RandomStream random(seed, "matmul-bench");
  std::vector<float> values(static_cast<std::size_t>(kSize * kSize));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t draw = random.at(i);
    double value = bell(draw);
    if (mix64(draw) % 256 == 0) value = 0;
    if (mix64(draw) % 256 == 1) value = std::ldexp(1.0, format.min_positive_exponent());
    values[i] = static_cast<float>(decode(encode(value, format, Rounding::rne, Saturation::on).code, format));
  }
  for (std::int64_t i = 100; i < kSize; i += 256) {
    const std::size_t at = special_rows ? static_cast<std::size_t>(i * kSize + 3 * i % kSize)
                                        : static_cast<std::size_t>(3 * i % kSize * kSize + i);
    values[at] = format.has_infinity && i % 512 < 256 ? std::numeric_limits<float>::infinity()
                                                      : std::numeric_limits<float>::quiet_NaN();
  }
  return values;
}

/// oneDNN's float32 matmul on one thread.
class Reference {
 public:
  Reference()
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        shape_({kSize, kSize}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab),
        a_(shape_, engine_),
        b_(shape_, engine_),
        c_(shape_, engine_),
        primitive_(dnnl::matmul::primitive_desc(dnnl::matmul::desc(shape_, shape_, shape_), engine_)) {
    for (dnnl::memory* memory : {&a_, &b_}) {
      auto* const values = static_cast<float*>(memory->get_data_handle());
      const RandomStream random(1, "reference");
      for (std::int64_t i = 0; i < kSize * kSize; ++i) {
        values[i] = static_cast<float>(random.at(static_cast<std::uint64_t>(i)) % 1000) / 1000 - 0.5F;
      }
    }
  }
  double seconds() {
    omp_set_num_threads(1);
    return thread_seconds_of([&] {
      primitive_.execute(stream_, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}});
      stream_.wait();
    });
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory::desc shape_;
  dnnl::memory a_;
  dnnl::memory b_;
  dnnl::memory c_;
  dnnl::matmul primitive_;
};

/// Best times of one thread: its own time, which other users of the machine do not stretch.
struct Times {
  double one = kNever;
  double counted = kNever;
  double reference = kNever;
};

template <class Body>  // body(threads, whether accumulations are counted)
void add_rows(const std::string& key, Reference& reference, const Body& body, bool counts, Rows& rows) {
  Times best;
  ThreadPair threads;
  ThreadPair machine;
  double spent = 0;
  for (int repeat = 0; repeat < kMostRepeats && (repeat < kLeastRepeats || spent < kEnoughSeconds); ++repeat) {
    spent += seconds_of([&] {
      best.reference = std::min(best.reference, reference.seconds());
      best.one = std::min(best.one, thread_seconds_of([&] { body(1U, false); }));
      machine.measure(pure_arithmetic);
      threads.measure([&](unsigned count) { body(count, false); });
      if (counts) best.counted = std::min(best.counted, thread_seconds_of([&] { body(1U, true); }));
    });
  }
  rows.push_back({key + "_gmac_s", kBillionMacs / best.one});
  rows.push_back({key + "_vs_onednn_f32_ratio", best.reference / best.one});
  rows.push_back({key + "_two_threads_ratio", threads.ratio()});
  rows.push_back({key + "_two_threads_arithmetic_ratio", machine.ratio()});
  if (counts) rows.push_back({key + "_observed_time_ratio", best.counted / best.one});
}

struct Topic {
  const char* key;
  const char* input;
  const char* accumulation;
  const char* accumulator;  ///< empty: the accumulation's own
};
constexpr Topic kTopics[] = {
    {"matmul_fp16_seq", "binary16", "fp16-rounded", ""},
    {"matmul_fp16_fused", "binary16", "fp16-fused", ""},
    {"matmul_bf16_fp32_seq", "bfloat16", "fp32-fused", ""},
    {"matmul_bf16_seq", "bfloat16", "bf16-rounded", ""},
    {"matmul_fp16_pairwise", "binary16", "fp16-pairwise", ""},
    {"matmul_tc_a100_fp16", "binary16", "a100", ""},
    {"matmul_tc_h100_fp16", "binary16", "h100", ""},
    {"matmul_tc_h100_fp16_fp16", "binary16", "h100", "binary16"},
    {"matmul_tc_h100_e4m3", "e4m3fn", "h100", ""},
    {"matmul_tc_h100_e4m3_promote_128", "e4m3fn", "h100-promote-128", ""},
    {"matmul_tc_b200_e4m3", "e4m3fn", "b200", ""},
};

void integer_rows(Reference& reference, Rows& rows) {
  const RandomStream random(5, "integer-bench");
  std::vector<std::int8_t> a(static_cast<std::size_t>(kSize * kSize));
  std::vector<std::int8_t> b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::int8_t>(random.at(i));
    b[i] = static_cast<std::int8_t>(random.at(i) >> 8U);
  }
  const IntegerMatrix am{kSize, kSize, a};
  const IntegerMatrix bm{kSize, kSize, b};
  const auto body = [&](unsigned threads, bool) {
    if (!matmul_integer(am, bm, {}, threads).ok()) std::abort();
  };
  add_rows("matmul_int8_exact", reference, body, false, rows);
}

}  // namespace

Rows matmul_rows(const Filter& wanted) {
  Rows rows;
  const auto any = [&](const std::string& key) {
    for (const char* suffix : {"_gmac_s", "_vs_onednn_f32_ratio", "_two_threads_ratio", "_two_threads_arithmetic_ratio",
                               "_observed_time_ratio"}) {
      if (wanted(key + suffix)) return true;
    }
    return false;
  };
  std::vector<const Topic*> topics;
  for (const Topic& topic : kTopics) {
    if (any(topic.key)) topics.push_back(&topic);
  }
  const bool integers = any("matmul_int8_exact");
  if (topics.empty() && !integers) return rows;
  Reference reference;
  rows.push_back(
      {"onednn_f32_gmac_s", kBillionMacs / std::min({reference.seconds(), reference.seconds(), reference.seconds()})});
  for (const Topic* topic : topics) {
    const Format& format = builtin_format(topic->input);
    const Accumulation accumulation = find_accumulation(topic->accumulation, format, topic->accumulator).value();
    const std::vector<float> a = operand(format, 1, true);
    const std::vector<float> b = operand(format, 2, false);
    const auto body = [&](unsigned threads, bool observe) {
      const MatmulOptions options{threads, {observe ? kAutomatic : 0, kAutomatic}};
      if (!matmul({kSize, kSize, kSize, a, b, {}, format, format}, accumulation, options).ok()) std::abort();
    };
    add_rows(topic->key, reference, body, true, rows);
  }
  if (integers) integer_rows(reference, rows);
  return rows;
}

}  // namespace plumbline::bench
