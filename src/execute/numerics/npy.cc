#include "execute/numerics/npy.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>

#include "execute/numerics/format.h"

namespace plumbline::numerics {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kPreamble = 8;    // magic and version
constexpr std::size_t kAlignment = 64;  // of the elements, as NumPy writes

struct TypeRow {
  NpyType type;
  std::string_view name;
  std::size_t bytes;
};
constexpr TypeRow kTypes[] = {{NpyType::f2, "f2", 2}, {NpyType::f4, "f4", 4}, {NpyType::f8, "f8", 8},
                              {NpyType::i1, "i1", 1}, {NpyType::i2, "i2", 2}, {NpyType::i4, "i4", 4},
                              {NpyType::i8, "i8", 8}, {NpyType::u1, "u1", 1}, {NpyType::u2, "u2", 2},
                              {NpyType::u4, "u4", 4}, {NpyType::u8, "u8", 8}};

/// The dictionary of a header: a Python literal with exactly three keys.
struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::size_t>> shape;
};

/// Reads the literal by recursive descent; every function returns false where the text is not what it wants.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool read(Header& header) {
    if (!take('{')) return false;
    while (!take('}')) {
      std::string key;
      if (!read_string(key) || !take(':') || !read_value(key, header)) return false;
      if (!take(',') && peek() != '}') return false;
    }
    skip_space();
    return at_ == text_.size();
  }
  /// Where reading stopped, for the message.
  [[nodiscard]] std::size_t position() const { return at_; }

 private:
  bool read_value(const std::string& key, Header& header) {
    if (key == "descr" && !header.descr) {
      std::string descr;
      if (!read_string(descr)) return false;
      header.descr = descr;
      return true;
    }
    if (key == "fortran_order" && !header.fortran_order) {
      const bool is_true = take_word("True");
      if (!is_true && !take_word("False")) return false;
      header.fortran_order = is_true;
      return true;
    }
    if (key == "shape" && !header.shape) {
      std::vector<std::size_t> shape;
      if (!read_tuple(shape)) return false;
      header.shape = shape;
      return true;
    }
    return false;
  }
  bool read_string(std::string& text) {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool read_tuple(std::vector<std::size_t>& shape) {
    if (!take('(')) return false;
    while (!take(')')) {
      skip_space();
      std::size_t number = 0;
      const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
      if (error != std::errc() || shape.size() == kNpyMaxRank) return false;
      at_ = static_cast<std::size_t>(stop - text_.data());
      take('L');  // written by Python 2
      shape.push_back(number);
      if (!take(',') && peek() != ')') return false;
    }
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Diagnostic wrong(const SourceRef& source, std::string message, std::string help = {}) {
  return make_error("npy-syntax", {source, 0, 0}, std::move(message), std::move(help));
}

std::size_t little_endian(std::span<const std::byte> bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | std::to_integer<std::size_t>(bytes[i]);
  return value;
}

/// The header's text and where the elements begin.
struct Parts {
  std::string_view header;
  std::size_t elements_at;
};
Result<Parts> split_file(std::span<const std::byte> file, const SourceRef& source) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.size() < kPreamble || !text.starts_with(kMagic)) {
    return wrong(source, "the file does not begin as a .npy array", "numpy.save writes them; .npz must be unpacked");
  }
  const int major = static_cast<unsigned char>(text[6]);
  if (major < 1 || major > 3) return wrong(source, fmt::format("version {} of the .npy format is not known", major));
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (file.size() < kPreamble + length_bytes) return wrong(source, "the file ends inside its header");
  const std::size_t length = little_endian(file.subspan(kPreamble, length_bytes));
  if (length > kNpyMaxHeaderBytes) {
    return wrong(source, fmt::format("the header claims {} bytes, more than the {} that are accepted", length,
                                     kNpyMaxHeaderBytes));
  }
  const std::size_t begin = kPreamble + length_bytes;
  if (file.size() - begin < length) return wrong(source, "the file ends inside its header");
  return Parts{text.substr(begin, length), begin + length};
}

Result<NpyType> type_of(const std::string& descr, const SourceRef& source) {
  const bool known_order = descr.size() == 3 && (descr[0] == '<' || descr[0] == '|' || descr[0] == '>');
  if (known_order) {
    for (const TypeRow& row : kTypes) {
      if (descr.substr(1) != row.name) continue;
      if (descr[0] == '>' && row.bytes > 1) {
        return wrong(source, fmt::format("the elements are big-endian ('{}')", descr),
                     fmt::format("convert with a.astype('<{}')", row.name));
      }
      return row.type;
    }
  }
  return wrong(source, fmt::format("elements of type '{}' are not read", descr),
               "float16, float32, float64 and integers of 8 to 64 bits are");
}

/// Bytes of the elements, or an error where they exceed the limit or 64 bits.
Result<std::uint64_t> payload_bytes(const std::vector<std::size_t>& shape, NpyType type, const SourceRef& source) {
  std::uint64_t bytes = bytes_of(type);
  for (const std::size_t dimension : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dimension), &bytes)) bytes = kNpyMaxBytes + 1;
    if (dimension == 0) return std::uint64_t{0};
    if (bytes > kNpyMaxBytes) {
      return make_error("too-large", {source, 0, 0},
                        fmt::format("the array is larger than {} GiB", kNpyMaxBytes >> 30U));
    }
  }
  return bytes;
}

