#include "nic/spin/dma_tracker.hpp"

namespace spinloom::spin {
void DmaTracker::split(DmaId whole, uint32_t count) {
  Dma& dma = dmas_[whole.value];
  SPL_ASSERT(count > 1 && dma.parent == no_slot && dma.pieces == 0, count, " pieces of DMA ", whole);
  dma.pieces = dma.pieces_unread = count;
}

DmaId DmaTracker::issue_piece(DmaId whole) {
  const auto slot = take({});
  slot.value.parent = whole.value;
  return DmaId{slot.index};
}

std::optional<HerId> DmaTracker::source_read(DmaId id) {
  Dma& dma = dmas_[id.value];
  if (dma.parent != no_slot) {
    Dma& whole = dmas_[dma.parent];
    SPL_ASSERT(whole.pieces_unread > 0, "DMA ", dma.parent, " has no more pieces");
    return --whole.pieces_unread == 0 ? source_read(DmaId{dma.parent}) : std::nullopt;
  }
  SPL_ASSERT(dma.blocks_handler && dma.her.exists(), "nobody waits for DMA ", id);
  dma.blocks_handler = false;
  return dma.her;
}

std::optional<DmaTracker::Ended> DmaTracker::end(DmaId id) {
  Dma& dma = dmas_[id.value];
  SPL_ASSERT(!dma.done, "DMA ", id, " done twice");
  if (dma.parent != no_slot) {
    const DmaId whole{dma.parent};
    dmas_.give_back(id.value);
    SPL_ASSERT(dmas_[whole.value].pieces > 0, "DMA ", whole, " has no more pieces");
    return --dmas_[whole.value].pieces == 0 ? end(whole) : std::nullopt;
  }
  dma.done = true;
  const bool resumes = dma.her.exists() && (dma.blocks_handler || dma.is_awaited);
  const Ended ended{id, dma.owner, dma.her, resumes, dma.has_report, dma.buffer_bytes};
  if (dma.unqueued) dmas_.give_back(id.value);
  return ended;
}

DmaReport DmaTracker::take_report(DmaQueue& queue) {
  SPL_ASSERT(dmas_[queue.first].has_report, "DMA ", queue.first, " is done and was not forgotten");
  const DmaReport report = dmas_[queue.first].report;
  forget(queue, queue.first);
  return report;
}

void DmaTracker::forget(DmaQueue& queue, uint32_t slot) {
  const Dma& dma = dmas_[slot];
  SPL_ASSERT(queue.open > 0 && dma.done, "DMA ", slot, " of ", queue.open);
  (dma.previous == no_slot ? queue.first : dmas_[dma.previous].next) = dma.next;
  (dma.next == no_slot ? queue.last : dmas_[dma.next].previous) = dma.previous;
  dmas_.give_back(slot);
  --queue.open;
}

Owner DmaTracker::owner(DmaId id) const {
  const Dma& dma = dmas_[id.value];
  return dma.parent == no_slot ? dma.owner : dmas_[dma.parent].owner;
}

uint32_t DmaTracker::find(uint32_t handle, HerId her) const {
  const uint32_t slot = handle & handle_slot_mask;
  const bool named = dmas_.is_taken(slot) && dmas_[slot].her == her && !dmas_[slot].done;
  return named && handle_of(slot, dmas_[slot].serial) == handle ? slot : no_slot;
}

void DmaTracker::wait(uint32_t handle, HerId her) {
  const uint32_t slot = find(handle, her);
  SPL_ASSERT(slot != no_slot, "HER ", her, " waits for no DMA");
  dmas_[slot].is_awaited = true;
}

uint64_t DmaTracker::buffer_bytes() const {
  uint64_t bytes = 0;
  dmas_.for_each([&bytes](uint32_t, const Dma& dma) { bytes += dma.done ? 0 : dma.buffer_bytes; });
  return bytes;
}

void DmaTracker::check_invariants(const std::vector<const DmaQueue*>& queues) const {
  dmas_.check_invariants();
  uint32_t found = 0;
  for (const DmaQueue* const queue : queues) {
    uint32_t open = 0;
    uint32_t previous = no_slot;
    for (uint32_t slot = queue->first; slot != no_slot && open <= queue->open; slot = dmas_[slot].next) {
      SPL_ASSERT(dmas_[slot].previous == previous, "DMA ", slot, " follows ", previous, ", not ", dmas_[slot].previous);
      previous = slot;
      ++open;
    }
    SPL_ASSERT(open == queue->open && previous == queue->last, open, " DMAs are in a queue of ", queue->open);
    found += open;
  }
  dmas_.for_each([&](uint32_t, const Dma& dma) { found += dma.unqueued || dma.parent != no_slot ? 1 : 0; });
  SPL_ASSERT(found == dmas_.size(), dmas_.size() - found, " DMAs are in no queue");
}

}  // namespace spinloom::spin
