// Two stages and a link that loses, repeats, reorders and damages datagrams, or does what one test says.
#include "wire/reliable.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>
#include <set>

#include "base/random.hpp"
#include "wire/reliable_impl.hpp"

namespace spinloom::wire {
namespace {

constexpr nic::Rank a{0};
constexpr nic::Rank b{1};

nic::Packet put_packet(uint64_t message, const std::vector<uint8_t>& bytes, uint64_t offset, uint64_t length) {
  nic::Packet packet;
  packet.source = a;
  packet.target = b;
  packet.message = message;
  packet.message_length = bytes.size();
  packet.offset = offset;
  packet.payload = {nic::PayloadRef::Space::local, bytes.data() + offset, length};
  packet.fields.hdr_data = message;
  return packet;
}

std::vector<uint8_t> content(uint64_t message, size_t length) {
  std::vector<uint8_t> bytes(length);
  std::iota(bytes.begin(), bytes.end(), static_cast<uint8_t>(message * 37));
  return bytes;
}

std::unique_ptr<Reliable> stage(nic::Rank self, nic::Rank peer, const ReliableConfig& config = {},
                                uint32_t peer_epoch = 1) {
  auto made = std::make_unique<Reliable>(self, config);
  EXPECT_TRUE(made->add_peer(peer, peer_epoch).ok());
  return made;
}

using Datagrams = std::vector<std::vector<uint8_t>>;

Datagrams take(Out& out) {
  Datagrams all;
  for (const Out::Transmit& one : out.transmit) {
    all.push_back(out.datagram(one));
  }
  out.transmit.clear();
  out.bytes.clear();
  return all;
}

// What a stage sends when its driver looks after it at once, acknowledgements that it would delay included.
Datagrams acks_of(Reliable& stage, Time now, Out& out) {
  stage.acknowledge(now, out);
  return take(out);
}

DatagramHeader header_of(const std::vector<uint8_t>& datagram) { return open({}, datagram)->header; }

// ---- a lossy link ----

struct Faults {
  uint64_t drop = 0;  // percent of the datagrams, as in the next lines
  uint64_t repeat = 0;
  uint64_t damage = 0;
  uint64_t delay_max = 1000;  // nanoseconds; any datagram may overtake any other
};

// Sends messages from a to b until all are there, and checks every delivery.
struct LossyRun {
  LossyRun(uint64_t seed, const Faults& faults_, const ReliableConfig& config)
      : random(seed, "lossy"), faults(faults_), ends{stage(a, b, config), stage(b, a, config)} {}

  void carry(uint32_t from) {
    for (std::vector<uint8_t>& datagram : take(out)) {
      ++datagrams;
      if (random.chance(faults.drop, 100)) continue;
      if (random.chance(faults.damage, 100)) datagram[random.below(datagram.size())] ^= 0x10;
      for (int copies = random.chance(faults.repeat, 100) ? 2 : 1; copies > 0; --copies) {
        const Time at = now + Time{static_cast<int64_t>(1 + random.below(faults.delay_max)) * 1000};
        air.emplace(at, std::pair{1 - from, datagram});
      }
    }
  }

  void after(uint32_t rank) {
    carry(rank);
    for (const nic::Packet& packet : out.deliver) {
      ASSERT_EQ(rank, 1u);
      const std::vector<uint8_t> wanted = content(packet.message, packet.message_length);
      for (uint64_t i = 0; i < packet.payload.length; ++i) {
        ASSERT_EQ(packet.payload.bytes[i], wanted[packet.offset + i]);
        ASSERT_TRUE(landed[packet.message].insert(packet.offset + i).second) << "twice: byte " << packet.offset + i;
      }
      if (packet.is_header()) {
        ASSERT_EQ(packet.message, headers++) << "headers in the order sent";
      }
    }
    for (const uint64_t message : out.message_sent) {
      ASSERT_TRUE(sent.insert(message).second) << "told twice";
      std::fill(buffers[message].begin(), buffers[message].end(), uint8_t{0xee});  // the buffer belongs to us again
    }
    ASSERT_TRUE(out.lost.empty());
    out.clear();
  }

