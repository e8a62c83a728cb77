// Admission - which packet goes to the engine next, where packets wait because it has no room (Nic::can_accept).
//
// The rule: packets that have no room wait, in the order in which they came, and go in in that order. What is an answer
//   (Packet::is_answer) passes all that wait: it needs no room, and what waits may wait for it. What else may pass is
//   the one thing in which drivers differ, because their networks do (Order).
// Contract: passes() is asked for a packet that has just come, next() for those that wait, when the engine may have
//   room again. Whoever asks gives the packet to the engine then, and asks next() again.
// Invariants: (1) next() names a packet that has room; (2) without Order::any, and but for Order::headers_pass, of two
//   headers from one source, answers apart, the earlier goes in first: matching is in the order of sending.
// Threads: pure functions. Time: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "nic/packet.hpp"

namespace spinloom::portals {

// What passes packets that wait, beside answers.
enum class Order : uint8_t {
  // Nothing: each source's packets come in the order sent, so a packet never needs one behind it. Answers go in when
  // they come and never wait, so next() looks at the oldest packet only. The live driver; the loopback driver.
  arrival,
  // Answers wait as well, for the parser, and are looked for. While packets are kept that came ahead of their header, so
  // is a header with room: those packets may be what fills the packet buffer, and it makes room again. It may pass
  // earlier headers, its own source's, too: the buffer may be full of its message's packets. The simulated driver, whose
  // network lets packets pass their header.
  headers_pass,
  // All that has room, but no header an earlier one from its source: packets come as lossy links bring them, only their
  // headers in order. The loopback driver over links.
  header_order,
  // All: a test that wants every order. The loopback driver with a seed.
  any,
};

// Whether a packet that has just come may go in before those that wait.
[[nodiscard]] inline bool passes(Order order, const nic::Packet& packet, bool others_wait) {
  return !others_wait || order == Order::any || packet.is_answer();
}

// The place in `waiting`, oldest first, of the packet that goes in next; none where none may. `engine` is a Nic,
// `packet_of` finds the packet in an element of the list. Work: one look at each that waits; Order::arrival: one look.
template <class Engine, class List, class PacketOf>
[[nodiscard]] std::optional<size_t> next(Order order, const Engine& engine, const List& waiting, PacketOf packet_of) {
  if (waiting.empty()) return std::nullopt;
  if (engine.can_accept(packet_of(waiting.front()))) return 0;
  if (order == Order::arrival) return std::nullopt;
  const bool headers_pass = order == Order::headers_pass && engine.state().early_packets > 0;
  std::vector<nic::Rank> behind;  // header_order: whose headers wait
  for (size_t i = 0; i < waiting.size(); ++i) {
    const nic::Packet& packet = packet_of(waiting[i]);
    if (packet.is_answer()) return i;
    bool may_pass = true;
    if (order == Order::headers_pass) may_pass = headers_pass && packet.is_header();
    const bool ordered = order == Order::header_order && packet.is_header();
    if (ordered) may_pass = std::find(behind.begin(), behind.end(), packet.source) == behind.end();
    if (may_pass && engine.can_accept(packet)) return i;
    if (ordered) behind.push_back(packet.source);
  }
  return std::nullopt;
}

}  // namespace spinloom::portals
