// Calls of handlers: transfers that block, waits, atomics, counters, puts. The table is docs/handlers.md.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

struct CallBench : Bench {
  CallBench() {
    Context made;
    made.payload_entry = 1;
    good(CounterAlloc{counter});
    Entry attached = entry();
    attached.length = 512;
    attached.counter = counter;
    attached.context = context(made);
    append(attached);
    her = start(1, 16, 0);
  }
  HandlerCall made(uint32_t number, LocalMemory local = LocalMemory::state) {
    HandlerCall given;
    given.call = number;
    given.local_memory = local;
    given.local = local_bytes;
    given.options = PTL_DMA_NO_EVENT;
    return given;
  }
  // The answer to the last call; none if the call blocks.
  std::optional<uint32_t> answer() const {
    const auto resumes = actions<Resume>();
    return resumes.empty() ? std::nullopt : std::optional(resumes.front().value);
  }
  void finish() {
    done(her);
    EXPECT_EQ(event(EventKind::put).fail, Fail::ok);
    expect_idle();
  }
  CounterId counter{3};
  HerId her;
  alignas(8) uint8_t local_bytes[64] = {};
};

TEST(HandlerCalls, ABlockingWriteIsAnsweredWhenItsSourceHasBeenRead) {
  CallBench bench;
  HandlerCall given = bench.made(SPL_CALL_DMA_TO_HOST_B, LocalMemory::stack);
  given.length = 8;
  EXPECT_FALSE(bench.call(bench.her, given));
  EXPECT_FALSE(bench.answer());
  const auto write = bench.only<DmaWrite>();
  EXPECT_TRUE(write.blocking);
  bench.out.clear();
  bench.nic.on_dma_read(write.dma, bench.out);
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
  bench.dma_done(write.dma);
  EXPECT_FALSE(bench.answer()) << "it is answered once";
  bench.finish();
}

// Rules: SPIN-7.2, SPIN-7.5.
TEST(HandlerCalls, ABlockingReadIsAnsweredWhenItsBytesAreThere) {
  CallBench bench;
  HandlerCall given = bench.made(SPL_CALL_DMA_FROM_HOST_B, LocalMemory::stack);
  given.offset = 32;
  given.length = 8;
  EXPECT_FALSE(bench.call(bench.her, given));
  EXPECT_FALSE(bench.answer());
  const auto read = bench.only<DmaRead>();
  EXPECT_EQ(read.host, bench.memory.data() + 32);
  EXPECT_EQ(read.nic, bench.local_bytes);
  bench.dma_done(read.dma);
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
  bench.finish();
}

// Rules: SPIN-7.4, SPIN-7.13, SPIN-7.14, SPIN-7.15.
TEST(HandlerCalls, TestAndWaitKnowTheirTransfer) {
  CallBench bench;
  HandlerCall given = bench.made(SPL_CALL_DMA_FROM_HOST_NB);
  given.length = 8;
  bench.call(bench.her, given);
  const auto handle = bench.answer();
  ASSERT_TRUE(handle);
  const DmaId dma = bench.only<DmaRead>().dma;
  HandlerCall test = bench.made(SPL_CALL_DMA_TEST);
  test.handle = *handle;
  bench.call(bench.her, test);
  EXPECT_EQ(bench.answer(), 0u);
  HandlerCall wait = bench.made(SPL_CALL_DMA_WAIT);
  wait.handle = *handle;
  bench.call(bench.her, wait);
  EXPECT_FALSE(bench.answer());
  bench.dma_done(dma);
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
  for (const HandlerCall& after : {test, wait}) {
    bench.call(bench.her, after);
    EXPECT_EQ(bench.answer(), after.call == SPL_CALL_DMA_TEST ? 1u : uint32_t{SUCCESS});
  }
  // The next DMA in the slot has another handle.
  bench.call(bench.her, given);
  EXPECT_NE(bench.answer(), handle);
  const DmaId second = bench.only<DmaRead>().dma;
  EXPECT_EQ(second, dma);
  bench.call(bench.her, test);
  EXPECT_EQ(bench.answer(), 1u) << "the first transfer is finished";
  bench.dma_done(second);
  bench.finish();
}

