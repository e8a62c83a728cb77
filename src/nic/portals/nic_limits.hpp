// NicLimits - the number or size of each resource of one NIC.
//
// Contract: check() says what is wrong with configured limits; a Nic is only made from valid ones.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace spinloom::nic {

struct NicLimits {
  uint32_t payload_bytes = 2048;  // bytes of a packet that a handler may see
  uint64_t transfer_bytes = 0;  // bytes of other packets: what the transport carries at once; at least payload_bytes
  uint32_t hpus = 32;
  uint64_t packet_buffer_bytes = 4 << 20;
  uint64_t nic_memory_bytes = 4 << 20;
  uint32_t early_packets = 4096;  // packets that came before their header
  uint32_t unexpected_headers = 1 << 16;  // unexpected headers of one portal table entry
  uint32_t triggered_commands = 1 << 16;  // commands that wait for one counter
  uint32_t at_once_bytes = 0;  // the longest put that the driver reads while it performs its Send
  uint32_t iovec_entries = 32;  // elements of a scatter list that the NIC holds at a time
  uint32_t atomic_bytes = 4096;  // the longest atomic; never more than a packet
  uint32_t fetch_atomic_bytes = 4096;  // the longest atomic that returns the values before
  uint32_t handler_messages = 256;  // incoming messages with a context that are under way
  uint32_t outbound_packets = 64;  // slots of the outbound buffer, for packets that handlers fill
};

[[nodiscard]] Status check(const NicLimits& limits);

}  // namespace spinloom::nic
