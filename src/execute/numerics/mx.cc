#include "execute/numerics/mx.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "core/parallel.h"
#include "execute/numerics/mx_kernel.h"
#include "execute/numerics/round.h"

namespace plumbline::numerics {
namespace {

constexpr std::uint32_t kInfinityBits = 0x7F800000;  // of binary32
constexpr std::uint8_t kNanScale = 0xFF;             // of E8M0
constexpr std::uint8_t kNanE4m3 = 0x7F;

std::uint32_t magnitude_bits(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU; }

std::uint32_t largest_bits(std::span<const float> block) {
  std::uint32_t largest = 0;
  for (const float v : block) largest = std::max(largest, magnitude_bits(v));
  return largest;
}

/// Sign and magnitude to two's complement.
void to_twos_complement(std::uint8_t* codes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t magnitude = codes[i] & 0x7FU;
    codes[i] = (codes[i] & 0x80U) != 0 ? static_cast<std::uint8_t>(256 - magnitude) : magnitude;
  }
}

/// What a block with NaN or Inf counts: its specials; its finite elements are lost in the NaN scale and count as
/// inexact.
void count_nan_block(std::span<const float> block, Counters& counters) {
  for (const float v : block) {
    counters.add(std::isnan(v) ? kNanIn : std::isinf(v) ? kInfinityIn : kInexact);
  }
}

RandomBits bits_of(Rounding rounding, const StochasticKey& key, std::uint64_t index, int count) {
  return rounding == Rounding::sr ? random_bits(key, index, count) : RandomBits{};
}

Encoded encode_nvfp4(float value, float scale, const Nvfp4Spec& spec, std::uint64_t index) {
  static const Format& e2m1 = builtin_format("e2m1");
  Encoded encoded = encode(value / scale, e2m1, spec.rounding, Saturation::on,
                           bits_of(spec.rounding, spec.key, index, spec.random_bits));
  if (value != 0 && value / scale == 0) encoded.flags |= kUnderflowToZero | kInexact;
  return encoded;
}

std::uint8_t quantize_nvfp4_block(std::span<const float> block, float tensor_scale, const Nvfp4Spec& spec,
                                  std::uint64_t first_index, std::uint8_t* codes, Counters& counters) {
  const std::uint32_t largest = largest_bits(block);
  if (largest >= kInfinityBits) {
    count_nan_block(block, counters);
    std::fill_n(codes, block.size(), std::uint8_t{0});
    return kNanE4m3;
  }
  const std::uint8_t code = nvfp4_scale(std::bit_cast<float>(largest), tensor_scale);
  const float scale = static_cast<float>(decode(code, builtin_format("e4m3fn"))) * tensor_scale;
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (scale == 0) {
      counters.add(block[i] != 0 ? kUnderflowToZero | kInexact : 0);
      codes[i] = 0;
      continue;
    }
    const Encoded encoded = encode_nvfp4(block[i], scale, spec, first_index + i);
    counters.add(encoded.flags);
    codes[i] = static_cast<std::uint8_t>(encoded.code);
  }
  return code;
}

Status check_shape(std::size_t size, std::size_t rows, std::size_t columns, std::size_t block, bool pad) {
  if (columns != 0 ? size / columns != rows || size % columns != 0 : size != 0) {
    return make_error("shape-mismatch", {}, fmt::format("{} values do not fill {} x {}", size, rows, columns));
  }
  if (!pad && columns % block != 0) {
    return make_error("bad-value", {}, fmt::format("blocks of {} do not divide {} columns", block, columns),
                      "ask for padding with zeros, or reshape the tensor");
  }
  return Done{};
}

/// Where one block lies: `element` counts the tensor's own elements, `slot` its padded codes.
struct BlockPlace {
  std::size_t element;
  std::size_t slot;
  std::size_t length;
};
/// The blocks of a tensor [rows, columns]; without padding rows run together.
class Blocks {
 public:
  Blocks(std::size_t rows, std::size_t columns, std::size_t block)
      : columns_(columns), block_(block), per_row_((columns + block - 1) / block), count_(rows * per_row_) {}
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t padded_columns() const { return per_row_ * block_; }
  [[nodiscard]] BlockPlace at(std::size_t index) const {
    const std::size_t row = index / per_row_;
    const std::size_t column = index % per_row_ * block_;
    return {row * columns_ + column, index * block_, std::min(block_, columns_ - column)};
  }