TEST(HandlerCalls, LocalMemoryMustFitTheCall) {
  struct Row {
    uint32_t call;
    LocalMemory local;
    bool performed;
  };
  for (const Row& row :
       {Row{SPL_CALL_DMA_FROM_HOST_NB, LocalMemory::state, true},
        Row{SPL_CALL_DMA_FROM_HOST_NB, LocalMemory::stack, false},
        Row{SPL_CALL_DMA_FROM_HOST_B, LocalMemory::stack, true},
        Row{SPL_CALL_DMA_FROM_HOST_B, LocalMemory::packet, false},
        Row{SPL_CALL_DMA_FROM_HOST_B, LocalMemory::constants, false},
        Row{SPL_CALL_DMA_TO_HOST_B, LocalMemory::outside, false}, Row{SPL_CALL_DMA_FADD_B, LocalMemory::stack, true},
        Row{SPL_CALL_DMA_FADD_NB, LocalMemory::stack, false}, Row{SPL_CALL_HPU_FADD, LocalMemory::state, true},
        Row{SPL_CALL_HPU_FADD, LocalMemory::stack, false}}) {
    CallBench bench;
    HandlerCall given = bench.made(row.call, row.local);
    given.length = 8;
    EXPECT_FALSE(bench.call(bench.her, given));
    const bool performed = bench.actions<DmaRead>().size() + bench.actions<DmaWrite>().size() +
                               bench.actions<DmaAtomic>().size() + bench.actions<LocalAtomic>().size() ==
                           1;
    EXPECT_EQ(performed, row.performed) << row.call << " " << static_cast<int>(row.local);
    if (!performed) {
      EXPECT_TRUE(bench.answer());
      bench.done(bench.her);
      EXPECT_EQ(bench.event(EventKind::put).fail, Fail::segv);
    }
  }
}

// Rules: SPIN-7.8, SPIN-7.11.
TEST(HandlerCalls, AtomicsInHostMemoryAreAlignedAndInside) {
  CallBench bench;
  HandlerCall given = bench.made(SPL_CALL_DMA_CAS_NB);
  given.offset = 504;
  given.compare = 1;
  given.operand = 2;
  bench.call(bench.her, given);
  const auto atomic = bench.only<DmaAtomic>();
  EXPECT_EQ(atomic.host, bench.memory.data() + 504);
  EXPECT_EQ(atomic.kind, AtomicKind::compare_swap);
  EXPECT_EQ(atomic.compare, 1u);
  EXPECT_EQ(atomic.operand, 2u);
  bench.dma_done(atomic.dma);
  given.width = 3;
  EXPECT_TRUE(bench.call(bench.her, given)) << "no such width";
  given.width = 4;
  EXPECT_TRUE(bench.call(bench.her, given)) << "compare-and-swap is 8 bytes wide";
  given.call = SPL_CALL_DMA_FADD_NB;
  EXPECT_FALSE(bench.call(bench.her, given));
  bench.dma_done(bench.only<DmaAtomic>().dma);
  bench.finish();
  for (const uint64_t offset : {uint64_t{508}, uint64_t{1}, UINT64_MAX - 3}) {
    CallBench wrong;
    HandlerCall refused = wrong.made(SPL_CALL_DMA_FADD_NB);
    refused.offset = offset;
    EXPECT_FALSE(wrong.call(wrong.her, refused));
    EXPECT_TRUE(wrong.actions<DmaAtomic>().empty()) << offset;
  }
}

// Rules: SPIN-7.28.
TEST(HandlerCalls, CountersAreReadSetAndIncremented) {
  CallBench bench;
  HandlerCall set = bench.made(SPL_CALL_CT_SET);
  set.success = uint64_t{5} << 40;
  set.failure = 7;
  bench.call(bench.her, set);
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
  HandlerCall inc = bench.made(SPL_CALL_CT_INC);
  inc.success = 1;
  bench.call(bench.her, inc);
  HandlerCall get = bench.made(SPL_CALL_CT_GET);
  bench.call(bench.her, get);
  EXPECT_EQ(bench.only<StoreLocal>().words, (std::array<uint64_t, 2>{(uint64_t{5} << 40) + 1, 7}));
  EXPECT_EQ(bench.only<StoreLocal>().local, bench.local_bytes);
  bench.finish();
}

