// Zeroed - memory that is zero and takes no pages before it is touched.
//
// Contract: ZeroedBytes(n) is a vector of n zeros; the system gives its pages when they are first written. Use it for
//   large memory that each rank has and that stays mostly unused.
// Threads: as a vector. Time: none.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace spinloom::simulated {

template <class T>
struct ZeroedAllocator {
  using value_type = T;
  ZeroedAllocator() = default;
  template <class U>
  explicit ZeroedAllocator(const ZeroedAllocator<U>&) {}

  T* allocate(size_t count) {
    void* memory = std::calloc(count, sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }
  // The memory of allocate() is zero already.
  template <class U>
  void construct(U*) {}
  bool operator==(const ZeroedAllocator&) const { return true; }
};

using ZeroedBytes = std::vector<uint8_t, ZeroedAllocator<uint8_t>>;

}  // namespace spinloom::simulated
