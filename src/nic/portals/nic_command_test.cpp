// The host's commands: outgoing messages, counters and triggers, objects and their checks.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

using Kinds = std::vector<EventKind>;

Put put_to_peer(Bench& bench, uint64_t length) {
  Put put;
  put.local = bench.source;
  put.length = length;
  put.target = Rank{2};
  put.portal = PortalIndex{4};
  put.match_bits = 9;
  put.remote_offset = 77;
  put.hdr_data = 11;
  put.user_ptr = 55;
  put.queue = bench.queue;
  return put;
}

TEST(Put, AnEntryThatTellsNobodyLetsTheInitiatorForget) {
  Bench bench;
  Put put = put_to_peer(bench, 16);
  put.ack_request = AckRequest::ack;
  bench.good(put);
  const Packet sent = bench.only<Send>().packet;
  bench.out.clear();
  bench.nic.on_packet_sent(sent.message, bench.out);
  Packet ack = ack_for(sent, 0);
  ack.fields.ack_request = AckRequest::none;
  bench.arrive(ack);
  EXPECT_TRUE(bench.kinds().empty());
  bench.expect_idle();
}

TEST(Put, BecomesPackets) {
  Bench bench;
  bench.good(put_to_peer(bench, 40));
  const auto sends = bench.actions<Send>();
  ASSERT_EQ(sends.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Packet& packet = sends[i].packet;
    EXPECT_EQ(packet.source, Rank{1});
    EXPECT_EQ(packet.target, Rank{2});
    EXPECT_EQ(packet.message, sends[0].packet.message);
    EXPECT_EQ(packet.message_length, 40u);
    EXPECT_EQ(packet.offset, i * 16);
    EXPECT_EQ(packet.payload.bytes, bench.source + i * 16);
    EXPECT_EQ(packet.payload.length, i == 2 ? 8u : 16u);
    EXPECT_EQ(sends[i].last, i == 2);
  }
  EXPECT_EQ(sends[0].packet.fields.portal_index, 4u);
  EXPECT_EQ(sends[0].packet.fields.match_bits, 9u);
  EXPECT_EQ(sends[0].packet.fields.remote_offset, 77u);
  EXPECT_EQ(sends[0].packet.fields.hdr_data, 11u);
  bench.out.clear();
  bench.nic.on_packet_sent(sends[0].packet.message, bench.out);
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::send});
  EXPECT_EQ(bench.event(EventKind::send).user_ptr, 55u);
  bench.expect_idle();
}

TEST(Put, EmptyIsOnePacketHeaderAndLast) {
  Bench bench;
  bench.good(put_to_peer(bench, 0));
  const Send send = bench.only<Send>();
  EXPECT_TRUE(send.packet.is_header());
  EXPECT_TRUE(send.last);
  EXPECT_EQ(send.packet.payload.space, PayloadRef::Space::none);
}

TEST(Put, HugeMessagesGiveWayAndMessagesLeaveInOrder) {
  NicLimits limits = small_limits();
  limits.payload_bytes = 1;
  Bench bench(limits);
  std::vector<uint8_t> large(limits::packets_per_call_max + 10);
  Put put = put_to_peer(bench, large.size());
  put.local = large.data();
  bench.good(put);
  EXPECT_EQ(bench.actions<Send>().size(), limits::packets_per_call_max);
  EXPECT_EQ(bench.actions<Continue>().size(), 1u);
  bench.good(put_to_peer(bench, 1));
  EXPECT_TRUE(bench.actions<Send>().empty()) << "it is the second's turn only after the first";
  EXPECT_TRUE(bench.actions<Continue>().empty()) << "one is under way";
  bench.go_on();
  const auto sends = bench.actions<Send>();
  ASSERT_EQ(sends.size(), 11u);
  EXPECT_TRUE(sends[9].last);
  EXPECT_EQ(sends[9].packet.offset, large.size() - 1);
  EXPECT_TRUE(sends[10].packet.is_header());
  EXPECT_TRUE(bench.actions<Continue>().empty());
}

