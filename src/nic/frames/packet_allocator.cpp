#include "nic/frames/packet_allocator.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace spinloom::frames {

Result<PacketAllocator> PacketAllocator::create(const std::vector<SlotClass>& classes) {
  PacketAllocator made;
  if (classes.empty()) return fail(Code::invalid, "the packet memory has no slots");
  for (const SlotClass& size : classes) {
    if (size.slots == 0 || size.bytes == 0) {
      return fail(Code::invalid, "a class of ", size.slots, " packet slots of ", size.bytes, " B holds nothing");
    }
    const uint64_t bytes = uint64_t{size.slots} * size.bytes;
    if (made.bytes_ + bytes > UINT32_MAX) {
      return fail(Code::exhausted, "the packet memory would have ", made.bytes_ + bytes,
                  " B; its addresses have 32 bits");
    }
    Pool pool{size, static_cast<uint32_t>(made.bytes_), {}};
    for (uint32_t slot = 0; slot < size.slots; ++slot) pool.free.push(pool.start + slot * size.bytes);
    made.pools_.push_back(std::move(pool));
    made.bytes_ += bytes;
    made.largest_ = std::max(made.largest_, size.bytes);
  }
  made.by_size_.resize(classes.size());
  std::iota(made.by_size_.begin(), made.by_size_.end(), 0u);
  std::ranges::sort(made.by_size_, {}, [&classes](uint32_t which) { return std::pair(classes[which].bytes, which); });
  return made;
}

std::optional<uint32_t> PacketAllocator::class_of(uint32_t length) const {
  for (const uint32_t which : by_size_) {
    if (length <= pools_[which].size.bytes) return which;
  }
  return std::nullopt;
}

std::optional<PacketAllocator::Slot> PacketAllocator::take(uint32_t slot_class) {
  Pool& pool = pools_[slot_class];
  if (pool.free.empty()) return std::nullopt;
  ++taken_;
  return Slot{pool.free.pop(), slot_class};
}

void PacketAllocator::give_back(Slot slot) {
  SPL_ASSERT(taken_ > 0 && pools_[slot.slot_class].free.size() < pools_[slot.slot_class].size.slots, "slot at ",
             slot.address, " is free already");
  pools_[slot.slot_class].free.push(slot.address);
  --taken_;
}

}  // namespace spinloom::frames
