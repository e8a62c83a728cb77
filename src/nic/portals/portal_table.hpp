// PortalTable - the matcher: portal table entries with their lists, the entries in them, and the unexpected headers.
//
// Contract: the host's commands allocate portal table entries and append, search and unlink entries. For a message
//   that arrives, find_priority() and find_overflow() give the entry that takes it; attach() links the two, detach()
//   ends that. Events of an entry's life (link, auto-unlink, auto-free, overflow, search) are posted here, events of
//   messages are not. Under flow control a portal table entry is disabled when its queue is full, or by disable()
//   when a message lacks something; its event comes when the messages that were matched before have ended
//   (leave()).
// Invariants: (1) an entry stays here while it is in a list, waits for its context, or messages and headers refer to
//   it; (2) a use-once entry leaves its list before its event is posted; (3) an entry's auto-unlink event comes after
//   the events of all its messages, its auto-free event after that of its last header, and before the auto-unlink event
//   of the entry that took that header; (4) a claimed header makes its event when all of its data is there and all
//   headers before it that the entry has claimed have made theirs; the entry's link event comes after all of them.
// Threads: one owner. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/limits.hpp"
#include "nic/portals/context_table.hpp"
#include "nic/portals/event_queues.hpp"
#include "nic/portals/match_list.hpp"
#include "nic/portals/publication.hpp"
#include "nic/portals/triggers.hpp"

namespace spinloom::nic {

class PortalTable final : public EventQueues::Watcher {
 public:
  // A portal table entry; only PortalTable changes it.
  struct Portal {
    PortalIndex index;
    QueueId queue;
    bool flow_control = false;
    bool enabled = true;
    bool disabled_event_due = false;
    std::vector<Answer> disablers;  // answers to disabling commands, given when its messages have ended
    uint32_t messages_open = 0;
    uint32_t published = 0;  // entries at the beginning of the priority list that peers use (publication.hpp)
    MatchList priority;
    MatchList overflow;
    LinkedList<UnexpectedHeader> unexpected;
  };

  // `headers_max` is the most unexpected headers of one portal table entry (NicLimits::unexpected_headers).
  PortalTable(EventQueues& queues, Triggers& triggers, ContextTable& contexts, uint32_t headers_max)
      : queues_(queues), triggers_(triggers), contexts_(contexts), headers_max_(headers_max) {}

  // Portal table entries, and the parts of the table that belong to the host's network interfaces.
  [[nodiscard]] Status setup(const TableSetup& request);
  [[nodiscard]] Result<uint64_t> read_refusals(const RefusalsRead& request) const;
  [[nodiscard]] Status alloc(const PortalAlloc& request);
  // Frees a portal table entry, and forgets headers that wait in it. Work: all entries, and its headers.
  [[nodiscard]] Status free(PortalIndex index, Actions& out);
  // Returns 1 if it was enabled before, else 0.
  [[nodiscard]] Result<uint64_t> enable(const PortalEnable& request);
  // True: messages for the entry are under way, and the end of the last one answers the token. False: there are none.
  [[nodiscard]] bool answer_when_empty(PortalIndex index, const Answer& answer);
  // Portal table entries that post to this queue lose it, and flow control with it: there is no queue for its events.
  void forget_queue(QueueId queue);
  [[nodiscard]] const Portal* find(PortalIndex index) const { return portals_.find(index); }
  // The part of the table that an index belongs to, also if no part has it.
  [[nodiscard]] static constexpr uint32_t table_of(uint32_t portal_index) {
    constexpr uint32_t each = limits::portal_table_max / limits::portal_tables;
    return portal_index < limits::portal_table_max ? portal_index / each : portal_index % limits::portal_tables;
  }
  // The user of the interface that this part of the table belongs to; the index need not name an allocated entry.
  [[nodiscard]] uint32_t user_of(PortalIndex index) const { return tables_[table_of(index.value)].setup.user; }

