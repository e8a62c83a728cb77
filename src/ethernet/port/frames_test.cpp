// Frames between two ports of a link: they go over as they are, and every one is counted.
#include <gtest/gtest.h>

#include "ethernet/port/testing/pair_testbed.hpp"

namespace spinloom::port {
namespace {

using namespace test;

class Frames : public PairTest {};

TEST_P(Frames, FramesGoOverAsTheyAre) {
  for_seeds(3, [this](Random& random) {
    for (const auto& [from, to] : {std::pair(host_.get(), nic_.get()), std::pair(nic_.get(), host_.get())}) {
      std::vector<FrameBytes> frames;
      for (int i = 0; i < 300; ++i) frames.push_back(experimental(random, to->mac(), 0));
      const Counters sent = from->counters();
      const Counters before = to->counters();
      send_all(*from, frames);
      EXPECT_EQ(take(*to, frames.size()), frames);
      EXPECT_EQ(from->counters().sent - sent.sent, frames.size());
      EXPECT_GE(to->counters().received - before.received, frames.size());
      EXPECT_EQ(to->counters().truncated, 0U);
    }
  });
}

// Rings have a few thousand places: twice around.
TEST_P(Frames, RingsGoAround) {
  Random random(1);
  std::vector<FrameBytes> frames;
  for (int i = 0; i < 200; ++i) frames.push_back(experimental(random, nic_->mac(), 0));
  for (int round = 0; round < 50; ++round) {
    send_all(*host_, frames);
    ASSERT_EQ(take(*nic_, frames.size()), frames) << "round " << round;
    send_all(*nic_, frames);
    ASSERT_EQ(take(*host_, frames.size()), frames) << "round " << round;
  }
}

TEST_P(Frames, TagsStayInTheirFrames) {
  Random random(2);
  const std::vector<FrameBytes> frames{experimental(random, nic_->mac(), 1), experimental(random, nic_->mac(), 2)};
  send_all(*host_, frames);
  EXPECT_EQ(take(*nic_, frames.size()), frames);
}

TEST_P(Frames, FramesForOthersComeToo) {
  Random random(3);
  packet::MacAddress other{{2, 9, 9, 9, 9, 9}};
  const std::vector<FrameBytes> frames{experimental(random, other, 0), experimental(random, packet::broadcast, 0)};
  send_all(*host_, frames);
  EXPECT_EQ(take(*nic_, frames.size()), frames);
}

TEST_P(Frames, AFrameThatIsTooLongIsRefusedAndTheLongestGoesOver) {
  ASSERT_EQ(nic_->mtu(), 1500U);
  const std::array<Bytes, 1> none{};
  const FrameBytes longer(1515, 1);
  EXPECT_FALSE(nic_->send(std::array{Bytes(longer)}).ok());
  EXPECT_FALSE(nic_->send(none).ok());
  for (const auto& [from, to] : {std::pair(host_.get(), nic_.get()), std::pair(nic_.get(), host_.get())}) {
    packet::Ethernet header;
    header.target = to->mac();
    header.source = from->mac();
    header.type = 0x88b5;
    const std::vector<FrameBytes> frames{packet::ethernet_frame(header, FrameBytes(1500, 7))};
    send_all(*from, frames);
    EXPECT_EQ(take(*to, 1), frames);
  }
}

// Frames that came = received + dropped + truncated: nobody receives while more come than there is room for.
TEST_P(Frames, WhatThereIsNoRoomForIsCounted) {
  Random random(5);
  const std::vector<FrameBytes> frames(500, experimental(random, nic_->mac(), 0));
  uint64_t sent = 0;
  for (int i = 0; i < 20; ++i, sent += frames.size()) send_all(*host_, frames);
  uint64_t received = 0;
  std::array<Bytes, 64> batch;
  for (auto came = nic_->receive(batch); came.ok() && *came > 0; came = nic_->receive(batch)) received += *came;
  const Counters counters = nic_->counters();
  EXPECT_EQ(counters.received, received);
  EXPECT_GT(counters.dropped, 0U);
  EXPECT_EQ(counters.received + counters.dropped, sent);
  EXPECT_EQ(counters.truncated, 0U);
  // And it goes on.
  const std::vector<FrameBytes> later{experimental(random, nic_->mac(), 0)};
  send_all(*host_, later);
  EXPECT_EQ(take(*nic_, 1), later);
}

TEST_P(Frames, AnInterfaceThatGoesAwayIsAnError) {
  ASSERT_TRUE(run("ip link delete " + end_));
  std::array<Bytes, 4> batch;
  auto came = nic_->receive(batch);
  for (int i = 0; i < 100 && came.ok(); ++i) {
    wait_for(*nic_, 20);
    came = nic_->receive(batch);
  }
  ASSERT_FALSE(came.ok());
  EXPECT_NE(came.error().message.find(end_), std::string::npos) << came.error().message;
}

INSTANTIATE_TEST_SUITE_P(By, Frames, ::testing::Values("packet", "xdp", "tap"), name_of_kind);

}  // namespace
}  // namespace spinloom::port
