// LargeVector - a vector for state that is used at random: where it is large, in huge pages if the system gives them.
//
// Contract: that of std::vector. Asking for huge pages may fail, and nothing else changes then.
// Threads: plain values. Time: none.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace spinloom {

template <class T>
struct LargeAllocator {
  using value_type = T;
  static constexpr size_t page_bytes = size_t{2} << 20;
  static constexpr size_t alignment = std::max<size_t>(alignof(T), 64);

  LargeAllocator() = default;
  template <class Other>
  LargeAllocator(const LargeAllocator<Other>& /*other*/) {}

  [[nodiscard]] T* allocate(size_t count) {
    if (count > SIZE_MAX / 2 / sizeof(T)) throw std::bad_alloc();
    const size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    // Huge pages are asked for only where a whole one fits between the first and the last byte.
    const uintptr_t first = (reinterpret_cast<uintptr_t>(memory) + page_bytes - 1) / page_bytes * page_bytes;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) / page_bytes * page_bytes;
    if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t /*count*/) { std::free(memory); }

  template <class Other>
  bool operator==(const LargeAllocator<Other>& /*other*/) const {
    return true;
  }
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace spinloom