template <class T>
T element(const NpyArray& array, std::size_t index) {
  T value;
  std::memcpy(&value, array.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
NpyFloats convert(const NpyArray& array) {
  NpyFloats floats;
  floats.values.resize(array.elements());
  for (std::size_t i = 0; i < floats.values.size(); ++i) {
    const T value = element<T>(array, i);
    floats.values[i] = static_cast<float>(value);
    // long double holds binary64 and 64-bit integers exactly on x86 and AArch64 Linux; NaN stays NaN.
    const auto back = static_cast<long double>(floats.values[i]);
    floats.inexact += back != static_cast<long double>(value) && value == value;
  }
  return floats;
}

}  // namespace

std::string_view to_string(NpyType type) { return kTypes[static_cast<int>(type)].name; }

std::size_t bytes_of(NpyType type) { return kTypes[static_cast<int>(type)].bytes; }

Result<NpyArray> parse_npy(std::span<const std::byte> file, const SourceRef& source) {
  PL_TRY(const Parts parts, split_file(file, source));
  Header header;
  HeaderReader reader(parts.header);
  if (!reader.read(header)) {
    return wrong(source, fmt::format("the header is not understood at character {}", reader.position()),
                 "structured arrays, unknown keys and more than 32 dimensions are not read");
  }
  if (!header.descr || !header.fortran_order || !header.shape) {
    return wrong(source, "the header lacks descr, fortran_order or shape");
  }
  if (*header.fortran_order && header.shape->size() > 1) {
    return wrong(source, "the elements are in Fortran order", "convert with numpy.ascontiguousarray(a)");
  }
  NpyArray array;
  array.shape = *header.shape;
  PL_TRY(array.type, type_of(*header.descr, source));
  PL_TRY(const std::uint64_t bytes, payload_bytes(array.shape, array.type, source));
  const std::span<const std::byte> payload = file.subspan(parts.elements_at);
  if (payload.size() != bytes) {
    return wrong(source, fmt::format("the shape needs {} bytes of elements, the file holds {}", bytes, payload.size()),
                 payload.size() < bytes ? "the file is truncated" : "bytes follow the array");
  }
  array.bytes.assign(payload.begin(), payload.end());
  return array;
}

Result<NpyArray> load_npy(const std::string& path) {
  const auto source = std::make_shared<const Source>(Source{path, {}});
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = stream ? static_cast<std::streamoff>(stream.tellg()) : -1;
  if (size < 0) return make_error("missing-file", {source, 0, 0}, fmt::format("cannot open '{}'", path));
  if (static_cast<std::uint64_t>(size) > kNpyMaxBytes + kNpyMaxHeaderBytes) {
    return make_error("too-large", {source, 0, 0}, fmt::format("the file holds {} bytes", size));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  stream.seekg(0);
  stream.read(reinterpret_cast<char*>(bytes.data()), size);
  if (!stream) return make_error("missing-file", {source, 0, 0}, fmt::format("cannot read '{}'", path));
  return parse_npy(bytes, source);
}

NpyFloats to_float32(const NpyArray& array) {
  switch (array.type) {
    case NpyType::f2: {
      const Format& half = builtin_format("binary16");
      NpyFloats floats;
      for (std::size_t i = 0; i < array.elements(); ++i) {
        floats.values.push_back(static_cast<float>(decode(element<std::uint16_t>(array, i), half)));
      }
      return floats;
    }
    case NpyType::f4:
      return convert<float>(array);
    case NpyType::f8:
      return convert<double>(array);
    case NpyType::i1:
      return convert<std::int8_t>(array);
    case NpyType::i2:
      return convert<std::int16_t>(array);
    case NpyType::i4:
      return convert<std::int32_t>(array);
    case NpyType::i8:
      return convert<std::int64_t>(array);
    case NpyType::u1:
      return convert<std::uint8_t>(array);
    case NpyType::u2:
      return convert<std::uint16_t>(array);
    case NpyType::u4:
      return convert<std::uint32_t>(array);
    case NpyType::u8:
      return convert<std::uint64_t>(array);
  }
  PL_CHECK(false);
}

std::string format_npy(const NpyArray& array) {
  std::string shape;
  std::size_t elements = 1;
  for (const std::size_t dimension : array.shape) {
    shape += fmt::format("{}{}", shape.empty() ? "" : ", ", dimension);
    elements *= dimension;
  }
  PL_CHECK(elements * bytes_of(array.type) == array.bytes.size());
  if (array.shape.size() == 1) shape += ",";
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   bytes_of(array.type) == 1 ? '|' : '<', to_string(array.type), shape);
  const std::size_t unpadded = kPreamble + 2 + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string file(kMagic);
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 0xFFU);
  file += static_cast<char>(header.size() >> 8U);
  file += header;
  file.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  return file;
}

Status save_npy(const std::string& path, const NpyArray& array) {
  const std::string file = format_npy(array);
  std::ofstream stream(path, std::ios::binary);
  stream.write(file.data(), static_cast<std::streamsize>(file.size()));
  stream.close();
  if (!stream) return make_error("unwritable", {}, fmt::format("cannot write '{}'", path));
  return Done{};
}

NpyArray make_npy(std::span<const float> values, std::vector<std::size_t> shape) {
  NpyArray array;
  array.type = NpyType::f4;
  array.shape = std::move(shape);
  const auto bytes = std::as_bytes(values);
  array.bytes.assign(bytes.begin(), bytes.end());
  return array;
}

}  // namespace plumbline::numerics
