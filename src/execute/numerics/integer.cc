#include "execute/numerics/integer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "execute/numerics/integer_kernel.h"
#include "execute/numerics/round.h"

namespace plumbline::numerics {
namespace {

constexpr float kLeastScale = 0x1p-126F;  // the least normal binary32: quotients keep their precision

/// How a tensor divides into runs of elements with one scale.
struct Layout {
  std::size_t rows;
  std::size_t columns;
  std::size_t run;      ///< elements of a row with one scale
  std::size_t per_row;  ///< runs of a row
  Sharing sharing;
  [[nodiscard]] std::size_t scale_count() const { return sharing == Sharing::tensor ? 1 : rows * per_row; }
  [[nodiscard]] std::size_t scale_index(std::size_t run_index) const {
    return sharing == Sharing::tensor ? 0 : run_index;
  }
  [[nodiscard]] std::size_t runs() const { return rows * per_row; }
  [[nodiscard]] std::size_t begin(std::size_t run_index) const {
    return run_index / per_row * columns + run_index % per_row * run;
  }
  [[nodiscard]] std::size_t length(std::size_t run_index) const {
    return std::min(run, columns - run_index % per_row * run);
  }
};

Result<Layout> make_layout(std::size_t size, std::size_t rows, std::size_t columns, const IntegerSpec& spec) {
  if (columns != 0 ? size / columns != rows || size % columns != 0 : size != 0) {
    return make_error("shape-mismatch", {}, fmt::format("{} values do not fill {} x {}", size, rows, columns));
  }
  if (spec.sharing == Sharing::tensor) {  // cut only to share the work
    return Layout{1, size, kChunkElements, (size + kChunkElements - 1) / kChunkElements, spec.sharing};
  }
  if (spec.sharing == Sharing::channel) return Layout{rows, columns, columns, columns == 0 ? 0U : 1U, spec.sharing};
  if (spec.group == 0) return make_error("bad-value", {}, "groups have 0 elements", "usual groups have 32 to 128");
  if (columns % spec.group != 0 && !spec.pad) {
    return make_error("bad-value", {}, fmt::format("groups of {} do not divide {} columns", spec.group, columns),
                      "ask for padding with zeros, or choose a group that divides them");
  }
  return Layout{rows, columns, spec.group, (columns + spec.group - 1) / spec.group, spec.sharing};
}

struct ScaleAndZero {
  float scale;
  std::int32_t zero;
};
ScaleAndZero scale_of(Extremes extremes, const IntegerSpec& spec) {
  const auto high = static_cast<float>(spec.range.high);
  if (!spec.affine) {
    const float largest = std::max(-extremes.least, extremes.greatest);
    return {largest == 0 ? 1.0F : std::max(largest / high, kLeastScale), 0};
  }
  const auto low = static_cast<float>(spec.range.low);
  // Halves first: the span of two finite binary32 values may exceed binary32.
  const float half_span = extremes.greatest / 2 - extremes.least / 2;
  if (half_span == 0) return {1.0F, static_cast<std::int32_t>(std::clamp(0, spec.range.low, spec.range.high))};
  const float scale = std::max(half_span / (high - low) * 2, kLeastScale);
  const float zero = std::clamp(std::nearbyint(low - extremes.least / scale), low, high);
  return {scale, static_cast<std::int32_t>(zero)};
}

Status check_scales(const IntegerScales& scales, const Layout& layout, const IntegerRange& range) {
  const std::size_t count = layout.scale_count();
  if (scales.scale.size() != count || scales.zero.size() != count) {
    return make_error("bad-value", {},
                      fmt::format("{} scales and {} zero points where {} are needed", scales.scale.size(),
                                  scales.zero.size(), count));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!(scales.scale[i] > 0) || !std::isfinite(scales.scale[i])) {
      return make_error("bad-value", {}, fmt::format("scale {} is {}", i, scales.scale[i]),
                        "scales are positive and finite");
    }
    if (scales.zero[i] < range.low || scales.zero[i] > range.high) {
      return make_error("bad-value", {},
                        fmt::format("zero point {} is {}, outside {} to {}", i, scales.zero[i], range.low, range.high));
    }
  }
  return Done{};
}

/// `quotient` as an integer by the scalar rule.
double round_quotient(double quotient, Rounding rounding, RandomBits random) {
  const double magnitude = std::fabs(quotient);
  const double floor = std::floor(magnitude);
  const double fraction = magnitude - floor;
  bool away = false;
  switch (rounding) {
    case Rounding::rne:
      away = fraction > 0.5 || (fraction == 0.5 && std::fmod(floor, 2) != 0);
      break;
    case Rounding::rtz:
      break;
    case Rounding::ru:
      away = fraction != 0 && quotient > 0;
      break;
    case Rounding::rd:
      away = fraction != 0 && quotient < 0;
      break;
    case Rounding::rna:
      away = fraction >= 0.5;
      break;
    case Rounding::sr: {
      const double drawn = std::floor(std::ldexp(fraction, random.count));
      away = drawn + random.value >= std::ldexp(1.0, random.count);
      break;
    }
  }
  return std::copysign(floor + (away ? 1 : 0), quotient);
}

}  // namespace

