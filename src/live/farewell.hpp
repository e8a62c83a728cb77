// Farewell - whom a process that leaves still waits for, and what is lost to those it gives up.
//
// Contract: waits() is told again and again what a peer has not taken; it holds while the peer is worth waiting for.
//   lost() says for people what those that were given up have not taken, once nobody is waited for.
// Invariants: (1) a peer that goes on taking is waited for, however long it needs; (2) one that has taken nothing for
//   `patience` is given up, also over several farewells, until it takes something, but never one that may be writing
//   to this process's memory; (3) a peer that was gone before
//   anything waited for it loses nothing here: the program has heard of it.
// Threads: one owner. Time: an argument.
#pragma once

#include <string>
#include <vector>

#include "live/transport.hpp"

namespace spinloom::live {

class Farewell {
 public:
  static constexpr Time patience{5'000'000'000'000};  // 5 s

  explicit Farewell(uint32_t peers) : peers_(peers) {}

  [[nodiscard]] bool waits(Time now, nic::Rank peer, const Untaken& left);
  // Empty: nothing.
  [[nodiscard]] std::string lost() const;

 private:
  struct Peer {
    Untaken left;
    Time since;  // it is the same
    bool given_up = false;
  };
  std::vector<Peer> peers_;
};

}  // namespace spinloom::live
