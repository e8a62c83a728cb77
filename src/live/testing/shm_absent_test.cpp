// Shared memory between ranks that get each other's cards late, or never.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/log.hpp"
#include "live/node/testing/listener.hpp"
#include "live/shm/shm_transport.hpp"
#include "live/testing/live_testbed.hpp"

namespace spinloom::live {
namespace {

// Two ends in this process. An end knows its own card only.
struct LateRig {
  explicit LateRig(Time limit = Time::never()) : limit_(limit), name_(text("late-", getpid(), "-", ++rigs_)) {
    auto made = LocalJob::create(2);
    SPL_ASSERT(made.ok(), made.error().message);
    job_ = std::move(*made);
  }
  void start(uint32_t rank) {
    auto opened = Rendezvous::open(name_, rank, 2);
    SPL_ASSERT(opened.ok(), opened.error().message);
    doors[rank] = std::move(*opened);
    doors[rank]->set_card(job_.cards[rank]);
    BusinessCard unknown;
    unknown.machine = job_.cards[rank].machine;
    cards_[rank].assign(2, unknown);
    cards_[rank][rank] = job_.cards[rank];
    ShmOptions options;
    options.rendezvous = doors[rank].get();
    options.wait_for_peers = limit_;
    ends[rank] = std::make_unique<ShmTransport>(heard[rank], job_.segments[rank], rank, cards_[rank], options,
                                                [](int, nic::Rank) {});
  }
  void serve(uint32_t rank) {
    for (auto& news : doors[rank]->serve()) {
      if (news.card) {
        cards_[rank][news.rank] = *news.card;
        ends[rank]->card_arrived(nic::Rank{news.rank});
      } else {
        ends[rank]->peer_lost(nic::Rank{news.rank}, news.why);
      }
    }
  }
  // Lets both ends work for so long, and for as long as they have something to do.
  void work(Time span = {}) {
    const Time end = monotonic_now() + span;
    for (int idle = 0; idle < 4 || monotonic_now() < end;) {
      bool happened = false;
      for (uint32_t rank = 0; rank < 2; ++rank) {
        if (!ends[rank]) continue;
        serve(rank);
        happened = ends[rank]->poll() || happened;
      }
      idle = happened ? 0 : idle + 1;
    }
  }
  bool put(uint32_t from, uint64_t message, std::vector<uint8_t>& bytes, bool at_once = false) {
    nic::Send outbound;
    outbound.packet.source = nic::Rank{from};
    outbound.packet.target = nic::Rank{1 - from};
    outbound.packet.message = message;
    outbound.packet.message_length = bytes.size();
    outbound.packet.fields.match_bits = message;
    outbound.packet.payload = {nic::PayloadRef::Space::local, bytes.data(), bytes.size()};
    outbound.last = true;
    outbound.at_once = at_once;
    return ends[from]->send(outbound);
  }
  std::unique_ptr<Rendezvous> doors[2];
  Listener heard[2];
  std::unique_ptr<ShmTransport> ends[2];

