// Process-puts: packets that handlers of the sender's NIC fill. The table is docs/handlers.md, "Outgoing messages".
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

NicLimits two_slots() {
  NicLimits limits = small_limits();
  limits.outbound_packets = 2;
  return limits;
}

struct ProcessBench : Bench {
  explicit ProcessBench(const NicLimits& limits = small_limits()) : Bench(limits) { handlers = context(); }

  ProcessPut process(uint64_t length) {
    ProcessPut made;
    made.put.local = memory.data();
    made.put.length = length;
    made.put.target = Rank{0};
    made.put.portal = portal;
    made.put.queue = queue;
    made.put.user_ptr = 55;
    made.memory_bytes = 100;
    made.context = handlers;
    return made;
  }
  // Starts a process-put; returns the HERs of those packets that have slots.
  std::vector<Her> begin(uint64_t length) { return begin(process(length)); }
  std::vector<Her> begin(const ProcessPut& request) {
    good(request);
    std::vector<Her> hers;
    for (const BufferPacket& buffer : actions<BufferPacket>()) {
      EXPECT_EQ(buffer.bytes, 0u) << "its slot holds it already";
      Actions kept = std::move(out);
      her_ready(buffer.her);
      for (const auto& run : actions<RunHandler>()) hers.push_back(run.her);
      out = std::move(kept);
    }
    return hers;
  }
  HandlerCall fill(const Her& her, uint64_t offset, uint64_t at, uint64_t length) {
    HandlerCall call;
    call.call = SPL_CALL_DMA_FROM_HOST_NB;
    call.options = PTL_DMA_NO_EVENT;
    call.offset = offset;
    call.length = length;
    call.local = const_cast<uint8_t*>(her.payload.bytes) + at;
    call.local_memory = LocalMemory::packet;
    return call;
  }
  DmaId read(const Her& her, uint64_t offset, uint64_t at, uint64_t length) {
    EXPECT_FALSE(call(her.id, fill(her, offset, at, length)));
    return only<DmaRead>().dma;
  }
  // Returns the packets that leave at the next turn.
  std::vector<Send> leave() {
    if (actions<Continue>().empty()) return {};
    go_on();
    return actions<Send>();
  }
  std::vector<Send> end(const Her& her, uint32_t code = SUCCESS, HandlerEnd how = HandlerEnd::returned) {
    done(her.id, code, how);
    return leave();
  }
  void left(OutboundSlotId slot) {
    out.clear();
    nic.on_packet_left(slot, out);
  }
  void expect_all_back() {
    expect_idle();
    EXPECT_EQ(nic.state().outbound_packets, 0u);
    good(ContextFree{handlers});
  }
  ContextId handlers;
};

// Rules: SPIN-8.4.
TEST(ProcessPut, APacketLeavesWhenItsHandlerHasEndedAndItsReadsAreDone) {
  ProcessBench bench;
  const auto hers = bench.begin(10);
  ASSERT_EQ(hers.size(), 1u);
  EXPECT_TRUE(hers[0].writes_packet);
  EXPECT_EQ(hers[0].payload.length, 10u);
  EXPECT_EQ(hers[0].message_length, 10u);
  const DmaId first = bench.read(hers[0], 30, 0, 4);
  EXPECT_EQ(bench.only<DmaRead>().host, bench.memory.data() + 30);
  EXPECT_EQ(bench.only<DmaRead>().nic, hers[0].payload.bytes);
  const DmaId second = bench.read(hers[0], 50, 4, 6);
  EXPECT_TRUE(bench.end(hers[0]).empty()) << "its reads are under way";
  bench.dma_done(second);
  EXPECT_TRUE(bench.leave().empty());
  bench.dma_done(first);
  const auto sent = bench.leave();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.payload.bytes, hers[0].payload.bytes);
  EXPECT_EQ(sent[0].packet.fields.portal_index, 0u);
  EXPECT_TRUE(sent[0].last);
  EXPECT_TRUE(bench.kinds().empty()) << "the memory is read, but the packet has not left";
  bench.left(sent[0].slot);
  EXPECT_EQ(bench.kinds(), std::vector{EventKind::send});
  EXPECT_EQ(bench.event(EventKind::send).user_ptr, 55u);
  bench.expect_all_back();
}

