// Backlog - packets that have come but find no room in the engine, in the order in which they came.
//
// Contract: add() takes over a packet. The owner gives the front packet, or a part of it, to the engine, and pops the
//   packet when all of it has been given. begin_stop() returns true once, when so many packets or bytes of a peer wait
//   that the peer must be told to stop; end_stop() returns true once, when the peer may go on. The notice that a peer
//   is lost waits behind the packets of that peer.
// Invariants: (1) of a peer that stops when it is told to, at most `stop_at` waits here, plus what was on its way.
//   accepts() is false for a peer of which twice `stop_at` waits: the owner then drops its packets. Payloads that
//   stay in a peer's memory count as packets, not as bytes. What this process sends to itself is always taken;
//   is_full_of_handlers() says when its handlers must not leave more here.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "live/node/transport.hpp"

namespace spinloom::live {

struct BacklogEntry {
  nic::Packet packet;  // the part that the engine has not had yet
  std::vector<uint8_t> bytes;  // a copy of the payload; empty if it can stay where it is
  Transport* from = nullptr;  // the transport that fetches the payload, if it lies in a peer's memory
  uint64_t loan = 0;  // the name of that payload for the transport
  SendCompletion completion;  // reported when the payload has been read, if this process is the sender
  bool lost = false;  // this is no packet but a notice that its source is lost
  bool by_handler = false;  // sent by a handler of this process
};

class Backlog {
 public:
  struct Amount {
    uint64_t packets = 0;
    uint64_t bytes = 0;
    [[nodiscard]] bool reaches(const Amount& other, uint64_t times) const {
      return packets >= times * other.packets || bytes >= times * other.bytes;
    }
  };
  static constexpr Amount stop_at{1024, 4 << 20};

  explicit Backlog(uint32_t ranks) : peers_(ranks) {}

  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  [[nodiscard]] bool holds(nic::Rank peer) const { return peers_[peer.value].held.packets > 0; }
  [[nodiscard]] bool is_full(nic::Rank peer) const { return peers_[peer.value].held.reaches(stop_at, 1); }
  [[nodiscard]] bool accepts(nic::Rank peer) const { return !peers_[peer.value].held.reaches(stop_at, 2); }
  // added_by_handlers() is the number of packets of this process's handlers that have ever waited here.
  // is_full_of_handlers() is true if too many of them wait now.
  [[nodiscard]] uint64_t added_by_handlers() const { return added_by_handlers_; }
  [[nodiscard]] bool is_full_of_handlers() const { return held_from_handlers_.reaches(stop_at, 2); }
  // The most packets of one peer that ever waited, and the most bytes; these may be of two peers.
  [[nodiscard]] const Amount& peak() const { return peak_; }

  void add(BacklogEntry entry) {
    Amount& held = peers_[entry.packet.source.value].held;
    ++held.packets;
    held.bytes += entry.bytes.size();
    if (entry.by_handler) {
      ++added_by_handlers_;
      ++held_from_handlers_.packets;
      held_from_handlers_.bytes += entry.bytes.size();
    }
    peak_ = {std::max(peak_.packets, held.packets), std::max(peak_.bytes, held.bytes)};
    waiting_.push_back(std::move(entry));
  }
  [[nodiscard]] BacklogEntry& front() { return waiting_.front(); }
  BacklogEntry pop() {
    BacklogEntry entry = std::move(waiting_.front());
    waiting_.pop_front();
    Amount& held = peers_[entry.packet.source.value].held;
    --held.packets;
    held.bytes -= entry.bytes.size();
    if (entry.by_handler) {
      --held_from_handlers_.packets;
      held_from_handlers_.bytes -= entry.bytes.size();
    }
    return entry;
  }
  [[nodiscard]] bool begin_stop(nic::Rank peer) {
    return is_full(peer) && !std::exchange(peers_[peer.value].stopped, true);
  }
  [[nodiscard]] bool end_stop(nic::Rank peer) {
    return !peers_[peer.value].held.reaches({stop_at.packets / 2, stop_at.bytes / 2}, 1) &&
           std::exchange(peers_[peer.value].stopped, false);
  }

 private:
  struct Peer {
    Amount held;
    bool stopped = false;
  };
  std::deque<BacklogEntry> waiting_;
  std::vector<Peer> peers_;
  Amount held_from_handlers_;
  uint64_t added_by_handlers_ = 0;
  Amount peak_;
};

}  // namespace spinloom::live
