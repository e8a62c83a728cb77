// Handlers: their DMAs, their ends, and what their ends mean for the message. The table is docs/handlers.md.
#include <algorithm>

#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

using Kinds = std::vector<EventKind>;

struct HandlerBench : Bench {
  explicit HandlerBench(bool with_completion = false) {
    Context made;
    made.payload_entry = 1;
    if (with_completion) made.completion_entry = 2;
    made.handler_host_start = reinterpret_cast<uint64_t>(statistics);
    made.handler_host_length = sizeof statistics;
    context_id = context(made);
    Entry attached = entry();
    attached.length = 512;
    attached.context = context_id;
    entry_id = append(attached);
  }
  ContextId context_id;
  EntryId entry_id;
  uint8_t statistics[64] = {};
};

// Rules: SPIN-7.1, SPIN-7.4.
TEST(HandlerDma, WritesFromPacketToEntry) {
  HandlerBench bench;
  const HerId her = bench.start(1, 16, 0);
  EXPECT_FALSE(bench.call(her, bench.dma_call(100, 16)));
  const auto write = bench.only<DmaWrite>();
  EXPECT_EQ(write.host, bench.memory.data() + 100);
  EXPECT_EQ(write.source.bytes, bench.source);
  EXPECT_EQ(write.source.length, 16u);
  EXPECT_EQ(write.her, her);
  EXPECT_EQ(bench.only<Resume>().value, write.dma.value);
  bench.done(her);
  EXPECT_TRUE(bench.kinds().empty()) << "the DMA is still under way";
  bench.dma_done(write.dma);
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::put});
  bench.expect_idle();
}

// Rules: SPIN-2.4, SPIN-7.3.
TEST(HandlerDma, HandlerHostMemory) {
  HandlerBench bench;
  const HerId her = bench.start(1, 16, 0);
  bench.call(her, bench.dma_call(60, 4, PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT));
  EXPECT_EQ(bench.only<DmaWrite>().host, bench.statistics + 60);
  bench.land();
  bench.call(her, bench.dma_call(61, 4, PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT));
  EXPECT_TRUE(bench.actions<DmaWrite>().empty());
  bench.done(her);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::segv);
}

// Rules: SPIN-7.7.
TEST(HandlerDma, RefusedOnesAreNotPerformed) {
  struct Row {
    const char* what;
    uint64_t offset, length;
    LocalMemory from;
    bool performed;
  };
  const std::vector<Row> rows = {
      {"last byte", 511, 1, LocalMemory::packet, true},
      {"one beyond", 512, 1, LocalMemory::packet, false},
      {"across the end", 510, 3, LocalMemory::packet, false},
      {"offset plus length wraps", UINT64_MAX, 2, LocalMemory::packet, false},
      {"length wraps", 1, UINT64_MAX, LocalMemory::packet, false},
      {"empty at the end", 512, 0, LocalMemory::none, true},
      {"empty beyond the end", 513, 0, LocalMemory::none, false},
      {"constants", 0, 4, LocalMemory::constants, true},
      {"state", 0, 4, LocalMemory::state, true},
      {"stack", 0, 4, LocalMemory::stack, false},
      {"outside", 0, 4, LocalMemory::outside, false},
      {"none", 0, 4, LocalMemory::none, false},
  };
  for (const Row& row : rows) {
    HandlerBench bench;
    const HerId her = bench.start(1, 16, 0);
    EXPECT_FALSE(bench.call(her, bench.dma_call(row.offset, row.length, PTL_DMA_NO_EVENT, row.from))) << row.what;
    EXPECT_EQ(bench.actions<DmaWrite>().size(), row.performed ? 1u : 0u) << row.what;
    EXPECT_EQ(bench.only<Resume>().value == DmaId::none_value, !row.performed) << row.what;
    bench.land();
    bench.done(her);
    const Event event = bench.event(EventKind::put);
    EXPECT_EQ(event.fail, row.performed ? Fail::ok : Fail::segv) << row.what;
    bench.expect_idle();
  }
}

