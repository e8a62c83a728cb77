// Room - how many packets may leave without finding the receiver full, by the room that it reports.
//
// Contract: transmissions have numbers, 0, 1, 2, ... in the order in which they leave. A report says for how many more
//   packets there was room when one of them was answered. A packet that is settled (acknowledged, or lost) and left no
//   later than the answered one took its room before the report, or never will. Every other packet may still need some
//   of the reported room. So the number of packets that may leave in all is the number of settled packets up to the
//   answered one, plus the room. This stays true later: the largest such sum counts, in whatever order reports come.
//   Where several senders share the room, each has an equal part of what is reported.
// Invariants: (1) while a packet is under way, no more leave than a report allows, and before the first report none;
//   (2) when none is under way, one may leave, so that nothing waits for ever; (3) a receiver that tells the truth to
//   its one sender has room for every packet but that of (2). This does not hold if a packet comes that was held for
//   lost or was doubled on its way. Nor does it hold if two packets overtake each other on the way there, and their
//   acknowledgements on the way back.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>

namespace spinloom::slmp {

class Room {
 public:
  explicit Room(uint32_t senders) : senders_(senders) {}

  [[nodiscard]] bool allows(uint64_t next) const { return under_way_.empty() || next < end_; }

  void on_departure(uint64_t transmission) { under_way_.insert(under_way_.end(), transmission); }
  void on_settled(uint64_t transmission) { under_way_.erase(transmission); }
  // on_settled(answered) has been called before.
  void on_report(uint64_t answered, uint32_t packets) {
    const auto later = under_way_.upper_bound(answered);
    const auto unsettled = static_cast<uint64_t>(std::distance(under_way_.begin(), later));
    end_ = std::max(end_, answered + 1 - unsettled + packets / senders_);
  }

 private:
  uint32_t senders_;
  uint64_t end_ = 0;  // the first transmission that may not leave
  std::set<uint64_t> under_way_;
};

}  // namespace spinloom::slmp
