#include "execute/numerics/round.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/parallel.h"
#include "execute/numerics/round_kernel.h"

namespace plumbline::numerics {
namespace {

void store_code(void* codes, std::size_t index, int bytes, std::uint32_t code) {
  if (bytes == 1) {
    static_cast<std::uint8_t*>(codes)[index] = static_cast<std::uint8_t>(code);
  } else if (bytes == 2) {
    static_cast<std::uint16_t*>(codes)[index] = static_cast<std::uint16_t>(code);
  } else {
    static_cast<std::uint32_t*>(codes)[index] = code;
  }
}

std::uint32_t load_code(const void* codes, std::size_t index, int bytes) {
  if (bytes == 1) return static_cast<const std::uint8_t*>(codes)[index];
  if (bytes == 2) return static_cast<const std::uint16_t*>(codes)[index];
  return static_cast<const std::uint32_t*>(codes)[index];
}

RoundOutput code_output(const Format& format) {
  if (format.code_bytes() == 1) return RoundOutput::byte_codes;
  return format.code_bytes() == 2 ? RoundOutput::half_codes : RoundOutput::word_codes;
}

Encoded encode_element(float value, const RoundSpec& spec, std::size_t index) {
  const RandomBits random =
      spec.rounding == Rounding::sr ? random_bits(spec.key, index, spec.random_bits) : RandomBits{};
  return encode(value, spec.format, spec.rounding, spec.saturation, random);
}

/// A run of elements inside one key block.
struct Piece {
  std::size_t begin;
  std::size_t count;
};
/// Pieces end where key blocks end, so that their borders depend on the tensor's indices alone.
std::vector<Piece> split(std::size_t count, std::uint64_t first_element) {
  std::vector<Piece> pieces;
  for (std::size_t begin = 0; begin < count;) {
    const std::size_t offset = (first_element + begin) % kChunkElements;
    const std::size_t length = std::min(count - begin, kChunkElements - offset);
    pieces.push_back({begin, length});
    begin += length;
  }
  return pieces;
}

/// Elements of a tensor whose float32 values no last-level cache of today's servers keeps for the next reader: 32 MiB.
constexpr std::size_t kPastCaches = std::size_t{8} << 20U;

Counters run_pieces(std::span<const float> input, const RoundSpec& spec, RoundOutput output, std::byte* bytes,
                    std::size_t element_bytes, unsigned threads) {
  RoundParameters shared = make_parameters(spec, output);
  shared.past_caches = input.size() >= kPastCaches;
  const std::vector<Piece> pieces = split(input.size(), spec.key.first_element);
  std::vector<Counters> counters(pieces.size());
  parallel_for(pieces.size(), threads, [&](std::size_t i) {
    RoundParameters parameters = shared;
    const std::uint64_t element = spec.key.first_element + pieces[i].begin;
    parameters.key = block_key(spec.key, element >> kKeyBlockBits);
    parameters.first_offset = static_cast<std::uint32_t>(element % kChunkElements);
    run_round_kernel(input.data() + pieces[i].begin, pieces[i].count, parameters,
                     bytes + pieces[i].begin * element_bytes, counters[i]);
  });
  Counters sum;
  for (const Counters& c : counters) sum += c;
  return sum;
}

}  // namespace

bool kernel_supports(const Format& format) { return format.is_signed && format.has_zero; }

RoundParameters make_parameters(const RoundSpec& spec, RoundOutput output) {
  const Format& format = spec.format;
  PL_CHECK(kernel_supports(format));
  if (spec.rounding == Rounding::sr) PL_CHECK(spec.random_bits >= 1 && spec.random_bits <= 31);
  const bool values = output == RoundOutput::values;
  RoundParameters p{};
  p.rounding = spec.rounding;
  p.output = output;
  p.fraction_bits = format.fraction_bits;
  p.least_exponent = 127 + format.min_normal_exponent();
  p.max_code = format.max_code();
  p.max_value_bits = std::bit_cast<std::uint32_t>(static_cast<float>(format.max_value()));
  p.sign_bit = values ? 0x80000000U : format.sign_bit();
  p.sign_shift = values ? 0 : 32 - format.bits();
  p.negative_zero = format.has_negative_zero();
  // The scalar rule itself says what the special cases give: one statement of the policy, not two.
  const double huge = 0x1p200;  // beyond every format, finite
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int negative = 0; negative < 2; ++negative) {
    const double sign = negative != 0 ? -1.0 : 1.0;
    const auto judge = [&](double value) {
      return encode(std::copysign(value, sign), format, spec.rounding, spec.saturation, {0, spec.random_bits});
    };
    const auto result = [&](Encoded encoded) {
      return values ? std::bit_cast<std::uint32_t>(static_cast<float>(decode(encoded.code, format))) : encoded.code;
    };
    p.overflow_code[negative] = result(judge(huge));
    p.overflow_saturates[negative] = (judge(huge).flags & kSaturated) != 0;
    p.infinity_result[negative] = result(judge(infinity));
    p.infinity_saturates = (judge(infinity).flags & kSaturated) != 0;
    p.nan_result[negative] = result(judge(nan));
  }
  p.nan_is_lost = !format.has_nan();
  const int cap_exponent = 127 + format.max_exponent() + 2;
  const bool magic = format.fraction_bits >= 1 && format.fraction_bits <= 22 &&
                     cap_exponent + 23 - format.fraction_bits <= 254 &&
                     p.least_exponent + 23 - format.fraction_bits <= 254;
  p.magnitude_cap = magic ? static_cast<std::uint32_t>(cap_exponent) << 23 : 0;
  p.random_bits = spec.random_bits;
  return p;
}

