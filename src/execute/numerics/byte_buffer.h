#pragma once
// Bytes that begin without values: the threads that fill them also take the page faults, which one thread would pay for
// alone when a vector clears itself.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

namespace plumbline::numerics {

class ByteBuffer {
 public:
  ByteBuffer() = default;
  explicit ByteBuffer(std::size_t size) : bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(size)), size_(size) {}
  ByteBuffer(const ByteBuffer& other) : ByteBuffer(other.size_) { std::copy(other.begin(), other.end(), begin()); }
  ByteBuffer(ByteBuffer&& other) noexcept : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}
  ByteBuffer& operator=(ByteBuffer other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ByteBuffer() = default;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::uint8_t* data() { return bytes_.get(); }
  [[nodiscard]] const std::uint8_t* data() const { return bytes_.get(); }
  [[nodiscard]] std::uint8_t* begin() { return data(); }
  [[nodiscard]] std::uint8_t* end() { return data() + size_; }
  [[nodiscard]] const std::uint8_t* begin() const { return data(); }
  [[nodiscard]] const std::uint8_t* end() const { return data() + size_; }
  [[nodiscard]] std::uint8_t& operator[](std::size_t i) { return bytes_[i]; }
  [[nodiscard]] std::uint8_t operator[](std::size_t i) const { return bytes_[i]; }
  friend bool operator==(const ByteBuffer& a, const ByteBuffer& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t size_ = 0;
};

}  // namespace plumbline::numerics