  void run(uint64_t messages) {
    for (uint64_t message = 0; message < messages; ++message) {
      const size_t length = random.chance(1, 4) ? random.below(3) : random.below(9000);
      buffers.push_back(content(message, length));
    }
    uint64_t next = 0;
    while (next < messages || !air.empty() || !ends[0]->idle()) {
      ASSERT_LT(++steps, 200'000u) << ends[0]->waiting() << " " << ends[1]->waiting();
      if (next < messages && (air.empty() || random.chance(1, 5))) {
        const std::vector<uint8_t>& bytes = buffers[next];
        uint64_t offset = 0;
        do {
          const uint64_t length = std::min<uint64_t>(2048, bytes.size() - offset);
          ASSERT_TRUE(ends[0]->on_send(now, put_packet(next, bytes, offset, length), {}, out).ok());
          offset += length;
        } while (offset < bytes.size());
        ++next;
        after(0);
        continue;
      }
      const Time timer = std::min(ends[0]->timer(), ends[1]->timer());
      if (air.empty() || timer < air.begin()->first) {
        ASSERT_NE(timer, Time::never()) << "nothing under way, no timer, not idle: " << ends[0]->waiting();
        now = std::max(now, timer);
        for (uint32_t rank = 0; rank < 2; ++rank) {
          ends[rank]->on_timer(now, out);
          after(rank);
        }
        continue;
      }
      const auto [at, arrival] = *air.begin();
      air.erase(air.begin());
      now = std::max(now, at);
      refused += ends[arrival.first]->on_datagram(now, arrival.second, out).ok() ? 0 : 1;
      after(arrival.first);
    }
    EXPECT_EQ(headers, messages);
    EXPECT_EQ(sent.size(), messages);
    for (uint64_t message = 0; message < messages; ++message) {
      EXPECT_EQ(landed[message].size(), buffers[message].size()) << "message " << message;
    }
    EXPECT_TRUE(ends[1]->idle()) << ends[1]->waiting();
  }

  Random random;
  Faults faults;
  std::unique_ptr<Reliable> ends[2];
  Out out;
  Time now{0};
  std::multimap<Time, std::pair<uint32_t, std::vector<uint8_t>>> air;
  std::vector<std::vector<uint8_t>> buffers;
  std::map<uint64_t, std::set<uint64_t>> landed;
  std::set<uint64_t> sent;
  uint64_t headers = 0;
  uint64_t steps = 0;
  uint64_t datagrams = 0;
  uint64_t refused = 0;
};

ReliableConfig quick_config() {
  ReliableConfig config;
  config.ack_delay = 500_ns;
  config.timeout_first = 5_us;
  config.timeout_min = 2_us;
  config.timeout_max = 100_us;
  config.timeouts_max = 30;
  config.window = 16;
  return config;
}

TEST(Reliable, EveryByteOnceOverALinkThatDoesEverything) {
  uint64_t held = 0;
  uint64_t duplicates = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    LossyRun run(seed, {10, 10, 10}, quick_config());
    run.run(40);
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << seed;
    EXPECT_EQ(run.ends[0]->counts().foreign + run.ends[1]->counts().foreign, run.refused) << "the damaged ones";
    held += run.ends[1]->counts().held;
    duplicates += run.ends[1]->counts().duplicates;
  }
  EXPECT_GT(held, 100u);
  EXPECT_GT(duplicates, 100u);
}

TEST(Reliable, AnOrderlyLinkNeedsNoSecondTransmission) {
  ReliableConfig config = quick_config();
  LossyRun run(7, {0, 0, 0, 1}, config);
  run.run(100);
  EXPECT_EQ(run.ends[0]->counts().retransmitted, 0u);
  EXPECT_EQ(run.ends[1]->counts().duplicates, 0u);
  EXPECT_EQ(run.datagrams, run.ends[0]->counts().segments_sent + run.ends[1]->counts().acknowledgements);
  EXPECT_LT(run.ends[1]->counts().acknowledgements, run.ends[0]->counts().segments_sent / 2);
}

TEST(Reliable, HalfOfAllLost) {
  LossyRun run(3, {50, 0, 0}, quick_config());
  run.run(20);
}

// ---- one thing at a time ----

TEST(Reliable, SlmpFlagsOfTheThreeLevels) {
  const std::vector<uint8_t> bytes = content(1, 3000);
  const struct {
    Reliability reliability;
    std::vector<uint16_t> flags;
    uint64_t in_flight;
  } levels[] = {{Reliability::none, {0, 0, slmp::eom}, 0},
                {Reliability::message, {slmp::syn, 0, slmp::syn | slmp::eom}, 2},
                {Reliability::segment, {slmp::syn, slmp::syn, slmp::syn | slmp::eom}, 3}};
  for (const auto& level : levels) {
    const auto sender = stage(a, b);
    const auto receiver = stage(b, a);
    Out out;
    SendOptions options;
    options.reliability = level.reliability;
    for (uint64_t offset = 0; offset < 3000; offset += 1000) {
      ASSERT_TRUE(sender->on_send(Time{0}, put_packet(9, bytes, offset, 1000), options, out).ok());
    }
    EXPECT_EQ(out.message_sent.size(), level.in_flight == 0 ? 1u : 0u) << "nobody reads the buffer again";
    std::vector<uint16_t> flags;
    Out back;
    for (const auto& datagram : take(out)) {
      EXPECT_EQ(header_of(datagram).offset, flags.size() * 1000);
      EXPECT_EQ(header_of(datagram).message_id, 0u);
      flags.push_back(header_of(datagram).flags & ~slmp::now);
      EXPECT_TRUE(receiver->on_datagram(Time{1}, datagram, back).ok());
    }
    EXPECT_EQ(flags, level.flags);
    EXPECT_EQ(back.deliver.size(), 3u);
    receiver->on_timer(Time{1}, back);
    const Datagrams acks = take(back);
    EXPECT_EQ(acks.size(), level.in_flight == 0 ? 0u : 1u) << "one for all, at once: the sender's buffer waits for it";
    for (const auto& ack : acks) {
      EXPECT_EQ(open({}, ack)->body.size(), 0u) << "no segment is missing";
      EXPECT_EQ(header_of(ack).flags, slmp::ack);
      EXPECT_EQ(header_of(ack).received, level.in_flight);
      EXPECT_TRUE(sender->on_datagram(Time{2}, ack, out).ok());
    }
    EXPECT_EQ(out.message_sent, std::vector<uint64_t>{9});
    EXPECT_TRUE(sender->idle());
  }
}

TEST(Reliable, APacketLargerThanADatagramLeavesAsSeveral) {
  ReliableConfig config;
  config.datagram_bytes = 600;
  const auto sender = stage(a, b, config);
  const std::vector<uint8_t> bytes = content(1, 2000);
  Out out;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(1, bytes, 0, 2000), {}, out).ok());
  const auto receiver = stage(b, a, config);
  Out back;
  uint64_t at = 0;
  for (const auto& datagram : take(out)) {
    EXPECT_LE(datagram.size(), config.datagram_bytes);
    ASSERT_TRUE(receiver->on_datagram(Time{1}, datagram, back).ok());
    const nic::Packet& packet = back.deliver.back();
    EXPECT_EQ(packet.offset, at);
    EXPECT_EQ(packet.message_length, 2000u);
    at += packet.payload.length;
  }
  EXPECT_EQ(at, 2000u);
  EXPECT_GT(back.deliver.size(), 3u);

