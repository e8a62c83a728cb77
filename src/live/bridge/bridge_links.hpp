// BridgeLinks - carries bridge frames over the transports from this rank to the ranks that it reaches directly.
//
// Contract: link() sets the transport to a rank. pass() hands a frame to that transport, which copies it. The packet
//   that carries a frame is a reply (Packet::is_answer). A peer without room still takes replies, so a rank whose
//   engine is full goes on forwarding. is_carrier() tells such packets from others; collect() returns the frame once
//   all of its parts have arrived.
// Invariants: (1) frames of one rank may overtake each other; (2) at most `incomplete_max` incomplete frames of each
//   neighbour wait here, so no neighbour uses up the room of others.
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
  static constexpr size_t incomplete_max = 1024;

  BridgeLinks(uint32_t rank, uint32_t ranks) : rank_{rank}, links_(ranks), incomplete_(ranks) {}

  void link(nic::Rank peer, Transport& transport) { links_.at(peer.value) = &transport; }
  void unlink(nic::Rank peer) {
    links_.at(peer.value) = nullptr;
    incomplete_.at(peer.value).clear();
  }
  [[nodiscard]] Transport* to(nic::Rank peer) const {
    return peer.value < links_.size() ? links_[peer.value] : nullptr;
  }
  // Returns false if there is no link; then the frame is dropped.
  bool pass(nic::Rank peer, std::span<const uint8_t> frame);

  [[nodiscard]] static bool is_carrier(const nic::Packet& packet) {
    return packet.operation == nic::Operation::reply && packet.answers == mark;
  }
  // Returns the whole frame of a carrier. It is valid until the next call, and no longer than the packet. Returns
  // nothing if more parts must arrive, if the packet is malformed, or if `incomplete_max` frames of its sender are
  // incomplete.
  [[nodiscard]] std::optional<std::span<const uint8_t>> collect(const nic::Packet& carrier);

 private:
  static constexpr uint64_t mark = UINT64_MAX - 1;  // no request has this name: names hold counts and places in tables
  struct IncompleteFrame {
    std::vector<uint8_t> bytes;
    uint64_t bytes_arrived = 0;
  };

  nic::Rank rank_;
  std::vector<Transport*> links_;
  uint64_t passed_ = 0;
  std::vector<std::map<uint64_t, IncompleteFrame>> incomplete_;  // incomplete frames, by sender, then by message
  std::vector<uint8_t> complete_frame_;
};

}  // namespace spinloom::live
