// Entry - a matching list entry (ME): host memory, the ranks that may use it, and what happens after a use.
//
// Contract: fields and options have the meaning of Portals 4's ptl_me_t; `context` attaches sPIN handlers.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "nic/portals/ids.hpp"
#include "nic/spin/iovec.hpp"

namespace spinloom::nic {

enum class ListKind : uint8_t { priority, overflow };

struct EntryOptions {
  bool op_put = true;          // put, atomic
  bool op_get = false;         // get; fetching atomics need both
  bool host_activated = false; // matches nothing: only the host starts its handlers (Invoke)
  bool manage_local = false;   // the target keeps the offset; otherwise the initiator's remote offset is used
  bool use_once = false;
  bool no_truncate = false;
  bool ack_disable = false;
  bool event_link_disable = true;
  // A message that this entry matched and that lacks room disables the portal table entry without an event.
  bool event_flowctrl_disable = false;
  bool event_comm_disable = false;     // no event for a put, get, atomic or search
  bool event_unlink_disable = false;
  bool event_success_disable = false;  // events only for failures
  bool event_over_disable = false;     // no overflow event
  bool unexpected_hdr_disable = false; // overflow list: later entries do not hear of what landed here
  bool count_unexpected = false;  // manage_local without use_once: messages found in the overflow list took room, too
  bool ct_overflow = false;  // count messages that this entry found in the overflow list
  bool ct_comm = false;  // count communication
  bool ct_bytes = false;  // count bytes, not operations
  bool ct_peer_lost = false;  // count a failure when match_rank is lost, or is lost already
  bool ct_peer_back = false;  // count a success when match_rank is no longer lost
};

struct Entry {
  uint8_t* start = nullptr;
  uint64_t length = 0;
  // If not empty, the entry's memory is this list instead of `start`: its elements in order, none empty, `length`
  // bytes in all. Offsets count through the concatenation. The list lies in host memory that does not change while
  // the entry exists.
  std::span<const IovecElement> iovec;
  EntryOptions options;
  Rank match_rank = Rank::any();
  uint64_t match_bits = 0;
  uint64_t ignore_bits = 0;
  uint64_t min_free = 0;  // manage_local: the entry is unlinked when fewer bytes are free; 0: never
  CounterId counter;
  uint32_t user = any_user;  // the user that may access the entry
  uint64_t user_ptr = 0;
  ContextId context;  // none: data goes straight to memory
  bool sparse = false;  // parts of the memory may not be there: HostMemory decides for each message
};

}  // namespace spinloom::nic