TEST(HandlerCalls, ADebugLineIsSaidAndAnsweredAtOnce) {
  CallBench bench;
  HandlerCall debug = bench.made(SPL_CALL_DEBUG, LocalMemory::none);
  const std::string_view text = "offset";
  std::copy(text.begin(), text.end(), bench.local_bytes);
  debug.length = text.size();
  debug.options = 0;
  debug.operand = 4096;
  EXPECT_FALSE(bench.call(bench.her, debug));
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
  const auto line = bench.only<DebugLine>();
  EXPECT_EQ(line.text, text);
  EXPECT_EQ(line.value, 4096u);
  EXPECT_EQ(line.kind, HandlerKind::payload);
  bench.finish();
}

TEST(HandlerCalls, ADebugLineWhoseTextCannotBeReadFailsTheMessage) {
  CallBench bench;
  HandlerCall debug = bench.made(SPL_CALL_DEBUG, LocalMemory::none);
  debug.local = nullptr;
  debug.options = 0;
  EXPECT_FALSE(bench.call(bench.her, debug));
  EXPECT_EQ(bench.answer(), uint32_t{SEGV});
  EXPECT_TRUE(bench.actions<DebugLine>().empty());
  debug.options = PTL_DMA_NO_EVENT;
  EXPECT_TRUE(bench.call(bench.her, debug)) << "it has no options";
}

// Rules: SPIN-7.29.
TEST(HandlerCalls, SettingACounterFiresWhatWaitsForIt) {
  CallBench bench;
  bench.good(CounterInc{bench.counter, {0, 1}}, Trigger{bench.counter, 10});
  HandlerCall set = bench.made(SPL_CALL_CT_SET);
  set.success = 10;
  bench.call(bench.her, set);
  EXPECT_EQ(bench.actions<Continue>().size(), 1u);
}

// Rules: SPIN-7.22, SPIN-7.23.
TEST(HandlerCalls, APutFromDeviceBlocksUntilItsPacketHasBeenRead) {
  CallBench bench;
  HandlerCall put = bench.made(SPL_CALL_PUT_FROM_DEVICE, LocalMemory::stack);
  put.options = PTL_LOCAL_ME_CT;
  put.length = 16;
  put.target = 9;
  put.match_bits = 10;
  put.remote_offset = 4;
  put.hdr_data = 77;
  bench.call(bench.her, put);
  EXPECT_FALSE(bench.answer());
  const auto send = bench.only<Send>();
  EXPECT_TRUE(send.from_device);
  EXPECT_TRUE(send.last);
  EXPECT_EQ(send.packet.target, Rank{9});
  EXPECT_EQ(send.packet.payload.bytes, bench.local_bytes);
  EXPECT_EQ(send.packet.fields.match_bits, 10u);
  EXPECT_EQ(send.packet.fields.remote_offset, 4u);
  EXPECT_EQ(send.packet.fields.hdr_data, 77u);
  EXPECT_EQ(send.packet.fields.portal_index, bench.portal.value) << "inherited from the entry";
  bench.out.clear();
  bench.nic.on_packet_sent(send.packet.message, bench.out);
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
  EXPECT_EQ(bench.only<PostCounter>().value.success, 1u) << "PTL_LOCAL_ME_CT";
  bench.finish();
}

// Rules: SPIN-7.20, SPIN-7.21.
TEST(HandlerCalls, APutFromHostIsTheHosts) {
  CallBench bench;
  HandlerCall put = bench.made(SPL_CALL_PUT_FROM_HOST);
  put.options = 0;
  put.offset = 100;
  put.length = 40;
  put.target = 2;
  bench.call(bench.her, put);
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS}) << "it is only enqueued";
  const auto sends = bench.actions<Send>();
  ASSERT_EQ(sends.size(), 3u);
  EXPECT_EQ(sends[0].packet.payload.bytes, bench.memory.data() + 100);
  EXPECT_FALSE(sends[0].from_device);
  bench.out.clear();
  bench.nic.on_packet_sent(sends[0].packet.message, bench.out);
  bench.finish();
}

