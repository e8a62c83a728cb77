// DmaTracker - DMAs under way: O(1) work each, ends in the order that events need.
//
// Contract: a piece of work links its open DMAs in order of issue (DmaQueue, which the work keeps). When a DMA is
//   done, end() says whose it was; retire() then takes it out of its queue, unless it has a report. A DMA with a
//   report leaves when all DMAs before it have left: next_report() gives these reports in order of issue. A DMA over
//   several pieces of memory is done when all pieces are. issue_unqueued() makes a DMA that is in no queue and that
//   end() forgets at once.
// Invariants: (1) DmaQueue::open is the number of DMAs in the queue; (2) a handle names one DMA of one execution
//   until the DMA is done. Afterwards it names nothing while fewer than 4,095 further DMAs have begun.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nic/spin/ids.hpp"
#include "nic/spin/owner.hpp"
#include "nic/spin/slab.hpp"

namespace spinloom::spin {

// The open DMAs of one piece of work, in order of issue.
struct DmaQueue {
  uint32_t first = no_slot;
  uint32_t last = no_slot;
  uint32_t open = 0;
};

// The host's report of a finished DMA.
struct DmaReport {
  uint64_t offset = 0;  // offset in the memory that the handler was offered
  uint64_t length = 0;
  uint64_t start = 0;  // the host address
};

class DmaTracker {
 public:
  struct Ended {
    DmaId dma;
    Owner owner;
    HerId her;  // the HER of the handler that issued the DMA, if a handler did
    bool resumes = false;  // the handler waits for the end of the DMA
    bool has_report = false;
    uint64_t buffer_bytes = 0;  // bytes of the packet buffer that the DMA held
  };

  // Begins a DMA of the NIC itself, which holds `buffer_bytes` of the packet buffer until it is done.
  [[nodiscard]] DmaId issue(DmaQueue& queue, Owner owner, uint64_t buffer_bytes = 0) {
    const auto slot = take(owner);
    slot.value.buffer_bytes = buffer_bytes;
    link(queue, slot);
    return DmaId{slot.index};
  }
  // Begins a DMA of a handler. `blocks`: the handler waits until the source has been read or, where the DMA reads
  // host memory, until its end.
  struct Issued {
    DmaId dma;
    uint32_t handle;  // the handler's name for the DMA
  };
  [[nodiscard]] Issued issue(DmaQueue& queue, Owner owner, HerId her, bool blocks) {
    const auto slot = take(owner);
    slot.value.her = her;
    slot.value.blocks_handler = blocks;
    link(queue, slot);
    return {DmaId{slot.index}, handle_of(slot.index, slot.value.serial)};
  }
  [[nodiscard]] DmaId issue_unqueued(Owner owner) {
    const auto slot = take(owner);
    slot.value.unqueued = true;
    return DmaId{slot.index};
  }
  // Splits the DMA into `count` pieces; issue_piece() begins each of them as a transfer of its own.
  void split(DmaId whole, uint32_t count);
  [[nodiscard]] DmaId issue_piece(DmaId whole);

  void report(DmaId id, const DmaReport& report) {
    Dma& dma = dmas_[id.value];
    SPL_ASSERT(!dma.unqueued && dma.parent == no_slot, "DMA ", id, " is in no queue");
    dma.has_report = true;
    dma.report = report;
  }
  // The source of a blocking DMA has been read. Returns the handler that goes on, once all pieces have been read.
  [[nodiscard]] std::optional<HerId> source_read(DmaId id);
  // Returns nothing while other pieces of the DMA are under way.
  [[nodiscard]] std::optional<Ended> end(DmaId id);
  // Called after end(): the DMA leaves its queue, or waits there for the reports before its own.
  void retire(DmaQueue& queue, const Ended& ended) {
    if (!ended.has_report) forget(queue, ended.dma.value);
  }
  [[nodiscard]] std::optional<DmaReport> next_report(DmaQueue& queue) {
    if (queue.first == no_slot || !dmas_[queue.first].done) return std::nullopt;
    return take_report(queue);
  }

  // The owner of a DMA, also by the id of one of its pieces.
  [[nodiscard]] Owner owner(DmaId id) const;

  // True while the DMA of this handler that the handle names is under way.
  [[nodiscard]] bool is_open(uint32_t handle, HerId her) const { return find(handle, her) != no_slot; }
  // The DMA's handler waits for its end from now on.
  void wait(uint32_t handle, HerId her);

  [[nodiscard]] uint32_t size() const { return dmas_.size(); }

  // The bytes of the packet buffer that DMAs hold. Work: all DMAs.
  [[nodiscard]] uint64_t buffer_bytes() const;
  // Throws InternalError if an invariant is broken. For tests: looks at all DMAs. `queues` are all queues that may have
  // any.
  void check_invariants(const std::vector<const DmaQueue*>& queues) const;

 private:
  struct Dma {
    Owner owner;
    HerId her;
    uint32_t previous = no_slot;
    uint32_t next = no_slot;
    bool has_report = false;
    bool done = false;
    bool unqueued = false;
    bool blocks_handler = false;
    bool is_awaited = false;
    uint32_t serial = 0;  // part of the handle, counted over all DMAs
    uint64_t buffer_bytes = 0;
    DmaReport report;
    uint32_t parent = no_slot;  // the DMA that this one is a piece of
    uint32_t pieces = 0;  // pieces that are not done
    uint32_t pieces_unread = 0;
  };

  // A handle names the slot and a part of the serial number, so that it does not name the slot's next DMA.
  static constexpr unsigned handle_slot_bits = 20;
  static constexpr uint32_t handle_slot_mask = (1u << handle_slot_bits) - 1;
  static constexpr uint32_t handle_serials = (1u << (32 - handle_slot_bits)) - 1;  // no handle is DmaId::none_value
  [[nodiscard]] static uint32_t handle_of(uint32_t slot, uint32_t serial) {
    return serial % handle_serials << handle_slot_bits | slot;
  }

  [[nodiscard]] Slab<Dma>::NewSlot take(Owner owner) {
    const auto slot = dmas_.make();
    SPL_ASSERT(slot.index <= handle_slot_mask, "DMA ", slot.index, " has no handle");
    slot.value.owner = owner;
    slot.value.serial = next_serial_++;
    return slot;
  }
  void link(DmaQueue& queue, const Slab<Dma>::NewSlot& slot) {
    slot.value.previous = queue.last;
    (queue.last == no_slot ? queue.first : dmas_[queue.last].next) = slot.index;
    queue.last = slot.index;
    ++queue.open;
  }
  [[nodiscard]] uint32_t find(uint32_t handle, HerId her) const;
  void forget(DmaQueue& queue, uint32_t slot);
  [[nodiscard]] DmaReport take_report(DmaQueue& queue);

  Slab<Dma> dmas_;
  uint32_t next_serial_ = 0;
};

}  // namespace spinloom::spin
