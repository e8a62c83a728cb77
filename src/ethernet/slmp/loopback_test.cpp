// The drivers over loopback: every thread count and way to wait, for the thread sanitizer too.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/random.hpp"
#include "base/testing/patience.hpp"
#include "ethernet/slmp/receive_message.hpp"
#include "ethernet/slmp/send_message.hpp"
#include "ethernet/slmp/testing/link.hpp"

namespace spinloom::slmp {
namespace {

constexpr Time patience{240'000'000'000'000};

sockaddr_in loopback_address(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// A receiver that answers until the sender has returned.
class Listening {
 public:
  Listening() {
    EXPECT_TRUE(receiver_.listen(loopback_address(0)).ok());
    thread_ = std::thread([this] {
      auto got = receiver_.receive(patient(patience));
      if (got.ok() && *got) bytes = std::move((*got)->bytes);
      while (!sent) EXPECT_TRUE(receiver_.answer_until_quiet(Time{1'000'000'000}).ok());
    });
  }
  ~Listening() { join(); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  [[nodiscard]] sockaddr_in address() const { return loopback_address(receiver_.own_port()); }
  void join() {
    sent = true;
    if (thread_.joinable()) thread_.join();
  }

  std::optional<std::vector<uint8_t>> bytes;
  std::atomic<bool> sent = false;

 private:
  ReceiveMessage receiver_{ReceiverConfig{}};
  std::thread thread_;
};

// Rules: SLMP-44.
TEST(SlmpLoopback, EveryNumberOfThreadsAndWayToWait) {
  Random random(1, "SlmpLoopback");
  const auto message = test::random_message(random, 300'000);
  for (const Polling polling : {Polling::wait, Polling::original, Polling::busy}) {
    for (const uint32_t threads : {1, 2, 5}) {
      for (const auto& [retransmit, reports] : {std::pair{true, false}, {true, true}, {false, false}}) {
        SCOPED_TRACE(text("polling ", static_cast<int>(polling), ", ", threads, " threads, retransmit ", retransmit,
                          ", reports ", reports));
        Listening receiver;
        SendOptions options;
        options.threads = threads;
        options.polling = polling;
        options.sender.window = 20;
        options.sender.retransmit = retransmit;
        options.sender.reports = reports;
        options.sender.silence_max = patient(patience);
        options.sender.drain_max = patient(patience);
        options.sender.tries_max = 1000;
        uint64_t told = 0;
        options.progress = [&](uint64_t bytes, uint64_t total) {
          EXPECT_LE(told, bytes);
          EXPECT_EQ(total, message.size());
          told = bytes;
          return true;
        };
        SenderCounts counts;
        const Status status = send_message(options, receiver.address(), 7, message, counts);
        ASSERT_TRUE(status.ok()) << status.error().message;
        receiver.join();
        ASSERT_EQ(receiver.bytes, message);
        EXPECT_EQ(counts.settled_bytes, message.size());
        EXPECT_EQ(counts.acknowledged, counts.sent);
      }
    }
  }
}

// The bytes of a datagram, alone or among others that the system cuts from one.
TEST(SlmpLoopback, DatagramsKeepTheirBytesAndTheirEnds) {
  UdpPort receiver;
  ASSERT_TRUE(receiver.bind(loopback_address(0)).ok());
  UdpPort sender;
  ASSERT_TRUE(sender.connect(loopback_address(receiver.own_port())).ok());
  std::vector<std::vector<uint8_t>> expected;
  for (const size_t bytes : {50, 50, 50, 7, 50, 9, 200, 200, 1, 0, 200}) {
    expected.emplace_back(bytes + 3, static_cast<uint8_t>(expected.size()));
  }
  std::vector<Datagram> datagrams;
  for (const auto& one : expected) datagrams.push_back({{one.data(), 3}, {one.data() + 3, one.size() - 3}});
  for (size_t at = 0; at < datagrams.size();) {
    const auto sent = sender.send({datagrams.data() + at, datagrams.size() - at});
    ASSERT_TRUE(sent.ok()) << sent.error().message;
    at += *sent;
  }
  std::vector<std::vector<uint8_t>> came;
  const auto received = std::make_unique<UdpPort::Received>();
  while (came.size() < expected.size()) {
    receiver.wait(patient(patience), -1, false);
    const auto count = receiver.receive(*received);
    ASSERT_TRUE(count.ok() && *count > 0);
    for (size_t i = 0; i < *count; ++i) {
      const auto bytes = received->datagram(i);
      came.emplace_back(bytes.begin(), bytes.end());
    }
  }
  EXPECT_EQ(came, expected);
}

}  // namespace
}  // namespace spinloom::slmp
