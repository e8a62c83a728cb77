#include "nic/spin/nic_memory.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

namespace spinloom::spin {

NicMemory::NicMemory(uint64_t bytes) : bytes_(bytes) {
  if (bytes > 0) free_.emplace(0, bytes);
}

Result<uint64_t> NicMemory::allocate(uint64_t bytes, uint64_t align) {
  if (bytes == 0) return fail(Code::invalid, "NIC memory: 0 bytes were asked for; ask for at least 1");
  if (!std::has_single_bit(align)) {
    return fail(Code::invalid, "NIC memory: an alignment of ", align, " was asked for; it must be a power of two");
  }
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    const auto [offset, length] = *block;
    const uint64_t gap = (align - offset % align) % align;
    if (gap > length || length - gap < bytes) continue;
    const uint64_t start = offset + gap;
    free_.erase(block);
    if (gap > 0) free_.emplace(offset, gap);
    if (length - gap > bytes) free_.emplace(start + bytes, length - gap - bytes);
    allocated_.emplace(start, bytes);
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    return start;
  }
  return fail(Code::exhausted, "NIC memory has no room for ", bytes, " B aligned to ", align, ": ", used_, " B of ",
              bytes_, " B are used and the largest free block has ", largest_free(),
              " B; memory.state_bytes of the NIC profile enlarges it");
}

Status NicMemory::free(uint64_t offset) {
  const auto block = allocated_.find(offset);
  if (block == allocated_.end()) return fail(Code::invalid, "NIC memory: no block starts at offset ", offset);
  uint64_t start = offset;
  uint64_t length = block->second;
  SPL_ASSERT(length <= used_, length, " B of ", used_);
  used_ -= length;
  allocated_.erase(block);
  auto next = free_.lower_bound(start);
  if (next != free_.end() && next->first == start + length) {
    length += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == start) {
      start = previous->first;
      length += previous->second;
      free_.erase(previous);
    }
  }
  free_.emplace(start, length);
  return {};
}

bool NicMemory::holds(uint64_t offset, uint64_t length) const {
  auto block = allocated_.upper_bound(offset);
  if (block == allocated_.begin()) return false;
  --block;
  const uint64_t inside = offset - block->first;
  return inside <= block->second && length <= block->second - inside;
}

bool NicMemory::overlaps(uint64_t block, uint64_t offset, uint64_t length) const {
  const auto found = allocated_.find(block);
  if (found == allocated_.end() || length == 0) return false;
  return offset < block + found->second && block < offset + length;
}

uint64_t NicMemory::largest_free() const {
  uint64_t largest = 0;
  for (const auto& [offset, length] : free_) largest = std::max(largest, length);
  return largest;
}

void NicMemory::check_invariants() const {
  uint64_t end = 0;
  uint64_t used = 0;
  bool after_free = false;
  for (auto taken = allocated_.begin(), free = free_.begin(); taken != allocated_.end() || free != free_.end();) {
    const bool is_free = taken == allocated_.end() || (free != free_.end() && free->first < taken->first);
    const auto [offset, length] = is_free ? *free++ : *taken++;
    SPL_ASSERT(offset == end && !(is_free && after_free), length, is_free ? " free B at " : " B at ", offset,
               " follow a block that ends at ", end);
    end = offset + length;
    used += is_free ? 0 : length;
    after_free = is_free;
  }
  SPL_ASSERT(end == bytes_ && used == used_, used, " B are allocated of ", end, ", and ", used_, " of ", bytes_,
             " are counted");
}

}  // namespace spinloom::spin