  // Entries.
  [[nodiscard]] Status append(const Append& request, Actions& out);
  [[nodiscard]] Result<UnlinkResult> unlink(EntryId id);
  // Returns how many headers the search found. A header that it removes is reported when its data is there. Work: the
  // headers of one portal table entry.
  [[nodiscard]] Result<uint64_t> search(const Search& request, Actions& out);
  // A peer is lost: entries that only its messages match, and that want to be told, count a failure. Work: all entries,
  // once.
  void lose(Rank peer, Actions& out);
  [[nodiscard]] bool has_lost(Rank peer) const;
  // The peer is there again: entries that only its messages match, and that want to be told, count a success. Work: all
  // entries, once.
  void readmit(Rank peer, Actions& out);
  // Links the entries that waited for this context. Work: all entries, once.
  void activate(ContextId context, Actions& out);
  [[nodiscard]] Result<uint32_t> slot_of(EntryId id) const;
  [[nodiscard]] const ListedEntry& entry(uint32_t slot) const { return entries_[slot]; }

  // Publication of entries (publication.hpp). Without a publisher nothing is published. Work of publish(): all entries.
  void set_publisher(Publisher& publisher) { publisher_ = &publisher; }
  [[nodiscard]] std::vector<PlainEntry> publish(PortalIndex index, uint32_t most);
  // Ends the publication of all entries that count with this counter. False: a peer does not leave.
  [[nodiscard]] bool close_counting(CounterId counter);

  // Matching: the first entry of a list that this message matches, or no_slot. Adds to `searched`.
  [[nodiscard]] uint32_t find_priority(const Portal& portal, const MatchKey& key, uint32_t& searched) const {
    return portal.priority.find(entries_, key, searched);
  }
  [[nodiscard]] uint32_t find_overflow(const Portal& portal, const MatchKey& key, uint32_t& searched) const {
    return portal.overflow.find(entries_, key, searched);
  }
  // True if the portal table entry may keep one more header.
  [[nodiscard]] bool has_header_room(const Portal& portal) const;
  // True if the queue has room for the events of a message for this entry; without flow control always.
  [[nodiscard]] bool has_event_room(const Portal& portal, const Entry& entry) const;

  // The link between a message and its entry, from its match to its end.
  struct Attached {
    uint32_t header = no_slot;  // the header of the message, if it waits in an overflow entry
    bool unlinked = false;  // the message has unlinked its entry
  };
  // `offset` is the message's offset in the entry's memory, `taken` the number of bytes that it takes there.
  [[nodiscard]] Attached attach(uint32_t slot, const MatchKey& key, Operation operation, const MessageFields& fields,
                                uint64_t offset, uint64_t taken);
  // Does what attach() does, for a message in one packet and a priority entry. Under flow control it takes only entries
  // that make no events. detach_whole() ends it.
  void attach_whole(uint32_t slot, uint64_t taken) {
    ListedEntry& listed = entries_[slot];
    SPL_ASSERT(listed.list == ListKind::priority, "entry ", listed.id);
    ++portals_.find(listed.portal)->messages_open;
    ++listed.messages_open;
    if (listed.entry.options.manage_local || listed.entry.options.use_once) (void)use(slot, taken);
  }
  // The data of the header's message is in the overflow entry.
  void landed(uint32_t header, uint64_t manipulated, uint64_t dropped, Fail failure);
  // `comes_back`: the entry, which this message has unlinked, is linked again.
  void detach(uint32_t slot, const Attached& attached, bool comes_back, Actions& out);
  void detach_whole(uint32_t slot, Actions& out) {
    ListedEntry& listed = entries_[slot];
    SPL_ASSERT(listed.messages_open > 0, "entry ", listed.id);
    --listed.messages_open;
    if (listed.linked) return;
    post_unlinked(slot, out);
    release(slot, out);
  }
  // Ends a message of a portal table entry, after detach() if an entry took it.
  void leave(PortalIndex index, Actions& out);

