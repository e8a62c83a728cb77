// Segments - a message cut into packets: which bytes each carries, and with which header it leaves.
//
// Contract: all segments but the last carry payload_bytes. The mode of reliability says which segments have SYN
//   (FPsPIN, deliverable D4.7, section 4.4.1). An empty message is one segment without payload.
// Invariants: (1) the segments cover the message once, in order; (2) only the last one has EOM.
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/result.hpp"
#include "ethernet/slmp/header.hpp"

namespace spinloom::slmp {

// The packets with SYN, which are acknowledged: none; the first and the last of a message; all.
enum class Mode : uint8_t { none, message, segment };

// Returns a packet's payload: what Ethernet leaves, rounded down to an alignment, such as that of the receiver's DMA.
[[nodiscard]] inline Result<uint32_t> payload_of(int64_t alignment) {
  if (alignment < 1 || alignment > payload_bytes_max) {
    return fail(Code::invalid, "an alignment of ", alignment, " bytes: it must lie from 1 to ", payload_bytes_max,
                ", the payload of a packet");
  }
  const auto by = static_cast<uint32_t>(alignment);
  return payload_bytes_max / by * by;
}

struct Segments {
  uint32_t message_id = 0;
  uint64_t message_bytes = 0;  // message_bytes_max is the most
  uint32_t payload_bytes = payload_bytes_max;
  Mode mode = Mode::segment;

  [[nodiscard]] uint32_t count() const {
    return static_cast<uint32_t>(std::max<uint64_t>(1, (message_bytes + payload_bytes - 1) / payload_bytes));
  }
  [[nodiscard]] uint64_t offset(uint32_t segment) const { return uint64_t{segment} * payload_bytes; }
  [[nodiscard]] uint32_t length(uint32_t segment) const {
    return static_cast<uint32_t>(std::min<uint64_t>(payload_bytes, message_bytes - offset(segment)));
  }
  [[nodiscard]] bool has_syn(uint32_t segment) const {
    if (mode == Mode::message) return segment == 0 || segment + 1 == count();
    return mode == Mode::segment;
  }
  [[nodiscard]] Header header(uint32_t segment) const {
    uint16_t flags = has_syn(segment) ? syn : 0;
    if (segment + 1 == count()) flags |= eom;
    return {flags, message_id, static_cast<uint32_t>(offset(segment))};
  }
};

[[nodiscard]] inline Status check(const Segments& segments) {
  if (segments.message_bytes > message_bytes_max) {
    return fail(Code::overflow, "a message of ", segments.message_bytes, " bytes: SLMP's offsets have four bytes, so ",
                message_bytes_max, " bytes (4 GiB) is the most; send it as several messages");
  }
  if (segments.payload_bytes < 1 || segments.payload_bytes > payload_bytes_max) {
    return fail(Code::invalid, "packets of ", segments.payload_bytes, " bytes: their payload must lie from 1 to ",
                payload_bytes_max);
  }
  return {};
}

}  // namespace spinloom::slmp
