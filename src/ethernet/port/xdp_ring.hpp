// XdpRing - one of the four queues between a process and the kernel of an AF_XDP socket (linux/if_xdp.h).
//
// Contract: one side puts entries in, the other takes them out. available() and free_entries() say how many we can take
//   or put; at(i) is the i-th of these; consume(n) and produce(n) hand the first n over. unconsumed() is how many of
//   ours the other side has not taken.
// Invariants: (1) entries are written before their hand-over is seen, and not touched after it; (2) producer - consumer
//   is never above the number of entries.
// Threads: one on our side. Time: none; no system calls.
#pragma once

#include <linux/if_xdp.h>

#include <atomic>
#include <cstdint>

#include "ethernet/port/descriptor.hpp"

namespace spinloom::port {

template <class Entry>
class XdpRing {
 public:
  XdpRing() = default;
  // `entries` is a power of two.
  XdpRing(int socket, const xdp_ring_offset& offsets, uint32_t entries, int64_t page_offset)
      : memory_(socket, offsets.desc + entries * sizeof(Entry), page_offset), offsets_(offsets), entries_(entries) {}

  explicit operator bool() const { return static_cast<bool>(memory_); }

  // For the side that takes.
  [[nodiscard]] uint32_t available() { return producer().load(std::memory_order_acquire) - position_; }
  // For the side that puts.
  [[nodiscard]] uint32_t free_entries() { return entries_ - unconsumed(); }

  // For the side that puts: the number of entries that the other side has not taken yet.
  [[nodiscard]] uint32_t unconsumed() { return position_ - consumer().load(std::memory_order_acquire); }

  [[nodiscard]] Entry& at(uint32_t index) {
    return reinterpret_cast<Entry*>(memory_.data() + offsets_.desc)[(position_ + index) & (entries_ - 1)];
  }

  void consume(uint32_t count) { consumer().store(position_ += count, std::memory_order_release); }
  void produce(uint32_t count) { producer().store(position_ += count, std::memory_order_release); }

 private:
  std::atomic_ref<uint32_t> producer() { return counter(offsets_.producer); }
  std::atomic_ref<uint32_t> consumer() { return counter(offsets_.consumer); }
  std::atomic_ref<uint32_t> counter(uint64_t offset) {
    return std::atomic_ref(*reinterpret_cast<uint32_t*>(memory_.data() + offset));
  }

  Mapping memory_;
  xdp_ring_offset offsets_{};
  uint32_t entries_ = 0;
  uint32_t position_ = 0;  // our end's counter
};

}  // namespace spinloom::port