  nic::Packet atomic = put_packet(2, bytes, 0, 512);
  atomic.operation = nic::Operation::atomic;
  atomic.message_length = 512;
  const Status refused = sender->on_send(Time{0}, atomic, {}, out);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("datagram_bytes"), std::string::npos);
}

TEST(Reliable, BothWindowsHold) {
  ReliableConfig config;
  config.window = 8;
  const auto sender = stage(a, b, config);
  const auto receiver = stage(b, a, config);
  const std::vector<uint8_t> bytes = content(1, 100);
  Out out;
  for (uint64_t message = 0; message < 40; ++message) {
    ASSERT_TRUE(sender->on_send(Time{0}, put_packet(message, bytes, 0, 100), {}, out).ok());
  }
  Datagrams sent = take(out);
  EXPECT_EQ(sent.size(), 8u) << "its own window";
  Out back;
  receiver->set_room(Time{1}, a, 0, back);  // the engine behind the receiver takes nothing
  for (const auto& datagram : sent) ASSERT_TRUE(receiver->on_datagram(Time{1}, datagram, back).ok());
  for (const auto& ack : acks_of(*receiver, Time{2}, back)) ASSERT_TRUE(sender->on_datagram(Time{2}, ack, out).ok());
  EXPECT_EQ(take(out).size(), 0u) << "the receiver's window";
  ASSERT_NE(sender->timer(), Time::never());
  sender->on_timer(sender->timer(), out);
  const Datagrams probes = take(out);
  ASSERT_EQ(probes.size(), 1u) << "is there room now?";
  EXPECT_EQ(open({}, probes[0])->body.size(), 0u);
  ASSERT_TRUE(receiver->on_datagram(Time{3}, probes[0], back).ok());
  for (const auto& ack : acks_of(*receiver, Time{4}, back)) ASSERT_TRUE(sender->on_datagram(Time{4}, ack, out).ok());
  EXPECT_EQ(take(out).size(), 0u) << "no";
  receiver->set_room(Time{1}, a, 3, back);
  for (const auto& ack : acks_of(*receiver, Time{5}, back)) ASSERT_TRUE(sender->on_datagram(Time{5}, ack, out).ok());
  EXPECT_EQ(take(out).size(), 3u);
}

// Answers must not wait behind packets that need room, because packets at the receiver may wait for these answers.
TEST(Reliable, AnswersPassWhatWaitsForRoom) {
  const auto sender = stage(a, b);
  const auto receiver = stage(b, a);
  const std::vector<uint8_t> bytes = content(1, 100);
  Out out;
  Out back;
  receiver->set_room(Time{1}, a, 0, back);
  uint64_t given = 0;
  while (sender->waiting_segments(b) < 10) {
    ASSERT_TRUE(sender->on_send(Time{0}, put_packet(given++, bytes, 0, 100), {}, out).ok());
    for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(Time{1}, datagram, back).ok());
    for (const auto& ack : acks_of(*receiver, Time{2}, back)) ASSERT_TRUE(sender->on_datagram(Time{2}, ack, out).ok());
  }
  const uint64_t delivered = back.deliver.size();
  EXPECT_EQ(delivered, given - 10);
  nic::Packet ack = put_packet(7, {}, 0, 0);
  ack.operation = nic::Operation::ack;
  nic::Packet reply = put_packet(given, bytes, 0, 100);
  reply.operation = nic::Operation::reply;
  for (const nic::Packet& answer : {ack, reply}) ASSERT_TRUE(sender->on_send(Time{3}, answer, {}, out).ok());
  for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(Time{4}, datagram, back).ok());
  ASSERT_EQ(back.deliver.size(), delivered + 2);
  EXPECT_EQ(back.deliver[delivered].operation, nic::Operation::ack);
  EXPECT_EQ(back.deliver[delivered + 1].operation, nic::Operation::reply);
  for (const auto& one : acks_of(*receiver, Time{5}, back)) ASSERT_TRUE(sender->on_datagram(Time{5}, one, out).ok());
  EXPECT_EQ(sender->waiting_segments(b), 10u) << "these find no room";
  receiver->set_room(Time{1}, a, 100, back);
  for (const auto& one : take(back)) ASSERT_TRUE(sender->on_datagram(Time{6}, one, out).ok());
  for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(Time{7}, datagram, back).ok());
  EXPECT_EQ(back.deliver.size(), given + 2) << "each put once, in its order";
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(back.deliver[delivered + 2 + i].message, given - 10 + i);
}

// ---- acknowledgements ----

// Two stages, datagrams that arrive when the test says so, and the time.
struct Pair {
  explicit Pair(const ReliableConfig& config_ = {}) : config(config_), ends{stage(a, b, config), stage(b, a, config)} {}

