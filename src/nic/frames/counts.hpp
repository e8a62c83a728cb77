// Counts - what the NIC counts while it works, for its host, its handlers and its control registers.
//
// Contract: counts only grow. Every frame that comes in counts as received and as exactly one of bypassed, matched,
//   runt, oversize or inactive. Every matched frame counts later as exactly one of dropped_full, spilled, frames_done,
//   handler_dropped, handler_to_host, to_memory or memory_full.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>

namespace spinloom::frames {

enum class Count : uint8_t {
  received,
  bypassed,            // no rule set holds: for the host's stack
  matched,
  runts,               // shorter than an Ethernet header
  oversize,            // longer than the largest packet slot or the MTU
  inactive,            // a rule set holds, but its context is not active: for the host's stack
  dropped_full,        // no free packet slot of its class
  spilled,             // no message queue is free: for the host's stack
  messages,            // messages begun
  messages_done,
  messages_abandoned,  // ended without a last frame: their queue was needed, or the host ended them
  frames_done,         // handlers have dealt with the frame, or no payload handler wants it
  handler_dropped,     // the payload handler returned DROP or failed, or the message's header handler did
  handler_to_host,     // a handler returned PROCEED: for the host's stack
  handler_failed,      // a handler returned FAIL or an unknown code, or an initialisation handler failed in any way
  handler_faults,      // a handler did not return
  to_memory,           // written to host memory without a handler
  memory_full,         // the host has not read that memory in time
  sent_by_handlers,
  sent_by_host,
  host_refused,        // too many frames of the host wait for the wire
  host_runs,           // handlers that the host has activated
  mails,               // requests of handlers to other contexts' handlers
  mails_refused,       // no such context, or it is not active, has no mail handler, or has too many mails
};
inline constexpr uint8_t count_kinds = 24;

using Counts = std::array<uint64_t, count_kinds>;

[[nodiscard]] constexpr const char* name_of(Count which) {
  constexpr const char* names[count_kinds] = {"frames received",
                                              "bypassed",
                                              "matched",
                                              "runts",
                                              "oversize",
                                              "context inactive",
                                              "dropped: packet memory full",
                                              "spilled to the host",
                                              "messages begun",
                                              "messages done",
                                              "messages abandoned",
                                              "frames processed",
                                              "dropped by handlers",
                                              "passed to the host by handlers",
                                              "failed in handlers",
                                              "handler faults",
                                              "written to host memory",
                                              "dropped: host memory full",
                                              "sent by handlers",
                                              "sent by the host",
                                              "refused from the host",
                                              "handlers run by the host",
                                              "mails",
                                              "mails refused"};
  return names[static_cast<uint8_t>(which)];
}

}  // namespace spinloom::frames