const std::vector<IntegerRange>& integer_ranges() {
  static const std::vector<IntegerRange> ranges = {
#define PLUMBLINE_INTEGER_RANGE(name, low, high) {name, low, high},
#include "execute/numerics/integer_ranges.inc"
#undef PLUMBLINE_INTEGER_RANGE
  };
  return ranges;
}

Result<IntegerRange> find_integer_range(std::string_view name, const Span& span) {
  std::vector<std::string> names;
  for (const IntegerRange& range : integer_ranges()) {
    if (range.name == name) return range;
    names.push_back(range.name);
  }
  return make_error("unknown-name", span, fmt::format("no integer range is called '{}'", name),
                    fmt::format("one of: {}", fmt::join(names, ", ")));
}

std::string_view to_string(Sharing sharing) {
  constexpr std::string_view kNames[] = {"tensor", "channel", "group"};
  return kNames[static_cast<int>(sharing)];
}

Result<IntegerScales> choose_scales(std::span<const float> values, std::size_t rows, std::size_t columns,
                                    const IntegerSpec& spec, unsigned threads) {
  PL_TRY(const Layout layout, make_layout(values.size(), rows, columns, spec));
  if (spec.range.low > 0 || spec.range.high <= 0) {
    return make_error("bad-value", {}, fmt::format("range '{}' does not hold zero", spec.range.name));
  }
  std::vector<Extremes> extremes(layout.runs());
  parallel_for(layout.runs(), threads, [&](std::size_t i) {
    extremes[i] = finite_extremes(values.data() + layout.begin(i), layout.length(i));
  });
  if (spec.sharing == Sharing::tensor) {
    Extremes all{0, 0};
    for (const Extremes& e : extremes) all = {std::min(all.least, e.least), std::max(all.greatest, e.greatest)};
    extremes.assign(1, all);
  }
  IntegerScales scales;
  for (const Extremes& e : extremes) {
    const ScaleAndZero chosen = scale_of(e, spec);
    scales.scale.push_back(chosen.scale);
    scales.zero.push_back(chosen.zero);
  }
  return scales;
}