  // Rank `from` sends a message of its own, which may stay under way.
  void put(uint32_t from, size_t length = 100) {
    buffers.push_back(content(buffers.size(), length));
    nic::Packet packet = put_packet(buffers.size(), buffers.back(), 0, length);
    if (from == 1) std::swap(packet.source, packet.target);
    ASSERT_TRUE(ends[from]->on_send(now, packet, {}, out[from]).ok());
  }
  // Rank `to` takes these; what it sends then waits in `out`.
  void give(uint32_t to, const Datagrams& datagrams) {
    for (const auto& one : datagrams) ASSERT_TRUE(ends[to]->on_datagram(now, one, out[to]).ok());
    if (now >= ends[to]->timer()) ends[to]->on_timer(now, out[to]);
  }
  void carry(uint32_t from) { give(1 - from, take(out[from])); }
  // Lets the time-out of rank 0 come.
  void time_out() {
    now = std::max(now, ends[0]->timer());
    ends[0]->on_timer(now, out[0]);
  }
  [[nodiscard]] uint64_t in_flight() const { return ends[0]->unacknowledged(b).segments; }

  ReliableConfig config;
  std::unique_ptr<Reliable> ends[2];
  Out out[2];
  Time now{1'000'000};
  std::deque<std::vector<uint8_t>> buffers;
};

TEST(Reliable, AnAcknowledgementWaitsForAPacketThatTakesItAlong) {
  Pair pair;
  for (int round = 0; round < 100; ++round) {
    for (uint32_t from = 0; from < 2; ++from) {
      pair.put(from);
      const Datagrams sent = take(pair.out[from]);
      ASSERT_EQ(sent.size(), 1u);
      pair.give(1 - from, sent);
      EXPECT_TRUE(pair.out[1 - from].transmit.empty());
      pair.now += 1_us;
    }
  }
  EXPECT_EQ(pair.ends[0]->counts().acknowledgements + pair.ends[1]->counts().acknowledgements, 0u);
  EXPECT_EQ(pair.in_flight(), 0u) << "the packet that came last acknowledges the one before";
}

TEST(Reliable, AnAcknowledgementIsNotDelayedLongerThanItMay) {
  Pair pair;
  pair.put(0);
  pair.carry(0);
  EXPECT_TRUE(take(pair.out[1]).empty());
  EXPECT_EQ(pair.ends[1]->timer(), pair.now + pair.config.ack_delay);
  pair.now += pair.config.ack_delay;
  pair.ends[1]->on_timer(pair.now, pair.out[1]);
  pair.carry(1);
  EXPECT_EQ(pair.in_flight(), 0u);
  EXPECT_TRUE(pair.ends[0]->idle());
  EXPECT_EQ(pair.ends[1]->counts().acknowledgements, 1u);
  EXPECT_EQ(pair.ends[1]->timer(), Time::never());
}

TEST(Reliable, ASenderThatWaitsIsAcknowledgedAtOnce) {
  Pair pair;
  pair.put(0, pair.config.copy_bytes + 1);  // its buffer waits
  pair.carry(0);
  EXPECT_EQ(pair.out[1].transmit.size(), 1u);
  pair.carry(1);
  EXPECT_EQ(pair.out[0].message_sent.size(), 1u);
  EXPECT_EQ(pair.in_flight(), 0u);

  uint64_t datagrams = 0;  // a stream of short messages never stops for an acknowledgement
  for (int i = 0; i < 1000; ++i) {
    pair.put(0);
    ASSERT_EQ(pair.ends[0]->waiting_segments(b), 0u);
    pair.carry(0);
    datagrams += pair.out[1].transmit.size();
    pair.carry(1);
  }
  EXPECT_LE(datagrams, 1000u / (pair.config.window_first / 4));
}

TEST(Reliable, OneAcknowledgementForAllThatCameTogether) {
  Pair pair;
  for (int i = 0; i < 16; ++i) pair.put(0);
  pair.carry(0);
  EXPECT_EQ(pair.out[1].transmit.size(), 1u);
  pair.carry(1);
  EXPECT_EQ(pair.in_flight(), 0u);
}

TEST(Reliable, AWaitingAcknowledgementDoesNotLengthenTheRoundTrip) {
  ReliableConfig config;
  config.timeout_min = config.ack_delay + 1_ps;
  config.timeout_first = 50_us;
  Pair pair(config);
  for (int i = 0; i < 50; ++i) {
    pair.put(0);
    pair.now += 1_us;
    pair.carry(0);
    pair.now = pair.ends[1]->timer();
    pair.ends[1]->on_timer(pair.now, pair.out[1]);
    pair.now += 1_us;
    pair.carry(1);
  }
  pair.put(0);
  EXPECT_EQ(pair.ends[0]->counts().timeouts, 0u);
  EXPECT_LT(pair.ends[0]->timer(), pair.now + 3_us + config.ack_delay) << "2 us there and back";
}

