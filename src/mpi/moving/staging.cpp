#include "mpi/moving/staging.hpp"

#include <algorithm>
#include <bit>

#include "base/shared_heap.hpp"

namespace spinloom::mpi {

// Gives idle buffers of other sizes back to the heap until `bytes` more may be allocated.
bool Staging::make_room(uint64_t bytes) {
  for (uint32_t order = 0; order < orders && left_bytes_ < static_cast<int64_t>(bytes); ++order) {
    for (uint8_t* const idle : free_[order]) {
      if (process_heap().release(idle)) left_bytes_ += int64_t{1} << order;
    }
    free_[order].clear();
  }
  return left_bytes_ >= static_cast<int64_t>(bytes);
}

uint64_t Staging::charged_bytes(uint64_t bytes) {
  constexpr uint64_t bytes_max = uint64_t{1} << (orders - 1);
  return bytes > bytes_max ? bytes : std::bit_ceil(std::max<uint64_t>(bytes, SharedHeap::granule_bytes));
}

Staging::Buffer Staging::take(uint64_t bytes) {
  if (bytes > uint64_t{1} << (orders - 1)) return {};
  const uint64_t buffer_bytes = Staging::charged_bytes(bytes);
  const auto order = static_cast<uint32_t>(std::countr_zero(buffer_bytes));
  auto& idle = free_[order];
  const bool has_rested = idle.size() * bytes >= apart_bytes;
  const bool has_room = left_bytes_ >= static_cast<int64_t>(buffer_bytes) || (idle.empty() && make_room(buffer_bytes));
  if (!has_rested && has_room) {
    if (auto* const start = static_cast<uint8_t*>(process_heap().allocate(buffer_bytes))) {
      left_bytes_ -= static_cast<int64_t>(buffer_bytes);
      return {start, order};
    }
  }
  if (idle.empty()) return {};
  uint8_t* const start = idle.front();
  idle.pop_front();
  return {start, order};
}

Staging::Buffer Staging::reserve(uint64_t bytes) {
  constexpr uint64_t long_bytes = 1 << 20;
  if (bytes < long_bytes || bytes > uint64_t{1} << (orders - 1)) return take(bytes);
  const uint64_t buffer_bytes = Staging::charged_bytes(bytes);
  if (left_to_reserve_bytes_ < static_cast<int64_t>(buffer_bytes)) return {};
  auto* const start = static_cast<uint8_t*>(process_heap().allocate(buffer_bytes));
  if (start == nullptr) return {};
  left_to_reserve_bytes_ -= static_cast<int64_t>(buffer_bytes);
  return {start, static_cast<uint32_t>(std::countr_zero(buffer_bytes)), true};
}

void Staging::give_back(const Buffer& buffer) {
  if (!buffer.is_reserved) {
    free_[buffer.order].push_back(buffer.start);
  } else if (process_heap().release(buffer.start)) {
    left_to_reserve_bytes_ += int64_t{1} << buffer.order;
  }
}

}  // namespace spinloom::mpi