// Rules: SPIN-8.4.
TEST(ProcessPut, PacketsLeaveInMessageOrder) {
  ProcessBench bench;
  const auto hers = bench.begin(32);
  ASSERT_EQ(hers.size(), 2u);
  EXPECT_EQ(hers[1].offset, 16u);
  EXPECT_TRUE(bench.end(hers[1]).empty());
  const auto sent = bench.end(hers[0]);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].packet.offset, 0u);
  EXPECT_EQ(sent[1].packet.offset, 16u);
  bench.left(sent[0].slot);
  EXPECT_TRUE(bench.kinds().empty());
  bench.left(sent[1].slot);
  EXPECT_EQ(bench.kinds(), std::vector{EventKind::send});
  bench.expect_all_back();
}

// A handler needs a slot first. With two slots, two packets are made at a time, those of the oldest message first.
TEST(ProcessPut, HandlersWaitForSlots) {
  ProcessBench bench(two_slots());
  auto hers = bench.begin(48);
  ASSERT_EQ(hers.size(), 2u);
  EXPECT_TRUE(bench.begin(16).empty()) << "no slot for the second message";
  EXPECT_EQ(bench.nic.state().outbound_packets, 2u);
  auto sent = bench.end(hers[0]);
  ASSERT_EQ(sent.size(), 1u);
  bench.left(sent[0].slot);
  const HerId third = bench.only<BufferPacket>().her;
  bench.her_ready(third);
  const Her last = bench.only<RunHandler>().her;
  EXPECT_EQ(last.offset, 32u);
  for (uint64_t i = 0; i < last.payload.length; ++i)
    EXPECT_EQ(last.payload.bytes[i], 0) << "nothing of before goes out";
  sent = bench.end(hers[1]);
  ASSERT_EQ(sent.size(), 1u);
  bench.left(sent[0].slot);
  const HerId other = bench.only<BufferPacket>().her;
  bench.her_ready(other);
  const Her second = bench.only<RunHandler>().her;
  EXPECT_EQ(second.message_length, 16u);
  sent = bench.end(second);  // the first message's header has left, so later messages may pass
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].packet.is_header());
  const OutboundSlotId slot = sent[0].slot;
  sent = bench.end(last);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].packet.offset, 32u);
  bench.left(sent[0].slot);
  EXPECT_EQ(bench.kinds(), std::vector{EventKind::send});
  bench.left(slot);
  bench.expect_all_back();
}

TEST(ProcessPut, AnEmptyMessageRunsNoHandler) {
  ProcessBench bench;
  EXPECT_TRUE(bench.begin(0).empty());
  const Send only = bench.only<Send>();
  EXPECT_TRUE(only.last && !only.slot.exists());
  bench.out.clear();
  bench.nic.on_packet_sent(only.packet.message, bench.out);
  EXPECT_EQ(bench.kinds(), std::vector{EventKind::send});
  bench.expect_all_back();
}

TEST(ProcessPut, BlockedRoundRobinHoldsForOutgoingPackets) {
  ProcessBench bench;
  Context made;
  made.payload_entry = 1;
  made.blocked_round_robin = BlockedRoundRobin{2, 2};
  bench.handlers = bench.context(made);
  const auto hers = bench.begin(64);  // four packets: two on each virtual HPU, one after the other
  ASSERT_EQ(hers.size(), 2u);
  EXPECT_EQ(hers[0].vhpu, VhpuId{0});
  EXPECT_EQ(hers[1].vhpu, VhpuId{1});
  EXPECT_EQ(hers[1].offset, 32u);
}

// The ways in which the handler of an outgoing packet may fail.
TEST(ProcessPut, AHandlerThatFailsCutsTheMessage) {
  struct Row {
    HandlerEnd end;
    uint32_t code;
    Fail failure;
  };
  for (const Row& row :
       {Row{HandlerEnd::returned, FAIL, Fail::handler_fail}, Row{HandlerEnd::returned, SEGV, Fail::segv},
        Row{HandlerEnd::returned, DROP, Fail::handler_code}, Row{HandlerEnd::returned, PROCEED, Fail::handler_code},
        Row{HandlerEnd::returned, 1234, Fail::handler_code}, Row{HandlerEnd::fault, 0, Fail::handler_fault},
        Row{HandlerEnd::segv, 0, Fail::segv}, Row{HandlerEnd::budget, 0, Fail::handler_budget}}) {
    SCOPED_TRACE(name_of(row.failure));
    // The second of three packets fails: the first packet leaves, then the packet that tells the target.
    ProcessBench bench(two_slots());
    const auto hers = bench.begin(48);
    ASSERT_EQ(hers.size(), 2u);
    EXPECT_TRUE(bench.end(hers[1], row.code, row.end).empty());
    const auto sent = bench.end(hers[0]);
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_EQ(sent[0].packet.payload.length, 16u);
    EXPECT_EQ(sent[1].packet.offset, 16u);
    EXPECT_EQ(sent[1].packet.payload.length, 0u);
    EXPECT_EQ(sent[1].packet.missing, 32u);
    EXPECT_TRUE(sent[1].last);
    bench.left(sent[0].slot);
    EXPECT_TRUE(bench.actions<BufferPacket>().empty()) << "no further handler starts";
    bench.left(sent[1].slot);
    EXPECT_EQ(bench.event(EventKind::send).fail, row.failure);
    bench.expect_all_back();
  }
}