TEST(Reliable, AcknowledgementsListWhatHasCome) {
  Pair pair;
  for (int i = 0; i < 12; ++i) pair.put(0);
  Datagrams sent = take(pair.out[0]);
  ASSERT_EQ(sent.size(), 12u);
  sent.erase(sent.begin() + 7);
  sent.erase(sent.begin() + 2);
  pair.give(1, sent);
  const Datagrams acks = take(pair.out[1]);
  ASSERT_EQ(acks.size(), 1u) << "at once, because segments are missing";
  const auto opened = open({}, acks[0]);
  EXPECT_EQ(opened->header.received, 2u);
  ASSERT_EQ(opened->body.size(), 2u);
  EXPECT_EQ(opened->body[0] | opened->body[1] << 8, 0b111101111) << "from segment 3 on";
  pair.give(0, acks);
  EXPECT_EQ(pair.in_flight(), 2u);
  const Datagrams again = take(pair.out[0]);
  ASSERT_EQ(again.size(), 2u) << "no time-out is needed";
  EXPECT_EQ(header_of(again[0]).sequence, 2u);
  EXPECT_EQ(header_of(again[1]).sequence, 7u);
  pair.give(1, again);
  pair.carry(1);
  EXPECT_EQ(pair.in_flight(), 0u);
  EXPECT_EQ(pair.ends[0]->counts().retransmitted, 2u);
  EXPECT_EQ(pair.ends[0]->counts().timeouts, 0u);
  EXPECT_EQ(pair.ends[1]->counts().duplicates, 0u);
}

TEST(Reliable, WhatIsLostTwiceIsSentTwiceAgainWithoutATimeOut) {
  Pair pair;
  for (int i = 0; i < 5; ++i) pair.put(0);
  Datagrams sent = take(pair.out[0]);
  sent.erase(sent.begin());
  pair.give(1, sent);
  pair.carry(1);
  EXPECT_EQ(take(pair.out[0]).size(), 1u) << "lost again";
  for (int i = 0; i < 3; ++i) pair.put(0);
  pair.carry(0);
  pair.carry(1);
  const Datagrams again = take(pair.out[0]);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(header_of(again[0]).sequence, 0u);
  EXPECT_EQ(pair.ends[0]->counts().timeouts, 0u);
}

TEST(Reliable, ATimeOutRepeatsTheOldestAndWhatFollowsFromIt) {
  Pair pair;
  for (int i = 0; i < 6; ++i) pair.put(0);
  take(pair.out[0]);  // all are lost
  pair.time_out();
  Datagrams again = take(pair.out[0]);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(header_of(again[0]).sequence, 0u);
  for (int turn = 0; turn < 3; ++turn) {
    pair.give(1, again);
    pair.carry(1);
    again = take(pair.out[0]);
  }
  EXPECT_EQ(pair.in_flight(), 0u) << "all the others were sent before it";
  EXPECT_EQ(pair.ends[0]->counts().timeouts, 1u);
  EXPECT_EQ(pair.ends[0]->counts().retransmitted, 6u);
}

TEST(Reliable, ALateAcknowledgementRepeatsNothing) {
  Pair pair;
  for (int i = 0; i < 6; ++i) pair.put(0);
  const Datagrams slow = take(pair.out[0]);
  pair.time_out();
  const Datagrams again = take(pair.out[0]);
  ASSERT_EQ(again.size(), 1u);
  pair.give(1, slow);
  pair.carry(1);
  EXPECT_TRUE(take(pair.out[0]).empty());
  EXPECT_EQ(pair.in_flight(), 0u);
  pair.give(1, again);
  EXPECT_EQ(pair.ends[1]->counts().duplicates, 1u);
}

// ---- congestion ----

TEST(Reliable, TheWindowGrowsWhileNothingIsLostAndShrinksOnLoss) {
  ReliableConfig config;
  config.window = 200;
  Pair pair(config);
  EXPECT_EQ(pair.ends[0]->congestion_window(b), config.window_first);
  for (int i = 0; i < 2000; ++i) pair.put(0);
  while (pair.in_flight() > 1500) {
    pair.carry(0);
    pair.carry(1);
  }
  EXPECT_EQ(pair.ends[0]->congestion_window(b), 200u);
  Datagrams sent = take(pair.out[0]);
  ASSERT_GT(sent.size(), 100u);
  for (const size_t lost : {60, 30, 3}) sent.erase(sent.begin() + lost);
  pair.give(1, sent);
  pair.carry(1);
  EXPECT_EQ(pair.ends[0]->congestion_window(b), 150u) << "once for all losses of a window";
  pair.carry(0);
  pair.carry(1);
  const uint32_t calm = pair.ends[0]->congestion_window(b);
  EXPECT_LE(calm, 152u) << "then it grows by one for each window";
  take(pair.out[0]);
  pair.time_out();
  EXPECT_EQ(pair.ends[0]->congestion_window(b), calm) << "the peer may have been busy";
  pair.time_out();
  EXPECT_EQ(pair.ends[0]->congestion_window(b), calm / 2);
  for (int i = 0; i < 10; ++i) pair.time_out();
  EXPECT_EQ(pair.ends[0]->congestion_window(b), ReliableConfig::window_least);
}

TEST(Reliable, LossesAreRepeatedWithinTheWindow) {
  ReliableConfig config;
  config.window = 100;
  config.window_first = 100;
  Pair pair(config);
  for (int i = 0; i < 100; ++i) pair.put(0);
  Datagrams sent = take(pair.out[0]);
  sent.erase(sent.begin(), sent.begin() + 90);
  pair.give(1, sent);
  pair.carry(1);
  EXPECT_EQ(take(pair.out[0]).size(), 75u) << "of 90 that are lost";
}

