// The NIC of frames: matching, handlers and their verdicts, slots, rings of the host, sends, and contexts.
#include "nic/frames/nic.hpp"

#include <cstring>

#include "nic/frames/testing/frame_bench.hpp"
#include "nic/spin/handler_abi.hpp"

namespace spinloom::frames {
namespace {

PayloadRef reference(const std::vector<uint8_t>& bytes) {
  PayloadRef made;
  made.space = PayloadRef::Space::local;
  made.bytes = bytes.data();
  made.length = bytes.size();
  return made;
}

HandlerCall call_on(uint32_t which, uint8_t* local, LocalMemory memory, uint64_t length) {
  HandlerCall call;
  call.call = which;
  call.local = local;
  call.local_memory = memory;
  call.length = length;
  return call;
}

// Rules: FPS-33.
TEST(FrameNic, WhatNoRuleSetTakesGoesToTheHost) {
  Bench bench;
  bench.rules(1);
  bench.install(0, Bench::handlers(false, true, false));
  bench.arrive(Bench::frame(9, 1, false));
  EXPECT_EQ(bench.take<ToHost>().size(), 1u);
  EXPECT_TRUE(bench.running.empty());
  EXPECT_EQ(bench.nic->count(Count::bypassed), 1u);
  bench.expect_quiet();
}

// Rules: FPS-32.
TEST(FrameNic, AHandlerSeesTheFrameAndWhatMatched) {
  Bench bench;
  bench.rules(2);
  bench.install(1, Bench::handlers(false, true, false));
  const auto bytes = Bench::frame(1, 77, true, 200);
  bench.arrive(bytes);
  const Her her = bench.next();
  EXPECT_EQ(her.kind, HandlerKind::payload);
  EXPECT_EQ(her.message, 77u);
  EXPECT_EQ(her.rule_set, 1u);
  EXPECT_EQ(her.flags, SPL_FRAME_LAST);
  ASSERT_EQ(her.payload.length, bytes.size());
  EXPECT_EQ(std::memcmp(her.payload.bytes, bytes.data(), bytes.size()), 0);
  EXPECT_EQ(bench.nic->state().packets, 1u);
  bench.done(her);
  EXPECT_EQ(bench.nic->count(Count::frames_done), 1u);
  bench.expect_quiet();
}

TEST(FrameNic, AnInactiveContextTakesNothing) {
  Bench bench;
  bench.rules(1);
  bench.install(0, Bench::handlers(false, true, false));
  ASSERT_TRUE(bench.nic->activate(ContextId{0}, false).ok());
  bench.arrive(Bench::frame(0, 1, false));
  EXPECT_EQ(bench.take<ToHost>().size(), 1u);
  EXPECT_EQ(bench.nic->count(Count::inactive), 1u);
}

// Rules: FPS-40.
TEST(FrameNic, RuntsAndGiantsAreDroppedAndCounted) {
  Bench bench;
  bench.rules(1);
  bench.install(0, Bench::handlers(false, true, false));
  bench.arrive(Bench::frame(0, 1, false, 13));
  bench.arrive({});
  bench.arrive(Bench::frame(0, 1, false, 1519));
  bench.arrive(Bench::frame(0, 1, false, 9000));
  EXPECT_EQ(bench.nic->count(Count::runts), 2u);
  EXPECT_EQ(bench.nic->count(Count::oversize), 2u);
  EXPECT_TRUE(bench.seen.empty());
}

// Rules: FPS-39, FPS-41, FPS-43.
TEST(FrameNic, AFullClassDropsItsFramesOnly) {
  Limits limits;
  limits.slots = {{2, 1536}, {1, 128}};
  limits.hpus = 1;
  Bench bench(limits);
  bench.rules(1);
  bench.install(0, Bench::handlers(false, true, false));
  for (int i = 0; i < 3; ++i) bench.arrive(Bench::frame(0, 1, false, 64));
  bench.arrive(Bench::frame(0, 1, false, 1000));
  EXPECT_EQ(bench.nic->count(Count::dropped_full), 2u);
  EXPECT_EQ(bench.nic->state().packets, 2u);
  bench.done(bench.next());
  bench.done(bench.next());
  bench.expect_quiet();
}

// Rules: FPS-44, FPS-83.
TEST(FrameNic, AHandlerSendsAndItsSlotWaitsForTheWire) {
  Bench bench;
  bench.rules(1);
  bench.install(0, Bench::handlers(false, true, false));
  bench.arrive(Bench::frame(0, 1, false));
  const Her her = bench.next();
  auto* const frame = const_cast<uint8_t*>(her.payload.bytes);
  ASSERT_FALSE(
      bench.nic->on_handler_call(her.id, call_on(SPL_CALL_SEND_FRAME, frame, LocalMemory::packet, 64), bench.actions));
  bench.settle();
  const auto sent = bench.take<Transmit>();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].frame.bytes.bytes, frame);
  bench.done(her);
  EXPECT_EQ(bench.nic->state().packets, 1u);  // the wire still reads it
  bench.nic->on_transmitted(sent[0].frame, bench.actions);
  EXPECT_EQ(bench.nic->count(Count::sent_by_handlers), 1u);
  bench.expect_quiet();
}

