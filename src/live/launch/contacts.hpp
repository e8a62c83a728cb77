// Contacts - the peers without a card that this rank needs: when to ask each again, report it, and give it up.
//
// Contract: add() starts the clock of one peer, which is asked at that time; remove() ends it. due() returns what has
//   to be done by now: peers to ask again, each once; peers to give up, in every call until they are removed; and the
//   first peer to report to people.
// Invariants: (1) next() is the earliest time at which due() finds anything; (2) the pauses between two questions to a
//   peer double up to `pause_most`; (3) people get one report, and none where the limit comes first.
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
  static constexpr Time pause_most{1'000'000'000'000};  // 1 s; a peer that comes later greets by itself
  static constexpr Time told_after{10'000'000'000'000};  // 10 s

  // `limit`: the longest wait for a peer.
  explicit Contacts(Time limit = Time::never()) : limit_(limit) {}

  [[nodiscard]] bool empty() const { return peers_.empty(); }
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(peers_.size()); }
  [[nodiscard]] Time limit() const { return limit_; }
  [[nodiscard]] Time next() const { return next_; }
  void add(uint32_t rank, Time now);
  void remove(uint32_t rank);

  struct Due {
    std::vector<uint32_t> ask;
    std::vector<uint32_t> late;
    std::optional<uint32_t> tell;
  };
  [[nodiscard]] Due due(Time now);

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
  [[nodiscard]] bool tells() const { return !told_ && (limit_ == Time::never() || told_after < limit_); }
  void find_next();

  Time limit_;
  Time next_ = Time::never();
  bool told_ = false;
  std::vector<Peer> peers_;
};

}  // namespace spinloom::live
