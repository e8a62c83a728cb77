// The choice of an HPU for each HER: the default policy and blocked round-robin over virtual HPUs.
#include <map>
#include <set>

#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

Context blocked(uint32_t packets_in_row, uint32_t vhpus) {
  Context context;
  context.payload_entry = 1;
  context.blocked_round_robin = BlockedRoundRobin{packets_in_row, vhpus};
  return context;
}

EntryId attach(Bench& bench, ContextId context) {
  Entry entry = bench.entry();
  entry.context = context;
  return bench.append(entry);
}

// Rules: SPIN-1.10.
TEST(Schedule, DefaultIsFifoOntoTheLowestIdleHpu) {
  Bench bench;
  attach(bench, bench.context());
  std::vector<HerId> hers;
  for (uint64_t offset = 0; offset < 64; offset += 16) {
    bench.arrive(1, 64, offset);
    EXPECT_EQ(bench.only<BufferPacket>().bytes, 16u);
    hers.push_back(bench.only<BufferPacket>().her);
  }
  EXPECT_EQ(bench.nic.state().hers_waiting, 4u);
  // The packets reach the scheduler in another order than they came.
  bench.her_ready(hers[2]);
  EXPECT_EQ(bench.only<RunHandler>().her.hpu, HpuId{0});
  EXPECT_EQ(bench.only<RunHandler>().her.vhpu, VhpuId{0});
  EXPECT_EQ(bench.only<RunHandler>().her.offset, 32u);
  EXPECT_EQ(bench.only<RunHandler>().her.message_length, 64u);
  bench.her_ready(hers[0]);
  EXPECT_EQ(bench.only<RunHandler>().her.hpu, HpuId{1});
  bench.her_ready(hers[3]);
  bench.her_ready(hers[1]);
  EXPECT_TRUE(bench.actions<RunHandler>().empty());
  EXPECT_EQ(bench.nic.state().hpus_busy, 2u);
  bench.done(hers[0]);
  EXPECT_EQ(bench.only<RunHandler>().her.id, hers[3]);
  EXPECT_EQ(bench.only<RunHandler>().her.hpu, HpuId{1});
  bench.done(hers[2]);
  EXPECT_EQ(bench.only<RunHandler>().her.id, hers[1]);
  EXPECT_EQ(bench.only<RunHandler>().her.hpu, HpuId{0});
  bench.done(hers[1]);
  EXPECT_TRUE(bench.kinds().empty());
  bench.done(hers[3]);
  EXPECT_EQ(bench.event(EventKind::put).manipulated_bytes, 64u);
  bench.expect_idle();
}

// Rules: SPIN-8.3.
TEST(Schedule, BlockedRoundRobinAssignsSequencesAndKeepsTheHpu) {
  Bench bench;
  attach(bench, bench.context(blocked(2, 2)));
  // Packets 0 1 | 2 3 | 4 5 | 6 7 belong to virtual HPUs 0, 1, 0, 1.
  std::vector<HerId> hers;
  const std::vector<uint32_t> expected = {0, 0, 1, 1, 0, 0, 1, 1};
  for (uint64_t packet = 0; packet < 8; ++packet) {
    bench.arrive(1, 128, packet * 16);
    hers.push_back(bench.only<BufferPacket>().her);
  }
  bench.her_ready(hers[0]);
  EXPECT_EQ(bench.only<RunHandler>().her.vhpu, VhpuId{0});
  bench.her_ready(hers[1]);
  EXPECT_TRUE(bench.actions<RunHandler>().empty()) << "one HPU is idle, but the sequence is sequential";
  bench.her_ready(hers[4]);
  EXPECT_TRUE(bench.actions<RunHandler>().empty());
  bench.her_ready(hers[2]);
  EXPECT_EQ(bench.only<RunHandler>().her.vhpu, VhpuId{1});
  EXPECT_EQ(bench.only<RunHandler>().her.hpu, HpuId{1});
  // Virtual HPU 0 keeps its HPU and runs its packets in order of readiness.
  bench.done(hers[0]);
  EXPECT_EQ(bench.only<RunHandler>().her.id, hers[1]);
  EXPECT_EQ(bench.only<RunHandler>().her.hpu, HpuId{0});
  bench.done(hers[1]);
  EXPECT_EQ(bench.only<RunHandler>().her.id, hers[4]);
  // Without ready packets a virtual HPU yields. When a packet comes, it takes the lowest idle HPU.
  bench.done(hers[4]);
  EXPECT_TRUE(bench.actions<RunHandler>().empty());
  EXPECT_EQ(bench.nic.state().hpus_busy, 1u);
  bench.done(hers[2]);
  EXPECT_EQ(bench.nic.state().hpus_busy, 0u);
  for (const uint64_t packet : {7u, 5u, 6u, 3u}) bench.her_ready(hers[packet]);
  bench.done(hers[7]);
  EXPECT_EQ(bench.only<RunHandler>().her.id, hers[6]);
  EXPECT_EQ(bench.only<RunHandler>().her.vhpu, VhpuId{expected[6]});
  EXPECT_EQ(bench.only<RunHandler>().her.hpu, HpuId{0});
  bench.done(hers[6]);
  EXPECT_EQ(bench.only<RunHandler>().her.id, hers[3]);
  bench.done(hers[5]);
  bench.done(hers[3]);
  EXPECT_EQ(bench.kinds().size(), 1u);
  bench.expect_idle();
}

