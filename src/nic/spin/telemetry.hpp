// Telemetry - what the NIC counts while it works, for its host to read.
//
// Contract: counts of the NIC since it was made, and of each context since its creation. They only grow. A message
//   counts when it is matched, a handler when it starts or ends.
// Threads: plain values. Time: cycles are those of the handlers' processors, as the driver tells them.
#pragma once

#include <array>
#include <cstdint>

namespace spinloom::spin {

enum class Telemetry : uint8_t {
  messages,             // messages matched
  packets,              // packets of matched messages
  bytes,                // bytes in these packets
  header_handlers,      // header handlers started
  payload_handlers,
  completion_handlers,
  handler_cycles,       // cycles of handlers that have ended
  handler_faults,       // handlers that ended other than by returning
  failed_messages,      // messages that failed for whatever reason
  dropped_bytes,        // bytes that handlers dropped, or that no handler saw because the message was stopped
  refused_messages,     // no entry, no room, or the entry does not permit it; counted for the NIC only
  portals_disabled,     // portal table entries disabled by flow control; counted for the NIC only
};
inline constexpr uint8_t telemetry_counts = 12;

using TelemetryCounts = std::array<uint64_t, telemetry_counts>;

[[nodiscard]] constexpr const char* name_of(Telemetry which) {
  switch (which) {
    case Telemetry::messages: return "messages";
    case Telemetry::packets: return "packets";
    case Telemetry::bytes: return "bytes";
    case Telemetry::header_handlers: return "header handlers";
    case Telemetry::payload_handlers: return "payload handlers";
    case Telemetry::completion_handlers: return "completion handlers";
    case Telemetry::handler_cycles: return "handler cycles";
    case Telemetry::handler_faults: return "handler faults";
    case Telemetry::failed_messages: return "failed messages";
    case Telemetry::dropped_bytes: return "dropped bytes";
    case Telemetry::refused_messages: return "refused messages";
    case Telemetry::portals_disabled: return "portal table entries disabled";
  }
  return "unknown";
}

}  // namespace spinloom::spin