Result<IntegerTensor> quantize_integer(std::span<const float> values, std::size_t rows, std::size_t columns,
                                       const IntegerSpec& spec, const IntegerScales& scales, unsigned threads) {
  PL_TRY(const Layout layout, make_layout(values.size(), rows, columns, spec));
  PL_TRY_STATUS(check_scales(scales, layout, spec.range));
  PL_CHECK(spec.range.low >= -128 && spec.range.high <= 255 && spec.range.high - spec.range.low <= 255);
  PL_CHECK(spec.rounding != Rounding::sr || (spec.random_bits >= 1 && spec.random_bits <= 31));
  IntegerTensor tensor;
  tensor.rows = rows;
  tensor.columns = columns;
  tensor.run = spec.sharing == Sharing::tensor ? columns : layout.run;
  tensor.codes.resize(values.size());
  tensor.scales = scales;
  // Runs are short for groups and long for tensors: work is shared by about kChunkElements either way.
  const std::size_t per_chunk = layout.run == 0 ? 1 : std::max<std::size_t>(1, kChunkElements / layout.run);
  const std::size_t chunks = (layout.runs() + per_chunk - 1) / per_chunk;
  std::vector<Counters> parts(chunks);
  parallel_for(chunks, threads, [&](std::size_t chunk) {
    const std::size_t last = std::min(layout.runs(), (chunk + 1) * per_chunk);
    for (std::size_t r = chunk * per_chunk; r < last; ++r) {
      const std::size_t scale = layout.scale_index(r);
      for (std::size_t done = 0; done < layout.length(r);) {
        const std::size_t at = layout.begin(r) + done;
        const std::uint64_t element = spec.key.first_element + at;
        const std::size_t count =
            std::min<std::size_t>(layout.length(r) - done, kChunkElements - element % kChunkElements);
        run_integer_kernel(
            {values.data() + at, count, tensor.codes.data() + at, scales.scale[scale], scales.zero[scale],
             spec.range.low, spec.range.high, spec.rounding, spec.random_bits,
             block_key(spec.key, element >> kKeyBlockBits), static_cast<std::uint32_t>(element % kChunkElements)},
            parts[chunk]);
        done += count;
      }
    }
  });
  for (const Counters& part : parts) tensor.counters += part;
  return tensor;
}

IntegerCode encode_integer(float value, float scale, std::int32_t zero, const IntegerRange& range, Rounding rounding,
                           RandomBits random) {
  if (std::isnan(value)) return {zero, kNanIn | kNanLost};
  if (std::isinf(value)) return {value > 0 ? range.high : range.low, kInfinityIn | kSaturated};
  const float quotient = value / scale;
  if (std::isinf(quotient)) return {value > 0 ? range.high : range.low, kOverflow | kSaturated | kInexact};
  const double rounded = round_quotient(quotient, rounding, random);
  if (rounded < range.low - zero) return {range.low, kOverflow | kSaturated | kInexact};
  if (rounded > range.high - zero) return {range.high, kOverflow | kSaturated | kInexact};
  std::uint16_t flags = rounded != quotient ? kInexact : 0;
  if (rounded == 0 && value != 0) flags |= kUnderflowToZero | kInexact;
  return {static_cast<std::int32_t>(rounded) + zero, flags};
}

std::vector<float> decode_integer(const IntegerTensor& tensor, const IntegerRange& range) {
  std::vector<float> values(tensor.codes.size());
  const std::size_t per_row = tensor.run == 0 ? 0 : (tensor.columns + tensor.run - 1) / tensor.run;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t run = i / tensor.columns * per_row + i % tensor.columns / tensor.run;
    const std::size_t scale = tensor.scales.scale.size() == 1 ? 0 : run;
    const std::int32_t code = range.low < 0 ? static_cast<std::int8_t>(tensor.codes[i]) : tensor.codes[i];
    values[i] = static_cast<float>(code - tensor.scales.zero[scale]) * tensor.scales.scale[scale];
  }
  return values;
}

double integer_bits_per_element(const IntegerSpec& spec, std::size_t rows, std::size_t columns) {
  const int code_bits = spec.range.high - spec.range.low <= 15 ? 4 : 8;
  const double shared = spec.sharing == Sharing::tensor    ? static_cast<double>(rows) * static_cast<double>(columns)
                        : spec.sharing == Sharing::channel ? static_cast<double>(columns)
                                                           : static_cast<double>(spec.group);
  return code_bits + (32 + (spec.affine ? 8 : 0)) / shared;
}

}  // namespace plumbline::numerics