TEST(Reliable, ThreeLaterTransmissionsAreEnough) {
  const auto sender = stage(a, b);
  const auto receiver = stage(b, a);
  const std::vector<uint8_t> bytes = content(1, 1000);
  Out out;
  for (uint64_t message = 0; message < 4; ++message) {
    ASSERT_TRUE(sender->on_send(Time{0}, put_packet(message, bytes, 0, 1000), {}, out).ok());
  }
  const Datagrams sent = take(out);
  Out back;
  for (size_t i = 1; i < 4; ++i) ASSERT_TRUE(receiver->on_datagram(Time{1}, sent[i], back).ok());
  EXPECT_TRUE(back.deliver.empty()) << "the first header is missing";
  EXPECT_EQ(receiver->counts().held, 3u);
  for (const auto& ack : acks_of(*receiver, Time{2}, back)) ASSERT_TRUE(sender->on_datagram(Time{2}, ack, out).ok());
  const Datagrams again = take(out);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(header_of(again[0]).message_id, 0u);
  ASSERT_TRUE(receiver->on_datagram(Time{3}, again[0], back).ok());
  ASSERT_EQ(back.deliver.size(), 4u);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(back.deliver[i].message, i);
}

TEST(Reliable, BuffersAreFreeWhenNobodyReadsThemAgain) {
  ReliableConfig config;
  config.copy_bytes = 64;
  const auto sender = stage(a, b, config);
  const std::vector<uint8_t> bytes = content(1, 200);
  const std::vector<uint8_t> small = content(2, 64);
  Out out;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(1, small, 0, 64), {}, out).ok());
  EXPECT_EQ(out.message_sent, std::vector<uint64_t>{1}) << "copied";
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(2, bytes, 0, 200), {}, out).ok());
  EXPECT_EQ(out.message_sent.size(), 1u) << "referred to until it is acknowledged";
  SendOptions slot;
  slot.ticket = 55;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(3, bytes, 0, 200), slot, out).ok());
  EXPECT_TRUE(out.released.empty());
  slot.ticket = 56;
  slot.copy = true;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(4, bytes, 0, 200), slot, out).ok());
  EXPECT_EQ(out.released, std::vector<uint64_t>{56});
  const auto receiver = stage(b, a, config);
  Out back;
  for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(Time{1}, datagram, back).ok());
  for (const auto& ack : acks_of(*receiver, Time{2}, back)) ASSERT_TRUE(sender->on_datagram(Time{2}, ack, out).ok());
  EXPECT_EQ(out.message_sent, (std::vector<uint64_t>{1, 2})) << "not those with tickets";
  EXPECT_EQ(out.released, (std::vector<uint64_t>{56, 55}));
}

TEST(Reliable, APeerThatKeepsSilentIsLost) {
  ReliableConfig config = quick_config();
  config.timeouts_max = 5;
  const auto sender = stage(a, b, config);
  const std::vector<uint8_t> bytes = content(1, 1000);
  Out out;
  for (uint64_t message = 0; message < 3; ++message) {
    ASSERT_TRUE(sender->on_send(Time{0}, put_packet(message, bytes, 0, 1000), {}, out).ok());
  }
  Time before{0};
  Time waited{0};
  int timeouts = 0;
  while (out.lost.empty()) {
    ASSERT_LT(++timeouts, 20);
    const Time at = sender->timer();
    ASSERT_NE(at, Time::never());
    EXPECT_GE(at - before, waited) << "each waits at least as long as the one before";
    waited = at - before;
    before = at;
    sender->on_timer(at, out);
  }
  EXPECT_EQ(timeouts, 6);
  EXPECT_TRUE(sender->unacknowledged(b).lost);
  EXPECT_EQ(sender->unacknowledged(b).segments, 3u);
  EXPECT_EQ(sender->unacknowledged(b).bytes, 3000u) << "as it was then";
  EXPECT_EQ(out.lost[0].peer, b);
  EXPECT_EQ(out.lost[0].why, LostWhy::silent);
  EXPECT_EQ(sender->timer(), Time::never());
  EXPECT_TRUE(sender->idle());
  EXPECT_EQ(out.message_sent, (std::vector<uint64_t>{0, 1, 2})) << "their buffers are free";
  out.clear();
  ASSERT_TRUE(sender->on_send(before, put_packet(9, bytes, 0, 500), {}, out).ok());
  EXPECT_TRUE(out.message_sent.empty());
  ASSERT_TRUE(sender->on_send(before, put_packet(9, bytes, 500, 500), {}, out).ok());
  EXPECT_EQ(out.message_sent, std::vector<uint64_t>{9}) << "read to nowhere";
  EXPECT_TRUE(out.transmit.empty());
}

// Two ends and a link that a test cuts and mends. Whatever went over it is kept.
struct Returning {
  Returning() {
    config.timeouts_max = 3;
    config.returns = true;
    config.knock_every = 100_us;
    for (uint32_t rank = 0; rank < 2; ++rank) ends.push_back(stage(nic::Rank{rank}, nic::Rank{1 - rank}, config));
  }
  // Lets so much time go by, in steps.
  void run(Time duration) {
    for (const Time end = now + duration; now < end; now = now + 10_us) {
      for (uint32_t rank = 0; rank < 2; ++rank) {
        ends[rank]->set_parted(now, nic::Rank{1 - rank}, parted[rank]);
        ends[rank]->on_timer(now, out[rank]);
      }
      for (uint32_t rank = 0; rank < 2; ++rank) {
        for (const auto& datagram : take(out[rank])) {
          past.emplace_back(1 - rank, datagram);
          if (!cut) give(1 - rank, datagram);
        }
      }
    }
  }
  void give(uint32_t rank, const std::vector<uint8_t>& datagram) {
    ends[rank]->set_parted(now, nic::Rank{1 - rank}, parted[rank]);
    std::ignore = ends[rank]->on_datagram(now, datagram, out[rank]);
    for (const nic::Packet& packet : out[rank].deliver) delivered.push_back(packet.message);
    for (const Out::Lost& lost : out[rank].lost) losses[rank].push_back(lost.why);
    returns[rank] += out[rank].back.size();
    out[rank].deliver.clear();
    out[rank].lost.clear();
    out[rank].back.clear();
  }
  void put(uint64_t message) {
    buffers.push_back(content(message, 1000));
    ASSERT_TRUE(ends[0]->on_send(now, put_packet(message, buffers.back(), 0, 1000), {}, out[0]).ok());
  }
  bool lost(uint32_t rank) { return ends[rank]->unacknowledged(nic::Rank{1 - rank}).lost; }

