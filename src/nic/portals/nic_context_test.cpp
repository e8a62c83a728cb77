// Contexts beyond matching: installed before they are active, started by the host, counted.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

using Kinds = std::vector<EventKind>;

Context with_handlers(bool active) {
  Context made;
  made.header_entry = 1;
  made.payload_entry = 2;
  made.completion_entry = 3;
  made.active = active;
  return made;
}

// Runs the handlers of a one-packet message; each returns success.
void run_handlers(Bench& bench, const Her& header) {
  EXPECT_EQ(header.kind, HandlerKind::header);
  bench.done(header.id, PROCESS_DATA);
  const Her payload = bench.only<RunHandler>().her;
  EXPECT_EQ(payload.kind, HandlerKind::payload);
  bench.done(payload.id);
  const Her completion = bench.only<RunHandler>().her;
  EXPECT_EQ(completion.kind, HandlerKind::completion);
  bench.done(completion.id);
}

TEST(Activation, EntriesMatchFromThenOnInTheirOrder) {
  Bench bench;
  const ContextId context = bench.context(with_handlers(false));
  Entry first = bench.entry();
  first.context = context;
  first.options.event_link_disable = false;
  first.options.use_once = true;
  first.user_ptr = 1;
  Entry second = first;
  second.user_ptr = 2;
  bench.append(first);
  bench.append(second);
  EXPECT_TRUE(bench.kinds().empty()) << "not linked";
  bench.arrive(1, 16, 0);
  EXPECT_EQ(bench.nic.state().dropped_messages, 1u);
  bench.good(ContextActivate{context});
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::link, EventKind::link}));
  bench.arrive(2, 16, 0);
  bench.her_ready(bench.only<BufferPacket>().her);
  run_handlers(bench, bench.only<RunHandler>().her);
  EXPECT_EQ(bench.event(EventKind::put).user_ptr, 1u);
  EXPECT_NE(bench.error(ContextActivate{context}, Code::invalid).find("active already"), std::string::npos);
  EXPECT_NE(bench.error(ContextActivate{ContextId{9}}, Code::invalid).find("context 9"), std::string::npos);
  bench.expect_idle();
}

TEST(Activation, WaitingEntriesTakeHeadersAndCanBeUnlinked) {
  Bench bench;
  Entry holder = bench.entry();
  holder.options.manage_local = true;
  bench.append(holder, ListKind::overflow);
  const ContextId context = bench.context(with_handlers(false));
  Entry waiting = bench.entry();
  waiting.context = context;
  const EntryId gone = bench.append(waiting);
  const EntryId stays = bench.append(waiting);
  bench.arrive(1, 16, 0);
  bench.land();
  EXPECT_EQ(bench.good(Unlink{gone}), static_cast<uint64_t>(UnlinkResult::done));
  EXPECT_NE(bench.error(ContextFree{context}, Code::invalid).find("1 entries"), std::string::npos);
  bench.good(ContextActivate{context});
  EXPECT_EQ(bench.event(EventKind::put_overflow).entry, stays);
}

TEST(Invocation, RunsTheHandlersOnTheHostsBytes) {
  for (const bool active : {true, false}) {
    SCOPED_TRACE(active);
    Bench bench;
    Entry entry = bench.entry();
    entry.context = bench.context(with_handlers(active));
    entry.options.host_activated = true;
    const EntryId id = bench.append(entry);
    bench.arrive(1, 16, 0);
    EXPECT_EQ(bench.nic.state().dropped_messages, 1u) << "no packet matches it";
    bench.good(Invoke{id, {1, 2, 3, 4, 5}, 77});
    bench.her_ready(bench.only<BufferPacket>().her);
    const Her header = bench.only<RunHandler>().her;
    EXPECT_EQ(header.hdr_data, 77u);
    EXPECT_EQ(header.source, Rank{1});
    EXPECT_EQ(header.message_length, 5u);
    bench.done(header.id, PROCESS_DATA);
    const Her payload = bench.only<RunHandler>().her;
    ASSERT_EQ(payload.payload.length, 5u);
    EXPECT_EQ(payload.payload.bytes[4], 5);
    bench.done(payload.id);
    bench.done(bench.only<RunHandler>().her.id);
    EXPECT_EQ(bench.event(EventKind::put).hdr_data, 77u);
    bench.expect_idle();
  }
}

