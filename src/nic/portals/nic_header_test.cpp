// Header handlers: the effect of each return code on a message. The table is docs/handlers.md.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

using Kinds = std::vector<EventKind>;

// An entry of 512 B whose context has header, payload and completion handlers; packets carry 16 B.
struct HeaderBench : Bench {
  explicit HeaderBench(bool payload = true, bool completion = true, uint32_t user_header_bytes = 0, bool once = false) {
    Context made;
    made.header_entry = 3;
    if (payload) made.payload_entry = 1;
    if (completion) made.completion_entry = 2;
    made.user_header_bytes = user_header_bytes;
    Entry attached = entry();
    attached.length = 512;
    attached.options.use_once = once;
    attached.context = context(made);
    append(attached);
  }

  // Buffers a packet. Returns the HER of the header handler if the packet starts it.
  HerId buffer(uint64_t message, uint64_t length, uint64_t offset) {
    arrive(message, length, offset);
    her_ready(only<BufferPacket>().her);
    const auto runs = actions<RunHandler>();
    return runs.empty() ? HerId{} : runs.front().her.id;
  }
  // Ends every handler of `kind` that the last call started, and those that these ends start. Returns their HERs.
  std::vector<Her> end_all(HandlerKind kind, uint32_t code = SUCCESS) {
    std::vector<Her> ended;
    std::vector<RunHandler> due = actions<RunHandler>();
    while (!due.empty()) {
      const Her her = due.front().her;
      due.erase(due.begin());
      EXPECT_EQ(her.kind, kind);
      ended.push_back(her);
      done(her.id, code);
      for (const auto& next : actions<RunHandler>()) {
        if (next.her.kind == kind)
          due.push_back(next);
        else
          completion_her = next.her.id;
      }
    }
    return ended;
  }
  HerId completion_her;
};

// Rules: SPIN-1.1, SPIN-1.5, SPIN-1.6, SPIN-4.4, SPIN-4.8.
TEST(HeaderHandler, RunsAloneAndFirst) {
  HeaderBench bench;
  const HerId header = bench.buffer(1, 48, 0);
  ASSERT_TRUE(header.exists());
  EXPECT_EQ(bench.only<RunHandler>().her.kind, HandlerKind::header);
  EXPECT_EQ(bench.only<RunHandler>().her.hdr_data, 1001u);
  EXPECT_EQ(bench.only<RunHandler>().her.match_bits, 5u);
  EXPECT_EQ(bench.only<RunHandler>().her.source, Rank{0});
  EXPECT_FALSE(bench.buffer(1, 48, 16).exists()) << "a payload handler must wait";
  EXPECT_FALSE(bench.buffer(1, 48, 32).exists());
  bench.done(header, PROCESS_DATA);
  const auto payloads = bench.end_all(HandlerKind::payload);
  ASSERT_EQ(payloads.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(payloads[i].offset, 16 * i);
  bench.done(bench.completion_her);
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::put});
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::ok);
  bench.expect_idle();
}

// Rules: SPIN-1.6, SPIN-1.9.
TEST(HeaderHandler, PacketsAheadOfTheHeaderWait) {
  HeaderBench bench;
  bench.arrive(1, 48, 32);
  EXPECT_TRUE(bench.out.list.empty());
  bench.arrive(1, 48, 0);
  const auto buffered = bench.actions<BufferPacket>();
  ASSERT_EQ(buffered.size(), 2u);
  bench.her_ready(buffered[1].her);
  EXPECT_TRUE(bench.actions<RunHandler>().empty()) << "the header's packet is not in the buffer yet";
  bench.her_ready(buffered[0].her);
  const HerId header = bench.only<RunHandler>().her.id;
  bench.done(header, PROCESS_DATA);
  EXPECT_EQ(bench.end_all(HandlerKind::payload).size(), 2u);
  EXPECT_TRUE(bench.start(1, 48, 16).exists());
}

// Rules: SPIN-4.9.
TEST(HeaderHandler, ProceedLandsEverythingAndRunsTheCompletionHandler) {
  HeaderBench bench;
  const HerId header = bench.buffer(1, 48, 0);
  bench.buffer(1, 48, 16);
  bench.done(header, PROCEED);
  const auto writes = bench.actions<DmaWrite>();
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[1].host, bench.memory.data() + 16);
  EXPECT_EQ(writes[1].source.length, 16u);
  bench.arrive(1, 48, 32);  // later packets take the same way, without the packet buffer
  EXPECT_TRUE(bench.actions<BufferPacket>().empty());
  const DmaId last = bench.only<DmaWrite>().dma;
  const HerId completion = bench.only<RunHandler>().her.id;
  bench.done(completion);
  bench.dma_done(writes[0].dma);
  bench.dma_done(writes[1].dma);
  EXPECT_EQ(bench.nic.state().packet_buffer_used, 0u);
  bench.dma_done(last);
  EXPECT_EQ(bench.event(EventKind::put).manipulated_bytes, 48u);
  bench.expect_idle();
}

// Rules: SPIN-4.9.
TEST(HeaderHandler, ProceedIsTruncatedByTheEntry) {
  HeaderBench bench(true, false);
  bench.remote_offset = 500;  // 12 B of the entry are left
  const HerId header = bench.buffer(1, 32, 0);
  bench.buffer(1, 32, 16);
  bench.done(header, PROCEED);
  EXPECT_EQ(bench.only<DmaWrite>().source.length, 12u);
  const auto events = bench.land();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].manipulated_bytes, 12u);
  bench.expect_idle();
}

