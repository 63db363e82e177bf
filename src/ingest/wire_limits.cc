#include "ingest/wire_limits.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "ingest/graph_limits.h"

namespace plumbline::ingest {

namespace {

enum class Message { model, operator_set, graph, node, attribute, tensor, value, type, tensor_type, shape, dimension };

struct Child {
  Message parent;
  std::uint64_t field;
  Message child;
};

// Fields of onnx.proto that hold messages.
constexpr std::array<Child, 13> kChildren = {{
    {Message::model, 7, Message::graph},
    {Message::model, 8, Message::operator_set},
    {Message::graph, 1, Message::node},
    {Message::graph, 5, Message::tensor},
    {Message::graph, 11, Message::value},
    {Message::graph, 12, Message::value},
    {Message::graph, 13, Message::value},
    {Message::node, 5, Message::attribute},
    {Message::attribute, 5, Message::tensor},
    {Message::value, 2, Message::type},
    {Message::type, 1, Message::tensor_type},
    {Message::tensor_type, 2, Message::shape},
    {Message::shape, 1, Message::dimension},
}};

struct NameField {
  Message parent;
  std::uint64_t field;
};

// Fields that hold names.
constexpr std::array<NameField, 10> kNames = {{
    {Message::operator_set, 1},
    {Message::graph, 2},
    {Message::node, 1},
    {Message::node, 2},
    {Message::node, 3},
    {Message::node, 4},
    {Message::attribute, 1},
    {Message::tensor, 8},
    {Message::value, 1},
    {Message::dimension, 2},
}};

constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kLengthDelimited = 2;
constexpr int kFixed32 = 5;

class Walker {
 public:
  Walker(std::string_view bytes, const Span& span) : bytes_(bytes), span_(span) {}

  // Messages nest at most six deep here (kChildren has no cycle), so recursion is bounded.
  Status walk(Message message, std::size_t at, std::size_t end) {
    while (at < end) {
      const std::size_t start = at;
      std::uint64_t tag = 0;
      PL_TRY_STATUS(varint(tag, at, end));
      const std::uint64_t field = tag >> 3U;
      if (field == 0) return malformed(start, "a field has number 0");
      std::uint64_t ignored = 0;
      switch (static_cast<int>(tag & 7U)) {
        case kVarint:
          PL_TRY_STATUS(varint(ignored, at, end));
          break;
        case kFixed64:
          PL_TRY_STATUS(skip(start, at, 8, end));
          break;
        case kFixed32:
          PL_TRY_STATUS(skip(start, at, 4, end));
          break;
        case kLengthDelimited: {
          std::uint64_t length = 0;
          PL_TRY_STATUS(varint(length, at, end));
          const std::size_t begin = at;
          PL_TRY_STATUS(skip(start, at, length, end));
          PL_TRY_STATUS(item(message, field, begin, at));
          break;
        }
        default:
          return malformed(start, fmt::format("a field has wire type {}", tag & 7U));
      }
    }
    return Done{};
  }

 private:
  Status item(Message message, std::uint64_t field, std::size_t begin, std::size_t end) {
    if (++items_ > kMaxModelItems) return too_large(fmt::format("more than {} messages and strings", kMaxModelItems));
    for (const auto& name : kNames) {
      if (name.parent == message && name.field == field && end - begin > kMaxNameBytes) {
        return too_large(fmt::format("a name of {} bytes; at most {} are accepted", end - begin, kMaxNameBytes));
      }
    }
    for (const auto& child : kChildren) {
      if (child.parent != message || child.field != field) continue;
      if (child.child == Message::node && ++nodes_ > kMaxGraphNodes) {
        return too_large(fmt::format("more than {} nodes", kMaxGraphNodes));
      }
      return walk(child.child, begin, end);
    }
    return Done{};
  }

  Status varint(std::uint64_t& value, std::size_t& at, std::size_t end) {
    const std::size_t start = at;
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at >= end) return malformed(start, "the bytes end inside a number");
      const auto byte = static_cast<unsigned char>(bytes_[at++]);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) return Done{};
    }
    return malformed(start, "a number is longer than 64 bits");
  }

  Status skip(std::size_t start, std::size_t& at, std::uint64_t length, std::size_t end) {
    if (length > end - at) {
      return malformed(start, fmt::format("a field says it is {} bytes long, but {} are left", length, end - at));
    }
    at += static_cast<std::size_t>(length);
    return Done{};
  }

  [[nodiscard]] Diagnostic malformed(std::size_t at, std::string_view message) const {
    return make_error("onnx-syntax", span_,
                      fmt::format("not an ONNX model: at byte {} of {}, {}", at, bytes_.size(), message),
                      "is the file truncated, or of another format?");
  }

  [[nodiscard]] Diagnostic too_large(const std::string& message) const {
    return make_error("too-large", span_, "the model has " + message);
  }

  std::string_view bytes_;
  Span span_;
  std::size_t items_ = 0;
  std::size_t nodes_ = 0;
};

}  // namespace

Status check_wire_limits(std::string_view bytes, const Span& span) {
  return Walker(bytes, span).walk(Message::model, 0, bytes.size());
}

}  // namespace plumbline::ingest
