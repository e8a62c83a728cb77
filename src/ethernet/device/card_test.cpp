// The card's ways: host bypass, handlers, waiting, backpressure, trouble.
#include <cstring>

#include "ethernet/device/testing/card_rig.hpp"

namespace spinloom::ethernet::test {
namespace {

FrameBytes ping(uint16_t sequence, size_t bytes = 56) { return echo_frame(ends, 7, sequence, FrameBytes(bytes, 0xab)); }

ContextSetup echo(bool native = true) {
  ContextSetup setup;
  setup.image = image("icmp_echo", native);
  setup.constants = station();
  return setup;
}

// Rules: FPS-33.
TEST(Card, FramesThatNoRuleTakesGoToTheHostAndItsAnswersToTheWire) {
  Rig rig;
  rig.rules({"icmp"});
  rig.install(0, echo());
  const FrameBytes datagram = udp_frame(ends, 1000, 2000, FrameBytes(10, 1));
  const FrameBytes asks = arp_request_frame(ends.source_mac, ends.source, ends.target);
  rig.wire.in = {datagram, asks};
  rig.host.in = {ping(1), ping(2)};
  rig.settle();
  EXPECT_EQ(rig.host.out, (std::vector{datagram, asks}));
  EXPECT_EQ(rig.wire.out, (std::vector{ping(1), ping(2)}));
  EXPECT_EQ(rig.card->nic().count(frames::Count::bypassed), 2u);
  EXPECT_EQ(rig.card->nic().count(frames::Count::sent_by_host), 2u);
  rig.expect_quiet();
}

TEST(Card, AContextThatIsNotActiveLeavesItsFramesToTheHost) {
  Rig rig;
  rig.rules({"icmp"});
  ASSERT_TRUE(rig.card->install(ContextId{0}, echo()).ok());
  rig.wire.in = {ping(1)};
  rig.settle();
  EXPECT_EQ(rig.host.out, std::vector<FrameBytes>{ping(1)});
  EXPECT_TRUE(rig.wire.out.empty());
}

// batch * turns frames = 64 * 5 > 256 slots: each slot is used again.
// Rules: FPS-44.
TEST(Card, SlotsAreUsedAgainAndAgain) {
  for (const bool native : {true, false}) {
    Rig rig;
    rig.rules({"icmp"});
    rig.install(0, echo(native));
    for (uint16_t i = 0; i < 2000; ++i) rig.wire.in.push_back(ping(i, i % 1400));
    rig.settle();
    ASSERT_EQ(rig.wire.out.size(), 2000u);
    for (uint16_t i = 0; i < 2000; ++i) {
      const auto ip = packet::read_ipv4(packet::read_ethernet(rig.wire.out[i])->payload);
      const auto icmp = packet::read_icmp(*ip);
      ASSERT_TRUE(icmp.ok()) << i;
      EXPECT_EQ(icmp->type, 0);
      EXPECT_EQ(icmp->sequence, i);
    }
    EXPECT_EQ(rig.card->nic().count(frames::Count::sent_by_handlers), 2000u);
    rig.expect_quiet();
  }
}

// The wire takes 3 frames: 3 leave, the others wait in packet memory, and leave in their order.
TEST(Card, AWireWithoutRoomHoldsFramesBack) {
  Rig rig;
  rig.rules({"icmp"});
  rig.install(0, echo());
  rig.wire.room = 3;
  for (uint16_t i = 0; i < 200; ++i) rig.wire.in.push_back(ping(i));
  rig.settle();
  EXPECT_EQ(rig.wire.out.size(), 3u);
  EXPECT_EQ(rig.card->nic().state().packets, 197u);
  EXPECT_FALSE(rig.card->ended());
  rig.wire.room = SIZE_MAX;
  rig.settle();
  ASSERT_EQ(rig.wire.out.size(), 200u);
  for (uint16_t i = 0; i < 200; ++i) EXPECT_EQ(rig.wire.out[i][14 + 20 + 7], static_cast<uint8_t>(i));
  EXPECT_TRUE(rig.card->ended());
  rig.expect_quiet();
}

// 256 slots of 1,536 B: of 300 such frames 44 find none while the wire takes nothing.
// Rules: FPS-43.
TEST(Card, FramesWithoutASlotAreDroppedAndCounted) {
  Rig rig;
  rig.rules({"icmp"});
  rig.install(0, echo());
  rig.wire.room = 0;
  for (uint16_t i = 0; i < 300; ++i) rig.wire.in.push_back(ping(i, 1000));
  rig.settle();
  EXPECT_EQ(rig.card->nic().count(frames::Count::dropped_full), 44u);
  rig.wire.room = SIZE_MAX;
  rig.settle();
  EXPECT_EQ(rig.wire.out.size(), 256u);
  rig.expect_quiet();
}

TEST(Card, FramesOfTheHostWaitForTheWireAndAreNotLost) {
  Rig rig;
  rig.wire.room = 10;
  for (uint16_t i = 0; i < 300; ++i) rig.host.in.push_back(ping(i));
  rig.settle();
  EXPECT_EQ(rig.wire.out.size(), 10u);
  EXPECT_EQ(rig.host.in.size(), 300u - 64u) << "one batch is under way, the others stay with the host";
  rig.wire.room = SIZE_MAX;
  rig.settle();
  ASSERT_EQ(rig.wire.out.size(), 300u);
  for (uint16_t i = 0; i < 300; ++i) EXPECT_EQ(rig.wire.out[i], ping(i));
  EXPECT_EQ(rig.card->nic().count(frames::Count::host_refused), 0u);
}

// Ports take 14 to 1,514 bytes, and with a VLAN tag up to 1,518.
TEST(Card, FramesThatAPortDoesNotTakeAreCounted) {
  FrameBytes tagged(1518);
  tagged[12] = 0x81;
  FrameBytes long_tagged(1519);
  long_tagged[12] = 0x81;
  const std::vector<FrameBytes> all{FrameBytes(13), FrameBytes(14), FrameBytes(1514), FrameBytes(1515),
                                    tagged,         long_tagged,    ping(1)};
  const std::vector<FrameBytes> fitting{FrameBytes(14), FrameBytes(1514), tagged, ping(1)};
  Rig rig;
  rig.host.in.assign(all.begin(), all.end());
  rig.wire.in.assign(all.begin(), all.end());
  rig.settle();
  EXPECT_EQ(rig.wire.out, fitting);
  EXPECT_EQ(rig.card->unsendable_frames(), 3u);
  EXPECT_EQ(rig.card->nic().count(frames::Count::sent_by_host), fitting.size());
  EXPECT_EQ(rig.host.out, fitting);
  EXPECT_EQ(rig.card->to_host_lost(), 2u);
  EXPECT_EQ(rig.card->nic().count(frames::Count::runts), 1u);
}

TEST(Card, AHostWithoutRoomLosesFramesAndTheyAreCounted) {
  Rig rig;
  rig.host.room = 5;
  for (uint16_t i = 0; i < 8; ++i) rig.wire.in.push_back(ping(i));
  rig.settle();
  EXPECT_EQ(rig.host.out.size(), 5u);
  EXPECT_EQ(rig.card->to_host_lost(), 3u);
}

TEST(Card, WithoutAHostsPortItsFramesAreCounted) {
  Wire wire;
  const auto card = made(Card::create({}, std::make_unique<MemoryPort>(wire)));
  wire.in = {ping(1)};
  ASSERT_TRUE(card->turn().ok());
  EXPECT_EQ(card->to_host_lost(), 1u);
}

TEST(Card, FramesWithoutHandlersGoToARingInHostMemory) {
  Rig rig;
  rig.rules({"udp:2000"});
  ContextSetup ring;
  ring.host_bytes = 4 * frames::ring_entry_bytes;
  rig.install(0, ring);
  for (uint8_t i = 0; i < 6; ++i) rig.wire.in.push_back(udp_frame(ends, 1000, 2000, FrameBytes(100, i)));
  const std::deque<FrameBytes> sent = rig.wire.in;
  rig.settle();
  const auto memory = rig.card->host_memory(ContextId{0});
  for (uint32_t entry = 0; entry < 4; ++entry) {
    frames::RingHeader header;
    const uint8_t* const at = memory.data() + entry * frames::ring_entry_bytes;
    std::memcpy(&header, at, sizeof header);
    EXPECT_EQ(header.sequence, entry + 1);
    EXPECT_EQ(FrameBytes(at + sizeof header, at + sizeof header + header.length), sent[entry]);
  }
  EXPECT_EQ(rig.card->nic().count(frames::Count::memory_full), 2u);
  rig.card->nic().on_host_read(ContextId{0}, 4);
  rig.wire.in.push_back(sent[0]);
  rig.settle();
  EXPECT_EQ(rig.card->nic().count(frames::Count::to_memory), 5u);
  rig.expect_quiet();
}

TEST(Card, AContextCanBeTakenAwayAndItsMemoryIsFreeAgain) {
  Options options;
  options.limits.nic_memory_bytes = 8192;
  Rig rig(options);
  ContextSetup large = echo();
  large.state_bytes = 7000;
  for (int i = 0; i < 3; ++i) {
    rig.install(1, large);
    const Status active = rig.card->remove(ContextId{1});
    ASSERT_FALSE(active.ok());
    EXPECT_NE(active.error().message.find("deactivate"), std::string::npos);
    ASSERT_TRUE(rig.card->activate(ContextId{1}, false).ok());
    ASSERT_TRUE(rig.card->remove(ContextId{1}).ok());
  }
  large.state_bytes = 9000;
  const Status refused = rig.card->install(ContextId{1}, large);
  ASSERT_FALSE(refused.ok());
  rig.install(1, echo());  // the constants of the refused one are free, too
}

TEST(Card, WhatCannotBeInstalledIsRefused) {
  Rig rig;
  ContextSetup missing = echo();
  missing.image = "/no/such/file.elf";
  const auto says = [&](uint32_t id, const ContextSetup& setup, const char* part) {
    const Status made = rig.card->install(ContextId{id}, setup);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().message.find(part), std::string::npos) << made.error().message;
  };
  says(0, missing, "/no/such/file.elf");
  says(4, echo(), "there is no context 4");
  ContextSetup nothing;
  says(0, nothing, "holds no frame");
  ContextSetup small = echo();
  small.state = FrameBytes(100);
  small.state_bytes = 10;
  rig.install(0, small);  // the state is as large as its content
  EXPECT_EQ(rig.card->state(ContextId{0}).size(), 100u);
  says(0, echo(), "remove it first");
  EXPECT_FALSE(rig.card->initialise(ContextId{0}).ok());
}

TEST(Card, APortThatBreaksEndsTheCardWithItsReason) {
  Rig rig;
  rig.wire.broken = true;
  const auto done = rig.card->turn();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message, "the cable is out");
}

TEST(Card, StagesCountFrames) {
  Rig rig;
  rig.rules({"icmp"});
  rig.install(0, echo());
  rig.wire.in = {ping(1), ping(2), udp_frame(ends, 1, 2, {})};
  rig.host.in = {ping(3)};
  rig.settle();
  const Stages& stages = rig.card->stages();
  EXPECT_EQ(stages[Stage::receive].frames, 3u);
  EXPECT_EQ(stages[Stage::match].frames, 3u);
  EXPECT_EQ(stages[Stage::store].frames, 2u);
  EXPECT_EQ(stages[Stage::handlers].frames, 2u);
  EXPECT_EQ(stages[Stage::transmit].frames, 3u);
  EXPECT_EQ(stages[Stage::to_host].frames, 1u);
  EXPECT_EQ(stages[Stage::from_host].frames, 1u);
  EXPECT_GT(stages[Stage::handlers].cycles, 0u);
}

}  // namespace
}  // namespace spinloom::ethernet::test