// Rules: SPIN-8.2.
TEST(HandlerDma, EventComesAfterAllEarlierOnesOfItsMessage) {
  HandlerBench bench;
  const HerId first = bench.start(1, 32, 0);
  const DmaId a = bench.issue(first, bench.dma_call(0, 8));
  const DmaId b = bench.issue(first, bench.dma_call(8, 8, 0));  // this DMA has an event
  const HerId second = bench.start(1, 32, 16);
  const DmaId c = bench.issue(second, bench.dma_call(16, 8));
  const DmaId d = bench.issue(second, bench.dma_call(24, 0, 0));  // empty, with an event
  bench.done(first);
  bench.done(second);
  bench.dma_done(d);
  EXPECT_TRUE(bench.kinds().empty());
  bench.dma_done(b);
  EXPECT_TRUE(bench.kinds().empty()) << "a is earlier and under way";
  bench.dma_done(a);
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::dma});
  const Event event = bench.event(EventKind::dma);
  EXPECT_EQ(event.remote_offset, 8u);
  EXPECT_EQ(event.manipulated_bytes, 8u);
  EXPECT_EQ(event.start, reinterpret_cast<uint64_t>(bench.memory.data()) + 8);
  EXPECT_EQ(event.entry, bench.entry_id);
  EXPECT_EQ(event.hdr_data, 1001u);
  bench.dma_done(c);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::dma, EventKind::put}));
  EXPECT_EQ(bench.event(EventKind::dma).manipulated_bytes, 0u);
  bench.expect_idle();
}

TEST(HandlerDma, RandomCompletionOrderKeepsEventOrderAndReturnsEverything) {
  const uint64_t seed = test_seed();
  Random random(seed, "dma");
  for (int round = 0; round < 100; ++round) {
    HandlerBench bench;
    const HerId her = bench.start(1, 16, 0);
    struct Issued {
      DmaId dma;
      bool event;
      bool done;
    };
    std::vector<Issued> issued;
    size_t told = 0;
    const auto check_told = [&] {
      for (const auto& post : bench.actions<PostEvent>()) {
        if (post.event.kind != EventKind::dma) continue;
        ++told;
        size_t seen = 0;
        for (size_t i = 0; i < issued.size(); ++i) {
          ASSERT_TRUE(issued[i].done) << "event told before DMA " << i << ", round " << round << ", " << replay(seed);
          if (issued[i].event && ++seen == told) {
            ASSERT_EQ(post.event.remote_offset, i) << replay(seed);
            break;
          }
        }
      }
    };
    std::vector<size_t> open;
    size_t events = 0;
    for (int step = 0; step < 60; ++step) {
      if (random.chance(2, 3)) {
        const bool event = random.chance(1, 4);
        events += event ? 1 : 0;
        open.push_back(issued.size());
        issued.push_back(
            {bench.issue(her, bench.dma_call(issued.size(), 1, event ? 0 : PTL_DMA_NO_EVENT)), event, false});
      } else if (!open.empty()) {
        const size_t which = random.below(open.size());
        issued[open[which]].done = true;
        bench.dma_done(issued[open[which]].dma);
        open.erase(open.begin() + static_cast<ptrdiff_t>(which));
        check_told();
      }
    }
    bench.done(her);
    random.shuffle(open);
    for (const size_t index : open) {
      issued[index].done = true;
      bench.dma_done(issued[index].dma);
      check_told();
    }
    EXPECT_EQ(told, events) << replay(seed);
    if (!open.empty()) {
      EXPECT_EQ(bench.event(EventKind::put).fail, Fail::ok) << replay(seed);
    }
    bench.expect_idle();
  }
}

