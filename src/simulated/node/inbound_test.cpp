// The time for which a simulated NIC keeps the bytes of packets.
#include <gtest/gtest.h>

#include "portals/interface/interface.hpp"
#include "simulated/node/testing/profile.hpp"
#include "simulated/node/world.hpp"

namespace spinloom::simulated {
namespace {

class Inbound : public testing::Test {
 protected:
  void SetUp() override {
    auto world = World::create(profile_, images_, {});
    ASSERT_TRUE(world.ok());
    world_ = std::move(*world);
    sender_ = std::make_unique<portals::Interface>(world_->node(0));
    target_ = std::make_unique<portals::Interface>(world_->node(1));
    queue_ = target_->eq_alloc(16).value();
    counter_ = target_->ct_alloc().value();
    portal_ = target_->pt_alloc(queue_).value();
    nic::Entry entry;
    entry.start = there_.data();
    entry.length = there_.size();
    entry.options.op_put = true;
    entry.options.ct_comm = true;
    entry.options.event_comm_disable = true;
    entry.options.event_link_disable = true;
    entry.counter = counter_;
    ASSERT_TRUE(target_->me_append(portal_, entry).ok());
  }
  void put(uint64_t length) {
    portals::PutArguments given;
    given.local = here_.data();
    given.length = length;
    given.target = nic::Rank{1};
    given.portal = portal_;
    ASSERT_TRUE(sender_->put(given).ok());
  }

  Profile profile_ = test_profile();
  std::vector<hpu::Image> images_;
  std::vector<uint8_t> here_ = std::vector<uint8_t>(1 << 16, 7);
  std::vector<uint8_t> there_ = std::vector<uint8_t>(1 << 16);
  std::unique_ptr<World> world_;
  std::unique_ptr<portals::Interface> sender_, target_;
  nic::QueueId queue_;
  nic::CounterId counter_;
  nic::PortalIndex portal_;
};

// No event is delivered here, and messages always overlap: only the ends of messages free their packets.
TEST_F(Inbound, CountedMessagesGiveTheirPacketsBack) {
  constexpr uint64_t messages = 400;
  uint64_t most = 0;
  put(here_.size());
  for (uint64_t sent = 1; sent < messages; ++sent) {
    put(sent % 2 == 0 ? 1000 : here_.size());
    while (target_->ct_get(counter_).success < sent) {
      ASSERT_TRUE(world_->events().step());
      most = std::max(most, world_->node(1).packets_held());
    }
  }
  world_->drain();
  EXPECT_EQ(target_->ct_get(counter_).success, messages);
  EXPECT_EQ(there_, here_);
  const uint64_t packets_a_message = here_.size() / 2048;
  EXPECT_LE(most, 5 * packets_a_message);
  EXPECT_GE(most, packets_a_message / 2) << "the test looks at the wrong number";
}

TEST_F(Inbound, PacketsThatAreWholeMessagesAreKeptUntilTheirBytesHaveLanded) {
  for (int i = 0; i < 100; ++i) put(512);
  world_->drain();
  EXPECT_EQ(target_->ct_get(counter_).success, 100u);
  EXPECT_EQ(world_->node(1).packets_held(), 0u);
  EXPECT_TRUE(std::equal(here_.begin(), here_.begin() + 512, there_.begin()));
}

}  // namespace
}  // namespace spinloom::simulated
