// WaitingSend - a packet that a transport holds until it can leave: its bytes where they lie, or a copy of them.
//
// Contract: pieces are gathered at once. Where must_copy() says that nobody may wait for the bytes, the transport calls
//   keep() before it puts the packet into a queue. `copied` says whether the client's bytes have been read.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <utility>
#include <vector>

#include "live/node/transport.hpp"
#include "portals/interface/data_order.hpp"

namespace spinloom::live {

struct WaitingSend {
  WaitingSend() = default;
  explicit WaitingSend(nic::Send&& send) : outbound(std::move(send)) {
    if (outbound.pieces.empty()) return;
    copy.resize(outbound.packet.payload.length);
    nic::gather(outbound.pieces, copy.data());
    refer_to_copy();
  }
  WaitingSend(WaitingSend&&) = default;  // it is only moved, because its packet refers to `copy`
  WaitingSend& operator=(WaitingSend&&) = default;

  [[nodiscard]] bool must_copy() const {
    return outbound.at_once || portals::is_short_reply(outbound.packet) ||
           (outbound.from_device && !outbound.slot.exists());  // a handler does not wait
  }

  void keep() {
    if (copied) return;
    const nic::PayloadRef& payload = outbound.packet.payload;
    copy.assign(payload.bytes, payload.bytes + payload.length);
    refer_to_copy();
  }

  // Adds the part of this packet that has not left.
  void count(Outstanding& totals) const {
    ++totals.packets;
    totals.control_packets += outbound.packet.operation == nic::Operation::ack ? 1 : 0;
    totals.bytes += outbound.packet.payload.length - done;
  }

  nic::Send outbound;
  std::vector<uint8_t> copy;  // holds the payload, if it had to be copied
  bool copied = false;
  uint64_t done = 0;  // bytes that have left

 private:
  void refer_to_copy() {
    outbound.packet.payload.bytes = copy.data();
    copied = true;
  }
};

}  // namespace spinloom::live