// The handler may wait for the put's count, so the rest of the put does not wait for the handler's end.
TEST(HandlerCalls, APutThatGivesWayAsksForItsTurnAtOnce) {
  NicLimits limits = small_limits();
  limits.payload_bytes = 1;
  Bench bench(limits);
  std::vector<uint8_t> large(limits::packets_per_call_max + 10);
  Context made;
  made.payload_entry = 1;
  made.handler_host_start = reinterpret_cast<uint64_t>(large.data());
  made.handler_host_length = large.size();
  Entry attached = bench.entry();
  attached.context = bench.context(made);
  bench.append(attached);
  HandlerCall put;
  put.call = SPL_CALL_PUT_FROM_HOST;
  put.options = PTL_HANDLER_HOST_MEM;
  put.length = large.size();
  put.target = 2;
  const HerId her = bench.start(1, 1, 0);
  EXPECT_FALSE(bench.call(her, put));
  EXPECT_EQ(bench.actions<Send>().size(), limits::packets_per_call_max);
  EXPECT_EQ(bench.actions<Continue>().size(), 1u);
  bench.go_on();
  EXPECT_EQ(bench.actions<Send>().size(), 10u);
}

// The entry's portal table entry, queue and counter are the put's, whoever sends; there is no send event.
// Rules: SPIN-7.24, SPIN-7.25.
TEST(HandlerCalls, PutsInheritFromTheEntryAndAreAcknowledgedToItsQueue) {
  for (const uint32_t call : {SPL_CALL_PUT_FROM_HOST, SPL_CALL_PUT_FROM_DEVICE}) {
    SCOPED_TRACE(call);
    CallBench bench;
    HandlerCall put = bench.made(call);
    put.options = PTL_LOCAL_ME_CT | PTL_ME_ACK;
    put.length = 8;
    put.target = 9;
    put.user_ptr = 1234;
    bench.call(bench.her, put);
    const Packet sent = bench.only<Send>().packet;
    EXPECT_EQ(sent.fields.portal_index, bench.portal.value);
    EXPECT_EQ(sent.fields.ack_request, AckRequest::ack);
    bench.out.clear();
    bench.nic.on_packet_sent(sent.message, bench.out);
    EXPECT_TRUE(bench.kinds().empty());
    EXPECT_EQ(bench.only<PostCounter>().counter, bench.counter);
    bench.arrive(ack_for(sent, 8));
    const auto posts = bench.actions<PostEvent>();
    ASSERT_EQ(posts.size(), 1u);
    EXPECT_EQ(posts[0].queue, bench.queue);
    EXPECT_EQ(posts[0].event.kind, EventKind::ack);
    EXPECT_EQ(posts[0].event.user_ptr, 1234u);
    bench.finish();
  }
}

// Rules: SPIN-7.25.
TEST(HandlerCalls, PutsAreNotCountedOrAcknowledgedUnlessTheyAskForIt) {
  for (const uint32_t call : {SPL_CALL_PUT_FROM_HOST, SPL_CALL_PUT_FROM_DEVICE}) {
    SCOPED_TRACE(call);
    CallBench bench;
    HandlerCall put = bench.made(call);
    put.options = 0;
    put.length = 8;
    bench.call(bench.her, put);
    const Packet sent = bench.only<Send>().packet;
    EXPECT_EQ(sent.fields.ack_request, AckRequest::none);
    bench.out.clear();
    bench.nic.on_packet_sent(sent.message, bench.out);
    EXPECT_TRUE(bench.actions<PostCounter>().empty());
    EXPECT_TRUE(bench.kinds().empty());
    bench.finish();
  }
}

