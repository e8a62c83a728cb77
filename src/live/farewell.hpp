// Farewell - whom a process that leaves still waits for, and what is lost to those it gives up.
//
// Contract: begin() starts one farewell. waits() is told again and again what a peer has not taken; it holds while the
//   peer is worth waiting for. late() says for people whom this farewell has given up at its limit; lost() what those
//   that were given up have not taken, once nobody is waited for.
// Invariants: (1) a peer that goes on taking is waited for until the limit; (2) one that has taken nothing for
//   `patience` is given up, also over several farewells, until it takes something, but one that may be writing to this
//   process's memory only at the limit; (3) who was given up at the limit is given up by farewells that begin before
//   the limit has passed again, but for one that may be writing; (4) a peer that was gone before anything waited for it
//   loses nothing here: the program has heard of it.
// Threads: one owner. Time: an argument.
#pragma once

#include <string>
#include <vector>

#include "live/transport.hpp"

namespace spinloom::live {

class Farewell {
 public:
  static constexpr Time patience{5'000'000'000'000};  // 5 s

  // `limit`: of one farewell.
  explicit Farewell(uint32_t peers, Time limit = Time::never()) : limit_(limit), peers_(peers) {}

  void begin(Time now);
  [[nodiscard]] bool waits(Time now, nic::Rank peer, const Untaken& left);
  // Empty: nobody.
  [[nodiscard]] std::string late() const;
  // Some peer that was given up may still write to this process's memory.
  [[nodiscard]] bool may_be_written() const;
  // Empty: nothing.
  [[nodiscard]] std::string lost() const;

 private:
  enum class Fate : uint8_t { waited_for, silent, late };
  struct Peer {
    Untaken left;
    Time since;  // it is the same
    Fate fate = Fate::waited_for;
    Time late_at{};
  };
  [[nodiscard]] bool is_late(Time now, const Peer& peer) const;

  Time limit_;
  Time begun_{};
  std::vector<Peer> peers_;
};

}  // namespace spinloom::live
