#include "execute/numerics/buffer.h"

#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace plumbline::numerics {
namespace {

constexpr std::size_t kVectorBytes = 64;                   // an AVX-512 vector, a cache line
constexpr std::size_t kLargePage = std::size_t{2} << 20U;  // of x86-64 and most of AArch64

}  // namespace

void* allocate_block(std::size_t bytes) {
  const bool large = bytes >= 2 * kLargePage;
  const std::size_t alignment = large ? kLargePage : kVectorBytes;
  void* const block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  if (large) (void)madvise(block, bytes, MADV_HUGEPAGE);  // advice only: refusal costs time, nothing else
#endif
  return block;
}

void free_block(void* block) noexcept { std::free(block); }

}  // namespace plumbline::numerics