TEST(ProcessPut, ACutMessageDoesNotWaitForALostPeer) {
  ProcessBench bench(two_slots());
  ProcessPut request = bench.process(32);
  request.put.ack_request = AckRequest::ack;
  const auto hers = bench.begin(request);
  ASSERT_EQ(hers.size(), 2u);
  EXPECT_TRUE(bench.end(hers[1], FAIL).empty());
  const auto sent = bench.end(hers[0]);
  ASSERT_EQ(sent.size(), 2u);
  bench.out.clear();
  bench.nic.on_peer_lost(Rank{0}, bench.out);
  bench.left(sent[0].slot);
  bench.left(sent[1].slot);
  EXPECT_EQ(bench.event(EventKind::send).fail, Fail::handler_fail);
  EXPECT_TRUE(bench.nic.is_quiescent(Rank{0}));
  bench.expect_all_back();
}

TEST(ProcessPut, AMessageOfWhichNothingHasLeftIsNotSent) {
  ProcessBench bench;
  bench.good(CounterAlloc{CounterId{1}});
  ProcessPut given = bench.process(32);
  given.put.ack_request = AckRequest::ct_ack;
  given.put.counter = CounterId{1};
  bench.good(given);
  const auto buffers = bench.actions<BufferPacket>();
  ASSERT_EQ(buffers.size(), 2u);
  for (const BufferPacket& buffer : buffers) bench.her_ready(buffer.her);
  bench.done(buffers[0].her, FAIL);
  EXPECT_TRUE(bench.leave().empty());
  bench.done(buffers[1].her);
  EXPECT_TRUE(bench.leave().empty());
  EXPECT_EQ(bench.event(EventKind::send).fail, Fail::handler_fail);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1})) << "counted as its acknowledgement would have been";
  bench.expect_all_back();
  bench.good(CounterFree{CounterId{1}});
}

// A packet whose handler never ran is empty. It does not leave, even if it comes before the failed packet.
TEST(ProcessPut, PacketsWhoseHandlersNeverRanDoNotLeave) {
  ProcessBench bench;
  bench.good(bench.process(32));
  const auto buffers = bench.actions<BufferPacket>();
  ASSERT_EQ(buffers.size(), 2u);
  bench.her_ready(buffers[1].her);
  EXPECT_TRUE(bench.end(bench.only<RunHandler>().her, FAIL).empty());
  bench.her_ready(buffers[0].her);
  EXPECT_TRUE(bench.actions<RunHandler>().empty());
  EXPECT_TRUE(bench.leave().empty());
  EXPECT_EQ(bench.event(EventKind::send).fail, Fail::handler_fail);
  bench.expect_all_back();
}

// A refused call fails the message; its handler goes on, and its packet does not leave.
TEST(ProcessPut, ARangeOutsideThePutsMemoryCutsTheMessage) {
  ProcessBench bench;
  const auto hers = bench.begin(32);
  EXPECT_FALSE(bench.call(hers[1].id, bench.fill(hers[1], 96, 0, 5)));
  EXPECT_EQ(bench.only<Resume>().value, DmaId::none_value);
  EXPECT_TRUE(bench.actions<DmaRead>().empty());
  EXPECT_TRUE(bench.end(hers[1]).empty());
  const auto sent = bench.end(hers[0]);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[1].packet.missing, 16u);
  for (const Send& send : sent) bench.left(send.slot);
  EXPECT_EQ(bench.event(EventKind::send).fail, Fail::segv);
  bench.expect_all_back();
}

// A handler cannot fill an incoming packet.
TEST(ProcessPut, OnlyOutgoingPacketsTakeBytes) {
  ProcessBench bench;
  Entry attached = bench.entry();
  attached.context = bench.handlers;
  bench.append(attached);
  const HerId her = bench.start(1, 16, 0);
  HandlerCall call = bench.dma_call(0, 8);
  call.call = SPL_CALL_DMA_FROM_HOST_NB;
  EXPECT_FALSE(bench.call(her, call));
  EXPECT_EQ(bench.only<Resume>().value, DmaId::none_value);
  bench.done(her);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::segv);
}