 private:
  std::size_t columns_;
  std::size_t block_;
  std::size_t per_row_;
  std::size_t count_;
};

/// Runs of full, adjacent blocks inside one key block go to `kernel(first, count)`, all others to `scalar(block)`.
void for_runs(const Blocks& blocks, std::size_t begin, std::size_t end, std::size_t block_size,
              std::uint64_t first_element, const std::function<void(std::size_t, std::size_t)>& kernel,
              const std::function<void(std::size_t)>& scalar) {
  const auto key_block = [&](std::size_t element) { return (first_element + element) >> kKeyBlockBits; };
  for (std::size_t b = begin; b < end;) {
    const BlockPlace first = blocks.at(b);
    std::size_t length = 0;
    while (b + length < end) {
      const BlockPlace place = blocks.at(b + length);
      const bool adjacent = place.element == first.element + length * block_size && place.length == block_size;
      if (!adjacent || key_block(place.element + block_size - 1) != key_block(first.element)) break;
      ++length;
    }
    if (length == 0) {
      scalar(b++);
    } else {
      kernel(b, length);
      b += length;
    }
  }
}

/// Both block formats: parallel over fixed runs of blocks, scalar and vector paths by for_runs.
template <class Kernel, class Scalar>
Counters quantize_blocks(const Blocks& blocks, std::size_t block_size, const StochasticKey& key, unsigned threads,
                         const Kernel& kernel, const Scalar& scalar) {
  const std::size_t per_chunk = kChunkElements / block_size;
  const std::size_t chunks = (blocks.count() + per_chunk - 1) / per_chunk;
  std::vector<Counters> parts(chunks);
  parallel_for(chunks, threads, [&](std::size_t chunk) {
    Counters& counters = parts[chunk];
    for_runs(
        blocks, chunk * per_chunk, std::min(blocks.count(), (chunk + 1) * per_chunk), block_size, key.first_element,
        [&](std::size_t first, std::size_t count) { kernel(first, count, counters); },
        [&](std::size_t block) { scalar(block, counters); });
  });
  Counters sum;
  for (const Counters& part : parts) sum += part;
  return sum;
}

/// Carries a scalar fallback through the kernels' plain function pointer.
template <class Scalar>
struct Fallback {
  const Scalar& scalar;
  std::size_t first;
  Counters& counters;
  static void call(void* context, std::size_t block) {
    auto& self = *static_cast<Fallback*>(context);
    self.scalar(self.first + block, self.counters);
  }
};

RoundParameters at_element(RoundParameters parameters, const StochasticKey& key, std::size_t element) {
  parameters.key = block_key(key, (key.first_element + element) >> kKeyBlockBits);
  parameters.first_offset = static_cast<std::uint32_t>((key.first_element + element) % kChunkElements);
  return parameters;
}

}  // namespace

std::string_view to_string(ScaleRule rule) { return rule == ScaleRule::floor ? "floor" : "rceil"; }

Result<ScaleRule> find_scale_rule(std::string_view name, const Span& span) {
  if (name == "floor") return ScaleRule::floor;
  if (name == "rceil") return ScaleRule::rceil;
  return make_error("unknown-name", span, fmt::format("no scale rule is called '{}'", name),
                    suggest(name, {"floor", "rceil"}));
}

Result<MxElement> make_mx_element(const Format& format, const Span& span) {
  if (!kernel_supports(format) || format.bits() > 8) {
    return make_error("unsupported", span, fmt::format("'{}' cannot be the element of a block format", format.name),
                      "elements are signed formats of at most 8 bits, or int8");
  }
  return MxElement{format, false};
}

Result<MxElement> find_mx_element(std::string_view name, const Span& span) {
  if (name == "int8") {
    // Magnitudes k 2^-6, k <= 127: below the least normal, 2, of a row without exponent bits.
    return MxElement{{.name = "int8", .exponent_bits = 0, .fraction_bits = 7, .bias = 0}, true};
  }
  PL_TRY(const Format format, find_format(name, span));
  return make_mx_element(format, span);
}

ScaleParameters make_scale_parameters(const MxElement& element, ScaleRule rule) {
  const double largest = element.format.max_value();
  const int exponent = element.format.max_exponent();
  return {rule, exponent, static_cast<std::uint32_t>(std::ldexp(largest, 23 - exponent)), element.is_integer};
}

