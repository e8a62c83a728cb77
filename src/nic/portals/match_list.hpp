// MatchList - the matching lists of a portal table entry: entries in append order, and the headers of messages that
// came before their entry.
//
// Contract: find() returns the first entry, in list order, that a message matches. Matching follows
//   Portals 4: initiator rank (or any), match bits equal outside the ignore bits, and with no_truncate
//   room for the whole message, unless a payload handler decides where bytes go. A host-activated entry
//   matches nothing.
// Invariants: (1) a list holds exactly its linked entries, in order of their sequence; (2) unlinking is
//   O(1), taken over many; (3) a LinkedList of unexpected headers is in order of arrival.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/portals/entry.hpp"
#include "nic/portals/event.hpp"
#include "nic/portals/packet.hpp"
#include "nic/spin/slab.hpp"

namespace spinloom::nic {

// The fields of a message that matching compares.
struct MatchKey {
  Rank source;
  uint64_t match_bits = 0;
  uint64_t remote_offset = 0;
  uint64_t length = 0;
};

// An entry and what the NIC knows about it.
struct ListedEntry {
  Entry entry;
  EntryId id;
  PortalIndex portal;
  ListKind list = ListKind::priority;
  bool places_payload = true;  // the NIC puts bytes at their offset, because there is no payload handler
  uint64_t local_offset = 0;   // the offset of the next message under manage_local
  uint64_t sequence = 0;       // sequence number of its append
  uint32_t messages_open = 0;
  uint32_t headers_kept = 0;   // unexpected headers that lie in this (overflow) entry
  uint32_t claims_open = 0;  // headers that this entry has claimed and not reported; messages_open counts them, too
  bool linked = false;
  bool is_published = false;  // peers may use it without the NIC (publication.hpp)
  bool awaits_context = false;  // it is in no list until its context is activated
  bool claiming = false;  // takes headers that came before it; meanwhile counts as one of its own messages
  bool link_event_due = false;  // it is linked, but its event waits for those of its claims
  bool is_search = false;  // it is no entry, but a search that removes what it finds
  bool auto_unlinked = false;
  bool unlink_event_reserved = false;  // flow control keeps room for its auto_unlink event
  bool unlink_reported = false;  // the auto_unlink event was due, so the auto_free event is due as well
  uint32_t line_index = 0;  // index in the lines of its list, while linked
  mutable std::vector<uint64_t> iovec_ends;  // ends of a scatter list's elements, computed when first needed
};

// The header of a message that an overflow entry took. It stays until a priority entry has claimed it and all of its
// data is there, or until a search removes it.
struct UnexpectedHeader {
  MatchKey key;
  Operation operation = Operation::put;
  MessageFields fields;
  uint32_t overflow_entry = no_slot;
  uint64_t manipulated_bytes = 0;
  uint64_t start = 0;
  uint64_t dropped_bytes = 0;
  Fail failure = Fail::ok;
  bool landed = false;         // all of its data is in the overflow entry
  uint32_t claimer = no_slot;  // an entry that was appended while the data was still arriving
  uint32_t previous = no_slot;
  uint32_t next = no_slot;
};

// Bytes from `offset` to the end of an entry.
[[nodiscard]] inline uint64_t room_at(uint64_t entry_length, uint64_t offset) {
  return offset < entry_length ? entry_length - offset : 0;
}

[[nodiscard]] bool matches(const ListedEntry& listed, const MatchKey& key);

// True if messages that land in this entry wait there for a later one.
[[nodiscard]] inline bool keeps_headers(const ListedEntry& listed) {
  return listed.list == ListKind::overflow && !listed.entry.options.unexpected_hdr_disable;
}

// The most events that a message for an entry makes: its own, and that of the entry, which it may unlink.
[[nodiscard]] inline uint32_t events_of(const Entry& entry) {
  const EntryOptions& options = entry.options;
  const bool may_leave = options.use_once || (options.manage_local && entry.min_free > 0);
  return (options.event_comm_disable ? 0 : 1) + (may_leave && !options.event_unlink_disable ? 1 : 0);
}

// A doubly linked list through the `previous` and `next` of slots; the slab belongs to the caller.
template <class T>
class LinkedList {
 public:
  [[nodiscard]] uint32_t first() const { return first_; }
  [[nodiscard]] uint32_t size() const { return size_; }

  void push_back(Slab<T>& slab, uint32_t slot) { insert_before(slab, slot, no_slot); }

  void insert_before(Slab<T>& slab, uint32_t slot, uint32_t successor) {
    T& item = slab[slot];
    SPL_ASSERT(item.next == no_slot && item.previous == no_slot && first_ != slot, "slot ", slot, " is in a list");
    item.next = successor;
    item.previous = successor == no_slot ? last_ : slab[successor].previous;
    (item.previous == no_slot ? first_ : slab[item.previous].next) = slot;
    (successor == no_slot ? last_ : slab[successor].previous) = slot;
    ++size_;
  }

  void remove(Slab<T>& slab, uint32_t slot) {
    T& item = slab[slot];
    SPL_ASSERT(size_ > 0, "slot ", slot);
    (item.previous == no_slot ? first_ : slab[item.previous].next) = item.next;
    (item.next == no_slot ? last_ : slab[item.next].previous) = item.previous;
    item.previous = no_slot;
    item.next = no_slot;
    --size_;
    SPL_ASSERT((size_ == 0) == (first_ == no_slot) && (size_ == 0) == (last_ == no_slot), size_, " items");
  }

 private:
  uint32_t first_ = no_slot;
  uint32_t last_ = no_slot;
  uint32_t size_ = 0;
};

// Matching reads one array, in list order. An entry that leaves keeps its line in the array, uncounted. Such lines are
// removed when they outnumber the others by a fixed number, or when an entry comes back.
class MatchList {
 public:
  // Links the entry in order of its sequence: at the end, except for an entry that comes back.
  void link(Slab<ListedEntry>& slab, uint32_t slot);
  void unlink(Slab<ListedEntry>& slab, uint32_t slot);
  // Returns the first entry that matches, or no_slot. Adds the number of entries compared to `searched`.
  [[nodiscard]] uint32_t find(const Slab<ListedEntry>& slab, const MatchKey& key, uint32_t& searched) const;
  // The entry that a walk looks at first, or no_slot.
  [[nodiscard]] uint32_t first() const { return first_ < lines_.size() ? lines_[first_].slot : no_slot; }
  // Calls visit(slot) for the entries in list order, until it returns false.
  template <class Visit>
  void for_each_while(Visit visit) const {
    for (size_t i = first_; i < lines_.size(); ++i) {
      if (lines_[i].slot != no_slot && !visit(lines_[i].slot)) return;
    }
  }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(lines_.size()) - first_ - vacant_; }
  // Throws InternalError if an invariant is broken. For tests: looks at all lines.
  void check_invariants(const Slab<ListedEntry>& slab) const;

 private:
  struct Line {
    uint64_t match_bits = 0;
    uint64_t match_mask = 0;  // the bits that must be equal
    uint32_t rank = 0;
    uint32_t rank_mask = 0;  // 0: any rank matches
    uint32_t slot = no_slot;  // no_slot: the entry has left
  };
  void compact(Slab<ListedEntry>& slab);

  std::vector<Line> lines_;
  uint32_t first_ = 0;  // all lines before this one have left
  uint32_t vacant_ = 0;   // lines behind first_ that have left
  uint64_t last_sequence_ = 0;
};

}  // namespace spinloom::nic
