// Admission - chooses the packet that goes to the engine next, where packets wait because the engine has no room
// (Nic::can_accept).
//
// The rule: packets without room wait in the order in which they came, and go in in that order. An answer
// (Packet::is_answer) passes all waiting packets: it needs no room, and they may wait for it. Drivers differ only in
// which other packets may pass, because their networks differ (Order).
// Contract: ask passes() about a packet that has just come, and next() about waiting packets when the engine may have
//   room again. Give the packet to the engine, then ask next() again.
// Invariants: (1) next() names a packet that has room; (2) of two headers from one source, answers excepted, the
//   earlier goes in first, because matching is in the order of sending. Order::any and Order::headers_pass do not
//   promise that.
// Threads: pure functions. Time: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "nic/portals/packet.hpp"

namespace spinloom::portals {

// The packets, besides answers, that may pass waiting packets.
enum class Order : uint8_t {
  // None: each source's packets come in the order sent, so a packet never needs one behind it. Answers go in when
  // they come and never wait, so next() looks at the oldest packet only. For the live driver and the loopback driver.
  arrival,
  // Answers also wait for the parser, and are looked for. While packets are kept that came ahead of their header, a
  // header with room may pass, too: those packets may fill the packet buffer, and their header frees it. It may pass
  // earlier headers, even of its own source, because the buffer may be full of its message's packets. For the
  // simulated driver, whose network lets packets overtake their header.
  headers_pass,
  // All packets that have room, but no header passes an earlier header of its source: lossy links bring packets in
  // any order, but headers in order. For the loopback driver over links.
  header_order,
  // All packets, for tests that want every order. For the loopback driver with a seed.
  any,
};

// True if a packet that has just come may go in before those that wait.
[[nodiscard]] inline bool passes(Order order, const nic::Packet& packet, bool others_wait) {
  return !others_wait || order == Order::any || packet.is_answer();
}

// Returns the index in `waiting`, oldest first, of the packet that goes in next; nothing if no packet may. `engine` is
// a Nic; `packet_of` finds the packet in an element of the list. `answers_wait` is false if the caller knows that no
// answer is in the list. Work: at most one look at each waiting packet. Only the oldest packet is looked at with
// Order::arrival, and with Order::headers_pass if no answer waits and no packet is kept that came ahead of its header.
template <class Engine, class List, class PacketOf>
[[nodiscard]] std::optional<size_t> next(Order order, const Engine& engine, const List& waiting, PacketOf packet_of,
                                         bool answers_wait = true) {
  if (waiting.empty()) return std::nullopt;
  if (engine.can_accept(packet_of(waiting.front()))) return 0;
  if (order == Order::arrival) return std::nullopt;
  const bool headers_pass = order == Order::headers_pass && engine.state().early_packets > 0;
  if (order == Order::headers_pass && !headers_pass && !answers_wait) return std::nullopt;
  std::vector<nic::Rank> waiting_sources;  // header_order: sources whose headers wait
  for (size_t i = 0; i < waiting.size(); ++i) {
    const nic::Packet& packet = packet_of(waiting[i]);
    if (packet.is_answer()) return i;
    bool may_pass = true;
    if (order == Order::headers_pass) may_pass = headers_pass && packet.is_header();
    const bool is_ordered = order == Order::header_order && packet.is_header();
    if (is_ordered)
      may_pass = std::find(waiting_sources.begin(), waiting_sources.end(), packet.source) == waiting_sources.end();
    if (may_pass && engine.can_accept(packet)) return i;
    if (is_ordered) waiting_sources.push_back(packet.source);
  }
  return std::nullopt;
}

}  // namespace spinloom::portals