// Rules: P4F-11.21.
TEST(Put, AckAfterSendWhateverComesFirst) {
  for (const bool ack_first : {false, true}) {
    Bench bench;
    bench.good(CounterAlloc{CounterId{0}});
    Put put = put_to_peer(bench, 16);
    put.ack_request = AckRequest::ack;
    put.counter = CounterId{0};
    put.ct_send = true;
    bench.good(put);
    const Packet sent = bench.only<Send>().packet;
    EXPECT_EQ(sent.fields.ack_request, AckRequest::ack);
    bench.out.clear();
    if (ack_first) {
      bench.nic.on_packet(ack_for(sent, 12), bench.out);
      EXPECT_TRUE(bench.out.list.empty());
      bench.nic.on_packet_sent(sent.message, bench.out);
    } else {
      bench.nic.on_packet_sent(sent.message, bench.out);
      bench.nic.on_packet(ack_for(sent, 12), bench.out);
    }
    EXPECT_EQ(bench.kinds(), (Kinds{EventKind::send, EventKind::ack}));
    EXPECT_EQ(bench.event(EventKind::ack).manipulated_bytes, 12u);
    EXPECT_EQ(bench.event(EventKind::ack).user_ptr, 55u);
    EXPECT_EQ(bench.actions<PostCounter>().back().value, (CounterValue{2, 0}));
    bench.expect_idle();
    bench.arrive(ack_for(sent, 12));  // a second acknowledgement
    EXPECT_EQ(bench.nic.state().refused_packets, 1u);
  }
}

// Rules: P4F-6.22, P4F-11.13, P4F-11.25.
TEST(Put, CountingAckAndFailure) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  Put put = put_to_peer(bench, 16);
  put.ack_request = AckRequest::ct_ack;
  put.counter = CounterId{0};
  put.event_send_disable = true;
  for (const Fail failure : {Fail::ok, Fail::dropped}) {
    bench.good(put);
    const Packet sent = bench.only<Send>().packet;
    bench.out.clear();
    bench.nic.on_packet_sent(sent.message, bench.out);
    bench.nic.on_packet(ack_for(sent, 0, failure), bench.out);
    EXPECT_TRUE(bench.kinds().empty());
    EXPECT_EQ(bench.only<PostCounter>().value, (failure == Fail::ok ? CounterValue{1, 0} : CounterValue{1, 1}));
  }
}

TEST(Put, ChecksItsArguments) {
  Bench bench;
  Put put = put_to_peer(bench, 16);
  put.local = nullptr;
  EXPECT_NE(bench.error(put, Code::invalid).find("null"), std::string::npos);
  put = put_to_peer(bench, 16);
  put.queue = QueueId{44};
  EXPECT_NE(bench.error(put, Code::invalid).find("44"), std::string::npos);
  put = put_to_peer(bench, 16);
  put.ack_request = AckRequest::ct_ack;
  EXPECT_NE(bench.error(put, Code::invalid).find("counter"), std::string::npos);
  put = put_to_peer(bench, 16);
  put.queue = QueueId{};
  put.ack_request = AckRequest::ack;
  EXPECT_NE(bench.error(put, Code::invalid).find("queue"), std::string::npos);
  put = put_to_peer(bench, 16);
  put.target = Rank::any();
  bench.error(put, Code::invalid);
  bench.expect_idle();
}