TEST(Schedule, RunnableVirtualHpusAreFifo) {
  NicLimits limits = small_limits();
  limits.hpus = 1;
  Bench bench(limits);
  attach(bench, bench.context(blocked(1, 4)));
  std::vector<HerId> hers;
  for (uint64_t packet = 0; packet < 8; ++packet) {
    bench.arrive(1, 128, packet * 16);
    hers.push_back(bench.only<BufferPacket>().her);
  }
  for (const size_t packet : {1, 3, 0, 2, 4, 7}) bench.her_ready(hers[packet]);
  // vHPU 1 runs packet 1 and yields; then 3 (its packets 3, 7), 0 (0, 4), 2.
  std::vector<uint64_t> order = {1};
  HerId running = hers[1];
  for (int i = 0; i < 5; ++i) {
    bench.done(running);
    running = bench.only<RunHandler>().her.id;
    order.push_back(bench.only<RunHandler>().her.offset / 16);
  }
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 3, 7, 0, 4, 2}));
}

// Rules: SPIN-8.3.
TEST(Schedule, BlockedSequencesNeverOverlapUnderRandomArrival) {
  const uint64_t seed = test_seed();
  Random random(seed, "schedule");
  for (int round = 0; round < 50; ++round) {
    NicLimits limits = small_limits();
    limits.hpus = static_cast<uint32_t>(1 + random.below(5));
    limits.packet_buffer_bytes = 1 << 16;
    const uint32_t row = static_cast<uint32_t>(1 + random.below(4));
    const uint32_t vhpus = static_cast<uint32_t>(1 + random.below(6));
    Bench bench(limits);
    Entry entry = bench.entry();
    entry.context = bench.context(blocked(row, vhpus));
    bench.append(entry);
    constexpr uint64_t packets = 48;
    std::vector<uint64_t> order;
    for (uint64_t packet = 1; packet < packets; ++packet) order.push_back(packet);
    random.shuffle(order);
    order.insert(order.begin(), 0);
    std::vector<HerId> buffered;
    std::map<uint32_t, uint32_t> running_on;  // vHPU -> HER
    std::map<uint32_t, Her> running;
    size_t next = 0;
    uint64_t finished = 0;
    const auto note_starts = [&] {
      for (const auto& run : bench.actions<RunHandler>()) {
        const Her& her = run.her;
        ASSERT_EQ(her.vhpu.value, her.offset / 16 / row % vhpus) << replay(seed);
        ASSERT_TRUE(running_on.emplace(her.vhpu.value, her.id.value).second)
            << "virtual HPU " << her.vhpu << " runs twice, round " << round << ", " << replay(seed);
        for (const auto& [id, other] : running) ASSERT_NE(other.hpu, her.hpu) << replay(seed);
        running.emplace(her.id.value, her);
      }
    };
    while (finished < packets) {
      const uint64_t choice = random.below(3);
      if (choice == 0 && next < packets) {
        bench.arrive(1, packets * 16, order[next++] * 16);
        buffered.push_back(bench.only<BufferPacket>().her);
      } else if (choice == 1 && !buffered.empty()) {
        const size_t which = random.below(buffered.size());
        const HerId her = buffered[which];
        buffered.erase(buffered.begin() + static_cast<ptrdiff_t>(which));
        bench.her_ready(her);
        note_starts();
      } else if (!running.empty()) {
        auto which = running.begin();
        std::advance(which, random.below(running.size()));
        const Her her = which->second;
        running.erase(which);
        running_on.erase(her.vhpu.value);
        bench.done(her.id);
        ++finished;
        note_starts();
      }
    }
    EXPECT_EQ(bench.kinds(), std::vector<EventKind>{EventKind::put}) << replay(seed);
    bench.expect_idle();
  }
}

