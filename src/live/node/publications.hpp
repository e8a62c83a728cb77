// Publications - the owner's side of direct access: publishes plain entries of this process, and ends that.
//
// Contract: refresh() publishes what nic::Nic::publish() gives for the portals of note_change(). close() ends a
//   portal's publication and waits until no peer is inside; false: one stays for longer than `patience`. take_counts()
//   gives what peers have counted since the last call; the caller counts it before it brings anything else to the
//   engine.
// Invariants: (1) at most DirectMemory::portals_max portals are published, and so many entries of each as one record
//   takes; (2) counts of a publication that has ended are kept for take_counts(); (3) a peer that has ended is inside
//   of nothing.
// Threads: the owner of the engine. Time: the monotonic clock, for close().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "live/node/direct_memory.hpp"
#include "live/node/segment.hpp"
#include "nic/portals/nic.hpp"

namespace spinloom::live {

class Publications {
 public:
  using HasEnded = std::function<bool(uint32_t rank)>;

  // Peers have the ranks below `ranks`; `has_ended` says whether a peer's process has.
  Publications(Segment& own, uint32_t ranks, HasEnded has_ended);
  ~Publications();
  Publications(const Publications&) = delete;
  Publications& operator=(const Publications&) = delete;

  void note_change(nic::PortalIndex portal) {
    if (stale_.empty() || stale_.back() != portal) stale_.push_back(portal);
  }
  [[nodiscard]] bool is_stale() const { return !stale_.empty(); }
  void refresh(nic::Nic& engine);
  [[nodiscard]] bool close(nic::PortalIndex portal);
  // Shuts all gates for a while, so that the caller alone uses this process's memory, and opens them again.
  void pause();
  void resume();
  // Shuts all gates for good.
  void end();
  // Tells peers whether a caller of this process waits for packets.
  void note_waiting(bool waits) {
    if (used_ > 0) direct().waits.store(waits ? 1 : 0);
  }
  // From now on counts wake the helper thread.
  void leave_counts_to_helper() { direct().helper_counts.store(1); }
  // True if anything has been published, at any time.
  [[nodiscard]] bool any() const { return used_ > 0; }

  // True if take_counts() may have something to give.
  [[nodiscard]] bool has_counts() const { return used_ > 0 && (!kept_.empty() || direct().counted.load() != 0); }
  struct Count {
    nic::CounterId counter;
    uint64_t by = 0;
  };
  [[nodiscard]] std::vector<Count> take_counts();
  // The part of take_counts() that is this counter's, without taking it.
  [[nodiscard]] uint64_t uncounted(nic::CounterId counter) const;

 private:
  struct Record {
    nic::PortalIndex portal;  // none: the record is free
    bool is_open = false;
    std::vector<nic::CounterId> counters;  // the counters of its entries
  };

  [[nodiscard]] DirectMemory& direct() const { return own_.header().direct; }
  // False: a peer stays inside. One that has stayed for `patience` is not waited for again during that visit, and every
  // other one is.
  [[nodiscard]] bool shut(uint32_t record);
  [[nodiscard]] bool wait_until_empty(uint32_t record);
  [[nodiscard]] bool wait_for(uint32_t rank, uint64_t number);
  void keep_counts(uint32_t record);
  [[nodiscard]] uint32_t record_for(nic::PortalIndex portal);

  Segment& own_;
  uint32_t ranks_;
  HasEnded has_ended_;
  std::array<Record, DirectMemory::portals_max> records_;
  uint32_t used_ = 0;  // records that have been used
  bool is_over_ = false;  // end() has been called
  bool sees_heap_ = false;  // the heap tells when other memory is mapped over it
  std::vector<nic::PortalIndex> stale_;
  std::vector<Count> kept_;
  std::vector<uint64_t> stays_;  // the slot of each peer when it had stayed inside for `patience`; 0: it never has
};

}  // namespace spinloom::live