// 40 bytes are three packets of 16, which the other context's handlers fill from byte 100 of the entry on.
TEST(HandlerCalls, AProcessPutIsTheHosts) {
  CallBench bench;
  HandlerCall put = bench.made(SPL_CALL_PROCESS_PUT);
  put.options = 0;
  put.offset = 100;
  put.length = 40;
  put.target = 2;
  put.context = bench.context().value;
  bench.call(bench.her, put);
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS}) << "it is only enqueued";
  const auto packets = bench.actions<BufferPacket>();
  ASSERT_EQ(packets.size(), 3u);
  bench.her_ready(packets[0].her);
  const Her filling = bench.only<RunHandler>().her;
  EXPECT_EQ(filling.context, ContextId{put.context});
  HandlerCall read = bench.made(SPL_CALL_DMA_FROM_HOST_NB, LocalMemory::packet);
  read.local = const_cast<uint8_t*>(filling.payload.bytes);
  read.offset = 400;  // an offset in the memory from byte 100 on, to the entry's end at 512
  read.length = 12;
  EXPECT_FALSE(bench.call(filling.id, read));
  EXPECT_EQ(bench.only<DmaRead>().host, bench.memory.data() + 500);
  read.offset = 401;
  bench.call(filling.id, read);
  EXPECT_EQ(bench.answer(), UINT32_MAX) << "beyond it";
}

TEST(HandlerCalls, ProcessPutsThatCannotBe) {
  CallBench bench;
  HandlerCall put = bench.made(SPL_CALL_PROCESS_PUT);
  put.options = 0;
  put.length = 40;
  put.context = 77;
  bench.call(bench.her, put);
  EXPECT_EQ(bench.answer(), uint32_t{FAIL}) << "there is no such context";
  Context with_header;
  with_header.header_entry = 1;
  with_header.payload_entry = 1;
  put.context = bench.context(with_header).value;
  bench.call(bench.her, put);
  EXPECT_EQ(bench.answer(), uint32_t{FAIL}) << "it fills no packets";
  put.offset = 513;
  bench.call(bench.her, put);
  EXPECT_EQ(bench.answer(), uint32_t{SEGV});
  bench.done(bench.her);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::segv);
}

// Rules: SPIN-7.22.
TEST(HandlerCalls, PutsThatCannotBe) {
  CallBench bench;
  HandlerCall put = bench.made(SPL_CALL_PUT_FROM_DEVICE);
  put.options = 0;
  put.length = 17;  // a packet carries 16
  bench.call(bench.her, put);
  EXPECT_EQ(bench.answer(), uint32_t{FAIL});
  put.options = PTL_DMA_NO_EVENT;
  EXPECT_TRUE(bench.call(bench.her, put)) << "an option that puts do not have";
  put.call = SPL_CALL_PUT_FROM_HOST;
  put.options = 0;
  put.offset = 500;
  bench.call(bench.her, put);
  EXPECT_EQ(bench.answer(), uint32_t{SEGV});
  bench.done(bench.her);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::segv);
}

// ---- handler host memory as a list ----

struct ListBench : Bench {
  ListBench() {
    Context made;
    made.payload_entry = 1;
    // 4 + 0 + 10 + 2 bytes.
    made.handler_host_iovec = {{first, 4}, {nullptr, 0}, {second, 10}, {third, 2}};
    Entry attached = entry();
    attached.context = context(made);
    append(attached);
    her = start(1, 16, 0);
  }
  HandlerCall made(uint32_t number, uint64_t offset, uint64_t length) {
    HandlerCall given;
    given.call = number;
    given.local_memory = LocalMemory::state;
    given.local = local_bytes;
    given.options = PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT;
    given.offset = offset;
    given.length = length;
    return given;
  }
  std::optional<uint32_t> answer() const {
    const auto resumes = actions<Resume>();
    return resumes.empty() ? std::nullopt : std::optional(resumes.front().value);
  }
  HerId her;
  alignas(8) uint8_t first[8] = {}, second[16] = {}, third[8] = {};
  alignas(8) uint8_t local_bytes[64] = {};
};