  // Counts a refused message for its part of the table.
  void count_refusal(PortalIndex index, Fail failure);
  // Disables a portal table entry under flow control, because a message lacks something; that message will leave()
  // later. `post_event`: the host gets an event.
  void disable(PortalIndex index, bool post_event);

  [[nodiscard]] uint32_t headers() const { return headers_.size(); }

  // The messages that refer to each entry's slot, and to each portal table entry.
  struct Users {
    SlotCounts of_entries;
    SlotCounts of_portals;
  };
  // Throws InternalError if an invariant is broken. For tests: looks at all entries and headers.
  void check_invariants(const Users& users) const;
  // The entries that refer to each context.
  [[nodiscard]] SlotCounts users_of_contexts() const;

 private:
  struct Part {
    TableSetup setup;
    uint32_t entries = 0;
    std::array<uint64_t, 3> refused{};  // indexed by Refusal
  };

  // portal_table.cpp
  void queue_filled(QueueId queue, Actions& out) override;
  void post_disabled(Portal& portal, Actions& out);

  // portal_entries.cpp
  [[nodiscard]] MatchList& list_of_entry(const ListedEntry& listed);
  [[nodiscard]] bool use(uint32_t slot, uint64_t taken);
  void link(uint32_t slot, Actions& out);
  void post_link(ListedEntry& listed, Actions& out);
  void post_unlinked(uint32_t slot, Actions& out);
  void unreserve_unlink_event(ListedEntry& listed);
  void release(uint32_t slot, Actions& out);
  void forget(uint32_t slot);

  // portal_published.cpp
  [[nodiscard]] uint64_t first_to_be_linked(PortalIndex index) const;
  [[nodiscard]] bool is_plain(const Portal& portal, const ListedEntry& listed) const;
  [[nodiscard]] bool close(Portal& portal);
  void note_change(const Portal& portal) {
    if (publisher_ != nullptr) publisher_->note_change(portal.index);
  }

  // portal_headers.cpp
  [[nodiscard]] uint32_t keep_header(uint32_t slot, const MatchKey& key, Operation operation,
                                     const MessageFields& fields, uint64_t offset, uint64_t taken);
  uint64_t claim_headers(uint32_t slot, Actions& out);
  [[nodiscard]] uint64_t remove_headers(const Search& request, Actions& out);
  [[nodiscard]] uint64_t report_headers(const Search& request, Actions& out);
  void count_end_of_search(const Entry& searching, Actions& out);
  void post_overflow(uint32_t header, Actions& out);
  [[nodiscard]] bool is_first_claim(uint32_t header) const;
  void post_claims(uint32_t claiming_entry, Actions& out);
  void end_claim(uint32_t claiming_entry, Actions& out);
  void end_claims(ListedEntry& claimer, Actions& out);
  void report_overflow(uint32_t header, const ListedEntry& claimer, Actions& out);
  void count_overflow(const Entry& entry, const Event& event, Actions& out);
  [[nodiscard]] Event event_of(const UnexpectedHeader& header, const ListedEntry& claimer, EventKind kind) const;
  [[nodiscard]] uint32_t forget_header(uint32_t header);

  EventQueues& queues_;
  Triggers& triggers_;
  ContextTable& contexts_;
  Publisher* publisher_ = nullptr;
  uint32_t headers_max_;

  Table<PortalIndex, Portal> portals_{"portal table entry", limits::portal_table_max, "limits::portal_table_max"};
  std::array<Part, limits::portal_tables> tables_{};
  Table<EntryId, uint32_t> entry_slots_{"entry", limits::entry_count_max, "limits::entry_count_max"};
  Slab<ListedEntry> entries_;
  Slab<UnexpectedHeader> headers_;
  uint64_t next_sequence_ = 1;
  std::vector<Rank> lost_;  // peers that are gone
};

}  // namespace spinloom::nic
