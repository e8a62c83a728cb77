// OutboundBuffer - slots for packets whose bytes are filled by handlers of this NIC before they leave.
//
// Contract: a message takes slots for its packets, in packet order, in its OutboundQueue. A filled packet may be
//   popped once the packets before it have been, and keeps its slot until give_back().
// Invariants: (1) at most packets_max slots are taken; (2) the bytes of a packet are zero when its slot is taken, so
//   that no bytes of an earlier message are sent.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "nic/spin/ids.hpp"
#include "nic/spin/slab.hpp"

namespace spinloom::spin {

// The packets of one message that have not been popped.
struct OutboundQueue {
  uint32_t first = no_slot;
  uint32_t last = no_slot;
  [[nodiscard]] bool empty() const { return first == no_slot; }
};

class OutboundBuffer {
 public:
  struct Packet {
    uint32_t message = no_slot;
    uint64_t offset = 0;
    uint64_t length = 0;
    uint32_t next = no_slot;
    bool filled = false;
    bool last = false;  // the last packet of its message
  };

  OutboundBuffer(uint32_t packets_max, uint64_t packet_bytes) : packets_max_(packets_max), bytes_each_(packet_bytes) {}

  [[nodiscard]] bool has_room() const { return slots_.size() < packets_max_; }
  [[nodiscard]] OutboundSlotId take(OutboundQueue& queue, uint32_t message, uint64_t offset, uint64_t length) {
    SPL_ASSERT(has_room() && length <= bytes_each_, length, " B beside ", slots_.size(), " packets");
    const uint32_t slot = slots_.take();
    peak_ = std::max(peak_, slots_.size());
    if (slot == bytes_.size()) bytes_.push_back(std::make_unique<uint8_t[]>(bytes_each_));
    Packet& packet = slots_[slot];
    packet.message = message;
    packet.offset = offset;
    packet.length = length;
    std::fill_n(bytes_[slot].get(), length, uint8_t{0});
    (queue.last == no_slot ? queue.first : slots_[queue.last].next) = slot;
    queue.last = slot;
    return OutboundSlotId{slot};
  }

  [[nodiscard]] uint8_t* bytes(OutboundSlotId slot) const { return bytes_[slot.value].get(); }
  [[nodiscard]] Packet& operator[](OutboundSlotId slot) { return slots_[slot.value]; }

  // The packet is filled: nobody writes to it any more. Returns whether it is the first of its queue.
  bool fill(const OutboundQueue& queue, OutboundSlotId slot) {
    Packet& packet = slots_[slot.value];
    SPL_ASSERT(!packet.filled, "packet ", slot, " is filled twice");
    packet.filled = true;
    return queue.first == slot.value;
  }
  [[nodiscard]] bool first_is_filled(const OutboundQueue& queue) const {
    return !queue.empty() && slots_[queue.first].filled;
  }
  [[nodiscard]] OutboundSlotId pop(OutboundQueue& queue) {
    SPL_ASSERT(first_is_filled(queue), "packet ", queue.first, " is not filled");
    const OutboundSlotId slot{queue.first};
    queue.first = slots_[slot.value].next;
    if (queue.first == no_slot) queue.last = no_slot;
    return slot;
  }
  void give_back(OutboundSlotId slot) {
    SPL_ASSERT(slots_[slot.value].filled, "packet ", slot, " left before its handler had ended");
    slots_.give_back(slot.value);
  }

  [[nodiscard]] uint32_t size() const { return slots_.size(); }
  [[nodiscard]] uint32_t peak() const { return peak_; }

 private:
  uint32_t packets_max_;
  uint64_t bytes_each_;
  Slab<Packet> slots_;
  std::vector<std::unique_ptr<uint8_t[]>> bytes_;  // one for each slot
  uint32_t peak_ = 0;
};

}  // namespace spinloom::spin
