// Times at which packets of the sender's side leave.
#include <gtest/gtest.h>

#include "portals/interface/interface.hpp"
#include "simulated/node/testing/profile.hpp"
#include "simulated/node/world.hpp"

namespace spinloom::simulated {
namespace {

class Outbound : public testing::Test {
 protected:
  void SetUp() override {
    auto world = World::create(profile_, images_, {});
    ASSERT_TRUE(world.ok());
    world_ = std::move(*world);
    host_ = std::make_unique<portals::Interface>(world_->node(0));
  }
  portals::PutArguments put(uint64_t length) const {
    portals::PutArguments made;
    made.local = memory_.data();
    made.length = length;
    made.target = nic::Rank{1};
    made.portal = nic::PortalIndex{0};
    return made;
  }
  // Time of n bytes on PCIe, in packets of at most 256 B with 24 B of overhead each.
  Time on_pcie(int64_t bytes) const { return Pcie(profile_).write_duration(bytes); }
  // Commands are sent one after the other; returns when the n-th arrives.
  Time command(int64_t n) const { return on_pcie(profile_.pcie.event_bytes) * n + profile_.host.command_latency; }
  Time on_wire() const { return profile_.link.switch_latency + profile_.link.wire; }

  Profile profile_ = test_profile();
  std::vector<hpu::Image> images_;
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(1 << 16);
  std::unique_ptr<World> world_;
  std::unique_ptr<portals::Interface> host_;
};

// T = commands + request + latency + regions, each in PCIe packets of its own + latency + switch + wire
TEST_F(Outbound, AStreamedPacketIsReadWhenItsLastRegionIsNamed) {
  const auto stream = host_->stream_start(put(600), memory_.size(), {0, 300});
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE(host_->stream_append(*stream, {1000, 300}, true).ok());
  world_->drain();
  const Time read = on_pcie(0) + profile_.pcie.latency + on_pcie(300) * 2 + profile_.pcie.latency;
  EXPECT_EQ(world_->node(1).statistics().first_byte, command(2) + read + on_wire());
  EXPECT_EQ(world_->node(0).statistics().dma_reads, 2u);
  EXPECT_EQ(world_->node(0).statistics().dma_read_bytes, 600u);
}

// n operations outside of a bundle cost n round trips to the NIC, in a bundle one and n commands.
TEST_F(Outbound, ABundleOfTriggeredPutsCostsOneRoundTrip) {
  const auto counter = host_->ct_alloc();
  ASSERT_TRUE(counter.ok());
  constexpr int64_t operations = 16;
  const auto spent = [&] {
    const Time before = host_->port().now();
    for (int64_t i = 0; i < operations; ++i) {
      EXPECT_TRUE(host_->put(put(8), nic::Trigger{*counter, 1}).ok());
    }
    return [this, before] { return host_->port().now() - before; };
  };
  const Time alone = spent()();
  const Time round_trip{alone.ps / operations};
  EXPECT_EQ(round_trip * operations, alone);
  host_->bundle_begin();
  const auto elapsed = spent();
  EXPECT_EQ(elapsed(), Time{});
  ASSERT_TRUE(host_->bundle_end().ok());
  EXPECT_GE(elapsed(), round_trip);
  EXPECT_LE(elapsed(), round_trip + on_pcie(profile_.pcie.event_bytes) * (2 * operations));
}

// The first packet does not wait for the rest of the message.
TEST_F(Outbound, AStreamedPacketLeavesBeforeTheNextIsNamed) {
  const auto stream = host_->stream_start(put(4096), memory_.size(), {0, 2048});
  ASSERT_TRUE(stream.ok());
  world_->drain();
  const Time read = on_pcie(0) + profile_.pcie.latency + on_pcie(2048) + profile_.pcie.latency;
  EXPECT_EQ(world_->node(1).statistics().first_byte, command(1) + read + on_wire());
  EXPECT_EQ(world_->node(1).statistics().packets, 1u);
  ASSERT_TRUE(host_->stream_append(*stream, {0, 2048}, true).ok());
  world_->drain();
  EXPECT_EQ(world_->node(1).statistics().packets, 2u);
  EXPECT_EQ(world_->node(0).nic().state().messages_outgoing, 0u);
}

// A call costs host.call and its blocks' walk: T = 65 ns + ceil(3 blocks * 10 cycles at 3.4 GHz)
TEST_F(Outbound, PostingACallCosts) {
  portals::HostWork work;
  work.kind = portals::HostWork::Kind::post;
  work.blocks.listed = 3;
  EXPECT_EQ(host_cost(profile_, work).total(), 65_ns + 8824_ps);
  work.blocks = {};
  ASSERT_TRUE(host_->host_work(work).ok());
  EXPECT_EQ(world_->node(0).now(), 65_ns);
  EXPECT_EQ(world_->node(0).statistics().host_busy, 65_ns);
}

}  // namespace
}  // namespace spinloom::simulated
