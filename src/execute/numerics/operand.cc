#include "execute/numerics/operand.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "core/elementary.h"
#include "core/random.h"
#include "execute/numerics/npy.h"

namespace plumbline::numerics {
namespace {

/// Standard normal by Marsaglia's polar method (1964), each element from its own counter.
double normal_at(const RandomStream& random, std::uint64_t index) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    RandomStream own(random.at(index), "normal", attempt);
    const double u = 2 * own.next_unit() - 1;
    const double v = 2 * own.next_unit() - 1;
    const double radius = u * u + v * v;
    if (radius > 0 && radius < 1) return u * std::sqrt(-2 * exact_log(radius) / radius);
  }
}

float uniform(const RandomStream& random, std::uint64_t i) {
  return static_cast<float>(static_cast<double>(random.at(i) >> 11U) * 0x1p-52 - 1);
}
float normal(const RandomStream& random, std::uint64_t i) { return static_cast<float>(normal_at(random, i)); }
float outliers(const RandomStream& random, std::uint64_t i) {
  constexpr std::uint64_t kOneIn = 256;
  constexpr double kFactor = 64;
  const double value = normal_at(random, i);
  return static_cast<float>(mix64(random.at(i)) % kOneIn == 0 ? value * kFactor : value);
}
float ramp(const RandomStream&, std::uint64_t i) { return static_cast<float>(i); }

struct Generator {
  std::string_view name;
  float (*at)(const RandomStream& random, std::uint64_t index);
};
constexpr Generator kGenerators[] = {{"normal", normal}, {"uniform", uniform}, {"outliers", outliers}, {"ramp", ramp}};

Result<std::vector<std::size_t>> read_shape(std::string_view text) {
  std::vector<std::size_t> shape;
  std::size_t elements = 1;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    std::size_t dimension = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, dimension);
    if (error != std::errc() || stop != text.data() + end || dimension == 0) {
      return make_error("bad-number", {}, fmt::format("'{}' is not a shape", text), "write positive sizes as 128x512");
    }
    if (dimension > kMaxGeneratedElements / elements) {
      return make_error("too-large", {}, fmt::format("'{}' has more than {} elements", text, kMaxGeneratedElements));
    }
    elements *= dimension;
    shape.push_back(dimension);
    at = end + 1;
  }
  return shape;
}

Result<const Generator*> find_generator(std::string_view kind) {
  std::vector<std::string> names;
  for (const Generator& candidate : kGenerators) {
    if (candidate.name == kind) return &candidate;
    names.emplace_back(candidate.name);
  }
  return make_error("unknown-name", {}, fmt::format("no generator is called '{}'", kind), suggest(kind, names));
}

Result<Operand> generate(std::string_view kind, std::string_view shape_text, std::uint64_t seed) {
  PL_TRY(const Generator* const generator, find_generator(kind));
  Operand operand;
  PL_TRY(operand.shape, read_shape(shape_text));
  operand.description = fmt::format("{}:{} (seed {})", kind, shape_text, seed);
  std::size_t elements = 1;
  for (const std::size_t dimension : operand.shape) elements *= dimension;
  operand.values.resize(elements);
  const RandomStream random(seed, kind);
  for (std::size_t i = 0; i < elements; ++i) operand.values[i] = generator->at(random, i);
  return operand;
}

/// Where a generator's name ends; npos: the text is a path.
std::size_t generator_end(const std::string& text) {
  return text.ends_with(".npy") ? std::string::npos : text.find(':');
}

}  // namespace

Result<std::optional<std::vector<std::size_t>>> generated_shape(const std::string& text) {
  const std::size_t colon = generator_end(text);
  if (colon == std::string::npos) return std::optional<std::vector<std::size_t>>();
  PL_TRY([[maybe_unused]] const Generator* const generator, find_generator(std::string_view(text).substr(0, colon)));
  PL_TRY(std::vector<std::size_t> shape, read_shape(std::string_view(text).substr(colon + 1)));
  return std::optional(std::move(shape));
}

Result<Operand> read_operand(const std::string& text, std::uint64_t seed) {
  const std::size_t colon = generator_end(text);
  if (colon != std::string::npos) {
    return generate(std::string_view(text).substr(0, colon), std::string_view(text).substr(colon + 1), seed);
  }
  PL_TRY(const NpyArray array, load_npy(text));
  NpyFloats floats = to_float32(array);
  Operand operand;
  operand.description = text;
  operand.shape = array.shape;
  operand.values = std::move(floats.values);
  operand.inexact_values = floats.inexact;
  if (array.type == NpyType::f8 && floats.inexact != 0) {
    operand.originals.resize(operand.values.size());
    std::memcpy(operand.originals.data(), array.bytes.data(), array.bytes.size());
  }
  return operand;
}

}  // namespace plumbline::numerics
