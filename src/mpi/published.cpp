#include "mpi/published.hpp"

#include <cstring>

#include "base/shared_heap.hpp"

namespace spinloom::mpi {

Published::~Published() {
  if (start_ != nullptr) (void)process_heap().release(start_);
}

void Published::put(std::span<const std::byte> bytes) {
  if (start_ != nullptr) return;
  start_ = process_heap().allocate(bytes.size());
  if (start_ == nullptr) return;
  std::memcpy(start_, bytes.data(), bytes.size());
  bytes_ = bytes.size();
}

}  // namespace spinloom::mpi