TEST(Invocation, MayWaitForACounterAndBeEmpty) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  Entry entry = bench.entry();
  entry.context = bench.context(with_handlers(true));
  entry.options.host_activated = true;
  const EntryId id = bench.append(entry);
  bench.good(Invoke{id, {}, 5}, Trigger{CounterId{0}, 1});
  EXPECT_TRUE(bench.actions<RunHandler>().empty());
  bench.good(CounterInc{CounterId{0}, {1, 0}});
  bench.go_on();
  const Her header = bench.only<RunHandler>().her;
  bench.done(header.id, PROCESS_DATA);
  EXPECT_EQ(bench.only<RunHandler>().her.kind, HandlerKind::completion) << "an empty message has no payload";
  bench.done(bench.only<RunHandler>().her.id);
  bench.expect_idle();
}

TEST(Invocation, WhatCannotBeIsAnError) {
  NicLimits limits = small_limits();
  limits.handler_messages = 1;
  Bench bench(limits);
  const EntryId plain = bench.append(bench.entry());
  Entry entry = bench.entry();
  entry.context = bench.context(with_handlers(true));
  const EntryId handled = bench.append(entry);
  EXPECT_NE(bench.error(Invoke{EntryId{99}, {}, 0}, Code::invalid).find("99"), std::string::npos);
  EXPECT_NE(bench.error(Invoke{plain, {}, 0}, Code::invalid).find("no context"), std::string::npos);
  EXPECT_NE(bench.error(Invoke{handled, std::vector<uint8_t>(17), 0}, Code::invalid).find("17 B"), std::string::npos);
  bench.good(Invoke{handled, {1}, 0});
  EXPECT_NE(bench.error(Invoke{handled, {1}, 0}, Code::exhausted).find("scheduler.messages"), std::string::npos);
}

TEST(TelemetryCounts, FollowAMessage) {
  Bench bench;
  const ContextId context = bench.context(with_handlers(true));
  Entry entry = bench.entry();
  entry.context = context;
  bench.append(entry);
  bench.arrive(1, 20, 0);
  const HerId first = bench.only<BufferPacket>().her;
  bench.arrive(1, 20, 16);
  const HerId second = bench.only<BufferPacket>().her;
  bench.her_ready(first);
  bench.done(bench.only<RunHandler>().her.id, PROCESS_DATA);
  bench.her_ready(second);
  bench.out.clear();
  bench.nic.on_handler_done(first, HandlerEnd::returned, DROP, bench.out, 100);
  bench.nic.on_handler_done(second, HandlerEnd::fault, 0, bench.out, 40);
  bench.arrive(2, 16, 0, 99);
  const auto is = [&](Telemetry which, uint64_t nic, uint64_t of_context) {
    EXPECT_EQ(bench.good(TelemetryRead{which, {}}), nic) << name_of(which);
    EXPECT_EQ(bench.good(TelemetryRead{which, context}), of_context) << name_of(which);
  };
  is(Telemetry::messages, 1, 1);
  is(Telemetry::packets, 2, 2);
  is(Telemetry::bytes, 20, 20);
  is(Telemetry::header_handlers, 1, 1);
  is(Telemetry::payload_handlers, 2, 2);
  is(Telemetry::completion_handlers, 0, 0);
  is(Telemetry::handler_cycles, 140, 140);
  is(Telemetry::handler_faults, 1, 1);
  is(Telemetry::failed_messages, 1, 1);
  is(Telemetry::dropped_bytes, 20, 20);
  is(Telemetry::refused_messages, 1, 0);
  is(Telemetry::portals_disabled, 0, 0);
  EXPECT_NE(bench.error(TelemetryRead{static_cast<Telemetry>(99), {}}, Code::invalid).find("99"), std::string::npos);
  EXPECT_NE(bench.error(TelemetryRead{Telemetry::bytes, ContextId{9}}, Code::invalid).find("context 9"),
            std::string::npos);
}

}  // namespace
}  // namespace spinloom::nic