  ReliableConfig config = quick_config();
  std::vector<std::unique_ptr<Reliable>> ends;
  std::array<Out, 2> out;
  std::array<bool, 2> parted{};
  std::array<std::vector<LostWhy>, 2> losses;
  std::array<size_t, 2> returns{};
  std::vector<uint64_t> delivered;
  std::deque<std::vector<uint8_t>> buffers;
  std::vector<std::pair<uint32_t, std::vector<uint8_t>>> past;
  bool cut = false;
  Time now{};
};

TEST(Reliable, ALostPeerComesBackWhenBothHaveForgottenWhatWasUnderWay) {
  Returning pair;
  pair.put(1);
  pair.run(1000_us);
  for (uint64_t life = 1; life <= 3; ++life) {
    pair.cut = true;
    for (uint64_t message = 0; message < 3; ++message) pair.put(10 * life + message);
    pair.run(50'000_us);
    ASSERT_TRUE(pair.lost(0));
    ASSERT_FALSE(pair.lost(1)) << "it waits for nothing";
    pair.cut = false;
    pair.run(5000_us);
    EXPECT_FALSE(pair.lost(1)) << "the other is not parted yet, and says nothing";
    pair.parted[0] = true;
    pair.run(5000_us);
    EXPECT_TRUE(pair.lost(1));
    ASSERT_EQ(pair.losses[1].size(), life);
    EXPECT_EQ(pair.losses[1].back(), LostWhy::has_lost_us);
    EXPECT_TRUE(pair.lost(0)) << "this one is not parted yet";
    pair.parted[1] = true;
    pair.run(1000_us);
    EXPECT_FALSE(pair.lost(0));
    EXPECT_FALSE(pair.lost(1));
    EXPECT_EQ(pair.returns, (std::array<size_t, 2>{life, life}));
    pair.parted = {};
    pair.put(100 + life);
    pair.run(1000_us);
    EXPECT_EQ(pair.delivered.size(), 1 + life);
    EXPECT_EQ(pair.delivered.back(), 100 + life) << "and nothing of before";
    const auto past = pair.past;
    for (const auto& [rank, datagram] : past) pair.give(rank, datagram);
    pair.run(1000_us);
    EXPECT_EQ(pair.delivered.size(), 1 + life) << "what comes late changes nothing";
    EXPECT_FALSE(pair.lost(0) || pair.lost(1));
  }
}

// The first to begin the next life is alone in it, and loses the other again.
TEST(Reliable, PeersThatAreLivesApartMeetAgain) {
  Returning pair;
  pair.put(1);
  pair.run(1000_us);
  pair.cut = true;
  pair.put(2);
  pair.run(50'000_us);
  pair.cut = false;
  pair.parted[0] = true;
  pair.run(1000_us);
  ASSERT_TRUE(pair.lost(1));
  pair.parted[1] = true;
  pair.ends[1]->set_parted(pair.now, a, true);
  pair.ends[1]->on_timer(pair.now, pair.out[1]);
  for (const auto& knock : take(pair.out[1])) pair.give(0, knock);
  ASSERT_FALSE(pair.lost(0));
  pair.cut = true;
  pair.run(50'000_us);
  ASSERT_TRUE(pair.lost(0)) << "alone";
  ASSERT_TRUE(pair.lost(1));
  pair.cut = false;
  pair.run(1000_us);
  EXPECT_FALSE(pair.lost(0) || pair.lost(1));
  pair.put(3);
  pair.run(1000_us);
  EXPECT_EQ(pair.delivered, (std::vector<uint64_t>{1, 3}));
}

TEST(Reliable, KeepaliveFindsAPeerThatOwesAnAnswer) {
  ReliableConfig config = quick_config();
  config.keepalive = 50_us;
  config.timeouts_max = 3;
  const auto sender = stage(a, b, config);
  const auto receiver = stage(b, a, config);
  Out out;
  Out back;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(1, content(1, 10), 0, 10), {}, out).ok());
  for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(1_us, datagram, back).ok());
  for (const auto& ack : acks_of(*receiver, 2_us, back)) ASSERT_TRUE(sender->on_datagram(2_us, ack, out).ok());
  while (sender->timer() < 52_us) sender->on_timer(sender->timer(), out);
  EXPECT_EQ(sender->timer(), 52_us);
  EXPECT_TRUE(take(out).empty());
  sender->on_timer(52_us, out);
  for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(53_us, datagram, back).ok());
  EXPECT_EQ(back.deliver.size(), 1u) << "a probe is no packet";
  for (const auto& ack : acks_of(*receiver, 54_us, back)) ASSERT_TRUE(sender->on_datagram(54_us, ack, out).ok());
  EXPECT_TRUE(out.lost.empty());
  for (int i = 0; i < 10 && out.lost.empty(); ++i) sender->on_timer(sender->timer(), out);
  ASSERT_EQ(out.lost.size(), 1u) << "now it is dead";
}

