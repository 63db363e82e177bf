#include "execute/numerics/verify_tensor_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "execute/numerics/matmul.h"
#include "execute/numerics/tensor_core.h"

namespace plumbline::numerics {
namespace {

/// Names of formats as the file writes them.
struct WrittenName {
  std::string_view written;
  std::string_view format;
};
constexpr WrittenName kNames[] = {{"fp16", "binary16"}, {"bf16", "bfloat16"}, {"tf32", "tf32"},
                                  {"fp32", "binary32"}, {"E4M3", "e4m3fn"},   {"E5M2", "e5m2"}};

/// The file's own limit on a block, so that a wrong number cannot ask for the machine's memory.
constexpr std::size_t kMaxOperands = 65536;

std::string_view format_name(const nlohmann::json& written) {
  if (!written.is_string()) return {};
  for (const WrittenName& name : kNames) {
    if (name.written == written.get_ref<const std::string&>()) return name.format;
  }
  return {};
}

bool read_float(const nlohmann::json& written, float& value) {
  if (!written.is_string()) return false;
  const auto& text = written.get_ref<const std::string&>();
  std::uint32_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (text.size() != 8 || error != std::errc{} || end != text.data() + text.size()) return false;
  value = std::bit_cast<float>(bits);
  return true;
}

bool read_floats(const nlohmann::json& written, std::vector<float>& values) {
  if (!written.is_array() || written.empty() || written.size() > kMaxOperands) return false;
  values.resize(written.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!read_float(written[i], values[i])) return false;
  }
  return true;
}

bool read_int(const nlohmann::json& set, const char* key, int& value) {
  const auto found = set.find(key);
  if (found == set.end() || !found->is_number_integer()) return false;
  const auto number = found->get<std::int64_t>();
  if (number < 0 || number > 1024) return false;
  value = static_cast<int>(number);
  return true;
}

/// The set's numbers as a core; an error text otherwise.
std::string read_core(const nlohmann::json& set, TensorCore& core) {
  core.input = format_name(set.value("in", nlohmann::json()));
  core.output = format_name(set.value("out", nlohmann::json()));
  if (core.input.empty() || core.output.empty()) return "unknown input or output format";
  if (!read_int(set, "block", core.block) || !read_int(set, "fraction_bits", core.fraction_bits) ||
      !read_int(set, "result_bits", core.result_bits)) {
    return "block, fraction_bits or result_bits is missing or no small number";
  }
  const nlohmann::json rounding = set.value("result_rounding", nlohmann::json());
  if (rounding == "truncate") {
    core.final_rounding = FinalRounding::truncate;
  } else if (rounding == "nearest-even") {
    core.final_rounding = FinalRounding::nearest_even;
  } else {
    return "unknown result_rounding";
  }
  core.addend = Addend::in_block;
  const nlohmann::json model = set.value("model", nlohmann::json());
  if (model.is_string()) {
    std::string device = model.get<std::string>();
    std::transform(device.begin(), device.end(), device.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const TensorCore& row : tensor_core_rows()) {
      if (row.device != device || row.input != core.input || row.output != core.output) continue;
      if (row.evidence != CoreEvidence::unresolved) core.addend = row.addend;
    }
  }
  const Format& format = builtin_format(core.input);
  const Status checked = check_tensor_core(core, format, format);
  return checked.ok() ? std::string() : checked.errors()[0].message;
}

bool same(float got, float want) {
  if (std::isnan(want)) return std::isnan(got);
  return std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want);
}

/// Empty when the vector passes.
std::string judge(const TensorCore& core, const nlohmann::json& vector) {
  std::vector<float> a;
  std::vector<float> b;
  float c = 0;
  float want = 0;
  if (!vector.is_object()) return "not an object";
  const auto field = [&](const char* key) { return vector.value(key, nlohmann::json()); };
  if (!read_floats(field("a"), a)) return "'a' is missing or no list of binary32 bits";
  if (!read_floats(field("b"), b)) return "'b' is missing or no list of binary32 bits";
  if (a.size() != b.size()) return "'a' and 'b' differ in length";
  if (!read_float(field("c"), c)) return "'c' is missing or no binary32 bits";
  if (!read_float(field("d"), want)) return "'d', the expected result, is missing or no binary32 bits";
  const Format& format = builtin_format(core.input);
  const float scalar = chain_multiply_add(core, format, format, a, b, c);
  if (!same(scalar, want)) {
    return fmt::format("scalar rule gives {:08x}, expected {:08x}", std::bit_cast<std::uint32_t>(scalar),
                       std::bit_cast<std::uint32_t>(want));
  }
  Accumulation accumulation;
  accumulation.reduction = Reduction::tensor_core;
  accumulation.core = core;
  accumulation.accumulator.format = builtin_format(core.output);
  const std::vector<float> start{c};
  const auto product = matmul({1, 1, static_cast<std::int64_t>(a.size()), a, b, start, format, format}, accumulation);
  if (!product.ok()) return product.errors()[0].message;
  if (!same(product->values[0], want)) {
    return fmt::format("kernel gives {:08x}, expected {:08x}", std::bit_cast<std::uint32_t>(product->values[0]),
                       std::bit_cast<std::uint32_t>(want));
  }
  return {};
}

}  // namespace

bool is_tensor_core_vectors(const nlohmann::json& document) {
  if (!document.is_object()) return false;
  const auto sets = document.find("sets");
  if (sets == document.end() || !sets->is_array() || sets->empty()) return false;
  return std::any_of(sets->begin(), sets->end(), [](const nlohmann::json& set) {
    return set.is_object() && set.contains("vectors") && set.contains("fraction_bits");
  });
}

TensorCoreVerdict verify_tensor_core(const nlohmann::json& document) {
  TensorCoreVerdict verdict;
  const auto fail = [&](std::string line) {
    verdict.failed += 1;
    verdict.lines.push_back(std::move(line));
  };
  if (!is_tensor_core_vectors(document)) {
    fail("not a file of tensor-core vectors");
    return verdict;
  }
  std::size_t index = 0;
  for (const nlohmann::json& set : document["sets"]) {
    const std::string where = fmt::format("set {}", index++);
    if (!set.is_object()) {
      fail(where + ": not an object");
      continue;
    }
    TensorCore core;
    const std::string trouble = read_core(set, core);
    const nlohmann::json vectors = set.value("vectors", nlohmann::json());
    if (!trouble.empty() || !vectors.is_array() || vectors.empty()) {
      fail(fmt::format("{}: {}", where, trouble.empty() ? "'vectors' is missing or empty: nothing to judge" : trouble));
      continue;
    }
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      const std::string reason = judge(core, vectors[i]);
      if (reason.empty()) {
        verdict.passed += 1;
      } else {
        fail(fmt::format("{} ({} {} to {}), vector {}: {}", where, set.value("model", nlohmann::json("?")).dump(),
                         core.input, core.output, i, reason));
      }
    }
  }
  return verdict;
}

}  // namespace plumbline::numerics
