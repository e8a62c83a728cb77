// Sender - one message on its way over SLMP, or a run of its segments. It does no input or output itself.
//
// Contract: the driver sends what next() gives, hands the Sender every acknowledgement that comes, and calls next()
//   again when one has come or the time of timer() is there, until done() or an error in status(). A segment with SYN
//   counts against the window until it is acknowledged or held for lost. If the first segment of a message has SYN, it
//   is acknowledged before any other leaves. Several senders may share a message, each with a run of segments and a
//   window of its own. The paper leaves retransmission open (FPsPIN, deliverable D4.7, section 4.4.1). With it, a
//   segment whose acknowledgement is late leaves again, as it was; the segment with EOM leaves when all others of the
//   run that have SYN have been acknowledged, because a receiver may end the message there; and the window, unless it
//   is fixed, adapts to losses (window.hpp). Without retransmission, a wait longer than silence_max or drain_max is an
//   error. With reports, the first packet of a message asks for one when it leaves for the first and for the second
//   time, and is plain from then on: a receiver that refuses it costs two timeouts. If a report comes, every later
//   packet asks, and no more leave than the receiver has room for (room.hpp). If not, all of them are plain.
// Invariants: (1) next() returns only packets of plain SLMP, but for REPORT, where the config wants it; (2) no segment
//   with SYN leaves while as many are under way as the window holds, or as reports allow; (3) two packets leave at
//   least `gap` apart; (4) the same calls at the same times give the same packets.
// Threads: one owner. Time: an argument, never read.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/result.hpp"
#include "base/units.hpp"
#include "ethernet/slmp/room.hpp"
#include "ethernet/slmp/round_trip.hpp"
#include "ethernet/slmp/segments.hpp"
#include "ethernet/slmp/window.hpp"

namespace spinloom::slmp {

struct SenderConfig {
  uint32_t window = 64;  // packets
  Time gap{0};  // the time from one packet to the next
  bool retransmit = true;
  bool fixed_window = false;
  bool reports = false;  // ask for reports; a run behind the first segment assumes that the receiver gives them
  uint32_t senders = 1;  // number of senders that share the reported room
  uint32_t tries_max = 12;  // the number of times that a segment leaves before its message fails, with retransmission
  Time timeout_first{200'000'000'000};  // the time-out until a round trip has been measured
  Time timeout_min{10'000'000'000};
  Time timeout_max{1'000'000'000'000};
  Time silence_max{1'000'000'000'000};  // the longest standstill before all have left, without retransmission
  // The longest time from the last packet until all is acknowledged, without retransmission.
  Time drain_max{2'000'000'000'000};

  static constexpr uint32_t window_max = 1 << 16;
  static constexpr uint32_t asks_max = 2;  // the number of times that an unanswered first packet asks for a report
};

[[nodiscard]] Status check(const SenderConfig& config);

struct SenderCounts {
  uint64_t sent = 0;  // first transmissions
  uint64_t retransmitted = 0;
  uint64_t acknowledged = 0;
  uint64_t duplicates = 0;  // acknowledgements of what was acknowledged before
  uint64_t foreign = 0;  // headers that acknowledge nothing of this run
  // The bytes of packets that were acknowledged, or that have left and need no acknowledgement.
  uint64_t settled_bytes = 0;
};

class Sender {
 public:
  struct Packet {
    Header header;
    uint64_t offset = 0;  // the place of the payload in the message
    uint32_t length = 0;
  };

  // Sends `count` segments from `first` on. check() has accepted `config` and `segments`.
  Sender(const SenderConfig& config, const Segments& segments, uint32_t first, uint32_t count);
  Sender(const SenderConfig& config, const Segments& segments) : Sender(config, segments, 0, segments.count()) {}

  // Returns the packet that leaves now, if there is one; call it again until there is none.
  [[nodiscard]] std::optional<Packet> next(Time now);
  void on_acknowledgement(Time now, const Header& header);
  // Returns the time at which next() must be called again if no acknowledgement comes before.
  [[nodiscard]] Time timer() const;

  [[nodiscard]] bool contains(uint64_t offset) const;  // true if an acknowledgement of this offset belongs to this run
  [[nodiscard]] bool all_sent() const { return next_ == end_ && lost_.empty(); }
  [[nodiscard]] bool done() const { return all_sent() && flights_.empty(); }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const SenderCounts& counts() const { return counts_; }
  [[nodiscard]] uint32_t window() const { return window_.packets(); }
  [[nodiscard]] bool receiver_reports() const { return receiver_reports_; }  // true if the receiver reports its room

 private:
  struct Flight {  // a segment that waits for its acknowledgement
    Time sent;
    Time deadline;
    uint32_t tries = 0;
    uint64_t transmission = 0;
    bool lost = false;
  };

  void expire(Time now);
  void fail_message(Time now, uint32_t segment);
  [[nodiscard]] bool may_send() const;
  [[nodiscard]] bool may_send_next() const;
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] Packet transmit(Time now, uint32_t segment);
  [[nodiscard]] Time deadline() const;

  SenderConfig config_;
  Segments segments_;
  uint32_t first_;
  uint32_t end_;
  uint32_t next_;  // the first segment that has not left yet
  RoundTrip round_trip_;
  Window window_;
  Room room_;
  bool receiver_reports_;
  std::unordered_map<uint32_t, Flight> flights_;
  std::set<std::pair<Time, uint32_t>> deadlines_;  // the deadlines of the flights that are not lost
  std::deque<uint32_t> lost_;  // segments that leave again before new ones
  Time next_departure_{0};  // no packet leaves earlier
  Time began_{-1};
  Time last_acknowledged_{0};  // the time when something was acknowledged, or the message began
  Time last_progress_{0};  // the time when a packet left, or was acknowledged before all had left
  uint64_t transmissions_ = 0;
  SenderCounts counts_;
  Status status_;
};

}  // namespace spinloom::slmp