// Rules: SPIN-7.19.
TEST(HandlerCalls, CounterIncrementsReachTheEntrysCounter) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{4}});
  Entry entry = bench.entry();
  entry.context = bench.context();
  entry.counter = CounterId{4};
  bench.append(entry);
  const HerId her = bench.start(1, 16, 0);
  HandlerCall inc;
  inc.call = SPL_CALL_CT_INC;
  inc.success = 3;
  EXPECT_FALSE(bench.call(her, inc));
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{3, 0}));
  EXPECT_EQ(bench.only<Resume>().value, uint32_t{SUCCESS});
  HandlerCall yield;
  yield.call = SPL_CALL_YIELD;
  EXPECT_FALSE(bench.call(her, yield));
  EXPECT_EQ(bench.only<Resume>().value, uint32_t{SUCCESS});
}

// Rules: SPIN-7.30.
TEST(HandlerCalls, WithoutACounterTheCallFails) {
  HandlerBench bench;
  const HerId her = bench.start(1, 16, 0);
  HandlerCall inc;
  inc.call = SPL_CALL_CT_INC;
  inc.success = 1;
  EXPECT_FALSE(bench.call(her, inc));
  EXPECT_EQ(bench.only<Resume>().value, uint32_t{FAIL});
  EXPECT_TRUE(bench.actions<PostCounter>().empty());
}

TEST(HandlerCalls, UnknownOnesStopTheHandler) {
  std::vector<HandlerCall> calls;
  for (const uint32_t number : {0u, SPL_CALL_PROCESS_PUT + 1, 200u}) {
    HandlerCall call;
    call.call = number;
    calls.push_back(call);
  }
  HandlerCall bad_option;
  bad_option.call = SPL_CALL_DMA_TO_HOST_NB;
  bad_option.options = 1u << 20;
  calls.push_back(bad_option);
  for (const HandlerCall& call : calls) {
    HandlerBench bench;
    const HerId her = bench.start(1, 16, 0);
    EXPECT_TRUE(bench.call(her, call)) << call.call;
    EXPECT_TRUE(bench.out.list.empty()) << call.call;
    bench.done(her, 0, HandlerEnd::fault);
    EXPECT_EQ(bench.event(EventKind::put).fail, Fail::handler_fault) << call.call;
    bench.expect_idle();
  }
}

// A row of the table for payload handlers in docs/handlers.md. The message has 48 B in 3 packets; the first handler
// ends as the row says while the second runs and the third is ready.
struct End {
  const char* what;
  HandlerEnd end;
  uint32_t code;
  Fail failure;
  bool stops;  // the third handler does not start, and no completion handler runs
  uint64_t dropped_bytes;
};

const std::vector<End>& payload_ends() {
  static const std::vector<End> rows = {
      {"SUCCESS", HandlerEnd::returned, SUCCESS, Fail::ok, false, 0},
      {"DROP", HandlerEnd::returned, DROP, Fail::ok, false, 16},
      {"FAIL", HandlerEnd::returned, FAIL, Fail::handler_fail, false, 0},
      {"SEGV", HandlerEnd::returned, SEGV, Fail::segv, false, 0},
      {"PROCESS_DATA is no code of payload handlers", HandlerEnd::returned, PROCESS_DATA, Fail::handler_code, false, 0},
      {"SUCCESS_PENDING is no code of payload handlers", HandlerEnd::returned, SUCCESS_PENDING, Fail::handler_code,
       false, 0},
      {"no code at all", HandlerEnd::returned, 12345, Fail::handler_code, false, 0},
      {"fault", HandlerEnd::fault, 0, Fail::handler_fault, true, 32},
      {"memory violation", HandlerEnd::segv, 0, Fail::segv, true, 32},
      {"budget", HandlerEnd::budget, 0, Fail::handler_budget, true, 32},
  };
  return rows;
}