// Rules: SPIN-2.5.
TEST(HandlerHostList, EveryRangeBecomesItsPieces) {
  for (uint64_t offset = 0; offset <= 16; ++offset) {
    for (uint64_t length = 0; offset + length <= 16; ++length) {
      SCOPED_TRACE(text(offset, " + ", length));
      ListBench bench;
      ASSERT_FALSE(bench.call(bench.her, bench.made(SPL_CALL_DMA_TO_HOST_NB, offset, length)));
      ASSERT_TRUE(bench.answer());
      uint64_t at = offset;
      const auto writes = bench.actions<DmaWrite>();
      for (const DmaWrite& write : writes) {
        if (length == 0) break;  // one empty transfer
        const uint8_t* expected = at < 4    ? bench.first + at
                                  : at < 14 ? bench.second + (at - 4)
                                            : bench.third + (at - 14);
        EXPECT_EQ(write.host, expected);
        EXPECT_EQ(write.source.bytes, bench.local_bytes + (at - offset));
        at += write.source.length;
        EXPECT_LE(at, at <= 4 ? 4u : at <= 14 ? 14u : 16u);
      }
      EXPECT_EQ(at, offset + length);
      bench.done(bench.her);
      for (const DmaWrite& write : writes) bench.dma_done(write.dma);
      bench.expect_idle();
    }
  }
}

// Rules: SPIN-2.6.
TEST(HandlerHostList, ATransferIsDoneWhenAllItsPiecesAre) {
  ListBench bench;
  ASSERT_FALSE(bench.call(bench.her, bench.made(SPL_CALL_DMA_FROM_HOST_B, 2, 14)));
  const auto reads = bench.actions<DmaRead>();
  ASSERT_EQ(reads.size(), 3u);
  for (const size_t i : {2, 0, 1}) {
    EXPECT_FALSE(bench.answer());
    bench.dma_done(reads[i].dma);
  }
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
}

// Rules: SPIN-2.6.
TEST(HandlerHostList, ABlockingWriteIsAnsweredWhenAllItsPiecesHaveBeenRead) {
  ListBench bench;
  ASSERT_FALSE(bench.call(bench.her, bench.made(SPL_CALL_DMA_TO_HOST_B, 0, 8)));
  const auto writes = bench.actions<DmaWrite>();
  ASSERT_EQ(writes.size(), 2u);
  for (const DmaWrite& write : writes) {
    EXPECT_TRUE(write.blocking);
    EXPECT_FALSE(bench.answer());
    bench.out.clear();
    bench.nic.on_dma_read(write.dma, bench.out);
  }
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
  for (const DmaWrite& write : writes) bench.dma_done(write.dma);
  bench.done(bench.her);
  bench.expect_idle();
}

TEST(HandlerHostList, WhatMustLieInOneElementIsRefusedAcrossTwo) {
  struct Row {
    uint32_t call;
    uint64_t offset, length;
    bool performed;
  };
  for (const Row& row : {Row{SPL_CALL_DMA_FADD_B, 4, 8, true}, Row{SPL_CALL_DMA_FADD_B, 0, 8, false},
                         Row{SPL_CALL_PUT_FROM_HOST, 4, 10, true}, Row{SPL_CALL_PUT_FROM_HOST, 3, 2, false},
                         Row{SPL_CALL_GET_FROM_HOST, 13, 2, false}, Row{SPL_CALL_DMA_TO_HOST_B, 10, 7, false}}) {
    SCOPED_TRACE(text("call ", row.call, " at ", row.offset));
    ListBench bench;
    HandlerCall given = bench.made(row.call, row.offset, row.length);
    if (row.call == SPL_CALL_PUT_FROM_HOST || row.call == SPL_CALL_GET_FROM_HOST) given.options = PTL_HANDLER_HOST_MEM;
    ASSERT_FALSE(bench.call(bench.her, given));
    EXPECT_EQ(bench.answer() == uint32_t{SEGV}, !row.performed);
  }
}

TEST(HandlerHostList, BadListsAreErrors) {
  Bench bench;
  uint8_t byte = 0;
  Context context;
  context.payload_entry = 1;
  context.handler_host_iovec = {{&byte, 1}, {nullptr, 1}};
  EXPECT_NE(bench.error(ContextCreate{ContextId{9}, context}, Code::invalid).find("element 1"), std::string::npos);
  context.handler_host_iovec = {{&byte, 1}};
  context.handler_host_start = reinterpret_cast<uint64_t>(&byte);
  context.handler_host_length = 1;
  EXPECT_NE(bench.error(ContextCreate{ContextId{9}, context}, Code::invalid).find("give one"), std::string::npos);
}

}  // namespace
}  // namespace spinloom::nic