// Rules: P4F-15.1, P4F-15.9.
TEST(Trigger, FiresInOrderOneCommandACall) {
  Bench bench;
  for (uint32_t i = 0; i < 3; ++i) bench.good(CounterAlloc{CounterId{i}});
  const CounterId gate{0};
  bench.good(CounterInc{CounterId{1}, {10, 0}}, Trigger{gate, 2});
  EXPECT_TRUE(bench.actions<PostCounter>().empty());
  bench.good(CounterInc{CounterId{2}, {20, 0}}, Trigger{gate, 1});
  bench.good(put_to_peer(bench, 16), Trigger{gate, 3});
  EXPECT_EQ(bench.nic.state().triggered_waiting, 3u);
  bench.good(CounterInc{gate, {1, 0}});
  EXPECT_EQ(bench.only<PostCounter>().counter, gate);
  EXPECT_EQ(bench.actions<Continue>().size(), 1u);
  bench.go_on();
  EXPECT_EQ(bench.only<PostCounter>().counter, CounterId{2});
  EXPECT_TRUE(bench.actions<Continue>().empty());
  bench.good(CounterInc{gate, {5, 0}});  // both others
  bench.go_on();
  EXPECT_EQ(bench.only<PostCounter>().counter, CounterId{1});
  EXPECT_EQ(bench.actions<Continue>().size(), 1u);
  bench.go_on();
  EXPECT_EQ(bench.actions<Send>().size(), 1u);
  EXPECT_EQ(bench.nic.state().triggered_waiting, 0u);
}

// Rules: P4F-15.1, P4F-15.3.
TEST(Trigger, AlreadyReachedFiresAtRegistrationAndFailuresCount) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  bench.good(CounterInc{CounterId{0}, {0, 9}});
  bench.good(CounterInc{CounterId{0}, {1, 0}}, Trigger{CounterId{0}, 10});
  EXPECT_TRUE(bench.actions<Continue>().empty());
  bench.good(CounterInc{CounterId{0}, {1, 0}}, Trigger{CounterId{0}, 9});
  EXPECT_EQ(bench.actions<Continue>().size(), 1u);
  bench.go_on();
  bench.go_on();
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{2, 9}));
}

// Rules: P4F-10.17.
TEST(Trigger, WhatFiredStaysFiredWhenTheCounterIsSetBack) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  bench.good(CounterAlloc{CounterId{1}});
  bench.good(CounterInc{CounterId{1}, {1, 0}}, Trigger{CounterId{0}, 5});
  bench.good(CounterSet{CounterId{0}, {5, 0}});
  bench.good(CounterSet{CounterId{0}, {0, 0}});
  bench.go_on();
  EXPECT_EQ(bench.only<PostCounter>().counter, CounterId{1});
}

TEST(Trigger, ACycleOfPersistentCommandsIsBoundedPerCall) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  bench.good(CounterAlloc{CounterId{1}});
  bench.good(CounterInc{CounterId{1}, {1, 0}}, Trigger{CounterId{0}, 1, 1});
  bench.good(CounterInc{CounterId{0}, {1, 0}}, Trigger{CounterId{1}, 1, 1});
  bench.good(CounterInc{CounterId{0}, {1, 0}});
  for (uint64_t round = 0; round < 1000; ++round) {
    bench.go_on();
    ASSERT_EQ(bench.actions<PostCounter>().size(), 1u);
    ASSERT_EQ(bench.actions<Continue>().size(), 1u);
    EXPECT_EQ(bench.only<PostCounter>().value.success, round / 2 + (round % 2 == 0 ? 1 : 2));
  }
  EXPECT_EQ(bench.nic.state().triggered_waiting, 2u);
}

// The command has fired but not run. It runs once more and is gone then, even if another counter has the old index.
TEST(Trigger, APersistentCommandThatIsForgottenWhileItIsFiredRunsOnceMore) {
  const CounterId gate{0}, told{1};
  for (const bool frees : {false, true}) {
    Bench bench;
    for (const CounterId counter : {gate, told}) bench.good(CounterAlloc{counter});
    bench.good(CounterInc{told, {1, 0}}, Trigger{gate, 1, 1});
    bench.good(CounterInc{gate, {1, 0}});
    bench.out.clear();
    if (frees) {
      bench.nic.on_command(Command{CounterFree{gate}, {}, 0}, bench.out);
      bench.nic.on_command(Command{CounterAlloc{gate}, {}, 0}, bench.out);
    } else {
      bench.nic.on_command(Command{CounterCancel{gate}, {}, 0}, bench.out);
    }
    bench.go_on();
    EXPECT_EQ(bench.only<PostCounter>().counter, told);
    EXPECT_EQ(bench.nic.state().triggered_waiting, 0u);
    bench.good(CounterInc{gate, {5, 0}});
    EXPECT_EQ(bench.only<PostCounter>().counter, gate);
    EXPECT_TRUE(bench.actions<Continue>().empty());
  }
}