// Rules: SPIN-2.1, SPIN-2.2.
TEST(HeaderHandler, WithoutPayloadHandlerProcessDataLands) {
  HeaderBench bench(false, false);
  const HerId header = bench.buffer(1, 16, 0);
  bench.done(header, PROCESS_DATA);
  EXPECT_EQ(bench.only<DmaWrite>().host, bench.memory.data());
  EXPECT_EQ(bench.land().size(), 1u);
  bench.expect_idle();
}

// Rules: SPIN-1.14, SPIN-4.7.
TEST(HeaderHandler, DropDiscardsWhatIsHereAndWhatComes) {
  HeaderBench bench;
  const HerId header = bench.buffer(1, 48, 0);
  bench.buffer(1, 48, 16);
  bench.done(header, DROP);
  EXPECT_TRUE(bench.actions<DmaWrite>().empty());
  EXPECT_EQ(bench.nic.state().packet_buffer_used, 0u);
  bench.arrive(1, 48, 32);
  const Her completion = bench.only<RunHandler>().her;
  EXPECT_EQ(completion.kind, HandlerKind::completion);
  EXPECT_EQ(completion.dropped_bytes, 48u);
  bench.done(completion.id);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::ok);
  EXPECT_EQ(bench.event(EventKind::put).manipulated_bytes, 0u);
  EXPECT_EQ(bench.event(EventKind::put).dropped_bytes, 48u);
  bench.expect_idle();
}

// Rules: SPIN-1.8.
TEST(HeaderHandler, AnEmptyMessageRunsHeaderThenCompletion) {
  HeaderBench bench;
  bench.arrive(1, 0, 0);
  const Her header = bench.only<RunHandler>().her;
  EXPECT_EQ(header.kind, HandlerKind::header);
  bench.done(header.id, PROCESS_DATA);
  const Her completion = bench.only<RunHandler>().her;
  EXPECT_EQ(completion.kind, HandlerKind::completion);
  bench.done(completion.id);
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::put});
  bench.expect_idle();
}

// Rules: SPIN-4.13, SPIN-4.15.
TEST(HeaderHandler, ErrorsDropTheDataAndAreTold) {
  struct Row {
    HandlerEnd end;
    uint32_t code;
    Fail failure;
    bool completes;  // a completion handler runs
  };
  for (const Row& row :
       {Row{HandlerEnd::returned, FAIL, Fail::handler_fail, true}, Row{HandlerEnd::returned, SEGV, Fail::segv, true},
        Row{HandlerEnd::returned, SUCCESS, Fail::handler_code, true},
        Row{HandlerEnd::returned, 77, Fail::handler_code, true}, Row{HandlerEnd::fault, 0, Fail::handler_fault, false},
        Row{HandlerEnd::segv, 0, Fail::segv, false}, Row{HandlerEnd::budget, 0, Fail::handler_budget, false}}) {
    HeaderBench bench;
    const HerId header = bench.buffer(1, 32, 0);
    bench.buffer(1, 32, 16);
    bench.done(header, row.code, row.end);
    if (row.completes) bench.done(bench.only<RunHandler>().her.id);
    const Event put = bench.event(EventKind::put);
    EXPECT_EQ(put.fail, row.failure) << row.code;
    EXPECT_EQ(put.dropped_bytes, 32u);
    bench.expect_idle();
  }
}

// Rules: SPIN-4.12, SPIN-6.3.
TEST(HeaderHandler, PendingKeepsTheEntry) {
  for (const uint32_t code : {uint32_t{PROCESS_DATA_PENDING}, uint32_t{PROCEED_PENDING}, uint32_t{DROP_PENDING}}) {
    HeaderBench bench(true, false, 0, true);
    const HerId header = bench.buffer(1, 16, 0);
    bench.done(header, code);
    if (code == PROCESS_DATA_PENDING) bench.end_all(HandlerKind::payload);
    if (code == PROCEED_PENDING) bench.land();
    EXPECT_TRUE(bench.kinds().empty()) << code;
    bench.expect_idle();
    // The use-once entry is back in its list and takes another message.
    const HerId again = bench.buffer(2, 16, 0);
    ASSERT_TRUE(again.exists()) << code;
    bench.done(again, DROP);
    EXPECT_EQ(bench.kinds(), (Kinds{EventKind::put, EventKind::auto_unlink}));
    bench.expect_idle();
  }
}

// Rules: SPIN-1.11, SPIN-4.5.
TEST(HeaderHandler, TheUserHeaderIsNotPayload) {
  HeaderBench bench(true, false, 6);
  const HerId header = bench.buffer(1, 32, 0);
  EXPECT_EQ(bench.only<RunHandler>().her.payload.length, 6u);
  EXPECT_EQ(bench.only<RunHandler>().her.message_length, 32u);
  bench.buffer(1, 32, 16);
  bench.done(header, PROCESS_DATA);
  const auto payloads = bench.end_all(HandlerKind::payload);
  ASSERT_EQ(payloads.size(), 2u);
  EXPECT_EQ(payloads[0].offset, 0u);
  EXPECT_EQ(payloads[0].payload.length, 10u);
  EXPECT_EQ(payloads[0].payload.bytes, bench.source + 6);
  EXPECT_EQ(payloads[1].offset, 10u);
  EXPECT_EQ(payloads[1].payload.length, 16u);
  bench.expect_idle();
}

// Rules: SPIN-1.8.
TEST(HeaderHandler, AMessageThatIsUserHeaderOnlyHasNoPayload) {
  HeaderBench bench(true, false, 16);
  const HerId header = bench.buffer(1, 16, 0);
  bench.done(header, PROCESS_DATA);
  EXPECT_TRUE(bench.actions<RunHandler>().empty());
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::put});
  bench.expect_idle();
}

}  // namespace
}  // namespace spinloom::nic