 private:
  static inline int rigs_ = 0;
  Time limit_;
  std::string name_;
  LocalJob job_;
  std::vector<BusinessCard> cards_[2];
};

constexpr nic::Rank other{1};
constexpr Time ms{1'000'000'000};

// Captures what the library would print, while it lives.
struct Said {
  Said() {
    log::install([this](log::Level, std::string_view, std::string_view line) { lines.emplace_back(line); },
                 log::Level::warning);
  }
  ~Said() { log::install(nullptr, log::Level::error); }
  std::vector<std::string> lines;
};

TEST(ShmAbsent, WhatIsSentBeforeThePeerComesArrivesInOrder) {
  LateRig rig;
  rig.start(0);
  std::vector<std::vector<uint8_t>> all;
  for (uint64_t i = 0; i < 40; ++i) all.push_back(some(i % 3 == 0 ? 4 : 40'000 * (i % 3), i));
  for (uint64_t i = 0; i < all.size(); ++i) EXPECT_FALSE(rig.put(0, i, all[i]));
  EXPECT_FALSE(rig.ends[0]->drained());
  EXPECT_FALSE(rig.ends[0]->congested(other)) << "nobody slows down for it";
  EXPECT_TRUE(rig.ends[0]->outstanding(other).is_awaited);
  EXPECT_EQ(rig.ends[0]->outstanding(other).packets, 40u);
  EXPECT_LT(rig.ends[0]->timer(), Time::never());
  rig.work(ms * 5);
  rig.start(1);
  rig.work(ms * 100);
  size_t part = 0;
  for (uint64_t i = 0; i < all.size(); ++i) {
    std::vector<uint8_t> got;
    for (; part < rig.heard[1].packets.size() && rig.heard[1].packets[part].message == i; ++part) {
      got.insert(got.end(), rig.heard[1].payloads[part].begin(), rig.heard[1].payloads[part].end());
    }
    EXPECT_EQ(got, all[i]) << i;
  }
  EXPECT_EQ(part, rig.heard[1].packets.size());
  EXPECT_TRUE(rig.ends[0]->drained());
  EXPECT_EQ(rig.ends[0]->timer(), Time::never());
  EXPECT_FALSE(rig.ends[0]->outstanding(other).is_awaited);
  EXPECT_EQ(rig.heard[0].read.size(), all.size());
}

TEST(ShmAbsent, ALateRankSendsBothWays) {
  LateRig rig;
  rig.start(0);
  rig.work(ms);
  rig.start(1);
  auto bytes = some(8, 1), back = some(100'000, 2);
  std::ignore = rig.put(1, 7, bytes);
  rig.work(ms * 20);
  ASSERT_EQ(rig.heard[0].packets.size(), 1u);
  std::ignore = rig.put(0, 8, back);
  rig.work();
  ASSERT_EQ(rig.heard[1].payloads.size(), 1u);
  EXPECT_EQ(rig.heard[1].payloads[0], back);
}

TEST(ShmAbsent, BytesThatMustBeReadAtOnceAreKept) {
  LateRig rig;
  rig.start(0);
  auto bytes = some(200, 1);
  const auto before = bytes;
  EXPECT_FALSE(rig.put(0, 7, bytes, true));
  bytes.assign(bytes.size(), 0);
  rig.start(1);
  rig.work(ms * 20);
  ASSERT_EQ(rig.heard[1].payloads.size(), 1u);
  EXPECT_EQ(rig.heard[1].payloads[0], before);
}

TEST(ShmAbsent, AfterTheLimitThePeerIsLostAndPeopleKnowWhy) {
  const Said said;
  constexpr Time limit = ms * 100;
  LateRig rig(limit);
  rig.start(0);
  auto bytes = some(9, 1);
  const Time began = monotonic_now();
  EXPECT_FALSE(rig.put(0, 7, bytes));
  rig.work(ms * 10);
  const bool is_gone = !rig.heard[0].gone.empty();
  EXPECT_TRUE(!is_gone || monotonic_now() - began >= limit);
  rig.work(limit + ms * 30);
  EXPECT_EQ(rig.heard[0].gone, std::vector<uint32_t>{1});
  EXPECT_EQ(rig.heard[0].read, std::vector<uint64_t>{7});
  EXPECT_TRUE(rig.put(0, 8, bytes));
  EXPECT_TRUE(rig.ends[0]->drained());
  ASSERT_EQ(said.lines.size(), 1u);
  EXPECT_NE(said.lines[0].find("has not called PtlInit in"), std::string::npos) << said.lines[0];

  rig.start(1);  // comes after all, and hears that it is too late
  std::ignore = rig.put(1, 9, bytes);
  rig.work(ms * 20);
  EXPECT_EQ(rig.heard[1].gone, std::vector<uint32_t>{0});
  EXPECT_TRUE(rig.heard[0].packets.empty());
}

TEST(ShmAbsent, APeerThatHasLeftIsLostAtOnce) {
  LateRig rig;
  rig.start(1);
  rig.ends[1]->say_goodbye();
  rig.doors[1]->stop_answering();
  rig.ends[1].reset();
  rig.start(0);
  auto bytes = some(9, 1);
  EXPECT_TRUE(rig.put(0, 7, bytes));
  rig.ends[0]->poll();
  EXPECT_EQ(rig.heard[0].gone, std::vector<uint32_t>{1});
}

TEST(ShmAbsent, APeerThatCannotStartSaysWhy) {
  const Said said;
  LateRig rig;
  rig.start(0);
  auto bytes = some(9, 1);
  EXPECT_FALSE(rig.put(0, 7, bytes));
  rig.start(1);
  rig.doors[1]->send_gone_to_all("it cannot start: no luck");
  rig.serve(0);
  rig.ends[0]->poll();
  EXPECT_EQ(rig.heard[0].gone, std::vector<uint32_t>{1});
  ASSERT_EQ(said.lines.size(), 1u);
  EXPECT_NE(said.lines[0].find("it cannot start: no luck"), std::string::npos) << said.lines[0];
}

TEST(ShmAbsent, WhoLeavesTellsPeersWhoseCardsItNeverGot) {
  LateRig rig;
  rig.start(0);
  rig.start(1);
  auto bytes = some(9, 1);
  std::ignore = rig.put(0, 7, bytes);
  rig.serve(1);               // answers with its card, and asks
  rig.serve(0);               // attaches
  rig.ends[0]->poll();        // this poll sends
  rig.ends[1]->say_goodbye();  // it has not seen the other's card yet
  rig.serve(0);
  rig.ends[0]->poll();
  EXPECT_EQ(rig.heard[0].gone, std::vector<uint32_t>{1});
}

TEST(ShmAbsent, DescribingAPeerDoesNotWaitForIt) {
  LateRig rig;
  rig.start(0);
  EXPECT_EQ(rig.ends[0]->describe(other), "when it has come");
  EXPECT_TRUE(rig.ends[0]->drained());
}

}  // namespace
}  // namespace spinloom::live