// The paper's example x -> y: y is persistent, and x's counter resets itself at 1.
TEST(AutoReset, APersistentCommandRunsOnceARound) {
  Bench bench;
  const CounterId x{0}, y{1};
  for (const CounterId counter : {x, y}) bench.good(CounterAlloc{counter});
  bench.good(CounterAutoReset{x, 1});
  bench.good(CounterInc{y, {1, 0}}, Trigger{x, 1, 1});
  for (uint64_t round = 1; round <= 5; ++round) {
    bench.good(CounterInc{x, {round % 2, 1 - round % 2}});
    EXPECT_EQ(bench.only<PostCounter>().value, CounterValue{}) << "reset";
    bench.go_on();
    EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{round, 0}));
  }
}

TEST(AutoReset, EarlierThresholdsRunOnceARoundEach) {
  Bench bench;
  for (uint32_t counter = 0; counter < 3; ++counter) bench.good(CounterAlloc{CounterId{counter}});
  bench.good(CounterAutoReset{CounterId{0}, 3});
  bench.good(CounterInc{CounterId{1}, {1, 0}}, Trigger{CounterId{0}, 1, 1});
  bench.good(CounterInc{CounterId{2}, {1, 0}}, Trigger{CounterId{0}, 3, 1});
  std::vector<uint32_t> ran;
  for (int i = 1; i <= 9; ++i) {
    bench.good(CounterInc{CounterId{0}, {1, 0}});
    EXPECT_EQ(bench.only<PostCounter>().value.success, static_cast<uint64_t>(i % 3));
    while (!bench.actions<Continue>().empty()) {
      bench.go_on();
      for (const PostCounter& post : bench.actions<PostCounter>()) ran.push_back(post.counter.value);
    }
  }
  EXPECT_EQ(ran, (std::vector<uint32_t>{1, 2, 1, 2, 1, 2}));
}

// Rounds pass before the first round's command has run.
TEST(AutoReset, WhatRunsLateMissesNoRound) {
  Bench bench;
  for (uint32_t counter = 0; counter < 2; ++counter) bench.good(CounterAlloc{CounterId{counter}});
  bench.good(CounterAutoReset{CounterId{0}, 2});
  bench.good(CounterInc{CounterId{1}, {1, 0}}, Trigger{CounterId{0}, 1, 1});
  for (int i = 0; i < 7; ++i) {  // three and a half rounds
    bench.out.clear();
    bench.nic.on_command(Command{CounterInc{CounterId{0}, {1, 0}}, {}, 0}, bench.out);
  }
  uint64_t runs = 0;
  for (int i = 0; i < 10 && bench.nic.state().triggered_waiting == 1; ++i) {
    bench.go_on();
    runs += bench.actions<PostCounter>().size();
    if (bench.actions<Continue>().empty()) break;
  }
  EXPECT_EQ(runs, 4u);
  bench.good(CounterInc{CounterId{0}, {5, 0}});
  EXPECT_EQ(bench.only<PostCounter>().value, CounterValue{}) << "what is beyond the threshold is lost";
  EXPECT_TRUE(bench.actions<Continue>().empty()) << "it has run in this round";
  bench.good(CounterSet{CounterId{0}, {1, 0}});
  EXPECT_EQ(bench.actions<Continue>().size(), 1u);
  bench.go_on();
  bench.good(CounterFree{CounterId{0}});
  EXPECT_EQ(bench.nic.state().triggered_waiting, 0u) << "also what rests";
}

