// Event - the NIC's reports to the host: full events on queues, and the values of counters.
//
// Contract: names and meaning follow Portals 4; `dma` is sPIN's: a handler's DMA without PTL_DMA_NO_EVENT
//   is complete, and so are all earlier DMAs of the same message.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

#include "nic/portals/ids.hpp"
#include "nic/spin/atomic.hpp"

namespace spinloom::nic {

enum class EventKind : uint8_t {
  put,            // target: a message landed in an entry of either list (in_overflow), or failed there
  put_overflow,   // target: an appended entry, or a search that removes, took a message from the overflow list
  auto_unlink,    // target: a use-once or exhausted entry left its list
  auto_free,      // target: an overflow entry and all its messages are done
  link,           // target: an entry was appended
  pt_disabled,    // target: flow control switched the portal table entry off
  send,           // initiator: the buffer may be reused
  ack,            // initiator: the target acknowledged
  dma,            // a handler's DMA (with event) and all earlier ones of its message are complete
  get,            // target: the reply to a get has been read from an entry's memory
  get_overflow,   // target: as put_overflow, for a get
  atomic,         // target: an atomic has changed an entry's memory
  atomic_overflow,
  fetch_atomic,   // target: an atomic has changed an entry's memory, and its reply has left
  fetch_atomic_overflow,
  reply,          // initiator: the bytes asked for are here, or the request has failed
  search,         // target: a message that a search found; or the search found none
};

[[nodiscard]] constexpr const char* name_of(EventKind kind) {
  switch (kind) {
    case EventKind::put: return "put";
    case EventKind::put_overflow: return "put_overflow";
    case EventKind::auto_unlink: return "auto_unlink";
    case EventKind::auto_free: return "auto_free";
    case EventKind::link: return "link";
    case EventKind::pt_disabled: return "pt_disabled";
    case EventKind::send: return "send";
    case EventKind::ack: return "ack";
    case EventKind::dma: return "dma";
    case EventKind::get: return "get";
    case EventKind::get_overflow: return "get_overflow";
    case EventKind::atomic: return "atomic";
    case EventKind::atomic_overflow: return "atomic_overflow";
    case EventKind::fetch_atomic: return "fetch_atomic";
    case EventKind::fetch_atomic_overflow: return "fetch_atomic_overflow";
    case EventKind::reply: return "reply";
    case EventKind::search: return "search";
  }
  return "unknown";
}

enum class Fail : uint8_t {
  ok,
  dropped,          // no entry matches, or without flow control there was no room for the header or the handlers
  pt_disabled,
  perm_violation,   // the entry belongs to another user
  op_violation,     // the entry does not allow the operation
  segv,             // a handler or a DMA left its memory, or the memory of an operation is not there (HostMemory)
  handler_fail,     // a handler returned FAIL
  handler_fault,    // illegal instruction, misaligned atomic, ...
  handler_budget,   // a handler ran past its cycle budget
  handler_code,     // a handler returned a code that does not exist
  undeliverable,    // the peer is lost
  aborted,          // handlers at the sender failed: the rest of the message never comes
  no_match,         // a search found nothing
};

[[nodiscard]] constexpr const char* name_of(Fail fail) {
  switch (fail) {
    case Fail::ok: return "ok";
    case Fail::dropped: return "no entry matched";
    case Fail::pt_disabled: return "the portal table entry is disabled";
    case Fail::perm_violation: return "the entry is another user's";
    case Fail::op_violation: return "the entry does not allow the operation";
    case Fail::segv: return "a handler or its DMA left its memory";
    case Fail::handler_fail: return "a handler returned FAIL";
    case Fail::handler_fault: return "a handler faulted";
    case Fail::handler_budget: return "a handler ran past its cycle budget";
    case Fail::handler_code: return "a handler returned a code that does not exist";
    case Fail::undeliverable: return "the target cannot be reached";
    case Fail::aborted: return "the sender's handlers failed";
    case Fail::no_match: return "a search found nothing";
  }
  return "unknown";
}

struct Event {
  EventKind kind = EventKind::put;
  Fail fail = Fail::ok;
  Rank initiator;
  uint32_t user = 0;  // the initiator's user ID
  PortalIndex portal;
  EntryId entry;
  uint64_t match_bits = 0;
  uint64_t requested_bytes = 0;    // rlength
  uint64_t manipulated_bytes = 0;  // mlength
  uint64_t remote_offset = 0;
  uint64_t start = 0;  // host address where the data begins
  uint64_t hdr_data = 0;
  uint64_t user_ptr = 0;
  bool in_overflow = false;  // ptl_list; ack, reply: the list of the entry that took the operation
  bool after_gap = false;    // events before it were overwritten before the host took them
  uint64_t dropped_bytes = 0;
  AtomicOperation atomic = AtomicOperation::min;  // the operation, in events of atomics
  Datatype datatype = Datatype::int8;
};

struct CounterValue {
  uint64_t success = 0;
  uint64_t failure = 0;
  auto operator<=>(const CounterValue&) const = default;
};

}  // namespace spinloom::nic