// Rules: SPIN-1.12, SPIN-1.14, SPIN-5.2, SPIN-5.3, SPIN-5.4, SPIN-5.5.
TEST(HandlerEnds, PayloadRows) {
  for (const End& row : payload_ends()) {
    SCOPED_TRACE(row.what);
    HandlerBench bench(true);
    bench.ack_request = AckRequest::ack;
    const HerId first = bench.start(1, 48, 0);
    const HerId second = bench.start(1, 48, 16);
    bench.arrive(1, 48, 32);
    const HerId third = bench.only<BufferPacket>().her;
    bench.her_ready(third);
    bench.done(first, row.code, row.end);
    EXPECT_EQ(bench.actions<RunHandler>().size(), row.stops ? 0u : 1u);
    if (!row.stops) bench.done(third);
    EXPECT_TRUE(bench.kinds().empty());
    bench.done(second);  // a running handler goes on
    if (!row.stops) {
      const Her completion = bench.only<RunHandler>().her;
      EXPECT_EQ(completion.kind, HandlerKind::completion);
      EXPECT_EQ(completion.dropped_bytes, row.dropped_bytes);
      bench.done(completion.id);
    }
    EXPECT_EQ(bench.kinds(), Kinds{EventKind::put});
    const Event event = bench.event(EventKind::put);
    EXPECT_EQ(event.fail, row.failure);
    EXPECT_EQ(event.dropped_bytes, row.dropped_bytes);
    EXPECT_EQ(event.manipulated_bytes, 48 - row.dropped_bytes);
    const Packet ack = bench.only<Send>().packet;
    EXPECT_EQ(static_cast<Fail>(ack.fields.fail), row.failure);
    EXPECT_EQ(ack.fields.manipulated_bytes, 48 - row.dropped_bytes);
    bench.expect_idle();
  }
}

// Rules: SPIN-4.14.
TEST(HandlerEnds, TheFirstFailureIsKept) {
  HandlerBench bench;
  const HerId first = bench.start(1, 32, 0);
  const HerId second = bench.start(1, 32, 16);
  bench.done(second, FAIL);
  bench.done(first, 77);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::handler_fail);
}

TEST(HandlerEnds, PacketsOfAStoppedMessageAreDroppedOnArrivalAndOnReadiness) {
  HandlerBench bench;
  const HerId first = bench.start(1, 64, 0);
  bench.arrive(1, 64, 16);
  const HerId buffering = bench.only<BufferPacket>().her;
  bench.done(first, 0, HandlerEnd::budget);
  bench.arrive(1, 64, 32);
  EXPECT_TRUE(bench.out.list.empty());
  bench.her_ready(buffering);
  EXPECT_TRUE(bench.actions<RunHandler>().empty());
  EXPECT_EQ(bench.nic.state().packet_buffer_used, 0u);
  bench.arrive(1, 64, 48);
  const Event event = bench.event(EventKind::put);
  EXPECT_EQ(event.fail, Fail::handler_budget);
  EXPECT_EQ(event.dropped_bytes, 64u);
  bench.expect_idle();
}

TEST(HandlerEnds, StoppedVirtualHpuYields) {
  Bench bench;
  Context made;
  made.payload_entry = 1;
  made.blocked_round_robin = BlockedRoundRobin{8, 1};
  Entry entry = bench.entry();
  entry.context = bench.context(made);
  bench.append(entry);
  const HerId first = bench.start(1, 48, 0);
  for (const uint64_t offset : {16u, 32u}) {
    bench.arrive(1, 48, offset);
    bench.her_ready(bench.only<BufferPacket>().her);
  }
  bench.done(first, 0, HandlerEnd::fault);
  EXPECT_EQ(bench.event(EventKind::put).dropped_bytes, 48u);
  bench.expect_idle();
  const HerId next = bench.start(2, 16, 0);  // the virtual HPU works for the next message
  bench.done(next);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::ok);
}