TEST(AutoReset, ChecksAndItsEnd) {
  Bench bench;
  bench.error(CounterAutoReset{CounterId{0}, 1}, Code::invalid);
  for (uint32_t counter = 0; counter < 2; ++counter) bench.good(CounterAlloc{CounterId{counter}});
  bench.good(CounterAutoReset{CounterId{0}, 2});
  bench.error(CounterInc{CounterId{1}, {1, 0}}, Code::invalid, Trigger{CounterId{0}, 3});
  bench.good(CounterInc{CounterId{1}, {1, 0}}, Trigger{CounterId{0}, 2});
  bench.error(CounterAutoReset{CounterId{0}, 0}, Code::invalid);
  bench.good(CounterInc{CounterId{0}, {2, 0}});
  bench.go_on();
  bench.good(CounterAutoReset{CounterId{0}, 0});
  bench.good(CounterInc{CounterId{0}, {7, 0}});
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{7, 0}));
}

// A persistent command also waits for its counter while it is fired: its counter must not change its resets then.
TEST(AutoReset, IsLeftAloneWhileAPersistentCommandIsFired) {
  const CounterId gate{0}, told{1};
  for (const uint64_t resets_at : {uint64_t{0}, uint64_t{4}}) {
    Bench bench;
    for (const CounterId counter : {gate, told}) bench.good(CounterAlloc{counter});
    bench.good(CounterAutoReset{gate, resets_at});
    bench.good(CounterInc{told, {1, 0}}, Trigger{gate, 3, 3});
    bench.good(CounterInc{gate, {resets_at + 3, 0}});
    ASSERT_EQ(bench.actions<Continue>().size(), 1u);
    const uint64_t other = resets_at == 0 ? 2 : 0;  // a round that ends before the command's threshold, or no rounds
    bench.out.clear();
    bench.nic.on_command(Command{CounterAutoReset{gate, other}, {}, 7}, bench.out);
    EXPECT_FALSE(bench.only<Answer>().result.ok());
    bench.go_on();
    EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{1, 0}));
    bench.error(CounterAutoReset{gate, other}, Code::invalid);
    bench.good(CounterInc{gate, {3, 0}});
    bench.go_on();
    EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{2, 0})) << "as if nobody had tried";
  }
}

// A forgotten command that runs once more does not count, nor does a consumed one.
TEST(AutoReset, MayChangeWhileWhatIsFiredDoesNotComeBack) {
  const CounterId gate{0}, told{1};
  for (const uint64_t every : {uint64_t{0}, uint64_t{1}}) {
    Bench bench;
    for (const CounterId counter : {gate, told}) bench.good(CounterAlloc{counter});
    bench.good(CounterInc{told, {1, 0}}, Trigger{gate, 1, every});
    bench.good(CounterInc{gate, {1, 0}});
    bench.out.clear();
    if (every > 0) bench.nic.on_command(Command{CounterCancel{gate}, {}, 0}, bench.out);
    bench.nic.on_command(Command{CounterAutoReset{gate, 2}, {}, 7}, bench.out);
    EXPECT_TRUE(bench.only<Answer>().result.ok());
    bench.go_on();
    EXPECT_EQ(bench.only<PostCounter>().counter, told);
    EXPECT_EQ(bench.nic.state().triggered_waiting, 0u);
    bench.good(CounterInc{told, {1, 0}}, Trigger{gate, 2, 1});
    bench.error(CounterAutoReset{gate, 0}, Code::invalid);
    bench.good(CounterInc{gate, {1, 0}});
    bench.go_on();
    EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{2, 0}));
    bench.good(CounterCancel{gate});
    bench.good(CounterAutoReset{gate, 0});
  }
}

