// Links that lose, repeat, reorder and damage datagrams, and peers that fall silent.
#include <map>
#include <set>

#include "base/random.hpp"
#include "nic/wire/testing/reliable_bed.hpp"

namespace spinloom::wire {
namespace {

using namespace test;

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
    ends[rank]->check_invariants();
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
      ASSERT_LT(++steps, 200'000u) << ends[0]->describe_waiting() << " " << ends[1]->describe_waiting();
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
        ASSERT_NE(timer, Time::never()) << "nothing under way, no timer, not idle: " << ends[0]->describe_waiting();
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
    EXPECT_TRUE(ends[1]->idle()) << ends[1]->describe_waiting();
  }

  Random random;
  Faults faults;
  std::unique_ptr<Reliable> ends[2];
  Output out;
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

TEST(Reliable, EveryByteOnceOverALinkThatDoesEverything) {
  uint64_t held = 0;
  uint64_t duplicates = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    LossyRun run(seed, {10, 10, 10}, quick_config());
    run.run(40);
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << seed;
    EXPECT_EQ(run.ends[0]->counts().foreign + run.ends[1]->counts().foreign, run.refused) << "the damaged ones";
    held += run.ends[1]->counts().early_headers;
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

TEST(Reliable, ThreeLaterTransmissionsAreEnough) {
  const auto sender = stage(a, b);
  const auto receiver = stage(b, a);
  const std::vector<uint8_t> bytes = content(1, 1000);
  Output out;
  for (uint64_t message = 0; message < 4; ++message) {
    ASSERT_TRUE(sender->on_send(Time{0}, put_packet(message, bytes, 0, 1000), {}, out).ok());
  }
  const Datagrams sent = take(out);
  Output back;
  for (size_t i = 1; i < 4; ++i) ASSERT_TRUE(receiver->on_datagram(Time{1}, sent[i], back).ok());
  EXPECT_TRUE(back.deliver.empty()) << "the first header is missing";
  EXPECT_EQ(receiver->counts().early_headers, 3u);
  for (const auto& ack : acks_of(*receiver, Time{2}, back)) ASSERT_TRUE(sender->on_datagram(Time{2}, ack, out).ok());
  const Datagrams again = take(out);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(header_of(again[0]).message_id, 0u);
  ASSERT_TRUE(receiver->on_datagram(Time{3}, again[0], back).ok());
  ASSERT_EQ(back.deliver.size(), 4u);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(back.deliver[i].message, i);
}

TEST(Reliable, APeerThatKeepsSilentIsLost) {
  ReliableConfig config = quick_config();
  config.timeouts_max = 5;
  const auto sender = stage(a, b, config);
  const std::vector<uint8_t> bytes = content(1, 1000);
  Output out;
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
  EXPECT_EQ(out.lost[0].reason, LostReason::silent);
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

TEST(Reliable, KeepaliveFindsAPeerThatOwesAnAnswer) {
  ReliableConfig config = quick_config();
  config.keepalive = 50_us;
  config.timeouts_max = 3;
  const auto sender = stage(a, b, config);
  const auto receiver = stage(b, a, config);
  Output out;
  Output back;
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
  Output out;
  Output back;
  Time now{};
  const auto exchange = [&] {
    now = now + 1_us;
    for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(now, datagram, back).ok());
    receiver->set_receive_window(Time{1}, a, 0, back);
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
  EXPECT_EQ(stuck.resume_count, 0u);
  for (int i = 0; i < 3; ++i) receiver->note_resumed(a);
  for (int probes = 0; probes < 3; ++probes) {
    now = std::max(now, sender->timer());
    sender->on_timer(now, out);
    exchange();
  }
  EXPECT_EQ(sender->unacknowledged(b).segments, stuck.segments) << "probes are no packets";
  EXPECT_EQ(sender->unacknowledged(b).resume_count, 3u);
  EXPECT_FALSE(sender->unacknowledged(b).lost);
}

}  // namespace
}  // namespace spinloom::wire
