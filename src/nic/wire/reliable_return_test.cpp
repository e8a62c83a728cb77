// The reliability stage: lost peers that come back.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <tuple>

#include "nic/wire/testing/reliable_bed.hpp"

namespace spinloom::wire {
namespace {

using namespace test;

// Two ends and a link that a test cuts and mends. Whatever went over it is kept.
struct Returning {
  Returning() {
    config.timeouts_max = 3;
    config.peers_may_return = true;
    config.knock_every = 100_us;
    for (uint32_t rank = 0; rank < 2; ++rank) ends.push_back(stage(nic::Rank{rank}, nic::Rank{1 - rank}, config));
  }
  // Lets so much time go by, in steps.
  void run(Time duration) {
    for (const Time end = now + duration; now < end; now = now + 10_us) {
      for (uint32_t rank = 0; rank < 2; ++rank) {
        ends[rank]->set_quiescent(now, nic::Rank{1 - rank}, quiescent[rank]);
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
    ends[rank]->set_quiescent(now, nic::Rank{1 - rank}, quiescent[rank]);
    std::ignore = ends[rank]->on_datagram(now, datagram, out[rank]);
    for (const nic::Packet& packet : out[rank].deliver) delivered.push_back(packet.message);
    for (const Output::Lost& lost : out[rank].lost) losses[rank].push_back(lost.reason);
    returns[rank] += out[rank].returned.size();
    out[rank].deliver.clear();
    out[rank].lost.clear();
    out[rank].returned.clear();
  }
  void put(uint64_t message) {
    buffers.push_back(content(message, 1000));
    ASSERT_TRUE(ends[0]->on_send(now, put_packet(message, buffers.back(), 0, 1000), {}, out[0]).ok());
  }
  bool lost(uint32_t rank) { return ends[rank]->unacknowledged(nic::Rank{1 - rank}).lost; }

  ReliableConfig config = quick_config();
  std::vector<std::unique_ptr<Reliable>> ends;
  std::array<Output, 2> out;
  std::array<bool, 2> quiescent{};
  std::array<std::vector<LostReason>, 2> losses;
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
    EXPECT_FALSE(pair.lost(1)) << "the other is not quiescent yet, and says nothing";
    pair.quiescent[0] = true;
    pair.run(5000_us);
    EXPECT_TRUE(pair.lost(1));
    ASSERT_EQ(pair.losses[1].size(), life);
    EXPECT_EQ(pair.losses[1].back(), LostReason::has_lost_us);
    EXPECT_TRUE(pair.lost(0)) << "this one is not quiescent yet";
    pair.quiescent[1] = true;
    pair.run(1000_us);
    EXPECT_FALSE(pair.lost(0));
    EXPECT_FALSE(pair.lost(1));
    EXPECT_EQ(pair.returns, (std::array<size_t, 2>{life, life}));
    pair.quiescent = {};
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
  pair.quiescent[0] = true;
  pair.run(1000_us);
  ASSERT_TRUE(pair.lost(1));
  pair.quiescent[1] = true;
  pair.ends[1]->set_quiescent(pair.now, a, true);
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

}  // namespace
}  // namespace spinloom::wire