TEST(Trigger, ChecksAndLimits) {
  NicLimits limits = small_limits();
  limits.triggered_commands = 2;
  Bench bench(limits);
  bench.error(CounterInc{CounterId{0}, {1, 0}}, Code::invalid, Trigger{CounterId{0}, 1});
  bench.good(CounterAlloc{CounterId{0}});
  bench.error(MemoryAlloc{16}, Code::invalid, Trigger{CounterId{0}, 1});
  Put bad = put_to_peer(bench, 16);
  bad.local = nullptr;
  bench.error(bad, Code::invalid, Trigger{CounterId{0}, 1});
  for (int i = 0; i < 2; ++i) bench.good(CounterInc{CounterId{0}, {1, 0}}, Trigger{CounterId{0}, 9});
  EXPECT_NE(bench.error(CounterInc{CounterId{0}, {1, 0}}, Code::exhausted, Trigger{CounterId{0}, 9})
                .find("triggered_commands"),
            std::string::npos);
  bench.good(CounterFree{CounterId{0}});
  EXPECT_EQ(bench.nic.state().triggered_waiting, 0u);
}

// The first message has begun but is not complete; a later one is complete. A search must not let it pass.
TEST(Search, KeepsTheOrderOfHeaders) {
  Bench bench;
  Entry keeps = bench.entry();
  keeps.options.manage_local = true;
  keeps.options.event_comm_disable = true;
  bench.append(keeps, ListKind::overflow);
  for (const Packet& packet : {bench.packet(1, 40, 0), bench.packet(2, 8, 0)}) {
    bench.arrive(packet);
    bench.land();
  }
  Search search{bench.portal, bench.entry(), false};
  search.entry.options.use_once = true;
  EXPECT_EQ(bench.good(search), 1u);
  EXPECT_EQ(bench.event(EventKind::search).requested_bytes, 40u);
  EXPECT_EQ(bench.event(EventKind::search).manipulated_bytes, 40u) << "what it will be";
  search.remove = true;
  EXPECT_EQ(bench.good(search), 1u) << "it is told when its data is there";
  bench.arrive(1, 40, 16);
  EXPECT_TRUE(bench.land().empty());
  bench.arrive(1, 40, 32);
  const std::vector<Event> events = bench.land();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::put_overflow);
  EXPECT_EQ(events[0].requested_bytes, 40u);
  search.entry.options.use_once = false;
  EXPECT_EQ(bench.good(search), 1u);
}

TEST(Trigger, TriggeredAppendAndItsFailureAreSeen) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  bench.good(Append{EntryId{3}, bench.portal, ListKind::priority, bench.entry()}, Trigger{CounterId{0}, 1});
  bench.good(Append{EntryId{3}, bench.portal, ListKind::priority, bench.entry()}, Trigger{CounterId{0}, 1});
  bench.arrive(1, 16, 0);
  EXPECT_EQ(bench.nic.state().dropped_messages, 1u);
  bench.good(CounterInc{CounterId{0}, {1, 0}});
  bench.go_on();
  EXPECT_EQ(bench.nic.state().failed_commands, 0u);
  bench.go_on();
  EXPECT_EQ(bench.nic.state().failed_commands, 1u);
  EXPECT_NE(bench.nic.describe_waiting().find("entry 3 is already in use"), std::string::npos)
      << bench.nic.describe_waiting();
  bench.arrive(2, 16, 0);
  EXPECT_EQ(bench.land().size(), 1u);
}