TEST(Schedule, PacketBufferIsTakenAtArrivalAndFreeAfterHandlerAndDmas) {
  Bench bench;  // 256 B: 16 packets
  attach(bench, bench.context());
  std::vector<HerId> hers;
  for (uint64_t packet = 0; packet < 16; ++packet) {
    ASSERT_TRUE(bench.nic.can_accept(bench.packet(1, 512, packet * 16)));
    bench.arrive(1, 512, packet * 16);
    hers.push_back(bench.only<BufferPacket>().her);
  }
  EXPECT_EQ(bench.nic.state().packet_buffer_used, 256u);
  const Packet next = bench.packet(1, 512, 256);
  EXPECT_FALSE(bench.nic.can_accept(next));
  bench.arrive(next);  // a driver without back-pressure
  EXPECT_EQ(bench.nic.state().refused_packets, 1u);
  EXPECT_TRUE(bench.out.list.empty());

  bench.her_ready(hers[0]);
  const DmaId dma = bench.issue(hers[0], bench.dma_call(0, 16));
  bench.done(hers[0]);
  EXPECT_FALSE(bench.nic.can_accept(next)) << "its DMA still reads the slot";
  bench.dma_done(dma);
  EXPECT_TRUE(bench.nic.can_accept(next));
  bench.arrive(next);
  EXPECT_EQ(bench.nic.state().packet_buffer_used, 256u);
  EXPECT_EQ(bench.nic.state().packet_buffer_peak, 256u);
}

TEST(Schedule, PacketsAheadOfTheirHeaderWait) {
  Bench bench;
  attach(bench, bench.context());
  for (uint64_t packet = 4; packet >= 1; --packet) {
    bench.arrive(1, 96, packet * 16);
    EXPECT_TRUE(bench.out.list.empty());
  }
  EXPECT_EQ(bench.nic.state().early_packets, 4u);
  EXPECT_EQ(bench.nic.state().packet_buffer_used, 64u);
  EXPECT_FALSE(bench.nic.can_accept(bench.packet(1, 96, 80))) << "the limit of early packets";
  EXPECT_TRUE(bench.nic.can_accept(bench.packet(1, 96, 0)));
  bench.arrive(1, 96, 0);
  EXPECT_EQ(bench.nic.state().early_packets, 0u);
  const auto buffered = bench.actions<BufferPacket>();
  ASSERT_EQ(buffered.size(), 5u);
  std::vector<uint64_t> offsets;
  for (const auto& action : buffered) {
    bench.her_ready(action.her);
    for (const auto& run : bench.actions<RunHandler>()) offsets.push_back(run.her.offset);
  }
  EXPECT_EQ(offsets, (std::vector<uint64_t>{0, 64}));
  EXPECT_TRUE(bench.nic.can_accept(bench.packet(1, 96, 80)));
  bench.arrive(1, 96, 80);
  bench.her_ready(bench.only<BufferPacket>().her);
  bench.done(buffered[0].her);
  for (size_t i = 1; i < 5; ++i) bench.done(buffered[i].her);
  EXPECT_TRUE(bench.kinds().empty());
  EXPECT_EQ(bench.nic.state().hpus_busy, 1u);
}