// Rules: SPIN-8.12.
TEST(ProcessPut, RefusesContextsThatItCannotRun) {
  ProcessBench bench;
  ProcessPut given = bench.process(16);
  given.context = ContextId{99};
  bench.error(given, Code::invalid);
  Context made;
  made.completion_entry = 1;
  given.context = bench.context(made);
  EXPECT_NE(bench.error(given, Code::invalid).find("no payload handler"), std::string::npos);
  made.payload_entry = 1;
  given.context = bench.context(made);
  EXPECT_NE(bench.error(given, Code::unsupported).find("payload handlers run only"), std::string::npos);
  EXPECT_NE(bench.error(ContextFree{ContextId{99}}, Code::invalid), "");
  bench.expect_all_back();
}

TEST(ProcessPut, WaitsForACounterAsAnyCommandDoes) {
  ProcessBench bench;
  bench.good(CounterAlloc{CounterId{1}});
  bench.good(bench.process(16), Trigger{CounterId{1}, 2});
  EXPECT_TRUE(bench.actions<BufferPacket>().empty());
  ProcessPut wrong = bench.process(16);
  wrong.context = ContextId{99};
  bench.error(wrong, Code::invalid, Trigger{CounterId{1}, 2});  // told when it is registered
  bench.good(CounterInc{CounterId{1}, {2, 0}});
  bench.go_on();
  const HerId her = bench.only<BufferPacket>().her;
  bench.her_ready(her);
  const auto sent = bench.end(bench.only<RunHandler>().her);
  ASSERT_EQ(sent.size(), 1u);
  bench.left(sent[0].slot);
  bench.good(CounterFree{CounterId{1}});
  bench.expect_all_back();
}

TEST(ProcessPut, AContextInUseIsNotFreed) {
  ProcessBench bench;
  const auto hers = bench.begin(16);
  EXPECT_NE(bench.error(ContextFree{bench.handlers}, Code::invalid).find("1 messages"), std::string::npos);
  const auto sent = bench.end(hers[0]);
  bench.left(sent[0].slot);
  bench.expect_all_back();
}

// A cut message completes with a failure at its target, in whatever order its packets come.
TEST(CutMessage, CompletesWhenWhatWasSentIsHere) {
  for (const bool cut_first : {false, true}) {
    Bench bench;
    bench.ack_request = AckRequest::ack;
    Entry attached = bench.entry();
    attached.length = 40;  // less than the message
    bench.append(attached);
    Packet cut = bench.packet(1, 64, 32);
    cut.payload = {};
    cut.missing = 32;
    std::vector<DmaWrite> writes;
    const auto arrive = [&](const Packet& packet) {
      bench.arrive(packet);
      for (const DmaWrite& write : bench.actions<DmaWrite>()) writes.push_back(write);
    };
    if (cut_first) arrive(cut);
    arrive(bench.packet(1, 64, 16));
    arrive(bench.packet(1, 64, 0));
    if (!cut_first) arrive(cut);
    EXPECT_TRUE(bench.kinds().empty());
    ASSERT_EQ(writes.size(), 2u);
    bench.dma_done(writes[0].dma);
    bench.dma_done(writes[1].dma);
    const Event event = bench.event(EventKind::put);
    EXPECT_EQ(event.fail, Fail::aborted);
    EXPECT_EQ(event.requested_bytes, 64u);
    EXPECT_EQ(event.manipulated_bytes, 32u);
    const Packet ack = bench.only<Send>().packet;
    EXPECT_EQ(ack.fields.fail, static_cast<uint8_t>(Fail::aborted));
    bench.expect_idle();
  }
}

TEST(CutMessage, MalformedOnesAreRefused) {
  Bench bench;
  bench.append(bench.entry());
  bench.arrive(1, 64, 0);
  Packet cut = bench.packet(1, 64, 16);
  cut.missing = 32;
  bench.arrive(cut);  // it has bytes
  cut.payload = {};
  bench.arrive(cut);  // it does not end the message
  cut.offset = 0;
  cut.missing = 64;
  bench.arrive(cut);  // it is the header
  EXPECT_EQ(bench.nic.state().refused_packets, 3u);
}

}  // namespace
}  // namespace spinloom::nic
