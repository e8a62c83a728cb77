#include "nic/portals/nic_limits.hpp"

#include "base/limits.hpp"

namespace spinloom::nic {

Status check(const NicLimits& limits) {
  if (limits.payload_bytes == 0 || limits.payload_bytes > limits::payload_bytes_max) {
    return fail(Code::invalid, "NIC limits: payload_bytes is ", limits.payload_bytes, ", it must be 1 to ",
                limits::payload_bytes_max);
  }
  if (limits.hpus == 0 || limits.hpus > limits::hpu_count_max) {
    return fail(Code::invalid, "NIC limits: hpus is ", limits.hpus, ", it must be 1 to ", limits::hpu_count_max);
  }
  if (limits.atomic_bytes == 0 || limits.fetch_atomic_bytes == 0) {
    return fail(Code::invalid, "NIC limits: atomic_bytes or fetch_atomic_bytes is 0, an element has at least 1");
  }
  if (limits.iovec_entries == 0) {
    return fail(Code::invalid, "NIC limits: iovec_entries is 0, a scatter list needs at least 1");
  }
  if (limits.handler_messages == 0) {
    return fail(Code::invalid, "NIC limits: handler_messages is 0, a context takes at least 1 message");
  }
  if (limits.outbound_packets == 0 || limits.outbound_packets > limits::outbound_packets_max) {
    return fail(Code::invalid, "NIC limits: outbound_packets is ", limits.outbound_packets, ", it must be 1 to ",
                limits::outbound_packets_max);
  }
  if (limits.early_packets > limits::early_packets_max) {
    return fail(Code::invalid, "NIC limits: early_packets is ", limits.early_packets, ", it must be at most ",
                limits::early_packets_max);
  }
  if (limits.packet_buffer_bytes < limits.payload_bytes) {
    return fail(Code::invalid, "NIC limits: packet_buffer_bytes is ", limits.packet_buffer_bytes,
                ", it must hold one packet of ", limits.payload_bytes, " B");
  }
  return {};
}

}  // namespace spinloom::nic
