// TestLink - a sender, a receiver and a link between them that loses, repeats and delays packets by seed, in virtual
// time.
//
// Contract: run() lets time jump from one event to the next until the sender is done or has failed, and then until
//   nothing is on the way. Each packet of the sender is checked against what every sender promises. A receiver may
//   answer later, with at() and reply(). Only tests include this. Invariants: (1) the same seed gives the same run.
//   Threads: one. Time: virtual.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "ethernet/slmp/sender.hpp"

namespace spinloom::slmp::test {

inline std::vector<uint8_t> random_message(Random& random, uint64_t bytes) {
  std::vector<uint8_t> message(bytes);
  for (uint8_t& byte : message) byte = static_cast<uint8_t>(random.next());
  return message;
}

struct Faults {
  uint64_t lost_percent = 0;
  uint64_t repeated_percent = 0;
  Time delay_min{20'000'000};  // each way
  Time delay_spread{0};  // later packets may overtake
  Time delay_spread_back{delay_spread};
};

class TestLink {
 public:
  // Takes a datagram and gives what it answers.
  using Answer = std::function<std::optional<Header>(Time now, std::span<const uint8_t> datagram)>;

  TestLink(Random& random, const Faults& faults, std::span<const uint8_t> message, Answer answer)
      : random_(random), faults_(faults), message_(message), answer_(std::move(answer)) {}

  struct Sent {
    Time time;
    Header header;
    uint32_t length = 0;
  };

  void run(Sender& sender, const SenderConfig& config, const Segments& segments) {
    Time last{-1};
    sender_ = &sender;
    for (int64_t steps = 0; !sender.done() && sender.status(); ++steps) {
      ASSERT_LT(steps, 10'000'000) << "it does not end";
      while (const auto packet = sender.next(now)) {
        Header plain = packet->header;
        if (config.reports) plain.flags &= static_cast<uint16_t>(~report);
        ASSERT_EQ(plain, segments.header(static_cast<uint32_t>(packet->offset / segments.payload_bytes)));
        ASSERT_TRUE(last.ps < 0 || now - last >= config.gap) << "too early";
        last = now;
        if (config.retransmit && packet->header.has(eom) && segments.mode == Mode::segment) {
          waiting_.erase(packet->header.offset);
          ASSERT_TRUE(waiting_.empty()) << "EOM leaves when all else is acknowledged";
        }
        if (packet->header.has(syn)) waiting_.insert(packet->header.offset);
        sent.push_back({now, packet->header, packet->length});
        ASSERT_LE(sender.window(), config.window);
        emit(*packet);
      }
      if (sender.done() || !sender.status()) break;
      Time wake = sender.timer();
      if (!events_.empty()) wake = std::min(wake, events_.begin()->first);
      ASSERT_NE(wake, Time::never()) << "nothing would ever happen";
      now = std::max(now, wake);
      deliver();
    }
    sender_ = nullptr;
    while (!events_.empty()) {
      now = events_.begin()->first;
      deliver();
    }
  }

  void at(Time time, std::function<void()> event) { events_.emplace(time, std::move(event)); }
  void reply(const Header& header) {
    const auto bytes = write(header);
    Datagram datagram(bytes.begin(), bytes.end());
    if (has_report(header)) {
      const auto room = write_report(header);
      datagram.insert(datagram.end(), room.begin(), room.end());
    }
    send(false, datagram);
  }

  Time now{0};
  std::vector<Sent> sent;

 private:
  using Datagram = std::vector<uint8_t>;

  void send(bool to_receiver, const Datagram& datagram) {
    const uint64_t copies = random_.chance(faults_.lost_percent, 100)       ? 0
                            : random_.chance(faults_.repeated_percent, 100) ? 2
                                                                            : 1;
    for (uint64_t i = 0; i < copies; ++i) {
      const Time spread = to_receiver ? faults_.delay_spread : faults_.delay_spread_back;
      const Time delay{faults_.delay_min.ps + random_.between(0, spread.ps)};
      at(now + delay, [this, to_receiver, datagram] { to_receiver ? ask(datagram) : hear(datagram); });
    }
  }

  void emit(const Sender::Packet& packet) {
    const auto header = write(packet.header);
    Datagram datagram(header.begin(), header.end());
    const auto payload = message_.subspan(packet.offset, packet.length);
    datagram.insert(datagram.end(), payload.begin(), payload.end());
    send(true, datagram);
  }

  void ask(const Datagram& datagram) {
    if (const auto answer = answer_(now, datagram)) reply(*answer);
  }

  void hear(const Datagram& datagram) {
    if (sender_ == nullptr) return;
    const Header header = read(datagram).value();
    waiting_.erase(header.offset);
    sender_->on_acknowledgement(now, header);
  }

  void deliver() {
    while (!events_.empty() && events_.begin()->first <= now) {
      const auto event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
  }

  Random& random_;
  Faults faults_;
  std::span<const uint8_t> message_;
  Answer answer_;
  Sender* sender_ = nullptr;
  std::set<uint32_t> waiting_;  // offsets with SYN that have left and are not acknowledged
  std::multimap<Time, std::function<void()>> events_;
};

}  // namespace spinloom::slmp::test
