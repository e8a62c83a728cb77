#include "nic/frames/packet_allocator.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "nic/spin/slot_counts.hpp"

namespace spinloom::frames {

Result<PacketAllocator> PacketAllocator::create(const std::vector<SlotClass>& classes) {
  PacketAllocator allocator;
  if (classes.empty()) return fail(Code::invalid, "the packet memory has no slots");
  for (const SlotClass& size : classes) {
    if (size.slots == 0 || size.bytes == 0) {
      return fail(Code::invalid, "a class of ", size.slots, " packet slots of ", size.bytes, " B holds nothing");
    }
    const uint64_t bytes = uint64_t{size.slots} * size.bytes;
    if (allocator.bytes_ + bytes > UINT32_MAX) {
      return fail(Code::exhausted, "the packet memory would have ", allocator.bytes_ + bytes,
                  " B; its addresses have 32 bits");
    }
    Pool pool{size, static_cast<uint32_t>(allocator.bytes_), {}};
    for (uint32_t slot = 0; slot < size.slots; ++slot) pool.free.push(pool.start + slot * size.bytes);
    allocator.pools_.push_back(std::move(pool));
    allocator.bytes_ += bytes;
    allocator.largest_slot_bytes_ = std::max(allocator.largest_slot_bytes_, size.bytes);
  }
  allocator.by_size_.resize(classes.size());
  std::iota(allocator.by_size_.begin(), allocator.by_size_.end(), 0u);
  std::ranges::sort(allocator.by_size_, {},
                    [&classes](uint32_t slot_class) { return std::pair(classes[slot_class].bytes, slot_class); });
  return allocator;
}

std::optional<uint32_t> PacketAllocator::class_of(uint32_t length) const {
  for (const uint32_t slot_class : by_size_) {
    if (length <= pools_[slot_class].size.bytes) return slot_class;
  }
  return std::nullopt;
}

std::optional<PacketAllocator::Slot> PacketAllocator::take(uint32_t slot_class) {
  Pool& pool = pools_[slot_class];
  if (pool.free.empty()) return std::nullopt;
  ++used_slots_;
  return Slot{pool.free.pop(), slot_class};
}

void PacketAllocator::give_back(Slot slot) {
  SPL_ASSERT(used_slots_ > 0 && pools_[slot.slot_class].free.size() < pools_[slot.slot_class].size.slots, "slot at ",
             slot.address, " is free already");
  pools_[slot.slot_class].free.push(slot.address);
  --used_slots_;
}

void PacketAllocator::check_invariants(const std::vector<Slot>& taken) const {
  uint32_t slots = 0;
  for (uint32_t slot_class = 0; slot_class < pools_.size(); ++slot_class) {
    const Pool& pool = pools_[slot_class];
    spin::SlotCounts found;
    const auto add = [&](uint32_t address) {
      const uint32_t slot = (address - pool.start) / pool.size.bytes;
      found.add(slot);
      SPL_ASSERT(slot < pool.size.slots && found.of(slot) == 1, "the slot at ", address, " is there twice");
    };
    for (size_t i = 0; i < pool.free.size(); ++i) add(pool.free[i]);
    for (const Slot& slot : taken) {
      if (slot.slot_class == slot_class) add(slot.address);
    }
    for (uint32_t slot = 0; slot < pool.size.slots; ++slot) {
      SPL_ASSERT(found.of(slot) == 1, "slot ", slot, " of class ", slot_class, " is neither free nor taken");
    }
    slots += pool.size.slots - free(slot_class);
  }
  SPL_ASSERT(slots == used_slots_, slots, " slots are taken, and ", used_slots_, " are counted");
}

}  // namespace spinloom::frames