TEST(FrameNic, SendsFromTheStackOrOfNoPossibleLengthAreRefused) {
  Bench bench;
  bench.rules(1);
  bench.install(0, Bench::handlers(false, true, false));
  bench.arrive(Bench::frame(0, 1, false));
  const Her her = bench.next();
  std::vector<uint8_t> bytes(2000);
  for (const auto& [memory, length] : {std::pair{LocalMemory::stack, 64u},
                                       {LocalMemory::packet, 13u},
                                       {LocalMemory::packet, 1519u},
                                       {LocalMemory::outside, 64u}}) {
    ASSERT_FALSE(
        bench.nic->on_handler_call(her.id, call_on(SPL_CALL_SEND_FRAME, bytes.data(), memory, length), bench.actions));
    bench.settle();
    const auto answers = bench.take<Resume>();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].value, UINT32_MAX);
  }
  bench.done(her);
  bench.expect_quiet();
}

// Rules: FPS-52.
TEST(FrameNic, DropAndProceedAreDecisionsOnOneFrame) {
  Bench bench;
  bench.rules(1);
  bench.install(0, Bench::handlers(false, true, false));
  for (const uint32_t code : {uint32_t{DROP}, uint32_t{PROCEED}, uint32_t{FAIL}}) {
    bench.arrive(Bench::frame(0, 1, false));
    bench.done(bench.next(), code);
  }
  bench.arrive(Bench::frame(0, 1, false));
  bench.done(bench.next(), 0, HandlerEnd::fault);
  EXPECT_EQ(bench.take<ToHost>().size(), 1u);
  EXPECT_EQ(bench.nic->count(Count::handler_to_host), 1u);
  EXPECT_EQ(bench.nic->count(Count::handler_dropped), 3u);
  EXPECT_EQ(bench.nic->count(Count::handler_failed), 1u);
  EXPECT_EQ(bench.nic->count(Count::handler_faults), 1u);
  bench.expect_quiet();
}

TEST(FrameNic, FramesThatFitIntoNoRingEntryDoNotGoToMemory) {
  Limits limits;
  limits.frame_bytes_max = ring_entry_bytes - sizeof(RingHeader) + 1;
  Bench bench(limits);
  Context context;
  context.handler_host_start = reinterpret_cast<uint64_t>(bench.host.data());
  context.handler_host_length = 2 * ring_entry_bytes;
  EXPECT_FALSE(bench.nic->install(ContextId{0}, {context, true}).ok());
  --limits.frame_bytes_max;
  Bench good(limits);
  EXPECT_TRUE(good.nic->install(ContextId{0}, {context, true}).ok());
}

