// Backlog - packets that have come and that the engine has no room for yet, in the order in which they came.
//
// Contract: add() takes one over; the owner gives the front one to the engine, or a part of it, and pops it when
//   nothing is left. says_stop() and says_go() are true once when so much of a peer waits that it must be told to stop,
//   and when it may go on. A peer's loss waits behind its packets.
// Invariants: (1) of a peer that stops when told, at most `stop_at` and what was on its way wait; of one that does not,
//   twice that, and then nothing more is taken. What this process sends itself is taken all; is_full_of_handlers() says
//   that its handlers must not leave more.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "live/transport.hpp"

namespace spinloom::live {

struct Blocked {
  nic::Packet packet;  // what the engine has not had of it
  std::vector<uint8_t> bytes;  // its payload, where the sender has its memory back
  Transport* from = nullptr;  // who reads the payload, where it is a peer's
  uint64_t loan = 0;  // its name then
  Reading reading;  // told when it is done, where its sender is this process
  bool lost = false;  // no packet: its source is gone
  bool by_handler = false;  // of this process
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
  [[nodiscard]] bool takes(nic::Rank peer) const { return !peers_[peer.value].held.reaches(stop_at, 2); }
  // Packets of this process's handlers that have ever come to wait here, and whether too many wait now.
  [[nodiscard]] uint64_t left_by_handlers() const { return left_by_handlers_; }
  [[nodiscard]] bool is_full_of_handlers() const { return of_handlers_.reaches(stop_at, 2); }
  // The most that ever waited of one peer.
  [[nodiscard]] const Amount& peak() const { return peak_; }

  void add(Blocked one) {
    Amount& held = peers_[one.packet.source.value].held;
    ++held.packets;
    held.bytes += one.bytes.size();
    if (one.by_handler) {
      ++left_by_handlers_;
      ++of_handlers_.packets;
      of_handlers_.bytes += one.bytes.size();
    }
    peak_ = {std::max(peak_.packets, held.packets), std::max(peak_.bytes, held.bytes)};
    waiting_.push_back(std::move(one));
  }
  [[nodiscard]] Blocked& front() { return waiting_.front(); }
  Blocked pop() {
    Blocked one = std::move(waiting_.front());
    waiting_.pop_front();
    Amount& held = peers_[one.packet.source.value].held;
    --held.packets;
    held.bytes -= one.bytes.size();
    if (one.by_handler) {
      --of_handlers_.packets;
      of_handlers_.bytes -= one.bytes.size();
    }
    return one;
  }
  [[nodiscard]] bool says_stop(nic::Rank peer) {
    return is_full(peer) && !std::exchange(peers_[peer.value].stopped, true);
  }
  [[nodiscard]] bool says_go(nic::Rank peer) {
    return !peers_[peer.value].held.reaches({stop_at.packets / 2, stop_at.bytes / 2}, 1) &&
           std::exchange(peers_[peer.value].stopped, false);
  }

 private:
  struct Peer {
    Amount held;
    bool stopped = false;
  };
  std::deque<Blocked> waiting_;
  std::vector<Peer> peers_;
  Amount of_handlers_;
  uint64_t left_by_handlers_ = 0;
  Amount peak_;
};

}  // namespace spinloom::live
