// Memory - registered memory of this process: its pieces, the keys that were handed out, the notices that have come.
//
// Contract: offsets count through the pieces, one behind the other. copy_out() and copy_in() are for the emulation, by
//   the processor.
// Invariants: each key has an entry of its own on the NIC, and one for notified operations if the memory takes notices.
// Threads: the owner of the context. Time: none.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "nic/portals/ids.hpp"
#include "nic/spin/iovec.hpp"
#include "portals/rma/key.hpp"

namespace spinloom::rma {

struct Notice {
  uint64_t value = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t rank = 0;
};

class Memory {
 public:
  struct SharedKey {
    Key key;
    nic::EntryId entry;
    nic::EntryId notice_entry;
  };

  Memory(std::vector<spin::IovecElement> pieces, Notices notices);

  [[nodiscard]] uint64_t bytes() const { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] const std::vector<spin::IovecElement>& pieces() const { return pieces_; }
  [[nodiscard]] Notices notices() const { return notices_; }
  [[nodiscard]] bool is_contiguous() const { return pieces_.size() < 2; }
  [[nodiscard]] uint8_t* start() const { return pieces_.empty() ? nullptr : pieces_.front().base; }

  void copy_out(uint64_t offset, uint64_t bytes, uint8_t* to) const;
  void copy_in(uint64_t offset, uint64_t bytes, const uint8_t* from) const;

  uint32_t number = 0;  // its number in the context
  nic::CounterId counter;  // counts notified operations, or all operations if counts_all
  bool counts_all = false;
  uint64_t counter_base = 0;  // the counter's value before it was this memory's
  uint64_t counted_by_cpu = 0;  // notified operations of the emulation
  std::deque<Notice> waiting_notices;
  std::map<uint64_t, SharedKey> shared_keys;  // the index is the bits of their keys

 private:
  [[nodiscard]] spin::IovecView view() const { return {pieces_, ends_}; }

  std::vector<spin::IovecElement> pieces_;  // none empty; the NIC reads this list
  std::vector<uint64_t> ends_;
  Notices notices_;
};

}  // namespace spinloom::rma