TEST(FrameNic, FramesWithoutHandlersGoToARingInHostMemory) {
  Bench bench;
  bench.rules(1);
  Context context;
  context.handler_host_start = reinterpret_cast<uint64_t>(bench.host.data());
  context.handler_host_length = 2 * ring_entry_bytes;
  ASSERT_TRUE(bench.nic->install(ContextId{0}, {context, true}).ok());
  ASSERT_TRUE(bench.nic->activate(ContextId{0}).ok());
  const auto bytes = Bench::frame(0, 5, true, 300);
  for (int i = 0; i < 3; ++i) bench.arrive(bytes);
  EXPECT_EQ(bench.nic->count(Count::memory_full), 1u);
  for (const DmaWrite& write : bench.take<DmaWrite>()) {
    std::memcpy(write.host, write.source.bytes, write.source.length);
    bench.nic->on_dma_done(write.dma, bench.actions);
  }
  EXPECT_EQ(bench.nic->count(Count::to_memory), 2u);
  RingHeader header;
  std::memcpy(&header, bench.host.data() + ring_entry_bytes, sizeof header);
  EXPECT_EQ(header.sequence, 2u);
  EXPECT_EQ(header.length, 300u);
  EXPECT_EQ(header.message, 5u);
  EXPECT_EQ(std::memcmp(bench.host.data() + ring_entry_bytes + sizeof header, bytes.data(), bytes.size()), 0);
  bench.nic->on_host_read(ContextId{0}, 1);
  bench.arrive(bytes);
  EXPECT_EQ(bench.take<DmaWrite>().size(), 2u);
}

TEST(FrameNic, FramesOfTheHostShareTheWire) {
  Limits limits;
  limits.egress_depth = 1;
  limits.host_frames = 1;
  Bench bench(limits);
  const auto bytes = Bench::frame(0, 0, false);
  EXPECT_TRUE(bench.nic->on_host_frame(reference(bytes), 11, bench.actions));
  EXPECT_TRUE(bench.nic->on_host_frame(reference(bytes), 12, bench.actions));
  EXPECT_FALSE(bench.nic->on_host_frame(reference(bytes), 13, bench.actions));
  bench.settle();
  auto sent = bench.take<Transmit>();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].frame.host_token, 11u);
  bench.nic->on_transmitted(sent[0].frame, bench.actions);
  bench.settle();
  EXPECT_EQ(bench.take<Transmit>().at(0).frame.host_token, 12u);
  EXPECT_EQ(bench.nic->count(Count::host_refused), 1u);
}

// Rules: FPS-68, FPS-69.
TEST(FrameNic, InstallInitialiseActivate) {
  Bench bench;
  bench.rules(1);
  Context context = Bench::handlers(false, true, false);
  context.initialise_entry = 4;
  ASSERT_TRUE(bench.nic->install(ContextId{0}, {context, false}).ok());
  bench.arrive(Bench::frame(0, 1, false));
  EXPECT_EQ(bench.take<ToHost>().size(), 1u);  // the context is not active yet
  ASSERT_TRUE(bench.nic->initialise(ContextId{0}, bench.actions).ok());
  bench.settle();
  EXPECT_FALSE(bench.nic->activate(ContextId{0}).ok());
  const Her her = bench.next();
  EXPECT_EQ(her.kind, HandlerKind::initialise);
  bench.done(her);
  const auto told = bench.take<Initialised>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].succeeded);
  ASSERT_TRUE(bench.nic->activate(ContextId{0}).ok());
  bench.arrive(Bench::frame(0, 1, false));
  bench.done(bench.next());
  ASSERT_TRUE(bench.nic->invoke(ContextId{0}, 99, bench.actions).ok());
  bench.settle();
  const Her invoked = bench.next();
  EXPECT_EQ(invoked.flags, SPL_FRAME_BY_HOST);
  EXPECT_EQ(invoked.message, 99u);
  EXPECT_FALSE(bench.nic->remove(ContextId{0}).ok());
  ASSERT_TRUE(bench.nic->activate(ContextId{0}, false).ok());
  EXPECT_FALSE(bench.nic->remove(ContextId{0}).ok());  // a handler runs
  bench.done(invoked);
  EXPECT_TRUE(bench.nic->remove(ContextId{0}).ok());
  bench.expect_quiet();
}

// Rules: FPS-65.
TEST(FrameNic, TelemetryCallsAnswerAtOnce) {
  Bench bench;
  bench.rules(1);
  bench.install(0, Bench::handlers(false, true, false));
  bench.arrive(Bench::frame(0, 1, false));
  const Her her = bench.next();
  const auto ask = [&](uint64_t which) -> std::optional<uint32_t> {
    HandlerCall call;
    call.call = SPL_CALL_TELEMETRY;
    call.operand = which;
    if (bench.nic->on_handler_call(her.id, call, bench.actions)) return std::nullopt;
    bench.settle();
    return bench.take<Resume>().at(0).value;
  };
  EXPECT_EQ(ask(static_cast<uint64_t>(Count::matched)), 1u);
  EXPECT_EQ(ask(SPL_TELEMETRY_CONTEXT + static_cast<uint32_t>(Telemetry::bytes)), 64u);
  EXPECT_EQ(ask(SPL_TELEMETRY_FREE_SLOTS + 1), 1023u);
  EXPECT_FALSE(ask(count_kinds).has_value());
  EXPECT_FALSE(ask(SPL_TELEMETRY_FREE_SLOTS + 2).has_value());
}

