#pragma once
// Arrays that begin without values: the threads that fill them also take the page faults, which one thread would pay
// for alone when a vector clears itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace plumbline::numerics {

/// Memory for `bytes` bytes, aligned for vectors; large blocks ask the system for large pages. Throws std::bad_alloc.
[[nodiscard]] void* allocate_block(std::size_t bytes);
void free_block(void* block) noexcept;

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;
  Buffer() = default;
  explicit Buffer(std::size_t size)
      : values_(size == 0 ? nullptr : static_cast<T*>(allocate_block(size * sizeof(T)))), size_(size) {}
  Buffer(const Buffer& other) : Buffer(other.size_) { std::copy(other.begin(), other.end(), begin()); }
  Buffer(Buffer&& other) noexcept : values_(std::move(other.values_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(values_, other.values_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() = default;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] T* data() { return values_.get(); }
  [[nodiscard]] const T* data() const { return values_.get(); }
  [[nodiscard]] T* begin() { return data(); }
  [[nodiscard]] T* end() { return data() + size_; }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + size_; }
  [[nodiscard]] T& operator[](std::size_t i) { return data()[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return data()[i]; }
  friend bool operator==(const Buffer& a, const Buffer& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  struct Free {
    void operator()(T* values) const { free_block(values); }
  };
  std::unique_ptr<T, Free> values_;
  std::size_t size_ = 0;
};

using ByteBuffer = Buffer<std::uint8_t>;

}  // namespace plumbline::numerics