// Rules: SPIN-1.1.
TEST(Schedule, EarlyPacketsWithoutContextKeepTheirSlotUntilLanded) {
  Bench bench;
  bench.append(bench.entry());
  bench.arrive(1, 32, 16);
  EXPECT_EQ(bench.nic.state().packet_buffer_used, 16u);
  bench.arrive(1, 32, 0);
  const auto writes = bench.actions<DmaWrite>();
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[1].host, bench.memory.data() + 16);
  bench.dma_done(writes[1].dma);
  EXPECT_EQ(bench.nic.state().packet_buffer_used, 0u);
  bench.dma_done(writes[0].dma);
  EXPECT_EQ(bench.kinds().size(), 1u);
  bench.expect_idle();
}

TEST(Schedule, MalformedAndRepeatedPacketsAreRefused) {
  Bench bench;
  bench.append(bench.entry());
  Packet beyond = bench.packet(1, 32, 16);
  beyond.offset = 24;
  Packet too_large = bench.packet(1, 64, 0);
  too_large.payload.length = 17;
  Packet hollow = bench.packet(1, 32, 16);
  hollow.payload.length = 0;
  Packet wrapping = bench.packet(1, 32, 16);
  wrapping.offset = UINT64_MAX - 4;
  for (const Packet& bad : {beyond, too_large, hollow, wrapping}) {
    bench.arrive(bad);
    EXPECT_TRUE(bench.out.list.empty());
  }
  bench.arrive(2, 32, 0);
  bench.arrive(2, 32, 0);
  EXPECT_TRUE(bench.out.list.empty()) << "a repeated header";
  Packet other_length = bench.packet(2, 48, 16);
  bench.arrive(other_length);
  EXPECT_EQ(bench.nic.state().refused_packets, 6u);
  EXPECT_EQ(bench.nic.state().messages_open, 1u);
}

TEST(Schedule, AMaskKeepsHandlersOnItsHpusAndOthersPass) {
  NicLimits limits = small_limits();
  limits.hpus = 4;
  Bench bench(limits);
  Context alone;
  alone.payload_entry = 1;
  alone.hpus = HpuMask::range(2, 1);
  Entry serial = bench.entry(1);
  serial.context = bench.context(alone);
  bench.append(serial);
  Entry anywhere = bench.entry(2);
  anywhere.context = bench.context();
  bench.append(anywhere);
  std::vector<HerId> hers;
  for (uint64_t packet = 0; packet < 3; ++packet) {
    bench.arrive(1, 48, packet * 16, 1);
    hers.push_back(bench.only<BufferPacket>().her);
  }
  bench.her_ready(hers[0]);
  EXPECT_EQ(bench.only<RunHandler>().her.hpu, HpuId{2});
  bench.her_ready(hers[1]);
  bench.her_ready(hers[2]);
  EXPECT_TRUE(bench.actions<RunHandler>().empty()) << "three HPUs are idle, but not theirs";
  std::vector<HerId> others;
  for (const uint32_t expected : {0u, 1u, 3u}) {  // HPU 2 is taken
    bench.arrive(10 + expected, 16, 0, 2);
    others.push_back(bench.only<BufferPacket>().her);
    bench.her_ready(others.back());
    EXPECT_EQ(bench.only<RunHandler>().her.hpu, HpuId{expected});
  }
  for (const size_t next : {1, 2}) {
    bench.done(hers[next - 1]);
    EXPECT_EQ(bench.only<RunHandler>().her.id, hers[next]);
    EXPECT_EQ(bench.only<RunHandler>().her.hpu, HpuId{2});
  }
  // An HPU outside the mask becomes free and stays idle; an HPU inside goes to the execution that has waited longest.
  bench.arrive(20, 16, 0, 2);
  const HerId waiting = bench.only<BufferPacket>().her;
  bench.her_ready(waiting);
  EXPECT_TRUE(bench.actions<RunHandler>().empty());
  bench.done(others[0]);
  EXPECT_EQ(bench.only<RunHandler>().her.id, waiting);
  bench.done(hers[2]);
  bench.done(others[1]);
  bench.done(others[2]);
  bench.done(waiting);
  bench.expect_idle();
}

TEST(Schedule, AMaskOfNoHpuIsAnError) {
  Bench bench;  // two HPUs
  Context context;
  context.payload_entry = 1;
  context.hpus = HpuMask::range(2, 6);
  EXPECT_NE(bench.error(ContextCreate{ContextId{9}, context}, Code::invalid).find("2 HPUs"), std::string::npos);
}

}  // namespace
}  // namespace spinloom::nic
