// Farewell - decides how long a process that leaves waits for its peers, and says what is lost to peers that it gives
// up.
//
// Contract: begin() starts one farewell. update() is called again and again with what is outstanding at a peer; it
//   returns true while it is worth waiting for that peer. late_text() is a text that names the peers that this farewell
//   gave up at its limit. loss_text() is a text that says what peers that are gone or were given up have not taken; it
//   is meant for the time when no peer is waited for any more.
// Invariants: (1) a peer that goes on taking is waited for until the limit; (2) a peer for which update() gets the same
//   `left` during `patience` is given up, in later farewells too, until `left` changes. A peer that may be writing to
//   this process's memory, or that has not come yet, is given up only at the limit; (3) a peer that was given up at the
//   limit stays given up for farewells that begin before the limit has passed once more, unless it may be writing or
//   has taken all; (4) a peer that was gone before update() saw anything left for it counts as losing nothing: the
//   program has heard of its end.
// Threads: one owner. Time: an argument.
#pragma once

#include <string>
#include <vector>

#include "live/node/transport.hpp"

namespace spinloom::live {

class Farewell {
 public:
  static constexpr Time patience{5'000'000'000'000};  // 5 s

  // `limit`: the longest time of one farewell.
  explicit Farewell(uint32_t peers, Time limit = Time::never()) : limit_(limit), peers_(peers) {}

  void begin(Time now);
  [[nodiscard]] bool update(Time now, nic::Rank peer, const Outstanding& left);
  // Names the first eight peers that this farewell gave up at the limit, with what they have not taken; empty if there
  // are none.
  [[nodiscard]] std::string late_text() const;
  // Names the first eight peers that were given up although they owe a reply; empty if there are none.
  [[nodiscard]] std::string owing_text() const;
  // True if some peer that was given up may still write to this process's memory, or owes a reply.
  [[nodiscard]] bool may_be_written() const;
  // Says what is lost, for the first eight such peers; empty if nothing is lost.
  [[nodiscard]] std::string loss_text() const;

 private:
  enum class Fate : uint8_t { waited_for, silent, late };
  struct Peer {
    Outstanding left;
    Time since;  // the time when `left` last changed
    Fate fate = Fate::waited_for;
    Time late_at{};
  };
  [[nodiscard]] bool is_late(Time now, const Peer& peer) const;

  Time limit_;
  Time begun_{};
  std::vector<Peer> peers_;
};

}  // namespace spinloom::live
