// TestLink - a sender, a receiver and a link between them that loses, repeats and delays packets by seed, in virtual time.
//
// Contract: run() lets time jump from one event to the next until the sender is done or has failed, and then until
//   nothing is on the way. Each packet of the sender is checked against what every sender promises. Only tests include
//   this. Invariants: (1) the same seed gives the same run. Threads: one. Time: virtual.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <vector>

#include "base/random.hpp"
#include "slmp/sender.hpp"

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
    std::map<uint32_t, bool> waiting;  // offsets with SYN that have left and are not acknowledged
    for (int64_t steps = 0; !sender.done() && sender.status(); ++steps) {
      ASSERT_LT(steps, 10'000'000) << "it does not end";
      while (const auto packet = sender.next(now)) {
        ASSERT_EQ(packet->header, segments.header(static_cast<uint32_t>(packet->offset / segments.payload_bytes)));
        ASSERT_TRUE(last.ps < 0 || now - last >= config.gap) << "too early";
        last = now;
        if (config.retransmit && packet->header.has(eom) && segments.mode == Mode::segment) {
          waiting.erase(packet->header.offset);
          ASSERT_TRUE(waiting.empty()) << "EOM leaves when all else is acknowledged";
        }
        if (packet->header.has(syn)) waiting[packet->header.offset] = true;
        sent.push_back({now, packet->header, packet->length});
        ASSERT_LE(sender.window(), config.window);
        emit(*packet);
      }
      if (sender.done() || !sender.status()) break;
      Time wake = sender.timer();
      if (!events_.empty()) wake = std::min(wake, events_.begin()->first);
      ASSERT_NE(wake, Time::never()) << "nothing would ever happen";
      now = std::max(now, wake);
      deliver(&sender, &waiting);
    }
    while (!events_.empty()) {
      now = events_.begin()->first;
      deliver(nullptr, nullptr);
    }
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
      const Time delay{faults_.delay_min.ps + random_.between(0, faults_.delay_spread.ps)};
      events_.emplace(now + delay, std::pair{to_receiver, datagram});
    }
  }

  void emit(const Sender::Packet& packet) {
    const auto header = write(packet.header);
    Datagram datagram(header.begin(), header.end());
    const auto payload = message_.subspan(packet.offset, packet.length);
    datagram.insert(datagram.end(), payload.begin(), payload.end());
    send(true, datagram);
  }

  void deliver(Sender* sender, std::map<uint32_t, bool>* waiting) {
    while (!events_.empty() && events_.begin()->first <= now) {
      const auto [to_receiver, datagram] = events_.begin()->second;
      events_.erase(events_.begin());
      if (to_receiver) {
        if (const auto answer = answer_(now, datagram)) {
          const auto bytes = write(*answer);
          send(false, {bytes.begin(), bytes.end()});
        }
      } else if (sender != nullptr) {
        const Header header = read(datagram).value();
        waiting->erase(header.offset);
        sender->on_acknowledgement(now, header);
      }
    }
  }

  Random& random_;
  Faults faults_;
  std::span<const uint8_t> message_;
  Answer answer_;
  std::multimap<Time, std::pair<bool, Datagram>> events_;
};

}  // namespace spinloom::slmp::test
