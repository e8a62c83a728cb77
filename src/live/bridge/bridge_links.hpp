// BridgeLinks - carries bridge frames over the transports between this rank and those that it reaches directly.
//
// Contract: link() names the transport to a rank. pass() hands a frame to that transport, which copies it. A frame
//   travels as a packet of the class that a peer which has no room still takes (a reply, Packet::is_answer), so that a
//   rank whose engine is full goes on forwarding. collect() returns the frame of such a packet once all of it is there;
//   of any other packet it returns that it is none.
// Invariants: (1) frames of one rank may overtake each other; (2) parts of at most `open_max` frames of
//   a neighbour wait here, so that none uses up the room of others.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "live/node/transport.hpp"

namespace spinloom::live {

class BridgeLinks {
 public:
  static constexpr uint64_t frame_bytes_max = 64 << 10;
  static constexpr size_t open_max = 1024;

  BridgeLinks(uint32_t rank, uint32_t ranks) : rank_{rank}, links_(ranks), open_(ranks) {}

  void link(nic::Rank peer, Transport& transport) { links_.at(peer.value) = &transport; }
  void unlink(nic::Rank peer) {
    links_.at(peer.value) = nullptr;
    open_.at(peer.value).clear();
  }
  [[nodiscard]] Transport* to(nic::Rank peer) const {
    return peer.value < links_.size() ? links_[peer.value] : nullptr;
  }
  // False: there is no link, and the frame is dropped.
  bool pass(nic::Rank peer, std::span<const uint8_t> frame);

  [[nodiscard]] static bool is_carrier(const nic::Packet& packet) {
    return packet.operation == nic::Operation::reply && packet.answers == mark;
  }
  // The whole frame of a carrier, valid until the next call and as long as the packet; nothing: more of it must come,
  // or it is no frame.
  [[nodiscard]] std::optional<std::span<const uint8_t>> collect(const nic::Packet& carrier);

 private:
  static constexpr uint64_t mark = UINT64_MAX - 1;  // no request has this name: names hold counts and places in tables
  struct Parts {
    std::vector<uint8_t> bytes;
    uint64_t come = 0;
  };

  nic::Rank rank_;
  std::vector<Transport*> links_;
  uint64_t passed_ = 0;
  std::vector<std::map<uint64_t, Parts>> open_;  // by sender, then by message
  std::vector<uint8_t> whole_;
};

}  // namespace spinloom::live
