// EchoStation - a host of one IPv4 address that answers whoever asks: ARP, echo requests, and each UDP datagram with
// its own bytes. For tests, demonstrations and measurements of ports.
//
// Contract: answer() writes the answer to a frame into `out`, which must hold as many bytes as the frame, and at least
//   60. It returns the answer's length, or 0 if there is none. VLAN tags come back as they came. answer_all() serves a
//   port: it receives a batch, sends the answers, and returns how many frames came. It keeps answers for which the port
//   has no room; the next call sends these and receives nothing.
// Threads: one. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ethernet/port/frame_port.hpp"
#include "nic/packet/address.hpp"

namespace spinloom::port {

class EchoStation {
 public:
  EchoStation(const packet::MacAddress& mac, packet::Ipv4Address address) : mac_(mac), address_(address) {}

  [[nodiscard]] size_t answer(Bytes frame, std::span<uint8_t> out) const;
  [[nodiscard]] Result<size_t> answer_all(FramePort& port);

 private:
  [[nodiscard]] size_t answer_ipv4(Bytes packet, std::span<uint8_t> out) const;

  static constexpr size_t batch = 64;

  packet::MacAddress mac_;
  packet::Ipv4Address address_;
  std::vector<uint8_t> space_;
  std::array<Bytes, batch> frames_{};
  std::array<Bytes, batch> answers_{};
  size_t answer_count_ = 0;
  size_t sent_count_ = 0;
};

}  // namespace spinloom::port