Counters round_to_codes(std::span<const float> input, const RoundSpec& spec, void* codes, unsigned threads) {
  if (!kernel_supports(spec.format)) return round_to_codes_scalar(input, spec, codes);
  return run_pieces(input, spec, code_output(spec.format), static_cast<std::byte*>(codes),
                    static_cast<std::size_t>(spec.format.code_bytes()), threads);
}

Counters round_to_values(std::span<const float> input, const RoundSpec& spec, std::span<float> values,
                         unsigned threads) {
  PL_CHECK(values.size() == input.size());
  if (kernel_supports(spec.format)) {
    return run_pieces(input, spec, RoundOutput::values, reinterpret_cast<std::byte*>(values.data()), sizeof(float),
                      threads);
  }
  Counters counters;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const Encoded encoded = encode_element(input[i], spec, i);
    counters.add(encoded.flags);
    values[i] = static_cast<float>(decode(encoded.code, spec.format));
  }
  return counters;
}

std::vector<Counters> round_by_channel(std::span<const float> input, ChannelShape shape, const RoundSpec& spec,
                                       std::span<float> values, unsigned threads) {
  PL_CHECK(shape.outer * shape.channels * shape.inner == input.size() && values.size() == input.size());
  std::vector<Counters> counters(shape.channels);
  parallel_for(shape.channels, threads, [&](std::size_t channel) {
    for (std::size_t outer = 0; outer < shape.outer; ++outer) {
      const std::size_t begin = (outer * shape.channels + channel) * shape.inner;
      RoundSpec slice = spec;
      slice.key.first_element += begin;
      counters[channel] +=
          round_to_values(input.subspan(begin, shape.inner), slice, values.subspan(begin, shape.inner));
    }
  });
  return counters;
}

Counters round_to_codes_scalar(std::span<const float> input, const RoundSpec& spec, void* codes) {
  Counters counters;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const Encoded encoded = encode_element(input[i], spec, i);
    counters.add(encoded.flags);
    store_code(codes, i, spec.format.code_bytes(), encoded.code);
  }
  return counters;
}

void decode_to_values(const void* codes, const Format& format, std::span<float> values) {
  std::vector<float> table;
  if (format.bits() <= 16) {
    for (std::uint32_t code = 0; code <= format.code_count_minus_one(); ++code) {
      table.push_back(static_cast<float>(decode(code, format)));
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t code = load_code(codes, i, format.code_bytes());
    values[i] = table.empty() ? static_cast<float>(decode(code, format)) : table[code];
  }
}

ExponentHistogram exponent_histogram(std::span<const float> input, unsigned threads) {
  const std::size_t chunks = (input.size() + kChunkElements - 1) / kChunkElements;
  std::vector<ExponentHistogram> parts(chunks);
  parallel_for(chunks, threads, [&](std::size_t chunk) {
    const std::size_t end = std::min(input.size(), (chunk + 1) * kChunkElements);
    for (std::size_t i = chunk * kChunkElements; i < end; ++i) {
      ++parts[chunk][std::bit_cast<std::uint32_t>(input[i]) << 1U >> 24U];
    }
  });
  ExponentHistogram sum{};
  for (const auto& part : parts) {
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += part[e];
  }
  return sum;
}

}  // namespace plumbline::numerics