std::uint8_t scale_of_largest(std::uint32_t largest_bits, const ScaleParameters& parameters) {
  if (largest_bits >= kInfinityBits) return kNanScale;
  if (largest_bits == 0) return 0;
  int exponent = static_cast<int>(largest_bits >> 23U) - 127;
  std::uint32_t significand = (largest_bits & 0x7FFFFFU) | 0x800000U;
  if (largest_bits < 0x800000U) {  // a binary32 subnormal: k 2^-149
    const int lift = std::countl_zero(largest_bits) - 8;
    significand = largest_bits << lift;
    exponent = -126 - lift;
  }
  exponent -= parameters.max_exponent;
  if (parameters.rule == ScaleRule::rceil && significand > parameters.max_significand) ++exponent;
  return static_cast<std::uint8_t>(std::clamp(exponent, -127, 127) + 127);
}

std::uint8_t mx_scale(std::uint32_t largest_bits, const MxElement& element, ScaleRule rule) {
  return scale_of_largest(largest_bits, make_scale_parameters(element, rule));
}

std::uint8_t quantize_mx_block(std::span<const float> block, const MxSpec& spec, std::uint64_t first_index,
                               std::uint8_t* codes, Counters& counters) {
  PL_CHECK(block.size() <= kMxBlock);
  const std::uint8_t scale = mx_scale(largest_bits(block), spec.element, spec.rule);
  if (scale == kNanScale) {
    count_nan_block(block, counters);
    std::fill_n(codes, block.size(), std::uint8_t{0});
    return scale;
  }
  for (std::size_t i = 0; i < block.size(); ++i) {
    Encoded encoded = encode(std::ldexp(static_cast<double>(block[i]), 127 - scale), spec.element.format, spec.rounding,
                             Saturation::on, bits_of(spec.rounding, spec.key, first_index + i, spec.random_bits));
    if (spec.element.is_integer) encoded.flags &= static_cast<std::uint16_t>(~kSubnormal);
    counters.add(encoded.flags);
    codes[i] = static_cast<std::uint8_t>(encoded.code);
  }
  if (spec.element.is_integer) to_twos_complement(codes, block.size());
  return scale;
}

Result<MxTensor> quantize_mx(std::span<const float> values, std::size_t rows, std::size_t columns, const MxSpec& spec,
                             bool pad, unsigned threads) {
  PL_TRY_STATUS(check_shape(values.size(), rows, columns, kMxBlock, pad));
  const Blocks blocks(rows, columns, kMxBlock);
  MxTensor tensor;
  tensor.rows = rows;
  tensor.columns = columns;
  tensor.padded_columns = blocks.padded_columns();
  tensor.scales.resize(blocks.count());
  tensor.codes = ByteBuffer(blocks.count() * kMxBlock);
  const RoundSpec round_spec{spec.element.format, spec.rounding, Saturation::on, spec.random_bits, spec.key};
  const RoundParameters parameters = make_parameters(round_spec, RoundOutput::byte_codes);
  const ScaleParameters scale = make_scale_parameters(spec.element, spec.rule);
  const auto scalar = [&](std::size_t block, Counters& counters) {
    const BlockPlace place = blocks.at(block);
    std::fill_n(tensor.codes.data() + place.slot + place.length, kMxBlock - place.length, std::uint8_t{0});
    tensor.scales[block] = quantize_mx_block(values.subspan(place.element, place.length), spec, place.element,
                                             tensor.codes.data() + place.slot, counters);
  };
  const auto kernel = [&](std::size_t first, std::size_t count, Counters& counters) {
    const BlockPlace place = blocks.at(first);
    std::uint8_t* codes = tensor.codes.data() + place.slot;
    Counters own;
    Counters scalar_part;
    Fallback<decltype(scalar)> fallback{scalar, first, scalar_part};
    run_mx_kernel({values.data() + place.element, count, tensor.scales.data() + first, codes},
                  at_element(parameters, spec.key, place.element), scale, &Fallback<decltype(scalar)>::call, &fallback,
                  own);
    if (spec.element.is_integer) own.subnormal = 0;
    counters += own;
    counters += scalar_part;
  };
  tensor.counters = quantize_blocks(blocks, kMxBlock, spec.key, threads, kernel, scalar);
  tensor.nan_blocks = static_cast<std::uint64_t>(std::count(tensor.scales.begin(), tensor.scales.end(), kNanScale));
  return tensor;
}