TEST(Objects, IdsAreCheckedAndLimitsNamed) {
  Bench bench;
  bench.error(QueueAlloc{bench.queue, 1}, Code::invalid);
  bench.error(QueueAlloc{QueueId{1}, 0}, Code::invalid);
  EXPECT_NE(bench.error(QueueAlloc{QueueId{1 << 30}, 1}, Code::exhausted).find("queue_count_max"), std::string::npos);
  EXPECT_NE(bench.error(PortalAlloc{PortalIndex{256}, bench.queue}, Code::exhausted).find("portal_table_max"),
            std::string::npos);
  bench.error(QueueFree{QueueId{1}}, Code::invalid);
  bench.error(PortalAlloc{PortalIndex{2}, QueueId{}, true}, Code::invalid);
  bench.error(CounterInc{CounterId{0}, {1, 0}}, Code::invalid);
  bench.error(Append{EntryId{0}, PortalIndex{7}, ListKind::priority, bench.entry()}, Code::invalid);
  const EntryId id = bench.append(bench.entry());
  EXPECT_NE(bench.error(PortalFree{bench.portal}, Code::invalid).find("1 entries"), std::string::npos);
  bench.good(Unlink{id});
  bench.good(PortalFree{bench.portal});
  bench.good(QueueFree{bench.queue});
}

// The freed queue has flow control, room kept for the event of an entry that has left, and a message under way.
TEST(Objects, AFreedQueueIsNobodysAnyMore) {
  Bench bench;
  const QueueId freed{1};
  bench.portal = PortalIndex{1};
  bench.good(QueueAlloc{freed, 8, 1, std::make_shared<QueueIndex>()});
  bench.good(PortalAlloc{bench.portal, freed, true});
  Entry once = bench.entry();
  once.options.use_once = true;
  bench.append(once);
  bench.append(bench.entry(6));
  bench.arrive(1, 16, 0, 5);
  const DmaId dma = bench.only<DmaWrite>().dma;
  bench.good(QueueFree{freed});
  const QueueId next = next_of(freed);
  bench.good(QueueAlloc{next, 8, 1, std::make_shared<QueueIndex>()});
  bench.dma_done(dma);
  EXPECT_TRUE(bench.kinds().empty());
  bench.arrive(2, 16, 0, 6);
  EXPECT_TRUE(bench.land().empty());
  bench.arrive(3, 16, 0, 7);  // matches nothing
  bench.arrive(4, 16, 0, 6);
  EXPECT_EQ(bench.land().size() + bench.actions<PostEvent>().size(), 0u);
  EXPECT_EQ(bench.nic.state().dropped_messages, 1u) << "without its queue there is no flow control";
  bench.expect_idle();
  bench.error(QueueFree{freed}, Code::invalid);
  bench.good(QueueFree{next});
}

// An entry, a put under way and a waiting command name a freed counter, whose index another counter has now.
// Rules: P4F-10.19.
TEST(Objects, WhatNamesAFreedCounterDoesNotMeanTheNext) {
  Bench bench;
  const CounterId freed{0}, next = next_of(freed), waited{1};
  bench.good(CounterAlloc{freed});
  bench.good(CounterAlloc{waited});
  Entry counting = bench.entry();
  counting.counter = freed;
  counting.options.ct_comm = true;
  bench.append(counting);
  Put put;
  put.local = bench.source;
  put.length = 16;
  put.portal = bench.portal;
  put.counter = freed;
  put.ack_request = AckRequest::ct_ack;
  bench.good(put);
  const Send sent = bench.only<Send>();
  bench.good(CounterInc{freed, {1, 0}}, Trigger{waited, 1});
  bench.good(CounterFree{freed});
  bench.good(CounterAlloc{next});
  bench.arrive(1, 16, 0);
  bench.land();
  EXPECT_TRUE(bench.actions<PostCounter>().empty());
  bench.out.clear();
  bench.nic.on_packet_sent(sent.packet.message, bench.out);
  Packet ack;
  ack.operation = Operation::ack;
  ack.source = sent.packet.target;
  ack.target = sent.packet.source;
  ack.message = sent.packet.message;
  ack.fields.ack_request = AckRequest::ct_ack;
  bench.arrive(ack);
  EXPECT_TRUE(bench.actions<PostCounter>().empty());
  bench.good(CounterInc{waited, {1, 0}});
  bench.go_on();
  EXPECT_TRUE(bench.actions<PostCounter>().empty());
  bench.error(CounterInc{freed, {1, 0}}, Code::invalid);
  bench.good(CounterInc{next, {1, 0}});
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{1, 0}));
}

