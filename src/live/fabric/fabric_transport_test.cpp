// The fabric transport between ranks of one process: bytes, loans, order, stops, strangers, losses, farewells.
#include "live/fabric/fabric_transport.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

#include "base/testing/patience.hpp"
#include "live/fabric/fabric_faults.hpp"
#include "live/fabric/testing/local_fabric.hpp"
#include "live/node/futex.hpp"
#include "live/node/testing/listener.hpp"
#include "nic/wire/packet_format.hpp"

namespace spinloom::live {
namespace {

constexpr Secret secret{11, 12};
constexpr uint64_t lent_bytes = 100'000;  // more than is copied

Time long_enough() { return patient(Time{20'000'000'000'000}); }

// A whole put from one rank to another; its message has the number of the sender.
nic::Send a_put(uint32_t from, uint32_t target, const std::vector<uint8_t>& bytes) {
  nic::Send outbound;
  outbound.packet.source = nic::Rank{from};
  outbound.packet.target = nic::Rank{target};
  outbound.packet.message = from;
  outbound.packet.message_length = bytes.size();
  outbound.packet.payload = {nic::PayloadRef::Space::local, bytes.data(), bytes.size()};
  outbound.last = true;
  return outbound;
}

// Enough for a process that is not stopped, and short enough to wait for.
constexpr FabricPatience impatient{Time{20'000'000'000}, Time{100'000'000'000}, Time{20'000'000'000},
                                   Time{50'000'000'000}};

struct FabricRig {
  explicit FabricRig(bool has_reads = true, const FabricFaults& faults = {}, const FabricPatience& patience = {})
      : fabric(2, has_reads) {
    for (uint32_t rank : {0u, 1u}) {
      auto port = fabric.port(rank);
      if (faults.any()) port = disturb(std::move(port), faults);
      ends[rank] = std::make_unique<FabricTransport>(
          heard[rank], std::move(port), rank, secret, std::vector<bool>{true, true}, [](int) {}, patience);
    }
  }
  // Polls until this rank has lost the other.
  bool loses(uint32_t rank) {
    for (const Time give_up = monotonic_now() + long_enough(); monotonic_now() < give_up;) {
      if (!heard[rank].gone.empty()) return true;
      ends[rank]->poll();
    }
    return false;
  }
  bool put(uint32_t from, uint64_t message, const std::vector<uint8_t>& bytes, bool at_once = false) {
    nic::Send outbound = a_put(from, 1 - from, bytes);
    outbound.packet.message = message;
    outbound.packet.fields.match_bits = message;
    outbound.at_once = at_once;
    return ends[from]->send(outbound);
  }
  void poll(int times = 200) {
    for (int i = 0; i < times; ++i) {
      for (const auto& end : ends) end->poll();
    }
  }
  // Polls until nothing is on its way; false: that takes too long.
  bool drain() {
    for (const Time give_up = monotonic_now() + long_enough(); monotonic_now() < give_up;) {
      poll(1);
      if (ends[0]->drained() && ends[1]->drained()) return true;
    }
    return false;
  }
  // The bytes of a message that came to this rank, put together from its packets.
  [[nodiscard]] std::vector<uint8_t> message(uint32_t rank, uint64_t name) const {
    std::vector<uint8_t> whole;
    for (size_t i = 0; i < heard[rank].packets.size(); ++i) {
      if (heard[rank].packets[i].message != name) continue;
      EXPECT_EQ(heard[rank].packets[i].offset, whole.size());
      whole.insert(whole.end(), heard[rank].payloads[i].begin(), heard[rank].payloads[i].end());
    }
    return whole;
  }

  LocalFabric fabric;
  std::array<Listener, 2> heard;
  std::array<std::unique_ptr<FabricTransport>, 2> ends;
};

class FabricLengths : public testing::TestWithParam<std::tuple<bool, double>> {};

TEST_P(FabricLengths, MessagesOfAllLengthsArriveInOrder) {
  const auto [has_reads, trouble] = GetParam();
  FabricFaults faults;
  faults.refuse = faults.delay = trouble;
  FabricRig rig(has_reads, faults);
  std::vector<std::vector<uint8_t>> sent;
  for (const uint64_t length : {0ul, 1ul, 100ul, 3800ul, 4096ul, 20'000ul, lent_bytes, 1'500'000ul}) {
    sent.push_back(some(length, length + 1));
  }
  for (uint64_t i = 0; i < sent.size(); ++i) {
    for (const uint32_t from : {0u, 1u}) std::ignore = rig.put(from, i + 1, sent[i]);
  }
  ASSERT_TRUE(rig.drain());
  for (const uint32_t rank : {0u, 1u}) {
    for (uint64_t i = 0; i < sent.size(); ++i) EXPECT_EQ(rig.message(rank, i + 1), sent[i]) << i;
    uint64_t last = 0;
    for (const nic::Packet& packet : rig.heard[rank].packets) {
      EXPECT_GE(packet.message, last);
      last = packet.message;
    }
    for (const auto& [token, succeeded] : rig.heard[rank].fetches) EXPECT_TRUE(succeeded);
    EXPECT_EQ(rig.ends[rank]->counts().lent, has_reads ? 2u : 0u);
    EXPECT_TRUE(rig.heard[rank].gone.empty());
    EXPECT_EQ(rig.ends[rank]->outstanding(nic::Rank{1 - rank}).packets, 0u);
  }
  EXPECT_EQ(rig.fabric.lent(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, FabricLengths, testing::Combine(testing::Bool(), testing::Values(0.0, 0.3)),
                         [](const auto& all) {
                           return std::string(std::get<0>(all.param) ? "Reads" : "Pieces") +
                                  (std::get<1>(all.param) > 0 ? "Disturbed" : "");
                         });

TEST(FabricTransport, TheSenderHearsWhenItsMemoryHasBeenRead) {
  FabricRig rig;
  rig.heard[1].keeps = true;
  const auto bytes = some(lent_bytes, 1);
  EXPECT_TRUE(rig.put(0, 1, some(64, 1))) << "copied";
  EXPECT_FALSE(rig.put(0, 2, bytes)) << "lent";
  rig.poll();
  EXPECT_TRUE(rig.heard[0].read.empty());
  EXPECT_GE(rig.ends[0]->outstanding(nic::Rank{1}).bytes, lent_bytes);
  EXPECT_FALSE(rig.ends[0]->drained());
  ASSERT_EQ(rig.heard[1].kept.size(), 1u);
  rig.ends[1]->return_loan(nic::Rank{0}, rig.heard[1].kept[0]);
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(rig.heard[0].read, std::vector<uint64_t>{2});
}

TEST(FabricTransport, APeerThatWaitsForRoomReadsLater) {
  FabricRig rig;
  rig.heard[1].keeps = true;
  const auto bytes = some(lent_bytes, 5);
  std::ignore = rig.put(0, 1, bytes);
  rig.poll();
  std::vector<uint8_t> part(5000);
  const auto address = reinterpret_cast<uint64_t>(rig.heard[1].packets[0].payload.bytes);
  ASSERT_TRUE(rig.ends[1]->fetch(nic::Rank{0}, address + 777, part.data(), part.size()).ok());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + 777));
  EXPECT_FALSE(rig.ends[1]->fetch(nic::Rank{0}, address + lent_bytes - 10, part.data(), part.size()).ok());
  EXPECT_FALSE(rig.ends[1]->fetch(nic::Rank{0}, address - 1, part.data(), part.size()).ok());
  rig.ends[1]->return_loan(nic::Rank{0}, rig.heard[1].kept[0]);
  EXPECT_FALSE(rig.ends[1]->fetch(nic::Rank{0}, address, part.data(), part.size()).ok()) << "returned";
}

// A receiver may fetch while it is called for a message; messages that come meanwhile wait.
TEST(FabricTransport, MessagesThatComeDuringAFetchAreNotLost) {
  FabricRig rig;
  class Fetching final : public TransportClient {
   public:
    [[nodiscard]] bool arrived(Transport& from, const nic::Packet& packet, uint64_t) override {
      if (packet.payload.space == nic::PayloadRef::Space::peer) {
        std::vector<uint8_t> bytes(packet.payload.length);
        good =
            from.fetch(packet.source, reinterpret_cast<uint64_t>(packet.payload.bytes), bytes.data(), bytes.size()) &&
            bytes == some(bytes.size(), 9);
      }
      order.push_back(packet.message);
      return true;
    }
    void sent(const SendCompletion&) override {}
    void fetched(uint64_t, bool) override {}
    void lost(nic::Rank) override {}
    std::vector<uint64_t> order;
    bool good = false;
  } client;
  rig.ends[1] = std::make_unique<FabricTransport>(client, rig.fabric.port(1), 1, secret, std::vector<bool>{true, true},
                                                  [](int) {});
  const auto bytes = some(lent_bytes, 9);
  std::ignore = rig.put(0, 1, bytes);
  std::ignore = rig.put(0, 2, some(10, 1));
  std::ignore = rig.put(0, 3, some(10, 1));
  ASSERT_TRUE(rig.drain());
  EXPECT_TRUE(client.good);
  EXPECT_EQ(client.order, (std::vector<uint64_t>{1, 2, 3}));
}

TEST(FabricTransport, AStoppedPeerSendsAnswersOnly) {
  FabricRig rig;
  std::ignore = rig.put(1, 1, some(10, 1));
  rig.poll();
  rig.ends[0]->set_stopped(nic::Rank{1}, true);
  rig.poll();
  const auto bytes = some(1000, 2);
  EXPECT_FALSE(rig.put(1, 2, bytes)) << "it waits, and is not copied";
  EXPECT_TRUE(rig.put(1, 3, some(20, 2), true)) << "it waits, and had to be copied";
  nic::Send ack;
  ack.packet.operation = nic::Operation::ack;
  ack.packet.source = nic::Rank{1};
  ack.packet.target = nic::Rank{0};
  ack.packet.message = 77;
  EXPECT_TRUE(rig.ends[1]->send(ack));
  rig.poll();
  EXPECT_EQ(rig.heard[0].packets.size(), 2u);
  EXPECT_EQ(rig.heard[0].packets.back().message, 77u);
  EXPECT_EQ(rig.ends[1]->outstanding(nic::Rank{0}).bytes, 1020u);
  EXPECT_TRUE(rig.heard[1].read.empty());
  rig.ends[0]->set_stopped(nic::Rank{1}, false);
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(rig.message(0, 2), bytes);
  EXPECT_EQ(rig.message(0, 3), some(20, 2));
  EXPECT_EQ(rig.heard[1].read, std::vector<uint64_t>{2});
}

TEST(FabricTransport, SoManyPacketsAreNotAcknowledgedAtMost) {
  FabricRig rig;
  const auto bytes = some(100, 1);
  constexpr uint64_t puts = 1000;
  for (uint64_t i = 1; i <= puts; ++i) {
    std::ignore = rig.put(0, i, bytes);
    rig.ends[0]->poll();  // the receiver does nothing
  }
  EXPECT_TRUE(rig.ends[0]->congested(nic::Rank{1}));
  EXPECT_EQ(rig.ends[0]->outstanding(nic::Rank{1}).packets, puts);
  EXPECT_LE(rig.ends[0]->counts().messages, 256u);
  ASSERT_TRUE(rig.drain());
  EXPECT_EQ(rig.heard[1].packets.size(), puts);
  EXPECT_FALSE(rig.ends[0]->congested(nic::Rank{1}));
}

TEST(FabricTransport, WhatIsNotOfThisJobChangesOnlyACount) {
  FabricRig rig(true, {}, impatient);
  const auto envelope = [](const wire::SipKey& key, uint32_t source, uint64_t sequence) {
    wire::EnvelopeHeader header;
    header.kind = wire::EnvelopeKind::packet;
    header.source = nic::Rank{source};
    header.target = nic::Rank{1};
    header.sequence = sequence;
    nic::Packet packet;
    packet.source = header.source;
    packet.target = header.target;
    std::vector<uint8_t> bytes;
    std::ignore = wire::begin_envelope(header, bytes);
    wire::encode(packet, bytes);
    wire::seal_envelope(key, 0, bytes);
    return bytes;
  };
  const wire::SipKey ours{secret[0], secret[1]};
  rig.fabric.inject(1, some(100, 1));
  rig.fabric.inject(1, {});
  rig.fabric.inject(1, envelope({1, 2}, 0, 0));
  rig.fabric.inject(1, envelope(ours, 1, 0));  // a message from itself
  rig.fabric.inject(1, envelope(ours, 9, 0));
  rig.poll();
  EXPECT_EQ(rig.ends[1]->counts().foreign, 5u);
  EXPECT_TRUE(rig.heard[1].packets.empty());
  EXPECT_TRUE(rig.heard[1].gone.empty());
  rig.fabric.inject(1, envelope(ours, 0, 0));
  rig.fabric.inject(1, envelope(ours, 0, 0));  // somebody repeats what it has seen
  rig.poll();
  EXPECT_EQ(rig.heard[1].packets.size(), 1u);
  EXPECT_EQ(rig.ends[1]->counts().repeated, 1u);
  rig.fabric.inject(1, envelope(ours, 0, 2));
  ASSERT_TRUE(rig.loses(1));
  EXPECT_EQ(rig.heard[1].packets.size(), 1u) << "message 1 is missing";
}

TEST(FabricTransport, APeerOutOfReachIsLostAndNothingHangs) {
  FabricRig rig;
  rig.heard[0].keeps = true;
  const auto bytes = some(lent_bytes, 1);
  std::ignore = rig.put(1, 1, bytes);
  rig.poll();
  ASSERT_EQ(rig.heard[0].kept.size(), 1u);
  std::ignore = rig.put(0, 2, bytes);
  rig.fabric.strike(1);
  std::ignore = rig.put(0, 3, some(10, 1));
  rig.ends[0]->poll();
  rig.ends[0]->poll();
  EXPECT_EQ(rig.heard[0].gone, std::vector<uint32_t>{1});
  EXPECT_EQ(rig.heard[0].read, std::vector<uint64_t>{2}) << "as if it had been read";
  EXPECT_TRUE(rig.ends[0]->outstanding(nic::Rank{1}).is_lost);
  EXPECT_TRUE(rig.ends[0]->drained());
  EXPECT_TRUE(rig.put(0, 4, bytes)) << "to a lost peer";
  std::vector<uint8_t> room(lent_bytes);
  EXPECT_FALSE(rig.ends[0]
                   ->fetch(nic::Rank{1}, reinterpret_cast<uint64_t>(rig.heard[0].packets[0].payload.bytes), room.data(),
                           room.size())
                   .ok());
  rig.ends[0]->return_loan(nic::Rank{1}, rig.heard[0].kept[0]);
}

TEST(FabricTransport, AReadThatFailsIsReported) {
  FabricRig rig;
  const auto bytes = some(lent_bytes, 1);
  std::ignore = rig.put(0, 1, bytes);
  rig.fabric.strike(0);
  rig.ends[1]->poll();
  rig.ends[1]->poll();
  ASSERT_EQ(rig.heard[1].fetches.size(), 1u);
  EXPECT_FALSE(rig.heard[1].fetches[0].second);
}

// Whatever the fabric does wrong, each of several thousand messages arrives intact or its peer is lost.
TEST(FabricTransport, AFabricThatLosesOrDamagesLosesPeersAndNoBytes) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    FabricFaults faults;
    (seed % 3 == 0 ? faults.drop : seed % 3 == 1 ? faults.corrupt : faults.fail) = 0.01;
    faults.refuse = faults.delay = 0.05;
    faults.seed = seed;
    FabricRig rig(seed % 2 == 0, faults, impatient);
    std::vector<std::vector<uint8_t>> sent;
    for (uint64_t i = 0; i < 100; ++i) sent.push_back(some(1 + i * i * 7, i));
    for (uint64_t i = 0; i < sent.size(); ++i) {
      for (const uint32_t from : {0u, 1u}) std::ignore = rig.put(from, i + 1, sent[i]);
      rig.poll(2);
    }
    for (const Time give_up = monotonic_now() + long_enough(); monotonic_now() < give_up;) {
      rig.poll(1);
      if (rig.ends[0]->drained() && rig.ends[1]->drained()) break;
    }
    ASSERT_TRUE(rig.ends[0]->drained() && rig.ends[1]->drained()) << "seed " << seed;
    for (const uint32_t rank : {0u, 1u}) {
      const auto& packets = rig.heard[rank].packets;
      const bool lost = !rig.heard[rank].gone.empty() || !rig.heard[1 - rank].gone.empty();
      for (size_t i = 0; i < packets.size(); ++i) {
        const auto& whole = sent[packets[i].message - 1];
        const auto fetch = std::find_if(rig.heard[rank].fetches.begin(), rig.heard[rank].fetches.end(),
                                        [&](const auto& one) { return one.first == i + 1; });
        const bool failed = fetch != rig.heard[rank].fetches.end() && !fetch->second;
        ASSERT_TRUE(!failed || lost) << "seed " << seed;
        const auto& payload = rig.heard[rank].payloads[i];
        if (!failed &&
            (fetch != rig.heard[rank].fetches.end() || packets[i].payload.space != nic::PayloadRef::Space::peer)) {
          ASSERT_TRUE(
              std::equal(payload.begin(), payload.end(), whole.begin() + static_cast<int64_t>(packets[i].offset)))
              << "seed " << seed << " message " << packets[i].message;
        }
      }
      if (!lost) {
        EXPECT_EQ(rig.message(rank, sent.size()), sent.back()) << "seed " << seed;
      }
    }
  }
}

TEST(FabricTransport, MessagesMayComeInAnyOrder) {
  FabricRig rig;
  rig.fabric.reverse(1, 4);
  std::vector<std::vector<uint8_t>> sent;
  for (uint64_t i = 1; i <= 4; ++i) sent.push_back(some(i == 3 ? lent_bytes : i * 100, i));
  for (uint64_t i = 1; i <= 4; ++i) std::ignore = rig.put(0, i, sent[i - 1]);
  rig.fabric.reverse(1, 0);
  ASSERT_TRUE(rig.drain());
  ASSERT_EQ(rig.heard[1].packets.size(), 4u);
  for (uint64_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(rig.heard[1].packets[i - 1].message, i);
    EXPECT_EQ(rig.message(1, i), sent[i - 1]);
  }
  EXPECT_TRUE(rig.heard[1].gone.empty());
}

TEST(FabricTransport, APeerThatWasNeverReachedIsLost) {
  FabricRig rig(true, {}, impatient);
  rig.fabric.swallow(1);
  const auto bytes = some(1000, 1);
  for (uint64_t i = 1; i <= 4; ++i) EXPECT_TRUE(rig.put(0, i, bytes)) << "in a slot that does not come back";
  EXPECT_FALSE(rig.put(0, 5, bytes)) << "it waits";
  EXPECT_NE(rig.ends[0]->timer(), Time::never());
  ASSERT_TRUE(rig.loses(0));
  EXPECT_EQ(rig.heard[0].read, std::vector<uint64_t>{5});
}

TEST(FabricTransport, WhatThisProcessSleptThroughIsNoSilence) {
  FabricPatience patience = impatient;
  patience.silence = Time{1'500'000'000'000};
  FabricRig rig(true, {}, patience);
  std::ignore = rig.put(0, 1, some(10, 1));
  ASSERT_TRUE(rig.drain());
  std::this_thread::sleep_for(std::chrono::milliseconds(1600));
  rig.ends[0]->poll();
  EXPECT_TRUE(rig.heard[0].gone.empty());
  ASSERT_TRUE(rig.loses(0)) << "rank 1 does not answer";
}

TEST(FabricTransport, APeerThatTakesNothingKeepsNobodyElseBack) {
  LocalFabric fabric(3);
  std::array<Listener, 3> heard;
  std::array<std::unique_ptr<FabricTransport>, 3> ends;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ends[rank] = std::make_unique<FabricTransport>(
        heard[rank], fabric.port(rank), rank, secret, std::vector<bool>(3, true), [](int) {}, impatient);
  }
  fabric.swallow(1);
  const auto bytes = some(3000, 1);
  const auto put = [&](uint32_t target) {
    nic::Send outbound = a_put(0, target, bytes);
    std::ignore = ends[0]->send(outbound);
  };
  for (int i = 0; i < 100; ++i) put(1);
  for (const Time give_up = monotonic_now() + long_enough(); heard[0].gone.empty() && monotonic_now() < give_up;) {
    for (const uint32_t rank : {0u, 2u}) ends[rank]->poll();
  }
  for (int i = 0; i < 10; ++i) put(2);
  for (int i = 0; i < 20; ++i) {
    for (const uint32_t rank : {0u, 2u}) ends[rank]->poll();
  }
  EXPECT_EQ(heard[0].gone, std::vector<uint32_t>{1});
  EXPECT_EQ(heard[2].packets.size(), 10u);
  EXPECT_TRUE(heard[2].gone.empty());
}

// A rank that waits for bytes of a dead one reads a healthy one's, waits once only, and is not taken for dead.
TEST(FabricTransport, AFetchFromADeadPeerHarmsNobodyElse) {
  LocalFabric fabric(3);
  std::array<Listener, 3> heard;
  std::array<std::unique_ptr<FabricTransport>, 3> ends;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ends[rank] = std::make_unique<FabricTransport>(
        heard[rank], fabric.port(rank), rank, secret, std::vector<bool>(3, true), [](int) {}, impatient);
  }
  heard[0].keeps = true;
  const auto bytes = some(2'000'000, 1);
  const auto put = [&](uint32_t from) {
    nic::Send outbound = a_put(from, 0, bytes);
    std::ignore = ends[from]->send(outbound);
  };
  fabric.swallow(1);  // rank 1's messages still leave; messages to it, and reads of its memory, never end
  for (int i = 0; i < 4; ++i) put(1);
  put(2);
  for (int i = 0; i < 5; ++i) {
    for (const uint32_t rank : {0u, 2u}) ends[rank]->poll();
  }
  ASSERT_EQ(heard[0].packets.size(), 5u);
  const auto address = reinterpret_cast<uint64_t>(heard[0].packets.back().payload.bytes);
  std::vector<uint8_t> room(bytes.size());
  EXPECT_TRUE(ends[0]->fetch(nic::Rank{2}, address, room.data(), room.size()).ok());
  EXPECT_EQ(room, bytes);
  const auto dead = reinterpret_cast<uint64_t>(heard[0].packets[0].payload.bytes);
  EXPECT_FALSE(ends[0]->fetch(nic::Rank{1}, dead, room.data(), 100).ok());
  const uint64_t asked = fabric.reads();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(ends[0]->fetch(nic::Rank{1}, dead, room.data(), 100).ok());
  EXPECT_EQ(fabric.reads(), asked) << "it asks, and waits, for each again";
  EXPECT_TRUE(ends[0]->has_news());
  EXPECT_EQ(ends[0]->timer(), Time{});
  ends[0]->poll();
  EXPECT_EQ(heard[0].gone, std::vector<uint32_t>{1});
}

TEST(FabricTransport, ReadsIntoThisProcessAreNamedToWhoWouldLeave) {
  FabricRig rig;
  const auto bytes = some(lent_bytes, 1);
  std::ignore = rig.put(0, 1, bytes);
  rig.ends[1]->poll();  // it has asked for the bytes
  EXPECT_TRUE(rig.ends[1]->outstanding(nic::Rank{0}).may_write);
  ASSERT_TRUE(rig.drain());
  EXPECT_FALSE(rig.ends[1]->outstanding(nic::Rank{0}).may_write);
}

TEST(FabricTransport, NewsThatThePortItselfHasGoneOnCounts) {
  FabricRig rig;
  std::ignore = rig.put(0, 1, some(10, 1));
  rig.ends[0]->arm();
  EXPECT_TRUE(rig.ends[0]->has_news()) << "the message's slot can be taken back";
  EXPECT_TRUE(rig.ends[0]->poll()) << "so that its driver arms once more";
  rig.ends[0]->arm();
  EXPECT_FALSE(rig.ends[0]->has_news());
}

TEST(FabricTransport, EveryPeerHearsAGoodbyeAndNothingStaysLent) {
  constexpr uint32_t ranks = 100;  // more than slots
  LocalFabric fabric(ranks);
  std::vector<Listener> heard(ranks);
  std::vector<std::unique_ptr<FabricTransport>> ends;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    ends.push_back(std::make_unique<FabricTransport>(heard[rank], fabric.port(rank), rank, secret,
                                                     std::vector<bool>(ranks, true), [](int) {}));
  }
  const auto bytes = some(lent_bytes, 1);
  for (uint32_t rank = 1; rank < ranks; ++rank) {
    nic::Send outbound = a_put(0, rank, bytes);
    std::ignore = ends[0]->send(outbound);
    ends[0]->poll();
  }
  EXPECT_EQ(fabric.lent(), ranks - 1);
  ends[0]->say_goodbye();
  EXPECT_EQ(fabric.lent(), 0u);
  for (uint32_t rank = 1; rank < ranks; ++rank) {
    for (int i = 0; i < 3; ++i) ends[rank]->poll();
    EXPECT_EQ(heard[rank].gone, std::vector<uint32_t>{0}) << rank;
  }
}

TEST(FabricTransport, APeerThatSaysGoodbyeIsLostBehindWhatItSent) {
  FabricRig rig;
  std::ignore = rig.put(0, 1, some(10, 1));
  rig.ends[0]->say_goodbye();
  rig.ends[1]->poll();
  EXPECT_EQ(rig.heard[1].packets.size(), 1u);
  EXPECT_EQ(rig.heard[1].gone, std::vector<uint32_t>{0});
}

TEST(FabricTransport, SleepersAreWokenAndTimersAskForNothingWhenIdle) {
  FabricRig rig;
  int armed = -1;
  rig.ends[1] = std::make_unique<FabricTransport>(rig.heard[1], rig.fabric.port(1), 1, secret,
                                                  std::vector<bool>{true, true}, [&](int file) { armed = file; });
  rig.ends[1]->poll();
  EXPECT_EQ(rig.ends[1]->timer(), Time::never());
  rig.ends[1]->arm();
  EXPECT_GE(armed, 0);
  EXPECT_FALSE(rig.ends[1]->has_news());
  std::ignore = rig.put(0, 1, some(10, 1));
  rig.ends[1]->arm();
  EXPECT_TRUE(rig.ends[1]->has_news());
  rig.ends[1]->poll();
  EXPECT_EQ(rig.heard[1].packets.size(), 1u);
  EXPECT_NE(rig.ends[1]->timer(), Time::never()) << "the message is not acknowledged";
  ASSERT_TRUE(rig.drain());
}

}  // namespace
}  // namespace spinloom::live