std::vector<float> decode_mx(const MxTensor& tensor, const MxElement& element) {
  std::vector<float> values(tensor.rows * tensor.columns);
  for (std::size_t row = 0; row < tensor.rows; ++row) {
    for (std::size_t column = 0; column < tensor.columns; ++column) {
      const std::size_t slot = row * tensor.padded_columns + column;
      const std::uint8_t scale = tensor.scales[slot / kMxBlock];
      const std::uint8_t code = tensor.codes[slot];
      const double unscaled =
          element.is_integer ? static_cast<std::int8_t>(code) * 0x1p-6 : decode(code, element.format);
      values[row * tensor.columns + column] =
          scale == kNanScale ? std::nanf("") : static_cast<float>(std::ldexp(unscaled, scale - 127));
    }
  }
  return values;
}

std::uint8_t nvfp4_scale(float largest, float tensor_scale) {
  static const Format& e4m3 = builtin_format("e4m3fn");
  if (largest == 0) return kNvfp4One;
  return static_cast<std::uint8_t>(encode(largest / (6.0F * tensor_scale), e4m3, Rounding::rne, Saturation::on).code);
}

Result<Nvfp4Tensor> quantize_nvfp4(std::span<const float> values, std::size_t rows, std::size_t columns,
                                   const Nvfp4Spec& spec, bool pad, unsigned threads) {
  PL_TRY_STATUS(check_shape(values.size(), rows, columns, kNvfp4Block, pad));
  const Blocks blocks(rows, columns, kNvfp4Block);
  Nvfp4Tensor tensor;
  tensor.rows = rows;
  tensor.columns = columns;
  tensor.padded_columns = blocks.padded_columns();
  tensor.scales.resize(blocks.count());
  tensor.codes = ByteBuffer(blocks.count() * kNvfp4Block);
  const float largest = std::bit_cast<float>(largest_finite_bits(values.data(), values.size()));
  tensor.tensor_scale = largest / 2688.0F;  // 448 * 6: largest E4M3 scale times largest E2M1 element
  if (tensor.tensor_scale == 0) tensor.tensor_scale = 1;
  const RoundSpec round_spec{builtin_format("e2m1"), spec.rounding, Saturation::on, spec.random_bits, spec.key};
  const RoundParameters parameters = make_parameters(round_spec, RoundOutput::byte_codes);
  const RoundParameters scale_parameters =
      make_parameters({builtin_format("e4m3fn"), Rounding::rne, Saturation::on}, RoundOutput::byte_codes);
  const auto scalar = [&](std::size_t block, Counters& counters) {
    const BlockPlace place = blocks.at(block);
    std::fill_n(tensor.codes.data() + place.slot + place.length, kNvfp4Block - place.length, std::uint8_t{0});
    tensor.scales[block] = quantize_nvfp4_block(values.subspan(place.element, place.length), tensor.tensor_scale, spec,
                                                place.element, tensor.codes.data() + place.slot, counters);
  };
  const auto kernel = [&](std::size_t first, std::size_t count, Counters& counters) {
    const BlockPlace place = blocks.at(first);
    Fallback<decltype(scalar)> fallback{scalar, first, counters};
    run_nvfp4_kernel(
        {values.data() + place.element, count, tensor.scales.data() + first, tensor.codes.data() + place.slot},
        tensor.tensor_scale, at_element(parameters, spec.key, place.element), scale_parameters,
        &Fallback<decltype(scalar)>::call, &fallback, counters);
  };
  tensor.counters = quantize_blocks(blocks, kNvfp4Block, spec.key, threads, kernel, scalar);
  tensor.nan_blocks = static_cast<std::uint64_t>(std::count(tensor.scales.begin(), tensor.scales.end(), kNanE4m3));
  return tensor;
}

std::vector<float> decode_nvfp4(const Nvfp4Tensor& tensor) {
  static const Format& e4m3 = builtin_format("e4m3fn");
  static const Format& e2m1 = builtin_format("e2m1");
  std::vector<float> values(tensor.rows * tensor.columns);
  for (std::size_t row = 0; row < tensor.rows; ++row) {
    for (std::size_t column = 0; column < tensor.columns; ++column) {
      const std::size_t slot = row * tensor.padded_columns + column;
      const float scale = static_cast<float>(decode(tensor.scales[slot / kNvfp4Block], e4m3)) * tensor.tensor_scale;
      values[row * tensor.columns + column] = static_cast<float>(decode(tensor.codes[slot], e2m1)) * scale;
    }
  }
  return values;
}

double mx_bits_per_element(const MxElement& element) { return element.format.bits() + 8.0 / kMxBlock; }

}  // namespace plumbline::numerics