// A handler of context 0 writes to context 1, whose mail handler runs without a frame and may not be taken away.
// Rules: FPS-67.
TEST(FrameNic, MailRunsAHandlerOfAnotherContext) {
  Limits limits;
  limits.mails = 2;
  limits.hpus = 2;
  Bench bench(limits);
  bench.rules(2);
  bench.install(0, Bench::handlers(false, true, false));
  Context unit = Bench::handlers(false, true, false);
  unit.mail_entry = 5;
  bench.install(1, unit);
  bench.arrive(Bench::frame(0, 1, false));
  const Her sender = bench.next();
  const auto mail = [&](uint32_t context, uint32_t value) {
    HandlerCall call;
    call.call = SPL_CALL_MAIL;
    call.context = context;
    call.operand = uint64_t{value} << 40;
    call.handle = value;
    EXPECT_FALSE(bench.nic->on_handler_call(sender.id, call, bench.actions));
    bench.settle();
    return bench.take<Resume>().at(0).value;
  };
  EXPECT_EQ(mail(1, 7), uint32_t{SUCCESS});
  EXPECT_EQ(mail(1, 8), uint32_t{SUCCESS});
  EXPECT_EQ(mail(1, 9), uint32_t{FAIL}) << "two are the most";
  EXPECT_EQ(mail(0, 7), uint32_t{FAIL}) << "it has no mail handler";
  EXPECT_EQ(mail(5, 7), uint32_t{FAIL}) << "there is no such context";
  const Her first = bench.next();
  EXPECT_EQ(first.kind, HandlerKind::mail);
  EXPECT_EQ(first.context, ContextId{1});
  const Mail given = mail_of(first);
  EXPECT_EQ(given.argument, uint64_t{7} << 40);
  EXPECT_EQ(given.value, 7u);
  EXPECT_EQ(given.context, 0u);
  EXPECT_EQ(first.payload.length, 0u);
  ASSERT_TRUE(bench.nic->activate(ContextId{1}, false).ok());
  EXPECT_EQ(mail(1, 10), uint32_t{FAIL}) << "it is not active";
  bench.done(first);
  EXPECT_FALSE(bench.nic->remove(ContextId{1}).ok());
  bench.done(bench.next());
  EXPECT_TRUE(bench.nic->remove(ContextId{1}).ok());
  bench.done(sender);
  EXPECT_EQ(bench.nic->count(Count::mails), 2u);
  EXPECT_EQ(bench.nic->count(Count::mails_refused), 4u);
  EXPECT_EQ(bench.nic->count(Count::frames_done), 1u);
  bench.expect_quiet();
}

TEST(FrameNic, FairByCycles) {
  Limits limits;
  limits.hpus = 1;
  limits.fairness = Fairness::by_cycles;
  Bench bench(limits);
  bench.rules(2);
  bench.install(0, Bench::handlers(false, true, false));
  bench.install(1, Bench::handlers(false, true, false));
  for (int i = 0; i < 12; ++i) bench.arrive(Bench::frame(0, 1, false));
  for (int i = 0; i < 12; ++i) bench.arrive(Bench::frame(1, 1, false));
  // Handlers of context 0 take three times as long, so three of context 1 run for one of them.
  std::array<uint64_t, 2> cycles{};
  for (int i = 0; i < 12; ++i) {
    const Her her = bench.next();
    const uint64_t took = her.context.value == 0 ? 300 : 100;
    cycles[her.context.value] += took;
    bench.done(her, SUCCESS, HandlerEnd::returned, took);
  }
  EXPECT_LE(std::max(cycles[0], cycles[1]) - std::min(cycles[0], cycles[1]), 300u);
}

}  // namespace
}  // namespace spinloom::frames
