// Contacts - the peers without a card that this rank needs: when to ask each again, report it, and give it up.
//
// Contract: add() starts the clock of one peer, which is asked at that time; remove() ends it. take_due() returns what
//   has to be done by now: peers to ask again, each once; peers to give up, in every call until they are removed; and
//   the first peer to report to people.
// Invariants: (1) next() is the earliest time at which take_due() finds anything; (2) the pauses between two questions
//   to a peer double up to `pause_max`; (3) people get one report, and none where the limit comes first.
// Threads: one owner. Time: arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.hpp"

namespace spinloom::live {

class Contacts {
 public:
  static constexpr Time pause_first{1'000'000'000};  // 1 ms
  static constexpr Time pause_max{1'000'000'000'000};  // 1 s; a peer that comes later greets by itself
  static constexpr Time report_after{10'000'000'000'000};  // 10 s

  // `limit`: the longest wait for a peer.
  explicit Contacts(Time limit = Time::never()) : limit_(limit) {}

  [[nodiscard]] bool empty() const { return peers_.empty(); }
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(peers_.size()); }
  [[nodiscard]] Time limit() const { return limit_; }
  [[nodiscard]] Time next() const { return next_; }
  void add(uint32_t rank, Time now);
  void remove(uint32_t rank);

  struct Due {
    std::vector<uint32_t> to_ask;  // peers that this rank asks again
    std::vector<uint32_t> timed_out;  // peers that this rank gives up
    std::optional<uint32_t> to_report;  // the peer that people hear of
  };
  [[nodiscard]] Due take_due(Time now);

 private:
  struct Peer {
    uint32_t rank = 0;
    Time since;
    Time ask_at;
    Time pause;
  };
  [[nodiscard]] bool has_passed(Time now, const Peer& peer, Time span) const {
    return span != Time::never() && now - peer.since >= span;
  }
  [[nodiscard]] bool will_report() const { return !reported_ && (limit_ == Time::never() || report_after < limit_); }
  void update_next();

  Time limit_;
  Time next_ = Time::never();
  bool reported_ = false;
  std::vector<Peer> peers_;
};

}  // namespace spinloom::live