TEST(Objects, AnUnlinkThatWaitsLeavesTheNextEntryAlone) {
  Bench bench;
  const CounterId counter{0};
  bench.good(CounterAlloc{counter});
  const EntryId older = bench.append(bench.entry());
  bench.good(Unlink{older}, Trigger{counter, 1});
  bench.good(Unlink{older});
  bench.good(Append{next_of(older), bench.portal, ListKind::priority, bench.entry()});
  bench.good(CounterInc{counter, {1, 0}});
  bench.go_on();
  EXPECT_EQ(bench.nic.state().failed_commands, 1u);
  bench.arrive(1, 16, 0);
  EXPECT_EQ(bench.land().size(), 1u);
}

TEST(Objects, ContextsLieInTheirMemoryAndAreNotFreedInUse) {
  Bench bench;
  Context context;
  context.header_entry = 1;
  context.user_header_bytes = 17;
  EXPECT_NE(bench.error(ContextCreate{ContextId{0}, context}, Code::invalid).find("user header"), std::string::npos);
  context = {};
  bench.error(ContextCreate{ContextId{0}, context}, Code::invalid);
  context.payload_entry = 1;
  context.state = {0, 64};
  bench.error(ContextCreate{ContextId{0}, context}, Code::invalid);
  context.state.offset = bench.good(MemoryAlloc{64});
  bench.good(ContextCreate{ContextId{0}, context});
  EXPECT_EQ(bench.nic.context(ContextId{0})->state.length, 64u);
  EXPECT_NE(bench.error(MemoryFree{context.state.offset}, Code::invalid).find("context 0"), std::string::npos);
  Entry entry = bench.entry();
  entry.context = ContextId{0};
  const EntryId id = bench.append(entry);
  bench.error(ContextFree{ContextId{0}}, Code::invalid);
  bench.good(Unlink{id});
  bench.good(ContextFree{ContextId{0}});
  EXPECT_EQ(bench.nic.context(ContextId{0}), nullptr);
  bench.good(MemoryFree{context.state.offset});
  EXPECT_EQ(bench.nic.state().nic_memory_used, 0u);
  context.state = {};
  context.blocked_round_robin = BlockedRoundRobin{0, 1};
  bench.error(ContextCreate{ContextId{0}, context}, Code::invalid);
  context.blocked_round_robin = BlockedRoundRobin{1, limits::vhpu_count_max + 1};
  EXPECT_NE(bench.error(ContextCreate{ContextId{0}, context}, Code::invalid).find("vhpu_count_max"), std::string::npos);
}

TEST(Objects, NicMemoryWritesStayInTheirBlock) {
  Bench bench;
  const uint64_t offset = bench.good(MemoryAlloc{32});
  bench.good(MemoryWrite{offset + 8, std::vector<uint8_t>(24, 7)});
  EXPECT_EQ(bench.only<WriteNicMemory>().offset, offset + 8);
  EXPECT_EQ(bench.only<WriteNicMemory>().bytes.size(), 24u);
  bench.error(MemoryWrite{offset + 9, std::vector<uint8_t>(24, 7)}, Code::invalid);
  EXPECT_NE(bench.error(MemoryAlloc{1 << 20}, Code::exhausted).find("memory.state_bytes"), std::string::npos);
}

TEST(Objects, LimitsOfTheNicAreChecked) {
  NicLimits limits = small_limits();
  EXPECT_TRUE(check(limits).ok());
  limits.hpus = 0;
  EXPECT_FALSE(check(limits).ok());
  limits = small_limits();
  limits.payload_bytes = 512;
  EXPECT_NE(check(limits).error().message.find("packet_buffer_bytes"), std::string::npos);
  EXPECT_THROW(Nic(Rank{0}, limits), InternalError);
}

}  // namespace
}  // namespace spinloom::nic