// Rules: SPIN-1.13, SPIN-6.1, SPIN-6.2, SPIN-6.4.
TEST(HandlerEnds, CompletionRows) {
  struct Row {
    const char* what;
    HandlerEnd end;
    uint32_t code;
    Fail failure;
    bool told;
  };
  const std::vector<Row> rows = {
      {"SUCCESS", HandlerEnd::returned, SUCCESS, Fail::ok, true},
      {"SUCCESS_PENDING", HandlerEnd::returned, SUCCESS_PENDING, Fail::ok, false},
      {"FAIL", HandlerEnd::returned, FAIL, Fail::handler_fail, true},
      {"SEGV", HandlerEnd::returned, SEGV, Fail::segv, true},
      {"DROP is no code of completion handlers", HandlerEnd::returned, DROP, Fail::handler_code, true},
      {"no code at all", HandlerEnd::returned, 99, Fail::handler_code, true},
      {"fault", HandlerEnd::fault, 0, Fail::handler_fault, true},
      {"memory violation", HandlerEnd::segv, 0, Fail::segv, true},
      {"budget", HandlerEnd::budget, 0, Fail::handler_budget, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    HandlerBench bench(true);
    bench.ack_request = AckRequest::ack;
    bench.done(bench.start(1, 16, 0));
    const Her completion = bench.only<RunHandler>().her;
    EXPECT_TRUE(bench.actions<BufferPacket>().empty());
    bench.done(completion.id, row.code, row.end);
    EXPECT_EQ(bench.kinds(), row.told ? Kinds{EventKind::put} : Kinds{});
    if (row.told) {
      EXPECT_EQ(bench.event(EventKind::put).fail, row.failure);
    }
    EXPECT_EQ(static_cast<Fail>(bench.only<Send>().packet.fields.fail), row.failure);
    bench.expect_idle();
  }
}

// Rules: SPIN-6.2, SPIN-6.3.
TEST(HandlerEnds, PendingKeepsAUseOnceEntryAtItsPlace) {
  Bench bench;
  Context made;
  made.completion_entry = 2;
  Entry entry = bench.entry();
  entry.context = bench.context(made);
  entry.options.use_once = true;
  const EntryId first = bench.append(entry);
  const EntryId second = bench.append(entry);
  bench.arrive(1, 16, 0);
  const DmaId landing = bench.only<DmaWrite>().dma;
  bench.done(bench.only<RunHandler>().her.id, SUCCESS_PENDING);
  bench.dma_done(landing);
  EXPECT_TRUE(bench.kinds().empty());
  for (const EntryId expected : {first, second}) {
    bench.arrive(2 + expected.value, 16, 0);
    const DmaId dma = bench.only<DmaWrite>().dma;
    const auto run = bench.actions<RunHandler>();
    ASSERT_EQ(run.size(), 1u) << "the completion handler needs the bytes in and the payload handlers ended";
    bench.done(run[0].her.id);
    bench.dma_done(dma);
    EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put, EventKind::auto_unlink}));
    EXPECT_EQ(bench.event(EventKind::put).entry, expected);
  }
}

// Rules: SPIN-8.2.
TEST(HandlerEnds, CompletionHandlersDmaEventClosesTheMessage) {
  HandlerBench bench(true);
  const HerId her = bench.start(1, 16, 0);
  const DmaId data = bench.issue(her, bench.dma_call(0, 16));
  bench.done(her);
  const HerId completion = bench.only<RunHandler>().her.id;
  const DmaId closing = bench.issue(completion, bench.dma_call(0, 0, 0, LocalMemory::none));
  bench.done(completion);
  bench.dma_done(closing);
  EXPECT_TRUE(bench.kinds().empty()) << "the data is still under way";
  bench.dma_done(data);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::dma, EventKind::put}));
  bench.expect_idle();
}

// Rules: SPIN-1.8.
TEST(HandlerEnds, EmptyMessageRunsOnlyTheCompletionHandler) {
  HandlerBench bench(true);
  bench.arrive(1, 0, 0);
  EXPECT_TRUE(bench.actions<BufferPacket>().empty());
  const Her her = bench.only<RunHandler>().her;
  EXPECT_EQ(her.kind, HandlerKind::completion);
  bench.done(her.id);
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::put});
}

}  // namespace
}  // namespace spinloom::nic