TEST(Reliable, WhoWaitsForRoomHearsThatThePeerGoesOn) {
  const auto sender = stage(a, b, quick_config());
  const auto receiver = stage(b, a, quick_config());
  const std::vector<uint8_t> bytes = content(1, 10);
  Out out;
  Out back;
  Time now{};
  const auto exchange = [&] {
    now = now + 1_us;
    for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(now, datagram, back).ok());
    receiver->set_room(Time{1}, a, 0, back);
    now = now + 1_us;
    for (const auto& ack : acks_of(*receiver, now, back)) ASSERT_TRUE(sender->on_datagram(now, ack, out).ok());
  };
  exchange();
  ASSERT_TRUE(sender->on_send(now, put_packet(1, bytes, 0, 10), {}, out).ok());
  exchange();
  const uint32_t granted = quick_config().window;  // the window before the receiver had said anything
  for (uint64_t message = 2; message < 2 * granted; ++message) {
    ASSERT_TRUE(sender->on_send(now, put_packet(message, bytes, 0, 10), {}, out).ok());
  }
  exchange();
  exchange();
  const Unacknowledged stuck = sender->unacknowledged(b);
  EXPECT_GT(stuck.segments, 0u);
  EXPECT_EQ(stuck.bytes, stuck.segments * 10);
  EXPECT_EQ(stuck.acks, 0u);
  EXPECT_EQ(stuck.moved, 0u);
  for (int i = 0; i < 3; ++i) receiver->note_moved(a);
  for (int probes = 0; probes < 3; ++probes) {
    now = std::max(now, sender->timer());
    sender->on_timer(now, out);
    exchange();
  }
  EXPECT_EQ(sender->unacknowledged(b).segments, stuck.segments) << "probes are no packets";
  EXPECT_EQ(sender->unacknowledged(b).moved, 3u);
  EXPECT_FALSE(sender->unacknowledged(b).lost);
}

TEST(Reliable, LivesAreToldApart) {
  const auto sender = stage(a, b);  // knows life 1 of b
  const std::vector<uint8_t> bytes = content(1, 10);
  Out out;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(1, bytes, 0, 10), {}, out).ok());
  const Datagrams to_first_life = take(out);
  ReliableConfig second;
  second.epoch = 2;
  const auto reborn = stage(b, a, second);
  Out back;
  EXPECT_FALSE(reborn->on_datagram(Time{1}, to_first_life[0], back).ok());
  EXPECT_EQ(reborn->counts().stale, 1u);
  EXPECT_TRUE(back.deliver.empty());

  nic::Packet packet = put_packet(1, bytes, 0, 10);
  std::swap(packet.source, packet.target);
  ASSERT_TRUE(reborn->on_send(Time{1}, packet, {}, back).ok());
  const Datagrams from_second_life = take(back);
  EXPECT_FALSE(sender->on_datagram(Time{2}, from_second_life[0], out).ok());
  ASSERT_EQ(out.lost.size(), 1u);
  EXPECT_EQ(out.lost[0].why, LostWhy::restarted);
  EXPECT_TRUE(out.deliver.empty());
  EXPECT_FALSE(sender->add_peer(b, 1).ok()) << "that life is over";
  ASSERT_TRUE(sender->add_peer(b, 2).ok());
  EXPECT_TRUE(sender->on_datagram(Time{3}, from_second_life[0], out).ok());
  EXPECT_EQ(out.deliver.size(), 1u);
}

TEST(Reliable, StrangersChangeNothing) {
  const auto receiver = stage(b, a);
  ReliableConfig other;
  other.secret = {1, 2};
  const auto stranger = stage(a, b, other);
  const auto unknown = std::make_unique<Reliable>(nic::Rank{7}, ReliableConfig{});
  ASSERT_TRUE(unknown->add_peer(b, 1).ok());
  const std::vector<uint8_t> bytes = content(1, 10);
  Out out;
  Out back;
  ASSERT_TRUE(stranger->on_send(Time{0}, put_packet(1, bytes, 0, 10), {}, out).ok());
  ASSERT_TRUE(unknown->on_send(Time{0}, put_packet(1, bytes, 0, 10), {}, out).ok());
  for (const auto& datagram : take(out)) EXPECT_FALSE(receiver->on_datagram(Time{1}, datagram, back).ok());
  EXPECT_EQ(receiver->counts().foreign, 2u);
  EXPECT_TRUE(back.transmit.empty() && back.deliver.empty() && back.lost.empty());
}

TEST(Reliable, SequencesGoAround) {
  EXPECT_GT(distance(0xffffffff, 0), 0);
  EXPECT_LT(distance(0, 0xffffffff), 0);
}

TEST(Reliable, ConfigurationsThatCannotWork) {
  ReliableConfig config;
  EXPECT_TRUE(check(config).ok());
  config.datagram_bytes = 100;
  EXPECT_NE(check(config).error().message.find("datagram_bytes"), std::string::npos);
  config = {};
  config.window = 5000;
  EXPECT_NE(check(config).error().message.find("window"), std::string::npos);
  config = {};
  config.ack_delay = config.timeout_min;
  EXPECT_NE(check(config).error().message.find("ack_delay"), std::string::npos);
  config = {};
  config.timeout_min = config.timeout_first + 1_ps;
  EXPECT_FALSE(check(config).ok());
}

}  // namespace
}  // namespace spinloom::wire
