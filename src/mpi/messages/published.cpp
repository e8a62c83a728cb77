#include "mpi/messages/published.hpp"

#include <cstring>
#include <mutex>

#include "base/shared_heap.hpp"

namespace spinloom::mpi {

Published::~Published() {
  if (address() != 0) (void)process_heap().release(reinterpret_cast<void*>(address()));
}

void Published::put_first(std::span<const std::byte> bytes) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  if (address() != 0) return;
  void* const start = process_heap().allocate(bytes.size());
  if (start == nullptr) return;
  std::memcpy(start, bytes.data(), bytes.size());
  bytes_ = bytes.size();
  address_.store(reinterpret_cast<uint64_t>(start), std::memory_order_release);
}

}  // namespace spinloom::mpi
