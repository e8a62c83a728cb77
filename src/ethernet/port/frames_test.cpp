// Links without room for more frames, and links that go away. testing/port_ways.hpp tests for every kind of port that
// frames go over as they are.
#include <gtest/gtest.h>

#include "ethernet/port/testing/pair_testbed.hpp"

namespace spinloom::port {
namespace {

using namespace test;

class Links : public PairTest {};

// Frames that came = received + dropped + truncated: nobody receives while more come than there is room for.
TEST_P(Links, WhatThereIsNoRoomForIsCounted) {
  Random random(5);
  const std::vector<FrameBytes> frames(500, experimental(random, nic_->mac(), 0));
  uint64_t sent = 0;
  for (int i = 0; i < 20; ++i, sent += frames.size()) must_send(*host_, frames);
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
  must_send(*host_, later);
  EXPECT_EQ(take(*nic_, 1), later);
}

TEST_P(Links, AnInterfaceThatGoesAwayIsAnError) {
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

INSTANTIATE_TEST_SUITE_P(By, Links, ::testing::Values("packet", "xdp", "tap"), name_of_kind);

}  // namespace
}  // namespace spinloom::port
